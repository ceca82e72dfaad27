"""The sets of the sparse engine by name: the kernel of each, its norm and its support function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onesfw.arguments import choose
from onesfw.linear import cube, euclidean, one_hot
from onesfw.trees import Function, HostArray


@dataclass(frozen=True)
class Constraint:
    """A set {x : norm(x) ≤ r, and more}."""

    name: str
    formula: str
    shape: int
    """Which of the one-hot sets, or −1."""
    least: Callable[[HostArray], float]
    """min ⟨d, v⟩ over the set with r = 1."""
    norm: Callable[[HostArray], float]
    kernel: Function
    """The compiled loop."""
    signed: bool = True
    """Whether entries may be negative."""

    @property
    def one_hot(self) -> bool:
        """Whether vertices have one nonzero."""
        return self.shape >= 0


CLASSES = {
    "L1Ball": "l1",
    "L2Ball": "l2",
    "LInfBall": "linf",
    "Simplex": "simplex",
    "SubSimplex": "nonnegative_l1",
}
"""The sets of `onesfw.sets` that a linear model can be constrained to, by the words for them."""


def constraint_name(word: object) -> str:
    """The word for a set, from itself or from its class in `onesfw.sets`: "l1" and "L1Ball" are the same."""
    name = CLASSES.get(word, word) if isinstance(word, str) else word
    choose(name, CONSTRAINTS, "constraint")
    return str(name)


def sum_of_sizes(x: HostArray) -> float:
    """‖x‖₁."""
    return float(np.abs(x).sum())


def euclidean_norm(x: HostArray) -> float:
    """‖x‖₂."""
    return float(np.linalg.norm(x))


CONSTRAINTS: dict[str, Constraint] = {
    constraint.name: constraint
    for constraint in (
        Constraint(
            "l1",
            "‖x‖₁ ≤ r",
            one_hot.L1,
            lambda d: -float(np.abs(d).max()),
            sum_of_sizes,
            lambda *given: one_hot.learn(*given),
        ),
        Constraint(
            "l2", "‖x‖₂ ≤ r", -1, lambda d: -euclidean_norm(d), euclidean_norm, lambda *given: euclidean.learn(*given)
        ),
        Constraint(
            "linf",
            "|x_i| ≤ r",
            -1,
            lambda d: -sum_of_sizes(d),
            lambda x: float(np.abs(x).max()),
            lambda *given: cube.learn(*given),
        ),
        Constraint(
            "simplex",
            "x ≥ 0, Σx = r",
            one_hot.SIMPLEX,
            lambda d: float(d.min()),
            sum_of_sizes,
            lambda *given: one_hot.learn(*given),
            signed=False,
        ),
        Constraint(
            "nonnegative_l1",
            "x ≥ 0, Σx ≤ r",
            one_hot.NONNEGATIVE_L1,
            lambda d: min(float(d.min()), 0.0),
            sum_of_sizes,
            lambda *given: one_hot.learn(*given),
            signed=False,
        ),
    )
}
