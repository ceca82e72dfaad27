"""Limited-memory BFGS: a curved valley, and an optimum that rounding hides from the values."""

import numpy as np
import pytest

from onesfw.lowrank.quasi_newton import descend


def minimise(function, u, noise=0.0, rounds=500):
    seen = []

    def kept(u):
        value, gradient = function(u)
        seen.append((u, value, np.linalg.norm(gradient)))
        return value, gradient

    steps = []
    descend(kept, u, noise, lambda: steps.append(seen[-1]) or steps[-1][2] < 1e-9, rounds)
    return steps


def rosenbrock(u):
    a, b = u[1:] - u[:-1] ** 2, 1 - u[:-1]
    gradient = np.zeros_like(u)
    gradient[1:] += 200 * a
    gradient[:-1] -= 400 * a * u[:-1] + 2 * b
    return float(100 * (a * a).sum() + (b * b).sum()), gradient


def test_a_curved_valley():
    steps = minimise(rosenbrock, np.full(10, -1.0))
    assert np.allclose(steps[-1][0], 1.0, atol=1e-8)
    assert (np.diff([value for _, value, _ in steps]) <= 0).all()


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_slopes_tell_where_values_do_not(noise):
    scales = np.logspace(0, 3, 6)

    def rounded(u):  # as if from sums of large numbers
        return float(0.5 * scales @ u**2 + 5e-5 * np.sin(1e9 * u.sum())), scales * u

    steps = minimise(rounded, np.ones(6), noise)
    assert (steps[-1][2] < 1e-9) == (noise > 0)
