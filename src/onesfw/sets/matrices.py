"""Sets of matrices described by singular values or eigenvalues; x is one matrix."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from onesfw import trees
from onesfw.arguments import flag, whole_number
from onesfw.sets.base import ConvexSet, known
from onesfw.sets.lanczos import generic_vector, largest_eigenvector
from onesfw.sets.parameters import MOST_ENTRIES, Parameter, Shape, as_shape, positive, within
from onesfw.sets.polar import polar_factor
from onesfw.sets.seen_entries import SeenNuclearBall
from onesfw.sets.simplices import project_simplex
from onesfw.trees import Array, Tree


class MatrixSet(ConvexSet):
    """A set of matrices: x is one 2-D leaf; subclasses are written for matrices, their parameters in x's dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> isinstance(fw.sets.Birkhoff(3), fw.sets.MatrixSet)
        True
        >>> fw.sets.Birkhoff(3).lmo(jnp.ones(3))
        Traceback (most recent call last):
        ValueError: Birkhoff needs x to be one matrix, got (3,); for several leaves use Product, one set per leaf
    """

    shape: eqx.AbstractVar[Shape | None]

    @abc.abstractmethod
    def lmo_matrix(self, d: Array, memory: Tree) -> tuple[Array, Tree]:
        """`lmo_from` on a matrix."""

    @abc.abstractmethod
    def contains_matrix(self, x: Array, tol: float) -> Array:
        """`contains` on a finite matrix."""

    @abc.abstractmethod
    def start_matrix(self, like: Array) -> Array:
        """`start` on a matrix."""

    @abc.abstractmethod
    def bounds_matrix(self, like: Array) -> tuple[Array, Array]:
        """`bounds` on a matrix."""

    def project_matrix(self, y: Array) -> Array:
        """`project` on a matrix."""
        raise NotImplementedError(f"{type(self).__name__} has no projection; choose an algorithm that only needs `lmo`")

    def lmo(self, d: Tree) -> Tree:
        """A vertex of K that minimises ⟨d, v⟩: the linear minimisation oracle."""
        return self.lmo_from(d, self.lmo_memory(d))[0]

    def lmo_from(self, d: Tree, memory: Tree) -> tuple[Tree, Tree]:
        """`lmo(d)` from what the last call left; returns the vertex and the new memory."""
        matrix, rebuild = self.as_matrix(d)
        vertex, memory = trees.cast(self, matrix.dtype).lmo_matrix(matrix, memory)
        return rebuild(vertex), memory

    def contains(self, x: Tree, tol: float = 1e-6) -> Array:
        """Whether x lies in K: no constraint is violated by more than tol · max(1, its own size)."""
        matrix, _ = self.as_matrix(x)
        finite = jnp.all(jnp.isfinite(matrix))
        matrix = jnp.where(finite, matrix, 0.0)
        return finite & trees.cast(self, matrix.dtype).contains_matrix(matrix, tol)

    def project(self, y: Tree) -> Tree:
        """argmin over x in K of ‖x − y‖₂ (the Frobenius norm)."""
        matrix, rebuild = self.as_matrix(y)
        return rebuild(trees.cast(self, matrix.dtype).project_matrix(matrix))

    def start(self, like: Tree) -> Tree:
        """A member of K in the shapes and dtypes of `like`."""
        matrix, rebuild = self.as_matrix(trees.zeros_like(like))
        return rebuild(trees.cast(self, matrix.dtype).start_matrix(matrix))

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The smallest box that contains K, entry by entry."""
        matrix, rebuild = self.as_matrix(trees.zeros_like(known(self, like)))
        lower, upper = trees.cast(self, matrix.dtype).bounds_matrix(matrix)
        return rebuild(lower), rebuild(upper)

    def template(self) -> Tree | None:
        """The matrix's shape, or None where x0 must tell."""
        return self.shape

    def as_matrix(self, x: Tree) -> tuple[Array, Callable[[Array], Tree]]:
        """The one leaf of x and the way back; raises ValueError where x is something else."""
        name = type(self).__name__
        leaves, structure = jax.tree.flatten(x)
        if len(leaves) != 1 or np.ndim(leaves[0]) != 2:
            raise ValueError(
                f"{name} needs x to be one matrix, got {trees.describe(x)}; for several leaves use Product, "
                "one set per leaf"
            )
        if self.shape is not None and np.shape(leaves[0]) != self.shape:
            raise ValueError(f"{name} has shape {self.shape}, got {trees.describe(x)}: give both the same shape")
        return jnp.asarray(leaves[0]), lambda matrix: jax.tree.unflatten(structure, [matrix])


