"""From x in the polytope of a matroid's bases to a base, without loss: swap rounding and pipage.

Both keep the marginals, P(i ∈ S) = x_i, and E f(S) ≥ F(x) for every submodular f.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from onesfw.engine.keys import Key, generator, seed_of
from onesfw.submodular.base import Function, as_point
from onesfw.submodular.matroids import Grouping, Matroid
from onesfw.trees import Function as UserFunction
from onesfw.trees import HostArray

WHOLE = 1e-9  # an entry this near to 0 or 1 counts as whole
ACCURACY = 1e-6  # of x as a mixture of bases


class SwapRounding:
    """A base B with E 1_B = the mean of the bases merged so far, kept as they come: O(k) memory.

    merge(B₁, β₁; B₂, β₂) (Chekuri, Vondrák and Zenklusen 2010): while the two differ, take i ∈ B₁∖B₂ and j ∈ B₂∖B₁
    such that B₁ − i + j and B₂ − j + i are bases; with probability β₁/(β₁ + β₂) j becomes i in B₂, otherwise i becomes
    j in B₁. In uniform and partition matroids every pair of a group will do: O(k) a merge. Otherwise the independence
    oracle looks for one: O(k²) calls.

    Args:
        matroid: whose bases are merged.
        key: of the coins, an integer of at least 0 or a JAX key.

    Raises:
        TypeError: where the key is neither.
        ValueError: where it is negative; from `merge`, where the oracle of one's own is not a matroid's.

    Example:
        >>> import numpy as np
        >>> from onesfw import submodular as sm
        >>> rounding = sm.SwapRounding(sm.UniformMatroid(4, 2), key=0)
        >>> rounding.merge(np.array([0, 1]), 1.0)
        >>> rounding.merge(np.array([2, 3]), 0.5)
        >>> rounding.result().size
        2
    """

    def __init__(self, matroid: Matroid, key: Key) -> None:
        self.matroid = matroid
        seed = int(key) if isinstance(key, int | np.integer) else seed_of(key)
        self.rng = np.random.default_rng(seed)
        self.coins = np.array([seed % 2**64], np.uint64)
        self.base: HostArray | None = None
        self.layout: HostArray | None = None
        if matroid.grouping is not None:
            self.layout = np.concatenate([[0], np.cumsum(matroid.grouping.capacities)])
            self.marks = np.zeros(matroid.n, np.uint8)

    def merge(self, vertex: HostArray, share: float) -> None:
        """The base after the mean becomes (1 − share) · mean + share · 1_vertex.

        In a uniform or partition matroid `vertex` must list the elements group by group, as `grouped` does.
        """
        if self.base is None:
            self.base = np.array(vertex)
        elif self.layout is not None:
            from onesfw.submodular.kernels import merge_by_group

            merge_by_group(self.base, vertex, 1.0 - share, self.layout, self.marks, self.coins)
        else:
            self.base = merged(self.matroid, self.base, vertex, share, self.rng)

    def result(self) -> HostArray:
        """The base, in increasing order of indices."""
        if self.base is None:
            raise ValueError("nothing was merged yet: there is no base")
        return np.sort(self.base).astype(np.int64)


def merged(matroid: Matroid, base: HostArray, vertex: HostArray, share: float, rng: np.random.Generator) -> HostArray:
    """One merge by the independence oracle."""
    first, second = {int(i) for i in base}, {int(i) for i in vertex}
    while first != second:
        i = min(first - second)
        for j in sorted(second - first):
            if matroid.exchanges(first, i, j) and matroid.exchanges(second, j, i):
                break
        else:
            raise ValueError("swap rounding found no exchange between two bases: the oracle is not a matroid's")
        if rng.random() < share:
            first = first - {i} | {j}
        else:
            second = second - {j} | {i}
    return np.array(sorted(first))


def grouped(matroid: Matroid, base: HostArray) -> HostArray:
    """A base in the order that `SwapRounding.merge` wants: group by group where the matroid has groups."""
    if matroid.grouping is None:
        return base
    return base[np.argsort(matroid.grouping.groups[base], kind="stable")]


def swap_round(x: ArrayLike, matroid: Matroid, key: Key = 0) -> HostArray:
    """A base S with P(i ∈ S) = x_i and E f(S) ≥ F(x), by swap rounding of x as a mixture of bases.

    Args:
        x: in the polytope of the matroid's bases.
        matroid: any matroid.
        key: an integer seed or a JAX key.

    Returns:
        The base, in increasing order of indices.

    Raises:
        ValueError: where x is no mixture of bases.

    Example:
        >>> from onesfw import submodular as sm
        >>> sm.swap_round([0.5, 0.5, 1.0], sm.UniformMatroid(3, 2))[1]
        np.int64(2)
    """
    rounding = SwapRounding(matroid, seed_of(key))
    total = 0.0
    for base, weight in mixture(in_polytope(x, matroid), matroid):
        total += float(weight)
        rounding.merge(grouped(matroid, base), float(weight) / total)
    return rounding.result()


def decompose(x: ArrayLike, matroid: Matroid) -> tuple[list[HostArray], HostArray]:
    """Bases and weights with x = Σ weight · 1_base.

    Uniform and partition matroids: lay the entries of each group end to end and read off, for u from 0 to 1, who covers
    u, u + 1, u + 2, …: at most n + 1 different bases. Otherwise Wolfe's nearest-point method: the base farthest in the
    direction of what is still missing joins, and non-negative least squares finds the weights anew.

    Args:
        x: in the polytope of the matroid's bases.
        matroid: any matroid.

    Returns:
        The bases, and their weights, which add up to 1.

    Raises:
        ValueError: where x is no mixture of bases.

    Example:
        >>> from onesfw import submodular as sm
        >>> bases, weights = sm.decompose([0.5, 0.5, 1.0], sm.UniformMatroid(3, 2))
        >>> [base.tolist() for base in bases], weights.tolist()
        ([[0, 2], [1, 2]], [0.5, 0.5])
    """
    bases, weights = zip(*mixture(in_polytope(x, matroid), matroid), strict=True)
    return list(bases), np.array(weights) / np.sum(weights)


def mixture(point: HostArray, matroid: Matroid) -> Iterator[tuple[HostArray, float]]:
    """Bases and weights, one pair at a time."""
    return nearest_point(point, matroid) if matroid.grouping is None else read_off(point, matroid.grouping)


def nearest_point(point: HostArray, matroid: Matroid) -> Iterator[tuple[HostArray, float]]:
    """The mixture for any matroid, by Wolfe's method."""
    bases = [matroid.base(point)]
    for _ in range(4 * matroid.n + 10):
        columns = np.zeros((matroid.n + 1, len(bases)))
        for q, base in enumerate(bases):
            columns[base, q] = 1.0
        columns[-1] = matroid.n  # Σ weights = 1, weighted so that it holds
        weights, _ = nnls(columns, np.append(point, matroid.n))
        left = point - columns[:-1] @ weights
        if np.max(np.abs(left)) <= ACCURACY:
            yield from ((base, float(weight)) for base, weight in zip(bases, weights, strict=True) if weight > 0)
            return
        bases = [base for base, weight in zip(bases, weights, strict=True) if weight > 0] + [matroid.base(left)]
    raise ValueError("x must lie in the polytope of the matroid's bases: it is no mixture of bases")


