"""Greedy baselines: plain, lazy and stochastic, on the same functions and matroids."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from onesfw.arguments import choose, number, whole_number
from onesfw.engine.keys import Key, generator, seed_of
from onesfw.submodular.base import Function, State
from onesfw.submodular.matroids import Builder, Matroid
from onesfw.trees import HostArray

METHODS = ("lazy", "plain", "stochastic")


@dataclass(frozen=True)
class GreedyResult:
    """What a greedy method chose, in that order, and what it asked.

    Args:
        indices: the chosen elements, in the order they were taken.
        value: f of the whole set: for `Influence`, on the reverse-reachable sets it was chosen on, hence too high.
        gains: what each element added when it was chosen.
        evaluations: how many marginals were computed.

    Example:
        >>> from onesfw import submodular as sm
        >>> found = sm.greedy(sm.Coverage([[1, 0], [1, 1]]), sm.UniformMatroid(2, 1))
        >>> found.indices.tolist(), found.gains.tolist(), found.evaluations
        ([1], [2.0], 3)
    """

    indices: HostArray
    value: float
    gains: HostArray
    evaluations: int


def greedy(
    function: Function,
    matroid: Matroid,
    method: str = "lazy",
    *,
    epsilon: float = 0.1,
    sets: int = 100_000,
    key: Key = 0,
) -> GreedyResult:
    """Add the element of the largest marginal as long as the set can grow and stay independent.

    At least 1 − 1/e of the optimum for a cardinality constraint (Nemhauser, Wolsey and Fisher 1978), 1/2 for other
    matroids (Fisher, Nemhauser and Wolsey 1978).

    Args:
        function: a set function from `onesfw.submodular`.
        matroid: a matroid over the same elements.
        method: "lazy" reuses old marginals as upper bounds (Minoux 1978), with the same answer as "plain";
            "stochastic" looks at (n/k) ln(1/epsilon) random elements a round (Mirzasoleiman et al. 2015).
        epsilon: of "stochastic".
        sets: reverse-reachable sets that stand for an `Influence`; not more than 5e7 nodes of them are stored.
        key: an integer seed or a JAX key, for "stochastic" and for `sets`.

    Returns:
        The chosen elements in the order they were taken, with their gains.

    Raises:
        TypeError: where function or matroid is none.
        ValueError: where they speak of different elements, or method, epsilon or sets is out of range.

    Example:
        >>> from onesfw import submodular as sm
        >>> found = sm.greedy(sm.Coverage([[1, 1, 0], [0, 1, 1], [0, 0, 1]]), sm.UniformMatroid(3, 2))
        >>> found.indices.tolist(), found.value
        ([0, 1], 3.0)
    """
    choose(method, METHODS, "method")
    check_pair(function, matroid)
    function = function.sampled(whole_number(sets, "sets", 1), seed_of(key, 1))
    state, builder = function.state(), matroid.builder()
    if method == "lazy":
        return lazy(state, builder, matroid.n)
    if method == "plain":
        return plain(state, builder, matroid.n)
    share = number(epsilon, "epsilon", 0, strict=True)
    if share >= 1:
        raise ValueError(f"epsilon must lie in (0, 1), got {epsilon!r}")
    size = max(1, math.ceil(matroid.n / max(1, matroid.rank) * math.log(1 / share)))
    return stochastic(state, builder, matroid.n, size, generator(key, 2))


def check_pair(function: object, matroid: object) -> None:
    """Raise an error where the two are not what they should be, or speak of different elements."""
    if not isinstance(function, Function):
        raise TypeError(
            "function must be a set function from onesfw.submodular, such as FacilityLocation(similarity); wrap your "
            f"own as SetFunction(value, n); got {getattr(function, '__name__', repr(function)):.200}"
        )
    if not isinstance(matroid, Matroid):
        raise TypeError(
            f"matroid must be a matroid from onesfw.submodular, such as UniformMatroid({function.n}, k), got "
            f"{getattr(matroid, '__name__', repr(matroid)):.200}"
        )
    if function.n != matroid.n:
        raise ValueError(
            f"function has {function.n} elements and matroid {matroid.n}: build both over the same elements"
        )


def lazy(state: State, builder: Builder, n: int) -> GreedyResult:
    """A heap of marginals, each at least as large as the true one; only the top is computed anew."""
    first = state.gains(np.arange(n))
    heap = [(-gain, i, 0) for i, gain in enumerate(first.tolist())]
    heapq.heapify(heap)
    gains: list[float] = []
    evaluations = n
    while heap:
        gain, i, age = heap[0]
        if age == len(gains):
            heapq.heappop(heap)
            if builder.add(i):  # what cannot be added now never can
                state.add(i)
                gains.append(-gain)
            continue
        fresh = float(state.gains(np.array([i]))[0])
        evaluations += 1
        heapq.heapreplace(heap, (-fresh, i, len(gains)))
    return GreedyResult(np.array(state.chosen, np.int64), state.value, np.array(gains), evaluations)


def plain(state: State, builder: Builder, n: int) -> GreedyResult:
    """All marginals in every round."""
    left = np.arange(n)
    gains: list[float] = []
    evaluations = 0
    while left.size:
        measured = state.gains(left)
        evaluations += left.size
        best = int(np.argmax(measured))
        if builder.add(int(left[best])):
            state.add(int(left[best]))
            gains.append(float(measured[best]))
        left = np.delete(left, best)
    return GreedyResult(np.array(state.chosen, np.int64), state.value, np.array(gains), evaluations)


def stochastic(state: State, builder: Builder, n: int, size: int, rng: np.random.Generator) -> GreedyResult:
    """The best of `size` random elements in every round; those that cannot be added are forgotten."""
    order = np.arange(n)  # order[:count] are the elements left
    count = n
    gains: list[float] = []
    evaluations = 0
    while count:
        drawn = min(size, count)
        for p in range(drawn):  # Fisher and Yates: the sample ends up in front
            other = int(rng.integers(p, count))
            order[p], order[other] = order[other], order[p]
        measured = state.gains(order[:drawn])
        evaluations += drawn
        taken = drawn
        for taken in np.argsort(-measured, kind="stable").tolist():
            if builder.add(int(order[taken])):
                state.add(int(order[taken]))
                gains.append(float(measured[taken]))
                break
        else:  # none of them can be added: forget all
            order[:drawn], order[count - drawn : count] = order[count - drawn : count].copy(), order[:drawn].copy()
            count -= drawn
            continue
        count -= 1
        order[taken], order[count] = order[count], order[taken]
    return GreedyResult(np.array(state.chosen, np.int64), state.value, np.array(gains), evaluations)
