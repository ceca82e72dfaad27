"""Runs of one program that break down: each is held where it was, the others are the single runs to the last bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_cases import under_vmap

import onesfw as fw
from onesfw.engine import broken, sweeps
from onesfw.engine.checks import build_run, starting_point
from onesfw.engine.solve import carry_out

RUNS, STEPS = 8, 700
BROKE, DONE = fw.Status.NOT_FINITE, fw.Status.STEPS_DONE
ROWS = np.random.default_rng(0).uniform(0.1, 1.0, (900, 3)).astype(np.float32)
BAD = 900.0  # the mark of the row that breaks what meets it
CASES = {
    "corrected": (fw.one_sfw(), 1),
    "last": (fw.one_sfw(schedule="paper"), 1),
    "random": (fw.one_sfw("nonconvex", schedule="paper"), 1),
    "average": (fw.projected_sgd(), 1),
    "lazy": (fw.one_sfw(oracle="lazy"), 1),
    "greedy": (fw.one_sfw("dr_submodular", schedule="paper"), -1),
}


def loss(x, row):
    z, number = row
    return jnp.sum((x - z) ** 2) + jnp.where(number == BAD, jnp.nan, 0.0) * jnp.sum(x)


def problem(algorithm=CASES["last"][0], sign=1, **options):
    """A run that meets a row with NaN after some hundred steps, at another step for every key."""
    objective = fw.FiniteSum(loss, (ROWS, np.arange(1.0, 901.0, dtype=np.float32)))
    cube = fw.sets.Box(0.0, 1.0, shape=3)
    return build_run(
        objective, cube, starting_point(None, cube), False, sign, steps=STEPS, algorithm=algorithm,
        **{"evaluate": False, "every": None, "gap_tol": None, "time_limit": None, "callbacks": (), **options},
    )  # fmt: skip


def same(together, apart):
    """Whether they are, in all that is counted and to the last bit."""
    assert together.status == apart.status
    assert {BROKE, DONE} == set(together.status)
    for name in ("x", "x_last", "steps", "samples", "gradients", "hvps", "lmo_calls", "failed_step"):
        np.testing.assert_array_equal(getattr(together, name), getattr(apart, name), err_msg=name)
    assert np.isfinite(together.x).all()


@pytest.mark.parametrize("case", CASES)
def test_the_others_go_on_and_each_is_the_single_run(case):
    run, key = problem(*CASES[case]), jax.random.key(2)
    together, apart = (carry_out(run, key, RUNS, False, vectorised=v) for v in (True, False))
    same(together, apart)
    if case == "lazy":
        for (mine, weights), (other, own) in zip(together.atoms, apart.atoms, strict=True):
            np.testing.assert_array_equal(mine, other)
            np.testing.assert_array_equal(weights, own)


def test_they_stay_held_over_a_checkpoint(tmp_path):
    run, key = problem(fw.one_sfw(), every=[400]), jax.random.key(2)
    stopped = problem(fw.one_sfw(), every=[400], callbacks=[lambda row, x: False])
    part = carry_out(stopped, key, RUNS, False, tmp_path / "run", vectorised=True)
    assert {BROKE, fw.Status.STOPPED} == set(part.status)
    whole = carry_out(run, key, RUNS, False, tmp_path / "run", vectorised=True)
    same(whole, carry_out(run, key, RUNS, False, vectorised=False))
    again = carry_out(run, key, RUNS, False, tmp_path / "run", vectorised=True)  # nothing is left to do
    same(again, whole)


def test_after_many_searches_a_run_is_held_where_its_chunk_began(monkeypatch):
    monkeypatch.setattr(broken, "SEARCHES", 1)
    run, key = problem(), jax.random.key(2)
    together, apart = (carry_out(run, key, RUNS, False, vectorised=v) for v in (True, False))
    assert together.status == apart.status
    failed = [(mine, true) for mine, true in zip(together.failed_step, apart.failed_step, strict=True) if true]
    assert min(true for _, true in failed) in {mine for mine, _ in failed}  # the one that was looked for
    assert all(mine <= true for mine, true in failed)
    assert any(mine < true for mine, true in failed)
    fine = [place for place, status in enumerate(together.status) if status is DONE]
    np.testing.assert_array_equal(together.x[fine], apart.x[fine])
    assert np.isfinite(together.x).all()


def test_a_program_of_broken_runs_ends(tmp_path):
    objective = fw.FiniteSum(lambda x, row: jnp.sum(x * row) / 0, np.zeros((2, 3), np.float32))
    cube = fw.sets.Box(0.0, 1.0, shape=3)
    run = build_run(
        objective, cube, starting_point(None, cube), False, 1, steps=10**8, algorithm=fw.one_sfw(schedule="paper"),
        evaluate=False, every=None, gap_tol=None, time_limit=None, callbacks=(),
    )  # fmt: skip
    for _ in range(2):  # the second goes on where the first was
        ended = carry_out(run, jax.random.key(0), 3, False, tmp_path / "run", vectorised=True)
        assert ended.status == (BROKE,) * 3
        assert ended.steps.tolist() == [0, 0, 0]
        assert ended.failed_step.tolist() == [1, 1, 1]


@pytest.mark.parametrize("how", ["in turn", "vmap", "kernel"])
def test_a_set_whose_run_overflows_costs_the_others_nothing_and_is_not_the_best(monkeypatch, how):
    rows = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    objective = fw.FiniteSum(lambda x, row: jnp.exp(jnp.exp(row @ x)), rows)
    balls = [fw.sets.L1Ball(radius, shape=3) for radius in (0.1, 0.5, 90.0)]
    options = {"steps": 60, "algorithm": fw.one_sfw(schedule="paper")}
    apart = fw.sweep(objective, balls, **options)
    monkeypatch.setattr(sweeps, "apart", sweeps.together)
    if how == "vmap":
        under_vmap(monkeypatch)
    if how == "kernel":
        monkeypatch.setenv("ONESFW_KERNEL", "persistent")
    together = fw.sweep(objective, balls, **options)
    assert together.kernel == ("persistent" if how == "kernel" else "xla")
    assert [tuple(fw.Status)[place] for place in together.status.ravel()] == [DONE, DONE, BROKE]
    assert together.steps.ravel().tolist() == apart.steps.ravel().tolist()
    np.testing.assert_allclose(together.x, apart.x, atol=0 if how == "in turn" else 1e-5)
    assert together.best().number == apart.best().number < 2
