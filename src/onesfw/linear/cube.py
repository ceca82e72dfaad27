"""The l∞ ball {x : |x_i| ≤ r for every i}, in O(nonzeros) though its vertices are dense.

x_i = v_i + scale · X_i with the vertex v_i = −r sign(g_i), 0 where g_i = 0, and d = sigma · g: a step towards v shrinks
all x_i − v_i alike, and only the row's nonzeros can change a sign.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from onesfw.linear.gradient import SMALLEST_SCALE, combine, in_range, move_intercept, paced, target_of
from onesfw.linear.losses import curvature, value
from onesfw.trees import HostArray


@njit(cache=True, nogil=True)
def vertex(g: float, radius: float) -> float:
    """−r sign(g)."""
    return -radius if g > 0 else radius if g < 0 else 0.0


@njit(cache=True, nogil=True)
def sums_of_one(
    indices: HostArray, values: HostArray, begin: int, end: int, pairs: HostArray, radii: HostArray,
    row_x: HostArray, row_v: HostArray, row_g: HostArray,
) -> float:  # fmt: skip
    """⟨a, X⟩, ⟨a, v⟩ and ⟨a, g⟩ for one model; ‖a‖²."""
    dot, towards, along, row2, radius = 0.0, 0.0, 0.0, 0.0, radii[0]
    for p in range(begin, end):
        j, a = indices[p], values[p]
        dot += a * pairs[j, 0]
        towards += a * vertex(pairs[j, 1], radius)
        along += a * pairs[j, 1]
        row2 += a * a
    row_x[0], row_v[0], row_g[0] = dot, towards, along
    return row2


@njit(cache=True, nogil=True)
def sums_of_many(
    indices: HostArray, values: HostArray, begin: int, end: int, pairs: HostArray, radii: HostArray,
    row_x: HostArray, row_v: HostArray, row_g: HostArray,
) -> float:  # fmt: skip
    """The same for all models together: an entry of the row is read once, and its models lie side by side."""
    row2 = 0.0
    row_x[:], row_v[:], row_g[:] = 0.0, 0.0, 0.0
    for p in range(begin, end):
        j, a = indices[p], values[p]
        row2 += a * a
        for c in range(row_x.shape[0]):
            row_x[c] += a * pairs[j, 0, c]
            row_v[c] += a * vertex(pairs[j, 1, c], radii[c])
            row_g[c] += a * pairs[j, 1, c]
    return row2


@njit(cache=True, nogil=True)
def add_to_one(
    indices: HostArray, values: HostArray, begin: int, end: int, pairs: HostArray, radii: HostArray,
    c_g: HostArray, scale: HostArray, norm2: HostArray,
) -> None:  # fmt: skip
    """g += c_g a for one model; where a sign of g changes, X takes over what v gives up. With ‖g‖²."""
    factor, size, total, radius = c_g[0], scale[0], norm2[0], radii[0]
    for p in range(begin, end):
        j = indices[p]
        old = pairs[j, 1]
        new = old + factor * values[p]
        pairs[j, 1] = new
        pairs[j, 0] += (vertex(old, radius) - vertex(new, radius)) / size
        total += (new - old) * (new + old)
    norm2[0] = total


@njit(cache=True, nogil=True)
def add_to_many(
    indices: HostArray, values: HostArray, begin: int, end: int, pairs: HostArray, radii: HostArray,
    c_g: HostArray, scale: HostArray, norm2: HostArray,
) -> None:  # fmt: skip
    """The same for all models together."""
    for p in range(begin, end):
        j, a = indices[p], values[p]
        for c in range(c_g.shape[0]):
            old = pairs[j, 1, c]
            new = old + c_g[c] * a
            pairs[j, 1, c] = new
            pairs[j, 0, c] += (vertex(old, radii[c]) - vertex(new, radii[c])) / scale[c]
            norm2[c] += (new - old) * (new + old)


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    indptr: HostArray, indices: HostArray, values: HostArray, targets: HostArray, weights: HostArray,
    order: HostArray, etas: HostArray, rhos: HostArray, adaptive: bool, pace: float, table: HostArray, loss: int,
    parameter: float, labels: HostArray, radii: HostArray, has_intercept: bool, intervals: HostArray,
    scalars: HostArray, pairs: HostArray, several: object,
) -> HostArray:  # fmt: skip
    """One step of each model for each row of `order`; the sums of the losses the rows had before they were learnt.

    `several` is None for one model, which compiles a kernel without the loops over models.
    """
    models = 1
    if several is None:  # a plain shape, for addresses that cost one multiplication
        pair = pairs.reshape(-1, 2)
    else:
        models = scalars.shape[0]
    total = np.zeros(models)
    work = np.empty((6, models))
    row_x, row_v, row_g, c_g, scale, norm2 = work[0], work[1], work[2], work[3], work[4], work[5]
    for k in range(order.shape[0]):
        row = order[k]
        begin, end = indptr[row], indptr[row + 1]
        if several is None:
            row2 = sums_of_one(indices, values, begin, end, pair, radii, row_x, row_v, row_g)
        else:
            row2 = sums_of_many(indices, values, begin, end, pairs, radii, row_x, row_v, row_g)

        for c in range(models):
            s = scalars[c]
            t = s.step + 1
            dot = s.scale * row_x[c] + row_v[c]
            if t == 1:
                before = dot
            elif s.eta == 1.0:
                before = 0.0  # x_1 = 0
            else:  # x_t = (1 − η) x_{t−1} + η v_{t−1}, read backwards
                before = (dot - s.eta * row_v[c]) / (1.0 - s.eta)
            s.eta = etas[k] if pace == 0.0 else paced(s, etas[k], pace)
            here, before = in_range(loss, dot + s.intercept), in_range(loss, before + s.intercept_before)
            target = target_of(targets[row], labels[c])
            total[c] += weights[row] * value(loss, parameter, here, target)

            keep, change = combine(
                s, t, loss, parameter, weights[row], target, here, before,
                rhos[k], adaptive, row2, row_g[c], has_intercept, table, row, c,
            )  # fmt: skip
            if keep == 0.0:
                for j in range(pairs.shape[0]):
                    pairs[j, 0, c] += vertex(pairs[j, 1, c], radii[c]) / s.scale
                    pairs[j, 1, c] = 0.0
                s.sigma, s.norm2 = 1.0, 0.0
            else:
                s.sigma *= keep
                if s.sigma < SMALLEST_SCALE:
                    pairs[:, 1, c] *= s.sigma
                    s.norm2 *= s.sigma * s.sigma
                    s.sigma = 1.0
            c_g[c], scale[c], norm2[c] = change / s.sigma, s.scale, s.norm2
            if has_intercept:
                bend = weights[row] * curvature(loss, parameter, here, target)
                move_intercept(s, t, loss, keep, change, bend, intervals[c, 0], intervals[c, 1])

        if several is None:
            add_to_one(indices, values, begin, end, pair, radii, c_g, scale, norm2)
        else:
            add_to_many(indices, values, begin, end, pairs, radii, c_g, scale, norm2)

        for c in range(models):
            s = scalars[c]
            s.norm2 = norm2[c]
            eta = s.eta
            if eta == 1.0:
                pairs[:, 0, c] = 0.0
                s.scale = 1.0
            else:
                s.scale *= 1.0 - eta
                if s.scale < SMALLEST_SCALE:
                    pairs[:, 0, c] *= s.scale
                    s.scale = 1.0
            s.step += 1
    return total
