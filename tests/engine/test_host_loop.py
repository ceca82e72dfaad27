"""The loop: nothing compiles twice, everything that may end a run ends it well, and x is what it should be."""

import os
import signal
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_cases import BALL, LABELS, ROWS, logistic, noisy, under_vmap

import onesfw as fw
from onesfw.engine import compiled_loop
from onesfw.engine.checks import build_run, starting_point
from onesfw.engine.programs import compilations
from onesfw.engine.solve import carry_out


def test_nothing_compiles_twice():
    def solve(data, radius, key, steps):
        objective = fw.FiniteSum(lambda x, row: jnp.sum(jnp.tanh(row * x)), data)
        return fw.minimize(objective, fw.sets.L2Ball(radius, shape=3), steps=steps, key=key)

    solve(np.ones((7, 3), np.float32), 1.0, 0, 20)
    before = compilations()
    for i in range(1, 4):
        solve(np.full((7, 3), float(i), np.float32), 1.0 + i, i, 20 + 100 * i)
    assert compilations() == before


def test_captured_arrays_become_arguments():
    sizes = (300, 40)

    def solve(seed):
        table = jnp.asarray(np.random.default_rng(seed).standard_normal(sizes), jnp.float32)
        objective = fw.Expectation(
            lambda x, z: jnp.sum((x - z) ** 2), lambda key: table[jax.random.randint(key, (), 0, sizes[0])]
        )
        return fw.minimize(objective, fw.sets.L2Ball(1.0, shape=sizes[1]), steps=50, evaluate=100)

    solve(0)
    before, alive = compilations(), len([a for a in jax.live_arrays() if a.shape == sizes])
    values = [solve(seed).value for seed in (1, 2, 3)]
    assert compilations() == before
    assert len(set(values)) == 3  # the new array was used, not the first one
    assert len([a for a in jax.live_arrays() if a.shape == sizes]) <= alive


def test_a_different_constant_is_a_different_program():
    values = [
        fw.minimize(
            fw.FiniteSum(lambda x, row, c=c: jnp.sum((x - c * row) ** 2), np.ones((3, 2), np.float32)),
            fw.sets.L2Ball(9.0, shape=2),
            steps=30,
        ).x[0]
        for c in (1.0, 1.0000001, 2.0)
    ]
    assert values[2] > values[0] + 0.5
    assert values[1] != values[2]


