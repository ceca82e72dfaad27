"""Functions that are a sum over rows, each row served by the best element of a list: what numba kernels know.

Their certificate: f = E_ω max_{i∈S} m_ωi, any thresholds τ_ω ≥ 0: OPT ≤ E τ_ω + max_v Σ_i v_i E (m_ωi − τ_ω)⁺. The
thresholds come from Frank-Wolfe on the concave relaxation, averaged over its iterates.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax
from numpy.typing import ArrayLike

from onesfw.engine.keys import Key, seed_of
from onesfw.objectives.indices import uniform_index
from onesfw.submodular.base import (
    Bound,
    Chosen,
    Estimate,
    Function,
    Judge,
    Source,
    Verdict,
    as_mask,
    as_point,
    estimate,
)
from onesfw.submodular.certificates import gradient_bound, verdict
from onesfw.submodular.matroids import Matroid
from onesfw.trees import Array, HostArray, Tree, as_array


@runtime_checkable
class Sparse(Protocol):
    """A sparse matrix in any of SciPy's formats."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> sp.csr_matrix:
        """Row by row."""

    def toarray(self) -> HostArray:
        """With its zeros."""


Matrix = ArrayLike | Sparse
Stepper = Callable[[HostArray, HostArray, HostArray, float, HostArray], None]
LARGEST = 1e30  # of a weight, a similarity or f for one ω: sums of these must fit into float32
MOST_ENTRIES = 2**31 - 1  # entries are numbered in 32 bits under JAX
BLOCK = 1 << 16  # rows whose numbers are drawn at once
GLANCED = 256  # rows that a point of the trace is measured on
ROUNDS = 100  # Frank-Wolfe iterates of the relaxation, fewer on very many entries
LEAST_ROUNDS = 20
WORK = 200_000_000  # entries read in all
KEPT = 15  # iterates whose thresholds are averaged where they must be found anew on another sample


class RowFunction(Function):
    """f(S) = Σ_r weight_r · max_{i∈S} m_ri: coverage (m = 0 or 1) and facility location.

    ω is a row, drawn uniformly out of `omegas`; f_ω = omegas · (its term). Row r lists the elements
    indices[indptr[r]:indptr[r+1]]; `values` holds their m, falling along the row, or nothing where all are 1.
    """

    indptr: eqx.AbstractVar[HostArray]
    indices: eqx.AbstractVar[HostArray]
    values: eqx.AbstractVar[HostArray]
    weights: eqx.AbstractVar[HostArray]
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
    def stepper(self, scale: float) -> Stepper:
        """The kernel (d, x, previous, ρ, rows): d ← (1 − ρ)(d + Δ̃) + ρ g in place, from one batch (Algorithm 2).

        `scale` is f_ω over the term of its row. Bound to the arrays once: a method of a module is looked up anew, and
        slowly, at every call.
        """

    @abc.abstractmethod
    def served(self, x: HostArray, which: HostArray, gradient: HostArray) -> HostArray:
        """F_r(x)/weight_r for the rows `which`; Σ of their gradients is added to `gradient`."""

    @abc.abstractmethod
    def thresholds(self, x: HostArray, which: HostArray) -> HostArray:
        """τ_ω(x) of the second certificate."""

    @abc.abstractmethod
    def excess(self, tau: HostArray, which: HostArray) -> HostArray:
        """Σ_ω weight_ω (m_ωi − τ_ω)⁺ for every i."""

    def source(self, batch: int, key: Key) -> Source:
        """Rows drawn uniformly."""
        return RowSource(self, batch, seed_of(key))

    def judge(self, matroid: Matroid, seed: int, other: int) -> Judge:
        """Everything by passes over all rows."""
        return ExactRows(self, matroid, seed)

    def extension(self, x: ArrayLike) -> tuple[float, HostArray]:
        """F(x) and ∇F(x), exact: O(entries)."""
        gradient = np.zeros(self.n)
        served = self.served(as_point(x, self.n), np.arange(self.omegas), gradient)
        return float(self.weights @ served), gradient

    def value(self, chosen: Chosen) -> float:
        """f(S)."""
        return float(self.weights @ self.served_by(chosen))

    def served_by(self, chosen: Chosen) -> HostArray:
        """max_{i∈S} m_ri for every row."""
        mask = as_mask(chosen, self.n)
        return self.served(mask.astype(np.float64), np.arange(self.omegas), np.zeros(self.n))

    def columns(self) -> tuple[HostArray, HostArray, HostArray]:
        """The same entries by element: starts, rows, values."""
        values = self.values if self.values.size else np.ones(self.indices.size, np.int8)
        matrix = sp.csr_matrix((values, self.indices, self.indptr), (self.omegas, self.n)).tocsc()
        return matrix.indptr.astype(np.int64), matrix.indices, matrix.data


class RowSource(Source):
    """Rows drawn uniformly, with replacement."""

    closed = True

    def __init__(self, function: RowFunction, batch: int, seed: int) -> None:
        self.rows, self.batch, self.advance = function.omegas, batch, function.stepper(float(function.omegas))
        self.rng = np.random.default_rng(seed)
        self.block, self.used = np.zeros(0, np.int64), 0

    def update(self, d: HostArray, x: HostArray, previous: HostArray, rho: float, t: int) -> None:
        if self.used + self.batch > self.block.size:
            self.block = self.rng.integers(0, self.rows, max(BLOCK, self.batch))
            self.used = 0
        which = self.block[self.used : self.used + self.batch]
        self.used += self.batch
        self.advance(d, x, previous, rho, which)


