"""The optimum of a trace-norm ball by limited-memory BFGS on factors.

‖W‖_* ≤ τ is W = P Qᵀ with ‖P‖² + ‖Q‖² ≤ 2τ (Srebro et al. 2004), a Euclidean ball: u ↦ √(2τ) u/‖u‖, with one slack
entry in u, maps all of space onto it, and what is left has no constraint. The factors have as many columns as W could
have rank, so that a second-order point is an optimum; the Frank-Wolfe gap of W tells, whatever came before.
"""

from __future__ import annotations

import numpy as np

from onesfw.lowrank.quasi_newton import descend
from onesfw.lowrank.trace_task import Point, Task
from onesfw.trees import HostArray

ROUNDS = 3000  # of L-BFGS
ROUNDING = 1e-15  # of the losses: what the line search takes for noise
FLOOR = 1e-3  # of τ: the singular values of a start, together; zeros would stay
SLACK = 1e-2  # of √(2τ), at least: a start on the boundary could not leave it


class Factors:
    """F at u, for a minimiser; it keeps the point that was looked at last."""

    def __init__(self, task: Task, start: Point) -> None:
        self.task = task
        self.shape = d, k = start.W.shape
        self.rank = min(d, k)
        self.size = float(np.sqrt(2 * task.radius))
        self.last = start

    def start(self) -> HostArray:
        """u of a point near the last one, with no singular value 0; at W = 0, a little way down the gradient."""
        point, radius = self.last, self.task.radius
        down = point.W if point.W.any() else -point.gradient
        left, values, right = np.linalg.svd(down, full_matrices=False)
        values = values if point.W.any() else 0.0 * values
        values = np.maximum(values, FLOOR * radius / self.rank)
        values *= min(1.0, radius / values.sum())
        z = np.concatenate([(left * np.sqrt(values)).ravel(), (right.T * np.sqrt(values)).ravel()])
        slack = np.sqrt(max(self.size**2 - float(z @ z), (SLACK * self.size) ** 2))
        return np.append(z, slack) / self.size

    def __call__(self, u: HostArray) -> tuple[float, HostArray]:
        """F and its gradient in u."""
        (d, k), r, norm = self.shape, self.rank, float(np.linalg.norm(u))
        z = u * (self.size / norm)
        P, Q = z[: d * r].reshape(d, r), z[d * r : -1].reshape(k, r)
        self.last = point = self.task.at(P @ Q.T, self.last.level)
        slope = np.concatenate([(point.gradient @ Q).ravel(), (point.gradient.T @ P).ravel(), [0.0]])
        slope -= z * (float(z @ slope) / self.size**2)
        slope *= self.size / norm
        return point.value, slope


class Search:
    """Rounds of L-BFGS until the gap is small; the best point of those it stepped to, which only fall in F."""

    def __init__(self, task: Task, start: Point, limit: float) -> None:
        self.factors = Factors(task, start)
        self.best, self.limit = start, limit
        self.start, self.rounds = start, 0

    def step(self) -> bool:
        """Look at a step's end; whether the gap is small enough."""
        point = self.factors.last
        self.rounds += 1
        first = self.best is self.start and np.isfinite(point.gap)
        if point.value <= self.start.value and (first or point.gap < self.best.gap):
            self.best = point
        return self.best.gap <= self.limit


def polish_factors(task: Task, start: Point, limit: float) -> tuple[Point, int]:
    """From a point to one whose gap is at most `limit`, or the best that was found; and rounds. F never rises."""
    search = Search(task, start, limit)
    if start.gap > limit:
        noise = ROUNDING * (task.constant().value + 10 * abs(start.value))
        descend(search.factors, search.factors.start(), noise, search.step, ROUNDS)
    return search.best, search.rounds