# -- replicates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["convex", "nonconvex"])
def test_replicates_under_vmap_agree_with_single_runs(monkeypatch, setting):
    """The accelerator's path, on the CPU: equal up to rounding on a problem whose oracle is continuous."""
    mu = jnp.linspace(-1, 1, 4)
    objective = fw.Expectation(lambda x, z: jnp.sum((x - mu - z) ** 2), lambda key: jax.random.normal(key, (4,)))
    constraint = fw.sets.L2Ball(1.0, shape=4)
    run = build_run(
        objective, constraint, starting_point(None, constraint), False, 1, steps=300, algorithm=fw.one_sfw(setting),
        evaluate=200, every=[10, 100], gap_tol=None, time_limit=None, callbacks=(),
    )  # fmt: skip
    key = jax.random.key(1)
    under_vmap(monkeypatch)
    batched = carry_out(run, key, 3, False, vectorised=True)
    threads = carry_out(run, key, 3, False, vectorised=False)
    for name in ("x", "x_last", "value", "gap", "gap_stderr", "steps", "samples"):
        np.testing.assert_allclose(getattr(batched, name), getattr(threads, name), rtol=1e-3, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(batched.trace.value, threads.trace.value, rtol=1e-3, atol=1e-4)
    assert batched.status == threads.status


# -- what ends a run --------------------------------------------------------------------------------------------------


def test_gap_tolerance_stops_on_a_certified_gap():
    result = fw.minimize(logistic(), BALL, steps=10**6, gap_tol=0.05)
    assert result.status is fw.Status.GAP_REACHED
    assert result.steps < 10**6
    assert result.gap <= 0.05
    assert result.gap_stderr == 0.0
    sampled = fw.minimize(noisy(), fw.sets.Simplex(1.0, shape=5), steps=10**6, gap_tol=0.1, evaluate=4000)
    assert sampled.gap + 1.6 * sampled.gap_stderr <= 0.1
    nonconvex = fw.minimize(logistic(), BALL, steps=10**5, gap_tol=0.2, algorithm=fw.one_sfw("nonconvex"))
    assert nonconvex.status is fw.Status.GAP_REACHED
    np.testing.assert_array_equal(nonconvex.x, nonconvex.x_last)  # the certified point, not x_o
    assert nonconvex.gap <= 0.2


def test_time_limit_returns_a_member():
    result = fw.minimize(logistic(), BALL, steps=2 * 10**9, time_limit=0.4)
    assert result.status is fw.Status.TIME_UP
    assert 0.2 < result.seconds < 1.5
    assert BALL.contains(result.x)
    assert result.samples == result.steps


def test_interrupt_returns_the_last_feasible_iterate():
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    fw.minimize(logistic(), BALL, steps=10, evaluate=False)  # compiled beforehand
    before = signal.getsignal(signal.SIGINT)
    timer.start()
    result = fw.minimize(logistic(), BALL, steps=2 * 10**9)
    assert result.status is fw.Status.INTERRUPTED
    assert 0 < result.steps < 2 * 10**9
    assert BALL.contains(result.x)
    assert result.gap is not None
    assert signal.getsignal(signal.SIGINT) is before


def test_callbacks_see_rows_and_may_stop():
    seen = []

    def watch(row, x):
        seen.append((row["step"], row["value"], np.asarray(x).copy()))
        return row["step"] < 30

    result = fw.minimize(logistic(), BALL, steps=100, every=10, callbacks=[watch])
    assert result.status is fw.Status.STOPPED
    assert [step for step, _, _ in seen] == [10, 20, 30]
    assert result.steps == 30
    np.testing.assert_array_equal(seen[-1][2], result.x)
    assert seen[-1][1] == result.value


def test_an_error_in_one_replicate_ends_them_all():
    def fail(row, x):
        raise RuntimeError("stop it")

    with pytest.raises(RuntimeError, match="stop it"):
        fw.minimize(logistic(), BALL, steps=2 * 10**9, replicates=3, every=[10], callbacks=[fail], evaluate=False)


def test_a_step_that_is_not_finite_is_named_and_undone():
    bad = 137

    def value(x, z):
        return jnp.sum(x**2) + jnp.where(z == bad - 1, jnp.nan, 0.0) * jnp.sum(x)

    objective = fw.FiniteSum(value, np.arange(1000.0, dtype=np.float32), indices=np.arange(1000))
    result = fw.minimize(objective, fw.sets.L2Ball(1.0, shape=3), steps=1000, evaluate=False)
    assert result.status is fw.Status.NOT_FINITE
    assert result.failed_step == bad
    assert result.steps == bad - 1
    assert np.isfinite(result.x).all()
    good = fw.minimize(objective, fw.sets.L2Ball(1.0, shape=3), steps=1000, evaluate=False, time_limit=100)
    np.testing.assert_array_equal(good.x, result.x)


def test_a_full_gradient_that_is_not_finite_once_is_seen():
    """√|x| has no gradient at 0, where the run starts; the later gradients are finite."""
    objective = fw.FiniteSum(lambda x, row: jnp.sum(row * jnp.sqrt(jnp.abs(x))), np.ones((2, 3), np.float32))
    result = fw.minimize(
        objective, fw.sets.Box(-1.0, 1.0, shape=3), steps=50, algorithm=fw.frank_wolfe(), evaluate=False
    )
    assert result.status is fw.Status.NOT_FINITE
    assert result.failed_step == 1
    assert np.isfinite(result.x).all()


# -- outputs ----------------------------------------------------------------------------------------------------------


def test_random_output_is_uniform_over_the_iterates():
    """x_o is one of x_1, …, x_T: with vertices e_1, e_2 and known iterates its place can be read off."""
    steps, runs = 8, 3000
    start = np.array([1.0, 0.0], np.float32)
    objective = fw.FiniteSum(lambda x, row: -x[1] * row, np.ones(1, np.float32))
    result = fw.minimize(
        objective, fw.sets.Simplex(1.0), start, steps=steps, replicates=runs, evaluate=False,
        algorithm=fw.one_sfw("nonconvex", schedule="paper", eta=0.5),
    )  # fmt: skip
    place = np.rint(-np.log2(result.x[:, 0])).astype(int)  # x_t[0] = 2^-(t-1)
    counts = np.bincount(place, minlength=steps)
    assert counts.size == steps
    assert np.sum((counts - runs / steps) ** 2) / (runs / steps) < 24.3  # 99.9 % with 7 degrees of freedom
    np.testing.assert_allclose(result.x_last[:, 0], 2.0**-steps)


def test_continuous_greedy_keeps_exact_counts():
    """Linear F over the box {x ≤ 1}: every step takes the whole box, and x ends at exactly 1 in float32."""
    objective = fw.FiniteSum(lambda x, row: row @ x, np.ones((1, 3), np.float32))
    paper = fw.one_sfw("dr_submodular", schedule="paper")
    result = fw.maximize(objective, fw.sets.Box(0.0, 1.0, shape=3), steps=9999, algorithm=paper)
    np.testing.assert_array_equal(result.x, np.ones(3, np.float32))
    assert result.value == 3.0
    assert result.gap == 0.0


def test_continuous_greedy_stopped_early_returns_a_member():
    cube = fw.sets.Knapsack(np.ones(3), 1.0)
    objective = fw.FiniteSum(lambda x, row: jnp.sum(jnp.sqrt(x + 0.1) * row), np.ones((1, 3), np.float32))
    result = fw.maximize(objective, cube, steps=1000, every=[300], callbacks=[lambda row, x: False])
    assert result.steps == 300
    assert float(np.sum(result.x)) == pytest.approx(1.0, abs=1e-6)


def test_continuous_greedy_over_a_set_without_zero():
    """0 need not lie in K: zeros set the dtype, and a run that ends before its first step still returns a member."""
    simplex = fw.sets.Simplex(1.0)
    objective = fw.FiniteSum(lambda x, row: row @ x, np.eye(3))
    result = fw.maximize(objective, simplex, np.zeros(3), steps=30)
    assert result.x.dtype == np.float64
    assert bool(simplex.contains(result.x))
    broken = fw.FiniteSum(lambda x, row: jnp.sum(jnp.sqrt(x) * 0) / 0 + row @ x, np.eye(3))
    stopped = fw.maximize(broken, simplex, np.zeros(3), steps=30, evaluate=False)
    assert stopped.status is fw.Status.NOT_FINITE
    assert stopped.steps == 0
    assert bool(simplex.contains(stopped.x))


def test_maximize_keeps_the_users_sign():
    concave = fw.FiniteSum(lambda x, row: -jnp.sum((x - row) ** 2), np.full((4, 2), 0.25, np.float32))
    result = fw.maximize(concave, fw.sets.L1Ball(1.0, shape=2), steps=3000, algorithm=fw.one_sfw("convex"), every="log")
    assert -1e-3 < result.value <= 0
    assert result.gap >= 0
    assert result.trace.value[0] < result.trace.value[-1]


def test_x_may_be_any_pytree():
    data = {"a": ROWS, "y": LABELS}

    def loss(x, row):
        return jnp.logaddexp(0.0, -row["y"] * (row["a"] @ x["w"] + x["b"][0]))

    start = {"b": np.zeros(1, np.float32), "w": np.zeros(5, np.float32)}
    whole = fw.minimize(fw.FiniteSum(loss, data), fw.sets.L1Ball(2.0), start, steps=2000)
    assert float(jnp.abs(whole.x["w"]).sum() + jnp.abs(whole.x["b"]).sum()) <= 2.0 + 1e-5
    product = fw.sets.Product({"b": fw.sets.Box(-0.5, 0.5, shape=1), "w": fw.sets.L2Ball(1.0, shape=5)})
    parts = fw.minimize(fw.FiniteSum(loss, data), product, steps=2000)
    assert abs(float(parts.x["b"][0])) <= 0.5 + 1e-6
    assert float(jnp.linalg.norm(parts.x["w"])) <= 1 + 1e-5
    assert parts.gap < 0.1


def test_frank_wolfe_is_the_reference():
    result = fw.minimize(logistic(), BALL, steps=500, algorithm=fw.frank_wolfe(), every="log")
    assert result.gap < 0.02
    stochastic = fw.minimize(logistic(), BALL, steps=50_000)
    assert stochastic.value == pytest.approx(result.value, abs=0.01)


def test_warm_start_is_kept_by_t0():
    near = fw.minimize(logistic(), BALL, steps=2000, algorithm=fw.frank_wolfe())
    cold = fw.minimize(logistic(), BALL, near.x, steps=50, replicates=8)
    warm = fw.minimize(logistic(), BALL, near.x, steps=50, algorithm=fw.one_sfw(t0=1000), replicates=8)
    assert np.mean(warm.value) - near.value < 0.2 * (np.mean(cold.value) - near.value)


def test_blocks_of_draws_fit_the_cache():
    small = compiled_loop.block_length(logistic(), fw.one_sfw().estimator(logistic()), jax.random.key(0))
    large = fw.Expectation(lambda x, z: x @ z, lambda key: jax.random.normal(key, (100_000,)))
    assert small == compiled_loop.BLOCK
    assert compiled_loop.block_length(large, fw.one_sfw().estimator(large), jax.random.key(0)) == 16


def test_a_chunk_of_a_known_pace_fits_the_time_that_is_left():
    from onesfw.engine.pace import Pace

    assert Pace().steps(float("inf")) == 1
    assert Pace(1e-3).steps(float("inf")) == 250
    assert Pace(1e-3).steps(0.02) == 20
    assert Pace(1e-3).steps(-1.0) == 1
    assert Pace(1e-9).steps(float("inf")) == compiled_loop.CHUNK
