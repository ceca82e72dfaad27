"""f(S) = Σ_r w_r max_{i∈S} similarity(r, i): how well S represents everyone."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from onesfw.arguments import choose, whole_number
from onesfw.submodular.base import Chosen, State, as_mask
from onesfw.submodular.row_functions import (
    LARGEST,
    MOST_ENTRIES,
    Matrix,
    RowFunction,
    Sparse,
    Stepper,
    as_sparse,
    check_size,
    feature_matrix,
    row_weights,
)
from onesfw.trees import Array, HostArray, Tree, as_array

Kernel = Callable[[HostArray, HostArray], ArrayLike]
BLOCK = 256  # rows that are sorted at once
KERNELS = ("rbf", "cosine", "linear")
NEAR = ("rbf", "cosine")  # whose similarities fall with the distance
MOST_PAIRED = 15_000  # elements up to which all pairs are compared: 14 bytes each at the peak, 3 GB
NEIGHBORS = 100  # that elements are compared with beyond
SCALED_BY = 2_000  # elements whose distances scale those to neighbours
SEARCHED = 8_192  # elements whose neighbours are looked for at once
ACCURACY = 1e-8  # of d² relative to its median


class FacilityLocation(RowFunction):
    """f(S) = Σ_r w_r max_{i∈S} m_ri with m ≥ 0: every row r is served by its most similar element of S.

    For one row sorted by falling m: R_n = 0, R_{k−1} = m_k x_k + (1 − x_k) R_k, F_ω = R_0; P_1 = 1,
    P_{k+1} = P_k (1 − x_k), ∂_k = P_k (m_k − R_k). One sort per row, then O(row) at most.

    Beyond memory f is taken over nearest neighbours: an element serves those that have it among their `neighbors`
    nearest (exactly found, by scikit-learn), and the others not at all. That f' is monotone and submodular too, and
    f' ≤ f: a set's value is at least what is reported, while the upper bound and the ratio are about f', not f.

    Args:
        similarity: rows to serve × n elements, not negative, dense or scipy sparse (absent entries are 0).
        features: in place of `similarity`: one row of numbers per element; the elements serve each other.
        kernel: what makes similarities of features: "rbf", exp(−d²/median d²); "cosine" and "linear", their
            non-negative part; or a function of two matrices of features.
        neighbors: of features with "rbf" or "cosine": how many nearest elements, itself among them, may serve an
            element; None for all of them up to 15,000 elements and for 100 beyond. n stands for all whatever n is.
        weights: of the rows, not negative; ones where left out.

    Raises:
        TypeError: where both or neither of similarity and features are given, or they hold no numbers.
        ValueError: where a number is negative, not finite or too large, or shapes do not match.

    Example:
        >>> from onesfw import submodular as sm
        >>> f = sm.FacilityLocation([[1.0, 0.2], [0.4, 0.9], [0.0, 0.5]])
        >>> f.value([0]), f.value([0, 1])
        (1.4, 2.4)
    """

    n: int = eqx.field(static=True)
    indptr: HostArray
    indices: HostArray
    values: HostArray
    weights: HostArray
    longest: int = eqx.field(static=True)
    neighbors: int | None = eqx.field(static=True)
    closed_form: ClassVar[bool] = True

    def __init__(
        self,
        similarity: Matrix | None = None,
        *,
        features: ArrayLike | None = None,
        kernel: str | Kernel = "rbf",
        neighbors: int | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        if (similarity is None) == (features is None):
            raise TypeError("FacilityLocation: give either similarity or features, not both and not neither")
        self.neighbors = None
        if features is not None:
            points = feature_matrix(features, "FacilityLocation")
            self.neighbors = neighbors_asked(len(points), kernel, neighbors)
        elif neighbors is not None:
            raise TypeError("FacilityLocation: neighbors goes with features; thin a similarity by leaving entries out")
        if self.neighbors is not None:
            rows = self.n = len(points)
            self.indptr, self.indices, self.values = nearest(points, kernel, self.neighbors)
        else:
            matrix = similarities(points, kernel) if similarity is None else similarity
            spare = similarity is None and not callable(kernel)
            rows, self.n, self.indptr, self.indices, self.values = falling(matrix, spare=spare)
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

    def stepper(self, scale: float) -> Stepper:
        from onesfw.submodular.kernels import facility_step

        rows = (self.indptr, self.indices, self.values, self.weights)
        work = np.empty(self.longest)
        return lambda d, x, previous, rho, which: facility_step(d, x, previous, rho, *rows, which, scale, work)

    def served(self, x: HostArray, which: HostArray, gradient: HostArray) -> HostArray:
        from onesfw.submodular.kernels import facility_pass

        out, work = np.empty(which.size), np.empty(self.longest)
        facility_pass(x, self.indptr, self.indices, self.values, self.weights, which, gradient, out, work)
        return out

    def thresholds(self, x: HostArray, which: HostArray) -> HostArray:
        from onesfw.submodular.kernels import facility_thresholds

        tau = np.empty(which.size)
        facility_thresholds(x, self.indptr, self.indices, self.values, which, tau)
        return tau

    def excess(self, tau: HostArray, which: HostArray) -> HostArray:
        from onesfw.submodular.kernels import facility_excess

        out = np.zeros(self.n)
        facility_excess(tau, self.indptr, self.indices, self.values, self.weights, which, out)
        return out

    def marginals(self, chosen: Chosen) -> HostArray:
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
            self.columns: tuple[HostArray, ...] = (np.empty((function.n, function.omegas)),)
            kernels.by_column(function.indices, function.values, self.columns[0])
            self.measure, self.serve = kernels.dense_gains, kernels.dense_raise
        else:
            self.columns = function.columns()
            self.measure, self.serve = kernels.gains_by_element, kernels.raise_level

    def gains(self, candidates: HostArray) -> HostArray:
        out = np.empty(candidates.size)
        self.measure(candidates, *self.columns, self.level, self.weights, out)
        return out

    def add(self, i: int) -> None:
        self.value += float(self.gains(np.array([i]))[0])
        self.serve(i, *self.columns, self.level)
        self.chosen.append(i)


def falling(similarity: Matrix, *, spare: bool = False) -> tuple[int, int, HostArray, HostArray, HostArray]:
    """Rows, columns, and every row's positive entries in the order of falling values: indptr, indices, values.

    A dense matrix of positive numbers is sorted block by block: besides it, 12 bytes an entry are needed, or 4 where it
    is `spare` and may be overwritten.
    """
    if not isinstance(similarity, Sparse) and positive(dense := as_array(similarity, "FacilityLocation: similarity")):
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


def positive(dense: HostArray) -> bool:
    """Whether every entry of a matrix of floats is positive and within range; a NaN is not."""
    fits = dense.ndim == 2 and dense.dtype.kind == "f" and 0 < dense.size <= MOST_ENTRIES
    return fits and float(dense.min()) > 0 and float(dense.max()) <= LARGEST


def similarities(features: ArrayLike, kernel: str | Kernel) -> HostArray:
    """The elements' similarities to one another, from one row of numbers each."""
    points = feature_matrix(features, "FacilityLocation")
    if callable(kernel):
        made = np.asarray(kernel(points, points))
        if made.shape != (points.shape[0], points.shape[0]):
            raise ValueError(
                f"FacilityLocation: kernel must return one number per pair, {points.shape[0]} × {points.shape[0]}, "
                f"got shape {made.shape}"
            )
        return made
    choose(kernel, KERNELS, "kernel")
    if kernel == "rbf":
        return gaussian(points)
    if kernel == "cosine":
        points = unit_rows(points)
    with np.errstate(over="ignore"):  # what does not fit is refused as a similarity
        products = points @ points.T
    return np.maximum(products, 0.0, out=products)


