"""f(S) = log det(I + L_S): the information that the elements of S carry together."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from onesfw.engine.keys import Key, seed_of
from onesfw.sets.host import on_host
from onesfw.submodular.base import Chosen, Function, Judge, Source, State, as_mask
from onesfw.submodular.certificates import ByMarginals
from onesfw.submodular.matroids import Matroid
from onesfw.submodular.row_functions import LARGEST
from onesfw.trees import Array, HostArray, Tree, as_array

MOST_CHECKED = 5_000  # rows of a kernel that is factorised, to see that it is positive semidefinite
WORTH_THREADS = 1e11  # operations from which BLAS may use as many threads as it likes: seconds of one core
ROUNDING = 1e-4  # by which a pivot, 1 at least, may fall short, relative to the largest: kernels may come in float32
INDEFINITE = "LogDet: kernel must be positive semidefinite, and it has a negative eigenvalue; add a multiple of I to it"
LOST = (
    "LogDet: I + L_S is not positive definite for a set S: kernel is not positive semidefinite, or so large and nearly "
    "singular that rounding hides I; add a multiple of I to it, or scale it"
)


class LogDet(Function):
    """f(S) = log det(I + L_S), L positive semidefinite: twice the information gain of Gaussian observations of S.

    Monotone and submodular. (The log-probability of a determinantal point process is log det L_S, without I: that one
    is not monotone and is not offered.) Marginals, all n in O(|S|³ + n|S|²): log(1 + L_ii − L_iS (I + L_S)⁻¹ L_Si) for
    i outside S, −log [(I + L_S)⁻¹]_ii for i in S. There is no randomness ω and no closed-form extension: S is sampled.

    Args:
        kernel: L, n × n, symmetric positive semidefinite. That is checked up to n = 5,000; of larger ones all pairs
            are, and a negative pivot that a set runs into later is an error.

    Raises:
        TypeError: where kernel holds no numbers.
        ValueError: where it is not square, not symmetric, not finite, too large, or not positive semidefinite.

    Example:
        >>> from onesfw import submodular as sm
        >>> f = sm.LogDet([[3.0, 0.0], [0.0, 1.0]])
        >>> round(f.value([0]), 4), round(f.value([0, 1]), 4)  # log 4 and log 8
        (1.3863, 2.0794)
    """

    n: int = eqx.field(static=True)
    kernel: HostArray

    def __init__(self, kernel: ArrayLike) -> None:
        matrix = as_array(kernel, "LogDet: kernel")
        if matrix.dtype.kind not in "fiub":
            raise TypeError(f"LogDet: kernel must hold numbers, got dtype {matrix.dtype}")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise ValueError(f"LogDet: kernel must be a square matrix, got shape {matrix.shape}")
        matrix = matrix.astype(np.float64)
        scale = float(np.max(np.abs(matrix)))
        if not np.isfinite(scale):
            raise ValueError("LogDet: kernel has NaN or infinite entries; remove or impute them first")
        if scale > LARGEST:
            raise ValueError(f"LogDet: kernel must be at most {LARGEST:g}, so that it fits into float32; scale it")
        if np.max(np.abs(matrix - matrix.T)) > 1e-8 * max(scale, 1e-300):
            raise ValueError("LogDet: kernel must be symmetric; use (L + L.T)/2 if that is what you mean")
        check_semidefinite(matrix, 1e-8 * max(scale, 1e-200) * matrix.shape[0])
        self.n, self.kernel = int(matrix.shape[0]), (matrix + matrix.T) / 2

    @property
    def omegas(self) -> int:
        return 1

    def draw(self, key: Array, number: Array) -> Tree:
        return jnp.zeros((), jnp.int32)

    def value_at(self, s: Array, omega: Tree) -> Array:
        kernel = jnp.asarray(self.kernel, s.dtype)
        return jnp.linalg.slogdet(jnp.eye(self.n, dtype=s.dtype) + s[:, None] * kernel * s)[1]

    def marginals_at(self, s: Array, omega: Tree) -> Array:
        # |S| is small and changes: on the host its own size decides the cost, not n.
        return on_host(all_marginals, s, jnp.asarray(self.kernel, s.dtype), s)

    def value(self, chosen: Chosen) -> float:
        """f(S)."""
        inside = np.flatnonzero(as_mask(chosen, self.n))
        with quietly(float(inside.size) ** 3):
            sign, value = np.linalg.slogdet(np.eye(inside.size) + self.kernel[np.ix_(inside, inside)])
        if sign <= 0:
            raise ValueError(LOST)
        return float(value)

    def marginals(self, chosen: Chosen) -> HostArray:
        """g_i(S) = f(S + i) − f(S − i) for all i."""
        return all_marginals(self.kernel, as_mask(chosen, self.n))

    def state(self) -> State:
        """The empty set; all gains together cost O(n|S|) per addition."""
        return Factorised(self)

    def source(self, batch: int, key: Key) -> Source:
        """Sets drawn from x."""
        return DrawnSets(self, batch, seed_of(key))

    def judge(self, matroid: Matroid, seed: int, other: int) -> Judge:
        """Values are exact, bounds by marginals."""
        return ByMarginals(self, matroid, seed)


class Factorised(State):
    """The rows that S adds to the Cholesky factor of I + L, and what is left of its diagonal."""

    def __init__(self, function: LogDet) -> None:
        self.matrix = function.kernel
        self.left = 1.0 + np.diag(function.kernel)
        self.largest = float(self.left.max())
        self.factor = np.zeros((0, function.n))
        self.value, self.chosen = 0.0, []

    def gains(self, candidates: HostArray) -> HostArray:
        return np.log(np.maximum(self.left[candidates], 1.0))

    def add(self, i: int) -> None:
        self.value += float(self.gains(np.array([i]))[0])
        row = self.matrix[i] - self.factor[:, i] @ self.factor
        row[i] += 1.0
        row /= np.sqrt(max(self.left[i], 1.0))
        self.left = self.left - row * row
        self.left[i] = 1.0  # is not asked for again
        check_pivots(self.left, self.largest)
        self.factor = np.vstack([self.factor, row])
        self.chosen.append(i)


class DrawnSets(Source):
    """The same estimator as `TracedSource`'s in NumPy: |S| decides the cost, not n."""

    closed = False

    def __init__(self, function: LogDet, batch: int, seed: int) -> None:
        self.kernel, self.batch, self.rng = function.kernel, batch, np.random.default_rng(seed)

    def update(self, d: HostArray, x: HostArray, previous: HostArray, rho: float, t: int) -> None:
        u = x - previous
        sizes = np.cumsum(np.abs(u))
        gradient, change = np.zeros_like(d), np.zeros_like(d)
        for _ in range(self.batch):
            place, choice = self.rng.random(2)
            s = self.rng.random(d.size) < place * x + (1 - place) * previous
            here = all_marginals(self.kernel, s)
            gradient += here / self.batch
            if sizes[-1] > 0 and rho < 1:
                j = min(int(np.searchsorted(sizes, choice * sizes[-1], side="right")), d.size - 1)
                inside = s[j]
                s[j] = not inside
                there = all_marginals(self.kernel, s)
                change += np.sign(u[j]) * sizes[-1] * (here - there if inside else there - here) / self.batch
        d[:] = (1 - rho) * (d + change) + rho * gradient


