"""Leading singular triples of diag(a) G diag(b), G sparse: Golub-Kahan bidiagonalisation with reorthogonalisation.

Where G has few columns, GᵀG is formed, and the triples are exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from onesfw.lowrank.entry_kernels import column_products, times, times_transposed
from onesfw.trees import DType, HostArray

MOST_STEPS = 300
FIRST_CHECK, EVERY, SHARE = 8, 3, 8  # steps until the first look, and between looks: 3, or an eighth of those done
BLOCK = 32  # vectors that are made room for at once
MOST_COLUMNS = 256  # of a matrix whose columns are multiplied with one another
PRODUCTS = 10  # for each vector that is asked for: what a bidiagonalisation takes at least
TINY = 1e-300


class Triples(NamedTuple):
    """σ_1 ≥ σ_2 ≥ …, their left and right vectors as columns.

    Vectors are there for the values that were asked for alone.
    """

    values: HostArray
    left: HostArray
    right: HostArray

    def start(self, operator: Scaled) -> HostArray:
        """Where a search begins that knows these."""
        return (self.left if operator.wide else self.right)[:, 0].astype(np.float64)


class Scaled:
    """diag(a) G diag(b) as an operator from its shorter side to its longer one."""

    def __init__(self, ptr: HostArray, cols: HostArray, g: HostArray, a: HostArray, b: HostArray) -> None:
        self.ptr, self.cols, self.g = ptr, cols, g
        self.wide = len(b) > len(a)
        self.inside, self.outside = (a, b) if self.wide else (b, a)

    @property
    def arrays(self) -> tuple[HostArray, HostArray, HostArray, HostArray, HostArray, bool]:
        """What kernels take."""
        return self.ptr, self.cols, self.g, self.inside, self.outside, self.wide

    def forward(self, v: HostArray, out: HostArray) -> None:
        """From the shorter side to the longer one."""
        (times_transposed if self.wide else times)(self.ptr, self.cols, self.g, self.inside * v, out)
        out *= self.outside

    def is_narrow(self, count: int) -> bool:
        """Whether products of columns are cheaper than the steps for so many vectors."""
        if self.wide or len(self.inside) > MOST_COLUMNS or len(self.ptr) != len(self.outside) + 1:
            return False
        pairs = float(np.square(np.diff(self.ptr), dtype=np.float64).sum()) / 2
        return pairs <= PRODUCTS * count * len(self.g)

    def exact_triples(self, count: int, above: float, dtype: DType | type) -> Triples:
        """From the eigenvectors of the products of columns."""
        products = np.empty((len(self.inside), len(self.inside)))
        column_products(self.ptr, self.cols, self.g, self.outside, products)
        squares, vectors = np.linalg.eigh(products * np.outer(self.inside, self.inside), "L")
        values = np.sqrt(np.maximum(squares[::-1][:count], 0.0))
        return self.triples(values, vectors[:, ::-1][:, :count], above, dtype)

    def triples(self, values: HostArray, shorter: HostArray, above: float, dtype: DType | type) -> Triples:
        """With the vectors of the longer side, of the values that are larger than `above`."""
        wanted = max(1, int((values > above).sum()))
        longer, x = np.zeros((len(self.outside), wanted), dtype), np.empty(len(self.outside))
        for place in range(wanted):
            self.forward(shorter[:, place], x)
            longer[:, place] = x / max(float(np.linalg.norm(x)), TINY)
        short = shorter[:, :wanted].astype(dtype, copy=False)
        left, right = (short, longer) if self.wide else (longer, short)
        return Triples(values, left, right)

    def back(self, w: HostArray, out: HostArray) -> None:
        """From the longer side to the shorter one."""
        (times if self.wide else times_transposed)(self.ptr, self.cols, self.g, self.outside * w, out)
        out *= self.inside


def leading(
    operator: Scaled,
    count: int,
    rng: np.random.Generator,
    *,
    accuracy: float,
    start: HostArray | None = None,
    dtype: DType | type = np.float64,
) -> Triples:
    """The `count` largest singular values and their vectors, until the estimated error of the first is small enough.

    Only the vectors of the shorter side are kept. An estimate is no proof: a warm start hides other vectors.
    """
    short, long = len(operator.inside), len(operator.outside)
    if operator.is_narrow(count):
        return operator.exact_triples(count, -1.0, dtype)
    v = rng.standard_normal(short)
    v /= np.linalg.norm(v)
    if start is not None:
        v = start / np.linalg.norm(start) + 0.3 * v
        v /= np.linalg.norm(v)
    most = min(MOST_STEPS, short)
    noise = max(1e-10, 10 * float(np.finfo(dtype).eps))  # what is smaller is the rounding of the basis
    basis = np.empty((min(BLOCK, most), short), dtype)
    x, w, y = np.empty(long), np.zeros(long), np.empty(short)
    diagonal: list[float] = []
    beside: list[float] = []
    beta, done = 0.0, 0
    look = max(FIRST_CHECK, count + 2)
    while True:
        if done == len(basis):
            basis = np.vstack([basis, np.empty((min(BLOCK, most - done), short), dtype)])
        basis[done] = v
        v = basis[done].astype(np.float64)
        operator.forward(v, x)
        x -= beta * w
        alpha = float(np.linalg.norm(x))
        x, w = w, x
        w /= max(alpha, TINY)
        operator.back(w, y)
        done += 1
        y -= alpha * v
        size = float(np.linalg.norm(y))
        for _ in range(2):
            y -= basis[:done].T @ (basis[:done] @ y.astype(dtype))
            before, size = size, float(np.linalg.norm(y))
            if size > 0.7 * before:  # little was left to take away (Daniel, Gragg, Kaufman and Stewart 1976)
                break
        beta = size
        diagonal.append(alpha)
        beside.append(beta)
        exhausted = min(alpha, beta) <= noise * max(diagonal)
        last = done == most or exhausted
        if last or done >= look:
            look = done + max(EVERY, done // SHARE)
            values, right = bidiagonal_triples(diagonal, beside, 2)
            rest = beta * alpha * abs(float(right[-1, 0])) / max(float(values[0]), TINY)
            apart = float(values[0] - values[1]) if done > 1 else float(values[0])
            last = last or (rest * rest / apart if rest < apart else rest) <= accuracy * values[0]
        if last:
            break
        v = y / beta
    values, right = bidiagonal_triples(diagonal, beside, min(count, done))
    return operator.triples(values, basis[:done].T @ right.astype(dtype), -1.0, dtype)


def bidiagonal_triples(diagonal: list[float], beside: list[float], count: int) -> tuple[HostArray, HostArray]:
    """The largest singular values of an upper bidiagonal B, and their right vectors, from the tridiagonal BᵀB."""
    a = np.array(diagonal)
    b = np.array(beside[: len(a) - 1])
    size = max(float(a.max()), TINY)
    a, b = a / size, b / size
    squares = a * a
    squares[1:] += b * b
    places = (max(len(a) - count, 0), len(a) - 1)
    found, vectors = eigh_tridiagonal(squares, a[:-1] * b, select="i", select_range=places, lapack_driver="stemr")
    return size * np.sqrt(np.maximum(found[::-1], 0.0)), vectors[:, ::-1]