def matrix_shape(
    shape: int | Shape | None, name: str, square: bool = False, most: float = MOST_ENTRIES
) -> Shape | None:
    """The shape of a matrix; an integer n means n × n."""
    sizes = as_shape(shape, name, most)
    if sizes is None:
        return None
    sizes = sizes * 2 if len(sizes) == 1 else sizes
    if len(sizes) != 2 or (square and sizes[0] != sizes[1]):
        kind = "a square matrix's, n or (n, n)" if square else "a matrix's, (rows, columns)"
        raise ValueError(f"{name}: shape must be {kind}, got {shape!r}")
    return sizes


def blended(memory: Array) -> Array:
    """The remembered vector with a tenth of a generic one: what it may be orthogonal to is then still found."""
    return memory / jnp.linalg.norm(memory) + 0.1 * generic_vector(memory.size, memory.dtype)


def upright(d: Array) -> tuple[Array, Callable[[Array], Array]]:
    """d with its largest entry at 1, so that squares do not overflow, and no wider than tall; the way back."""
    largest = jnp.max(jnp.abs(d))
    scaled = d / jnp.where(largest > 0, largest, 1.0)
    if d.shape[0] >= d.shape[1]:
        return scaled, lambda matrix: matrix
    return scaled.T, lambda matrix: matrix.T


class SingularValueBall(MatrixSet):
    """A ball in a norm of the singular values: centred at 0, with an oracle that remembers a singular vector."""

    bound: Parameter
    accuracy: Parameter
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, radius: float, shape: int | Shape | None = None, accuracy: float = 1e-4) -> None:
        name = type(self).__name__
        self.bound = positive(radius, name, "radius")
        self.accuracy = positive(accuracy, name, "accuracy")
        self.shape = matrix_shape(shape, name)

    def lmo_memory(self, like: Tree) -> Tree:
        """The leading singular vector on the shorter side, a generic one at first."""
        matrix, _ = self.as_matrix(trees.zeros_like(trees.shapes(like)))
        return generic_vector(min(matrix.shape), matrix.dtype)

    def start_matrix(self, like: Array) -> Array:
        return jnp.zeros_like(like)

    def bounds_matrix(self, like: Array) -> tuple[Array, Array]:
        return jnp.full_like(like, -self.bound), jnp.full_like(like, self.bound)

    @property
    def diameter(self) -> float:
        """Twice the largest Frobenius norm."""
        return 2 * self.radius


