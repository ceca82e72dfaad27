"""Balls whose vertices are sparse: k coordinates, or one group of coordinates, at a time."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from onesfw.sets.base import CentredSet
from onesfw.sets.boxes import project_knapsack
from onesfw.sets.parameters import Parameter, Shape, as_shape, positive, within
from onesfw.sets.simplices import project_simplex
from onesfw.sets.whole_calls import whole_call
from onesfw.trees import Array, HostArray


@whole_call
def k_largest(values: Array, like: Array) -> Array:
    """Which are the k largest of values ≥ 0, ties to the lowest index; k is the length of `like`."""
    _, chosen = lax.top_k(values, like.size)
    return jnp.zeros(values.shape, bool).at[chosen].set(True)


@whole_call
def best_group(terms: Array, groups: Array, zeros: Array) -> Array:
    """Which coordinates lie in the group with the largest sum of terms ≥ 0, the first of equals; a zero a group."""
    return jnp.argmax(zeros.at[groups].add(terms)) == groups


class KSparse(CentredSet):
    """{x : ‖x‖_∞ ≤ bound, ‖x‖₁ ≤ k · bound}: the convex hull of the k-sparse vectors with entries ±bound.

    lmo(d) = −bound · sign(d_i) on the k coordinates with the largest |d_i|, ties to the lowest index. O(d log k).

    Args:
        k: how many coordinates of a vertex are not 0.
        bound: their size, positive.
        shape: of x, an integer for a vector; None takes it from x0.

    Raises:
        TypeError: where k is no whole number, or bound no number.
        ValueError: where k is below 1, or bound not positive and finite.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> fw.sets.KSparse(2, 1.0).lmo(jnp.array([0.1, -3.0, 2.0])).tolist()
        [0.0, 1.0, -1.0]
    """

    k: int = eqx.field(static=True)
    bound: Parameter
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, k: int, bound: float, shape: int | Shape | None = None) -> None:
        if isinstance(k, bool) or not isinstance(k, int | np.integer):
            raise TypeError(f"KSparse: k must be a whole number of coordinates, got {k!r}")
        if k < 1:
            raise ValueError(f"KSparse: k must be at least 1, got {k!r}")
        self.k = int(k)
        self.bound = positive(bound, "KSparse", "bound")
        self.shape = as_shape(shape, "KSparse")

    def lmo_vector(self, d: Array) -> Array:
        vertex = jnp.where(d > 0, -self.bound, self.bound)
        if self.k >= d.size:
            return vertex
        return jnp.where(k_largest(jnp.abs(d), jnp.zeros(self.k)), vertex, 0.0)

    def contains_vector(self, x: Array, tol: float) -> Array:
        size = jnp.abs(x)
        return within(jnp.max(size), self.bound, tol) & within(jnp.sum(size), min(self.k, x.size) * self.bound, tol)

    def project_vector(self, y: Array) -> Array:
        return jnp.sign(y) * project_knapsack(
            jnp.abs(y), jnp.ones_like(y), min(self.k, y.size) * self.bound, self.bound
        )

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = bound · √min(k, d)."""
        nonzeros = self.k if self.shape is None else min(self.k, math.prod(self.shape))
        return float(self.bound) * nonzeros**0.5


