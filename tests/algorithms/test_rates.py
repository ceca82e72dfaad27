"""Rates over 16 seeds, with the limits of benchmarks/rates_core.py, which prints the same figures as a table."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import rates_core

pytestmark = pytest.mark.slow

SEEDS = 16


@pytest.mark.parametrize("name", ["logistic", "quadratic-interior", "quadratic-face"])
def test_convex_suboptimality(name):
    """N = 1e3 to 1e5 samples: slope at most −0.75, and at most 5e-4 left on `logistic`."""
    counts, errors = rates_core.convex_rates(name, SEEDS)
    assert (counts[0], counts[-1]) == (1_000, 100_000)
    assert rates_core.slope(counts, errors) <= -0.75
    assert name != "logistic" or errors[:, -1].mean() <= 5e-4


@pytest.mark.parametrize("name", ["sigmoid", "indefinite"])
def test_mean_gap_over_the_iterates(name):
    """T = 1e3 to 1e5: slope at most −0.27."""
    counts, gaps = rates_core.mean_gap_rates(name, SEEDS)
    assert (counts[0], counts[-1]) == (1_000, 100_000)
    assert rates_core.slope(counts, gaps) <= -0.27


def test_submodular_estimate_and_regret():
    """T = 1e2 to 1e4: slopes at most −0.9 and −0.6."""
    counts, errors, regrets = rates_core.submodular_rates("nqp", SEEDS)
    assert (counts[0], counts[-1]) == (100, 10_000)
    assert np.all(regrets >= 0)
    assert rates_core.slope(counts, errors) <= -0.9
    assert rates_core.slope(counts, regrets) <= -0.6


@pytest.mark.parametrize("correction", ["hessian", "importance"])
def test_non_oblivious_corrections_converge(correction):
    """T = 1e5: at most 2e-3 left."""
    _, errors = rates_core.final_point("gaussian", 100_000, SEEDS, correction=correction)
    assert errors.mean() <= 2e-3


def test_the_printed_algorithm_stalls():
    """T = 1e5: more than 0.05 left, on every seed, because the score is missing."""
    _, errors = rates_core.final_point("gaussian", 100_000, SEEDS, correction="as_printed")
    assert errors.min() > 0.05


def test_single_precision_keeps_up():
    """T = 2e6: float32 within a factor 3 of float64 either way, the constraint violated by at most 1e-6."""
    _, double = rates_core.final_point("quadratic-face", 2_000_000, SEEDS)
    x, single = rates_core.final_point("quadratic-face", 2_000_000, SEEDS, np.float32)
    assert x.dtype == np.float32
    assert 1 / 3 <= single.mean() / double.mean() <= 3
    assert rates_core.simplex_violation(x).max() <= 1e-6


@pytest.mark.parametrize("name", ["indefinite", "nqp"])
def test_the_watching_oracle_adds_up_gaps_and_regrets(name):
    """Against x_t and v_t from a callback at every step, on a short run."""
    problem, steps = rates_core.zoo.get(name), 60
    points = [rates_core.first_point(problem)]

    def keep(row, x):
        if row["replicate"] == 0:
            points.append(np.asarray(x))

    result = rates_core.solve(problem, steps, 2, every=1, callbacks=[keep])
    if name == "indefinite":
        expected = np.mean(problem.gap(np.array(points[:-1])))
    else:
        sums = np.array(points) * np.arange(steps + 1)[:, None]  # the callback's x is the mean over the steps done
        x, vertices = sums[:-1] / steps, np.diff(sums, axis=0)
        expected = np.mean(problem.gap(x) + np.sum(problem.gradient(x) * (x - vertices), -1))
    measured, watched = rates_core.watched_run(problem, steps, 2)
    np.testing.assert_allclose(measured[0], expected, rtol=1e-9)
    np.testing.assert_allclose(watched.x_last, result.x_last, atol=1e-12)
