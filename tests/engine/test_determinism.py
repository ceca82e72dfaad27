"""The trajectory depends on the key alone, to the last bit: not on chunks, evaluation, progress, threads or cuts."""

import jax
import numpy as np
import pytest
from loop_cases import BALL, logistic, noisy

import onesfw as fw


@pytest.mark.parametrize("setting", ["convex", "nonconvex"])
def test_trajectory_does_not_depend_on_chunks_evaluation_or_progress(setting, monkeypatch):
    algorithm = fw.one_sfw(setting)
    plain = fw.minimize(noisy(), BALL, steps=5000, algorithm=algorithm, key=3, evaluate=False)
    looked = fw.minimize(noisy(), BALL, steps=5000, algorithm=algorithm, key=3, evaluate=50, every=37)
    monkeypatch.setattr("onesfw.engine.host_loop.GROWTH", 2)  # chunks of 1, 2, 4, … up to what a millisecond takes
    monkeypatch.setattr("onesfw.engine.pace.CHUNK_SECONDS", 1e-3)
    cut = fw.minimize(noisy(), BALL, steps=5000, algorithm=algorithm, key=3, evaluate=False, every=[5, 4097])
    for other in (looked, cut):
        np.testing.assert_array_equal(plain.x, other.x)
        np.testing.assert_array_equal(plain.x_last, other.x_last)
        np.testing.assert_array_equal(plain.state.estimate.d, other.state.estimate.d)
    way = 5000 - algorithm.kept(5000)  # the rest is looked at once
    assert len(looked.trace) == way // 37 + 1


@pytest.mark.parametrize("name", ["momentum_sfw", "projected_sgd"])
def test_the_last_bits_do_not_depend_on_the_cuts(name):
    """One gradient a step and 30 columns: steps that are compiled in groups would be fused with one another here."""
    problem = fw.zoo.get("logistic")

    def run(every):
        return fw.minimize(
            problem.objective, problem.constraint, steps=60, algorithm=getattr(fw, name)(), evaluate=False,
            every=every, callbacks=[lambda row, x: None],
        )  # fmt: skip

    whole, cut = run(60), run(1)
    np.testing.assert_array_equal(whole.x, cut.x)
    np.testing.assert_array_equal(whole.state.estimate.d, cut.state.estimate.d)


def test_another_key_is_another_run_and_a_seed_is_a_key():
    runs = [fw.minimize(logistic(), BALL, steps=100, key=k, evaluate=False).x for k in (0, 1, jax.random.key(1))]
    assert not np.array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[1], runs[2])


def test_replicates_are_single_runs_bit_for_bit():
    together = fw.minimize(logistic(), BALL, steps=700, key=5, replicates=3, every="log")
    assert together.x.shape == (3, 5)
    assert together.trace.value.shape == (3, len(together.trace))
    assert together.status == (fw.Status.STEPS_DONE,) * 3
    for r in range(3):
        alone = fw.minimize(logistic(), BALL, steps=700, key=jax.random.fold_in(jax.random.key(5), r))
        np.testing.assert_array_equal(alone.x, together.x[r])
        assert alone.value == pytest.approx(together.value[r], rel=1e-6)


def test_float32_stays_in_the_simplex():
    simplex = fw.sets.Simplex(1.0, shape=5)
    result = fw.minimize(noisy(), simplex, steps=300_000, evaluate=False)
    assert abs(float(np.sum(np.asarray(result.x, np.float64))) - 1) < 1e-6
    assert (np.asarray(result.x) >= 0).all()
