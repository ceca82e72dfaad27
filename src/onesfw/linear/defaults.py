"""What the data say where the user does not: a radius."""

from __future__ import annotations

import numpy as np

from onesfw.linear.constraints import Constraint
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Settings
from onesfw.linear.shifts import offsets, shifted
from onesfw.trees import HostArray

REACH = 10.0  # the largest margin of a typical row at the default radius, in units of the target
BLIND_RADIUS = 10.0  # for a stream, of which nothing has been seen
ANYWHERE = (-np.inf, np.inf)  # where an intercept may lie


def largest_margins(data: Examples, constraint: Constraint) -> HostArray:
    """max ⟨a, x⟩ over the set with r = 1, for each row: the dual norm of the row."""
    sizes, out = np.abs(data.values.astype(np.float64)), np.zeros(data.size)
    filled = np.diff(data.indptr) > 0
    starts = data.indptr[:-1][filled]
    if not len(starts):
        return out
    if constraint.name == "l2":
        out[filled] = np.sqrt(np.add.reduceat(sizes**2, starts))
    else:
        out[filled] = (np.add if constraint.name == "linf" else np.maximum).reduceat(sizes, starts)
    return out


def default_radius(data: Examples, settings: Settings) -> float:
    """The r at which a row of average size can reach a margin of 10, in a regression of 10 standard deviations of y.

    Where an intercept is free, what a column has in common with itself in all rows is the intercept's matter: sizes are
    counted from the means of full columns that lie far from 0.
    """
    data = shifted(data, offsets(data, settings))
    size = float(largest_margins(data, settings.set).mean()) if data.size else 0.0
    classes = settings.loss_function.classifies or settings.loss_function.least_target == 0
    unit = 1.0 if classes else float(data.targets.std())
    return REACH * (unit or 1.0) / size if size > 0 else BLIND_RADIUS