def all_marginals(kernel: HostArray, s: HostArray) -> HostArray:
    """f(S + i) − f(S − i) for all i, from one factorisation of I + L_S."""
    kernel = np.asarray(kernel, np.float64)
    inside = np.flatnonzero(np.asarray(s) > 0.5)
    left = 1.0 + np.diag(kernel)
    if inside.size == 0:
        return np.log(left)
    largest = float(left.max())
    with quietly(float(inside.size) ** 2 * left.size):
        try:
            factor = cholesky(np.eye(inside.size) + kernel[np.ix_(inside, inside)], lower=True)
        except LinAlgError:
            raise ValueError(LOST) from None
        solved = solve_triangular(factor, kernel[inside], lower=True)
        inverse = solve_triangular(factor, np.eye(inside.size), lower=True)
    left -= np.sum(solved * solved, axis=0)
    left[inside] = 1.0
    check_pivots(left, largest)
    out = np.log(np.maximum(left, 1.0))
    out[inside] = -np.log(np.minimum(np.sum(inverse * inverse, axis=0), 1.0))
    return out


def check_pivots(left: HostArray, largest: float) -> None:
    """Raise an error where 1 + L_ii − L_iS (I + L_S)⁻¹ L_Si is below 1 for an i outside S, beyond rounding."""
    if float(left.min()) < 1.0 - ROUNDING * largest:
        raise ValueError(LOST)


def check_semidefinite(matrix: HostArray, slack: float) -> None:
    """Raise an error where an eigenvalue is below −slack: L + slack · I has a Cholesky factor or it has not."""
    diagonal = np.diag(matrix)
    bounds = np.sqrt(np.maximum(diagonal, 0.0)) + np.sqrt(slack)
    if diagonal.min() < -slack or np.any(np.abs(matrix) > bounds[:, None] * bounds):
        raise ValueError(INDEFINITE)
    n = matrix.shape[0]
    if n <= MOST_CHECKED:
        with quietly(n**3 / 3):
            try:
                cholesky(matrix + 2 * slack * np.eye(n), lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                raise ValueError(INDEFINITE) from None


# Small calls to BLAS run on one thread: waking others costs more than they save, and far more on busy cores.


class OneThread(AbstractContextManager[None]):
    """BLAS on one thread while a block of this runs: the first one to enter sets the limit, the last takes it back."""

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController

        # Finding the libraries takes milliseconds: once. Setting their threads takes microseconds.
        self.libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        self.lock, self.blocks = threading.Lock(), 0
        self.before: list[int] = []

    def __enter__(self) -> None:
        with self.lock:
            if self.blocks == 0:
                self.before = [library.num_threads for library in self.libraries]
                for library in self.libraries:
                    library.set_num_threads(1)
            self.blocks += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.blocks -= 1
            if self.blocks == 0:
                for library, threads in zip(self.libraries, self.before, strict=True):
                    library.set_num_threads(threads)


@cache
def one_thread() -> OneThread:
    """The process's own."""
    return OneThread()


def quietly(operations: float) -> AbstractContextManager[None]:
    """One thread for a block that has so few operations to do; as it is for larger ones."""
    return nullcontext() if operations >= WORTH_THREADS else one_thread()
