"""F(x) = (1/n) Σ ½ (a_i·x − b_i)² over an l1 ball, with a point that fits every row."""

from __future__ import annotations

import numpy as np

from onesfw.objectives import FiniteSum
from onesfw.sets import L1Ball
from onesfw.trees import Array, Floats
from onesfw.zoo.base import Optimum, Problem
from onesfw.zoo.optima import convex_optimum, l1_ball_gap, project_to_l1_ball

RADIUS = 3.0


def squared_loss(x: Array, row: tuple[Array, Array]) -> Array:
    """½ (a·x − b)²."""
    a, b = row
    return (a @ x - b) ** 2 / 2


def interpolation(name: str, summary: str) -> Problem:
    """(1/n) Σ ½ (a_i·x − b_i)², ‖x‖₁ ≤ 3: n = 1,000, d = 20, `numpy.random.default_rng(2022)`, b = Aw.

    a_i ~ N(0, I), not rescaled; w = (1, −0.5, 0.5, 0, …, 0) with ‖w‖₁ = 2 lies inside the ball and fits every row
    exactly: F(w) = 0 is the optimum, and the noise of a sample's gradient vanishes there. Rows are drawn uniformly.
    """
    weights = np.zeros(20)
    weights[:3] = 1.0, -0.5, 0.5
    return fitted_by(name, summary, np.random.default_rng(2022).standard_normal((1_000, 20)), weights, RADIUS)


def fitted_by(name: str, summary: str, rows: Floats, weights: Floats, radius: float) -> Problem:
    """Least squares over the l1 ball on given rows, whose targets the given weights fit exactly."""
    n, d = rows.shape
    targets = rows @ weights

    def value(x: Floats) -> Floats:
        found: Floats = ((x - weights) @ rows.T) ** 2 @ np.full(n, 0.5 / n)
        return found

    def gradient(x: Floats) -> Floats:
        found: Floats = ((x - weights) @ rows.T) @ rows / n
        return found

    def solve() -> Optimum:
        return convex_optimum(
            value,
            gradient,
            lambda y: project_to_l1_ball(y, radius),
            lambda g, x: l1_ball_gap(g, x, radius),
            float(np.linalg.eigvalsh(rows.T @ rows)[-1]) / n,
            np.zeros(d),
        )

    return Problem(
        name=name,
        summary=summary,
        objective=FiniteSum(squared_loss, (rows, targets)),
        constraint=L1Ball(radius, shape=d),
        value=value,
        gradient=gradient,
        solve=solve,
    )
