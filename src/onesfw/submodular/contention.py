"""Contention resolution: from x to a set that obeys knapsacks and several capacities at once, at a stated loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from onesfw.arguments import number
from onesfw.engine.keys import Key, generator
from onesfw.sets import Knapsack
from onesfw.submodular.base import as_point
from onesfw.submodular.matroids import Grouping, Matroid
from onesfw.trees import HostArray

Limit = Knapsack | Matroid
Scheme = Callable[[HostArray, HostArray, np.random.Generator], HostArray]
TOLERANCE = 1e-5  # by which a point that was found in float32 may break a constraint


def contention_resolution(
    x: ArrayLike, constraints: Limit | Iterable[Limit], key: Key = 0, *, b: float = 0.25
) -> HostArray:
    """A set S that obeys all constraints, with P(i ∈ S) ≥ balance · b x_i for monotone schemes.

    R holds i with probability b x_i; each constraint drops some elements of R; S is what all of them keep. Then
    E f(S) ≥ balance · F(b x), nothing more: neither the marginals nor F(x) are kept. A single matroid never needs this:
    `swap_round` and `pipage` lose nothing there.

    Rank-1 parts (Feige and Vondrák 2006): alone in its part, an element stays; otherwise i is kept with probability
    (1/Σx)[Σ_{l∈R∖i} x_l/(|R| − 1) + Σ_{l∉R} x_l/|R|]. Knapsacks with sizes relative to the budget (Chekuri, Vondrák and
    Zenklusen 2014): an element above 1/2 is kept where it is the only such one, and the others are dropped; without
    one, i is kept where the rest of R is at most 1/2.

    Args:
        x: a point that satisfies every constraint, 0 where an element alone exceeds a budget: no set may hold it.
        constraints: one or several of `sets.Knapsack`, and `PartitionMatroid` or `UniformMatroid` with capacities 1.
        key: an integer seed or a JAX key.
        b: the share of x that R is drawn from, below 1/2 where there is a knapsack.

    Returns:
        The set, in increasing order of indices.

    Raises:
        TypeError: where a constraint is neither a knapsack nor a matroid of rank-1 parts.
        ValueError: where x breaks a constraint, or b is out of range.

    Example:
        >>> import onesfw as fw
        >>> from onesfw import submodular as sm
        >>> budget = fw.sets.Knapsack([1.0, 2.0, 3.0], 3.0)
        >>> packed = sm.contention_resolution([0.5, 0.5, 0.5], budget, key=0)
        >>> sum([1.0, 2.0, 3.0][i] for i in packed) <= 3
        True
    """
    limits, point = scaled(x, constraints, b)
    schemes = [scheme_of(limit, b)[0] for limit in limits]
    rng = generator(key)
    drawn = rng.random(point.size) < point
    kept = drawn.copy()
    for scheme in schemes:
        kept &= scheme(point, drawn, rng)
    return np.flatnonzero(kept)


def balance(x: ArrayLike, constraints: Limit | Iterable[Limit], *, b: float = 0.25) -> float:
    """The guarantee c of `contention_resolution`: P(i kept | i drawn) ≥ c for every i; intersections multiply."""
    limits, point = scaled(x, constraints, b)
    return float(np.prod([scheme_of(limit, b)[1](point) for limit in limits]))


def scaled(x: ArrayLike, constraints: Limit | Iterable[Limit], b: float) -> tuple[list[Limit], HostArray]:
    """The constraints as a list and b x, once everything that the guarantee rests on has been checked."""
    limits = list(constraints) if isinstance(constraints, Iterable) else [constraints]
    if not limits:
        raise ValueError("constraints is empty: give at least one knapsack or partition matroid")
    if number(b, "b", 0, strict=True) > 1:
        raise ValueError(f"b must lie in (0, 1], got {b!r}")
    for limit in limits:
        scheme_of(limit, b)
    sizes = [limit.n if isinstance(limit, Matroid) else int(np.size(limit.costs)) for limit in limits]
    if len(set(sizes)) > 1:
        raise ValueError(f"constraints must speak of the same elements, got {' and '.join(map(str, sizes))} of them")
    point = as_point(x, sizes[0])
    for limit in limits:
        check_inside(point, limit)
    return limits, b * point


def check_inside(point: HostArray, limit: Limit) -> None:
    """Raise an error where a point breaks a constraint, or holds an element that no set may hold."""
    if isinstance(limit, Knapsack):
        costs, budget = np.asarray(limit.costs, np.float64), float(limit.budget)
        alone = np.flatnonzero((costs > budget) & (point > 0))
        if alone.size:
            raise ValueError(
                f"x must be 0 for element {alone[0]}: its cost, {costs[alone[0]]:g}, exceeds the budget of {budget:g}, "
                "and no set may hold it; leave such elements out before x is found"
            )
        inside = costs @ point <= budget * (1 + TOLERANCE) and np.all(point <= np.asarray(limit.upper) + TOLERANCE)
    else:
        groups, capacities = parts(limit)
        inside = np.all(np.bincount(groups, point, capacities.size) <= capacities + TOLERANCE)
    if not inside:
        raise ValueError(f"x must satisfy every constraint: it breaks the {type(limit).__name__}'s")


def scheme_of(limit: Limit, b: float) -> tuple[Scheme, Callable[[HostArray], float]]:
    """A constraint's scheme, and its balance at a point that is scaled by b already."""
    if isinstance(limit, Matroid):
        groups, capacities = parts(limit)
        count = capacities.size

        def worst(point: HostArray) -> float:
            sums = np.bincount(groups, point, count)
            gone = np.exp(np.bincount(groups, np.log1p(-np.minimum(point, 1 - 1e-12)), count))
            return float(np.min(np.where(sums > 0, (1 - gone) / np.where(sums > 0, sums, 1.0), 1.0)))

        return lambda point, drawn, rng: fair(point, drawn, groups, capacities, rng), worst
    if isinstance(limit, Knapsack):
        if b >= 0.5:
            raise ValueError(f"b must be below 1/2 where there is a knapsack, got {b!r}")
        sizes = np.asarray(limit.costs) / float(limit.budget)
        return lambda point, drawn, rng: fit(sizes, drawn), lambda point: 1 - 2 * b
    raise TypeError(f"constraints must hold Knapsack sets or matroids, got {limit!r}")


