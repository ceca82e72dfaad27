"""d_t = (1/t) Σ_{s≤t} ∇F̃(x_t; z_s): every past sample evaluated again at the present point."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from onesfw import trees
from onesfw.capabilities import OBLIVIOUS, ObjectiveLike
from onesfw.estimators.base import Estimator, OracleCounts, StepInputs
from onesfw.estimators.sampling import block_size, mean_over, still_sound
from onesfw.trees import Array, Tree


class State(NamedTuple):
    """The last estimate; past samples are drawn again from their numbers, not stored."""

    d: Tree
    fault: Array
    """0 as long as every estimate was finite"""


class RunningAverage(Estimator):
    """The gradient of the average of all losses so far (Hazan and Kale 2012).

    Args:
        batch: new samples in each step.
        memory: bounds the cost of a step: only the latest `memory` samples are averaged then, and the noise no longer
            falls below theirs; None for all.

    Example:
        >>> from onesfw.estimators import RunningAverage
        >>> RunningAverage().counts(None, steps=4)
        OracleCounts(samples=4, gradients=10, hvps=0)
    """

    batch: int = eqx.field(static=True, default=1)
    memory: int | None = eqx.field(static=True, default=None)

    @property
    def needs(self) -> Set[str]:
        return {OBLIVIOUS}

    def init(self, x: Tree) -> State:
        return State(trees.zeros_like(x), jnp.zeros((), trees.dtype_of(x)))

    def draws(self, objective: ObjectiveLike, key: Array, t: Array) -> Array:
        return jax.random.split(key)[0]

    def update(self, objective: ObjectiveLike, state: State, inputs: StepInputs) -> State:
        x, zero = inputs.x, jnp.zeros((), inputs.rho.dtype)
        seen = inputs.t * self.batch
        count = seen if self.memory is None else jnp.minimum(seen, self.memory)

        def gradient(number: Array) -> Tree:
            return objective.at(objective.draw(inputs.draws, number), x, zero).gradient(x)

        d = mean_over(gradient, seen - count, count, block_size(x))
        return State(d, still_sound(state.fault, d))

    def counts(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> OracleCounts:
        """Step t evaluates min(t · batch, memory) gradients, and draws `batch` samples."""
        filling = steps if self.memory is None else min(steps, self.memory // self.batch)
        gradients = self.batch * filling * (filling + 1) // 2
        if self.memory is not None:
            gradients += (steps - filling) * self.memory
        return OracleCounts(self.batch * steps, gradients, 0)