def read_off(point: HostArray, grouping: Grouping) -> Iterator[tuple[HostArray, float]]:
    """The mixture for a matroid with groups: entries laid end to end, by group."""
    order = np.argsort(grouping.groups, kind="stable")
    ends = np.cumsum(point[order])
    borders = np.concatenate([[0], np.cumsum(grouping.capacities)])
    sizes = np.bincount(grouping.groups, minlength=grouping.capacities.size)
    last = np.cumsum(sizes) - 1
    ends[last[sizes > 0]] = borders[1:][sizes > 0]  # whole sums up to rounding
    cuts = np.unique(np.concatenate([[0.0, 1.0], np.round(ends % 1.0, 12) % 1.0]))
    starts, widths = cuts[:-1], np.diff(cuts)
    for middle, width in zip(starts + widths / 2, widths, strict=True):
        places = np.searchsorted(ends, middle + np.arange(borders[-1]), side="right")
        base = np.unique(order[np.minimum(places, order.size - 1)])
        # Rounding errors of x can make slivers that are no bases; they weigh nothing.
        if np.array_equal(np.bincount(grouping.groups[base], minlength=sizes.size), grouping.capacities):
            yield base, float(width)


def in_polytope(x: ArrayLike, matroid: Matroid) -> HostArray:
    """x, checked against what every mixture of bases satisfies."""
    point = as_point(x, matroid.n)
    rank = matroid.rank
    if abs(point.sum() - rank) > ACCURACY * max(1, rank):
        raise ValueError(
            f"x must add up to the matroid's rank, {rank}, got {point.sum():g}; it must be a mixture of bases"
        )
    if np.min(rooms(point, matroid), initial=0.0) < -10 * ACCURACY * max(1, rank):
        raise ValueError("x must lie in the polytope of the matroid's bases: it exceeds a capacity")
    return point


