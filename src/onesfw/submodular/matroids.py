"""Matroids whose `traced_base` runs under jit: uniform, partition, laminar. And what any matroid is to the library."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import NamedTuple, cast
from weakref import WeakValueDictionary

import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw.arguments import subsets, whole_number
from onesfw.sets.host import on_host
from onesfw.trees import Array, HostArray, as_array

Labels = Sequence[str] | Sequence[int] | HostArray
Capacities = int | Sequence[int] | Mapping[str, int] | Mapping[int, int] | HostArray
_numbers = itertools.count()
_numbered: WeakValueDictionary[int, Matroid] = WeakValueDictionary()


def base_of(weights: HostArray, number: HostArray) -> HostArray:
    """The base that the matroid of that number finds, as a 0/1 vector."""
    matroid = _numbered[int(number)]
    vertex = np.zeros(matroid.n)
    vertex[matroid.base(weights)] = 1.0
    return vertex


class Grouping(NamedTuple):
    """Each element's group, and how many of each group a base holds."""

    groups: HostArray
    capacities: HostArray


class Family(NamedTuple):
    """Sets of elements, any two of them disjoint or nested, smaller ones first, and how many of each may be chosen."""

    members: list[HostArray]
    capacities: HostArray


class Builder(abc.ABC):
    """An independent set that grows."""

    @abc.abstractmethod
    def add(self, i: int) -> bool:
        """Take i in if the set stays independent, and say whether it did."""


class Matroid(abc.ABC):
    """A family of independent sets over 0, …, n − 1, closed under subsets, in which a smaller set can always be
    extended by an element of a larger one.

    One method is required: `builder`, the empty set that grows element by element. `base`, `independent` and the others
    answer on the host, for NumPy arrays; `traced_base` is `base` under jit, compiled for uniform, partition and laminar
    matroids and a call back to the host for the others.

    Example:
        >>> from onesfw import submodular as sm
        >>> any_matroid = sm.PartitionMatroid(["a", "a", "b"], 1)
        >>> any_matroid.rank, any_matroid.independent([0, 1]), any_matroid.base([1.0, 2.0, 0.0]).tolist()
        (2, False, [1, 2])
    """

    n: int

    @abc.abstractmethod
    def builder(self) -> Builder:
        """The empty set, to be grown."""

    @property
    def grouping(self) -> Grouping | None:
        """The groups whose capacities every base fills, where nothing else makes a set independent; None otherwise.

        Any two elements of a group may then be exchanged: bases are found, merged and improved by group.
        """
        return None

    @property
    def family(self) -> Family | None:
        """The sets with a capacity, where nothing else makes a set independent; None otherwise. Pipage needs them."""
        return None

    @cached_property
    def rank(self) -> int:
        """The size of every base."""
        return int(self.base(np.zeros(self.n)).size)

    def independent(self, chosen: Iterable[int]) -> bool:
        """Whether a set of indices is independent; one that holds an element twice is not."""
        builder = self.builder()
        return all(builder.add(i) for i in self.elements(chosen))

    def elements(self, chosen: Iterable[int]) -> list[int]:
        """The indices as Python's integers, or an error where one is none of this matroid's elements."""
        indices = chosen.tolist() if isinstance(chosen, np.ndarray) else list(chosen)
        for place, i in enumerate(indices):
            if isinstance(i, bool) or not isinstance(i, int | np.integer):
                raise TypeError(f"a set must be given as a list of indices in 0..{self.n - 1}, got {i!r:.200} in it")
            if not 0 <= i < self.n:
                raise ValueError(f"a set of elements 0..{self.n - 1} cannot hold {i}")
            indices[place] = int(i)
        return indices

    def base(self, weights: HostArray) -> HostArray:
        """A base of the largest total weight, in increasing order of indices; ties go to the lowest index.

        Elements are taken by falling weight as long as the set stays independent (Rado 1957, Edmonds 1971). Negative
        weights are taken too: the answer is always a base.
        """
        builder = self.builder()
        order = np.argsort(-np.asarray(weights), kind="stable")
        return np.sort(np.array([i for i in order.tolist() if builder.add(i)], np.int64))

    def traced_base(self, weights: Array) -> Array:
        """`base` as a 0/1 vector, traceable: on the host unless a matroid says otherwise."""
        return on_host(base_of, weights, weights, jnp.int32(self.number))

    @cached_property
    def number(self) -> int:
        """What this matroid is called in compiled programs, which know callbacks only by their names."""
        number = next(_numbers)
        _numbered[number] = self
        return number

    def extends(self, chosen: list[int], i: int) -> bool:
        """Whether an independent set stays independent with i."""
        return self.independent([*chosen, i])

    def exchanges(self, chosen: set[int], i: int, j: int) -> bool:
        """Whether an independent set stays independent with j, which is outside, in the place of i."""
        return self.independent([*(chosen - {i}), j])

    def covers(self, x: Array) -> Array | None:
        """x(A) ≤ r(A) for the sets A that define the polytope, as a vector of slacks, or None where they are many."""
        return None


