"""F(x) and the Frank-Wolfe gap of a linear model, from a full pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onesfw.linear.examples import Examples
from onesfw.linear.learner import Settings
from onesfw.linear.losses import all_derivatives, all_values


class Evaluation(NamedTuple):
    """What a pass over the data says of x."""

    value: float
    """F(x), the weighted mean of the losses."""
    gap: float
    """max over v of ⟨∇F(x), x − v⟩, intercept included: at least F(x) − F*."""


def evaluate(settings: Settings, data: Examples, coef: np.ndarray, intercept: float = 0.0) -> Evaluation:
    """F and its gap at (coef, intercept)."""
    loss, matrix = settings.loss_function, data.matrix
    margins = matrix @ coef + intercept
    weights = data.weights / max(data.weights.sum(), np.finfo(float).tiny)
    value = float(weights @ all_values(loss.code, settings.huber, margins, data.targets))
    slopes = weights * all_derivatives(loss.code, settings.huber, margins, data.targets)
    gradient = matrix.T @ slopes
    gap = float(gradient @ coef) - settings.radius * settings.set.least(gradient)
    if settings.intercept is not None:
        low, high = settings.intercept
        slope = float(slopes.sum())
        gap += slope * intercept - min(slope * low, slope * high)
    return Evaluation(value, gap)
