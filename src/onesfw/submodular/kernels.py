"""Compiled kernels: rows, their certificates, matroids with groups, cascades; importing this file loads numba.

Rows are stored one after another: row r holds the elements indices[indptr[r]:indptr[r+1]], for facility location in
the order of falling similarity. A row's weight is what it adds to f where it is fully served.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numba
import numpy as np

from onesfw.trees import Function

NEGLIGIBLE = 1e-10  # probability below which what follows in a sorted row no longer matters

jit: Function = numba.njit(cache=True, nogil=True)
any_order: Function = numba.njit(cache=True, nogil=True, fastmath={"reassoc"})  # so that sums vectorise


@jit
def cover_add(d, x, factor, indptr, indices, row, prefix):
    """d_i += factor · ∏_{l≠i in the row} (1 − x_l), by prefix × suffix products: no division. Returns ∏ (1 − x_l)."""
    first, last = indptr[row], indptr[row + 1]
    product = 1.0
    for p in range(first, last):
        prefix[p - first] = product
        product *= 1.0 - x[indices[p]]
    suffix = factor
    for p in range(last - 1, first - 1, -1):
        i = indices[p]
        d[i] += prefix[p - first] * suffix
        suffix *= 1.0 - x[i]
    return product


@jit
def facility_add(d, x, factor, indptr, indices, values, row, prefix):
    """d_i += factor · P_k (m_k − R_k) for the element i at place k of the sorted row; returns F_ω(x) = R_0.

    The row is left once every product of the factors 1 − x but one is negligible: at an x_k = 1 the product of all of
    them is 0, yet the derivative along k still needs what comes after it.
    """
    first, last = indptr[row], indptr[row + 1]
    product, least, others = 1.0, 1.0, 1.0
    end = last
    for p in range(first, last):
        prefix[p - first] = product
        factor_here = 1.0 - x[indices[p]]
        product *= factor_here
        if factor_here < least:
            others *= least
            least = factor_here
        else:
            others *= factor_here
        if others < NEGLIGIBLE:
            end = p + 1
            break
    rest = 0.0
    for p in range(end - 1, first - 1, -1):
        i = indices[p]
        d[i] += factor * prefix[p - first] * (values[p] - rest)
        rest += x[i] * (values[p] - rest)
    return rest


@jit
def cover_step(d, x, previous, rho, indptr, indices, weights, which, scale, prefix):
    """d ← (1 − ρ)(d + Δ̃) + ρ g with g and Δ̃ averaged over the rows `which` (Algorithm 2)."""
    d *= 1.0 - rho
    for row in which:
        factor = scale * weights[row] / which.size
        cover_add(d, x, factor, indptr, indices, row, prefix)
        if rho < 1.0:
            cover_add(d, previous, -(1.0 - rho) * factor, indptr, indices, row, prefix)


@jit
def facility_step(d, x, previous, rho, indptr, indices, values, weights, which, scale, prefix):
    """`cover_step` for facility location."""
    d *= 1.0 - rho
    for row in which:
        factor = scale * weights[row] / which.size
        facility_add(d, x, factor, indptr, indices, values, row, prefix)
        if rho < 1.0:
            facility_add(d, previous, -(1.0 - rho) * factor, indptr, indices, values, row, prefix)


@jit
def cover_pass(x, indptr, indices, weights, which, gradient, served, prefix):
    """Each row's 1 − ∏(1 − x) into `served`, and Σ weight · gradient into `gradient`."""
    for q in range(which.size):
        row = which[q]
        served[q] = 1.0 - cover_add(gradient, x, weights[row], indptr, indices, row, prefix)


@jit
def facility_pass(x, indptr, indices, values, weights, which, gradient, served, prefix):
    """`cover_pass` for facility location."""
    for q in range(which.size):
        row = which[q]
        served[q] = facility_add(gradient, x, weights[row], indptr, indices, values, row, prefix)


@jit
def gains_by_element(candidates, starts, rows, values, level, weights, out):
    """Σ_r weight_r (m_ri − level_r)⁺ for each candidate i; column i of the similarities is starts[i]:starts[i+1]."""
    for q in range(candidates.size):
        i = candidates[q]
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            r = rows[p]
            over = values[p] - level[r]
            if over > 0.0:
                total += over * weights[r]
        out[q] = total


@jit
def cover_gains(candidates, starts, rows, covered, weights, out):
    """Σ of the weights of the uncovered rows that hold i, for each candidate i."""
    for q in range(candidates.size):
        i = candidates[q]
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            r = rows[p]
            if covered[r] == 0:
                total += weights[r]
        out[q] = total


@jit
def by_column(indices, values, out):
    """The matrix by columns, from rows that hold every element once: out[i, r] = m_ri."""
    n, rows = out.shape
    for r in range(rows):
        for p in range(r * n, (r + 1) * n):
            out[indices[p], r] = values[p]


