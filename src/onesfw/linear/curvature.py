"""X' diag(D) X on some columns: a matrix where it is small, products with the rows elsewhere."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse
from numba import njit
from scipy.linalg import lapack

from onesfw.linear.examples import read_only
from onesfw.trees import HostArray

FAST = {"reassoc", "contract", "nsz"}
MOST_COLUMNS = 3_000  # of a dense factorisation
LEAST_ROOM = 64 << 20  # bytes that a matrix may take, however small the rows are
THICK = 0.6  # the share of entries from which blocks of rows are multiplied as dense ones
BLOCK_ENTRIES = 1 << 20
LEAST_RIDGE = 1e-12  # of the largest diagonal entry: a column may be empty in the rows that bend
CG_STEPS, CG_ACCURACY = 3_000, 1e-9


@njit(cache=True, nogil=True)
def multiply(indptr: HostArray, indices: HostArray, values: HostArray, x: HostArray, out: HostArray) -> None:
    """out = X x. Without fastmath: sums in another order would gather entries of x, at half the speed."""
    for i in range(out.shape[0]):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += values[p] * x[indices[p]]
        out[i] = total


@njit(cache=True, nogil=True, fastmath=FAST)
def multiply_back(indptr: HostArray, indices: HostArray, values: HostArray, w: HostArray, out: HostArray) -> None:
    """out = X' w."""
    out[:] = 0.0
    for i in range(w.shape[0]):
        if w[i] != 0.0:
            for p in range(indptr[i], indptr[i + 1]):
                out[indices[p]] += w[i] * values[p]


