"""What an estimator is to the library: d_t, from the objective, x_t, x_{t−1} and step t's randomness."""

from __future__ import annotations

import abc
from collections.abc import Set
from typing import Any, ClassVar, NamedTuple, Protocol

import equinox as eqx
import numpy as np

from onesfw.trees import Array, Tree


class OracleCounts(NamedTuple):
    """How often a method has asked the objective, counted as its listing in the literature asks."""

    samples: int
    gradients: int
    hvps: int


class SizeTotals(Protocol):
    """Sums of sample sizes over the first steps of a run."""

    @property
    def anew(self) -> int:
        """Samples of estimates that start anew."""

    @property
    def batch(self) -> int:
        """Samples of the steps' own averages."""

    @property
    def starts(self) -> int:
        """Steps at which an estimate starts anew."""


class SampleSizes(Protocol):
    """t ↦ sample sizes on the host, as `onesfw.schedules.Batches` gives them."""

    @property
    def uses_horizon(self) -> bool:
        """Whether the sizes depend on T."""

    def __call__(self, t: np.ndarray, horizon: int) -> Tree:
        """Arrays `anew` and `batch`: the sizes at steps `t` of a run of `horizon` steps."""

    def totals(self, steps: int, horizon: int) -> SizeTotals:
        """The sums over steps 1, …, `steps`."""


class Now(NamedTuple):
    """What the loop hands an estimator at step t. At t = 1 `previous` is x itself and ρ_1 = 1."""

    x: Tree
    previous: Tree
    """x_{t−1}"""
    draws: Tree
    """This step's randomness, as `draws` made it."""
    plan: Tree
    """What the host told this step beforehand, as `plan` made it."""
    rho: Array
    t: Array


class Estimator(eqx.Module):
    """d_t = estimator(F, x_t, x_{t−1}, z_t, ρ_t).

    `update` runs inside the compiled loop; whatever does not depend on x belongs in `draws`, which is computed for a
    block of steps at once.
    """

    cheap: ClassVar[bool] = True
    """Whether a step takes so little time that the loop is compiled several steps at a time."""

    @property
    @abc.abstractmethod
    def needs(self) -> Set[str]:
        """Which of the names in `capabilities` the objective must offer."""

    @abc.abstractmethod
    def init(self, x: Tree) -> Tree:
        """The state before the first step; it has a field `d`."""

    @abc.abstractmethod
    def draws(self, objective: Any, key: Array, t: Array) -> Tree:
        """Step t's randomness: a pure function of (key, t)."""

    @abc.abstractmethod
    def update(self, objective: Any, state: Tree, now: Now) -> Tree:
        """The state after step t, whose field `d` is d_t."""

    @abc.abstractmethod
    def counts(self, objective: Any, steps: int, horizon: int | None = None) -> OracleCounts:
        """Oracle calls of the first `steps` steps of a run of `horizon` steps, `steps` themselves where it is None."""

    def drawn(self, objective: Any, steps: int, horizon: int | None = None) -> int:
        """How many numbered samples those steps draw; passes over all rows draw none."""
        return self.counts(objective, steps, horizon).samples

    def plan(self, t: np.ndarray, horizon: int) -> Tree:
        """What the host tells steps `t` beforehand, such as sample sizes: arrays of integers, an entry for each."""
        return ()

    @property
    def uses_horizon(self) -> bool:
        """Whether the plan depends on T, so that a run cannot be prolonged."""
        return False

    def direction(self, state: Tree) -> Tree:
        """What the step is handed: d_t, unless a method scales it by what it has seen."""
        return state.d
