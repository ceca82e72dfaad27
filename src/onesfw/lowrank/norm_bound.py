"""Singular triples above a level, and a bound on the largest value, however close to the level they lie.

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
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal

from onesfw.lowrank.entry_kernels import times, times_transposed
from onesfw.lowrank.singular import Scaled, Triples
from onesfw.trees import DType, HostArray

CHANCE = 1e-6  # of a bound that does not hold, in one run or in all rounds of a fit
KNOWN = 0.25  # of the height above the level: how well σ_1 is known at the end
FIRST_LOOK, SHARE = 16, 20  # steps until the first look; then after a twentieth more each
MOST_STEPS = 1_000
HURRY = 3  # steps for each triple: good enough for atoms, if not for a sharp bound
FEWEST, ROOM = 64, 50_000_000  # vectors, and numbers, that room is made for at first
MOST_NUMBERS = 125_000_000  # in all vectors, 1 GB, where they are not so few
LOST = 1e6  # times a rounding: two vectors are made orthogonal to all before it is reached; √ε suffices (Simon 1984)
LOSS = 4.0  # by which it grows in a step, at least
EXHAUSTED = 1e-12  # of the largest coefficient: nothing is left but rounding
ROUNDING = 1e-12  # of the bound, relative


def bounded(
    operator: Scaled,
    count: int,
    level: float,
    rng: np.random.Generator,
    *,
    enough: float,
    known: bool,
    chance: float = CHANCE,
    dtype: DType | type = np.float64,
) -> tuple[Triples, float]:
    """Triples whose values are above the level, one at least, and a number that σ_1 exceeds with that chance.

    The search ends where the number is `enough`. Where σ_1 is larger, it ends after HURRY steps for each of `count`
    triples, or, with `known`, where σ_1's height above the level, which it is not below, is known well; at the latest
    after MOST_STEPS steps, or where the vectors fill 1 GB, and the number holds then too. The start is drawn here: one
    that knows the matrix proves nothing.
    """
    short = len(operator.inside)
    doubt = -log(chance * sqrt(pi / (2 * short)))
    most = min(MOST_STEPS, short, max(FEWEST, HURRY * count, MOST_NUMBERS // short))
    basis = np.empty((min(most + 1, max(FEWEST, ROOM // short)), short))  # what is not reached takes no memory
    v = rng.standard_normal(short)
    basis[0] = v / np.linalg.norm(v)
    a, b = np.zeros(most), np.zeros(most)
    done, ended, look, lost = 0, False, min(FIRST_LOOK, most), (1.0, False)
    while True:
        if look >= len(basis):
            smaller, basis = basis, np.empty((2 * len(basis), short))
            basis[: len(smaller)] = smaller
        done, ended, lost = lanczos(*operator.arrays, basis, a, b, done, look, lost)
        proven = growth(a[:done], b[:done], max(enough, 0.0) ** 2)  # −∞ where a Ritz value is larger
        if ended or done == most or proven >= doubt or (proven < 0 and not known and done >= HURRY * count):
            break
        if known:
            ritz = largest(a[:done], b[:done])
            close = max(ritz + KNOWN / (1 - KNOWN) * (ritz - level), ritz * (1 + 10 * ROUNDING))
            if growth(a[:done], b[:done], close**2) >= doubt:
                break
        look = min(done + max(1, done // SHARE), most)
    a, b = a[:done], b[:done]
    values = np.sqrt(np.maximum(eigvalsh_tridiagonal(a, b[:-1])[::-1], 0.0))
    bound = float(values[0]) if done == short else sqrt(christoffel_root(a, b, float(values[0]) ** 2, doubt))
    wanted = max(1, int((values > level).sum()))
    _, mixture = eigh_tridiagonal(a, b[:-1], select="i", select_range=(done - wanted, done - 1))
    return operator.triples(values, basis[:done].T @ mixture[:, ::-1], level, dtype), bound * (1 + ROUNDING)


def largest(a: HostArray, b: HostArray) -> float:
    """The largest Ritz value."""
    place = len(a) - 1
    return sqrt(max(float(eigvalsh_tridiagonal(a, b[:-1], "i", (place, place))[0]), 0.0))


@njit(cache=True, nogil=True)
def lanczos(
    ptr: HostArray, cols: HostArray, g: HostArray, inside: HostArray, outside: HostArray, wide: bool,
    basis: HostArray, a: HostArray, b: HostArray, done: int, until: int, lost: tuple[float, bool],
) -> tuple[int, bool, tuple[float, bool]]:  # fmt: skip
    """More vectors of the basis and coefficients of AᵀA in it; how many there are, and whether its space is exhausted.

    Two vectors running are made orthogonal to all others whenever what three terms lose may have grown to LOST
    roundings: in a step by the norm of AᵀA over the new coefficient (Paige 1976). The last is how far that has come.
    """
    x, top = np.empty(len(outside)), 0.0
    loss, again = lost
    weights = outside * outside
    y = np.empty(len(inside))
    for j in range(done):
        top = max(top, a[j] + b[j] + (b[j - 1] if j else 0.0))
    for j in range(done, until):
        v = basis[j]
        if wide:
            times_transposed(ptr, cols, g, inside * v, x)
            x *= weights
            times(ptr, cols, g, x, y)
        else:
            times(ptr, cols, g, inside * v, x)
            x *= weights
            times_transposed(ptr, cols, g, x, y)
        y *= inside
        if j:
            y -= b[j - 1] * basis[j - 1]
        a[j] = np.dot(y, v)
        y -= a[j] * v
        size = sqrt(np.dot(y, y))
        top = max(top, a[j] + size + (b[j - 1] if j else 0.0))
        loss *= max(LOSS, 2.0 * top / max(size, 1e-300))
        due = loss > LOST
        if due or again:
            again, loss = due and not again, 1.0
            for _ in range(2):
                y -= np.dot(basis[: j + 1].T, np.dot(basis[: j + 1], y))
                before, size = size, sqrt(np.dot(y, y))
                if size > 0.7 * before:  # little was left to take away
                    break
        b[j] = size
        if size <= EXHAUSTED * top or j + 1 == len(y):
            return j + 1, True, (loss, again)
        basis[j + 1] = y / size
    return until, False, (loss, again)


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
    """log Σ p_j² / 2 at a square above every Ritz value's, where all p_j are positive; −∞ below one (Sturm's rule)."""
    ratio, height, total = 1.0, 0.0, 0.0
    for j in range(len(diagonal)):
        rest = square - diagonal[j] - (beside[j - 1] / ratio if j else 0.0)
        if rest <= 0.0:
            return -np.inf
        ratio = max(rest, 1e-300) / max(beside[j], 1e-300)  # p_{j+1}/p_j
        height += log(ratio)
        top = max(total, 2.0 * height)
        total = top + log1p(exp(min(total, 2.0 * height) - top))
    return 0.5 * total
