"""Hulls of permutations: of a vector's entries, and of the permutation matrices."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from onesfw.sets.base import VectorSet
from onesfw.sets.host import on_host
from onesfw.sets.matrices import MatrixSet
from onesfw.sets.parameters import MOST_ENTRIES, Parameter, Shape, finite, within
from onesfw.trees import Array, HostArray, Tree


def decreasing(values: HostArray) -> HostArray:
    """The falling sequence nearest to `values`."""
    from scipy.optimize import isotonic_regression  # a quarter of a second to import: only where it is needed

    if not np.all(np.isfinite(values)):
        return np.full_like(values, np.nan)
    return isotonic_regression(values, increasing=False).x


def assignment(costs: HostArray) -> HostArray:
    """The column of each row in a least-cost assignment."""
    from scipy.optimize import linear_sum_assignment

    # A cost that is not finite has no assignment; the solver reports it, the oracle must only not fail.
    ready = np.all(np.isfinite(costs))
    return linear_sum_assignment(costs)[1] if ready else np.arange(len(costs))


class Permutahedron(VectorSet):
    """conv{w_π : π a permutation}, all the orders of the weights w.

    lmo(d) gives the largest weight to the smallest d_i, the second largest to the second smallest, and so on (the
    rearrangement inequality); equal d_i in the order of their indices. O(d log d).

    Args:
        weights: the entries that are permuted; their shape is that of x.

    Raises:
        TypeError: where weights hold something that is no real number.
        ValueError: where weights are one number, empty, or not finite.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> fw.sets.Permutahedron([3.0, 2.0, 1.0]).lmo(jnp.array([0.0, 5.0, 1.0])).tolist()
        [3.0, 1.0, 2.0]
    """

    weights: Parameter
    shape: Shape = eqx.field(static=True)

    def __init__(self, weights: npt.ArrayLike) -> None:
        weights = finite(weights, "Permutahedron", "weights")
        if weights.ndim == 0:
            raise ValueError("Permutahedron: weights must be an array with one weight per coordinate of x")
        self.weights = -np.sort(-weights.ravel())
        self.shape = weights.shape

    def lmo_vector(self, d: Array) -> Array:
        return jnp.zeros_like(d).at[jnp.argsort(d, stable=True)].set(self.weights)

    def contains_vector(self, x: Array, tol: float) -> Array:
        """x is majorised by w: its k largest entries sum to no more than the k largest weights, all d to the same."""
        most, sums = jnp.cumsum(self.weights), jnp.cumsum(-jnp.sort(-x))
        return jnp.all(within(sums, most, tol)) & within(-sums[-1], -most[-1], tol)

    def project_vector(self, y: Array) -> Array:
        """y − z, z the isotonic regression of the sorted y − w (Lim and Wright 2016), on the host. O(d log d)."""
        order = jnp.argsort(-y, stable=True)
        excess = y[order] - self.weights
        dual = on_host(decreasing, excess, excess)
        return jnp.zeros_like(y).at[order].set(y[order] - dual)

    def start_vector(self, like: Array) -> Array:
        return jnp.full_like(like, jnp.mean(self.weights))

    def bounds_vector(self, like: Array) -> tuple[Array, Array]:
        return jnp.full_like(like, self.weights[-1]), jnp.full_like(like, self.weights[0])

    @property
    def diameter(self) -> float:
        """‖w↓ − w↑‖₂: the falling order is farthest from the rising one."""
        return float(np.linalg.norm(self.weights - self.weights[::-1]))

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = ‖w‖₂."""
        return float(np.linalg.norm(self.weights))


class Birkhoff(MatrixSet):
    """{X : X ≥ 0, every row and every column sums to 1}, the doubly stochastic n × n matrices.

    lmo(D) is the permutation matrix of a least-cost assignment, by SciPy on the host. O(n³).

    Args:
        n: the number of rows and of columns.

    Raises:
        ValueError: where n is no positive integer, or n² entries are more than 2³¹ − 1.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> fw.sets.Birkhoff(2).lmo(jnp.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """

    shape: Shape = eqx.field(static=True)

    def __init__(self, n: int) -> None:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"Birkhoff: n must be a positive integer, got {n!r}")
        if int(n) ** 2 > MOST_ENTRIES:
            raise ValueError(f"Birkhoff: n must be at most {math.isqrt(MOST_ENTRIES):,}, got {n!r}")
        self.shape = (int(n), int(n))

    def lmo_matrix(self, d: Array, memory: Tree) -> tuple[Array, Tree]:
        column = on_host(assignment, jax.ShapeDtypeStruct(self.shape[:1], jnp.int32), d)
        return (lax.broadcasted_iota(jnp.int32, self.shape, 1) == column[:, None]).astype(d.dtype), memory

    def contains_matrix(self, x: Array, tol: float) -> Array:
        sums = jnp.stack([jnp.sum(x, axis=0), jnp.sum(x, axis=1)])
        return jnp.all(x >= -tol) & jnp.all(jnp.abs(sums - 1) <= tol)

    def start_matrix(self, like: Array) -> Array:
        return jnp.full_like(like, 1 / like.shape[0])

    def bounds_matrix(self, like: Array) -> tuple[Array, Array]:
        return jnp.full_like(like, 0.0 if like.shape[0] > 1 else 1.0), jnp.ones_like(like)

    @property
    def dear(self) -> bool:
        return True

    @property
    def diameter(self) -> float:
        """√(2n): two permutations without a common entry; 0 for n = 1."""
        return (2 * self.shape[0]) ** 0.5 if self.shape[0] > 1 else 0.0

    @property
    def radius(self) -> float:
        """max ‖X‖_F = √n."""
        return self.shape[0] ** 0.5
