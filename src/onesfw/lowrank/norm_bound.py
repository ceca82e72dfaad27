"""A bound on the largest singular value that fails with a known, tiny probability: the proof that ends a run.

A Ritz value is never above σ_1, and may stay below it while it seems to have converged. Lanczos's method on AᵀA
from v has orthonormal polynomials p_0, p_1, …: ‖Σ c_j p_j(AᵀA) v‖² = Σ c_j² ≥ γ² (Σ c_j p_j(σ_1²))² with γ =
⟨v, v_1⟩, and the best c gives

    Σ_{j ≤ k} p_j(σ_1²)² ≤ 1/γ²

for every k (Hochstenbach 2013 takes p_k alone; Kuczyński and Woźniakowski 1992 bound the error in advance). For v
uniform on the sphere of R^n, |γ| < δ has a probability below δ √(2n/π), whatever A is and however many steps are taken.
"""

from __future__ import annotations

from math import exp, log, log1p, pi, sqrt

import numpy as np
from numba import njit

from onesfw.lowrank.singular import SHARE, TINY, Scaled, bidiagonal_triples
from onesfw.trees import HostArray

CHANCE = 1e-6  # of a bound that does not hold
FIRST_LOOK = 12  # steps until the first look; then after an eighth more each
MOST_STEPS = 1_000
BLOCK = 64  # vectors that are made room for at once
EXHAUSTED = 1e-13  # of the largest coefficient: nothing is left but rounding
ROUNDING = 1e-12  # of the bound, relative
COLUMNS_WORTH = 10  # vectors: products of columns are taken where they cost no more than steps for so many


def upper_bound(operator: Scaled, rng: np.random.Generator, *, accuracy: float, enough: float = 0.0) -> float:
    """A number that σ_1 is above with probability CHANCE at most.

    The search ends where the bound is `enough`, or above the Ritz value by at most the relative `accuracy`, or after
    MOST_STEPS steps; then the bound holds too. The start is drawn here: one that knows the matrix proves nothing.
    """
    if operator.is_narrow(COLUMNS_WORTH):
        found = operator.exact_triples(1, np.inf, np.float64)
        return float(found.values[0] + found.error)
    short, long = len(operator.inside), len(operator.outside)
    level = -log(CHANCE * sqrt(pi / (2 * short)))
    most = min(MOST_STEPS, short)
    v = rng.standard_normal(short)
    v /= np.linalg.norm(v)
    basis = np.empty((min(BLOCK, most), short))
    x, w, y = np.empty(long), np.zeros(long), np.empty(short)
    diagonal: list[float] = []
    beside: list[float] = []
    look, beta = FIRST_LOOK, 0.0
    while True:
        done = len(diagonal)
        if done == len(basis):
            basis = np.vstack([basis, np.empty((min(BLOCK, most - done), short))])
        basis[done] = v
        operator.forward(v, x)
        x -= beta * w
        alpha = float(np.linalg.norm(x))
        x, w = w, x
        w /= max(alpha, TINY)
        operator.back(w, y)
        y -= alpha * v
        beta = float(np.linalg.norm(y))
        for _ in range(2):
            y -= basis[: done + 1].T @ (basis[: done + 1] @ y)
            size, beta = beta, float(np.linalg.norm(y))
            if beta > 0.7 * size:  # little was left to take away
                break
        diagonal.append(alpha)
        beside.append(beta)
        ended = min(alpha, beta) <= EXHAUSTED * max(diagonal)
        if ended or done + 1 in (look, most):
            look = done + 1 + max(1, (done + 1) // SHARE)
            ritz = float(bidiagonal_triples(diagonal, beside, 1)[0][0])
            if ended or done + 1 == short:
                return ritz * (1 + short * EXHAUSTED)
            bound = (1 + ROUNDING) * christoffel_root(np.array(diagonal), np.array(beside), ritz, level)
            if bound <= max(enough, ritz * (1 + accuracy)) or done + 1 == most:
                return bound
        v = y / beta


@njit(cache=True, nogil=True)
def christoffel_root(diagonal: HostArray, beside: HostArray, ritz: float, level: float) -> float:
    """The σ above the Ritz value at which log Σ p_j(σ²)² / 2 reaches the level, from above."""
    low, step = 0.0, 1e-12
    while growth(diagonal, beside, ritz * (1.0 + step)) < level and step < 1e12:
        low, step = step, 2.0 * step
    high = step
    for _ in range(20):
        middle = 0.5 * (low + high)
        if growth(diagonal, beside, ritz * (1.0 + middle)) < level:
            low = middle
        else:
            high = middle
    return ritz * (1.0 + high)


@njit(cache=True, nogil=True)
def growth(diagonal: HostArray, beside: HostArray, sigma: float) -> float:
    """log Σ p_j(σ²)² / 2 for σ above every Ritz value, where all p_j are positive."""
    square, before, height, total = sigma * sigma, 0.0, 0.0, 0.0
    for j in range(len(diagonal)):
        rest = square - diagonal[j] ** 2
        if j:
            rest -= beside[j - 1] ** 2 + diagonal[j - 1] * beside[j - 1] * before
        ratio = max(rest, 1e-300) / max(diagonal[j] * beside[j], 1e-300)  # p_{j+1}/p_j
        before = 1.0 / ratio
        height += log(ratio)
        top = max(total, 2.0 * height)
        total = top + log1p(exp(min(total, 2.0 * height) - top))
    return 0.5 * total
