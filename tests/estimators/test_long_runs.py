"""Long runs in float32: d_t loses neither 1 − ρ nor the differences of gradients that are hardly apart."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import onesfw as fw
from onesfw.estimators import OneSample, SameSample, StepInputs, one_sample

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import soak

HALF_SQUARE = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2) / 2, lambda key: jnp.zeros(2))
"""Its gradient at x is x − z."""


def run_updates(estimator, state, points, first, rho, z):
    """The state after the steps `first`, … at the rows of `points`, all with the same ρ and sample."""
    draws = (jnp.broadcast_to(z, (1, 2)), ())

    def one(i, carry):
        state, previous = carry
        inputs = StepInputs(points[i], previous, draws, (), rho, first + i)
        return estimator.update(HALF_SQUARE, state, inputs), points[i]

    return lax.fori_loop(0, len(points), one, (state, points[0]))[0]


def test_small_weights_are_not_lost():
    """100,000 steps with ρ = 1e-8 carry d by 1e-3 of its way to the gradient; plain float32 does not move at all."""
    steps, estimator, x = 100_000, OneSample(SameSample()), jnp.ones(2)
    state = estimator.init(x)._replace(d=x)
    points = jnp.broadcast_to(x, (steps, 2))
    end = jax.jit(lambda s: run_updates(estimator, s, points, jnp.int32(10), jnp.float32(1e-8), -x))(state)
    np.testing.assert_allclose(end.d, 2 - (1 - 1e-8) ** steps, rtol=1e-7)  # from 1 towards x − z = 2
    assert 1 - np.float32(1e-8) == 1


@pytest.mark.parametrize(("first", "k"), [(1 << 12, 1), (1 << 23, 2), (1 << 26, 16)])
def test_differences_over_segments_add_up(first, k):
    """At the end of a segment d is the gradient at its end, k steps or fewer behind, whatever k."""
    estimator = OneSample(SameSample(), long=True)
    points = jnp.asarray(np.random.default_rng(0).random((4 * k, 2)), jnp.float32)
    state = estimator.init(points[0])._replace(d=points[0])
    end = jax.jit(lambda s: run_updates(estimator, s, points, jnp.int32(first), jnp.float32(0.0), jnp.zeros(2)))(state)
    np.testing.assert_array_equal(end.segment.end, points[3 * k])
    np.testing.assert_array_equal(end.segment.start, points[2 * k])
    np.testing.assert_allclose(end.d, end.segment.end, atol=1e-7)


def test_only_long_runs_in_float32_take_segments():
    estimator, single = OneSample(SameSample()), jnp.ones(2, jnp.float32)
    assert not estimator.for_steps((1 << 23) - 1, single).long
    assert estimator.for_steps(1 << 23, single).long
    assert not estimator.for_steps(1 << 23, np.ones(2)).long
    assert not fw.momentum_sfw().estimator_for(HALF_SQUARE).for_steps(1 << 30, single).long


def test_only_many_steps_in_float32_are_compensated():
    estimator, single = OneSample(SameSample()), jnp.ones(2, jnp.float32)
    assert not estimator.for_steps((1 << 20) - 1, single).compensated
    assert estimator.for_steps(1 << 20, single).compensated
    assert not estimator.for_steps(1 << 30, np.ones(2)).compensated


@pytest.mark.parametrize("compensated", [False, True])
def test_a_weight_of_one_forgets_d_whole(compensated):
    """d_t = g_t to the last bit, and nothing is carried over: also where g_t is 0."""
    estimator, x = OneSample(SameSample(), compensated=compensated), jnp.ones(2)
    state = estimator.init(x)._replace(
        d=jnp.array([1e6, -3.3]), lost=jnp.full(2, 0.01) if compensated else jnp.zeros(2)
    )
    end = run_updates(estimator, state, jnp.stack([x]), jnp.int32(10), jnp.float32(1.0), x)
    np.testing.assert_array_equal(end.d, np.zeros(2))
    np.testing.assert_array_equal(end.lost, np.zeros(2))


def test_a_run_that_is_made_longer_goes_on_compensated(tmp_path, monkeypatch):
    monkeypatch.setattr(one_sample, "MANY_STEPS", 10)
    problem, method = fw.zoo.get("quadratic-face"), fw.one_sfw(schedule="paper")
    short = problem.run(steps=1_000, algorithm=method, evaluate=False, checkpoint=tmp_path / "run")
    longer = problem.run(steps=2_000, algorithm=method, evaluate=False, checkpoint=tmp_path / "run")
    assert not np.any(short.state.estimate.lost)
    assert np.any(longer.state.estimate.lost)
    whole = problem.run(steps=2_000, algorithm=method, evaluate=False)
    np.testing.assert_allclose(longer.x, whole.x, atol=1e-4)


def test_a_long_run_resumes_with_its_segments(tmp_path, monkeypatch):
    """A run that is long from 2^8 steps on, cut inside a segment, ends with the same bits and near the optimum."""
    monkeypatch.setattr(one_sample, "LONG_RUN", 8)
    problem, method = fw.zoo.get("quadratic-face"), fw.one_sfw(schedule="paper")

    def solve(steps, checkpoint=None, stop=None):
        callback = [] if stop is None else [lambda row, x: row["step"] < stop]
        every = None if stop is None else [stop]
        return problem.run(
            steps=steps, algorithm=method, evaluate=False, every=every, callbacks=callback, checkpoint=checkpoint
        )

    assert solve(20_000, tmp_path / "run", stop=7_001).steps == 7_001
    resumed, plain = solve(20_000, tmp_path / "run"), solve(20_000)
    np.testing.assert_array_equal(resumed.x, plain.x)
    assert problem.value(np.asarray(plain.x, np.float64)) - problem.optimum().value < 3e-4
    monkeypatch.setattr(one_sample, "LONG_RUN", 23)
    with pytest.raises(ValueError, match="another algorithm"):
        solve(30_000, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["paper", "auto"])
def test_single_precision_keeps_up_over_thirty_million_steps(schedule):
    """F − F* on `logistic` at 1e6, 1e7 and 3e7 steps: at most 3 times float64's."""
    single, double = (soak.errors_along([10**6, 10**7, 3 * 10**7], float64, schedule) for float64 in (False, True))
    assert np.all(single <= soak.PRECISION * double)
