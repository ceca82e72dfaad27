"""The sets of the sparse engine by name: the kernel of each, its norm and its support function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onesfw.linear import cube, euclidean, one_hot


@dataclass(frozen=True)
class Constraint:
    """A set {x : norm(x) ≤ r, and more}."""

    name: str
    formula: str
    shape: int
    """Which of the one-hot sets, or −1."""
    least: Callable[[np.ndarray], float]
    """min ⟨d, v⟩ over the set with r = 1."""
    norm: Callable[[np.ndarray], float]
    signed: bool = True
    """Whether entries may be negative."""

    @property
    def one_hot(self) -> bool:
        """Whether vertices have one nonzero."""
        return self.shape >= 0


def sum_of_sizes(x: np.ndarray) -> float:
    """‖x‖₁."""
    return float(np.abs(x).sum())


CONSTRAINTS: dict[str, Constraint] = {
    constraint.name: constraint
    for constraint in (
        Constraint("l1", "‖x‖₁ ≤ r", one_hot.L1, lambda d: -float(np.abs(d).max()), sum_of_sizes),
        Constraint("l2", "‖x‖₂ ≤ r", -1, lambda d: -float(np.linalg.norm(d)), lambda x: float(np.linalg.norm(x))),
        Constraint("linf", "|x_i| ≤ r", -1, lambda d: -sum_of_sizes(d), lambda x: float(np.abs(x).max())),
        Constraint("simplex", "x ≥ 0, Σx = r", one_hot.SIMPLEX, lambda d: float(d.min()), sum_of_sizes, signed=False),
        Constraint(
            "nonnegative_l1",
            "x ≥ 0, Σx ≤ r",
            one_hot.NONNEGATIVE_L1,
            lambda d: min(float(d.min()), 0.0),
            sum_of_sizes,
            signed=False,
        ),
    )
}
DENSE_KERNELS = {"l2": euclidean.learn, "linf": cube.learn}