class GroupBall(CentredSet):
    """{x : Σ_g ‖x_g‖ ≤ radius} over groups g of coordinates, ‖·‖ the l2 or the l∞ norm.

    `groups` holds a group's number for every coordinate of x. lmo(d) lives on the group whose dual norm ‖d_g‖_* is the
    largest (the first of equals): −radius · d_g/‖d_g‖₂ for "l2", −radius · sign(d_g) for "linf". O(d).

    Args:
        groups: a group's number, from 0 on, for every coordinate of x.
        radius: of the ball, positive.
        norm: "l2" or "linf", within a group.
        shape: of x; it follows from groups, and may be left out.

    Raises:
        TypeError: where groups hold something else than whole numbers.
        ValueError: where a group's number is negative, the norm unknown, or radius not positive and finite.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> ball = fw.sets.GroupBall([0, 0, 1], radius=5.0)
        >>> [round(v, 4) for v in ball.lmo(jnp.array([3.0, 4.0, 1.0])).tolist()]
        [-3.0, -4.0, -0.0]
    """

    groups: HostArray
    count: int = eqx.field(static=True)
    bound: Parameter
    norm: str = eqx.field(static=True)
    shape: Shape = eqx.field(static=True)

    def __init__(
        self, groups: npt.ArrayLike, radius: float, norm: str = "l2", shape: int | Shape | None = None
    ) -> None:
        try:
            groups = np.asarray(groups)
        except (TypeError, ValueError):
            raise TypeError(f"GroupBall: groups must hold whole numbers, one per coordinate, got {groups!r}") from None
        if groups.dtype.kind not in "iu":
            raise TypeError(
                f"GroupBall: groups must hold whole numbers, one per coordinate, got {groups.dtype} entries"
            )
        if groups.ndim == 0 or groups.size == 0 or groups.min() < 0:
            raise ValueError("GroupBall: groups must be an array of numbers from 0 on, one per coordinate of x")
        if not isinstance(norm, str) or norm not in ("l2", "linf"):
            raise ValueError(f"GroupBall: norm must be 'l2' or 'linf', got {norm!r}")
        if shape is not None and as_shape(shape, "GroupBall") != groups.shape:
            raise ValueError(f"GroupBall: groups have shape {groups.shape}, but shape is {shape}: leave shape= out")
        names, numbered = np.unique(groups, return_inverse=True)  # a group's number may be large, their count is not
        self.groups = numbered.ravel().astype(np.int32)
        self.count = names.size
        self.bound = positive(radius, "GroupBall", "radius")
        self.norm = norm
        self.shape = groups.shape

    def sum(self, values: Array) -> Array:
        """Sums within the groups."""
        return jax.ops.segment_sum(values, self.groups, self.count)

    def norms(self, x: Array) -> Array:
        """‖x_g‖ for every group, 0 for an empty one; no square under- or overflows."""
        if self.norm == "linf":
            return jnp.maximum(jax.ops.segment_max(jnp.abs(x), self.groups, self.count), 0.0)
        largest = jnp.max(jnp.abs(x))
        scale = jnp.where(largest > 0, largest, 1.0)
        return scale * jnp.sqrt(self.sum((x / scale) ** 2))

    def lmo_vector(self, d: Array) -> Array:
        largest = jnp.max(jnp.abs(d))
        d = d / jnp.where(largest > 0, largest, 1.0)
        terms = jnp.square(d) if self.norm == "l2" else jnp.abs(d)
        here = best_group(terms, self.groups, jnp.zeros(self.count, d.dtype)).astype(d.dtype)
        if self.norm == "linf":
            return self.bound * here * jnp.where(d > 0, -1.0, 1.0)
        # In the zero direction the chosen group's constant vector stands in for d.
        d = here * jnp.where(largest > 0, d, 1.0)
        return -self.bound * d / jnp.linalg.norm(d)

    def contains_vector(self, x: Array, tol: float) -> Array:
        return within(jnp.sum(self.norms(x)), self.bound, tol)

    def project_vector(self, y: Array) -> Array:
        norms = self.norms(y)
        inside = jnp.sum(norms) <= self.bound
        if self.norm == "linf":
            return jnp.where(inside, y, self.project_max(y))
        kept = project_simplex(norms, self.bound) / jnp.where(norms > 0, norms, 1.0)
        return jnp.where(inside, y, y * kept[self.groups])

    def project_max(self, y: Array) -> Array:
        """x_i = sign(y_i) min(|y_i|, μ_g), each group losing the same θ = Σ_i max(|y_i| − μ_g, 0).

        Quattoni et al. (2009). For a group's entries sorted, a_1 ≥ a_2 ≥ …, and S_j = a_1 + … + a_j,
        μ_g(θ) = max(0, max_j (S_j − θ)/j); θ by bisection.
        """
        size = jnp.abs(y)
        order = jnp.lexsort((-size, self.groups))
        groups, falling = jnp.asarray(self.groups)[order], size[order]
        places = lax.iota(jnp.int32, y.size)
        first = jax.ops.segment_min(places, groups, self.count)[groups]
        running = jnp.cumsum(falling)
        sums = running - (running - falling)[first]
        ranks = (places - first + 1).astype(y.dtype)

        def levels(theta: Array) -> Array:
            return jnp.maximum(jax.ops.segment_max((sums - theta) / ranks, groups, self.count), 0.0)

        def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = low / 2 + high / 2
            above = jnp.sum(levels(middle)) > self.bound
            return jnp.where(above, middle, low), jnp.where(above, high, middle)

        ends = (jnp.zeros((), y.dtype), jnp.max(sums))
        _, theta = lax.fori_loop(0, jnp.finfo(y.dtype).nmant + 10, halve, ends)
        return jnp.sign(y) * jnp.minimum(size, levels(theta)[self.groups])

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = radius for "l2", radius · √(size of the largest group) for "linf"."""
        largest = int(np.bincount(self.groups).max())
        return float(self.bound) * (largest**0.5 if self.norm == "linf" else 1.0)
