"""Simplices: non-negative vectors with a fixed or a bounded sum."""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.sets.base import VectorSet
from onesfw.sets.boxes import fill_knapsack
from onesfw.sets.parameters import Parameter, Shape, as_shape, positive, within
from onesfw.sets.whole_calls import whole_call
from onesfw.trees import Array, Tree

FOLD = 8  # parts of a vector that are reduced to one by elementwise operations, which vectorise best


def one_hot_at_max(values: Array, height: Array) -> Array:
    """`height` at the first largest entry of `values`, zero elsewhere."""
    return jnp.where(lax.iota(jnp.int32, values.size) == first_largest(values), height, jnp.zeros_like(height))


@whole_call
def first_largest(values: Array) -> Array:
    """The place of the first largest entry; of a NaN, past the end.

    The maximum is taken first and matched afterwards, both by folding: on a CPU `argmax` does not vectorise at all and
    XLA's reductions do badly (d = 20,000: 81, 12 and 4 µs).
    """
    places = lax.iota(jnp.int32, values.size)
    largest = folded(jnp.maximum, jnp.max, values)
    return folded(jnp.minimum, jnp.min, jnp.where(values == largest, places, values.size))


def folded(combine: Callable[[Array, Array], Array], reduced: Callable[[Array], Array], values: Array) -> Array:
    """`reduced(values)` of a vector, for a reduction by `combine`."""
    length, rest = divmod(values.size, FOLD)
    if length < FOLD:
        return reduced(values)
    parts = [values[i * length : (i + 1) * length] for i in range(FOLD)]
    while len(parts) > 1:
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    found = folded(combine, reduced, parts[0])
    return combine(found, reduced(values[-rest:])) if rest else found


def project_simplex(y: Array, total: Array) -> Array:
    """argmin over {x ≥ 0, Σx = total} of ‖x − y‖₂: x = max(y − θ, 0), θ from the sorted entries. O(d log d).

    Held, Wolfe and Crowder (1974); Duchi et al. (2008), figure 1.
    """
    shifted = y - jnp.max(y)  # θ moves along with y, and the sums below cancel less
    falling = -jnp.sort(-shifted)
    excess = jnp.cumsum(falling) - total
    support = jnp.sum(falling * (1 + lax.iota(y.dtype, y.size)) > excess)
    return jnp.maximum(shifted - excess[support - 1] / support, 0.0)


class Simplex(VectorSet):
    """{x : x ≥ 0, Σx = total}.

    lmo(d) = total · e_i, i the first coordinate with the smallest d_i. O(d).

    Args:
        total: Σx, positive.
        shape: of x, an integer for a vector; None takes it from x0.

    Raises:
        TypeError: where total is no number.
        ValueError: where total is not positive and finite, or shape holds no positive integers.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> fw.sets.Simplex(shape=3).lmo(jnp.array([2.0, -1.0, 0.0])).tolist()
        [0.0, 1.0, 0.0]
    """

    total: Parameter
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, total: float = 1.0, shape: int | Shape | None = None) -> None:
        self.total = positive(total, "Simplex", "total")
        self.shape = as_shape(shape, "Simplex")

    def lmo_vector(self, d: Array) -> Array:
        return one_hot_at_max(-d, self.total)

    def contains_vector(self, x: Array, tol: float) -> Array:
        total = jnp.sum(x)
        return jnp.all(x >= -tol) & within(total, self.total, tol) & within(-total, -self.total, tol)

    def project_vector(self, y: Array) -> Array:
        return project_simplex(y, self.total)

    def start_vector(self, like: Array) -> Array:
        return jnp.full_like(like, self.total / like.size)

    def bounds_vector(self, like: Array) -> tuple[Array, Array]:
        lower = 0.0 if like.size > 1 else self.total
        return jnp.full_like(like, lower), jnp.full_like(like, self.total)

    @property
    def diameter(self) -> float:
        """√2 · total; 0 for the single point in one dimension."""
        return 0.0 if self.shape is not None and math.prod(self.shape) == 1 else float(self.total) * 2**0.5

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = total."""
        return float(self.total)


class SubSimplex(VectorSet):
    """{x : x ≥ 0, Σx ≤ total}.

    lmo(d) = total · e_i, i the first coordinate with the smallest d_i, or 0 when no d_i is negative. O(d).

    Args:
        total: the largest Σx, positive.
        shape: of x, an integer for a vector; None takes it from x0.

    Raises:
        TypeError: where total is no number.
        ValueError: where total is not positive and finite, or shape holds no positive integers.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> fw.sets.SubSimplex(2.0).lmo(jnp.array([1.0, 3.0])).tolist()
        [0.0, 0.0]
    """

    total: Parameter
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, total: float = 1.0, shape: int | Shape | None = None) -> None:
        self.total = positive(total, "SubSimplex", "total")
        self.shape = as_shape(shape, "SubSimplex")

    def lmo_vector(self, d: Array) -> Array:
        return one_hot_at_max(-d, jnp.where(d < 0, self.total, 0.0))

    def lmo_below(self, d: Tree, room: Tree) -> Tree:
        """By falling −d_i while the total lasts, each coordinate up to its room."""
        vector, unravel = self.as_vector(d)
        total = jnp.asarray(self.total, vector.dtype)
        return unravel(fill_knapsack(-vector, jnp.ones_like(vector), total, trees.ravel(room)[0]))

    def contains_vector(self, x: Array, tol: float) -> Array:
        return jnp.all(x >= -tol) & within(jnp.sum(x), self.total, tol)

    def project_vector(self, y: Array) -> Array:
        clipped = jnp.maximum(y, 0.0)
        return jnp.where(jnp.sum(clipped) <= self.total, clipped, project_simplex(y, self.total))

    def start_vector(self, like: Array) -> Array:
        return jnp.zeros_like(like)

    def bounds_vector(self, like: Array) -> tuple[Array, Array]:
        return jnp.zeros_like(like), jnp.full_like(like, self.total)

    @property
    def diameter(self) -> float:
        """√2 · total; total in one dimension."""
        alone = self.shape is not None and math.prod(self.shape) == 1
        return float(self.total) * (1.0 if alone else 2**0.5)

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = total."""
        return float(self.total)
