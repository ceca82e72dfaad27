"""A ready problem: an objective, a set, and what is known about the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.algorithms import MAXIMISED, Algorithm, one_sfw
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet


@dataclass(frozen=True)
class Optimum:
    """The best value over K, a point that attains it, and a bound on the error."""

    x: np.ndarray
    value: float
    error: float
    """A bound on |F(x) − F*|: the Frank-Wolfe gap for convex F, the solver's bound for global ones."""


@dataclass(frozen=True, eq=False)
class Problem:
    """min (or max) of F over K, pinned to the last digit: the same instance on every machine."""

    name: str
    summary: str
    """One line for listings."""
    objective: Objective
    constraint: ConvexSet
    setting: str = "convex"
    """The setting of `one_sfw` that serves it; `dr_submodular` is maximised, the others are minimised."""
    value: Callable[[np.ndarray], Any] | None = None
    """F(x) exactly, in float64 NumPy; an array of points, one in each row, gives an array of values."""
    gradient: Callable[[np.ndarray], np.ndarray] | None = None
    """∇F(x) exactly, in float64 NumPy; rows of points give rows of gradients."""
    solve: Callable[[], Optimum] | None = None
    """Finds the optimum to high accuracy. Called by `optimum`, once per process."""

    @property
    def sense(self) -> str:
        """`minimize` or `maximize`."""
        return "maximize" if self.setting in MAXIMISED else "minimize"

    def algorithm(self) -> Algorithm:
        """The default algorithm."""
        return one_sfw(self.setting)

    def optimum(self) -> Optimum:
        """F*, a point that attains it and a bound on the error; found at the first call, then remembered."""
        return self._optimum

    @cached_property
    def _optimum(self) -> Optimum:
        if self.solve is None:
            raise ValueError(f"the optimum of {self.name!r} is not known; measure gap(x) instead of a suboptimality")
        return self.solve()

    def gap(self, x: np.ndarray) -> Any:
        """max over v in K of ⟨∇F(x), x − v⟩, or of ⟨∇F(x), v − x⟩ where F is maximised, exactly in float64.

        An array of points, one in each row, gives an array of gaps.
        """
        if self.gradient is None:
            raise ValueError(f"{self.name!r} has no exact gradient, and so no exact gap")
        x = np.asarray(x, np.float64)
        downhill = self.gradient(x) if self.sense == "minimize" else -self.gradient(x)
        with jax.enable_x64(True):
            vertices = np.asarray(self._oracle(jnp.asarray(np.atleast_2d(downhill))))
        gaps = np.sum(downhill * (x - vertices), -1)
        return float(gaps[0]) if x.ndim == 1 else gaps

    @cached_property
    def _oracle(self) -> Callable[[jax.Array], jax.Array]:
        return jax.jit(jax.vmap(self.constraint.lmo))
