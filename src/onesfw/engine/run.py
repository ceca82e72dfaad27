"""A checked problem: everything a run needs but its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onesfw.algorithms import Algorithm
from onesfw.estimators import Estimator
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet
from onesfw.steps import Step
from onesfw.trees import Tree

Callback = Callable[[dict[str, Any], Tree], Any]


@dataclass(frozen=True)
class Run:
    """A checked problem: everything a run needs but its key."""

    objective: Objective
    constraint: ConvexSet
    algorithm: Algorithm
    estimator: Estimator
    step: Step
    """The algorithm's, fitted to the constraint."""
    x0: Tree
    """x_1"""
    inside: Tree
    """A member of K, for a run that ends before its first step."""
    steps: int
    sign: int
    """+1 minimises, −1 maximises: the only place where the two differ."""
    evaluate: Any = None
    pauses: Sequence[int] = ()
    """After which steps to evaluate."""
    gap_tol: float | None = None
    time_limit: float | None = None
    callbacks: Sequence[Callback] = ()
