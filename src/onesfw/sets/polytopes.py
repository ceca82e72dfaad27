"""Polytopes given by inequalities or by vertices."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onesfw import trees
from onesfw.arguments import real
from onesfw.sets.base import ConvexSet, VectorSet
from onesfw.sets.host import on_host
from onesfw.sets.parameters import Parameter, Shape, finite, numbers, within
from onesfw.sets.simplices import first_largest
from onesfw.trees import Array, HostArray, Tree

NAME = "Polytope"
INFINITE = 1e20  # to HiGHS


class Polytope(VectorSet):
    """{x : A_ub x ≤ b_ub, A_eq x = b_eq, lower ≤ x ≤ upper}, non-empty and bounded.

    The arguments mean what they mean to `scipy.optimize.linprog`, except that without `bounds` x is free, not x ≥ 0.
    lmo(d) is a vertex from HiGHS, on the host: one linear program per call. Building the set solves two more, which
    show that it holds a point, where runs start, and that it is bounded.

    Args:
        A_ub: the rows of A_ub x ≤ b_ub, dense or scipy sparse.
        b_ub: one entry for each of these rows.
        A_eq: the rows of A_eq x = b_eq.
        b_eq: one entry for each of these rows.
        bounds: one pair (low, high) for all coordinates, or one for each; None within a pair leaves that side free.

    Raises:
        TypeError: where an argument holds something that is no real number.
        ValueError: where shapes do not match, no point satisfies the constraints, or the set has no end.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> triangle = fw.sets.Polytope(A_ub=[[1.0, 1.0]], b_ub=[1.0], bounds=(0, None))
        >>> triangle.lmo(jnp.array([-1.0, -2.0])).tolist()
        [0.0, 1.0]
    """

    A_ub: Parameter
    b_ub: Parameter
    A_eq: Parameter
    b_eq: Parameter
    lower: Parameter
    upper: Parameter
    inside: Parameter
    shape: Shape = eqx.field(static=True)

    def __init__(
        self,
        A_ub: Tree = None,
        b_ub: npt.ArrayLike | None = None,
        A_eq: Tree = None,
        b_eq: npt.ArrayLike | None = None,
        bounds: Tree = None,
    ) -> None:
        from scipy.sparse import issparse

        A_ub, A_eq = (
            None if A is None else finite(A.toarray() if issparse(A) else A, NAME, what)
            for A, what in ((A_ub, "A_ub"), (A_eq, "A_eq"))
        )
        pairs = as_pairs(bounds)
        known_by = [A for A in (A_ub, A_eq) if A is not None] or ([] if pairs.ndim < 2 else [pairs.T])
        if not known_by or np.ndim(known_by[0]) == 0:
            raise ValueError("Polytope: give A_ub, A_eq, or one pair of bounds per coordinate")
        size = np.shape(known_by[0])[-1]
        self.A_ub, self.b_ub = rows(A_ub, b_ub, size, "ub")
        self.A_eq, self.b_eq = rows(A_eq, b_eq, size, "eq")
        self.lower, self.upper = limits(pairs, size)
        self.shape = (size,)
        found = linprog(np.zeros(size), self.A_ub, self.b_ub, self.A_eq, self.b_eq, np.c_[self.lower, self.upper])
        if found.status != 0:
            raise ValueError(f"Polytope: no point satisfies all the constraints; relax some. HiGHS: {found.message}")
        self.inside = np.clip(found.x, self.lower, self.upper)
        if not bounded(self.A_ub, self.A_eq, self.lower, self.upper):
            raise ValueError("Polytope: the constraints leave a direction without end; add bounds= for the coordinates")

    @property
    def dear(self) -> bool:
        return True

    def lmo_vector(self, d: Array) -> Array:
        return on_host(least_vertex, d, d, self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.lower, self.upper)

    def contains_vector(self, x: Array, tol: float) -> Array:
        held = jnp.all(within(x, self.upper, tol) & within(-x, -self.lower, tol))
        equal = self.A_eq @ x
        held &= jnp.all(within(equal, self.b_eq, tol) & within(-equal, -self.b_eq, tol))
        return held & jnp.all(within(self.A_ub @ x, self.b_ub, tol))

    def start_vector(self, like: Array) -> Array:
        return jnp.asarray(self.inside, like.dtype)

    def bounds_vector(self, like: Array) -> tuple[Array, Array]:
        """From 2d linear programs."""
        return ConvexSet.bounds(self, like)


def rows(A: HostArray | None, b: npt.ArrayLike | None, size: int, kind: str) -> tuple[HostArray, HostArray]:
    """A checked pair of constraints, of no rows where none is given."""
    if (A is None) != (b is None):
        raise ValueError(f"{NAME}: A_{kind} and b_{kind} go together; give both or neither")
    if A is None or b is None:
        return np.zeros((0, size)), np.zeros(0)
    b = finite(b, NAME, f"b_{kind}")
    check_size(b, f"b_{kind}")
    if A.ndim != 2 or A.shape[1] != size or b.shape != A.shape[:1]:
        raise ValueError(
            f"{NAME}: A_{kind} must have {size} columns and b_{kind} one entry per row, "
            f"got shapes {A.shape} and {b.shape}"
        )
    return A, b


def as_pairs(bounds: Tree) -> HostArray:
    """The argument `bounds` as an array of objects; x is free where there is none."""
    try:
        return np.array((None, None) if bounds is None else bounds, dtype=object)
    except (TypeError, ValueError):
        raise TypeError(f"{NAME}: bounds must be pairs (low, high), got {bounds!r}") from None


def limits(bounds: HostArray, size: int) -> tuple[HostArray, HostArray]:
    """Lower and upper bounds with infinities for None: one pair for all, or one pair per coordinate."""
    try:
        pairs = np.broadcast_to(bounds, (size, 2))
        lower = np.array([-np.inf if low is None else limit(low) for low in pairs[:, 0]])
        upper = np.array([np.inf if high is None else limit(high) for high in pairs[:, 1]])
    except (TypeError, ValueError):
        raise ValueError(
            f"{NAME}: bounds must be one pair (low, high), or {size} of them, got {bounds.tolist()!r}"
        ) from None
    if np.any(np.isnan(lower) | np.isnan(upper) | (lower > upper)):
        raise ValueError(
            f"{NAME}: every pair of bounds must be numbers or None with low ≤ high, got {bounds.tolist()!r}"
        )
    for side in (lower, upper):
        check_size(side[np.isfinite(side)], "bounds")
    return lower, upper


def check_size(values: HostArray, what: str) -> None:
    """Raise ValueError where HiGHS would read a number as infinity."""
    if np.any(np.abs(values) >= INFINITE):
        raise ValueError(
            f"{NAME}: {what} must stay below {INFINITE:g}, which HiGHS takes for infinity; scale the problem"
        )


def limit(bound: object) -> float:
    """A bound as a float; whatever is no real number raises."""
    number = real(bound)
    if number is None:
        raise TypeError
    return number


def bounded(A_ub: HostArray, A_eq: HostArray, lower: HostArray, upper: HostArray) -> bool:
    """Whether the recession cone {y : Gy ≤ 0, Hy = 0} is {0}: by Stiemke's theorem one linear program and one rank.

    Some λ > 0 and μ with Gᵀλ + Hᵀμ = 0 force Gy = 0 on the cone, and full column rank then forces y = 0.
    """
    eye = np.eye(lower.size)
    G = np.vstack([A_ub, eye[np.isfinite(upper)], -eye[np.isfinite(lower)]])
    both = np.vstack([G, A_eq])
    if np.linalg.matrix_rank(both) < lower.size:
        return False
    signs = [(1, None)] * len(G) + [(None, None)] * len(A_eq)
    return linprog(np.zeros(len(both)), A_eq=both.T, b_eq=np.zeros(lower.size), bounds=signs).status == 0


def least_vertex(d: HostArray, *constraints: HostArray) -> HostArray:
    """HiGHS's vertex; NaN where d is not finite or the program fails, for the solver to report."""
    cost = np.asarray(d, np.float64)
    A_ub, b_ub, A_eq, b_eq, lower, upper = (np.asarray(a, np.float64) for a in constraints)
    if not np.all(np.isfinite(cost)):
        return np.full_like(d, np.nan)
    # HiGHS's tolerances are absolute: a small direction would look like none at all.
    cost = cost / max(np.max(np.abs(cost)), np.finfo(np.float64).tiny)
    found = linprog(cost, A_ub, b_ub, A_eq, b_eq, np.c_[lower, upper], method="highs-ds")
    return found.x if found.status == 0 else np.full_like(cost, np.nan)


