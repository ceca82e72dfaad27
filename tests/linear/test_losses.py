"""Losses of a margin: their derivatives, their range, the best intercept."""

import numpy as np
import pytest

from onesfw.linear import LOSSES
from onesfw.linear.losses import best_shift


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_their_derivatives(loss):
    rng = np.random.default_rng(24)
    m = np.concatenate([rng.normal(size=50) * 3, [0.0, -30.0, 30.0]])
    y = np.where(rng.random(53) < 0.5, 1.0, -1.0) if LOSSES[loss].classifies else np.abs(rng.normal(size=53))
    step = 1e-6
    difference = (LOSSES[loss].value(m + step, y) - LOSSES[loss].value(m - step, y)) / (2 * step)
    np.testing.assert_allclose(LOSSES[loss].derivative(m, y), difference, rtol=1e-5, atol=1e-6)


def test_extreme_margins_do_not_overflow():
    for loss in ("logistic", "squared_hinge", "squared", "huber"):
        out = (
            LOSSES[loss].value(np.array([-1e5, 1e5]), np.ones(2)),
            LOSSES[loss].derivative(np.array([-1e5, 1e5]), np.ones(2)),
        )
        assert np.isfinite(out).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_best_intercept_is_found_from_anywhere(loss):
    rng = np.random.default_rng(33)
    m = 3.0 * rng.normal(size=200)
    y = np.where(rng.random(200) < 0.8, 1.0, -1.0) if LOSSES[loss].classifies else rng.poisson(5.0, 200) + 40.0
    weights = rng.uniform(0, 1, 200)
    weights /= weights.sum()

    def mean(b):
        return weights @ LOSSES[loss].value(m + b, y)

    for start in (0.0, -50.0, 300.0 if loss == "poisson" else 1e4):
        b = best_shift(LOSSES[loss].code, 1.0, m, y, weights, -np.inf, np.inf, start)
        assert mean(b) <= min(mean(b - 1e-4), mean(b + 1e-4)) + 1e-12 * abs(mean(b))
    low, high = b + 1.0, b + 2.0
    assert best_shift(LOSSES[loss].code, 1.0, m, y, weights, low, high, high) == pytest.approx(low, rel=1e-9)
