"""F(x) = ½ x'Hx + h'x with H ≤ 0 entry by entry: a DR-submodular quadratic, maximised over a knapsack."""

from __future__ import annotations

import numpy as np

from onesfw.algorithms import DR_SUBMODULAR
from onesfw.sets import Knapsack
from onesfw.zoo.base import Optimum, Problem
from onesfw.zoo.optima import quadratic_optimum
from onesfw.zoo.quadratics import exact, noisy_quadratic


def nqp(name: str, summary: str) -> Problem:
    """max ½ x'Hx + h'x over {0 ≤ x ≤ 1, p·x ≤ 5}: d = 20, `numpy.random.default_rng(34)`, τ = 1, σ = 1.

    H is symmetric, H_ij uniform on [−1, 0] for i ≤ j; h = −H·1, so that ∇F(x) = H(x − 1) ≥ 0 on [0, 1]^d, the box
    around K: F is monotone there, and F(0) = 0 (the construction of Bian, Mirzasoleiman, Buhmann and Krause 2017). The
    costs p are uniform on [0.5, 1.5], so that the budget pays for about a quarter of the items. Noise as in
    `noisy_quadratic`: in the off-diagonal of H, where τ = 1 leaves every entry of every draw ≤ 0 (each draw is
    DR-submodular), and in h. Nothing is rescaled. The optimum is the global one, proven by a mixed-integer program.
    """
    rng = np.random.default_rng(34)
    d, budget = 20, 5.0
    matrix = -rng.random((d, d))
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    linear = -matrix.sum(1)
    costs = rng.uniform(0.5, 1.5, d)
    value, gradient = exact(matrix, linear)

    def solve() -> Optimum:
        least = quadratic_optimum(-matrix, -linear, np.zeros(d), np.ones(d), costs, budget)
        return Optimum(least.x, -least.value, least.error)

    return Problem(
        name=name,
        summary=summary,
        objective=noisy_quadratic(matrix, linear, tau=1.0, sigma=1.0),
        constraint=Knapsack(costs, budget),
        setting=DR_SUBMODULAR,
        value=value,
        gradient=gradient,
        solve=solve,
    )