def linprog(cost: HostArray, *problem: Tree, **options: Tree) -> Tree:
    """`scipy.optimize.linprog`, imported at the first call: it costs a quarter of a second."""
    from scipy.optimize import linprog as solve

    return solve(cost, *problem, **options)


class VertexHull(ConvexSet):
    """conv{v_1, …, v_m}: the vertices are an array's rows, or a pytree's slices along the leading axis.

    lmo(d) = v_i, i the first with the least ⟨d, v_i⟩. O(md).

    Args:
        vertices: an array with one row for each vertex, or a pytree of such arrays.

    Raises:
        TypeError: where vertices hold something that is no real number.
        ValueError: where the leaves have unequal numbers of rows, or an entry is not finite.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> hull = fw.sets.VertexHull([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
        >>> hull.lmo(jnp.array([-1.0, -1.0])).tolist()
        [2.0, 0.0]
    """

    vertices: Tree

    def __init__(self, vertices: Tree) -> None:
        self.vertices = numbers(vertices, "VertexHull", "vertices")
        sizes = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(self.vertices)}
        if len(sizes) != 1 or () in sizes:
            raise ValueError(
                "VertexHull: vertices must be arrays with one row per vertex, as many in each leaf, "
                f"got {trees.describe(self.vertices)}"
            )

    def rows_like(self, x: Tree) -> Tree:
        """The vertices in x's dtypes; raises ValueError where x has another shape."""
        shapes = jax.tree.map(lambda leaf: leaf.shape[1:], self.vertices)
        if jax.tree.map(np.shape, x) != shapes:
            raise ValueError(f"VertexHull: x has shape {trees.describe(x)}, the vertices {shapes}")
        dtypes = jax.tree.map(lambda like: jax.dtypes.canonicalize_dtype(like.dtype), x)
        return jax.tree.map(jnp.asarray, self.vertices, dtypes)

    def lmo(self, d: Tree) -> Tree:
        """The first row with the least ⟨d, v⟩."""
        d = jax.tree.map(jnp.asarray, d)
        rows = self.rows_like(d)
        scores: Tree = sum(jax.tree.leaves(jax.tree.map(lambda v, g: v.reshape(len(v), -1) @ g.ravel(), rows, d)))
        chosen = first_largest(-scores)
        return jax.tree.map(lambda leaf: leaf[chosen], rows)

    def start(self, like: Tree) -> Tree:
        """The mean of the vertices."""
        return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), self.rows_like(like))

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The least and the greatest entry in every coordinate."""
        rows = self.vertices if like is None else self.rows_like(like)
        return jax.tree.map(lambda v: v.min(axis=0), rows), jax.tree.map(lambda v: v.max(axis=0), rows)

    def template(self) -> Tree | None:
        """The shape of one vertex."""
        return jax.tree.map(lambda leaf: leaf.shape[1:], self.vertices)

    @property
    def diameter(self) -> float:
        """The largest distance between two vertices. O(m²d)."""
        flat = self.flat()
        return max(float(np.linalg.norm(flat[i:] - flat[i], axis=1).max()) for i in range(len(flat)))

    @property
    def radius(self) -> float:
        """max ‖v_i‖₂."""
        return float(np.linalg.norm(self.flat(), axis=1).max())

    def flat(self) -> HostArray:
        """The vertices as rows of one float64 matrix on the host."""
        return np.hstack([np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(self.vertices)])
