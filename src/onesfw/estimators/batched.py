"""d_t = (1 − ρ_t)(d_{t−1} + Δ̃_t) + ρ_t g_t from a planned number of samples, started anew at planned steps."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.capabilities import FULL_GRADIENT, ObjectiveLike, with_full_gradient
from onesfw.estimators.base import Estimator, OracleCounts, SampleSizes, StepInputs
from onesfw.estimators.corrections import Correction, Increment
from onesfw.estimators.sampling import block_size, mean_over, still_sound
from onesfw.trees import Array, HostArray, Tree


class State(NamedTuple):
    """What step t + 1 needs of the steps before it."""

    d: Tree
    baseline: Tree
    drawn: Array
    """Samples drawn so far: the number of the next one."""
    fault: Array
    """0 as long as every estimate was finite"""


class Batched(Estimator):
    """Means over `batches`: with ρ = 1 and no correction minibatches, with ρ = 0 SPIDER's and SCG++'s path integration.

    Where the plan says `anew`, d_t is the mean of so many gradients at x_t, or with `full` the full gradient. All
    samples of a step are drawn and used a block at a time, so that memory does not grow with the batch.

    Args:
        correction: the rule for Δ̃_t.
        batches: t ↦ sample sizes, an `onesfw.schedules.Batches`.
        path: whether ρ is 0 between new starts: only Δ̃ is then asked of the objective, and counted.
        full: whether a new start takes the full gradient of a finite sum.

    Example:
        >>> import onesfw as fw
        >>> from onesfw.estimators import Batched, NoChange
        >>> from onesfw.schedules import Batches
        >>> objective = fw.FiniteSum(lambda x, row: (x @ row) ** 2, [[1.0, 2.0], [3.0, 4.0]])
        >>> Batched(NoChange(), Batches("t", lambda t, T: (0, t))).counts(objective, steps=4)
        OracleCounts(samples=10, gradients=10, hvps=0)
    """

    correction: Correction
    batches: SampleSizes = eqx.field(static=True)
    path: bool = eqx.field(static=True, default=False)
    full: bool = eqx.field(static=True, default=False)

    @property
    def needs(self) -> Set[str]:
        return {*self.correction.needs, FULL_GRADIENT} if self.full else self.correction.needs

    @property
    def uses_horizon(self) -> bool:
        return self.batches.uses_horizon

    def init(self, x: Tree) -> State:
        zero = jnp.zeros((), trees.dtype_of(x))
        return State(trees.zeros_like(x), zero if self.correction.uses_baseline else (), jnp.int32(0), zero)

    def draws(self, objective: ObjectiveLike, key: Array, t: Array) -> tuple[Array, Array]:
        samples, places = jax.random.split(key)
        return samples, places

    def plan(self, t: HostArray, horizon: int) -> Tree:
        return self.batches(t, horizon)

    def update(self, objective: ObjectiveLike, state: State, inputs: StepInputs) -> State:
        x, previous, plan, rho = inputs.x, inputs.previous, inputs.plan, inputs.rho
        samples, places = inputs.draws
        zero = jnp.zeros((), rho.dtype)
        baseline = state.baseline if self.correction.uses_baseline else zero

        def increment(number: Array, before: Tree) -> Increment:
            a = zero
            if self.correction.uses_place:
                a = jax.random.uniform(jax.random.fold_in(places, number)).astype(rho.dtype)
            return self.correction(objective, objective.draw(samples, number), a, x, before, baseline)

        def mean(before: Tree, count: Array) -> Increment:
            return mean_over(lambda number: increment(number, before), state.drawn, count, block_size(x))

        def anew(_: None) -> tuple[Tree, Array]:
            if self.full:
                return with_full_gradient(objective).full_value_and_gradient(x)[1], baseline
            start = mean(x, plan.anew)
            return start.gradient, start.value

        def onwards(_: None) -> tuple[Tree, Array]:
            mine = mean(previous, plan.batch)
            if self.path:
                return trees.add(state.d, mine.change), mine.value
            d = jax.tree.map(
                lambda old, change, gradient: (1 - rho) * (old + change) + rho * gradient,
                state.d,
                mine.change,
                mine.gradient,
            )
            return d, mine.value

        d, value = lax.cond(plan.anew > 0, anew, onwards, None)
        used = jnp.where(plan.anew > 0, 0 if self.full else plan.anew, plan.batch)
        drawn = state.drawn + used
        if self.correction.uses_baseline:
            share = used.astype(rho.dtype) / jnp.maximum(drawn, 1).astype(rho.dtype)
            baseline = baseline + share * (value.astype(rho.dtype) - baseline)
        kept = baseline if self.correction.uses_baseline else ()
        return State(d, kept, drawn, still_sound(state.fault, d))

    def counts(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> OracleCounts:
        """A gradient for each sample of a new start (n for a full one), else what the correction says.

        The first step has no x_{t−1}: one gradient for each of its samples.
        """
        totals = self.batches.totals(steps, steps if horizon is None else horizon)
        anew = with_full_gradient(objective).n * totals.starts if self.full else totals.anew
        gradients, hvps = (
            self.correction.change_cost if self.path else (self.correction.gradients, self.correction.hvps)
        )
        first = self.batches.totals(min(steps, 1), steps if horizon is None else horizon).batch
        later = totals.batch - first
        return OracleCounts(anew + totals.batch, anew + first + later * gradients, later * hvps)

    def drawn(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> int:
        totals = self.batches.totals(steps, steps if horizon is None else horizon)
        return totals.batch if self.full else totals.anew + totals.batch
