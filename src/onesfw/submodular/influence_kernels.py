"""Compiled cascades and reverse-reachable sets; importing this file loads numba."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from onesfw.submodular.group_kernels import next_word, uniform
from onesfw.submodular.kernels import jit


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