class ExactRows(Judge):
    """Coverage and facility location: everything by passes over all rows."""

    def __init__(self, function: RowFunction, matroid: Matroid, seed: int) -> None:
        self.function, self.matroid = function, matroid
        count = min(GLANCED, function.omegas)
        self.some = np.random.default_rng(seed).choice(function.omegas, count, replace=False)

    def choose(self, chosen: HostArray) -> float:
        return self.function.value(chosen)

    def marginals(self, chosen: HostArray) -> HostArray:
        return self.function.marginals(chosen)

    def report(self, chosen: HostArray, x: HostArray) -> Verdict:
        value, mask = self.function.value(chosen), as_mask(chosen, self.function.n).astype(np.float64)
        at_set = gradient_bound(value, self.function.marginals(chosen), mask, self.matroid)
        bounds = [
            relaxation(self.function, self.matroid)[0],
            row_gradient_bound(self.function, x, self.matroid),
            Bound(at_set, "marginals"),
        ]
        return verdict(Estimate(value, 0.0), min(bounds, key=lambda bound: bound.value))

    def fractional(self, x: HostArray) -> Estimate:
        return Estimate(self.function.extension(x)[0], 0.0)

    def glance(self, x: HostArray) -> Estimate:
        function = self.function
        terms = function.omegas * function.weights[self.some]
        terms = terms * function.served(x, self.some, np.zeros(function.n))
        return estimate(terms, function.omegas)


def row_gradient_bound(function: RowFunction, x: HostArray, matroid: Matroid) -> Bound:
    """The certificate by F(x) and ∇F(x) on all rows."""
    value, gradient = function.extension(x)
    return Bound(gradient_bound(value, gradient, x, matroid), "gradient")


def threshold_bound(function: RowFunction, tau: HostArray, matroid: Matroid) -> tuple[float, HostArray]:
    """The certificate by thresholds for given thresholds on all rows, and its v."""
    excess = function.excess(tau, np.arange(function.omegas))
    base = matroid.base(excess)
    v = np.zeros(function.n)
    v[base] = 1.0
    return float(function.weights @ tau + excess[base].sum()), v


def relaxation(function: RowFunction, matroid: Matroid) -> tuple[Bound, HostArray]:
    """The certificate by thresholds on all rows, and the relaxation's last iterates, from which it can be had anew.

    x_{j+1} = x_j + (v_j − x_j)/(j + 1) with v_j the base of the largest excess over τ(x_j); thresholds are averaged
    with weights j. The least bound seen holds: every one does.
    """
    rows = np.arange(function.omegas)
    x = np.full(function.n, matroid.rank / function.n)
    mean, total = np.zeros(function.omegas), 0.0
    best = np.inf
    kept = []
    rounds = min(ROUNDS, max(LEAST_ROUNDS, WORK // function.indices.size))
    for j in range(1, rounds + 1):
        tau = function.thresholds(x, rows)
        mean, total = mean + j * tau, total + j
        if j > rounds - KEPT:
            kept.append(x.copy())
        if j == rounds or j % 25 == 0:
            best = min(best, threshold_bound(function, mean / total, matroid)[0])
        base = matroid.base(function.excess(tau, rows))
        x *= 1.0 - 1.0 / j
        x[base] += 1.0 / j
    return Bound(float(best), "thresholds"), np.array(kept)


def relaxation_anew(function: RowFunction, points: HostArray, matroid: Matroid) -> Bound:
    """The certificate by thresholds on other rows, the thresholds from the same iterates: they are fixed beforehand."""
    from onesfw.submodular.kernels import row_sums

    rows = np.arange(function.omegas)
    tau = np.mean([function.thresholds(x, rows) for x in points], axis=0)
    value, v = threshold_bound(function, tau, matroid)
    over = np.empty(function.omegas)
    row_sums(v, function.indptr, function.indices, rows, function.values, tau, over)
    return Bound(value, "thresholds", function.omegas * function.weights * (tau + over))


def row_weights(weights: ArrayLike | None, count: int, name: str, what: str) -> HostArray:
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


def as_sparse(matrix: Matrix, name: str, what: str) -> sp.csr_matrix:
    """A dense or sparse matrix of finite non-negative numbers as CSR, without stored zeros."""
    if not isinstance(matrix, Sparse):
        array = as_array(matrix, f"{name}: {what}")
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


def feature_matrix(features: ArrayLike, name: str) -> HostArray:
    """Finite features, a row per element; an error where they are none."""
    points = as_array(features, f"{name}: features")
    if points.dtype.kind not in "fiub":
        raise TypeError(f"{name}: features must hold numbers, got dtype {points.dtype}")
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"{name}: features must have a row per element and at least one column, got {points.shape}")
    points = points.astype(np.float64)
    if not np.all(np.isfinite(points)):
        raise ValueError(f"{name}: features has NaN or infinite entries; remove or impute them first")
    return points
