"""Compiled passes of one step of conjugate gradients: over the observed entries, and over the rows of the factors.

Entries are gone through in blocks of whole rows. What costs the rank is done row by row; what is left for each entry,
the loss above all, over the whole block, in loops without branches that the squared loss has for itself.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from onesfw.linear.losses import SQUARED, derivative
from onesfw.lowrank.entry_kernels import bend, longest
from onesfw.trees import HostArray

BLOCK = 4096  # entries at least, but for the last block
ROOM = 5  # numbers kept for each entry: x0, x1, x2, m − x0 and w


@njit(cache=True, nogil=True)
def block_end(ptr: HostArray, begin: int) -> int:
    """The row that a block which begins with that row ends before."""
    end = begin + 1
    while end < len(ptr) - 1 and ptr[end] - ptr[begin] < BLOCK:
        end += 1
    return end


@njit(cache=True, nogil=True)
def block_room(ptr: HostArray) -> int:
    """The entries of a block, at most."""
    return BLOCK + longest(ptr)


@njit(cache=True, nogil=True, fastmath=True)
def forecast(
    ptr: HostArray, cols: HostArray, first: int, last: int, mean: float, P: HostArray, Q: HostArray, bu: HostArray,
    bi: HostArray, biased: bool, x0: HostArray, base: HostArray,
) -> None:  # fmt: skip
    """x0 = x and base = m − x of the entries of those rows."""
    begin = ptr[first]
    if not biased:
        base[:] = mean
    for s in range(first, last):
        i = s % len(P)
        Pi = P[i]
        for k in range(ptr[s], ptr[s + 1]):
            Qj = Q[cols[k]]
            x = P.dtype.type(0)
            for c in range(P.shape[1]):
                x += Pi[c] * Qj[c]
            x0[k - begin] = x
        if biased:
            for k in range(ptr[s], ptr[s + 1]):
                base[k - begin] = mean + bu[i] + bi[cols[k]]


@njit(cache=True, nogil=True, fastmath=True)
def entry_slopes(
    loss: int, delta: float, y: HostArray, x: HostArray, base: HostArray, out: HostArray
) -> tuple[float, float]:
    """out = ∂ℓ/∂m at m = x + base; Σ x ∂ℓ/∂m and the sum of the curvatures."""
    along, bends = 0.0, float(len(y))
    if loss == SQUARED:
        for k in range(len(y)):
            out[k] = x[k] + base[k] - y[k]
            along += out[k] * x[k]
        return along, bends
    bends = 0.0
    for k in range(len(y)):
        m = x[k] + base[k]
        slope = derivative(loss, delta, m, y[k])
        bends += bend(loss, delta, m, y[k])
        along += slope * x[k]
        out[k] = slope
    return along, bends


@njit(cache=True, nogil=True, fastmath=True)
def gradients(
    ptr: HostArray, cols: HostArray, y: HostArray, loss: int, delta: float, mean: float,
    P: HostArray, Q: HostArray, bu: HostArray, bi: HostArray, biased: bool, X: HostArray, known: bool,
    GP: HostArray, GQ: HostArray, gu: HostArray, gi: HostArray,
) -> tuple[float, float]:  # fmt: skip
    """Σ over the entries of ∂ℓ by P, Q and the biases; Σ x ∂ℓ/∂m and the sum of the curvatures.

    X has room for all entries, whose x0 and m − x0 may be known, or for one block.
    """
    GP[:] = 0
    GQ[:] = 0
    gu[:] = 0
    gi[:] = 0
    along, bends, first = 0.0, 0.0, 0
    whole = X.shape[1] == len(y)
    slope = np.empty(block_room(ptr), P.dtype)
    while first < len(ptr) - 1:
        last = block_end(ptr, first)
        begin, end = ptr[first], ptr[last]
        left, right = (begin, end) if whole else (0, end - begin)
        x0, base = X[0][left:right], X[3][left:right]
        if not known:
            forecast(ptr, cols, first, last, mean, P, Q, bu, bi, biased, x0, base)
        part, bent = entry_slopes(loss, delta, y[begin:end], x0, base, slope)
        along += part
        bends += bent
        for s in range(first, last):
            i = s % len(P)
            Pi, Gi = P[i], GP[i]
            if biased:
                here = 0.0
                for k in range(ptr[s], ptr[s + 1]):
                    here += slope[k - begin]
                    gi[cols[k]] += slope[k - begin]
                gu[i] += here
            for k in range(ptr[s], ptr[s + 1]):
                j, g = cols[k], slope[k - begin]
                Qj, Gj = Q[j], GQ[j]
                for c in range(P.shape[1]):
                    Gi[c] += g * Qj[c]
                for c in range(P.shape[1]):
                    Gj[c] += g * Pi[c]
        first = last
    return along, bends


@njit(cache=True, nogil=True, fastmath=True)
def moments(
    ptr: HostArray, cols: HostArray, y: HostArray, loss: int, delta: float, mean: float,
    P: HostArray, Q: HostArray, A: HostArray, B: HostArray,
    bu: HostArray, bi: HostArray, cu: HostArray, ci: HostArray, biased: bool, X: HostArray,
) -> HostArray:  # fmt: skip
    """What Σ c/2 (s (x0 + t x1 + t² x2) + t w − T)² depends on, as a polynomial in s and t.

    x0 = P Q, x1 = A Q + P B, x2 = A B and w = cu + ci on the entries; c/2 (m − T)² are parabolas above the loss that
    touch it where t = 0: for the squared loss they are the loss. X has room for x0, x1, x2, m − x0 and w of all
    entries, whose x0 and m − x0 are known, or of one block.
    """
    sums, first = np.zeros(15), 0
    whole = X.shape[1] == len(y)
    room = block_room(ptr)
    weight, goal = np.ones(room, P.dtype), np.empty(room, P.dtype)
    while first < len(ptr) - 1:
        last = block_end(ptr, first)
        begin, end = ptr[first], ptr[last]
        left, right = (begin, end) if whole else (0, end - begin)
        x0, x1, x2, base, w = (X[0][left:right], X[1][left:right], X[2][left:right], X[3][left:right], X[4][left:right])
        if not whole:
            forecast(ptr, cols, first, last, mean, P, Q, bu, bi, biased, x0, base)
        for s in range(first, last):
            i = s % len(P)
            Pi, Ai = P[i], A[i]
            for k in range(ptr[s], ptr[s + 1]):
                Qj, Bj = Q[cols[k]], B[cols[k]]
                once = P.dtype.type(0)
                twice = P.dtype.type(0)
                for c in range(P.shape[1]):
                    once += Ai[c] * Qj[c] + Pi[c] * Bj[c]
                    twice += Ai[c] * Bj[c]
                x1[k - begin] = once
                x2[k - begin] = twice
            if biased:
                for k in range(ptr[s], ptr[s + 1]):
                    w[k - begin] = cu[i] + ci[cols[k]]
        if loss == SQUARED:
            for k in range(end - begin):
                goal[k] = y[begin + k] - base[k]
        else:
            for k in range(end - begin):
                m = x0[k] + base[k]
                weight[k] = bend(loss, delta, m, y[begin + k])
                goal[k] = x0[k] - derivative(loss, delta, m, y[begin + k]) / weight[k]
        sums[:10] += products(x0, x1, x2, weight, goal)
        if biased:
            sums[10:] += products_beside(x0, x1, x2, w, weight, goal)
        first = last
    return sums


@njit(cache=True, nogil=True, fastmath=True)
def products(x0: HostArray, x1: HostArray, x2: HostArray, weight: HostArray, goal: HostArray) -> HostArray:
    """The weighted products of x0, x1, x2 and the goals with one another."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = 0.0
    for k in range(len(x0)):
        c = weight[k]
        a, b, d, aim = c * x0[k], c * x1[k], c * x2[k], goal[k]
        s0 += a * x0[k]
        s1 += a * x1[k]
        s2 += a * x2[k]
        s3 += b * x1[k]
        s4 += b * x2[k]
        s5 += d * x2[k]
        s6 += a * aim
        s7 += b * aim
        s8 += d * aim
        s9 += c * aim * aim
    return np.array([s0, s1, s2, s3, s4, s5, s6, s7, s8, s9])


@njit(cache=True, nogil=True, fastmath=True)
def products_beside(
    x0: HostArray, x1: HostArray, x2: HostArray, w: HostArray, weight: HostArray, goal: HostArray
) -> HostArray:
    """The weighted products of w with x0, x1, x2, itself and the goals."""
    s0 = s1 = s2 = s3 = s4 = 0.0
    for k in range(len(x0)):
        c = weight[k] * w[k]
        s0 += c * x0[k]
        s1 += c * x1[k]
        s2 += c * x2[k]
        s3 += c * w[k]
        s4 += c * goal[k]
    return np.array([s0, s1, s2, s3, s4])


@njit(cache=True, nogil=True, fastmath=True)
def forward(X: HostArray, t: float, scale: float, biased: bool) -> None:
    """x0 becomes scale (x0 + t x1 + t² x2), and m − x0 moves by t w."""
    step, share = X.dtype.type(t), X.dtype.type(scale)
    for k in range(X.shape[1]):
        X[0, k] = share * (X[0, k] + step * (X[1, k] + step * X[2, k]))
    if biased:
        for k in range(X.shape[1]):
            X[3, k] += step * X[4, k]


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
