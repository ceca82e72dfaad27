"""Loops of small steps are one function of machine code, give the numbers of XLA's loop, and never end the process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_cases import BALL, logistic
from primitive_loops import loops

import onesfw as fw
from onesfw.engine import programs
from onesfw.engine.small_loop import SIMPLE

HERE = Path(__file__).parent
MARK = 'inlineable="false",xla_cpu_small_call="true"'  # XLA marks small loops of its own too, without the first


@pytest.mark.parametrize("wide", ["0", "1"])
def test_every_primitive_that_is_called_simple_is_compiled_whole(wide):
    """In a process of its own: XLA ends the process where it has no form for something."""
    command, environment = [sys.executable, HERE / "primitive_loops.py"], {**os.environ, "JAX_ENABLE_X64": wide}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(done.stdout.split()) == SIMPLE


def test_what_needs_the_runtime_is_left_to_it():
    for body in (
        lambda i, x: jnp.sort(x)[::-1],
        lambda i, x: x.at[jnp.argsort(x)].add(0.1),
        lambda i, x: jax.pure_callback(np.sin, x, x, vmap_method="sequential"),
        lambda i, x: x + jnp.linalg.svd(jnp.outer(x, x))[1],
        lambda i, x: x + jnp.sum(jnp.ones((100, 100)) * x[0]),
    ):
        (ours, plain), text = loops(body)
        assert MARK not in text
        np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-6)


def test_an_argument_that_nothing_needs_is_no_matter():
    table, unused = jnp.arange(30_000.0).reshape(5000, 6), jnp.ones(7)
    (ours, plain), text = loops(lambda i, x, table, unused: (x + 0.01 * table[i], unused[i])[0], table, unused)
    assert MARK in text
    np.testing.assert_allclose(ours, plain, rtol=1e-6)


def test_runs_of_small_problems_are_whole_and_the_environment_can_forbid_it(monkeypatch):
    def run():
        programs._programs.clear()
        programs._traces.clear()
        found = fw.minimize(logistic(), BALL, steps=300, key=2, evaluate=False)
        return found.x, "".join(program.as_text() for program in programs._programs.values())

    whole, text = run()
    assert re.search(r"call\(.*" + MARK, text)
    monkeypatch.setenv("ONESFW_KERNEL", "xla")
    plain, text = run()
    assert not re.search(r"f32\[5\].* call\(.*" + MARK, text)
    np.testing.assert_allclose(whole, plain, atol=1e-5)


@pytest.mark.parametrize("size", [1, 7, 8, 63, 64, 65, 511, 512, 513, 4096, 20_013])
def test_the_first_largest_entry_is_the_first(size):
    from onesfw.sets.simplices import first_largest

    rng = np.random.default_rng(size)
    for values in (rng.integers(0, 3, size), rng.standard_normal(size), np.zeros(size)):
        assert first_largest(jnp.asarray(values, jnp.float32)) == np.argmax(np.float32(values))
