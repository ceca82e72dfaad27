"""d_t = ∇F(x_t), by a pass over all rows of a finite sum: the reference without noise."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import jax.numpy as jnp

from onesfw import trees
from onesfw.capabilities import FULL_GRADIENT, ObjectiveLike, with_full_gradient
from onesfw.estimators.base import Estimator, OracleCounts, StepInputs
from onesfw.estimators.sampling import still_sound
from onesfw.trees import Array, Tree


class State(NamedTuple):
    """The gradient at the last iterate, and 0 as long as every gradient so far was finite."""

    d: Tree
    fault: Array


class FullGradient(Estimator):
    """The exact gradient; every step counts n samples and n gradients.

    Example:
        >>> import onesfw as fw
        >>> from onesfw.estimators import FullGradient
        >>> objective = fw.FiniteSum(lambda x, row: (x @ row) ** 2, [[1.0, 2.0], [3.0, 4.0]])
        >>> FullGradient().counts(objective, steps=10)
        OracleCounts(samples=20, gradients=20, hvps=0)
    """

    @property
    def needs(self) -> Set[str]:
        return {FULL_GRADIENT}

    def init(self, x: Tree) -> State:
        return State(trees.zeros_like(x), jnp.zeros((), trees.dtype_of(x)))

    def draws(self, objective: ObjectiveLike, key: Array, t: Array) -> Tree:
        return ()

    def update(self, objective: ObjectiveLike, state: Tree, inputs: StepInputs) -> State:
        _, gradient = with_full_gradient(objective).full_value_and_gradient(inputs.x)
        return State(gradient, still_sound(state.fault, gradient))

    def counts(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> OracleCounts:
        n = with_full_gradient(objective).n
        return OracleCounts(n * steps, n * steps, 0)

    def drawn(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> int:
        return 0
