"""Equal budgets: where a method is looked at on its way to so many samples, or so many gradient evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np

from onesfw.algorithms import Algorithm

PER_DECADE = 8  # points of a curve
DEPTH = 3  # decades of a curve
ENDS = 5  # budgets of a method whose schedules depend on T, half a decade apart
BY_GRADIENTS = ("online_fw",)  # each round costs more gradients than the one before: equal samples would flatter it


def steps_for(algorithm: Algorithm, objective: Any, budget: int) -> int:
    """The largest T within `budget` samples; `online_fw` gets as many gradient evaluations as one_sfw, 2·budget."""
    if algorithm.name.split("[")[0] in BY_GRADIENTS:
        return algorithm.steps_for(objective, gradients=2 * budget)
    return algorithm.steps_for(objective, samples=budget)


def anytime(algorithm: Algorithm, objective: Any) -> bool:
    """Whether the first steps are the same however many follow, so that one run passes through all budgets."""
    horizon = algorithm.rho.uses_horizon or algorithm.eta.uses_horizon or algorithm.estimator(objective).uses_horizon
    return not horizon and algorithm.output != "average"


def along(algorithm: Algorithm, objective: Any, budget: int) -> list[int]:
    """The steps after which an anytime run is looked at: evenly spaced budgets on a log axis, the last one whole."""
    marks = []
    for count in np.geomspace(max(1.0, budget / 10**DEPTH), budget, PER_DECADE * DEPTH + 1):
        try:
            marks.append(steps_for(algorithm, objective, max(1, round(count))))
        except ValueError:  # not one step fits yet
            continue
    if not marks:
        steps_for(algorithm, objective, budget)  # raises the sentence that says what one step takes
    return sorted(set(marks))


def ends(algorithm: Algorithm, objective: Any, budget: int, points: int = ENDS) -> list[int]:
    """The lengths of separate runs, one for each budget over the last two decades."""
    lengths = []
    for count in np.geomspace(max(1.0, budget / 100), budget, points):
        try:
            lengths.append(steps_for(algorithm, objective, max(1, round(count))))
        except ValueError:
            continue
    if not lengths:
        steps_for(algorithm, objective, budget)
    return sorted(set(lengths))
