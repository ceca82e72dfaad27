"""f(S) = Σ_r w_r max_{i∈S} similarity(r, i): how well S represents everyone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from onesfw.submodular.base import State, as_mask
from onesfw.submodular.row_functions import (
    LARGEST,
    MOST_ENTRIES,
    RowFunction,
    Stepper,
    as_sparse,
    check_size,
    row_weights,
)
from onesfw.submodular.similarities import similarities
from onesfw.trees import Array, Tree

BLOCK = 256  # rows that are sorted at once


class FacilityLocation(RowFunction):
    """f(S) = Σ_r w_r max_{i∈S} m_ri with m ≥ 0: every row r is served by its most similar element of S.

    For one row sorted by falling m: R_n = 0, R_{k−1} = m_k x_k + (1 − x_k) R_k, F_ω = R_0; P_1 = 1,
    P_{k+1} = P_k (1 − x_k), ∂_k = P_k (m_k − R_k). One sort per row, then O(row) at most.

    Args:
        similarity: rows to serve × n elements, not negative, dense or scipy sparse (absent entries are 0).
        features: in place of `similarity`: one row of numbers per element; the elements serve each other.
        kernel: what makes similarities of features: "rbf", exp(−d²/median d²); "cosine" and "linear", their
            non-negative part; or a function of two matrices of features.
        weights: of the rows, not negative; ones where left out.
    """

    n: int = eqx.field(static=True)
    indptr: Any
    indices: Any
    values: Any
    weights: Any
    longest: int = eqx.field(static=True)
    closed_form: ClassVar[bool] = True

    def __init__(
        self,
        similarity: Any = None,
        *,
        features: Any = None,
        kernel: str | Callable[..., Any] = "rbf",
        weights: Any = None,
    ) -> None:
        if (similarity is None) == (features is None):
            raise TypeError("FacilityLocation: give either similarity or features, not both and not neither")
        made = similarity is None
        if made:
            similarity = similarities(features, kernel)
        rows, self.n, self.indptr, self.indices, self.values = falling(similarity, spare=made and not callable(kernel))
        if self.indices.size == 0:
            raise ValueError("FacilityLocation: similarity has no positive entry: no element serves any row")
        self.weights = row_weights(weights, rows, "FacilityLocation", "row")
        self.longest = int(np.diff(self.indptr).max())
        check_size(rows * self.weights.max() * self.values.max(), "FacilityLocation", "similarity or weights")

    def value_at(self, s: Array, omega: Tree) -> Array:
        _, real, inside, weight = self.window(omega, s)
        return weight * jnp.max(jnp.where(real & (inside > 0.5), self.sorted_values(omega, s), 0.0))

    def sorted_values(self, row: Array, like: Array) -> Array:
        """m_1 ≥ m_2 ≥ … of a row, in an array of fixed length."""
        places = jnp.asarray(self.indptr)[row] + lax.iota(jnp.int32, self.longest)
        return jnp.asarray(self.values, like.dtype)[jnp.minimum(places, self.indices.shape[0] - 1)]

    def marginals_at(self, s: Array, omega: Tree) -> Array:
        return self.extension_gradient_at(s, omega)

    def remainders(self, x: Array, omega: Tree) -> tuple[Array, Array, Array, Array, Array, Array]:
        """The row's elements, which are real, m, 1 − x, R_0 … R_n, and the weight."""
        elements, real, inside, weight = self.window(omega, x)
        m = jnp.where(real, self.sorted_values(omega, x), 0.0)
        factors = 1 - inside

        def compose(later: tuple[Array, Array], here: tuple[Array, Array]) -> tuple[Array, Array]:
            return here[0] * later[0], here[1] + here[0] * later[1]

        _, rest = lax.associative_scan(compose, (factors, m * inside), reverse=True)
        return elements, real, m, factors, jnp.concatenate([rest, jnp.zeros(1, x.dtype)]), weight

    def extension_at(self, x: Array, omega: Tree) -> Array:
        *_, rest, weight = self.remainders(x, omega)
        return weight * rest[0]

    def extension_gradient_at(self, x: Array, omega: Tree) -> Array:
        elements, real, m, factors, rest, weight = self.remainders(x, omega)
        before = jnp.concatenate([jnp.ones(1, x.dtype), lax.cumprod(factors)[:-1]])
        return jnp.zeros_like(x).at[elements].add(jnp.where(real, weight * before * (m - rest[1:]), 0.0))

    def stepper(self) -> Stepper:
        from onesfw.submodular.kernels import facility_step

        rows, scale = (self.indptr, self.indices, self.values, self.weights), float(self.omegas)
        work = np.empty(self.longest)
        return lambda d, x, previous, rho, which: facility_step(d, x, previous, rho, *rows, which, scale, work)

    def served(self, x: np.ndarray, which: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        from onesfw.submodular.kernels import facility_pass

        out, work = np.empty(which.size), np.empty(self.longest)
        facility_pass(x, self.indptr, self.indices, self.values, self.weights, which, gradient, out, work)
        return out

    def thresholds(self, x: np.ndarray, which: np.ndarray) -> np.ndarray:
        from onesfw.submodular.bound_kernels import facility_thresholds

        tau = np.empty(which.size)
        facility_thresholds(x, self.indptr, self.indices, self.values, which, tau)
        return tau

    def excess(self, tau: np.ndarray, which: np.ndarray) -> np.ndarray:
        from onesfw.submodular.bound_kernels import facility_excess

        out = np.zeros(self.n)
        facility_excess(tau, self.indptr, self.indices, self.values, self.weights, which, out)
        return out

    def marginals(self, chosen: Any) -> np.ndarray:
        """g_i(S) = f(S + i) − f(S − i) for all i: each sorted row is read down to the second chosen element."""
        from onesfw.submodular.kernels import facility_marginals

        out = np.zeros(self.n)
        facility_marginals(as_mask(chosen, self.n), self.indptr, self.indices, self.values, self.weights, out)
        return out

    def state(self) -> State:
        """The empty set; a gain costs as much as the element has entries."""
        return Served(self)


class Served(State):
    """How well each row is served so far."""

    def __init__(self, function: FacilityLocation) -> None:
        from onesfw.submodular import kernels

        self.level, self.weights = np.zeros(function.omegas), function.weights
        self.value, self.chosen = 0.0, []
        if function.indices.size == function.n * function.omegas:
            self.columns: tuple[np.ndarray, ...] = (np.empty((function.n, function.omegas)),)
            kernels.by_column(function.indices, function.values, self.columns[0])
            self.measure, self.serve = kernels.dense_gains, kernels.dense_raise
        else:
            self.columns = function.columns()
            self.measure, self.serve = kernels.gains_by_element, kernels.raise_level

    def gains(self, candidates: np.ndarray) -> np.ndarray:
        out = np.empty(candidates.size)
        self.measure(candidates, *self.columns, self.level, self.weights, out)
        return out

    def add(self, i: int) -> None:
        self.value += float(self.gains(np.array([i]))[0])
        self.serve(i, *self.columns, self.level)
        self.chosen.append(i)


def falling(similarity: Any, *, spare: bool = False) -> tuple[int, int, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns, and every row's positive entries in the order of falling values: indptr, indices, values.

    A dense matrix of positive numbers is sorted block by block: besides it, 12 bytes an entry are needed, or 4 where it
    is `spare` and may be overwritten.
    """
    if not sp.issparse(similarity) and positive(dense := np.asarray(similarity)):
        own = spare and dense.dtype == np.float64 and dense.flags.c_contiguous
        values = dense if own else np.empty(dense.shape)
        indices = np.empty(dense.shape, np.int32)
        for start in range(0, dense.shape[0], BLOCK):
            block = slice(start, start + BLOCK)
            order = np.argsort(-dense[block], axis=1)
            values[block] = np.take_along_axis(dense[block], order, axis=1)
            indices[block] = order
        indptr = np.arange(dense.shape[0] + 1, dtype=np.int64) * dense.shape[1]
        return *dense.shape, indptr, indices.ravel(), values.ravel()
    matrix = as_sparse(similarity, "FacilityLocation", "similarity")
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    falls = np.lexsort((matrix.indices, -matrix.data, rows))
    return *matrix.shape, matrix.indptr.astype(np.int64), matrix.indices[falls].astype(np.int32), matrix.data[falls]


def positive(dense: np.ndarray) -> bool:
    """Whether every entry of a matrix of floats is positive and within range; a NaN is not."""
    fits = dense.ndim == 2 and dense.dtype.kind == "f" and 0 < dense.size <= MOST_ENTRIES
    return fits and float(dense.min()) > 0 and float(dense.max()) <= LARGEST
