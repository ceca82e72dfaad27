"""Functions that are a sum over rows, each row served by the best element of a list: what numba kernels know."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from onesfw.objectives.indices import uniform_index
from onesfw.submodular.base import Function, as_mask, as_point
from onesfw.trees import Array, Tree

Stepper = Callable[[np.ndarray, np.ndarray, np.ndarray, float, np.ndarray], None]
LARGEST = 1e30  # of a weight, a similarity or f for one ω: sums of these must fit into float32
MOST_ENTRIES = 2**31 - 1  # entries are numbered in 32 bits under JAX


class RowFunction(Function):
    """f(S) = Σ_r weight_r · max_{i∈S} m_ri: coverage (m = 0 or 1) and facility location.

    ω is a row, drawn uniformly out of `omegas`; f_ω = omegas · (its term). Row r lists the elements
    indices[indptr[r]:indptr[r+1]]; `values` holds their m, falling along the row, or nothing where all are 1.
    """

    indptr: eqx.AbstractVar[Any]
    indices: eqx.AbstractVar[Any]
    values: eqx.AbstractVar[Any]
    weights: eqx.AbstractVar[Any]
    longest: eqx.AbstractVar[int]

    @property
    def omegas(self) -> int:
        return int(self.indptr.shape[0]) - 1

    def draw(self, key: Array, number: Array) -> Tree:
        return uniform_index(key, number, self.omegas)

    def window(self, row: Array, x: Array) -> tuple[Array, Array, Array, Array]:
        """A row's elements, which of them are real, x there, and the row's scaled weight: arrays of fixed length."""
        places = jnp.asarray(self.indptr)[row] + lax.iota(jnp.int32, self.longest)
        real = places < jnp.asarray(self.indptr)[row + 1]
        elements = jnp.where(real, jnp.asarray(self.indices)[jnp.minimum(places, self.indices.shape[0] - 1)], 0)
        weight = jnp.asarray(self.weights, x.dtype)[row] * self.omegas
        return elements, real, jnp.where(real, x[elements], 0.0), weight

    @abc.abstractmethod
    def stepper(self) -> Stepper:
        """The kernel (d, x, previous, ρ, rows): d ← (1 − ρ)(d + Δ̃) + ρ g in place, from one batch (Algorithm 2).

        Bound to the arrays once: a method of a module is looked up anew, and slowly, at every call.
        """

    @abc.abstractmethod
    def served(self, x: np.ndarray, which: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """F_r(x)/weight_r for the rows `which`; Σ of their gradients is added to `gradient`."""

    @abc.abstractmethod
    def thresholds(self, x: np.ndarray, which: np.ndarray) -> np.ndarray:
        """τ_ω(x) of the second certificate."""

    @abc.abstractmethod
    def excess(self, tau: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Σ_ω weight_ω (m_ωi − τ_ω)⁺ for every i."""

    def extension(self, x: Any) -> tuple[float, np.ndarray]:
        """F(x) and ∇F(x), exact: O(entries)."""
        gradient = np.zeros(self.n)
        served = self.served(as_point(x, self.n), np.arange(self.omegas), gradient)
        return float(self.weights @ served), gradient

    def value(self, chosen: Any) -> float:
        """f(S)."""
        return float(self.weights @ self.served_by(chosen))

    def served_by(self, chosen: Any) -> np.ndarray:
        """max_{i∈S} m_ri for every row."""
        mask = as_mask(chosen, self.n)
        return self.served(mask.astype(np.float64), np.arange(self.omegas), np.zeros(self.n))

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same entries by element: starts, rows, values."""
        values = self.values if self.values.size else np.ones(self.indices.size, np.int8)
        matrix = sp.csr_matrix((values, self.indices, self.indptr), (self.omegas, self.n)).tocsc()
        return matrix.indptr.astype(np.int64), matrix.indices, matrix.data


def row_weights(weights: Any, count: int, name: str, what: str) -> np.ndarray:
    """One non-negative finite weight per row; ones where none are given."""
    if weights is None:
        return np.ones(count)
    array = np.asarray(weights)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: weights must hold numbers, got dtype {array.dtype}")
    if array.shape != (count,):
        raise ValueError(f"{name}: weights must hold one number per {what}, {count} in all, got shape {array.shape}")
    array = array.astype(np.float64)
    if not np.all((array >= 0) & (array <= LARGEST)):
        raise ValueError(f"{name}: weights must lie in [0, {LARGEST:g}], so that f is monotone and fits into float32")
    return array


def check_size(largest: float, name: str, what: str) -> None:
    """Refuse a function whose f_ω, its number of ω times one term, is too large for float32."""
    if largest > LARGEST:
        raise ValueError(
            f"{name}: {what} make f as large as {float(largest):.3g} for one sample; at most {LARGEST:g} fits into "
            "float32 sums: scale them"
        )


def as_sparse(matrix: Any, name: str, what: str) -> sp.csr_matrix:
    """A dense or sparse matrix of finite non-negative numbers as CSR, without stored zeros."""
    if not sp.issparse(matrix):
        array = np.asarray(matrix)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{name}: {what} must hold numbers, got dtype {array.dtype}")
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(f"{name}: {what} must be a matrix with rows and columns, got shape {array.shape}")
        matrix = array
    elif 0 in matrix.shape:
        raise ValueError(f"{name}: {what} must be a matrix with rows and columns, got shape {matrix.shape}")
    result = sp.csr_matrix(matrix, dtype=np.float64)
    result.sum_duplicates()
    if not np.all(np.isfinite(result.data)):
        raise ValueError(f"{name}: {what} has NaN or infinite entries; remove or impute them first")
    if np.any(result.data > LARGEST):
        raise ValueError(f"{name}: {what} must be at most {LARGEST:g}; scale it")
    if np.any(result.data < 0):
        raise ValueError(
            f"{name}: {what} must not be negative; shift or clip it, for instance np.maximum(similarity, 0)"
        )
    result.eliminate_zeros()
    if result.nnz > MOST_ENTRIES:
        raise ValueError(f"{name}: {what} has {result.nnz:,} entries; at most {MOST_ENTRIES:,} can be numbered")
    return result
