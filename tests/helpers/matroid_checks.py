"""One matroid of every kind over six elements, and its independent sets by brute force."""

from __future__ import annotations

import itertools

import numpy as np

from onesfw import submodular as sm

N = 6
GRAPH = [[0, 1], [1, 2], [2, 0], [2, 3], [3, 3], [0, 3]]
VECTORS = np.array([[1.0, 0, 1, 2, 0, 1], [0, 1, 1, 0, 0, -1], [0, 0, 0, 0, 0, 1]])
FAMILY = [[0, 1, 2], [0, 1], [3, 4], [0, 1, 2, 3, 4]]


def no_two_neighbours_in_a_pair(chosen):
    """A partition matroid known only through its oracle."""
    pairs = [i // 2 for i in chosen]
    return len(set(pairs)) == len(pairs)


MATROIDS = {
    "uniform": sm.UniformMatroid(N, 3),
    "whole": sm.UniformMatroid(N, N),
    "partition": sm.PartitionMatroid([0, 1, 0, 1, 2, 0], [2, 1, 5]),
    "zero capacity": sm.PartitionMatroid(list("abbaca"), {"a": 2, "b": 0, "c": 1}),
    "laminar": sm.LaminarMatroid(N, FAMILY, [2, 1, 1, 2]),
    "graphic": sm.GraphicMatroid(GRAPH),
    "transversal": sm.TransversalMatroid(N, [[0, 1, 2], [1, 2], [3, 4], [2, 5]]),
    "linear": sm.LinearMatroid(VECTORS),
    "truncated": sm.TruncatedMatroid(sm.GraphicMatroid(GRAPH), 2),
    "oracle": sm.OracleMatroid(N, no_two_neighbours_in_a_pair),
}


def independent_sets(matroid):
    return [s for r in range(N + 1) for s in itertools.combinations(range(N), r) if matroid.independent(s)]


def bases(matroid):
    found = independent_sets(matroid)
    largest = max(map(len, found))
    return [s for s in found if len(s) == largest]


def indicator(chosen):
    return np.isin(np.arange(N), chosen).astype(float)


def check_axioms(matroid):
    found = set(independent_sets(matroid))
    assert () in found
    for s in found:
        for i in s:
            assert tuple(j for j in s if j != i) in found
        for t in found:
            if len(t) > len(s):
                assert any(tuple(sorted({*s, j})) in found for j in set(t) - set(s)), (s, t)
