"""What an estimator is to the library: d_t, from the objective, x_t, x_{t−1} and step t's randomness."""

from __future__ import annotations

import abc
from collections.abc import Set
from typing import ClassVar, NamedTuple, Protocol

import equinox as eqx

from onesfw.capabilities import ObjectiveLike
from onesfw.trees import Array, HostArray, Tree


class OracleCounts(NamedTuple):
    """How often a method has asked the objective, counted as its listing in the literature asks.

    Args:
        samples: draws of z; a full pass over n rows counts n.
        gradients: evaluations of ∇F̃ or ∇h.
        hvps: Hessian-vector products.

    Example:
        >>> import onesfw as fw
        >>> objective = fw.FiniteSum(lambda x, row: (x @ row) ** 2, [[1.0, 2.0], [3.0, 4.0]])
        >>> fw.one_sfw(schedule="paper").counts(objective, steps=1_000)
        OracleCounts(samples=1000, gradients=1999, hvps=0)
    """

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

    def __call__(self, t: HostArray, horizon: int) -> Tree:
        """Arrays `anew` and `batch`: the sizes at steps `t` of a run of `horizon` steps."""

    def totals(self, steps: int, horizon: int) -> SizeTotals:
        """The sums over steps 1, …, `steps`."""


class StepInputs(NamedTuple):
    """What the compiled loop hands an estimator at step t.

    Args:
        x: x_t.
        previous: x_{t−1}; x_1 itself at t = 1.
        draws: this step's randomness, as `Estimator.draws` made it.
        plan: this step's sample sizes, as `Estimator.plan` computed them on the host.
        rho: ρ_t; 1 at t = 1.
        t: the number of the step, from 1 on.

    Example:
        >>> import jax.numpy as jnp
        >>> from onesfw.estimators import StepInputs
        >>> inputs = StepInputs(jnp.ones(2), jnp.zeros(2), (), (), jnp.float32(0.5), jnp.int32(3))
        >>> (inputs.x - inputs.previous).tolist()
        [1.0, 1.0]
    """

    x: Tree
    previous: Tree
    draws: Tree
    plan: Tree
    rho: Array
    t: Array


class Estimator(eqx.Module):
    """d_t = estimator(F, x_t, x_{t−1}, z_t, ρ_t): what a new estimator subclasses.

    `update` runs inside the compiled loop; whatever does not depend on x belongs in `draws`, which is computed for a
    block of steps at once.

    Example:
        >>> from onesfw.estimators import Estimator, OneSample, SameSample
        >>> estimator: Estimator = OneSample(SameSample())
        >>> sorted(estimator.needs)
        ['samples whose distribution does not depend on x']
    """

    cheap: ClassVar[bool] = True
    """Whether a step takes so little time that the loop is compiled several steps at a time."""

    def for_steps(self, steps: int, x: Tree) -> Estimator:
        """The estimator for a run of so many steps in x's dtype: another one where long runs need more care."""
        return self

    @property
    @abc.abstractmethod
    def needs(self) -> Set[str]:
        """Which of the names in `capabilities` the objective must offer."""

    @abc.abstractmethod
    def init(self, x: Tree) -> Tree:
        """The state before the first step; it has a field `d`."""

    @abc.abstractmethod
    def draws(self, objective: ObjectiveLike, key: Array, t: Array) -> Tree:
        """Step t's randomness: a pure function of (key, t)."""

    @abc.abstractmethod
    def update(self, objective: ObjectiveLike, state: Tree, inputs: StepInputs) -> Tree:
        """The state after step t, whose field `d` is d_t."""

    @abc.abstractmethod
    def counts(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> OracleCounts:
        """Oracle calls of the first `steps` steps of a run of `horizon` steps, `steps` themselves where it is None."""

    def drawn(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> int:
        """How many numbered samples those steps draw; passes over all rows draw none."""
        return self.counts(objective, steps, horizon).samples

    def plan(self, t: HostArray, horizon: int) -> Tree:
        """What the host computes for steps `t` beforehand, such as sample sizes: arrays of integers, one for each."""
        return ()

    @property
    def uses_horizon(self) -> bool:
        """Whether the plan depends on T, so that a run cannot be prolonged."""
        return False

    def direction(self, state: Tree) -> Tree:
        """What the step is handed: d_t, unless a method scales it by what it has seen."""
        return state.d

    def constant(self, state: Tree) -> Array:
        """c, which says by how much the gradient's drift exceeds its noise: d_t averages over about t/c samples."""
        raise NotImplementedError(f"{type(self).__name__} does not observe the drift of its gradients")

    def pace(self, state: Tree, weight: Array) -> Array:
        """η_t from the schedule's, for methods whose steps follow what they have seen up to step t − 1."""
        return weight
