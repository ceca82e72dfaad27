"""f(S) = log det(I + L_S): the information that the elements of S carry together."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cholesky, solve_triangular

from onesfw.sets.host import on_host
from onesfw.submodular.base import Function, State, as_mask
from onesfw.submodular.rows import LARGEST
from onesfw.trees import Array, Tree

MOST_CHECKED = 2_000  # rows of a kernel whose eigenvalues are computed, to see that it is positive semidefinite


class LogDet(Function):
    """f(S) = log det(I + L_S), L positive semidefinite: twice the information gain of Gaussian observations of S.

    Monotone and submodular. (The log-probability of a determinantal point process is log det L_S, without I: that one
    is not monotone and is not offered.) Marginals, all n in O(|S|³ + n|S|²): log(1 + L_ii − L_iS (I + L_S)⁻¹ L_Si) for
    i outside S, −log [(I + L_S)⁻¹]_ii for i in S. There is no randomness ω and no closed-form extension: S is sampled.

    Args:
        kernel: L, n × n, symmetric positive semidefinite.
    """

    n: int = eqx.field(static=True)
    kernel: Any

    def __init__(self, kernel: Any) -> None:
        matrix = np.asarray(kernel)
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
        if matrix.shape[0] <= MOST_CHECKED:
            least = float(np.linalg.eigvalsh(matrix)[0])
            if least < -1e-8 * scale * matrix.shape[0]:
                raise ValueError(f"LogDet: kernel must be positive semidefinite; its least eigenvalue is {least:g}")
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

    def value(self, chosen: Any) -> float:
        """f(S)."""
        inside = np.flatnonzero(as_mask(chosen, self.n))
        return float(np.linalg.slogdet(np.eye(inside.size) + self.kernel[np.ix_(inside, inside)])[1])

    def marginals(self, chosen: Any) -> np.ndarray:
        """g_i(S) = f(S + i) − f(S − i) for all i."""
        return all_marginals(self.kernel, as_mask(chosen, self.n))

    def state(self) -> State:
        """The empty set; all gains together cost O(n|S|) per addition."""
        return Factorised(self)


class Factorised(State):
    """The rows that S adds to the Cholesky factor of I + L, and what is left of its diagonal."""

    def __init__(self, function: LogDet) -> None:
        self.matrix = function.kernel
        self.left = 1.0 + np.diag(function.kernel)
        self.factor = np.zeros((0, function.n))
        self.value, self.chosen = 0.0, []

    def gains(self, candidates: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(self.left[candidates], 1.0))

    def add(self, i: int) -> None:
        self.value += float(self.gains(np.array([i]))[0])
        row = self.matrix[i] - self.factor[:, i] @ self.factor
        row[i] += 1.0
        row /= np.sqrt(max(self.left[i], 1.0))
        self.left = self.left - row * row
        self.factor = np.vstack([self.factor, row])
        self.chosen.append(i)


def all_marginals(kernel: np.ndarray, s: np.ndarray) -> np.ndarray:
    """f(S + i) − f(S − i) for all i, from one factorisation of I + L_S."""
    kernel = np.asarray(kernel, np.float64)
    inside = np.flatnonzero(np.asarray(s) > 0.5)
    left = 1.0 + np.diag(kernel)
    if inside.size == 0:
        return np.log(left)
    factor = cholesky(np.eye(inside.size) + kernel[np.ix_(inside, inside)], lower=True)
    solved = solve_triangular(factor, kernel[inside], lower=True)
    out = np.log(np.maximum(left - np.sum(solved * solved, axis=0), 1.0))
    inverse = solve_triangular(factor, np.eye(inside.size), lower=True)
    out[inside] = -np.log(np.minimum(np.sum(inverse * inverse, axis=0), 1.0))
    return out
