"""Sets whose vertices have one nonzero: the l1 ball, the simplex, the non-negative l1 ball.

x = scale · X and d = sigma · g. A step changes g in the row's nonzeros and X in one entry. The vertex is at the largest
key of g, |g| or −g, which is remembered: a changed entry can only raise it or, when it is the remembered one itself,
lower it. Only then it is searched for, through upper bounds per block of entries and per 64 blocks: the largest
bound is made exact until the largest is exact. No bound is above the remembered key. Ties go to the lowest index.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from onesfw.linear.gradient import SMALLEST_SCALE, combine, in_range, move_intercept, paced, target_of
from onesfw.linear.losses import curvature, value
from onesfw.trees import HostArray

L1, SIMPLEX, NONNEGATIVE_L1 = range(3)
BLOCKS_PER_GROUP = 64
ONE_SHIFT, MANY_SHIFT, GROUP_SHIFT = 8, 5, 6  # 2^8 entries a block; 2^5 where the entries of one model lie far apart
SLACK = 1.5  # of several models' bounds: the larger, the fewer are raised and the more are searched in vain


def bounds_for(size: int, models: int) -> tuple[HostArray, HostArray]:
    """The bounds of zero vectors: one per block, one per group of blocks, for each model."""
    blocks = -(-size >> (ONE_SHIFT if models == 1 else MANY_SHIFT))
    return np.zeros((blocks, models)), np.zeros((-(-blocks // BLOCKS_PER_GROUP), models))


@njit(cache=True, nogil=True)
def key(g: float, symmetric: bool) -> float:
    """What is maximised: |g| on a symmetric set, −g on one with non-negative vertices."""
    return abs(g) if symmetric else -g


@njit(cache=True, nogil=True)
def find_largest(g: HostArray, symmetric: bool, blocks: HostArray, groups: HostArray, shift: int) -> int:
    """The first index with the largest key; bounds become exact where they had to."""
    size, scanned, place = g.shape[0], -1, 0
    while True:
        group = 0
        for i in range(1, groups.shape[0]):
            if groups[i] > groups[group]:
                group = i
        first = group * BLOCKS_PER_GROUP
        last = min(first + BLOCKS_PER_GROUP, blocks.shape[0])
        block = first
        for i in range(first + 1, last):
            if blocks[i] > blocks[block]:
                block = i
        if block == scanned:
            return place
        start = block << shift
        place = start
        for i in range(start + 1, min(start + (1 << shift), size)):
            if key(g[i], symmetric) > key(g[place], symmetric):
                place = i
        blocks[block] = key(g[place], symmetric)
        largest = blocks[first]
        for i in range(first + 1, last):
            largest = max(largest, blocks[i])
        groups[group] = largest
        scanned = block


@njit(cache=True, nogil=True)
def height_at(shape: int, radius: float, g: float) -> float:
    """The vertex's only nonzero, at the place of the largest key."""
    if shape == L1:
        return -radius if g > 0 else radius
    if shape == SIMPLEX or g < 0:
        return radius
    return 0.0


@njit(cache=True, nogil=True)
def entry_at(indices: HostArray, values: HostArray, begin: int, end: int, column: int) -> float:
    """A row's entry in a column, by bisection: a row's indices rise."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return values[low] if low < end and indices[low] == column else 0.0


@njit(cache=True, nogil=True)
def sums_of_one(
    indices: HostArray, values: HostArray, begin: int, end: int, adaptive: bool, place: int, pairs: HostArray,
    row_x: HostArray, row_g: HostArray, at_vertex: HostArray,
) -> float:  # fmt: skip
    """⟨a, X⟩, ⟨a, g⟩ and a's entry at the last vertex, for one model; ‖a‖². The adaptive ρ alone needs the norms."""
    dot, along, at, row2 = 0.0, 0.0, 0.0, 0.0
    if adaptive:
        for p in range(begin, end):
            j, a = indices[p], values[p]
            dot += a * pairs[j, 0]
            along += a * pairs[j, 1]
            row2 += a * a
            if j == place:
                at += a
    else:
        for p in range(begin, end):
            j, a = indices[p], values[p]
            dot += a * pairs[j, 0]
            if j == place:
                at += a
    row_x[0], row_g[0], at_vertex[0] = dot, along, at
    return row2