def parts(matroid: Matroid) -> Grouping:
    """The parts of a matroid of which at most one element each may be kept; an error where they are none."""
    if matroid.grouping is None or np.any(matroid.grouping.capacities > 1):
        raise TypeError(
            f"contention resolution serves knapsacks and matroids of rank-1 parts, not {type(matroid).__name__} with "
            "larger capacities; a single matroid is rounded without loss by swap_round or pipage"
        )
    return matroid.grouping


def fair(
    point: HostArray, drawn: HostArray, groups: HostArray, capacities: HostArray, rng: np.random.Generator
) -> HostArray:
    """At most one element per part, by the fair scheme."""
    kept = np.zeros(point.size, bool)
    for g in np.unique(groups[drawn]):
        if capacities[g] == 0:
            continue
        part = groups == g
        inside = np.flatnonzero(part & drawn)
        if inside.size == 1:
            kept[inside] = True
            continue
        total, of_drawn = point[part].sum(), point[inside].sum()
        chances = ((of_drawn - point[inside]) / (inside.size - 1) + (total - of_drawn) / inside.size) / total
        kept[rng.choice(inside, p=chances / chances.sum())] = True
    return kept


def fit(sizes: HostArray, drawn: HostArray) -> HostArray:
    """What the knapsack's scheme keeps."""
    large = drawn & (sizes > 0.5)
    if large.any():
        return large if large.sum() == 1 else np.zeros(drawn.size, bool)
    total = sizes[drawn].sum()
    return drawn & (total - sizes <= 0.5)
