"""F(x) = (1/n) Σ log(1 + exp(−y_i a_i·x)) over an l1 ball: sparse logistic regression."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from onesfw.objectives import FiniteSum
from onesfw.sets import L1Ball
from onesfw.trees import Array, Floats
from onesfw.zoo.base import Problem
from onesfw.zoo.optima import convex_optimum, l1_ball_gap, project_to_l1_ball


def breast_cancer(name: str, summary: str) -> Problem:
    """(1/n) Σ log(1 + exp(−y_i a_i·x)), ‖x‖₁ ≤ 5, no intercept: n = 569, d = 30, no seed, no noise added.

    The data set `sklearn.datasets.load_breast_cancer`; every column has its mean taken off and is divided by its
    standard deviation (over n, not n − 1); y = +1 for benign, −1 for malignant tumours. Rows are drawn uniformly.
    """
    return logistic_problem(name, summary, *breast_cancer_rows(), 5.0)


def wide(name: str, summary: str) -> Problem:
    """(1/n) Σ log(1 + exp(−y_i a_i·x)), ‖x‖₁ ≤ 50: the rows and labels of `logistic` in a ball ten times as wide.

    A large diameter: η_t = 1/t moves x by up to 100/t at step t, and every move changes the gradient that the estimate
    has to follow. Poor ground for ρ = 1/(t−1).
    """
    return logistic_problem(name, summary, *breast_cancer_rows(), 50.0)


def breast_cancer_rows() -> tuple[Floats, Floats]:
    """Standardised rows, and labels +1 for benign, −1 for malignant tumours."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    rows = np.asarray(data.data, np.float64)
    return (rows - rows.mean(0)) / rows.std(0), np.where(data.target == 1, 1.0, -1.0)


def generated(name: str, summary: str) -> Problem:
    """(1/n) Σ log(1 + exp(−y_i a_i·x)), ‖x‖₁ ≤ 3: n = 5,000, d = 20, `numpy.random.default_rng(2020)`.

    a_i ~ N(0, I), not rescaled; w = (2, −1.5, 1, −1, 0.5, 0, …, 0), ‖w‖₁ = 6; y_i = +1 with probability
    1/(1 + exp(−a_i·w)), which is all the noise there is. r = 3 is half of ‖w‖₁, so that the constraint holds the
    optimum back and makes it sparse. Rows are drawn uniformly.
    """
    rows, labels = generated_rows(5_000, 20, 2020)
    return logistic_problem(name, summary, rows, labels, 3.0)


def generated_rows(n: int, d: int, seed: int) -> tuple[Floats, Floats]:
    """Gaussian rows a_i, and labels ±1 drawn with P(y = 1) = 1/(1 + exp(−a·w)), w = (2, −1.5, 1, −1, 0.5, 0, …)."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    weights = np.zeros(d)
    weights[:5] = 2.0, -1.5, 1.0, -1.0, 0.5
    return rows, np.where(rng.random(n) < 1 / (1 + np.exp(-rows @ weights)), 1.0, -1.0)


def logistic_loss(x: Array, row: tuple[Array, Array]) -> Array:
    """log(1 + exp(−y a·x))."""
    a, y = row
    return jnp.logaddexp(0.0, -y * (a @ x))


def logistic_problem(name: str, summary: str, rows: Floats, labels: Floats, radius: float) -> Problem:
    """The problem on given rows and labels ±1."""
    n, d = rows.shape
    signed = rows * labels[:, None]

    def value(x: Floats) -> Floats:
        found: Floats = np.logaddexp(0.0, -x @ signed.T).mean(-1)
        return found

    def gradient(x: Floats) -> Floats:
        found: Floats = -np.exp(-np.logaddexp(0.0, x @ signed.T)) @ signed / n
        return found

    return Problem(
        name=name,
        summary=summary,
        objective=FiniteSum(logistic_loss, (rows, labels)),
        constraint=L1Ball(radius, shape=d),
        value=value,
        gradient=gradient,
        solve=lambda: convex_optimum(
            value,
            gradient,
            lambda y: project_to_l1_ball(y, radius),
            lambda g, x: l1_ball_gap(g, x, radius),
            float(np.linalg.eigvalsh(rows.T @ rows)[-1]) / (4 * n),
            np.zeros(d),
        ),
    )