@njit(cache=True, nogil=True)
def sums_of_many(
    indices: HostArray, values: HostArray, begin: int, end: int, adaptive: bool, place: HostArray,
    pairs: HostArray, used: HostArray, row_x: HostArray, row_g: HostArray, at_vertex: HostArray,
) -> float:  # fmt: skip
    """The same for all models together: an entry of the row is read once, and its models lie side by side.

    X is 0 wherever no vertex has been: `used` is small enough for the cache, and saves reading most of X.
    """
    row2, models = 0.0, row_x.shape[0]
    row_x[:], row_g[:], at_vertex[:] = 0.0, 0.0, 0.0
    for p in range(begin, end):
        j, a = indices[p], values[p]
        row2 += a * a
        if used[j]:
            for c in range(models):
                row_x[c] += a * pairs[j, 0, c]
            for c in range(models):
                at_vertex[c] += a * (place[c] == j)
        if adaptive:
            for c in range(models):
                row_g[c] += a * pairs[j, 1, c]
    return row2


@njit(cache=True, nogil=True)
def add_to_one(
    indices: HostArray, values: HostArray, begin: int, end: int, symmetric: bool, pairs: HostArray,
    blocks: HostArray, groups: HostArray, c_g: HostArray, place: HostArray, largest: HostArray,
) -> None:  # fmt: skip
    """g += c_g a for one model, with the bounds and the remembered largest key."""
    factor, at, most = c_g[0], place[0], largest[0]
    for p in range(begin, end):
        j = indices[p]
        new = pairs[j, 1] + factor * values[p]
        pairs[j, 1] = new
        size = key(new, symmetric)
        block = j >> ONE_SHIFT
        if size > blocks[block]:
            blocks[block] = size
            if size > groups[block >> GROUP_SHIFT]:
                groups[block >> GROUP_SHIFT] = size
        if size >= most and (size > most or j < at):
            at, most = j, size  # `most` stays where its own entry falls: `learn` sees that and searches
    place[0], largest[0] = at, most


