"""Trace-norm linear models from rows: W in R^{d×k} with ‖W‖_* ≤ τ, softmax or squared loss, a row at a time.

W = b (A − E S) and D = c E, the estimate of the gradient: A and E are d × k, S is k × k. A step changes the rows of A
and E where the example has entries, and k × k matrices: O(entries · k + k²), whatever d is. The oracle is a power
iteration on DᵀD, kept up to date by rank-two changes; the vertex −τ (D v/‖D v‖) vᵀ goes into S alone. The gradient is
SAG's (Négiar et al. 2020), which remembers one vector a row, or Algorithm 2's, which remembers none.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numba import njit

from onesfw.arguments import choose, number, whole_number
from onesfw.linear.examples import Examples
from onesfw.trees import HostArray

SOFTMAX, SQUARES = 0, 1
KINDS = {"softmax": SOFTMAX, "squared": SQUARES}
POWER = 2  # turns of the power iteration a step, from the last vector
SMALLEST = 1e-8  # of the scales b and c, before they are multiplied in
FEWEST_PASSES = 20


@njit(cache=True, nogil=True, fastmath=True)
def multiply_in(A: HostArray, E: HostArray, S: HostArray, scales: HostArray, K: HostArray) -> None:
    """W into A and D into E, S = 0, both scales 1; DᵀD anew."""
    d, k = A.shape
    row = np.empty(k)
    K[:] = 0
    for j in range(d):
        for a in range(k):
            total = 0.0
            for e in range(k):
                total += E[j, e] * S[e, a]
            row[a] = scales[0] * (A[j, a] - total)
        for a in range(k):
            A[j, a] = row[a]
            E[j, a] *= scales[1]
        for a in range(k):
            for e in range(k):
                K[a, e] += E[j, a] * E[j, e]
    S[:] = 0
    scales[0] = 1.0
    scales[1] = 1.0


@njit(cache=True, nogil=True)
def residual(kind: int, m: HostArray, y: HostArray, g: HostArray) -> float:
    """g = ∂ℓ/∂m for margins m and a row of targets (one-hot for softmax); ℓ."""
    k = len(m)
    if kind == SQUARES:
        total = 0.0
        for a in range(k):
            g[a] = m[a] - y[a]
            total += 0.5 * g[a] * g[a]
        return total
    top = m.max()
    z = 0.0
    for a in range(k):
        g[a] = np.exp(m[a] - top)
        z += g[a]
    loss = np.log(z) + top
    for a in range(k):
        g[a] = g[a] / z - y[a]
        loss -= y[a] * m[a]
    return loss


@njit(cache=True, nogil=True, fastmath=True)
def learn(
    indptr: HostArray, cols: HostArray, vals: HostArray, Y: HostArray, order: HostArray, kind: int, radius: float,
    first: int, sag: bool, A: HostArray, E: HostArray, S: HostArray, K: HostArray, v: HostArray, shift: HostArray,
    alpha: HostArray, state: HostArray,
) -> None:  # fmt: skip
    """One step for each row of the order. `state` holds b, c, σ and η of the last step."""
    k = A.shape[1]
    n = len(Y)
    m, h, g, old, change, w = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    t = first
    for i in order:
        t += 1
        m[:] = 0
        h[:] = 0
        square = 0.0
        for q in range(indptr[i], indptr[i + 1]):
            j, x = cols[q], vals[q]
            square += x * x
            for a in range(k):
                m[a] += x * A[j, a]
                h[a] += x * E[j, a]
        for a in range(k):
            total = 0.0
            for e in range(k):
                total += h[e] * S[e, a]
            m[a] = state[0] * (m[a] - total)
        for a in range(k):
            h[a] *= state[1]  # Dᵀ x
            w[a] = m[a] + shift[a]
        residual(kind, w, Y[i], g)
        keep = 1.0
        if sag:
            for a in range(k):
                change[a] = (g[a] - alpha[i, a]) / n
                alpha[i, a] = g[a]
        else:
            rho = 1.0 / (t + 1.0)
            along = 0.0
            for a in range(k):
                along += h[a] * v[a]
            for a in range(k):  # the margins one step before
                back = state[3] * radius / state[2] * along * v[a] if state[2] > 0 else 0.0
                w[a] = (m[a] + back) / (1.0 - state[3]) + shift[a]
            residual(kind, w, Y[i], old)
            keep = 1.0 - rho
            for a in range(k):
                change[a] = g[a] - keep * old[a]
        for a in range(k):
            for e in range(k):
                K[a, e] = (
                    keep * keep * K[a, e]
                    + keep * (h[a] * change[e] + change[a] * h[e])
                    + square * change[a] * change[e]
                )
        state[1] *= keep
        for a in range(k):
            total = 0.0
            for e in range(k):
                total += change[e] * S[e, a]
            w[a] = total / state[1]
            old[a] = change[a] / state[1]
        for q in range(indptr[i], indptr[i + 1]):
            j, x = cols[q], vals[q]
            for a in range(k):
                E[j, a] += x * old[a]
                A[j, a] += x * w[a]
        for _ in range(POWER):
            size = 0.0
            for a in range(k):
                total = 0.0
                for e in range(k):
                    total += K[a, e] * v[e]
                w[a] = total
                size += total * total
            size = np.sqrt(size)
            if size > 0:
                for a in range(k):
                    v[a] = w[a] / size
        total = 0.0
        for a in range(k):
            for e in range(k):
                total += v[a] * K[a, e] * v[e]
        state[2] = np.sqrt(max(total, 0.0))
        state[3] = 2.0 / (t + 2.0) if sag else 1.0 / (t + 1.0)
        if state[2] > 1e-150:
            state[0] *= 1.0 - state[3]
            share = state[3] * radius * state[1] / (state[2] * state[0])
            for a in range(k):
                for e in range(k):
                    S[a, e] += share * v[a] * v[e]
        else:
            state[3] = 0.0
        if state[0] < SMALLEST or state[1] < SMALLEST:
            multiply_in(A, E, S, state, K)


@dataclass(frozen=True)
class TraceModel:
    """W, its intercepts, and how good they are.

    Args:
        coef: outputs × features.
        intercept: one an output.
        value: the mean loss on all rows.
        gap: the Frank-Wolfe gap over the ball, the intercepts as they are.
        passes: that were made.
        seconds: of learning and measuring, compiling left out.

    Example:
        >>> import numpy as np
        >>> from onesfw.lowrank import TraceModel
        >>> TraceModel(np.eye(2), np.zeros(2), 0.1, 0.01, 20, 0.5).rank
        2
    """

    coef: HostArray
    intercept: HostArray
    value: float
    gap: float
    passes: int
    seconds: float

    @property
    def rank(self) -> int:
        """Singular values of W above a thousandth of the largest."""
        values = np.linalg.svd(self.coef, compute_uv=False)
        return int((values > 1e-3 * values[0]).sum()) if len(values) else 0


def train_rows(
    data: Examples,
    targets: HostArray,
    *,
    radius: float,
    loss: str = "softmax",
    gradient: str = "sag",
    passes: int | None = None,
    tol: float | None = 1e-3,
    intercept: bool = True,
    key: int = 0,
) -> TraceModel:
    """Learn W over the trace-norm ball, in shuffled passes.

    Args:
        data: the rows; their own targets are not used.
        targets: rows × outputs: numbers, or one-hot classes for softmax.
        radius: of the ball.
        loss: "softmax" or "squared".
        gradient: "sag", one vector a row, or "one_sample".
        passes: over the rows; None for 20, or as many as make 100,000 steps.
        tol: stop when the gap is at most tol times the loss of W = 0, looked at after each pass; None for never.
        intercept: learn one an output, outside of the norm.
        key: the seed of the order.

    Returns:
        The model.

    Raises:
        TypeError, ValueError: where an argument is wrong.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import examples, LOSSES
        >>> from onesfw.lowrank import train_rows
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 6))
        >>> Y = X @ np.outer([1.0, -1, 0, 0, 0, 0], [1.0, 2.0, 3.0])
        >>> rows = examples(X, Y[:, 0], None, 6, LOSSES["squared"])
        >>> model = train_rows(rows, Y, radius=6.0, loss="squared", passes=50)
        >>> bool(np.linalg.svd(model.coef, compute_uv=False).sum() <= 6.0 + 1e-6)
        True
    """
    choose(loss, KINDS, "loss")
    choose(gradient, ("sag", "one_sample"), "gradient")
    number(radius, "radius", 0.0, strict=True)
    turns = -(-100_000 // data.size) if passes is None else whole_number(passes, "passes", 1)
    turns = max(turns, FEWEST_PASSES) if passes is None else turns
    Y = np.ascontiguousarray(targets, np.float64)
    d, k, n = data.n_features, Y.shape[1], data.size
    matrix = data.matrix
    arrays = matrix.indptr, matrix.indices, np.asarray(matrix.data, np.float64)
    A, E, S, K = np.zeros((d, k)), np.zeros((d, k)), np.zeros((k, k)), np.zeros((k, k))
    v, state = np.full(k, k**-0.5), np.array([1.0, 1.0, 0.0, 0.0])
    v += 0.1 * np.random.default_rng(k).standard_normal(k)
    v /= np.linalg.norm(v)
    shift = start_shift(Y, loss) if intercept else np.zeros(k)
    sag = gradient == "sag"
    alpha = np.zeros((n if sag else 0, k))
    rng = np.random.default_rng(key)
    limit = None if tol is None else tol * measure(np.zeros((d, k)), shift, matrix, Y, loss, radius)[0]
    learn(*arrays, Y, np.zeros(0, np.int64), KINDS[loss], radius, 0, sag, A, E, S, K, v, shift, alpha, state)
    begun = time.perf_counter()
    done = 0
    for done in range(1, turns + 1):
        order = rng.permutation(n) if done == 1 or not sag else rng.integers(0, n, n)
        learn(*arrays, Y, order, KINDS[loss], radius, (done - 1) * n, sag, A, E, S, K, v, shift, alpha, state)
        if limit is not None or done == turns:
            multiply_in(A, E, S, state, K)
            if intercept:
                shift += shift_step(A, shift, matrix, Y, loss)
            value, gap = measure(A, shift, matrix, Y, loss, radius)
            if limit is not None and gap <= limit:
                break
    return TraceModel(A.T.copy(), shift, value, gap, done, time.perf_counter() - begun)


def start_shift(Y: HostArray, loss: str) -> HostArray:
    """The best intercepts without W."""
    mean = Y.mean(0)
    if loss == "squared":
        return mean
    logs = np.log(np.maximum(mean, 1e-12))
    return logs - logs.mean()


def residuals(
    W: HostArray, shift: HostArray, matrix: scipy.sparse.csr_array, Y: HostArray, loss: str
) -> tuple[HostArray, HostArray]:
    """ℓ of each row, and ∂ℓ/∂m, rows × outputs."""
    margins = np.asarray(matrix @ W) + shift
    if loss == "squared":
        rest = margins - Y
        return 0.5 * (rest * rest).sum(1), rest
    top = margins.max(1, keepdims=True)
    chances = np.exp(margins - top)
    totals = chances.sum(1, keepdims=True)
    return (np.log(totals) + top)[:, 0] - (Y * margins).sum(1), chances / totals - Y


def shift_step(W: HostArray, shift: HostArray, matrix: scipy.sparse.csr_array, Y: HostArray, loss: str) -> HostArray:
    """Where the intercepts go: to their best for the squared loss, by Newton's step on the diagonal for softmax."""
    rest = residuals(W, shift, matrix, Y, loss)[1]
    if loss == "squared":
        return -rest.mean(0)
    chances = rest + Y
    return -rest.mean(0) / np.maximum((chances * (1 - chances)).mean(0), 1e-6)


def measure(
    W: HostArray, shift: HostArray, matrix: scipy.sparse.csr_array, Y: HostArray, loss: str, radius: float
) -> tuple[float, float]:
    """The mean loss, and max ⟨∇F, W − V⟩ over the ball."""
    losses, rest = residuals(W, shift, matrix, Y, loss)
    gradient = np.asarray(matrix.T @ rest) / len(Y)
    largest = float(np.sqrt(max(np.linalg.eigvalsh(gradient.T @ gradient)[-1], 0.0)))
    return float(losses.mean()), float((gradient * W).sum()) + radius * largest
