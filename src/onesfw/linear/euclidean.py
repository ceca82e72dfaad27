"""The l2 ball {x : ‖x‖₂ ≤ r}, in O(nonzeros) though its extreme points are dense.

x = scale (X + beta g) and d = sigma · g: the vertex −r g/‖g‖ is a change of `beta`, and a sparse change of g is a
sparse change of X. For d = 0 the oracle answers 0.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

from onesfw.linear.gradient import SMALLEST_SCALE, combine, in_range, move_intercept, paced, target_of
from onesfw.linear.losses import POISSON, curvature, value
from onesfw.trees import HostArray, Record

LARGEST_CANCELLATION = 8.0  # of the two parts of x, in radii, before they are added up
LARGEST_JUMP = 1e6  # likewise, in one step: exponentials reach all sizes
EXACT_NORM_EVERY = 1 << 16  # steps after which ‖g‖² is summed anew, so that rounding does not build up
LARGEST_FALL = 1e-3  # of ‖g‖² before it is summed anew: what is left of a difference of large numbers is rounding


@njit(cache=True, nogil=True)
def rebase(s: Record, pairs: HostArray) -> None:
    """X ← x, g ← d of one model: the same x and d with scale = sigma = 1, beta = 0."""
    for j in range(pairs.shape[0]):
        pairs[j, 0] = s.scale * (pairs[j, 0] + s.beta * pairs[j, 1])
        pairs[j, 1] *= s.sigma
    s.scale, s.sigma, s.beta = 1.0, 1.0, 0.0
    sum_squares(s, pairs)


@njit(cache=True, nogil=True)
def sum_squares(s: Record, pairs: HostArray) -> None:
    """‖g‖², from the entries."""
    s.norm2 = 0.0
    for j in range(pairs.shape[0]):
        s.norm2 += pairs[j, 1] * pairs[j, 1]
    s.peak2 = s.norm2


@njit(cache=True, nogil=True)
def sums_of_one(
    indices: HostArray, values: HostArray, begin: int, end: int, pairs: HostArray, row_x: HostArray,
    row_g: HostArray,
) -> float:  # fmt: skip
    """⟨a, X⟩ and ⟨a, g⟩ for one model; ‖a‖²."""
    dot, along, row2 = 0.0, 0.0, 0.0
    for p in range(begin, end):
        j, a = indices[p], values[p]
        dot += a * pairs[j, 0]
        along += a * pairs[j, 1]
        row2 += a * a
    row_x[0], row_g[0] = dot, along
    return row2


@njit(cache=True, nogil=True)
def sums_of_many(
    indices: HostArray, values: HostArray, begin: int, end: int, pairs: HostArray, row_x: HostArray,
    row_g: HostArray,
) -> float:  # fmt: skip
    """The same for all models together: an entry of the row is read once, and its models lie side by side."""
    row2 = 0.0
    row_x[:], row_g[:] = 0.0, 0.0
    for p in range(begin, end):
        j, a = indices[p], values[p]
        row2 += a * a
        for c in range(row_x.shape[0]):
            row_x[c] += a * pairs[j, 0, c]
        for c in range(row_x.shape[0]):
            row_g[c] += a * pairs[j, 1, c]
    return row2


@njit(cache=True, nogil=True)
def add_to_one(
    indices: HostArray, values: HostArray, begin: int, end: int, pairs: HostArray, c_g: HostArray,
    beta_c: HostArray, norm2: HostArray,
) -> None:  # fmt: skip
    """g += c_g a and X −= beta c_g a for one model, with ‖g‖²."""
    factor, share, total = c_g[0], beta_c[0], norm2[0]
    for p in range(begin, end):
        j, a = indices[p], values[p]
        old = pairs[j, 1]
        new = old + factor * a
        pairs[j, 0] -= share * a
        pairs[j, 1] = new
        total += (new - old) * (new + old)
    norm2[0] = total


@njit(cache=True, nogil=True)
def add_to_many(
    indices: HostArray, values: HostArray, begin: int, end: int, pairs: HostArray, c_g: HostArray,
    beta_c: HostArray, norm2: HostArray,
) -> None:  # fmt: skip
    """The same for all models together, in loops over few arrays: with more the compiler does not vectorise them."""
    for p in range(begin, end):
        j, a = indices[p], values[p]
        for c in range(c_g.shape[0]):
            old = pairs[j, 1, c]
            new = old + c_g[c] * a
            pairs[j, 1, c] = new
            norm2[c] += (new - old) * (new + old)
        for c in range(c_g.shape[0]):
            pairs[j, 0, c] -= beta_c[c] * a


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
    work = np.empty((5, models))
    row_x, row_g, c_g, beta_c, norm2 = work[0], work[1], work[2], work[3], work[4]
    for k in range(order.shape[0]):
        row = order[k]
        begin, end = indptr[row], indptr[row + 1]
        if several is None:
            row2 = sums_of_one(indices, values, begin, end, pair, row_x, row_g)
        else:
            row2 = sums_of_many(indices, values, begin, end, pairs, row_x, row_g)

        for c in range(models):
            s = scalars[c]
            t = s.step + 1
            dot = s.scale * (row_x[c] + s.beta * row_g[c])
            if t == 1:
                before = dot
            elif s.eta == 1.0:
                before = 0.0  # x_1 = 0
            else:  # x_t = (1 − η) x_{t−1} + η v_{t−1}, read backwards; height = −r/‖g‖ is the vertex's
                before = (dot - s.eta * s.height * row_g[c]) / (1.0 - s.eta)
            s.eta = etas[k] if pace == 0.0 else paced(s, etas[k], pace)
            here, before = in_range(loss, dot + s.intercept), in_range(loss, before + s.intercept_before)
            target = target_of(targets[row], labels[c])
            total[c] += weights[row] * value(loss, parameter, here, target)

            keep, change = combine(
                s, t, loss, parameter, weights[row], target, here, before,
                rhos[k], adaptive, row2, row_g[c], has_intercept, table, row, c,
            )  # fmt: skip
            if keep == 0.0:
                rebase(s, pairs[:, :, c])
                pairs[:, 1, c] = 0.0
                s.norm2 = s.peak2 = 0.0
            else:
                s.sigma *= keep
                if s.sigma < SMALLEST_SCALE:
                    rebase(s, pairs[:, :, c])
            jump = s.scale * s.beta / s.sigma * change * sqrt(row2)  # of the two parts of x, which cancel
            if loss == POISSON and abs(jump) > LARGEST_JUMP * radii[c]:
                rebase(s, pairs[:, :, c])
            c_g[c], norm2[c] = change / s.sigma, s.norm2
            beta_c[c] = s.beta * c_g[c]
            if has_intercept:
                bend = weights[row] * curvature(loss, parameter, here, target)
                move_intercept(s, t, loss, keep, change, bend, intervals[c, 0], intervals[c, 1])

        if several is None:
            add_to_one(indices, values, begin, end, pair, c_g, beta_c, norm2)
        else:
            add_to_many(indices, values, begin, end, pairs, c_g, beta_c, norm2)

        for c in range(models):
            s = scalars[c]
            s.step += 1
            s.norm2, s.peak2 = norm2[c], max(s.peak2, norm2[c])
            if s.step % EXACT_NORM_EVERY == 0 or s.norm2 < LARGEST_FALL * s.peak2:
                sum_squares(s, pairs[:, :, c])
            norm = sqrt(max(s.norm2, 0.0))
            s.height = -radii[c] / norm if norm > 0 else 0.0
            eta = s.eta
            if eta == 1.0:
                pairs[:, 0, c] = 0.0
                s.scale, s.beta = 1.0, s.height
            else:
                s.scale *= 1.0 - eta
                s.beta += eta * s.height / s.scale
                if s.scale < SMALLEST_SCALE or s.scale * abs(s.beta) * norm > LARGEST_CANCELLATION * radii[c]:
                    s.height /= s.sigma
                    rebase(s, pairs[:, :, c])
    return total