class NuclearBall(SingularValueBall):
    """{X : Σσ_i(X) ≤ radius}, the sum of the singular values.

    lmo(D) = −radius · u₁v₁ᵀ, the leading singular vectors of D, such that ⟨D, V⟩ is within the relative `accuracy` of
    its least value. Lanczos on the smaller Gram operator: O(mn) per iteration, some tens of iterations from a fixed
    vector, fewer through `lmo_from`, which starts from the last one.

    With `factored` no matrix is ever dense: the objective is a `lowrank.Entries`, which looks at some entries of X, and
    the result's x is a `LowRank`.

    Args:
        radius: of the ball, positive.
        shape: of x, (rows, columns), or n for n × n; None takes it from x0.
        accuracy: how exactly the oracle is answered, relative.
        factored: keep x by the entries that are looked at and by two sketches; needs a shape.
        sketch: the width of the sketches: x is found again exactly up to this rank, and nearly where its further
            singular values are small; with a warning where its entries are off by more than 1 % of their norm.

    Raises:
        TypeError: where radius or accuracy is no number; from a run, where `factored` meets another objective.
        ValueError: where one of them is not positive and finite, or shape is no matrix's.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> ball = fw.sets.NuclearBall(2.0, shape=(2, 3))
        >>> vertex = ball.lmo(jnp.array([[0.0, -5.0, 0.0], [1.0, 0.0, 0.0]]))
        >>> [round(float(entry), 3) for entry in jnp.abs(vertex[0])]
        [0.0, 2.0, 0.0]
    """

    factored: bool = eqx.field(static=True)
    sketch: int = eqx.field(static=True)

    def __init__(
        self,
        radius: float,
        shape: int | Shape | None = None,
        accuracy: float = 1e-4,
        *,
        factored: bool = False,
        sketch: int = 64,
    ) -> None:
        self.factored, self.sketch = flag(factored, "factored"), whole_number(sketch, "sketch", 1)
        SingularValueBall.__init__(self, radius, None, accuracy)
        most = math.inf if self.factored else MOST_ENTRIES  # rows and columns are numbered, not entries
        self.shape = matrix_shape(shape, "NuclearBall", most=most)
        if self.factored and self.shape is None:
            raise ValueError("NuclearBall: shape is needed with factored=True, (rows, columns)")

    def over(self, objective: object) -> ConvexSet:
        """K as seen through the entries that the objective looks at, with `factored`; K itself without."""
        if not self.factored:
            return self
        pattern = getattr(objective, "pattern", None)
        if pattern is None:
            raise TypeError(
                "constraint: NuclearBall(factored=True) needs an objective that looks at some entries of x, such as "
                "lowrank.Entries; leave factored out for others"
            )
        assert self.shape is not None
        rows, cols = pattern
        for numbers, size in zip(pattern, self.shape, strict=True):
            if numbers.max() >= size:
                raise ValueError(
                    f"constraint: NuclearBall has shape {self.shape}, and Entries holds the number {numbers.max()}; "
                    "numbers count from 0"
                )
        return SeenNuclearBall(self.bound, self.accuracy, self.shape, rows, cols, self.sketch)

    def lmo_matrix(self, d: Array, memory: Array) -> tuple[Array, Array]:
        tall, turn = upright(d)
        # A relative error of 2ε in σ² is one of ε in σ.
        right = largest_eigenvector(lambda v: (tall @ v) @ tall, blended(memory), 2 * self.accuracy)
        left = tall @ right
        length = jnp.linalg.norm(left)
        left = jnp.where(length > 0, left / jnp.where(length > 0, length, 1.0), jnp.zeros_like(left).at[0].set(1.0))
        return -self.bound * turn(jnp.outer(left, right)), right

    def contains_matrix(self, x: Array, tol: float) -> Array:
        return within(jnp.sum(jnp.linalg.svd(x, compute_uv=False)), self.bound, tol)

    def project_matrix(self, y: Array) -> Array:
        left, values, right = jnp.linalg.svd(y, full_matrices=False)
        shrunk = (left * project_simplex(values, self.bound)) @ right
        return jnp.where(jnp.sum(values) <= self.bound, y, shrunk)

    @property
    def radius(self) -> float:
        """max ‖X‖_F = radius."""
        return float(self.bound)


class SpectralBall(SingularValueBall):
    """{X : σ₁(X) ≤ radius}, the largest singular value.

    lmo(D) = −radius · UVᵀ for D = UΣVᵀ, the polar factor, such that ⟨D, V⟩ is within the relative `accuracy` of its
    least value; D = 0 counts as the identity. Newton-Schulz iterations, two matrix products each, O(mn · min(m, n)),
    some 10 to 20 of them; their scale comes from Lanczos, which `lmo_from` starts from the last vector.

    Args:
        radius: of the ball, positive.
        shape: of x, (rows, columns), or n for n × n; None takes it from x0.
        accuracy: how exactly the oracle is answered, relative.

    Raises:
        TypeError: where radius or accuracy is no number.
        ValueError: where one of them is not positive and finite, or shape is no matrix's.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> vertex = fw.sets.SpectralBall(1.0).lmo(jnp.array([[2.0, 0.0], [0.0, -3.0]]))
        >>> [round(float(entry), 3) for entry in jnp.diag(vertex)]
        [-1.0, 1.0]
    """

    def lmo_matrix(self, d: Array, memory: Array) -> tuple[Array, Array]:
        tall, turn = upright(jnp.where(jnp.any(d != 0), d, jnp.eye(d.shape[0], d.shape[1], dtype=d.dtype)))
        factor, right = polar_factor(tall, blended(memory), self.accuracy)
        return -self.bound * turn(factor), right

    def contains_matrix(self, x: Array, tol: float) -> Array:
        return within(jnp.linalg.svd(x, compute_uv=False)[0], self.bound, tol)

    def project_matrix(self, y: Array) -> Array:
        left, values, right = jnp.linalg.svd(y, full_matrices=False)
        return (left * jnp.minimum(values, self.bound)) @ right

    @property
    def radius(self) -> float:
        """max ‖X‖_F = radius · √min(m, n)."""
        (leaf,) = jax.tree.leaves(known(self, None))
        return float(self.bound) * min(leaf.shape) ** 0.5