def rooms(point: HostArray, matroid: Matroid) -> HostArray:
    """What is left of each capacity; nothing where a matroid has none."""
    if matroid.family is None:
        return np.zeros(0)
    members, capacities = matroid.family
    return capacities - np.array([point[inside].sum() for inside in members])


def families(matroid: Matroid) -> list[HostArray]:
    """The sets with a capacity, smaller ones first, and the whole; an error for matroids that have none."""
    if matroid.family is None:
        raise TypeError(
            f"pipage serves uniform, partition and laminar matroids; for {type(matroid).__name__} it would need "
            "submodular minimisation: use rounding='swap'"
        )
    return [*matroid.family.members, np.arange(matroid.n)]


def pipage(x: ArrayLike, matroid: Matroid, key: Key = 0) -> HostArray:
    """A base S with P(i ∈ S) = x_i and E f(S) ≥ F(x), by randomised pipage. O(support) moves.

    Two fractional entries of the smallest set that holds two of them move against each other until one is whole, up
    or down with the probabilities that keep their expectation; along such a direction F is convex.

    Args:
        x: in the polytope of the matroid's bases.
        matroid: uniform, partition or laminar.
        key: an integer seed or a JAX key.

    Returns:
        The base, in increasing order of indices.

    Raises:
        TypeError: for other matroids.
        ValueError: where x is no mixture of bases.

    Example:
        >>> from onesfw import submodular as sm
        >>> sm.pipage([0.5, 0.5, 1.0], sm.UniformMatroid(3, 2)).size
        2
    """
    rng = generator(key)

    def upwards(point: HostArray, i: int, j: int, rise: float, fall: float) -> bool:
        return bool(rng.random() * (rise + fall) < fall)

    return move_pairs(x, matroid, upwards)


def deterministic_pipage(x: ArrayLike, matroid: Matroid, function: Function) -> HostArray:
    """A base S with f(S) ≥ F(x), by pipage towards the larger F (Ageev and Sviridenko 2004).

    Args:
        x: in the polytope of the matroid's bases.
        matroid: uniform, partition or laminar.
        function: with a closed-form extension over finitely many ω, so that F is exact.

    Returns:
        The base, in increasing order of indices.

    Raises:
        TypeError: for other matroids, and for functions whose F is not exact.
        ValueError: where x is no mixture of bases.

    Example:
        >>> from onesfw import submodular as sm
        >>> f = sm.Coverage([[1, 1, 1], [0, 1, 0], [0, 0, 1]])
        >>> sm.deterministic_pipage([0.5, 0.5, 1.0], sm.UniformMatroid(3, 2), f).tolist()
        [0, 2]
    """
    if not function.closed_form or function.omegas is None:
        raise TypeError(
            f"deterministic pipage needs the exact F, which {type(function).__name__} has not; use rounding='swap' or "
            "rounding='pipage'"
        )

    def upwards(point: HostArray, i: int, j: int, rise: float, fall: float) -> bool:
        def at(shift: float) -> float:
            moved = point.copy()
            moved[i], moved[j] = moved[i] + shift, moved[j] - shift
            return function.extension(moved)[0]

        return at(rise) >= at(-fall)

    return move_pairs(x, matroid, upwards)


def move_pairs(x: ArrayLike, matroid: Matroid, upwards: UserFunction) -> HostArray:
    """Pipage, `upwards` deciding each move of x_i by +rise or −fall (and of x_j against it)."""
    point = in_polytope(x, matroid).copy()
    for members in families(matroid):
        fractional = [int(i) for i in members if WHOLE < point[i] < 1 - WHOLE]
        while len(fractional) > 1:
            i, j = fractional[-2:]
            rise, fall = min(1 - point[i], point[j]), min(point[i], 1 - point[j])
            shift = rise if upwards(point, i, j, rise, fall) else -fall
            point[i], point[j] = point[i] + shift, point[j] - shift
            for place in (j, i):
                if not WHOLE < point[place] < 1 - WHOLE:
                    point[place] = np.round(point[place])
                    fractional.remove(place)
    return matroid.base(point)  # at most one entry is left between 0 and 1, by rounding errors
