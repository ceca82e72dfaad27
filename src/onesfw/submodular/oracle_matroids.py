"""Matroids that answer on the host: graphic, transversal, linear, truncations, and any independence oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from onesfw.arguments import number, subsets, whole_number
from onesfw.objectives.user_functions import require_callable
from onesfw.submodular.matroids import Builder, Matroid
from onesfw.trees import HostArray, as_array


class GraphicMatroid(Matroid):
    """Sets of edges without a cycle; the bases are the spanning forests.

    Args:
        edges: pairs of node labels; element i is edge i. A loop is in no independent set.

    Raises:
        ValueError: where edges are no pairs.

    Example:
        >>> from onesfw import submodular as sm
        >>> triangle = sm.GraphicMatroid([[0, 1], [1, 2], [2, 0]])
        >>> triangle.rank, triangle.independent([0, 1, 2])
        (2, False)
    """

    def __init__(self, edges: ArrayLike) -> None:
        pairs = as_array(edges, "GraphicMatroid: edges")
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.shape[0] == 0:
            raise ValueError(f"GraphicMatroid: edges must be pairs of nodes, one pair a row, got shape {pairs.shape}")
        nodes, flat = np.unique(pairs, return_inverse=True)
        self.ends: list[list[int]] = [[int(a), int(b)] for a, b in flat.reshape(pairs.shape)]
        self.n, self.nodes = len(self.ends), int(nodes.size)

    def builder(self) -> Builder:
        return Forest(self.ends, self.nodes)


class Forest(Builder):
    """Components of the nodes (union-find with path halving)."""

    def __init__(self, ends: list[list[int]], nodes: int) -> None:
        self.ends, self.parent = ends, list(range(nodes))

    def find(self, node: int) -> int:
        """The representative of a node's component."""
        parent = self.parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def add(self, i: int) -> bool:
        a, b = (self.find(node) for node in self.ends[i])
        self.parent[a] = b
        return a != b


class TransversalMatroid(Matroid):
    """Sets whose elements can be matched to different sets of a family, each element to a set that holds it.

    Args:
        n: the number of elements.
        family: lists of elements.

    Raises:
        ValueError: where n is no positive whole number, or a set holds what is no element.

    Example:
        >>> from onesfw import submodular as sm
        >>> jobs = sm.TransversalMatroid(3, [[0, 1], [1, 2]])
        >>> jobs.independent([0, 2]), jobs.rank
        (True, 2)
    """

    def __init__(self, n: int, family: Iterable[Iterable[int]]) -> None:
        self.n = whole_number(n, "n", 1)
        self.homes: list[list[int]] = [[] for _ in range(self.n)]
        self.sets = 0
        for members in subsets(family, self.n, "TransversalMatroid"):
            for i in members:
                self.homes[i].append(self.sets)
            self.sets += 1

    def builder(self) -> Builder:
        return Matching(self.homes, self.sets)


class Matching(Builder):
    """Who is matched to which set, grown by augmenting paths (breadth first)."""

    def __init__(self, homes: list[list[int]], sets: int) -> None:
        self.homes, self.holder = homes, [-1] * sets
        self.home_of: dict[int, int] = {}

    def add(self, i: int) -> bool:
        if i in self.home_of:
            return False
        wanted: dict[int, int] = {}  # set ↦ the element that asked for it first
        waiting = [i]
        for element in waiting:
            for home in self.homes[element]:
                if home in wanted:
                    continue
                wanted[home] = element
                if self.holder[home] < 0:
                    self.move(home, wanted)
                    return True
                waiting.append(self.holder[home])
        return False

    def move(self, free: int, wanted: dict[int, int]) -> None:
        """The element that asked for a free set moves there, another one into the set that it leaves, and so on."""
        home: int | None = free
        while home is not None:
            element = wanted[home]
            self.holder[home] = element
            left = self.home_of.get(element)
            self.home_of[element] = home
            home = left


