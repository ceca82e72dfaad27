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
from scipy.linalg import eigvalsh_tridiagonal

from onesfw.lowrank.singular import Scaled
from onesfw.trees import HostArray

CHANCE = 1e-6  # of a bound that does not hold
FIRST_LOOK, SHARE = 16, 10  # steps until the first look; then after a tenth more each
MOST_STEPS = 1_000
BLOCK = 64  # vectors that are made room for at once
PERIOD = 5  # steps, in the first two of which vectors are made orthogonal to all: √ε of that is enough (Simon 1984)
EXHAUSTED = 1e-12  # of the largest coefficient: nothing is left but rounding
SMALL = 1e-3  # of the coefficient beside it: much was taken away
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
    basis: list[HostArray] = []
    x, y, before = np.empty(long), np.empty(short), np.zeros(short)
    diagonal: list[float] = []
    beside: list[float] = []
    look, beta, done = FIRST_LOOK, 0.0, 0
    while True:
        if done % BLOCK == 0:
            basis.append(np.empty((min(BLOCK, most - done), short)))
        basis[-1][done % BLOCK] = v
        operator.forward(v, x)
        operator.back(x, y)
        done += 1
        y -= beta * before
        alpha = float(y @ v)
        y -= alpha * v
        beta = sqrt(y @ y)
        if done % PERIOD < 2 or beta < SMALL * alpha:
            beta = orthogonal(y, basis, done, beta)
        diagonal.append(alpha)
        beside.append(beta)
        ended = beta <= EXHAUSTED * max(diagonal) or done == short
        if ended or done in (look, most):
            look = done + max(1, done // SHARE)
            a, b, places = np.array(diagonal), np.array(beside), (done - 1, done - 1)
            ritz = max(float(eigvalsh_tridiagonal(a, b[:-1], "i", places)[0]), 0.0)
            if ended:
                return sqrt(ritz) * (1 + ROUNDING)
            if done == most or growth(a, b, max(enough, sqrt(ritz) * (1 + accuracy)) ** 2) >= level:
                return sqrt(christoffel_root(a, b, ritz, level)) * (1 + ROUNDING)
        before, v = v, y / beta


def orthogonal(y: HostArray, basis: list[HostArray], done: int, size: float) -> float:
    """Take from y, of that size, what lies along the first vectors of the basis; the size that is left."""
    for _ in range(2):
        for place, block in enumerate(basis):
            part = block[: done - place * BLOCK]
            y -= part.T @ (part @ y)
        before, size = size, sqrt(y @ y)
        if size > 0.7 * before:  # little was left to take away
            break
    return size


@njit(cache=True, nogil=True)
def christoffel_root(diagonal: HostArray, beside: HostArray, ritz: float, level: float) -> float:
    """The square above that of the Ritz value at which log Σ p_j² / 2 reaches the level, from above."""
    low, high = 0.0, 1e-12
    while growth(diagonal, beside, ritz * (1.0 + high)) < level and high < 1e12:
        low, high = high, 2.0 * high
    for _ in range(20):
        middle = 0.5 * (low + high)
        if growth(diagonal, beside, ritz * (1.0 + middle)) < level:
            low = middle
        else:
            high = middle
    return ritz * (1.0 + high)


@njit(cache=True, nogil=True)
def growth(diagonal: HostArray, beside: HostArray, square: float) -> float:
    """log Σ p_j² / 2 at a square above every Ritz value's, where all p_j are positive."""
    ratio, height, total = 1.0, 0.0, 0.0
    for j in range(len(diagonal)):
        rest = square - diagonal[j] - (beside[j - 1] / ratio if j else 0.0)
        ratio = max(rest, 1e-300) / max(beside[j], 1e-300)  # p_{j+1}/p_j
        height += log(ratio)
        top = max(total, 2.0 * height)
        total = top + log1p(exp(min(total, 2.0 * height) - top))
    return 0.5 * total