class UniformMatroid(Matroid):
    """Sets of at most k elements.

    Args:
        n: the number of elements.
        k: how many may be chosen.

    Raises:
        ValueError: where n or k is no positive whole number, or k exceeds n.

    Example:
        >>> from onesfw import submodular as sm
        >>> sm.UniformMatroid(4, 2).base([1.0, 5.0, 3.0, 4.0]).tolist()
        [1, 3]
    """

    def __init__(self, n: int, k: int) -> None:
        self.n = whole_number(n, "n", 1)
        self.k = whole_number(k, "k", 1)
        if self.k > self.n:
            raise ValueError(f"UniformMatroid: k = {k} elements cannot be chosen out of n = {n}; lower k")
        self.groups = np.zeros(self.n, np.int32)
        self.capacities = np.array([self.k])

    @property
    def grouping(self) -> Grouping:
        return Grouping(self.groups, self.capacities)

    @property
    def family(self) -> Family:
        return Family([np.arange(self.n)], self.capacities)

    def builder(self) -> Builder:
        return Counter(self.groups[:, None], self.capacities)

    def base(self, weights: HostArray) -> HostArray:
        return np.sort(np.argsort(-np.asarray(weights), kind="stable")[: self.k])

    def traced_base(self, weights: Array) -> Array:
        _, chosen = lax.top_k(weights, self.k)
        return jnp.zeros_like(weights).at[chosen].set(1.0)

    def extends(self, chosen: list[int], i: int) -> bool:
        return len(chosen) < self.k and i not in chosen

    def covers(self, x: Array) -> Array:
        return self.k - jnp.sum(x)[None]


class PartitionMatroid(Matroid):
    """Sets with at most capacities[g] elements of each group g.

    Args:
        groups: the group of each element: labels, all of them numbers or all of them strings.
        capacities: one number for all groups, one per group in the order of their sorted labels, or a dict by label.

    Raises:
        TypeError: where groups are no labels of one kind.
        ValueError: where a group has no capacity, or a capacity is no whole number.

    Example:
        >>> from onesfw import submodular as sm
        >>> one_each = sm.PartitionMatroid(["a", "b", "a", "b"], {"a": 1, "b": 1})
        >>> one_each.base([1.0, 5.0, 3.0, 4.0]).tolist()
        [1, 2]
    """

    def __init__(self, groups: Labels, capacities: Capacities) -> None:
        self.labels, codes = by_label(groups)
        self.n, self.groups = int(codes.size), codes.astype(np.int32)
        wanted = group_capacities(capacities, self.labels)
        self.capacities = np.minimum(wanted, np.bincount(codes, minlength=self.labels.size))

    @property
    def grouping(self) -> Grouping:
        return Grouping(self.groups, self.capacities)

    @property
    def family(self) -> Family:
        sizes = np.bincount(self.groups, minlength=self.capacities.size)
        return Family(np.split(np.argsort(self.groups, kind="stable"), np.cumsum(sizes)[:-1]), self.capacities)

    def builder(self) -> Builder:
        return Counter(self.groups[:, None], self.capacities)

    def base(self, weights: HostArray) -> HostArray:
        order = np.lexsort((np.arange(self.n), -np.asarray(weights), self.groups))
        return np.sort(order[self.places(np) < self.capacities[self.groups[order]]])

    def places(self, module: ModuleType) -> HostArray:
        """Each element's place in its group once the elements are sorted by group."""
        sizes = np.bincount(self.groups, minlength=self.capacities.size)
        starts = np.cumsum(sizes) - sizes
        return module.asarray(np.arange(self.n) - np.repeat(starts, sizes), np.int32)

    def traced_base(self, weights: Array) -> Array:
        order = jnp.lexsort((-weights, jnp.asarray(self.groups)))
        kept = self.places(jnp) < jnp.asarray(self.capacities, jnp.int32)[jnp.asarray(self.groups)[order]]
        return jnp.zeros_like(weights).at[order].set(kept.astype(weights.dtype))

    def extends(self, chosen: list[int], i: int) -> bool:
        group = self.groups[i]
        return i not in chosen and bool(np.sum(self.groups[chosen] == group) < self.capacities[group])

    def covers(self, x: Array) -> Array:
        sums = jnp.zeros(self.capacities.size, x.dtype).at[jnp.asarray(self.groups)].add(x)
        return jnp.asarray(self.capacities, x.dtype) - sums


