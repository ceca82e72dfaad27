"""Replicates and sweeps over several devices: host devices, made by XLA, in a process of their own."""

import subprocess
import sys

PROGRAM = """
import os, re
import jax, jax.numpy as jnp, numpy as np
import onesfw as fw
from onesfw.engine import replicates, programs, sweeps
from onesfw.engine.devices import mesh_for

assert jax.device_count() == 4
rows = np.random.default_rng(0).normal(0.2, 1.0, (60, 4)).astype(np.float32)
K = fw.sets.L1Ball(1.0, shape=4)

def run(count, **more):
    objective = fw.FiniteSum(lambda x, row: jnp.logaddexp(0.0, row @ x), rows)
    return fw.minimize(objective, K, steps=200, replicates=count, key=3, **more)

assert mesh_for(8).size == 4 and mesh_for(6).size == 3 and mesh_for(7) is None and mesh_for(None) is None
divided = run(8, every=100)
texts = [program.as_text() for program in programs._programs.values()]
assert any("num_partitions=4" in text for text in texts)
words = "all-reduce|all-gather|all-to-all|collective|reduce-scatter"
assert not any(re.search(words, text) for text in texts), "a collective"
replicates.mesh_for = lambda count: None  # threads
threads = run(8, every=100)
for name in ("x", "value", "gap"):
    np.testing.assert_array_equal(getattr(divided, name), getattr(threads, name))
np.testing.assert_array_equal(divided.trace.gap, threads.trace.gap)
fifth = jax.random.fold_in(jax.random.key(3), 5)
objective = fw.FiniteSum(lambda x, row: jnp.logaddexp(0.0, row @ x), rows)
alone = fw.minimize(objective, K, steps=200, key=fifth)
np.testing.assert_array_equal(divided.x[5], alone.x)

balls = [fw.sets.L1Ball(r, shape=4) for r in (0.5, 1.0)]
folds = fw.rows.folds(60, 2)
swept = fw.sweep(objective, balls, steps=200, rows=folds, key=3)  # four runs on four devices
last = fw.minimize(objective.only(folds[1]), balls[1], steps=200, key=jax.random.fold_in(jax.random.key(3), 3))
np.testing.assert_array_equal(swept.x[1, 1, 0], last.x)
sweeps.mesh_for = lambda count: None  # threads
apart = fw.sweep(objective, balls, steps=200, rows=folds, key=3)
for name in ("x", "value", "gap", "validation"):
    np.testing.assert_array_equal(getattr(swept, name), getattr(apart, name))
radii, sizes = [fw.sets.L1Ball(r, shape=4) for r in (0.2, 0.4, 0.6, 0.8, 1.0)], [np.arange(20), np.arange(20, 41)]
sweeps.mesh_for = mesh_for
uneven = fw.sweep(objective, radii, steps=200, rows=sizes, key=3)  # ten runs, of which five have one shape
sweeps.mesh_for = lambda count: None
apart = fw.sweep(objective, radii, steps=200, rows=sizes, key=3)
for name in ("x", "value", "gap", "validation"):
    np.testing.assert_array_equal(getattr(uneven, name), getattr(apart, name))
os.environ["ONESFW_KERNEL"] = "persistent"
sweeps.mesh_for = mesh_for
kernels = fw.sweep(objective, balls, steps=200, rows=folds, key=3)  # a kernel on each device, interpreted
assert kernels.kernel == "persistent"
np.testing.assert_allclose(kernels.x, swept.x, atol=1e-4)
print("the same bits")
"""


def test_devices_share_replicates_without_a_collective_and_keep_the_bits_of_the_threads(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "the same bits", done.stderr
