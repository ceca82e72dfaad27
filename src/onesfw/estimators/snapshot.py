"""d_t = ∇F(w) + mean of ∇F̃(x_t; z) − ∇F̃(w; z): variance reduction by a snapshot w of an earlier iterate."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.capabilities import FULL_GRADIENT, OBLIVIOUS, ObjectiveLike, SurrogateLike, with_full_gradient
from onesfw.estimators.base import Estimator, OracleCounts, SampleSizes, StepInputs
from onesfw.estimators.sampling import block_size, mean_over, still_sound
from onesfw.trees import Array, HostArray, Tree


class State(NamedTuple):
    """The estimate, the snapshot w with its gradient, and the number of the next sample."""

    d: Tree
    anchor: Tree
    level: Tree
    drawn: Array
    fault: Array
    """0 as long as every estimate was finite"""


class Snapshot(Estimator):
    """The estimator of SVRF, STORC and SVFW (Johnson and Zhang 2013).

    Where the plan says `anew`, w = x_t, and its gradient is a pass over all rows, or with `full=False` a mean over so
    many samples. At such a step the differences vanish, and no sample is drawn for them.

    Args:
        batches: t ↦ sample sizes, an `onesfw.schedules.Batches`.
        full: whether a snapshot takes the full gradient of a finite sum.

    Example:
        >>> from onesfw.estimators import Snapshot
        >>> from onesfw.schedules import Batches
        >>> sizes = Batches("8, 2", lambda t, T: ((t == 1) * 8, (t > 1) * 2))
        >>> Snapshot(sizes, full=False).counts(None, steps=5)
        OracleCounts(samples=16, gradients=24, hvps=0)
    """

    batches: SampleSizes = eqx.field(static=True)
    full: bool = eqx.field(static=True, default=True)

    @property
    def needs(self) -> Set[str]:
        return {OBLIVIOUS, FULL_GRADIENT} if self.full else {OBLIVIOUS}

    @property
    def uses_horizon(self) -> bool:
        return self.batches.uses_horizon

    def init(self, x: Tree) -> State:
        zero = trees.zeros_like(x)
        return State(zero, x, zero, jnp.int32(0), jnp.zeros((), trees.dtype_of(x)))

    def draws(self, objective: ObjectiveLike, key: Array, t: Array) -> Array:
        return jax.random.split(key)[0]

    def plan(self, t: HostArray, horizon: int) -> Tree:
        return self.batches(t, horizon)

    def update(self, objective: ObjectiveLike, state: State, inputs: StepInputs) -> State:
        x, plan = inputs.x, inputs.plan
        zero = jnp.zeros((), inputs.rho.dtype)

        def surrogate(number: Array, point: Tree) -> SurrogateLike:
            return objective.at(objective.draw(inputs.draws, number), point, zero)

        def take(_: None) -> tuple[Tree, Tree]:
            if self.full:
                return x, with_full_gradient(objective).full_value_and_gradient(x)[1]
            return x, mean_over(lambda s: surrogate(s, x).gradient(x), state.drawn, plan.anew, block_size(x))

        anchor, level = lax.cond(plan.anew > 0, take, lambda _: (state.anchor, state.level), None)
        drawn = state.drawn if self.full else state.drawn + plan.anew

        def difference(number: Array) -> Tree:
            h = surrogate(number, x)
            return trees.subtract(h.gradient(x), h.gradient(anchor))

        change = mean_over(difference, drawn, plan.batch, block_size(x))
        d = trees.add(level, change)
        return State(d, anchor, level, drawn + plan.batch, still_sound(state.fault, d))

    def counts(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> OracleCounts:
        """A snapshot counts its own samples (n for a full one), every other sample two gradients."""
        totals = self.batches.totals(steps, steps if horizon is None else horizon)
        anew = with_full_gradient(objective).n * totals.starts if self.full else totals.anew
        return OracleCounts(anew + totals.batch, anew + 2 * totals.batch, 0)

    def drawn(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> int:
        totals = self.batches.totals(steps, steps if horizon is None else horizon)
        return totals.batch if self.full else totals.anew + totals.batch
