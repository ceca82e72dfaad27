"""Compiled kernels of matroids with groups: the greedy base, the merge of bases; importing this file loads numba."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from onesfw.submodular.kernels import jit


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
