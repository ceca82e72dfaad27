"""Trace-norm linear models from rows: W in R^{d×k} with ‖W‖_* ≤ τ, softmax or squared loss, a row at a time.

W = b (A − E S) and D = c E, the estimate of the gradient: A and E are d × k, S is k × k. A step changes the rows of A
and E where the example has entries, and k × k matrices: O(entries · k + k²), whatever d is. The oracle is a power
iteration on DᵀD, kept up to date by rank-two changes; the vertex −τ (D v/‖D v‖) vᵀ goes into S alone. The gradient is
SAG's (Négiar et al. 2020), which remembers one vector a row, or Algorithm 2's, which remembers none. Intercepts are
solved for between passes, and the model is polished after them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numba import njit

from onesfw.arguments import choose, flag, named, number, whole_number
from onesfw.linear.examples import Examples
from onesfw.linear.training import LEAST_TOL, POLISH_TOL
from onesfw.lowrank.trace_polish import polish_factors
from onesfw.lowrank.trace_task import Point, Task, task
from onesfw.trees import HostArray, Rows

SOFTMAX, SQUARES = 0, 1
KINDS = {"softmax": SOFTMAX, "squared": SQUARES}
POWER = 2  # turns of the power iteration a step, from the last vector
SMALLEST = 1e-8  # of the scales b and c, before they are multiplied in
FEWEST_PASSES = 20
BEFORE_POLISH = 3  # passes, by default


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
        gap: the Frank-Wolfe gap over the ball at the best intercepts: no W with any intercepts loses less by more.
        passes: that were made.
        seconds: of learning and measuring, compiling left out.
        rounds: of the polish.
        limit: the gap that it was to reach; infinite for none.
        unit: the loss of the best constant.

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
    rounds: int = 0
    limit: float = np.inf
    unit: float = 0.0

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
    polish: bool = True,
    key: int = 0,
) -> TraceModel:
    """Learn W over the trace-norm ball, in shuffled passes, and polish it; never worse than the best constant.

    Args:
        data: the rows; their own targets are not used.
        targets: rows × outputs: numbers, or one-hot classes for softmax.
        radius: of the ball.
        loss: "softmax" or "squared".
        gradient: "sag", one vector a row, or "one_sample".
        passes: over the rows. None: 3 before a polish; without, 20, or as many as make 100,000 steps.
        tol: stop when the gap is at most tol times the loss of the best constant, looked at after each pass. None: not
            before the passes are over, and the polish goes to 1e-9.
        intercept: learn one an output, outside of the norm: the best one for W, solved for after each pass.
        polish: go on after the passes by limited-memory BFGS on factors of W, until the gap is below tol.
        key: the seed of the order.

    Returns:
        The model: the last one, or without a polish the best of those that were measured.

    Raises:
        TypeError, ValueError: where an argument is wrong.
        FloatingPointError: where the loss overflows: the rows should be scaled, or the radius lowered.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import examples, LOSSES
        >>> from onesfw.lowrank import train_rows
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 6))
        >>> Y = X @ np.outer([1.0, -1, 0, 0, 0, 0], [1.0, 2.0, 3.0])
        >>> rows = examples(X, Y[:, 0], None, 6, LOSSES["squared"])
        >>> model = train_rows(rows, Y, radius=6.0, loss="squared")
        >>> bool(np.linalg.svd(model.coef, compute_uv=False).sum() <= 6.0 + 1e-6)
        True
    """
    choose(loss, KINDS, "loss")
    choose(gradient, ("sag", "one_sample"), "gradient")
    number(radius, "radius", 0.0, strict=True)
    if tol is not None:
        number(tol, "tol", 0.0)
    if not isinstance(data, Examples):
        raise TypeError(f"{named('data')} must be rows as linear.examples makes them, got {type(data).__name__}")
    targets = checked_targets(targets, data.size, loss)
    flag(intercept, "intercept")
    flag(polish, "polish")
    whole_number(key, "key", 0)
    turns = default_passes(data.size, polish) if passes is None else whole_number(passes, "passes", 1)
    problem = task(data, targets, loss, radius, intercept)
    learner = RowLearner(problem, gradient, key)
    begun = time.perf_counter()
    constant = problem.constant()
    least = LEAST_TOL * max(abs(constant.value), 1e-300)
    limit = np.inf if tol is None else max(tol * constant.value, least)
    goal = max(POLISH_TOL * constant.value, least) if tol is None else limit
    best, rounds = constant, 0
    with np.errstate(over="ignore", invalid="ignore"):
        while learner.passes < turns and (learner.passes == 0 or tol is None or best.gap > limit):
            point = learner.turn()
            if point.value < best.value and np.isfinite(point.gap):  # never where it is not a number
                best = point
        if polish:
            best, rounds = polish_factors(problem, best, goal)
    if not (np.isfinite(best.value) and np.isfinite(best.gap)):
        raise FloatingPointError(f"the loss overflows: scale the rows, or lower {named('radius')}")
    seconds = time.perf_counter() - begun
    return TraceModel(
        best.W.T / problem.unit,
        best.shift,
        best.value,
        best.gap,
        learner.passes,
        seconds,
        rounds,
        limit,
        constant.value,
    )


def checked_targets(targets: Rows, rows: int, loss: str) -> HostArray:
    """rows × outputs of finite numbers; chances, for softmax."""
    found, name = np.asarray(targets), named("targets")
    if found.dtype.kind not in "fiub" or found.ndim != 2 or len(found) != rows:
        raise ValueError(
            f"{name} must be a matrix of numbers, {rows:,} rows × outputs, got {found.dtype} of shape {found.shape}"
        )
    if not np.isfinite(found).all():
        raise ValueError(f"{name} holds NaN or infinite numbers; leave those rows out")
    if loss == "softmax" and (found.min(initial=0) < 0 or not np.allclose(found.sum(1), 1)):
        raise ValueError(f"{name} must be one-hot classes for {named('loss')}='softmax', each row with a 1 among zeros")
    return found


def default_passes(rows: int, polish: bool) -> int:
    """A few before a polish; without, 20, or as many as make 100,000 steps."""
    return BEFORE_POLISH if polish else max(FEWEST_PASSES, -(-100_000 // rows))


class RowLearner:
    """Passes over the rows, a step a row, and the intercepts solved for after each of them."""

    def __init__(self, problem: Task, gradient: str, key: int) -> None:
        self.problem, self.sag = problem, gradient == "sag"
        n, d = problem.matrix.shape
        k = problem.targets.shape[1]
        self.A, self.E, self.S, self.K = np.zeros((d, k)), np.zeros((d, k)), np.zeros((k, k)), np.zeros((k, k))
        v = np.full(k, k**-0.5) + 0.1 * np.random.default_rng(k).standard_normal(k)
        self.v, self.state = v / np.linalg.norm(v), np.array([1.0, 1.0, 0.0, 0.0])
        self.alpha = np.zeros((n if self.sag else 0, k))
        self.shift = self.level = problem.start_shift()
        self.rng, self.passes = np.random.default_rng(key), 0
        self.learn(np.zeros(0, np.int64))  # compiles

    def turn(self) -> Point:
        """One pass, and the point it ends at."""
        n = len(self.problem.targets)
        again = self.sag and self.passes > 0
        self.learn(self.rng.integers(0, n, n) if again else self.rng.permutation(n))
        self.passes += 1
        multiply_in(self.A, self.E, self.S, self.state, self.K)
        point = self.problem.at(self.A.copy(), self.level)
        self.shift, self.level = point.shift, point.level
        return point

    def learn(self, order: HostArray) -> None:
        """A step for each row of the order."""
        problem, matrix = self.problem, self.problem.matrix
        learn(
            matrix.indptr, matrix.indices, matrix.data, problem.targets, order, KINDS[problem.loss], problem.radius,
            self.passes * len(problem.targets), self.sag, self.A, self.E, self.S, self.K, self.v, self.shift,
            self.alpha, self.state,
        )  # fmt: skip
