"""The l∞ ball {x : |x_i| ≤ r for every i}, in O(nonzeros) though its vertices are dense.

x_i = v_i + scale · X_i with the vertex v_i = −r sign(g_i), 0 where g_i = 0, and d = sigma · g: a step towards v shrinks
all x_i − v_i alike, and only the row's nonzeros can change a sign.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from onesfw.linear.gradient import combine, move_intercept
from onesfw.linear.losses import value

SMALLEST_SCALE = 1e-100


@njit(cache=True, nogil=True)
def vertex(g: float, radius: float) -> float:
    """−r sign(g)."""
    return -radius if g > 0 else radius if g < 0 else 0.0


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

        row_x, row_v, row_g, row2 = 0.0, 0.0, 0.0, 0.0
        for p in range(begin, end):
            j, a = indices[p], values[p]
            row_x += a * pairs[j, 0]
            row_v += a * vertex(pairs[j, 1], radius)
            row_g += a * pairs[j, 1]
            row2 += a * a
        dot = s.scale * row_x + row_v
        if t == 1:
            before = dot
        elif s.eta == 1.0:
            before = 0.0  # x_1 = 0
        else:  # x_t = (1 − η) x_{t−1} + η v_{t−1}, read backwards
            before = (dot - s.eta * row_v) / (1.0 - s.eta)
        here, before = dot + s.intercept, before + s.intercept_before
        total += weights[row] * value(loss, parameter, here, targets[row])

        keep, c = combine(
            s, t, loss, parameter, weights[row], targets[row], here, before,
            rhos[k], adaptive, row2, row_g, has_intercept, table, row,
        )  # fmt: skip
        if keep == 0.0:
            for j in range(pairs.shape[0]):
                pairs[j, 0] += vertex(pairs[j, 1], radius) / s.scale
                pairs[j, 1] = 0.0
            s.sigma, s.norm2 = 1.0, 0.0
        else:
            s.sigma *= keep
            if s.sigma < SMALLEST_SCALE:
                pairs[:, 1] *= s.sigma
                s.norm2 *= s.sigma * s.sigma
                s.sigma = 1.0

        c_g = c / s.sigma
        for p in range(begin, end):
            j = indices[p]
            old = pairs[j, 1]
            new = old + c_g * values[p]
            pairs[j, 1] = new
            pairs[j, 0] += (vertex(old, radius) - vertex(new, radius)) / s.scale
            if adaptive:
                s.norm2 += (new - old) * (new + old)

        if eta == 1.0:
            pairs[:, 0] = 0.0
            s.scale = 1.0
        else:
            s.scale *= 1.0 - eta
            if s.scale < SMALLEST_SCALE:
                pairs[:, 0] *= s.scale
                s.scale = 1.0
        if has_intercept:
            move_intercept(s, keep, c, eta, low, high)
        s.eta, s.step = eta, t
    return total
