"""A trace-norm linear model's problem: F(W) = min_b (1/n) Σ ℓ(Wᵀx_i + b, y_i), its gradient and its Frank-Wolfe gap.

F is convex in W, and its gradient is that at the best b: the gap bounds what W and b together could still gain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse

from onesfw.arguments import named
from onesfw.linear.examples import LARGEST, Examples
from onesfw.trees import HostArray

NEWTON_STEPS = 200
HALVINGS = 40
SOLVED = 1e-6  # |∂F/∂b| up to which intercepts count as the best
SETTLED = 1e-13  # |∂F/∂b|, a difference of frequencies
MARGIN = 50.0  # the best intercepts lie no farther apart than the margins do, and this
RIDGE = 1e-9  # of the curvature's mean: chances of 0 and 1 leave none
FAR = 0.1  # |∂F/∂b| from which those of W = 0 may be a better start
FLAT = 1e-100  # the mean of p(1 − p) below which no curvature is to go by
ROUNDING = 1e-14
SUFFICIENT = 1e-4  # of the fall that the slope promises


class Settled(NamedTuple):
    """The best intercepts for some margins, the mean loss and ∂ℓ/∂m there, rows × outputs."""

    shift: HostArray
    value: float
    rest: HostArray


class Point(NamedTuple):
    """W, features × outputs, its best intercepts, F(W), ∇F(W) and the gap.

    `level` = shift + Wᵀx̄, for the mean row x̄: it changes least with W.
    """

    W: HostArray
    shift: HostArray
    level: HostArray
    value: float
    gradient: HostArray
    gap: float


@dataclass(frozen=True)
class Task:
    """The rows, divided by `unit`, their targets, and the ball of the radius times `unit`.

    A power of two near the largest entry is the unit: squares neither overflow nor vanish, and no digit changes.
    """

    matrix: scipy.sparse.csr_array
    targets: HostArray
    loss: str
    radius: float
    intercept: bool
    unit: float
    columns: scipy.sparse.csr_array = field(repr=False)

    def start_shift(self) -> HostArray:
        """The best intercepts without W."""
        mean: HostArray = self.targets.mean(0)
        if not self.intercept:
            return np.zeros(len(mean))
        if self.loss == "squared":
            return mean
        logs = np.log(np.maximum(mean, 1e-12))
        return logs - logs.mean()

    def constant(self) -> Point:
        """W = 0 with the best intercepts."""
        return self.at(np.zeros((self.matrix.shape[1], self.targets.shape[1])), self.start_shift())

    def at(self, W: HostArray, level: HostArray) -> Point:
        """The point of W; Newton's method for the intercepts starts at `level`."""
        margins, mean = np.asarray(self.matrix @ W), 0.0
        if self.intercept:
            mean = margins.mean(0)
            margins -= mean
        found = self.settle(margins, level)
        gradient = np.asarray(self.columns @ found.rest) / len(self.targets)
        solved = not self.intercept or np.abs(found.rest.mean(0)).max() <= SOLVED * (1.0 + np.abs(found.rest).mean())
        gap = self.gap(W, gradient) if solved else np.inf  # no bound where the intercepts are not the best
        return Point(W, found.shift - mean, found.shift, found.value, gradient, gap)

    def gap(self, W: HostArray, gradient: HostArray) -> float:
        """max ⟨∇F, W − V⟩ over the ball."""
        return float((gradient * W).sum()) + self.radius * largest_singular(gradient)

    def settle(self, margins: HostArray, shift: HostArray) -> Settled:
        """The best intercepts for these margins, from `shift` on: no step lets the loss rise."""
        if self.loss == "squared":
            rest = margins + shift - self.targets
            if self.intercept:
                mean = rest.mean(0)
                shift, rest = shift - mean, rest - mean
            return Settled(shift, float(0.5 * (rest * rest).sum() / len(rest)), rest)
        value, chances = softmax_loss(margins + shift, self.targets)
        if self.intercept and np.abs(chances.mean(0) - self.targets.mean(0)).max() > FAR:
            loss, others = softmax_loss(margins + self.start_shift(), self.targets)
            if loss < value:
                shift, value, chances = self.start_shift(), loss, others
        reach = float(np.ptp(margins)) + MARGIN
        for _ in range(NEWTON_STEPS if self.intercept else 0):
            slope = chances.mean(0) - self.targets.mean(0)
            if np.abs(slope).max() <= SETTLED:
                break
            found = self.shorten(margins, shift, value, slope, newton_direction(chances, slope, reach))
            if found is None:
                break
            shift, value, chances = found
        return Settled(shift, value, chances - self.targets)

    def shorten(
        self, margins: HostArray, shift: HostArray, value: float, slope: HostArray, direction: HostArray
    ) -> tuple[HostArray, float, HostArray] | None:
        """The first of the step, its half, its quarter … that lets the loss fall enough; None where none does."""
        fall, share = float(slope @ direction), 1.0
        for _ in range(HALVINGS):
            there = shift + share * direction
            loss, chances = softmax_loss(margins + there, self.targets)
            noise = ROUNDING * max(1.0, abs(value))
            unseen = -fall <= noise and loss <= value + noise  # so near that the loss cannot tell
            if unseen or (loss <= value + SUFFICIENT * share * fall and loss < value):
                return there, loss, chances
            share /= 2
        return None


