"""The polytope of a matroid's bases."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from onesfw.sets.base import VectorSet, near
from onesfw.sets.parameters import Shape
from onesfw.trees import Array, HostArray, Tree


@runtime_checkable
class MatroidLike(Protocol):
    """What a matroid must offer here; those of `onesfw.submodular` do."""

    n: int

    @property
    def rank(self) -> int:
        """The size of every base."""

    def traced_base(self, weights: Array) -> Array:
        """A base of the largest total weight as a 0/1 vector."""

    def covers(self, x: Array) -> Array | None:
        """The slacks r(A) − x(A) that decide membership, or None where they are too many."""


@runtime_checkable
class GroupedMatroid(Protocol):
    """What uniform and partition matroids have besides: at most capacities[g] elements of group g."""

    groups: HostArray
    capacities: HostArray


class MatroidPolytope(VectorSet):
    """conv{1_B : B a base of the matroid} = {x ≥ 0 : x(A) ≤ r(A) for all A, Σx = r}.

    lmo(d) = the base of least total d, by the greedy rule (Edmonds 1971), ties to the lowest index; always a base,
    whatever the signs of d: maxima of monotone functions over the independent sets lie here. Under jit for uniform
    (O(n log k)), partition (O(n log n)) and laminar matroids (O(n · family)), on the host for the others. Uniform and
    partition matroids have a projection, O(n) a bisection step.

    Args:
        matroid: from `onesfw.submodular`, or whatever has its `n`, `rank`, `traced_base` and `covers`.

    Raises:
        TypeError: where matroid is no matroid.
        ValueError: where its rank is 0.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> polytope = fw.sets.MatroidPolytope(fw.submodular.UniformMatroid(4, 2))
        >>> polytope.lmo(jnp.array([3.0, -1.0, 0.0, 2.0])).tolist()
        [0.0, 1.0, 1.0, 0.0]
    """

    matroid: MatroidLike = eqx.field(static=True)
    size: int = eqx.field(static=True)
    shape: Shape = eqx.field(static=True)

    def __init__(self, matroid: MatroidLike) -> None:
        if not isinstance(matroid, MatroidLike):
            raise TypeError(
                "MatroidPolytope: matroid must come from onesfw.submodular, such as UniformMatroid(n, k), got "
                f"{getattr(matroid, '__name__', repr(matroid))}"
            )
        self.matroid, self.size, self.shape = matroid, matroid.rank, (matroid.n,)
        if self.size == 0:
            raise ValueError("MatroidPolytope: the matroid has rank 0: no element may be chosen")

    def lmo_vector(self, d: Array) -> Array:
        return self.matroid.traced_base(-d)

    def contains_vector(self, x: Array, tol: float) -> Array:
        slack = tol * max(1, self.size)
        inside = jnp.all(x >= -tol) & (jnp.abs(jnp.sum(x) - self.size) <= slack)
        rooms = self.matroid.covers(x)
        if rooms is None:
            return inside & near(self, x, jnp.asarray(tol, x.dtype))
        return inside & jnp.all(x <= 1 + tol) & jnp.all(rooms >= -slack)

    def project_vector(self, y: Array) -> Array:
        if not isinstance(self.matroid, GroupedMatroid):
            raise NotImplementedError(
                "MatroidPolytope has a projection for uniform and partition matroids only, not for a "
                f"{type(self.matroid).__name__}; choose an algorithm that only needs `lmo`"
            )
        return project_groups(y, self.matroid.groups, self.matroid.capacities)

    @property
    def diameter(self) -> float:
        """√(2 min(r, n − r)) ≥ max ‖x − y‖₂, exact where two bases differ in as many elements as sizes allow."""
        return math.sqrt(2 * min(self.size, self.shape[0] - self.size))

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = √r."""
        return math.sqrt(self.size)

    def in_box(self, low: float, high: float, like: Tree | None = None) -> bool:
        """At once for boxes around [0, 1]ⁿ; others are compared with `bounds`."""
        return (low <= 0 and high >= 1) or VectorSet.in_box(self, low, high, like)


def project_groups(y: Array, groups: HostArray, capacities: HostArray) -> Array:
    """argmin of ‖x − y‖₂ over {0 ≤ x ≤ 1, the entries of group g add up to capacities[g]}: x = clip(y − θ_g, 0, 1).

    θ_g is enclosed by bisection until no entry changes sides, then solved for on the entries strictly between 0 and 1.
    """
    place, wanted = jnp.asarray(groups), jnp.asarray(capacities, y.dtype)

    def total(values: Array) -> Array:
        return jnp.zeros(wanted.size, y.dtype).at[place].add(values)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = low + (high - low) / 2
        full = total(jnp.clip(y - middle[place], 0.0, 1.0)) > wanted
        return jnp.where(full, middle, low), jnp.where(full, high, middle)

    ends = jnp.full_like(wanted, jnp.min(y) - 1), jnp.full_like(wanted, jnp.max(y))
    low, high = lax.fori_loop(0, jnp.finfo(y.dtype).nmant + 8, halve, ends)
    shifted = y - (low + (high - low) / 2)[place]
    moving = (shifted > 0) & (shifted < 1)
    count, held = total(moving.astype(y.dtype)), total((shifted >= 1).astype(y.dtype))
    theta = (total(jnp.where(moving, y, 0.0)) + held - wanted) / jnp.maximum(count, 1.0)
    exact = jnp.clip(y - theta[place], 0.0, 1.0)
    return jnp.where((count > 0)[place], exact, jnp.clip(shifted, 0.0, 1.0))
