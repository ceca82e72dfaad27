"""d_t = g(x_t; z_t) + (1 − a_t)(d_{t−1} − g(x_{t−1}; z_t)), a_t and the step size set by the gradients seen."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from onesfw import trees
from onesfw.capabilities import OBLIVIOUS, ObjectiveLike
from onesfw.estimators.base import Estimator, OracleCounts, StepInputs
from onesfw.estimators.sampling import batch_mean, draw_batch
from onesfw.trees import Array, Tree


class State(NamedTuple):
    """The estimate, the step size η_t, and Σ ‖g(x_s; z_s)‖² over the steps so far."""

    d: Tree
    size: Array
    total: Array


class Storm(Estimator):
    """STORM (Cutkosky and Orabona 2019): η_t = k/(w + Σ_{s≤t} G_s²)^(1/3), G_s = ‖g(x_s; z_s)‖, and a_{t+1} = c η_t².

    The correction is that of 1-SFW. `direction` is η_t d_t.

    Args:
        k: scales every step.
        w: keeps the first steps short.
        c: sets how fast old gradients fade.
        batch: samples averaged in each step.

    Example:
        >>> from onesfw.estimators import Storm
        >>> Storm(k=0.1, w=1.0, c=10.0).counts(None, steps=100)
        OracleCounts(samples=100, gradients=199, hvps=0)
    """

    k: float = eqx.field(static=True)
    w: float = eqx.field(static=True)
    c: float = eqx.field(static=True)
    batch: int = eqx.field(static=True, default=1)

    @property
    def needs(self) -> Set[str]:
        return {OBLIVIOUS}

    def init(self, x: Tree) -> State:
        zero = jnp.zeros((), trees.dtype_of(x))
        return State(trees.zeros_like(x), zero, zero)

    def draws(self, objective: ObjectiveLike, key: Array, t: Array) -> Tree:
        return draw_batch(objective, jax.random.split(key)[0], t, self.batch)

    def update(self, objective: ObjectiveLike, state: State, inputs: StepInputs) -> State:
        x, previous, dtype = inputs.x, inputs.previous, inputs.rho.dtype
        zero = jnp.zeros((), dtype)

        def pair(draw: Tree, _: Tree) -> tuple[Tree, Tree]:
            h = objective.at(draw, x, zero)
            return h.gradient(x), h.gradient(previous)

        here, there = batch_mean(pair, objective, inputs.draws, (), inputs.t, self.batch, x)
        a = jnp.where(inputs.t == 1, 1.0, jnp.minimum(self.c * state.size**2, 1.0)).astype(dtype)
        d = jax.tree.map(lambda g, old, h: g + (1 - a) * (old - h), here, state.d, there)
        total = state.total + trees.squared_norm(here)
        return State(d, self.k / jnp.cbrt(self.w + total), total)

    def direction(self, state: State) -> Tree:
        return trees.scale(state.size, state.d)

    def counts(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> OracleCounts:
        """The first step needs one gradient per sample, the others two."""
        return OracleCounts(self.batch * steps, self.batch * max(2 * steps - 1, 0), 0)
