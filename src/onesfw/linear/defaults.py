"""What the data say where the user does not: a radius and an interval for the intercept."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from onesfw.linear.constraints import Constraint
from onesfw.linear.examples import Examples
from onesfw.linear.losses import Loss

REACH = 10.0  # the largest margin of a typical row at the default radius, in units of the target
BLIND_RADIUS = 10.0  # for a stream, of which nothing has been seen


def largest_margins(data: Examples, constraint: Constraint) -> np.ndarray:
    """max ⟨a, x⟩ over the set with r = 1, for each row: the dual norm of the row."""
    sizes = np.abs(data.values.astype(np.float64))
    rows = np.repeat(np.arange(data.size), np.diff(data.indptr))
    out = np.zeros(data.size)
    if constraint.name == "l2":
        return np.sqrt(np.bincount(rows, sizes**2, minlength=data.size))
    if constraint.name == "linf":
        return np.bincount(rows, sizes, minlength=data.size)
    np.maximum.at(out, rows, sizes)
    return out


def default_radius(data: Examples, loss: Loss, constraint: Constraint) -> float:
    """The r at which a row of average size can reach a margin of 10, in a regression of 10 standard deviations of y."""
    size = float(largest_margins(data, constraint).mean()) if data.size else 0.0
    unit = 1.0 if loss.classifies or loss.least_target == 0 else float(data.targets.std())
    return REACH * (unit or 1.0) / size if size > 0 else BLIND_RADIUS


def best_constant(data: Examples, loss: Loss, parameter: float) -> float:
    """The margin that minimises the mean loss where it is the same for all rows."""
    y, weights = data.targets, data.weights
    share = float(np.average(y > 0, weights=weights)) if loss.classifies else 0.0
    mean = float(np.average(y, weights=weights))
    if loss.name == "logistic":
        return float(np.log(share) - np.log1p(-share)) if 0 < share < 1 else np.sign(share - 0.5) * REACH
    if loss.name == "squared_hinge":
        return 2 * share - 1
    if loss.name == "poisson":
        return float(np.log(max(mean, np.exp(-REACH))))
    if loss.name == "huber" and y.min() < y.max():
        return float(scipy.optimize.brentq(lambda m: weights @ np.clip(m - y, -parameter, parameter), y.min(), y.max()))
    return mean


def default_interval(
    data: Examples, loss: Loss, constraint: Constraint, radius: float, delta: float
) -> tuple[float, float]:
    """The best constant margin ± the largest margin the rows can have: the best intercept for any x lies in it.

    The derivative of the mean loss in the intercept grows with every margin, so that it is positive above the interval
    and negative below. For the squared loss the best intercept is ȳ − ⟨ā, x⟩, and the mean row ā gives a narrower one.
    """
    centre = best_constant(data, loss, delta)
    if loss.name == "squared":
        mean = (data.matrix.T @ data.weights) / max(data.weights.sum(), np.finfo(float).tiny)
        width = radius * dual_norm(mean, constraint)
    else:
        width = radius * float(largest_margins(data, constraint).max(initial=0.0))
    return centre - width, centre + width


def dual_norm(a: np.ndarray, constraint: Constraint) -> float:
    """max |⟨a, x⟩| over the set with r = 1, at most."""
    return max(abs(constraint.least(a)), abs(constraint.least(-a)))
