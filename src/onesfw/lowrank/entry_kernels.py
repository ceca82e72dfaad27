"""Compiled passes over the observed entries of X = P Qᵀ: a pass costs entries × rank, and X is never formed.

Entries are kept by rows: those of row i are ptr[i] to ptr[i + 1]. Large matrices are cut into tiles of columns whose
factors stay in the cache: those of row i in tile t are ptr[t · rows + i] to the next. A prediction is m = x + mean +
bu_i + bi_j with x = ⟨P_i, Q_j⟩. A number names the loss, so that one kernel serves all of them.
"""

from __future__ import annotations

from math import exp, tanh

import numpy as np
from numba import njit

from onesfw.linear.losses import HUBER, LOGISTIC, SQUARED, derivative, value
from onesfw.trees import HostArray

LEAST_WEIGHT = 1e-6  # of a count's loss far below its optimum, where the curvature fades


@njit(cache=True, nogil=True)
def counts(rows: HostArray, cols: HostArray, m: int, width: int, ptr: HostArray) -> None:
    """ptr becomes the places where the entries of each tile's rows begin."""
    for k in range(len(rows)):
        ptr[cols[k] // width * m + rows[k] + 1] += 1
    for s in range(len(ptr) - 1):
        ptr[s + 1] += ptr[s]


@njit(cache=True, nogil=True)
def place(
    rows: HostArray, cols: HostArray, values: HostArray, m: int, width: int, following: HostArray, c: HostArray,
    y: HostArray,
) -> None:  # fmt: skip
    """Entries into the places of their rows; `following` holds each row's next place."""
    for k in range(len(rows)):
        s = cols[k] // width * m + rows[k]
        spot = following[s]
        following[s] = spot + 1
        c[spot] = cols[k]
        y[spot] = values[k]


@njit(cache=True, nogil=True)
def merge(ptr: HostArray, cols: HostArray, y: HostArray) -> int:
    """Sort each row by columns and put the mean in place of entries that stand there twice; how many are left."""
    kept = 0
    begin = 0
    for i in range(len(ptr) - 1):
        end = ptr[i + 1]
        order = np.argsort(cols[begin:end])
        row, numbers = cols[begin:end][order], y[begin:end][order]
        k = 0
        while k < len(row):
            last = k + 1
            total = np.float64(numbers[k])
            while last < len(row) and row[last] == row[k]:
                total += numbers[last]
                last += 1
            cols[kept] = row[k]
            y[kept] = total / (last - k)
            kept += 1
            k = last
        begin = end
        ptr[i + 1] = kept
    return kept


@njit(cache=True, nogil=True)
def times(ptr: HostArray, cols: HostArray, g: HostArray, v: HostArray, out: HostArray) -> None:
    """out = G v. Without fastmath: sums in another order would gather entries of v, at two thirds of the speed."""
    out[:] = 0.0
    for s in range(len(ptr) - 1):
        total = 0.0
        for k in range(ptr[s], ptr[s + 1]):
            total += g[k] * v[cols[k]]
        out[s % len(out)] += total


@njit(cache=True, nogil=True, fastmath=True)
def times_transposed(ptr: HostArray, cols: HostArray, g: HostArray, u: HostArray, out: HostArray) -> None:
    """out = Gᵀ u."""
    out[:] = 0.0
    for s in range(len(ptr) - 1):
        here = u[s % len(u)]
        for k in range(ptr[s], ptr[s + 1]):
            out[cols[k]] += g[k] * here


@njit(cache=True, nogil=True, fastmath=True)
def column_products(ptr: HostArray, cols: HostArray, g: HostArray, a: HostArray, out: HostArray) -> None:
    """out = Gᵀ diag(a²) G, its lower half: every pair of a row's entries, which are in the order of their columns."""
    out[:] = 0.0
    for i in range(len(ptr) - 1):
        weight = a[i] * a[i]
        for k in range(ptr[i], ptr[i + 1]):
            here, line = weight * g[k], out[cols[k]]
            for other in range(ptr[i], k + 1):
                line[cols[other]] += here * g[other]


@njit(cache=True, nogil=True)
def bend(loss: int, delta: float, m: float, y: float) -> float:
    """The curvature of a parabola that touches ℓ at m and lies above it everywhere; for counts, nearby."""
    if loss == SQUARED:
        return 1.0
    if loss == HUBER:
        far = abs(m - y)
        return 1.0 if far <= delta else delta / far
    if loss == LOGISTIC:  # Jaakkola and Jordan (2000)
        return 0.25 if abs(m) < 1e-4 else tanh(0.5 * m) / (2.0 * m)
    return max(exp(m), y, LEAST_WEIGHT)


@njit(cache=True, nogil=True, fastmath=True)
def slopes(
    ptr: HostArray, cols: HostArray, y: HostArray, loss: int, delta: float, mean: float,
    P: HostArray, Q: HostArray, bu: HostArray, bi: HostArray, out: HostArray,
) -> tuple[float, float]:  # fmt: skip
    """out = ∂ℓ/∂m of each entry; Σ ℓ and Σ x ∂ℓ/∂m."""
    total, along = 0.0, 0.0
    for s in range(len(ptr) - 1):
        i = s % len(P)
        Pi = P[i]
        for k in range(ptr[s], ptr[s + 1]):
            j = cols[k]
            Qj = Q[j]
            x = P.dtype.type(0)
            for c in range(P.shape[1]):
                x += Pi[c] * Qj[c]
            m = x + mean + bu[i] + bi[j]
            g = derivative(loss, delta, m, y[k])
            out[k] = g
            total += value(loss, delta, m, y[k])
            along += g * x
    return total, along


@njit(cache=True, nogil=True)
def longest(ptr: HostArray) -> int:
    """The entries of the row that has most."""
    most = 0
    for s in range(len(ptr) - 1):
        most = max(most, ptr[s + 1] - ptr[s])
    return most


@njit(cache=True, nogil=True, fastmath=True)
def towards(
    ptr: HostArray, cols: HostArray, y: HostArray, loss: int, delta: float, mean: float,
    P: HostArray, Q: HostArray, A: HostArray, B: HostArray, bu: HostArray, bi: HostArray,
) -> tuple[float, float]:  # fmt: skip
    """Σ d ∂ℓ/∂m and Σ c d² for d = A B − P Q on the entries: the slope and the bend of the way to another point."""
    slope, curvature = 0.0, 0.0
    for s in range(len(ptr) - 1):
        i = s % len(P)
        for k in range(ptr[s], ptr[s + 1]):
            j = cols[k]
            x, new = 0.0, 0.0
            for c in range(P.shape[1]):
                x += P[i, c] * Q[j, c]
            for c in range(A.shape[1]):
                new += A[i, c] * B[j, c]
            m = x + mean + bu[i] + bi[j]
            d = new - x
            slope += d * derivative(loss, delta, m, y[k])
            curvature += bend(loss, delta, m, y[k]) * d * d
    return slope, curvature


@njit(cache=True, nogil=True)
def bias_sweep(
    ptr: HostArray, cols: HostArray, y: HostArray, loss: int, delta: float, mean: float, ridge: tuple[float, float],
    bu: HostArray, bi: HostArray,
) -> tuple[HostArray, HostArray, float]:  # fmt: skip
    """One Newton-like step of every row's bias, then of every column's; for the squared loss, to the minimum.

    Returns the curvatures, the ridge's included, and Σ ℓ between the two.
    """
    slopes, rows = ridge[0] * bu, np.full(len(bu), ridge[0])
    for s in range(len(ptr) - 1):
        i = s % len(bu)
        for k in range(ptr[s], ptr[s + 1]):
            m = mean + bu[i] + bi[cols[k]]
            slopes[i] += derivative(loss, delta, m, y[k])
            rows[i] += bend(loss, delta, m, y[k])
    for i in range(len(bu)):
        bu[i] -= slopes[i] / rows[i]
    slopes, columns, total = ridge[1] * bi, np.full(len(bi), ridge[1]), 0.0
    for s in range(len(ptr) - 1):
        i = s % len(bu)
        for k in range(ptr[s], ptr[s + 1]):
            j = cols[k]
            m = mean + bu[i] + bi[j]
            slopes[j] += derivative(loss, delta, m, y[k])
            columns[j] += bend(loss, delta, m, y[k])
            total += value(loss, delta, m, y[k])
    for j in range(len(bi)):
        bi[j] -= slopes[j] / columns[j]
    return rows, columns, total


@njit(cache=True, nogil=True, fastmath=True)
def margins_at(
    rows: HostArray, cols: HostArray, mean: float, P: HostArray, Q: HostArray, bu: HostArray, bi: HostArray,
    out: HostArray,
) -> None:  # fmt: skip
    """m of any entries; a row or a column of number −1 is unknown, has no bias and no factors."""
    for k in range(len(rows)):
        i, j = rows[k], cols[k]
        m = mean
        if i >= 0:
            m += bu[i]
        if j >= 0:
            m += bi[j]
        if i >= 0 and j >= 0:
            for c in range(P.shape[1]):
                m += P[i, c] * Q[j, c]
        out[k] = m
