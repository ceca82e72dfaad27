"""What an estimator may need of an objective: its interface, the names of its capabilities, and the remedies.

The rooms of the formula never import one another: estimators know objectives by these protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Protocol, cast

from onesfw.trees import Array, Tree

UNBIASED = "unbiased gradients from one sample, the score included where p depends on x"
OBLIVIOUS = "samples whose distribution does not depend on x"
DENSITY = "a log-density of the samples"
FULL_GRADIENT = "a full gradient"
ROWS = "numbered rows"

REMEDIES = {
    UNBIASED: "write the objective as NonOblivious with log_prob=, or, where z = T(x, ε), as Expectation of "
    "F̃(x; T(x, ε))",
    OBLIVIOUS: "write the objective as Expectation or FiniteSum, or choose a method whose samples may depend on x, "
    "such as one_sfw, momentum_sfw, minibatch_sfw or scg_plus_plus",
    DENSITY: "write the objective as NonOblivious with log_prob=",
    ROWS: "write the objective as FiniteSum",
    FULL_GRADIENT: "write the objective as FiniteSum; a deterministic function is a FiniteSum over one row; for a set "
    "function take one with a closed form, Coverage or FacilityLocation, or a method that samples, such as one_sfw",
}


class SurrogateLike(Protocol):
    """h, a function of y with E ∇h(y) = ∇F(y), made from one sample; `onesfw.objectives.Surrogate` is one."""

    @property
    def gradient(self) -> Callable[[Tree], Tree]:
        """y ↦ ∇h(y)"""

    @property
    def hvp(self) -> Callable[[Tree, Tree], tuple[Tree, Tree]]:
        """(y, u) ↦ (∇h(y), ∇²h(y) u)"""

    @property
    def integrand(self) -> Callable[[Tree], Array]:
        """F̃(·; z) itself"""

    @property
    def log_prob(self) -> Callable[[Tree], Array] | None:
        """log p(z; ·), for objectives whose samples depend on x"""


class ObjectiveLike(Protocol):
    """What every objective has; those of `onesfw.objectives` do."""

    @property
    def offers(self) -> Set[str]:
        """Which of the names above it has."""

    def draw(self, key: Array, number: Array) -> Tree:
        """The part of sample `number` that does not depend on x."""

    def at(self, draw: Tree, point: Tree, baseline: Array) -> SurrogateLike:
        """The surrogate h that `draw` gives when sampled at `point`."""


class FullGradientLike(ObjectiveLike, Protocol):
    """What an objective that offers FULL_GRADIENT has besides."""

    @property
    def n(self) -> int:
        """How many samples a full pass counts."""

    def full_value_and_gradient(self, x: Tree) -> tuple[Array, Tree]:
        """F(x) and ∇F(x), from a full pass."""


class DensityLike(ObjectiveLike, Protocol):
    """What an objective that offers DENSITY has besides."""

    @property
    def baseline(self) -> bool:
        """Whether a running mean of the values is taken off F̃ before it meets the score."""


def with_full_gradient(objective: ObjectiveLike) -> FullGradientLike:
    """An objective whose FULL_GRADIENT was checked when the run was built."""
    return cast(FullGradientLike, objective)


def with_density(objective: ObjectiveLike) -> DensityLike:
    """An objective whose DENSITY was checked when the run was built."""
    return cast(DensityLike, objective)


def check(needs: Set[str], offers: Set[str], algorithm: str, objective: str) -> None:
    """Raise TypeError where an objective lacks what an algorithm needs; the message names both and the remedy."""
    for need in sorted(needs - offers):
        raise TypeError(f"{algorithm} needs {need}, which objective {objective} does not offer: {REMEDIES[need]}")
