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
def gradients(
    ptr: HostArray, cols: HostArray, y: HostArray, loss: int, delta: float, mean: float,
    P: HostArray, Q: HostArray, bu: HostArray, bi: HostArray, X: HostArray, known: bool,
    GP: HostArray, GQ: HostArray, gu: HostArray, gi: HostArray,
) -> tuple[float, float]:  # fmt: skip
    """Σ over the entries of ∂ℓ by P, Q and the biases; Σ x ∂ℓ/∂m and the sum of the curvatures.

    X has room for x of all entries, which may be known, or of one row's. A row's entries are gone through three times:
    loops without branches between them are the quicker ones.
    """
    GP[:] = 0
    GQ[:] = 0
    gu[:] = 0
    gi[:] = 0
    along, bends = 0.0, 0.0
    kept = np.empty(longest(ptr), P.dtype)
    for s in range(len(ptr) - 1):
        i = s % len(P)
        Pi, Gi = P[i], GP[i]
        begin, end, here = ptr[s], ptr[s + 1], 0.0
        row = X[begin:end] if len(X) == len(y) else X
        if not known:
            for k in range(begin, end):
                Qj = Q[cols[k]]
                x = P.dtype.type(0)
                for c in range(P.shape[1]):
                    x += Pi[c] * Qj[c]
                row[k - begin] = x
        for k in range(begin, end):
            j, x = cols[k], row[k - begin]
            m = x + mean + bu[i] + bi[j]
            slope = derivative(loss, delta, m, y[k])
            bends += bend(loss, delta, m, y[k])
            along += slope * x
            here += slope
            gi[j] += slope
            kept[k - begin] = slope
        gu[i] += here
        for k in range(begin, end):
            j, g = cols[k], kept[k - begin]
            Qj, Gj = Q[j], GQ[j]
            for c in range(P.shape[1]):
                Gi[c] += g * Qj[c]
            for c in range(P.shape[1]):
                Gj[c] += g * Pi[c]
    return along, bends


@njit(cache=True, nogil=True, fastmath=True)
def moments(
    ptr: HostArray, cols: HostArray, y: HostArray, loss: int, delta: float, mean: float,
    P: HostArray, Q: HostArray, A: HostArray, B: HostArray,
    bu: HostArray, bi: HostArray, cu: HostArray, ci: HostArray, X: HostArray,
) -> HostArray:  # fmt: skip
    """What Σ c/2 (s (x0 + t x1 + t² x2) + t w − T)² depends on, as a polynomial in s and t.

    x0 = P Q, x1 = A Q + P B, x2 = A B and w = cu + ci on the entries; c/2 (m − T)² are parabolas above the loss that
    touch it where t = 0: for the squared loss they are the loss. X has room for x0, x1 and x2 of all entries, whose x0
    are known, or of one row's.
    """
    sums = np.zeros(15)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = s11 = s12 = s13 = s14 = 0.0
    known = X.shape[1] == len(y)
    for s in range(len(ptr) - 1):
        i = s % len(P)
        Pi, Ai = P[i], A[i]
        begin, end = ptr[s], ptr[s + 1]
        kept = X[:, begin:end] if known else X
        if not known:
            for k in range(begin, end):
                Qj = Q[cols[k]]
                x0 = P.dtype.type(0)
                for c in range(P.shape[1]):
                    x0 += Pi[c] * Qj[c]
                kept[0, k - begin] = x0
        for k in range(begin, end):
            Qj, Bj = Q[cols[k]], B[cols[k]]
            x1 = P.dtype.type(0)
            x2 = P.dtype.type(0)
            for c in range(P.shape[1]):
                x1 += Ai[c] * Qj[c] + Pi[c] * Bj[c]
                x2 += Ai[c] * Bj[c]
            kept[1, k - begin] = x1
            kept[2, k - begin] = x2
        for k in range(begin, end):
            j, x0, x1, x2 = cols[k], kept[0, k - begin], kept[1, k - begin], kept[2, k - begin]
            m = x0 + mean + bu[i] + bi[j]
            weight = bend(loss, delta, m, y[k])
            goal = x0 - derivative(loss, delta, m, y[k]) / weight
            w = cu[i] + ci[j]
            s0 += weight * x0 * x0
            s1 += weight * x0 * x1
            s2 += weight * x0 * x2
            s3 += weight * x1 * x1
            s4 += weight * x1 * x2
            s5 += weight * x2 * x2
            s6 += weight * x0 * goal
            s7 += weight * x1 * goal
            s8 += weight * x2 * goal
            s9 += weight * goal * goal
            s10 += weight * x0 * w
            s11 += weight * x1 * w
            s12 += weight * x2 * w
            s13 += weight * w * w
            s14 += weight * w * goal
    for place, total in enumerate((s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14)):
        sums[place] = total
    return sums