class LinearMatroid(Matroid):
    """Sets of columns of a matrix that are linearly independent.

    Args:
        matrix: a column per element.
        tolerance: a column counts as dependent once what is left of it, orthogonal to the others, is this small
            relative to itself.

    Raises:
        ValueError: where matrix is no finite matrix, or tolerance is not positive.

    Example:
        >>> from onesfw import submodular as sm
        >>> columns = sm.LinearMatroid([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
        >>> columns.independent([0, 1]), columns.independent([0, 2])
        (True, False)
    """

    def __init__(self, matrix: ArrayLike, tolerance: float = 1e-9) -> None:
        columns = as_array(matrix, "LinearMatroid: matrix")
        if columns.ndim != 2 or 0 in columns.shape or columns.dtype.kind not in "fiub":
            raise ValueError(f"LinearMatroid: matrix must be 2-D and hold numbers, got {columns.dtype} {columns.shape}")
        self.columns = np.ascontiguousarray(columns.T, np.float64)
        if not np.all(np.isfinite(self.columns)):
            raise ValueError("LinearMatroid: matrix has NaN or infinite entries")
        self.tolerance = number(tolerance, "tolerance", 0, strict=True)
        self.n = self.columns.shape[0]

    def builder(self) -> Builder:
        return Span(self.columns, self.tolerance)


class Span(Builder):
    """An orthonormal basis of the columns taken so far (Gram and Schmidt, twice)."""

    def __init__(self, columns: HostArray, tolerance: float) -> None:
        self.columns, self.tolerance = columns, tolerance
        self.basis = np.zeros((0, columns.shape[1]))

    def add(self, i: int) -> bool:
        column = self.columns[i]
        left = column - self.basis.T @ (self.basis @ column)
        left = left - self.basis.T @ (self.basis @ left)
        size = float(np.linalg.norm(left))
        if size <= self.tolerance * float(np.linalg.norm(column)):
            return False
        self.basis = np.vstack([self.basis, left / size])
        return True


class TruncatedMatroid(Matroid):
    """The independent sets of a matroid with at most k elements.

    Args:
        matroid: any matroid.
        k: the largest size.

    Raises:
        TypeError: where matroid is none.
        ValueError: where k is no positive whole number.

    Example:
        >>> from onesfw import submodular as sm
        >>> sm.TruncatedMatroid(sm.PartitionMatroid(["a", "b", "c"], 1), 2).rank
        2
    """

    def __init__(self, matroid: Matroid, k: int) -> None:
        if not isinstance(matroid, Matroid):
            raise TypeError(f"TruncatedMatroid: matroid must be a matroid from onesfw.submodular, got {matroid!r}")
        self.inner, self.n = matroid, matroid.n
        self.k = whole_number(k, "k", 1)

    def builder(self) -> Builder:
        return Limited(self.inner.builder(), self.k)


class Limited(Builder):
    """Another builder's set, as long as it has fewer than k elements."""

    def __init__(self, inner: Builder, k: int) -> None:
        self.inner, self.left = inner, k

    def add(self, i: int) -> bool:
        if self.left == 0 or not self.inner.add(i):
            return False
        self.left -= 1
        return True


class OracleMatroid(Matroid):
    """The sets that a function calls independent.

    Args:
        n: the number of elements.
        independent: a list of indices ↦ whether it is independent. The axioms are the caller's to keep; the empty set
            must be independent.

    Raises:
        TypeError: where independent cannot be called.
        ValueError: where n is no positive whole number, or the empty set is not independent.

    Example:
        >>> from onesfw import submodular as sm
        >>> sm.OracleMatroid(4, lambda chosen: len(chosen) <= 2).rank
        2
    """

    def __init__(self, n: int, independent: Callable[[list[int]], bool]) -> None:
        require_callable(independent, "OracleMatroid", "independent")
        self.n, self.oracle = whole_number(n, "n", 1), independent
        if not independent([]):
            raise ValueError("OracleMatroid: independent([]) must be true: the empty set is independent in a matroid")

    def builder(self) -> Builder:
        return Asked(self.oracle)


class Asked(Builder):
    """The set so far, as a list for the oracle."""

    def __init__(self, oracle: Callable[[list[int]], bool]) -> None:
        self.oracle, self.chosen = oracle, list[int]()

    def add(self, i: int) -> bool:
        if i in self.chosen or not self.oracle([*self.chosen, i]):
            return False
        self.chosen.append(i)
        return True
