"""F(x) = (1/n) Σ 1/(1 + exp(y_i a_i·x)) over an l1 ball: a smooth, non-convex count of misclassified rows."""

from __future__ import annotations

import jax
import numpy as np

from onesfw.algorithms import NONCONVEX
from onesfw.objectives import FiniteSum
from onesfw.sets import L1Ball
from onesfw.trees import Array, Floats
from onesfw.zoo.base import Problem
from onesfw.zoo.logistic import generated_rows

RADIUS = 5.0


def sigmoid_loss(x: Array, row: tuple[Array, Array]) -> Array:
    """1/(1 + exp(y a·x))."""
    a, y = row
    return jax.nn.sigmoid(-y * (a @ x))


def sigmoid(name: str, summary: str) -> Problem:
    """(1/n) Σ 1/(1 + exp(y_i a_i·x)), ‖x‖₁ ≤ 5: n = 2,000, d = 20, `numpy.random.default_rng(2021)`.

    Rows and labels as in `logistic-generated`: a_i ~ N(0, I), not rescaled; w = (2, −1.5, 1, −1, 0.5, 0, …, 0);
    y_i = +1 with probability 1/(1 + exp(−a_i·w)), which is all the noise there is. Rows are drawn uniformly.

    The optimum is not known: F is not convex, and nothing proves a stationary point to be the best one. `optimum`
    raises; the Frank-Wolfe gap is what is measured.
    """
    rows, labels = generated_rows(2_000, 20, 2021)
    signed = rows * labels[:, None]

    def loss(x: Floats) -> Floats:
        return np.exp(-np.logaddexp(0.0, x @ signed.T))

    def gradient(x: Floats) -> Floats:
        wrong = loss(x)
        return -(wrong * (1 - wrong)) @ signed / len(signed)

    return Problem(
        name=name,
        summary=summary,
        objective=FiniteSum(sigmoid_loss, (rows, labels)),
        constraint=L1Ball(RADIUS, shape=rows.shape[1]),
        setting=NONCONVEX,
        value=lambda x: loss(x).mean(-1),
        gradient=gradient,
    )
