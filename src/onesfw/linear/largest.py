"""The place of the largest key of a vector that changes in a few entries at a time.

Upper bounds are kept per block of 256 entries and per 64 blocks. A changed entry can only raise its bounds; a search
makes exact the one bound that is largest, until the largest is exact. Ties go to the lowest index.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ENTRIES_PER_BLOCK = 256
BLOCKS_PER_GROUP = 64
BLOCK_SHIFT, GROUP_SHIFT = 8, 14


@njit(cache=True, nogil=True)
def key(g: float, symmetric: bool) -> float:
    """What is maximised: |g| on a symmetric set, −g on one with non-negative vertices."""
    return abs(g) if symmetric else -g


@njit(cache=True, nogil=True)
def find_largest(g: np.ndarray, symmetric: bool, blocks: np.ndarray, groups: np.ndarray) -> int:
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
        start = block * ENTRIES_PER_BLOCK
        place = start
        for i in range(start + 1, min(start + ENTRIES_PER_BLOCK, size)):
            if key(g[i], symmetric) > key(g[place], symmetric):
                place = i
        blocks[block] = key(g[place], symmetric)
        largest = blocks[first]
        for i in range(first + 1, last):
            largest = max(largest, blocks[i])
        groups[group] = largest
        scanned = block


def bounds_for(size: int) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of a zero vector: one per block, one per group of blocks."""
    blocks = -(-size // ENTRIES_PER_BLOCK)
    return np.zeros(blocks), np.zeros(-(-blocks // BLOCKS_PER_GROUP))