class LaminarMatroid(Matroid):
    """Sets with at most capacities[q] elements of family[q], where any two sets of the family are disjoint or nested.

    `traced_base` is compiled, in O(n · sets).

    Args:
        n: the number of elements.
        family: lists of elements.
        capacities: one number per list.

    Raises:
        ValueError: where two sets overlap without one holding the other, or a capacity is missing.

    Example:
        >>> from onesfw import submodular as sm
        >>> nested = sm.LaminarMatroid(4, [[0, 1], [0, 1, 2, 3]], [1, 2])
        >>> nested.base([5.0, 4.0, 1.0, 0.0]).tolist()
        [0, 2]
    """

    def __init__(self, n: int, family: Iterable[Iterable[int]], capacities: Iterable[int]) -> None:
        self.n = whole_number(n, "n", 1)
        sets = subsets(family, self.n, "LaminarMatroid")
        limits = [whole_number(c, "capacities", 0) for c in capacities]
        if len(sets) != len(limits) or not sets:
            raise ValueError(
                f"LaminarMatroid: give one capacity per set of the family, got {len(sets)} sets and {len(limits)} "
                "capacities"
            )
        order = sorted(range(len(sets)), key=lambda q: len(sets[q]))  # smaller sets first: children before parents
        self.masks = np.zeros((len(sets), self.n), bool)
        for row, q in enumerate(order):
            self.masks[row, sets[q]] = True
        for a in range(len(sets)):
            for b in range(a):
                shared = int(np.sum(self.masks[a] & self.masks[b]))
                if 0 < shared < min(self.masks[a].sum(), self.masks[b].sum()):
                    raise ValueError(
                        f"LaminarMatroid: sets {order[b]} and {order[a]} of the family overlap without one holding "
                        "the other"
                    )
        self.capacities = np.minimum(np.array(limits)[order], self.masks.sum(1))
        self.holders = [np.flatnonzero(column) for column in self.masks.T]

    @property
    def family(self) -> Family:
        return Family([np.flatnonzero(mask) for mask in self.masks], self.capacities)

    def builder(self) -> Builder:
        return Counter(self.holders, self.capacities)

    def base(self, weights: HostArray) -> HostArray:
        order = np.argsort(-np.asarray(weights), kind="stable")
        kept = np.ones(self.n, bool)
        for mask, capacity in zip(self.masks[:, order], self.capacities, strict=True):
            kept &= ~mask | (np.cumsum(kept & mask) <= capacity)
        return np.sort(order[kept])

    def traced_base(self, weights: Array) -> Array:
        """Bottom up, each set of the family keeps the heaviest of what its children kept."""
        order = jnp.argsort(-weights, stable=True)
        masks = jnp.asarray(self.masks)[:, order]
        capacities = jnp.asarray(self.capacities, jnp.int32)

        def truncate(q: Array, kept: Array) -> Array:
            return kept & (~masks[q] | (jnp.cumsum(kept & masks[q]) <= capacities[q]))

        kept = lax.fori_loop(0, len(self.capacities), truncate, jnp.ones(self.n, bool))
        return jnp.zeros_like(weights).at[order].set(kept.astype(weights.dtype))

    def exchanges(self, chosen: set[int], i: int, j: int) -> bool:
        rows = self.holders[j]
        held = self.masks[rows[:, None], np.array(list(chosen))].sum(1) - self.masks[rows, i]
        return bool((held < self.capacities[rows]).all())

    def covers(self, x: Array) -> Array:
        return jnp.asarray(self.capacities, x.dtype) - jnp.asarray(self.masks, x.dtype) @ x


class Counter(Builder):
    """How many elements each set that has a capacity holds; holders[i] are the sets that hold element i."""

    def __init__(self, holders: Sequence[HostArray] | HostArray, capacities: HostArray) -> None:
        self.holders, self.capacities = holders, capacities
        self.held = np.zeros(capacities.size, np.int64)
        self.inside: set[int] = set()

    def add(self, i: int) -> bool:
        rows = self.holders[i]
        if i in self.inside or np.any(self.held[rows] >= self.capacities[rows]):
            return False
        self.held[rows] += 1
        self.inside.add(i)
        return True


def by_label(groups: Labels) -> tuple[HostArray, HostArray]:
    """The labels in order, and each element's place among them; an error where there is no order."""
    given = as_array(groups, "PartitionMatroid: groups")
    if given.ndim != 1 or given.size == 0:
        raise ValueError(f"PartitionMatroid: groups must hold one group per element, got shape {given.shape}")
    texts = [isinstance(label, str) for label in groups]
    try:
        if any(texts) and not all(texts):  # NumPy would turn a list's numbers into text
            raise TypeError
        return np.unique(given, return_inverse=True)
    except TypeError:
        raise TypeError(
            "PartitionMatroid: groups must be labels of one kind, all numbers or all strings, none of them missing; "
            "strings are made of anything by [str(g) for g in groups]"
        ) from None


def group_capacities(capacities: Capacities, labels: HostArray) -> HostArray:
    """A whole number per group, from one number, a list or a dict."""
    if isinstance(capacities, Mapping):
        missing = [label for label in labels.tolist() if label not in capacities]
        if missing:
            raise ValueError(f"PartitionMatroid: capacities has no entry for group {missing[0]!r}")
        values = [capacities[label] for label in labels.tolist()]
    elif np.ndim(capacities) == 0:
        values = [cast(int, capacities)] * labels.size
    else:
        values = list(cast(Sequence[int], capacities))
        if len(values) != labels.size:
            raise ValueError(
                f"PartitionMatroid: capacities must hold one number per group; there are {labels.size} groups and "
                f"{len(values)} numbers"
            )
    result = np.array([whole_number(v, "capacities", 0) for v in values])
    if not result.any():
        raise ValueError("PartitionMatroid: capacities are all 0: nothing may be chosen")
    return result