@njit(cache=True, nogil=True, fastmath=FAST)
def squares_back(indptr: HostArray, indices: HostArray, values: HostArray, w: HostArray, out: HostArray) -> None:
    """out_j = Σ w_i X_ij², the diagonal of X' diag(w) X."""
    out[:] = 0.0
    for i in range(w.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            out[indices[p]] += w[i] * values[p] * values[p]


@njit(cache=True, nogil=True)
def keep(
    indptr: HostArray, indices: HostArray, values: HostArray, place: HostArray, signs: HostArray,
    new_indptr: HostArray, new_indices: HostArray, new_values: HostArray,
) -> int:  # fmt: skip
    """The entries of the columns with place ≥ 0, renumbered, times the signs of their new columns; their number.

    Each entry is written and the next one goes over it where it is not kept: a branch would be guessed wrong too often.
    """
    kept = 0
    for i in range(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            at = place[indices[p]]
            new_indices[kept], new_values[kept] = at, values[p]
            kept += at >= 0
        new_indptr[i + 1] = kept
    for p in range(kept):
        new_values[p] *= signs[new_indices[p]]
    return kept


@njit(cache=True, nogil=True, fastmath=FAST)
def gram(indptr: HostArray, indices: HostArray, values: HostArray, bends: HostArray, out: HostArray) -> None:
    """out = X' diag(bends) X, where the columns of each row rise."""
    out[:, :] = 0.0
    for i in range(bends.shape[0]):
        if bends[i] != 0.0:
            for p in range(indptr[i], indptr[i + 1]):
                a, j = bends[i] * values[p], indices[p]
                for q in range(indptr[i], p + 1):
                    out[j, indices[q]] += a * values[q]
    for j in range(out.shape[0]):
        for k in range(j):
            out[k, j] = out[j, k]


class Columns(NamedTuple):
    """CSR rows of some columns, whose numbers rise along each row."""

    indptr: HostArray
    indices: HostArray
    values: HostArray
    width: int

    @property
    def nbytes(self) -> int:
        """Memory that the rows take."""
        return int(self.indptr.nbytes + self.indices.nbytes + self.values.nbytes)

    def times(self, x: HostArray) -> HostArray:
        """X x."""
        out = np.empty(len(self.indptr) - 1)
        multiply(self.indptr, self.indices, self.values, x, out)
        return out

    def back(self, w: HostArray) -> HostArray:
        """X' w."""
        out = np.empty(self.width)
        multiply_back(self.indptr, self.indices, self.values, w, out)
        return out

    def only(self, chosen: HostArray, signs: HostArray) -> Columns:
        """The chosen columns, in rising order, times their signs."""
        place = np.full(self.width, -1, np.int32)
        place[chosen] = np.arange(len(chosen))
        indptr = np.zeros(len(self.indptr), np.int64)
        # Room for all entries and one more; a page of memory that nothing is written to is none.
        indices = np.empty(len(self.indices) + 1, np.uint32)
        values = np.empty(len(self.indices) + 1, self.values.dtype)
        kept = keep(self.indptr, self.indices, self.values, place, signs, indptr, indices, values)
        return Columns(read_only(indptr), read_only(indices[:kept]), read_only(values[:kept]), len(chosen))

    def gram(self, bends: HostArray) -> HostArray:
        """X' diag(bends) X."""
        rows = len(bends)
        if self.indptr[-1] < THICK * rows * self.width:
            out = np.empty((self.width, self.width))
            gram(self.indptr, self.indices, self.values, bends, out)
            return out
        matrix = scipy.sparse.csr_array((self.values, self.indices.view(np.int32), self.indptr), (rows, self.width))
        out, step = np.zeros((self.width, self.width)), max(1, BLOCK_ENTRIES // self.width)
        for first in range(0, rows, step):
            block = matrix[first : first + step].toarray().astype(np.float64, copy=False)
            out += (block * bends[first : first + step, None]).T @ block
        return out


class Curvature(Protocol):
    """A positive semidefinite H: a model's second derivatives."""

    diagonal: HostArray

    def times(self, v: HostArray) -> HostArray:
        """H v."""

    def solve(self, free: HostArray, right: HostArray, shift: float = 0.0, accuracy: float = CG_ACCURACY) -> HostArray:
        """The u with (H + shift) u = right on the free coordinates, for each column of `right`.

        `accuracy` is that of an iterative solution.
        """


class Matrix:
    """H in full, solved by Cholesky's factorisation."""

    def __init__(self, columns: Columns, bends: HostArray, centred: bool, damping: float) -> None:
        self.H = columns.gram(bends)
        total = bends.sum()
        if centred and total > 0:  # the intercept follows: its part of the curvature goes
            h = columns.back(bends)
            self.H -= np.outer(h, h / total)
        self.H.flat[:: columns.width + 1] *= 1.0 + damping
        self.diagonal = self.H.diagonal()

    def times(self, v: HostArray) -> HostArray:
        """H v."""
        return self.H @ v

    def solve(self, free: HostArray, right: HostArray, shift: float = 0.0, accuracy: float = CG_ACCURACY) -> HostArray:
        """Cholesky, with a ridge that grows until it succeeds."""
        ridge, top = LEAST_RIDGE, max(float(self.diagonal.max(initial=0.0)), 1e-290)
        while True:
            part = self.H[free[:, None], free] if len(free) < len(self.H) else self.H.copy()
            part.flat[:: len(free) + 1] += shift + ridge * top
            factor, failed = lapack.dpotrf(part.T, lower=1, overwrite_a=1, clean=0)  # symmetric: .T is column by column
            if not failed:
                return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])
            ridge *= 100


class Products:
    """H by products with the rows, solved by conjugate gradients: memory of a few vectors."""

    def __init__(self, columns: Columns, bends: HostArray, centred: bool, damping: float) -> None:
        self.columns, self.bends = columns, bends
        self.total = float(bends.sum()) if centred else 0.0
        diagonal = np.empty(columns.width)
        squares_back(columns.indptr, columns.indices, columns.values, bends, diagonal)
        if self.total > 0:
            self.h = columns.back(bends)
            diagonal = np.maximum(diagonal - self.h**2 / self.total, 0.0)
        top = max(float(diagonal.max(initial=0.0)), 1e-290)
        self.extra = damping * diagonal + LEAST_RIDGE * top
        self.diagonal = diagonal + self.extra

    def times(self, v: HostArray) -> HostArray:
        """H v."""
        out = self.columns.back(self.bends * self.columns.times(v)) + self.extra * v
        return out - self.h * (self.h @ v / self.total) if self.total > 0 else out

    def solve(self, free: HostArray, right: HostArray, shift: float = 0.0, accuracy: float = CG_ACCURACY) -> HostArray:
        """Conjugate gradients, one column at a time, scaled by the diagonal."""
        return np.column_stack([self.one(free, column, shift, accuracy) for column in right.T])

    def one(self, free: HostArray, right: HostArray, shift: float, accuracy: float) -> HostArray:
        """(H + shift) u = right on the free coordinates."""
        scale = 1.0 / (self.diagonal[free] + shift)
        full = np.zeros(self.columns.width)
        u, residual = np.zeros(len(free)), right.copy()
        direction = scaled = scale * residual
        size = first = float(residual @ scaled)
        for _ in range(CG_STEPS):
            if size <= accuracy**2 * first or size <= 0:
                break
            full[free] = direction
            image = self.times(full)[free] + shift * direction
            step = size / float(direction @ image)
            u += step * direction
            residual -= step * image
            scaled = scale * residual
            before, size = size, float(residual @ scaled)
            direction = scaled + size / before * direction
        return u


def curvature(columns: Columns, bends: HostArray, centred: bool, damping: float, room: int, sparse: bool) -> Curvature:
    """H of the columns: a matrix where it is small and its making pays, else products.

    Args:
        columns: X.
        bends: D.
        centred: take out what an intercept that follows saves.
        damping: a share of the diagonal that is added to it.
        room: bytes that a matrix may take, at least LEAST_ROOM.
        sparse: whether solutions are: many small systems are then solved with one H.
    """
    width = columns.width
    entries = columns.indptr[-1] / max(1, len(bends))  # of a row
    most = MOST_COLUMNS if sparse else MOST_COLUMNS // 3
    cheap = sparse or entries <= 200 or entries >= THICK * width
    small = width <= most and 16 * width**2 <= max(room, LEAST_ROOM) and cheap
    return (Matrix if small else Products)(columns, bends, centred, damping)
