"""X' diag(D) X on some columns: a matrix where it is small, products with the rows elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse
from numba import njit
from scipy.linalg import blas, lapack

from onesfw.linear.examples import read_only
from onesfw.trees import DType, HostArray

FAST = {"reassoc", "contract", "nsz"}
MOST_COLUMNS = 3_000  # of a dense factorisation
LEAST_ROOM = 64 << 20  # bytes that a matrix may take, however small the rows are
THICK = 0.6  # the share of entries from which blocks of rows are multiplied as dense ones
BLOCK_ENTRIES = 1 << 20
LEAST_RIDGE = 1e-12  # of the diagonal: a column may be empty in the rows that bend
FLOOR = 1e-8  # of the largest diagonal entry, where solutions are sparse
CG_STEPS, CG_ACCURACY = 3_000, 1e-9
FEW_STEPS = 30  # with a factor, mostly fewer
DENSE = 20  # times as many operations of a dense factorisation as of products with sparse rows in the same time
ALIKE = 0.02  # of the coordinates: where no more have come or gone, the same factor serves


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


@njit(cache=True, nogil=True)
def mirror(matrix: HostArray) -> None:
    """The lower half of a matrix in the place of its upper half."""
    for j in range(matrix.shape[0]):
        for k in range(j):
            matrix[k, j] = matrix[j, k]


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
    mirror(out)


@njit(cache=True, nogil=True, fastmath=FAST)
def gram_of_some(
    indptr: HostArray, indices: HostArray, values: HostArray, bends: HostArray, place: HostArray, scale: HostArray,
    out: HostArray, kept: HostArray, entries: HostArray,
) -> None:  # fmt: skip
    """The lower half of X' diag(bends) X on the columns with place ≥ 0, scaled, added to out; the last two are room."""
    for i in range(bends.shape[0]):
        if bends[i] != 0.0:
            count = 0
            for p in range(indptr[i], indptr[i + 1]):
                at = place[indices[p]]
                kept[count], entries[count] = at, values[p] * scale[indices[p]]
                count += at >= 0
            for p in range(count):
                a, j = bends[i] * entries[p], kept[p]
                for q in range(p + 1):
                    out[j, kept[q]] += a * entries[q]


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
        out = np.zeros((self.width, self.width))
        for block, some in self.dense_blocks(bends):
            block = block.astype(np.float64, copy=False)
            out += (block * some[:, None]).T @ block
        return out

    def scaled_gram(self, chosen: HostArray, bends: HostArray, scale: HostArray, dtype: DType) -> HostArray:
        """X' diag(bends) X on the chosen columns times their scales: the lower half."""
        out = np.zeros((len(chosen), len(chosen)), dtype)
        if self.indptr[-1] >= THICK * len(bends) * self.width:
            add_squares = blas.ssyrk if dtype == np.float32 else blas.dsyrk
            for block, some in self.dense_blocks(bends):
                scaled = (block[:, chosen] * (np.sqrt(some)[:, None] * scale[chosen])).astype(dtype)
                add_squares(1.0, scaled.T, beta=1.0, c=out.T, overwrite_c=1)
            return out
        place = np.full(self.width, -1, np.int32)
        place[chosen] = np.arange(len(chosen))
        longest = int(np.diff(self.indptr).max(initial=0)) + 1
        room = np.empty(longest, np.int32), np.empty(longest)
        gram_of_some(self.indptr, self.indices, self.values, bends, place, scale, out, *room)
        return out

    def dense_blocks(self, bends: HostArray) -> Iterator[tuple[HostArray, HostArray]]:
        """Some rows at a time in full, and their bends."""
        shape = len(bends), self.width
        matrix = scipy.sparse.csr_array((self.values, self.indices.view(np.int32), self.indptr), shape)
        step = max(1, BLOCK_ENTRIES // self.width)
        for first in range(0, len(bends), step):
            yield matrix[first : first + step].toarray(), bends[first : first + step]


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
    """H in full, solved by Cholesky's factorisation.

    `floor` says what the ridge takes an entry of the diagonal for at least, of the largest: 1 for the same ridge
    everywhere, less where columns of small scales are to be told apart.
    """

    def __init__(
        self, columns: Columns, bends: HostArray, centred: bool, damping: float, floor: float = FLOOR
    ) -> None:  # fmt: skip
        self.floor = floor
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
            part.flat[:: len(free) + 1] += shift + ridge * np.maximum(self.diagonal[free], self.floor * top)
            factor, failed = lapack.dpotrf(part.T, lower=1, overwrite_a=1, clean=0)  # symmetric: .T is column by column
            if not failed:
                return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])
            ridge *= 100


class Factor(NamedTuple):
    """Cholesky's factor of H on some coordinates, scaled to a diagonal of ones, in float64 or float32."""

    at: HostArray
    scale: HostArray
    triangle: HostArray

    def divide(self, vector: HostArray, by_diagonal: HostArray) -> None:
        """Write the vector divided by H in the place of that divided by the diagonal."""
        size = max(float(np.abs(vector).max(initial=0.0)), 1e-290)
        largest = float(self.scale.max())
        right = (self.scale / largest * (vector[self.at] / size)).astype(self.triangle.dtype)
        solve = lapack.spotrs if right.dtype == np.float32 else lapack.dpotrs
        by_diagonal[self.at] = solve(self.triangle, right, lower=0)[0] * (self.scale * (largest * size))


