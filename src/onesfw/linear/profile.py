"""φ(m) = min over b of Σ w ℓ(m + b, y): the loss of margins at their best intercept, with its two derivatives."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np
from numba import njit

from onesfw.linear.curvature import FAST
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Settings
from onesfw.linear.losses import (
    FAR,
    HUBER,
    LOGISTIC,
    POISSON,
    SQUARED_HINGE,
    best_shift,
    curvature,
    derivative,
    value,
)
from onesfw.trees import HostArray

QUICK_ROUNDS = 4
SETTLED = 1e-8  # Newton's last step, after which the intercept is off by its square


@njit(cache=True, nogil=True)
def upper_curvature(loss: int, parameter: float, m: float, y: float) -> float:
    """The curvature of a parabola above ℓ that touches it at m; a cautious one for the Poisson loss, which has none."""
    if loss == LOGISTIC:
        return 0.25
    if loss == SQUARED_HINGE:
        return 2.0
    if loss == HUBER:
        return min(1.0, parameter / max(abs(m - y), 1e-300))
    if loss == POISSON:
        return max(exp(m), abs(exp(m) - y))
    return curvature(loss, parameter, m, y)


def exponentials(loss: int, margins: HostArray) -> HostArray:
    """exp(−|m|) or exp(m), where the loss has one: NumPy's is several times faster than one number at a time."""
    if loss == LOGISTIC:
        return np.exp(-np.abs(margins))
    if loss != POISSON:
        return margins
    with np.errstate(over="ignore"):
        return np.exp(margins)


@njit(cache=True, nogil=True, fastmath=FAST)
def expand(
    loss: int, parameter: float, margins: HostArray, powers: HostArray, targets: HostArray, weights: HostArray,
    slopes: HostArray, bends: HostArray,
) -> float:  # fmt: skip
    """Σ w ℓ, less Σ w log(1 + e) where the loss is logistic; writes w ℓ' and w ℓ''."""
    total = 0.0
    if loss == LOGISTIC:
        for i in range(margins.shape[0]):
            m, y, w = margins[i], targets[i], weights[i]
            p = powers[i] / (1.0 + powers[i])
            total += w * max(-y * m, 0.0)
            slopes[i], bends[i] = -y * w * (p if y * m > 0 else 1.0 - p), w * p * (1.0 - p)
    elif loss == POISSON:
        for i in range(margins.shape[0]):
            total += weights[i] * (powers[i] - targets[i] * margins[i])
            slopes[i], bends[i] = weights[i] * (powers[i] - targets[i]), weights[i] * powers[i]
    else:
        for i in range(margins.shape[0]):
            m, y, w = margins[i], targets[i], weights[i]
            total += w * value(loss, parameter, m, y)
            slopes[i], bends[i] = w * derivative(loss, parameter, m, y), w * curvature(loss, parameter, m, y)
    return total


@njit(cache=True, nogil=True)
def bend_more(
    loss: int, parameter: float, margins: HostArray, targets: HostArray, weights: HostArray, caution: float,
    bends: HostArray,
) -> None:  # fmt: skip
    """Blend w ℓ'' with its upper bound."""
    for i in range(margins.shape[0]):
        above = weights[i] * upper_curvature(loss, parameter, margins[i], targets[i])
        bends[i] += caution * (above - bends[i])


class Expansion(NamedTuple):
    """φ at some margins, to second order."""

    value: float
    slopes: HostArray
    """w ℓ', a row each."""
    bends: HostArray
    """w ℓ'', a row each."""
    intercept: float
    """The best one."""
    centred: bool
    """Whether the intercept follows the margins: not where there is none, or where it lies at its bound."""


class Profile:
    """φ of one model's rows. The intercept of the last margins is kept: the next search starts there.

    Args:
        settings: of all models.
        data: the rows.
        model: which of them.
        intercept: where the first search starts.
    """

    def __init__(self, settings: Settings, data: Examples, model: int, intercept: float = 0.0) -> None:
        self.code, self.delta = settings.loss_function.code, float(settings.delta)
        self.targets = settings.targets_of(data.targets, model)
        self.weights = data.weights / max(float(data.weights.sum()), np.finfo(float).tiny)
        intervals = settings.intervals
        self.interval = None if intervals is None else (float(intervals[model][0]), float(intervals[model][1]))
        self.intercept = float(intercept)

    def expand(self, margins: HostArray, caution: float = 0.0) -> Expansion:
        """φ(m) to second order; `caution` blends the second derivatives with upper bounds of them."""
        centred = False
        if self.interval is not None:
            low, high = self.interval
            self.intercept = self.settled(margins, low, high)
            # φ bends less where the intercept follows, but not beyond its bound: a cautious model does not count on it.
            centred = low < self.intercept < high and (caution == 0 or (low == -np.inf and high == np.inf))
            margins = margins + self.intercept
        value, slopes, bends = self.at(margins)
        if caution > 0:
            bend_more(self.code, self.delta, margins, self.targets, self.weights, caution, bends)
        return Expansion(value, slopes, bends, self.intercept, centred)

    def at(self, margins: HostArray) -> tuple[float, HostArray, HostArray]:
        """Σ w ℓ, w ℓ' and w ℓ'' at these margins, whatever the best intercept is."""
        powers = exponentials(self.code, margins)
        slopes, bends = np.empty(len(margins)), np.empty(len(margins))
        total = expand(self.code, self.delta, margins, powers, self.targets, self.weights, slopes, bends)
        if self.code == LOGISTIC:
            total += float(self.weights @ np.log1p(powers))
        return float(total), slopes, bends

    def settled(self, margins: HostArray, low: float, high: float) -> float:
        """The best intercept from one that is near: a few Newton steps; `best_shift` where they do not settle."""
        b = min(max(self.intercept, low), high)
        for _ in range(QUICK_ROUNDS):
            _, slopes, bends = self.at(margins + b)
            slope, bend = float(slopes.sum()), float(bends.sum())
            if (slope >= 0 and b <= low) or (slope <= 0 and b >= high):
                return b
            if not bend > 0:
                break
            step = slope / bend
            if not abs(step) <= FAR * max(1.0, abs(b)):  # where curvature fades
                break
            b = min(max(b - step, low), high)
            if abs(step) <= SETTLED * max(1.0, abs(b)):
                return b
        return float(
            best_shift(self.code, self.delta, margins, self.targets, self.weights, low, high, self.intercept)
        )  # fmt: skip


def loss_units(settings: Settings, data: Examples) -> HostArray:
    """The loss of the best constant, of 0 where there is no intercept, above the least that the targets allow."""
    nothing = np.zeros(data.size)
    units = np.array([Profile(settings, data, model).expand(nothing).value for model in range(settings.models)])
    if settings.loss != "poisson":
        return units
    y = data.targets
    saturated = y - np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0)), 0.0)
    return units - np.average(saturated, weights=data.weights if data.weights.any() else None)