@njit(cache=True, nogil=True, fastmath=True)
def forward(X: HostArray, t: float, scale: float) -> None:
    """x0 becomes scale (x0 + t x1 + t² x2)."""
    step, share = X.dtype.type(t), X.dtype.type(scale)
    for k in range(X.shape[1]):
        X[0, k] = share * (X[0, k] + step * (X[1, k] + step * X[2, k]))


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
def scale_of(weight: float, count: float, ease: float, curvature: float) -> float:
    """A row's diagonal of the Gauss-Newton block, and what the norm and rows without entries add to it."""
    return max(count * curvature + ease * weight, 1e-30)


@njit(cache=True, nogil=True, fastmath=True)
def precondition(
    X: HostArray, G: HostArray, old: HostArray,
    weights: HostArray, counts: HostArray, pull: float, ease: float, curvature: float,
) -> tuple[float, float]:  # fmt: skip
    """G += pull weights X row by row; ⟨G, G/scale⟩ and ⟨old, G/scale⟩."""
    new_sum, old_sum = 0.0, 0.0
    for i in range(X.shape[0]):
        a = X.dtype.type(pull * weights[i])
        here, before = X.dtype.type(0), X.dtype.type(0)
        for c in range(X.shape[1]):
            G[i, c] += a * X[i, c]
            here += G[i, c] * G[i, c]
            before += old[i, c] * G[i, c]
        scale = scale_of(weights[i], counts[i], ease, curvature)
        new_sum += here / scale
        old_sum += before / scale
    return new_sum, old_sum


@njit(cache=True, nogil=True, fastmath=True)
def redirect(
    D: HostArray, G: HostArray, beta: float,
    weights: HostArray, counts: HostArray, pull: float, ease: float, curvature: float,
) -> float:  # fmt: skip
    """D = beta D − G/scale; ⟨D, G⟩."""
    total = 0.0
    keep = D.dtype.type(beta)
    for i in range(D.shape[0]):
        share = D.dtype.type(1.0 / scale_of(weights[i], counts[i], ease, curvature))
        here = D.dtype.type(0)
        for c in range(D.shape[1]):
            D[i, c] = keep * D[i, c] - share * G[i, c]
            here += D[i, c] * G[i, c]
        total += here
    return total


@njit(cache=True, nogil=True, fastmath=True)
def advance(X: HostArray, D: HostArray, t: float, scale: float) -> None:
    """X = scale (X + t D)."""
    step, share = X.dtype.type(t), X.dtype.type(scale)
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            X[i, c] = share * (X[i, c] + step * D[i, c])


@njit(cache=True, nogil=True, fastmath=True)
def sizes(first: HostArray, second: HostArray, X: HostArray) -> tuple[float, float]:
    """Σ weight_i ‖X_i‖² for two sets of weights."""
    one, two = 0.0, 0.0
    for i in range(X.shape[0]):
        here = X.dtype.type(0)
        for c in range(X.shape[1]):
            here += X[i, c] * X[i, c]
        one += first[i] * here
        two += second[i] * here
    return one, two


@njit(cache=True, nogil=True, fastmath=True)
def crossed(weight: HostArray, X: HostArray, D: HostArray) -> tuple[float, float]:
    """Σ weight_i ⟨X_i, D_i⟩ and Σ weight_i ‖D_i‖²."""
    across, along = 0.0, 0.0
    for i in range(X.shape[0]):
        here, length = X.dtype.type(0), X.dtype.type(0)
        for c in range(X.shape[1]):
            here += X[i, c] * D[i, c]
            length += D[i, c] * D[i, c]
        across += weight[i] * here
        along += weight[i] * length
    return across, along


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
