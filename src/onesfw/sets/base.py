"""What a convex set is to the library: a linear minimisation oracle, and what can be derived from it.

A new set needs one method, `lmo`. Everything else has a default that is correct though slow: the box around K by
2d oracle calls, membership by minimising the distance to x over K.
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from onesfw import trees
from onesfw.trees import Array, Tree

Shape = tuple[int, ...]


class ConvexSet(eqx.Module):
    """A compact convex set K, known through `lmo(d)` = argmin over v in K of ⟨d, v⟩."""

    @abc.abstractmethod
    def lmo(self, d: Tree) -> Tree:
        """A vertex of K that minimises ⟨d, v⟩: the linear minimisation oracle."""

    def lmo_memory(self, like: Tree) -> Tree:
        """What `lmo_from` remembers between calls; nothing unless a set says otherwise."""
        return ()

    def lmo_from(self, d: Tree, memory: Tree) -> tuple[Tree, Tree]:
        """`lmo(d)` that may start from what the last call learnt; returns the vertex and the new memory."""
        return self.lmo(d), memory

    def template(self) -> Tree | None:
        """The shapes of K's members as a tree of tuples, or None where x0 must tell."""
        return None

    def start(self, like: Tree) -> Tree:
        """A member of K in the shapes and dtypes of `like`."""
        return self.lmo(trees.zeros_like(like))

    def project(self, y: Tree) -> Tree:
        """argmin over x in K of ‖x − y‖₂."""
        raise NotImplementedError(f"{type(self).__name__} has no projection; choose an algorithm that only needs `lmo`")

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The smallest box that contains K, coordinate by coordinate, from 2d calls of the oracle."""
        zero, unravel = trees.ravel(trees.zeros_like(known(self, like)))
        axes = jnp.eye(zero.size, dtype=zero.dtype)

        def extent(sign: float) -> Tree:
            def along(axis: Array) -> Array:
                return jnp.sum(axis * trees.ravel(self.lmo(unravel(sign * axis)))[0])

            return unravel(jax.lax.map(along, axes))

        return extent(1.0), extent(-1.0)

    def contains(self, x: Tree, tol: float = 1e-6) -> Any:
        """Whether x lies in K up to `tol`, in units of max(1, the size of what bounds K).

        The default minimises ½‖y − x‖² over y in K by Frank-Wolfe with exact line search. It stops inside when the
        distance is below `tol`, and outside when the gap proves that the distance cannot come down to it.
        """
        x = jax.tree.map(jnp.asarray, x)
        size = 1.0 + jnp.sqrt(trees.squared_norm(self.start(x)))

        def undecided(state: tuple[Array, Tree, Array, Array]) -> Array:
            count, _, distance, gap = state
            outside = distance * distance - gap > (tol * size) ** 2
            return (count < 10_000) & (distance > tol * size) & ~outside

        def improve(state: tuple[Array, Tree, Array, Array]) -> tuple[Array, Tree, Array, Array]:
            count, y, _, _ = state
            gradient = trees.subtract(y, x)
            towards = trees.subtract(self.lmo(gradient), y)
            gap = -trees.dot(gradient, towards)
            length = jnp.clip(gap / jnp.maximum(trees.squared_norm(towards), 1e-30), 0.0, 1.0)
            y = trees.add(y, trees.scale(length, towards))
            return count + 1, y, jnp.sqrt(trees.squared_norm(gradient)), 2 * gap

        infinity = jnp.asarray(jnp.inf, trees.dtype_of(x))
        state = (jnp.asarray(0), self.start(x), infinity, infinity)
        _, _, distance, _ = jax.lax.while_loop(undecided, improve, state)
        return trees.all_finite(x) & (distance <= tol * size)

    @property
    def diameter(self) -> float:
        """An upper bound on max ‖x − y‖₂ over K, exact where a set knows it: here the diagonal of the box around K."""
        lower, upper = self.bounds()
        return float(jnp.sqrt(trees.squared_norm(trees.subtract(upper, lower))))

    @property
    def radius(self) -> float:
        """An upper bound on max ‖x‖₂ over K (the paper's R), exact where a set knows it."""
        lower, upper = self.bounds()
        return float(jnp.sqrt(trees.squared_norm(jax.tree.map(lambda a, b: jnp.maximum(abs(a), abs(b)), lower, upper))))

    def nonnegative(self, like: Tree) -> bool:
        """Whether every member of K has only non-negative entries."""
        lower, _ = self.bounds(like)
        return all(bool(jnp.all(leaf >= 0)) for leaf in jax.tree.leaves(lower))


class VectorSet(ConvexSet):
    """A set that treats the whole pytree x as one vector; subclasses are written for vectors.

    The parameters (radii, bounds, costs) are array leaves kept in float64 and cast to x's dtype at every call.
    """

    shape: eqx.AbstractVar[Shape | None]

    @abc.abstractmethod
    def lmo_vector(self, d: Array) -> Array:
        """`lmo` on a vector."""

    @abc.abstractmethod
    def contains_vector(self, x: Array, tol: float) -> Array:
        """`contains` on a finite vector."""

    def project_vector(self, y: Array) -> Array:
        """`project` on a vector."""
        raise NotImplementedError(f"{type(self).__name__} has no projection; choose an algorithm that only needs `lmo`")

    def start_vector(self, like: Array) -> Array:
        """`start` on a vector; the default is a vertex."""
        return self.lmo_vector(jnp.zeros_like(like))

    def lmo(self, d: Tree) -> Tree:
        """A vertex of K that minimises ⟨d, v⟩: the linear minimisation oracle."""
        vector, unravel = trees.ravel(d)
        return unravel(trees.cast(self, vector.dtype).lmo_vector(vector))

    def contains(self, x: Tree, tol: float = 1e-6) -> Any:
        """Whether x lies in K: no constraint is violated by more than tol · max(1, its own size)."""
        vector, _ = trees.ravel(x)
        return jnp.all(jnp.isfinite(vector)) & trees.cast(self, vector.dtype).contains_vector(vector, tol)

    def project(self, y: Tree) -> Tree:
        """argmin over x in K of ‖x − y‖₂."""
        vector, unravel = trees.ravel(y)
        return unravel(trees.cast(self, vector.dtype).project_vector(vector))

    def start(self, like: Tree) -> Tree:
        """A member of K in the shapes and dtypes of `like`."""
        vector, unravel = trees.ravel(trees.zeros_like(like))
        return unravel(trees.cast(self, vector.dtype).start_vector(vector))

    def template(self) -> Tree | None:
        """The shapes of K's members as a tree of tuples, or None where x0 must tell."""
        return self.shape

    @property
    def dimension(self) -> int:
        """The number of coordinates; raises where the shape is not known yet."""
        return sum(leaf.size for leaf in jax.tree.leaves(known(self, None)))


def known(constraint: ConvexSet, like: Tree | None) -> Tree:
    """`like`, or else the set's own shapes; a sentence where neither is there."""
    if like is not None:
        return like
    template = constraint.template()
    if template is None:
        raise TypeError(
            f"{type(constraint).__name__} does not know its shape: pass shape= to the set, or x0= to the solver"
        )
    return jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, jnp.float32), template, is_leaf=is_shape)


def is_shape(node: Any) -> bool:
    """Whether a node of a template is a shape: a tuple of integers."""
    return isinstance(node, tuple) and all(isinstance(size, int) for size in node)


def as_shape(shape: int | tuple[int, ...] | None, name: str) -> Shape | None:
    """A shape argument in one form; an integer is a vector's length."""
    if shape is None:
        return None
    sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if not all(isinstance(size, int | np.integer) and size >= 1 for size in sizes):
        raise ValueError(f"{name}: shape must hold positive integers, got {shape!r}")
    return tuple(int(size) for size in sizes)


def positive(value: Any, name: str, what: str) -> np.ndarray:
    """A positive finite number as an array leaf, or a sentence that names the argument."""
    try:
        number = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: {what} must be a number, got {value!r}") from None
    if number.ndim != 0:
        raise ValueError(f"{name}: {what} must be one number, got an array of shape {number.shape}")
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name}: {what} must be positive and finite, got {value!r}")
    return number


def within(value: Any, bound: Any, tol: float) -> Any:
    """value ≤ bound up to tol · max(1, |bound|)."""
    return value <= bound + tol * jnp.maximum(1.0, jnp.abs(bound))
