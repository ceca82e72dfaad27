"""Sets whose vertices have one nonzero: the l1 ball, the simplex, the non-negative l1 ball.

x = scale · X and d = sigma · g. A step changes g in the row's nonzeros and X in one entry; the vertex is found from the
remembered largest key of g.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from onesfw.linear.gradient import combine, move_intercept
from onesfw.linear.largest import BLOCK_SHIFT, GROUP_SHIFT, find_largest, key
from onesfw.linear.losses import value

L1, SIMPLEX, NONNEGATIVE_L1 = range(3)
SMALLEST_SCALE = 1e-100


@njit(cache=True, nogil=True)
def height_at(shape: int, radius: float, g: float) -> float:
    """The vertex's only nonzero, at the place of the largest key."""
    if shape == L1:
        return -radius if g > 0 else radius
    if shape == SIMPLEX or g < 0:
        return radius
    return 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, targets: np.ndarray, weights: np.ndarray,
    order: np.ndarray, etas: np.ndarray, rhos: np.ndarray, adaptive: bool, table: np.ndarray, loss: int,
    parameter: float, shape: int, radius: float, has_intercept: bool, low: float, high: float,
    scalars: np.ndarray, pairs: np.ndarray, blocks: np.ndarray, groups: np.ndarray,
) -> float:  # fmt: skip
    """One step for each row of `order`; the sum of the losses the rows had before they were learnt."""
    s = scalars[0]
    symmetric = shape == L1
    total = 0.0
    largest = key(pairs[s.place, 1], symmetric)
    for k in range(order.shape[0]):
        row, eta, t = order[k], etas[k], s.step + 1
        begin, end = indptr[row], indptr[row + 1]

        dot, at_vertex, at_start, row2, row_g = 0.0, 0.0, 0.0, 0.0, 0.0
        if adaptive:
            for p in range(begin, end):
                j, a = indices[p], values[p]
                dot += a * pairs[j, 0]
                row_g += a * pairs[j, 1]
                row2 += a * a
                if j == s.place:
                    at_vertex += a
        else:
            for p in range(begin, end):
                j, a = indices[p], values[p]
                dot += a * pairs[j, 0]
                if j == s.place:
                    at_vertex += a
        if t == 2:
            for p in range(begin, end):
                if indices[p] == 0:
                    at_start += values[p]
        dot *= s.scale
        # x_t = (1 − η) x_{t−1} + η v_{t−1}, read backwards; η_1 = 1 leaves nothing to read, but x_1 is known.
        if t == 1:
            before = dot
        elif s.eta == 1.0:
            before = at_start * s.start
        else:
            before = (dot - s.eta * at_vertex * s.height) / (1.0 - s.eta)
        here, before = dot + s.intercept, before + s.intercept_before
        total += weights[row] * value(loss, parameter, here, targets[row])

        keep, c = combine(
            s, t, loss, parameter, weights[row], targets[row], here, before,
            rhos[k], adaptive, row2, row_g, has_intercept, table, row,
        )  # fmt: skip
        if keep == 0.0:
            pairs[:, 1] = 0.0
            blocks[:], groups[:] = 0.0, 0.0
            s.sigma, s.norm2, s.place, largest, row_g = 1.0, 0.0, 0, 0.0, 0.0
        else:
            s.sigma *= keep
            if s.sigma < SMALLEST_SCALE:
                pairs[:, 1] *= s.sigma
                blocks *= s.sigma
                groups *= s.sigma
                largest *= s.sigma
                row_g *= s.sigma
                s.norm2 *= s.sigma * s.sigma
                s.sigma = 1.0

        c_g, place, lowered = c / s.sigma, s.place, False
        for p in range(begin, end):
            j = indices[p]
            new = pairs[j, 1] + c_g * values[p]
            pairs[j, 1] = new
            size = key(new, symmetric)
            if size > blocks[j >> BLOCK_SHIFT]:
                blocks[j >> BLOCK_SHIFT] = size
                if size > groups[j >> GROUP_SHIFT]:
                    groups[j >> GROUP_SHIFT] = size
            if size >= largest:
                if size > largest or j < place:
                    place, largest, lowered = j, size, False
            elif j == place:
                lowered = True  # `largest` stays: whatever is above it is above all that was not touched
        s.norm2 += c_g * (2.0 * row_g + c_g * row2)  # ‖g + c_g a‖²; a row has no duplicate entries
        if lowered:
            place = find_largest(pairs[:, 1], symmetric, blocks, groups)
            largest = key(pairs[place, 1], symmetric)

        height = height_at(shape, radius, pairs[place, 1])
        if eta == 1.0:
            pairs[:, 0] = 0.0
            s.scale = 1.0
            pairs[place, 0] = height
        else:
            s.scale *= 1.0 - eta
            if s.scale < SMALLEST_SCALE:
                pairs[:, 0] *= s.scale
                s.scale = 1.0
            pairs[place, 0] += eta * height / s.scale
        if has_intercept:
            move_intercept(s, keep, c, eta, low, high)
        s.place, s.height, s.eta, s.step = place, height, eta, t
    return total