class Spectrahedron(MatrixSet):
    """{X : X symmetric and positive semidefinite, tr X = total}.

    lmo(D) = total · vvᵀ, v an eigenvector of the least eigenvalue of (D + Dᵀ)/2, such that vᵀDv is within
    `accuracy` · max(|λ_min|, λ_max − λ_min) of λ_min. Lanczos: O(n²) per iteration, some tens of iterations from a
    fixed vector, fewer through `lmo_from`, which starts from the last one.

    Args:
        total: the trace, positive.
        shape: n or (n, n); None takes it from x0.
        accuracy: how exactly the oracle is answered, relative.

    Raises:
        TypeError: where total or accuracy is no number.
        ValueError: where one of them is not positive and finite, or shape is no matrix's.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> vertex = fw.sets.Spectrahedron(shape=2).lmo(jnp.array([[1.0, 0.0], [0.0, -1.0]]))
        >>> [round(float(entry), 3) for entry in jnp.diag(vertex)]
        [0.0, 1.0]
    """

    total: Parameter
    accuracy: Parameter
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, total: float = 1.0, shape: int | Shape | None = None, accuracy: float = 1e-4) -> None:
        self.total = positive(total, "Spectrahedron", "total")
        self.accuracy = positive(accuracy, "Spectrahedron", "accuracy")
        self.shape = matrix_shape(shape, "Spectrahedron", square=True)

    def lmo_memory(self, like: Tree) -> Tree:
        """The last eigenvector."""
        (leaf,) = jax.tree.leaves(like)
        self.as_matrix(trees.zeros_like(trees.shapes(like)))
        return generic_vector(leaf.shape[0], leaf.dtype)

    def as_matrix(self, x: Tree) -> tuple[Array, Callable[[Array], Tree]]:
        matrix, rebuild = MatrixSet.as_matrix(self, x)
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"Spectrahedron needs x to be a square matrix, got {trees.describe(x)}")
        return matrix, rebuild

    def lmo_matrix(self, d: Array, memory: Array) -> tuple[Array, Array]:
        largest = jnp.max(jnp.abs(d))
        scaled = d / jnp.where(largest > 0, largest, 1.0)
        vector = largest_eigenvector(lambda v: -(scaled @ v + v @ scaled) / 2, blended(memory), self.accuracy)
        return self.total * jnp.outer(vector, vector), vector

    def contains_matrix(self, x: Array, tol: float) -> Array:
        slack = tol * jnp.maximum(1.0, self.total)  # rounding is in proportion to the total
        symmetric = jnp.all(jnp.abs(x - x.T) <= 2 * slack)
        trace = jnp.trace(x)
        least = jnp.linalg.eigvalsh((x + x.T) / 2)[0]
        return symmetric & (least >= -slack) & within(trace, self.total, tol) & within(-trace, -self.total, tol)

    def project_matrix(self, y: Array) -> Array:
        values, vectors = jnp.linalg.eigh((y + y.T) / 2)
        return (vectors * project_simplex(values, self.total)) @ vectors.T

    def start_matrix(self, like: Array) -> Array:
        return jnp.eye(like.shape[0], dtype=like.dtype) * self.total / like.shape[0]

    def bounds_matrix(self, like: Array) -> tuple[Array, Array]:
        size = like.shape[0]
        diagonal = jnp.eye(size, dtype=bool)
        lower = jnp.where(diagonal, 0.0 if size > 1 else self.total, -self.total / 2)
        return lower, jnp.where(diagonal, self.total, self.total / 2)

    @property
    def diameter(self) -> float:
        """√2 · total; 0 for the single point of 1 × 1."""
        return 0.0 if self.shape == (1, 1) else float(self.total) * 2**0.5

    @property
    def radius(self) -> float:
        """max ‖X‖_F = total."""
        return float(self.total)
