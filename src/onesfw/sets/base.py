"""What a convex set is to the library: a linear minimisation oracle, and what can be derived from it.

A new set needs one method, `lmo`. Everything else has a default that is correct though slow: the box around K by
2d oracle calls, membership by Wolfe's nearest-point algorithm.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from onesfw import trees
from onesfw.sets.membership import within_distance
from onesfw.sets.parameters import Parameter, Shape
from onesfw.trees import Array, Tree


class ConvexSet(eqx.Module):
    """A compact convex set K, known through `lmo(d)` = argmin over v in K of ⟨d, v⟩: what a new set subclasses.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> class Segment(fw.sets.ConvexSet):
        ...     def lmo(self, d):  # between (0, 0) and (1, 1)
        ...         return jnp.where(jnp.sum(d) < 0, jnp.ones_like(d), jnp.zeros_like(d))
        >>> Segment().lmo(jnp.array([1.0, -3.0])).tolist()
        [1.0, 1.0]
        >>> bool(Segment().contains(jnp.array([0.5, 0.5]))), bool(Segment().contains(jnp.array([0.5, 0.0])))
        (True, False)
    """

    @abc.abstractmethod
    def lmo(self, d: Tree) -> Tree:
        """A vertex of K that minimises ⟨d, v⟩: the linear minimisation oracle."""

    def over(self, objective: object) -> ConvexSet:
        """K as a run of this objective goes over it: itself, unless the objective looks at a part of x alone."""
        return self

    def lmo_memory(self, like: Tree) -> Tree:
        """What `lmo_from` remembers between calls; nothing unless a set says otherwise."""
        return ()

    def lmo_from(self, d: Tree, memory: Tree) -> tuple[Tree, Tree]:
        """`lmo(d)` that may start from what the last call learnt; returns the vertex and the new memory."""
        return self.lmo(d), memory

    def lmo_below(self, d: Tree, room: Tree) -> Tree:
        """argmin of ⟨d, v⟩ over the members v ≤ room of a down-closed K, for methods that must not overfill."""
        raise NotImplementedError(
            f"{type(self).__name__} has no oracle below an upper bound; use Box, SubSimplex or Knapsack"
        )

    def template(self) -> Tree | None:
        """The shapes of K's members as a tree of tuples, or None where x0 must tell."""
        return None

    def without_shape(self) -> str:
        """The set in here that does not know its shape, in words for an error message."""
        return type(self).__name__

    def start(self, like: Tree) -> Tree:
        """A member of K in the shapes and dtypes of `like`."""
        return self.lmo(trees.zeros_like(like))

    def project(self, y: Tree) -> Tree:
        """argmin over x in K of ‖x − y‖₂."""
        raise NotImplementedError(f"{type(self).__name__} has no projection; choose an algorithm that only needs `lmo`")

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The smallest box that contains K, coordinate by coordinate: by default from 2d calls of the oracle."""
        return extents(self, trees.zeros_like(known(self, like)))

    def contains(self, x: Tree, tol: float = 1e-6) -> Array:
        """Whether x lies in K up to `tol`, in units of max(1, the size of what bounds K).

        The default finds the point of K nearest to x by Wolfe's algorithm (`sets/membership.py`). It stops inside when
        the distance is below `tol`, and outside when the gap proves that the distance cannot come down to it.
        """
        return near(self, jax.tree.map(jnp.asarray, x), jnp.asarray(tol))

    @property
    def dear(self) -> bool:
        """Whether the oracle costs far more than products with some hundred vertices: `one_sfw` is then lazy."""
        return False

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

    def nonnegative(self, like: Tree | None = None) -> bool:
        """Whether every member of K has only non-negative entries."""
        return self.in_box(0.0, math.inf, like)

    def in_box(self, low: float, high: float, like: Tree | None = None) -> bool:
        """Whether every entry of every member of K lies between two numbers."""
        lower, upper = self.bounds(like)
        leaves = zip(jax.tree.leaves(lower), jax.tree.leaves(upper), strict=True)
        return all(bool(jnp.all(a >= low) & jnp.all(b <= high)) for a, b in leaves)


@eqx.filter_jit
def extents(constraint: ConvexSet, zeros: Tree) -> tuple[Tree, Tree]:
    """The least and the greatest value of every entry over K, from 2d calls of the oracle; compiled once for a set."""
    zero, unravel = trees.ravel(zeros)
    places = jax.lax.iota(jnp.int32, zero.size)

    def extent(sign: float) -> Tree:
        def along(place: Array) -> Array:
            axis = jnp.where(places == place, jnp.asarray(sign, zero.dtype), zero)
            return trees.ravel(constraint.lmo(unravel(axis)))[0][place]

        return unravel(jax.lax.map(along, places))

    return extent(1.0), extent(-1.0)


@eqx.filter_jit
def near(constraint: ConvexSet, x: Tree, tol: Array) -> Array:
    """Whether x lies in K up to `tol`, from the oracle alone; compiled once for a set and a shape of x."""
    return within_distance(constraint.lmo, constraint.start(x), x, tol)


class VectorSet(ConvexSet):
    """A set that treats the whole pytree x as one vector; subclasses are written for vectors.

    The parameters (radii, bounds, costs) are array leaves kept in float64 and cast to x's dtype at every call.

    Example:
        >>> import equinox as eqx
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> class Orthant(fw.sets.VectorSet):
        ...     shape: tuple[int, ...] | None = eqx.field(static=True, default=None)
        ...     def lmo_vector(self, d):  # 0 ≤ x ≤ 1
        ...         return jnp.where(d < 0, 1.0, 0.0)
        ...     def contains_vector(self, x, tol):
        ...         return jnp.all((x >= -tol) & (x <= 1 + tol))
        >>> vertex = Orthant().lmo({"w": jnp.array([1.0, -1.0]), "b": jnp.array(-1.0)})
        >>> vertex["w"].tolist(), float(vertex["b"])
        ([0.0, 1.0], 1.0)
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

    def bounds_vector(self, like: Array) -> tuple[Array, Array]:
        """`bounds` on a vector; the default asks the oracle 2d times."""
        return ConvexSet.bounds(self, like)

    def lmo(self, d: Tree) -> Tree:
        """A vertex of K that minimises ⟨d, v⟩: the linear minimisation oracle."""
        vector, unravel = self.as_vector(d)
        return unravel(trees.cast(self, vector.dtype).lmo_vector(vector))

    def contains(self, x: Tree, tol: float = 1e-6) -> Array:
        """Whether x lies in K: no constraint is violated by more than tol · max(1, its own size)."""
        vector, _ = self.as_vector(x)
        return jnp.all(jnp.isfinite(vector)) & trees.cast(self, vector.dtype).contains_vector(vector, tol)

    def project(self, y: Tree) -> Tree:
        """argmin over x in K of ‖x − y‖₂."""
        vector, unravel = self.as_vector(y)
        return unravel(trees.cast(self, vector.dtype).project_vector(vector))

    def start(self, like: Tree) -> Tree:
        """A member of K in the shapes and dtypes of `like`."""
        vector, unravel = self.as_vector(trees.zeros_like(like))
        return unravel(trees.cast(self, vector.dtype).start_vector(vector))

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The smallest box that contains K, coordinate by coordinate."""
        vector, unravel = self.as_vector(trees.zeros_like(known(self, like)))
        lower, upper = trees.cast(self, vector.dtype).bounds_vector(vector)
        return unravel(lower), unravel(upper)

    def as_vector(self, x: Tree) -> tuple[Array, Callable[[Array], Tree]]:
        """x as one vector and the way back; raises ValueError where x does not have the set's shape."""
        vector, unravel = trees.ravel(x)
        if self.shape is not None:
            leaves = jax.tree.leaves(x)
            alone = len(leaves) == 1
            if (np.shape(leaves[0]) != self.shape) if alone else (vector.size != math.prod(self.shape)):
                raise ValueError(
                    f"{type(self).__name__} has shape {self.shape}, got {trees.describe(x)}: "
                    "give the set and x the same shape"
                )
        return vector, unravel

    def template(self) -> Tree | None:
        """The shapes of K's members as a tree of tuples, or None where x0 must tell."""
        return self.shape

    @property
    def dimension(self) -> int:
        """The number of coordinates; raises where the shape is not known yet."""
        return sum(leaf.size for leaf in jax.tree.leaves(known(self, None)))


class CentredSet(VectorSet):
    """A vector set with K = −K and entries of at most `bound`: what all balls share."""

    bound: eqx.AbstractVar[Parameter]

    def start_vector(self, like: Array) -> Array:
        return jnp.zeros_like(like)

    def bounds_vector(self, like: Array) -> tuple[Array, Array]:
        return jnp.full_like(like, -self.bound), jnp.full_like(like, self.bound)

    @property
    def diameter(self) -> float:
        """2 · max ‖x‖₂."""
        return 2 * self.radius


def known(constraint: ConvexSet, like: Tree | None) -> Tree:
    """`like`, or else the set's own shapes; raises TypeError where neither is there."""
    if like is not None:
        return like
    template = constraint.template()
    if template is None:
        raise TypeError(
            f"{constraint.without_shape()} does not know its shape: pass shape= to the set, or x0= to the solver"
        )
    return jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, jnp.float32), template, is_leaf=is_shape)


def is_shape(node: object) -> bool:
    """Whether a node of a template is a shape: a tuple of integers."""
    return isinstance(node, tuple) and all(isinstance(size, int) for size in node)