def gaussian(points: HostArray) -> HostArray:
    """exp(−d²/median d²) for all pairs; 12 bytes a pair at most.

    d² = |a|² + |b|² − 2ab is one product of matrices, right up to rounding errors of the longest |a|²: points are
    centred first, and where an outlier makes those errors matter, differences are squared instead.
    """
    points = shrunk(points)
    points = shrunk(points - points.mean(0))
    distances, largest = squared_distances(points)
    scale = median_of_pairs(distances)
    if scale * ACCURACY < np.finfo(float).eps * largest:
        from scipy.spatial.distance import cdist

        cdist(points, points, "sqeuclidean", out=distances)
        scale = median_of_pairs(distances)
    distances /= -(scale if scale > 0 else 1.0)
    return np.exp(distances, out=distances)


def squared_distances(points: HostArray) -> tuple[HostArray, float]:
    """d² for all pairs by one product of matrices, and the largest |a|²."""
    squares = np.einsum("ij,ij->i", points, points)
    distances = points @ points.T
    distances *= -2.0
    distances += squares
    distances += squares[:, None]
    np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, 0.0)
    return distances, float(squares.max())


def default_neighbors(n: int, neighbors: int | None) -> int | None:
    """How many neighbours n elements are compared with: None for all of them."""
    if neighbors is None:
        return None if n <= MOST_PAIRED else NEIGHBORS
    count = whole_number(neighbors, "neighbors", 1)
    return None if count >= n else count