@any_order
def dense_gains(candidates, columns, level, weights, out):
    """`gains_by_element` where every element has an entry in every row."""
    for q in range(candidates.size):
        column = columns[candidates[q]]
        total = 0.0
        for r in range(level.size):
            total += weights[r] * max(column[r] - level[r], 0.0)
        out[q] = total


@jit
def dense_raise(i, columns, level):
    """`raise_level` where every element has an entry in every row."""
    for r in range(level.size):
        level[r] = max(level[r], columns[i, r])


@jit
def raise_level(i, starts, rows, values, level):
    """level_r ← max(level_r, m_ri)."""
    for p in range(starts[i], starts[i + 1]):
        if values[p] > level[rows[p]]:
            level[rows[p]] = values[p]


@jit
def cover_element(i, starts, rows, covered):
    """One more chosen element in every row that holds i."""
    for p in range(starts[i], starts[i + 1]):
        covered[rows[p]] += 1


@jit
def facility_marginals(inside, indptr, indices, values, weights, out):
    """g_i(S) = f(S + i) − f(S − i) for all i; a sorted row is left at the second chosen element."""
    for r in range(indptr.size - 1):
        first, last = indptr[r], indptr[r + 1]
        best, place = 0.0, -1
        for p in range(first, last):
            if inside[indices[p]]:
                best, place = values[p], p
                break
        if place < 0:
            for p in range(first, last):
                out[indices[p]] += weights[r] * values[p]
            continue
        for p in range(first, place):
            out[indices[p]] += weights[r] * (values[p] - best)
        second = 0.0
        for p in range(place + 1, last):
            if inside[indices[p]]:
                second = values[p]
                break
        out[indices[place]] += weights[r] * (best - second)


@jit
def cover_marginals(inside, indptr, indices, weights, out):
    """g_i(S) = f(S + i) − f(S − i) for all i."""
    for r in range(indptr.size - 1):
        first, last = indptr[r], indptr[r + 1]
        count, only = 0, -1
        for p in range(first, last):
            if inside[indices[p]]:
                count += 1
                only = indices[p]
        if count == 0:
            for p in range(first, last):
                out[indices[p]] += weights[r]
        elif count == 1:
            out[only] += weights[r]


# Certificates.


@jit
def facility_thresholds(x, indptr, indices, values, which, tau):
    """τ_ω = m_(q), q the first place at which the sorted cumulative x reaches 1; 0 if it never does."""
    for q in range(which.size):
        total = 0.0
        tau[q] = 0.0
        for p in range(indptr[which[q]], indptr[which[q] + 1]):
            total += x[indices[p]]
            if total >= 1.0 - 1e-9:
                tau[q] = values[p]
                break


@jit
def facility_excess(tau, indptr, indices, values, weights, which, out):
    """Σ_ω weight_ω (m_ωi − τ_ω)⁺ for every i."""
    for q in range(which.size):
        row = which[q]
        for p in range(indptr[row], indptr[row + 1]):
            over = values[p] - tau[q]
            if over <= 0.0:
                break
            out[indices[p]] += weights[row] * over


@jit
def cover_thresholds(x, indptr, indices, which, tau):
    """τ_ω = 1 − clip((1.05 − Σ_A x)/0.1, 0, 1): a smooth version of [Σ_A x ≥ 1]."""
    for q in range(which.size):
        total = 0.0
        for p in range(indptr[which[q]], indptr[which[q] + 1]):
            total += x[indices[p]]
        tau[q] = 1.0 - min(max((1.05 - total) / 0.1, 0.0), 1.0)


@jit
def cover_excess(tau, indptr, indices, weights, which, out):
    """Σ_ω weight_ω (1 − τ_ω) over the rows that hold i, for every i."""
    for q in range(which.size):
        row = which[q]
        over = weights[row] * (1.0 - tau[q])
        if over > 0.0:
            for p in range(indptr[row], indptr[row + 1]):
                out[indices[p]] += over


@jit
def row_sums(v, indptr, indices, which, values, tau, out):
    """Σ_i v_i (m_ωi − τ_ω)⁺ row by row; `values` of length 0 stands for ones."""
    for q in range(which.size):
        row = which[q]
        total = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            value = values[p] if values.size else 1.0
            if value > tau[q]:
                total += v[indices[p]] * (value - tau[q])
        out[q] = total


@jit
def cover_slopes(x, direction, indptr, indices, out, prefix):
    """Σ_i direction_i ∏_{l≠i}(1 − x_l) row by row."""
    for r in range(out.size):
        first, last = indptr[r], indptr[r + 1]
        product = 1.0
        for p in range(first, last):
            prefix[p - first] = product
            product *= 1.0 - x[indices[p]]
        suffix, total = 1.0, 0.0
        for p in range(last - 1, first - 1, -1):
            total += direction[indices[p]] * prefix[p - first] * suffix
            suffix *= 1.0 - x[indices[p]]
        out[r] = total


