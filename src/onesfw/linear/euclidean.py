"""The l2 ball {x : ‖x‖₂ ≤ r}, in O(nonzeros) though its extreme points are dense.

x = scale (X + beta g) and d = sigma · g: the vertex −r g/‖g‖ is a change of `beta`, and a sparse change of g is a
sparse change of X. For d = 0 the oracle answers 0.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numba import njit

from onesfw.linear.gradient import combine, move_intercept
from onesfw.linear.losses import value

SMALLEST_SCALE = 1e-100
LARGEST_CANCELLATION = 8.0  # of the two parts of x, in radii, before they are added up
EXACT_NORM_EVERY = 1 << 16  # steps after which ‖g‖² is summed anew, so that rounding does not build up
LARGEST_FALL = 1e-3  # of ‖g‖² before it is summed anew: what is left of a difference of large numbers is rounding


@njit(cache=True, nogil=True)
def rebase(s: Any, pairs: np.ndarray) -> None:
    """X ← x, g ← d: the same x and d with scale = sigma = 1, beta = 0."""
    for j in range(pairs.shape[0]):
        pairs[j, 0] = s.scale * (pairs[j, 0] + s.beta * pairs[j, 1])
        pairs[j, 1] *= s.sigma
    s.scale, s.sigma, s.beta = 1.0, 1.0, 0.0
    sum_squares(s, pairs)


@njit(cache=True, nogil=True)
def sum_squares(s: Any, pairs: np.ndarray) -> None:
    """‖g‖², from the entries."""
    s.norm2 = 0.0
    for j in range(pairs.shape[0]):
        s.norm2 += pairs[j, 1] * pairs[j, 1]
    s.peak2 = s.norm2


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, targets: np.ndarray, weights: np.ndarray,
    order: np.ndarray, etas: np.ndarray, rhos: np.ndarray, adaptive: bool, table: np.ndarray, loss: int,
    parameter: float, radius: float, has_intercept: bool, low: float, high: float,
    scalars: np.ndarray, pairs: np.ndarray,
) -> float:  # fmt: skip
    """One step for each row of `order`; the sum of the losses the rows had before they were learnt."""
    s = scalars[0]
    total = 0.0
    for k in range(order.shape[0]):
        row, eta, t = order[k], etas[k], s.step + 1
        begin, end = indptr[row], indptr[row + 1]

        row_x, row_g, row2 = 0.0, 0.0, 0.0
        for p in range(begin, end):
            j, a = indices[p], values[p]
            row_x += a * pairs[j, 0]
            row_g += a * pairs[j, 1]
            row2 += a * a
        dot = s.scale * (row_x + s.beta * row_g)
        if t == 1:
            before = dot
        elif s.eta == 1.0:
            before = 0.0  # x_1 = 0
        else:  # x_t = (1 − η) x_{t−1} + η v_{t−1}, read backwards; height = −r/‖g‖ is the vertex's
            before = (dot - s.eta * s.height * row_g) / (1.0 - s.eta)
        here, before = dot + s.intercept, before + s.intercept_before
        total += weights[row] * value(loss, parameter, here, targets[row])

        keep, c = combine(
            s, t, loss, parameter, weights[row], targets[row], here, before,
            rhos[k], adaptive, row2, row_g, has_intercept, table, row,
        )  # fmt: skip
        if keep == 0.0:
            rebase(s, pairs)
            pairs[:, 1] = 0.0
            s.norm2 = s.peak2 = 0.0
        else:
            s.sigma *= keep
            if s.sigma < SMALLEST_SCALE:
                rebase(s, pairs)

        c_g, norm2 = c / s.sigma, s.norm2
        for p in range(begin, end):
            j = indices[p]
            old, change = pairs[j, 1], c_g * values[p]
            new = old + change
            pairs[j, 0] -= s.beta * change
            pairs[j, 1] = new
            norm2 += (new - old) * (new + old)
        s.norm2, s.peak2 = norm2, max(s.peak2, norm2)
        if t % EXACT_NORM_EVERY == 0 or s.norm2 < LARGEST_FALL * s.peak2:
            sum_squares(s, pairs)

        norm = sqrt(max(s.norm2, 0.0))
        s.height = -radius / norm if norm > 0 else 0.0
        if eta == 1.0:
            pairs[:, 0] = 0.0
            s.scale, s.beta = 1.0, s.height
        else:
            s.scale *= 1.0 - eta
            s.beta += eta * s.height / s.scale
            if s.scale < SMALLEST_SCALE or s.scale * abs(s.beta) * norm > LARGEST_CANCELLATION * radius:
                s.height /= s.sigma
                rebase(s, pairs)
        if has_intercept:
            move_intercept(s, keep, c, eta, low, high)
        s.eta, s.step = eta, t
    return total