def task(data: Examples, targets: HostArray, loss: str, radius: float, intercept: bool) -> Task:
    """The problem of these rows; `targets`: rows × outputs."""
    size = float(np.abs(data.values).max(initial=0.0))
    unit = float(2.0 ** np.floor(np.log2(size))) if size > 0 else 1.0
    if radius > LARGEST / unit:
        raise ValueError(f"{named('radius')}={radius:g} allows margins beyond {LARGEST:g}: lower {named('radius')}")
    indices = data.indices.view(np.int32)
    values = np.asarray(data.values, np.float64) / unit
    matrix = scipy.sparse.csr_array((values, indices, data.indptr), (data.size, data.n_features))
    Y = np.ascontiguousarray(targets, np.float64)
    return Task(matrix, Y, loss, radius * unit, intercept, unit, scipy.sparse.csr_array(matrix.T))


def softmax_loss(margins: HostArray, Y: HostArray) -> tuple[float, HostArray]:
    """The mean of log Σ exp m − ⟨y, m⟩, and the softmax of each row."""
    top = margins.max(axis=1, keepdims=True)
    chances = np.exp(margins - top)
    totals = chances.sum(axis=1, keepdims=True)
    chances /= totals
    above = top[:, 0] - np.einsum("ik,ik->i", Y, margins)  # row by row: sums of large margins would cancel
    return float((np.log(totals[:, 0]) + above).mean()), chances


def newton_direction(chances: HostArray, slope: HostArray, reach: float) -> HostArray:
    """−H⁻¹ slope in the differences of the intercepts, no longer than `reach`; all moved alike change nothing.

    H is the Laplacian of the weights mean(p_i p_j): 1 − p would lose what chances near 0 and 1 leave of the curvature.
    """
    k = len(slope)
    weights = chances.T @ chances / len(chances)
    np.fill_diagonal(weights, 0.0)
    mean = float(weights.sum()) / k
    direction: HostArray = -slope * (reach / max(float(np.abs(slope).max()), 1e-300))
    if mean < FLAT:
        return direction
    H = np.diag(weights.sum(1)) - weights + RIDGE * mean * np.eye(k) + mean / k
    newton: HostArray = -np.linalg.solve(H, slope)
    newton -= newton.mean()
    if slope @ newton < 0:
        direction = newton
    direction *= min(1.0, reach / max(float(np.abs(direction).max()), 1e-300))
    return direction


def largest_singular(G: HostArray) -> float:
    """‖G‖₂ of a matrix with few rows or columns, whatever its unit."""
    size = float(np.abs(G).max(initial=0.0))
    if not 0 < size < np.inf:
        return size
    G = G / size
    square = G.T @ G if G.shape[0] >= G.shape[1] else G @ G.T
    return size * float(np.sqrt(max(np.linalg.eigvalsh(square)[-1], 0.0)))