# Matroids with groups.


@jit
def smaller(d, a, b):
    """Whether a leaves before b: by value, ties by the higher index."""
    return d[a] < d[b] or (d[a] == d[b] and a > b)


@jit
def sift_down(d, heap, first, place, size):
    """Restore the heap below a place whose entry changed."""
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and smaller(d, heap[first + child + 1], heap[first + child]):
            child += 1
        if not smaller(d, heap[first + child], heap[first + place]):
            return
        heap[first + place], heap[first + child] = heap[first + child], heap[first + place]
        place = child


@jit
def top_by_group(d, groups, starts, out):
    """The largest entries of d in each group, as many as starts says, by a heap per group. O(n) for small groups."""
    size = np.zeros(starts.size - 1, np.int64)
    for i in range(d.size):
        g = groups[i]
        first = starts[g]
        capacity = starts[g + 1] - first
        if size[g] < capacity:
            out[first + size[g]] = i
            size[g] += 1
            if size[g] == capacity:
                for root in range(capacity // 2 - 1, -1, -1):
                    sift_down(d, out, first, root, capacity)
        elif capacity > 0 and d[i] > d[out[first]]:
            out[first] = i
            sift_down(d, out, first, 0, capacity)


@jit
def next_word(state):
    """The next 64 random bits of a counter (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def uniform(state):
    """A number in [0, 1) with 53 random bits."""
    return (next_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@jit
def merge_by_group(base, vertex, keep, starts, marks, state):
    """Swap rounding's merge of two bases in the same group layout; each exchange keeps `base` with chance `keep`.

    In a partition matroid any element of one base may be exchanged for any element of the other in the same group.
    """
    for g in range(starts.size - 1):
        first, last = starts[g], starts[g + 1]
        for p in range(first, last):
            marks[vertex[p]] |= 2
            marks[base[p]] |= 1
        other = first
        for p in range(first, last):
            if marks[base[p]] == 1:  # in the base alone: pair it with the next element of the vertex alone
                while marks[vertex[other]] != 2:
                    other += 1
                newcomer = vertex[other]
                other += 1
                marks[base[p]] = 0
                if uniform(state) >= keep:
                    base[p] = newcomer
        for p in range(first, last):
            marks[vertex[p]] = 0
            marks[base[p]] = 0


# Cascades and reverse-reachable sets.


@jit
def seeded(seed, number, state):
    """The random state that belongs to (seed, number)."""
    state[0] = seed ^ (np.uint64(number) * np.uint64(0xD1342543DE82EF95) + np.uint64(0x2545F4914F6CDD1D))
    next_word(state)
    state[0] = next_word(state)


@jit
def spread_from(queue, size, indptr, targets, chances, reached, stamp, state):
    """Nodes reached from queue[:size] when each arc is open with its chance; they end up in the queue."""
    head = 0
    while head < size:
        node = queue[head]
        head += 1
        for p in range(indptr[node], indptr[node + 1]):
            other = targets[p]
            if reached[other] != stamp and uniform(state) < chances[p]:
                reached[other] = stamp
                queue[size] = other
                size += 1
    return size


@jit
def reverse_sets(seed, first, count, indptr, sources, chances, room, reached, stamps, queue, lengths):
    """Reverse-reachable sets number `first`, …, at most `count` and at most about `room` entries in all.

    A set is the nodes from which a uniformly drawn root is reached: it is found against the arcs. Returns the entries;
    `lengths` gets the sizes, and stays 0 from the first set that was not drawn.
    """
    n = indptr.size - 1
    state = np.zeros(1, np.uint64)
    entries = np.empty(max(room, n) + n, np.int32)
    filled = 0
    for q in range(count):
        if filled > room:
            break
        seeded(seed, first + q, state)
        stamps[0] += 1
        root = np.int64(uniform(state) * n)
        queue[0] = root
        reached[root] = stamps[0]
        size = spread_from(queue, 1, indptr, sources, chances, reached, stamps[0], state)
        if filled + size > entries.size:
            larger = np.empty(2 * entries.size + size, np.int32)
            larger[:filled] = entries[:filled]
            entries = larger
        entries[filled : filled + size] = queue[:size]
        filled += size
        lengths[q] = size
    return entries[:filled].copy()


@jit
def cascades(seed, first, count, chosen, indptr, targets, chances, out):
    """How many nodes each of `count` independent cascades from `chosen` reaches."""
    n = indptr.size - 1
    state = np.zeros(1, np.uint64)
    reached = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int32)
    for q in range(count):
        seeded(seed, first + q, state)
        for p in range(chosen.size):
            queue[p] = chosen[p]
            reached[chosen[p]] = q
        out[q] = spread_from(queue, chosen.size, indptr, targets, chances, reached, q, state)
