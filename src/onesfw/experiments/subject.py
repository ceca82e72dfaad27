"""What methods are compared on: an objective, a set, and how far from the answer a point is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from onesfw import trees
from onesfw.algorithms import MAXIMISED
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet
from onesfw.sets.base import known
from onesfw.trees import Tree
from onesfw.zoo.base import Problem

ROWS = 1000  # points whose values or gradients are computed together


@dataclass(frozen=True, eq=False)
class Subject:
    """min (or max) of F over K; with `problem`, F, its gradient and perhaps F* are known exactly."""

    name: str
    summary: str
    objective: Objective
    constraint: ConvexSet
    setting: str
    sense: str = "minimize"
    x0: Tree | None = None
    problem: Problem | None = None

    @staticmethod
    def of(problem: Problem) -> Subject:
        """The subject that a problem of the zoo is."""
        return Subject(
            problem.name, problem.summary, problem.objective, problem.constraint, problem.setting, problem.sense, None,
            problem,
        )  # fmt: skip

    @property
    def exact(self) -> bool:
        """Whether F and ∇F are known in float64; the library's own evaluation serves where they are not."""
        return self.problem is not None and self.problem.value is not None and self.problem.gradient is not None

    def start(self) -> Tree:
        """x_1 in float64, for x0's dtype is the run's: the errors compared here reach below float32's resolution."""
        with jax.enable_x64(True):
            start: Tree
            if self.x0 is not None:
                start = self.x0
            else:
                shapes = known(self.constraint, None)
                like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, np.float64), shapes)
                greedy = self.setting in MAXIMISED
                start = trees.zeros_like(like) if greedy else self.constraint.start(like)
            return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), start)

    def optimum(self) -> float | None:
        """F*, or None where nobody knows it."""
        if self.problem is None or self.problem.solve is None:
            return None
        return float(self.problem.optimum().value)

    def value(self, points: np.ndarray) -> np.ndarray:
        """F at points along the last axis."""
        assert self.problem is not None
        assert self.problem.value is not None
        return in_slices(self.problem.value, points, ())

    def gradient(self, points: np.ndarray) -> np.ndarray:
        """∇F at points along the last axis."""
        assert self.problem is not None
        assert self.problem.gradient is not None
        return in_slices(self.problem.gradient, points, points.shape[-1:])

    def gap(self, points: np.ndarray) -> np.ndarray:
        """max over v in K of ⟨±∇F(x), x − v⟩ at points along the last axis."""
        assert self.problem is not None
        return in_slices(self.problem.gap, points, ())


def in_slices(function: Callable[[np.ndarray], Any], points: np.ndarray, ending: tuple[int, ...]) -> np.ndarray:
    """function(points) for points along the last axis, some at a time; the last slice is padded, not to recompile."""
    rows = np.asarray(points, np.float64).reshape(-1, points.shape[-1])
    count = len(rows)
    step = min(ROWS, 1 << max(0, (count - 1)).bit_length())
    padded = np.concatenate([rows, np.repeat(rows[:1], -count % step, 0)])
    parts = [np.asarray(function(padded[i : i + step])) for i in range(0, len(padded), step)]
    return np.concatenate(parts)[:count].reshape(*points.shape[:-1], *ending)


def flat(x: Tree) -> np.ndarray:
    """A point as one vector."""
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(x)])