def neighbors_asked(n: int, kernel: str | Kernel, neighbors: int | None) -> int | None:
    """`default_neighbors` where the kernel has nearest neighbours; all pairs, or an error, where it has not."""
    if kernel in NEAR:
        return default_neighbors(n, neighbors)
    if neighbors is not None:
        raise ValueError("FacilityLocation: neighbors goes with kernel='rbf' or 'cosine', whose similarity is nearness")
    return None


def nearest(points: HostArray, kernel: str | Kernel, count: int) -> tuple[HostArray, ...]:
    """Every element's `count` nearest ones, itself among them, by falling similarity: indptr, indices, values.

    d² is scaled by its median over the pairs of 2,000 elements, where `gaussian` takes all.
    """
    from sklearn.neighbors import NearestNeighbors

    n = len(points)
    if n * count > MOST_ENTRIES:
        raise ValueError(f"FacilityLocation: neighbors must be at most {MOST_ENTRIES // n:,} for {n:,} elements")
    if kernel == "rbf":
        points = shrunk(points)
        points = shrunk(points - points.mean(0))
        some = points[np.random.default_rng(0).choice(n, min(n, SCALED_BY), replace=False)]
        scale = median_of_pairs(squared_distances(some)[0]) or 1.0
    else:
        points, scale = unit_rows(points), 2.0
    search = NearestNeighbors(n_neighbors=count).fit(points)
    indices, values = np.empty((n, count), np.int32), np.empty((n, count))
    for start in range(0, n, SEARCHED):
        block = slice(start, start + SEARCHED)
        distances, indices[block] = search.kneighbors(points[block])
        squares = np.square(distances, out=distances) / scale
        values[block] = np.exp(-squares) if kernel == "rbf" else np.maximum(1.0 - squares, 0.0)
    return np.arange(n + 1, dtype=np.int64) * count, indices.ravel(), values.ravel()


def median_of_pairs(distances: HostArray) -> float:
    """The median of a symmetric matrix that is 0 on the diagonal and nowhere negative, from its upper half."""
    n = distances.shape[0]
    upper = np.empty(n * (n - 1) // 2)
    end = 0
    for i in range(n - 1):
        start, end = end, end + n - 1 - i
        upper[start:end] = distances[i, i + 1 :]
    # In order, the whole matrix is n zeros and then every entry of the upper half twice.
    places = [(rank - n) // 2 for rank in ((n * n - 1) // 2, n * n // 2) if rank >= n]
    if not places:
        return 0.0
    upper.partition(places)
    return float(sum(upper[place] for place in places)) / 2


def unit_rows(points: HostArray) -> HostArray:
    """Rows of length 1; a row of zeros stays one."""
    points = shrunk(points, axis=1)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return points / np.where(lengths > 0, lengths, 1.0)


def shrunk(points: HostArray, axis: int | None = None) -> HostArray:
    """The points times a power of 2, one for all or one per row: no entry above 1, so that squares neither overflow nor
    vanish, and not one digit lost."""
    _, exponents = np.frexp(np.abs(points).max(axis=axis, keepdims=axis is not None))
    return np.ldexp(points, -exponents)
