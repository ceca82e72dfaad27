"""A ready problem: an objective, a set, and what is known about the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onesfw.algorithms import Algorithm, one_sfw
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet


@dataclass(frozen=True)
class Problem:
    """min (or max) of F over K, pinned to the last digit: the same instance on every machine."""

    name: str
    summary: str
    """One line for listings."""
    objective: Objective
    constraint: ConvexSet
    setting: str = "convex"
    """The setting of `one_sfw` that serves it; `dr_submodular` is maximised, the others are minimised."""
    value: Callable[[np.ndarray], float] | None = None
    """F(x) exactly, in float64 NumPy."""
    gradient: Callable[[np.ndarray], np.ndarray] | None = None
    """∇F(x) exactly, in float64 NumPy."""
    solve: Callable[[], Any] | None = None
    """Finds the optimum to high accuracy: returns an `Optimum`. Called by `optimum`, once per process."""

    @property
    def sense(self) -> str:
        """`minimize` or `maximize`."""
        return "maximize" if self.setting == "dr_submodular" else "minimize"

    def algorithm(self) -> Algorithm:
        """The default algorithm."""
        return one_sfw(self.setting)


@dataclass(frozen=True)
class Optimum:
    """The best value over K, a point that attains it, and a bound on the error."""

    x: np.ndarray
    value: float
    error: float
    """A proven bound on |F(x) − F*|: the Frank-Wolfe gap for convex F, the solver's bound for global ones."""
