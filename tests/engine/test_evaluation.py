"""Values and gaps come from full passes or independent samples, with honest standard errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw
from onesfw.engine.evaluation import evaluation_steps, full_pass, sampled

RNG = np.random.default_rng(1)
MU, SIGMA = RNG.standard_normal(4), 0.8


def oblivious():
    return fw.Expectation(lambda x, z: 0.5 * jnp.sum((x - z) ** 2), lambda k: MU + SIGMA * jax.random.normal(k, (4,)))


def non_oblivious():
    return fw.NonOblivious(
        lambda x, z: 0.5 * jnp.sum((z - MU) ** 2),
        lambda k, x: x + SIGMA * jax.random.normal(k, (4,)),
        lambda z, x: -jnp.sum((z - x) ** 2) / (2 * SIGMA**2),
    )


@pytest.mark.parametrize("make", [oblivious, non_oblivious])
@pytest.mark.parametrize("sign", [1, -1])
def test_standard_errors_cover_the_truth(make, sign):
    """Over 60 keys: value and gap scatter by their standard errors; the gap's bias is upwards."""
    with jax.enable_x64(True):
        constraint = fw.sets.L1Ball(1.5, shape=4)
        x = jnp.array([0.3, -0.2, 0.4, 0.1])
        evaluate = jax.jit(jax.vmap(sampled(make(), constraint, sign, 2001), (0, None)))
        found = evaluate(jax.random.split(jax.random.key(0), 60), x)
        gradient = sign * (x - MU)
        true_value = 0.5 * np.sum((np.asarray(x) - MU) ** 2) + 2 * SIGMA**2
        true_gap = float(gradient @ (x - constraint.lmo(gradient)))
    for mean, stderr, truth in (
        (np.asarray(found.value), np.asarray(found.value_stderr), true_value),
        (np.asarray(found.gap), np.asarray(found.gap_stderr), true_gap),
    ):
        scores = (mean - truth) / stderr
        assert abs(scores.mean()) < 4 / np.sqrt(60) + 0.1
        assert 0.7 < scores.std() < 1.35


def test_full_pass_is_exact_and_has_no_error():
    rows = RNG.standard_normal((50, 4))
    with jax.enable_x64(True):
        objective = fw.FiniteSum(lambda x, row: 0.5 * jnp.sum((x - row) ** 2), rows)
        simplex, x = fw.sets.Simplex(1.0), jnp.full(4, 0.25)
        found = full_pass(objective, simplex, 1)(jax.random.key(0), x)
    gradient = 0.25 - rows.mean(0)
    assert float(found.value) == pytest.approx(0.5 * np.sum((0.25 - rows) ** 2, 1).mean())
    assert float(found.gap) == pytest.approx(gradient @ np.full(4, 0.25) - gradient.min())
    assert float(found.gap_stderr) == float(found.value_stderr) == 0.0


def test_gap_is_measured_on_samples_that_the_run_has_not_seen():
    """⟨d_T, x_T − v_T⟩ is optimistic; the reported gap is not."""
    rows = RNG.standard_normal((400, 30))
    labels = np.where(RNG.random(400) < 0.5, 1.0, -1.0)
    objective = fw.FiniteSum(lambda x, row: jnp.logaddexp(0.0, -row[1] * (row[0] @ x)), (rows, labels))
    ball = fw.sets.L1Ball(5.0)
    result = fw.minimize(objective, ball, np.zeros(30), steps=400, replicates=6)
    estimates = [(np.asarray(s.estimate.d), np.asarray(s.previous)) for s in result.state]
    optimistic = [float(d @ (x - np.asarray(ball.lmo(d)))) for d, x in estimates]
    assert np.mean(optimistic) < 0.6 * np.mean(result.gap)


def test_evaluation_can_be_a_function_or_nothing():
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.ones((3, 2), np.float32))
    ball = fw.sets.L2Ball(1.0, shape=2)
    own = fw.minimize(objective, ball, steps=20, evaluate=lambda x: float(x[0]), every=10)
    assert own.value == pytest.approx(float(own.x[0]))
    assert own.gap is None
    assert own.trace.step.tolist() == [10, 20]
    none = fw.minimize(objective, ball, steps=20, evaluate=False)
    assert none.value is None
    assert none.gap is None
    assert fw.minimize(objective, ball, steps=20, evaluate=500).value_stderr == pytest.approx(0.0, abs=1e-6)


def test_evaluation_costs_nothing_in_the_counts():
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.ones((3, 2), np.float32))
    ball = fw.sets.L2Ball(1.0, shape=2)
    quiet = fw.minimize(objective, ball, steps=100, evaluate=False)
    busy = fw.minimize(objective, ball, steps=100, every=1)
    assert (quiet.samples, quiet.gradients, quiet.lmo_calls) == (busy.samples, busy.gradients, busy.lmo_calls)
    assert busy.evaluation_seconds > 0
    assert busy.trace.samples.tolist() == list(range(1, 101))


def test_evaluation_steps():
    assert list(evaluation_steps(None, 100, False)) == [100]
    assert list(evaluation_steps(30, 100, False)) == [30, 60, 90]
    assert evaluation_steps([5, 2, 2], 100, False) == [2, 5]
    assert len(evaluation_steps(1, 10**12, False)) == 10**12  # nothing is stored
    log = evaluation_steps("log", 10**6, False)
    assert log[0] == 1
    assert log[-1] == 10**6
    assert 40 < len(log) < 60
    assert evaluation_steps(None, 1, True) == [1]