@njit(cache=True, nogil=True)
def add_to_many(
    indices: HostArray, values: HostArray, begin: int, end: int, symmetric: bool, pairs: HostArray,
    blocks: HostArray, groups: HostArray, c_g: HostArray, place: HostArray, largest: HostArray,
) -> None:  # fmt: skip
    """The same for all models together.

    Every bound is at most its model's largest key, so an entry below the bounds of its block changes nothing but g. A
    bound that is raised is raised by more than it must, so that this is the rule.
    """
    models = c_g.shape[0]
    for p in range(begin, end):
        j, a = np.int64(indices[p]), values[p]
        block = j >> MANY_SHIFT
        above = False
        for c in range(models):
            new = pairs[j, 1, c] + c_g[c] * a
            pairs[j, 1, c] = new
            above |= key(new, symmetric) >= blocks[block, c]
        if above:
            for c in range(models):
                size = key(pairs[j, 1, c], symmetric)
                if size >= blocks[block, c]:
                    if size > largest[c] or (size == largest[c] and j < place[c]):
                        place[c], largest[c] = j, size
                    bound = max(size, min(largest[c], SLACK * size))
                    blocks[block, c] = bound
                    groups[block >> GROUP_SHIFT, c] = max(groups[block >> GROUP_SHIFT, c], bound)


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    indptr: HostArray, indices: HostArray, values: HostArray, targets: HostArray, weights: HostArray,
    order: HostArray, etas: HostArray, rhos: HostArray, adaptive: bool, pace: float, table: HostArray, loss: int,
    parameter: float, labels: HostArray, radii: HostArray, has_intercept: bool, intervals: HostArray,
    scalars: HostArray, pairs: HostArray, several: object, shape: int, blocks: HostArray, groups: HostArray,
    used: HostArray,
) -> HostArray:  # fmt: skip
    """One step of each model for each row of `order`; the sums of the losses the rows had before they were learnt.

    `several` is None for one model, which compiles a kernel without the loops over models.
    """
    models, shift = 1, ONE_SHIFT
    if several is None:  # plain shapes, for addresses that cost one multiplication
        pair, block, group = pairs.reshape(-1, 2), blocks.reshape(-1), groups.reshape(-1)
    else:
        models, shift = scalars.shape[0], MANY_SHIFT
    symmetric = shape == L1
    total = np.zeros(models)
    work = np.empty((4, models))
    row_x, row_g, at_vertex, c_g = work[0], work[1], work[2], work[3]
    place, largest = np.empty(models, np.int64), np.empty(models)
    for c in range(models):
        place[c] = scalars[c].place
        largest[c] = key(pairs[place[c], 1, c], symmetric)
        used[place[c]] = True  # also where the vertex's own entry of X has come back to 0
    for k in range(order.shape[0]):
        row = order[k]
        begin, end = indptr[row], indptr[row + 1]
        if several is None:
            row2 = sums_of_one(indices, values, begin, end, adaptive, place[0], pair, row_x, row_g, at_vertex)
        else:
            row2 = sums_of_many(indices, values, begin, end, adaptive, place, pairs, used, row_x, row_g, at_vertex)

        for c in range(models):
            s = scalars[c]
            t = s.step + 1
            dot = s.scale * row_x[c]
            # x_t = (1 − η) x_{t−1} + η v_{t−1}, read backwards; η_1 = 1 leaves nothing to read, but x_1 is known.
            if t == 1:
                before = dot
            elif s.eta == 1.0:
                before = entry_at(indices, values, begin, end, 0) * s.start if t == 2 else 0.0
            else:
                before = (dot - s.eta * at_vertex[c] * s.height) / (1.0 - s.eta)
            s.eta = etas[k] if pace == 0.0 else paced(s, etas[k], pace)
            here, before = in_range(loss, dot + s.intercept), in_range(loss, before + s.intercept_before)
            target = target_of(targets[row], labels[c])
            total[c] += weights[row] * value(loss, parameter, here, target)

            kept, change = combine(
                s, t, loss, parameter, weights[row], target, here, before,
                rhos[k], adaptive, row2, row_g[c], has_intercept, table, row, c,
            )  # fmt: skip
            if kept == 0.0:
                pairs[:, 1, c] = 0.0
                blocks[:, c], groups[:, c] = 0.0, 0.0
                s.sigma, s.norm2 = 1.0, 0.0
                place[c], largest[c], row_g[c] = 0, 0.0, 0.0
            else:
                s.sigma *= kept
                if s.sigma < SMALLEST_SCALE:
                    pairs[:, 1, c] *= s.sigma
                    blocks[:, c] *= s.sigma
                    groups[:, c] *= s.sigma
                    largest[c] *= s.sigma
                    row_g[c] *= s.sigma
                    s.norm2 *= s.sigma * s.sigma
                    s.sigma = 1.0
            c_g[c] = change / s.sigma
            s.norm2 += c_g[c] * (2.0 * row_g[c] + c_g[c] * row2)  # ‖g + c_g a‖²; a row has no duplicate entries
            if has_intercept:
                bend = weights[row] * curvature(loss, parameter, here, target)
                move_intercept(s, t, loss, kept, change, bend, intervals[c, 0], intervals[c, 1])

        if several is None:
            add_to_one(indices, values, begin, end, symmetric, pair, block, group, c_g, place, largest)
        else:
            add_to_many(indices, values, begin, end, symmetric, pairs, blocks, groups, c_g, place, largest)

        for c in range(models):
            s = scalars[c]
            if key(pairs[place[c], 1, c], symmetric) < largest[c]:
                place[c] = find_largest(pairs[:, 1, c], symmetric, blocks[:, c], groups[:, c], shift)
                largest[c] = key(pairs[place[c], 1, c], symmetric)
            height = height_at(shape, radii[c], pairs[place[c], 1, c])
            if several is not None:
                used[place[c]] = True
            eta = s.eta
            if eta == 1.0:
                pairs[:, 0, c] = 0.0
                s.scale = 1.0
                pairs[place[c], 0, c] = height
            else:
                s.scale *= 1.0 - eta
                if s.scale < SMALLEST_SCALE:
                    pairs[:, 0, c] *= s.scale
                    s.scale = 1.0
                pairs[place[c], 0, c] += eta * height / s.scale
            s.place, s.height, s.step = place[c], height, s.step + 1
    return total
