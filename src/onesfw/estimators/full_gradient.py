"""d_t = ∇F(x_t), by a pass over all rows of a finite sum: the reference without noise."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, NamedTuple

import jax.numpy as jnp

from onesfw import trees
from onesfw.capabilities import FULL_GRADIENT
from onesfw.estimators.base import Estimator, Now, OracleCounts
from onesfw.estimators.sampling import still_sound
from onesfw.trees import Array, Tree


class State(NamedTuple):
    """The gradient at the last iterate, and 0 as long as every gradient so far was finite."""

    d: Tree
    fault: Array


class FullGradient(Estimator):
    """The exact gradient; every step counts n samples and n gradients."""

    @property
    def needs(self) -> Set[str]:
        return {FULL_GRADIENT}

    def init(self, x: Tree) -> State:
        return State(trees.zeros_like(x), jnp.zeros((), trees.dtype_of(x)))

    def draws(self, objective: Any, key: Array, t: Array) -> Tree:
        return ()

    def update(self, objective: Any, state: Tree, now: Now) -> State:
        _, gradient = objective.full_value_and_gradient(now.x)
        return State(gradient, still_sound(state.fault, gradient))

    def counts(self, objective: Any, steps: int, horizon: int | None = None) -> OracleCounts:
        return OracleCounts(objective.n * steps, objective.n * steps, 0)

    def drawn(self, objective: Any, steps: int, horizon: int | None = None) -> int:
        return 0