class Products:
    """H by products with the rows, solved by conjugate gradients: memory of a few vectors, and of `room` bytes.

    They are scaled by the diagonal, and where that has taken longer than a factorisation does, by that, if there is
    room for it: in float32 where not in float64.
    """

    def __init__(self, columns: Columns, bends: HostArray, centred: bool, damping: float, room: int = 0) -> None:
        self.columns, self.bends, self.room = columns, bends, room
        self.total = float(bends.sum()) if centred else 0.0
        diagonal = np.empty(columns.width)
        squares_back(columns.indptr, columns.indices, columns.values, bends, diagonal)
        if self.total > 0:
            self.h = columns.back(bends)
            diagonal = np.maximum(diagonal - self.h**2 / self.total, 0.0)
        top = max(float(diagonal.max(initial=0.0)), 1e-290)
        self.extra = damping * diagonal + LEAST_RIDGE * top
        self.diagonal = diagonal + self.extra
        self.factor: Factor | None = None

    def times(self, v: HostArray) -> HostArray:
        """H v."""
        out = self.columns.back(self.bends * self.columns.times(v)) + self.extra * v
        return out - self.h * (self.h @ v / self.total) if self.total > 0 else out

    def solve(self, free: HostArray, right: HostArray, shift: float = 0.0, accuracy: float = CG_ACCURACY) -> HostArray:
        """Conjugate gradients, one column at a time."""
        return np.column_stack([self.one(free, column, shift, accuracy) for column in right.T])

    def one(self, free: HostArray, right: HostArray, shift: float, accuracy: float) -> HostArray:
        """(H + shift) u = right on the free coordinates."""
        if self.factor is not None and len(np.setxor1d(self.factor.at, free, True)) > ALIKE * len(free):
            self.factor = self.factorised(free, shift)
        u, residual = np.zeros(len(free)), right.copy()
        goal = accuracy**2 * float(residual @ (residual / (self.diagonal[free] + shift)))
        steps = CG_STEPS if self.factor is not None else self.patience(len(free))
        if not self.go_on(u, residual, free, shift, goal, steps) and steps < CG_STEPS:
            self.factor = self.factorised(free, shift)
            self.go_on(u, residual, free, shift, goal, CG_STEPS)
        return u

    def patience(self, width: int) -> int:
        """How many products take as long as a factorisation; all steps where there is no room for one."""
        if 4 * width**2 > self.room:
            return CG_STEPS
        lengths = np.diff(self.columns.indptr).astype(np.float64)
        thick = lengths.sum() >= THICK * len(lengths) * self.columns.width
        gram = len(lengths) * width**2 / DENSE if thick else float(lengths @ lengths)
        steps = (gram + width**3 / (3 * DENSE) + FEW_STEPS * 2 * width**2) / max(4 * float(lengths.sum()), 1.0)
        return int(min(CG_STEPS, max(FEW_STEPS, steps)))

    def go_on(
        self, u: HostArray, residual: HostArray, free: HostArray, shift: float, goal: float, steps: int
    ) -> bool:  # fmt: skip
        """Conjugate gradients from u, which they change, with its residual; whether they have come to their goal."""
        inverse, full = 1.0 / (self.diagonal + shift), np.zeros(self.columns.width)
        direction, image, size = np.zeros(len(free)), np.zeros(len(free)), 1.0
        before = residual
        for _ in range(steps):
            full[free] = residual
            divided = full * inverse
            if float(full @ divided) <= goal:
                return True
            if self.factor is not None:
                self.factor.divide(full, divided)
            along = divided[free]
            turn = float(along @ (residual - before)) / size  # 0 at first
            size = float(along @ residual)
            direction = along + turn * direction
            full[free] = direction
            image = self.times(full)[free] + shift * direction
            step = size / float(direction @ image)
            u += step * direction
            before = residual.copy()
            residual -= step * image
        return False

    def factorised(self, at: HostArray, shift: float) -> Factor:
        """Cholesky's factor, in the place of the matrix, whose other half is kept until that succeeds."""
        scale = 1.0 / np.sqrt(self.diagonal + shift)
        dtype = np.dtype(np.float64 if 8 * len(at) ** 2 <= self.room else np.float32)
        subtract, factorise = (blas.dsyr, lapack.dpotrf) if dtype == np.float64 else (blas.ssyr, lapack.spotrf)
        H = self.columns.scaled_gram(at, self.bends, scale, dtype)
        if self.total > 0:
            subtract(-1.0, (self.h[at] * scale[at] / self.total**0.5).astype(dtype), a=H.T, overwrite_a=1)
        mirror(H)
        ridge = 10 * float(np.finfo(str(dtype)).eps)
        while True:
            H.flat[:: len(at) + 1] = 1.0 + ridge  # 1 it is but for rounding
            triangle, failed = factorise(H.T, lower=0, overwrite_a=1, clean=0)
            if not failed:
                return Factor(at, scale[at], triangle)
            mirror(H.T)
            ridge *= 10


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
    room = max(room, LEAST_ROOM)
    if width <= most and 16 * width**2 <= room and cheap:
        return Matrix(columns, bends, centred, damping, FLOOR if sparse else 1.0)
    return Products(columns, bends, centred, damping, room if sparse else 0)
