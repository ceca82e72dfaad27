"""The paper's estimator: d_t = (1 − ρ_t)(d_{t−1} + Δ̃_t) + ρ_t g_t, from one sample (or a batch) a step."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from onesfw import trees
from onesfw.capabilities import ObjectiveLike
from onesfw.estimators.base import Estimator, OracleCounts, StepInputs
from onesfw.estimators.corrections import Correction, Increment
from onesfw.estimators.sampling import batch_mean, draw_batch
from onesfw.trees import Array, Tree

LARGEST_CONSTANT = 100.0  # of the adaptive ρ_t = c/(t + c − 2)


class Moments(NamedTuple):
    """Running means behind the adaptive ρ: m² of (t−1)²‖Δ̃_t‖², s² of ‖g_t − Δ̃_t − d_{t−1}‖²."""

    change: Array
    noise: Array


class State(NamedTuple):
    """What step t + 1 needs of the steps before it; what is not used is an empty tuple and costs nothing."""

    d: Tree
    baseline: Tree
    moments: Tree


class OneSample(Estimator):
    """Algorithms 1 and 2 of Zhang, Shen, Mokhtari, Hassani and Karbasi (2020), by the choice of the correction.

    With the correction `NoChange` it is the momentum of Mokhtari, Hassani and Karbasi (2018).

    Args:
        correction: the rule for Δ̃_t.
        batch: samples averaged in each step.
        adaptive: replaces ρ_t by c/(t + c − 2), where c balances the drift of the gradient against its noise as both
            have been observed up to step t − 1: a heuristic of this library.
        paced: replaces the step η_t = 1/t by a/(t + a − 1), a = c^(−1/2): where the gradient drifts more than it is
            noisy, steps are shorter. Goes with `adaptive`.

    Example:
        >>> from onesfw.estimators import OneSample, SameSample
        >>> OneSample(SameSample(), batch=4).counts(None, steps=100)
        OracleCounts(samples=400, gradients=796, hvps=0)
    """

    correction: Correction
    batch: int = eqx.field(static=True, default=1)
    adaptive: bool = eqx.field(static=True, default=False)
    paced: bool = eqx.field(static=True, default=False)

    @property
    def needs(self) -> Set[str]:
        return self.correction.needs

    def init(self, x: Tree) -> State:
        zero = jnp.zeros((), trees.dtype_of(x))
        return State(
            trees.zeros_like(x),
            zero if self.correction.uses_baseline else (),
            Moments(zero, zero) if self.adaptive else (),
        )

    def draws(self, objective: ObjectiveLike, key: Array, t: Array) -> tuple[Tree, Tree]:
        samples, places = jax.random.split(key)
        draw = draw_batch(objective, samples, t, self.batch)
        if not self.correction.uses_place:
            return draw, ()
        return draw, jax.random.uniform(jax.random.fold_in(places, t), (self.batch,))

    def update(self, objective: ObjectiveLike, state: State, inputs: StepInputs) -> State:
        rho, t = inputs.rho, inputs.t
        increment = self.increment(objective, inputs, state.baseline)
        moments, baseline = state.moments, state.baseline
        if self.adaptive:
            steps = t.astype(rho.dtype)
            rho = adaptive_rho(moments, steps)
            moments = observe(moments, increment, state.d, steps)
        if self.correction.uses_baseline:
            baseline = baseline + (increment.value.astype(rho.dtype) - baseline) / t.astype(rho.dtype)
        d = jax.tree.map(
            lambda old, change, gradient: (1 - rho) * (old + change) + rho * gradient,
            state.d,
            increment.change,
            increment.gradient,
        )
        return State(d, baseline, moments)

    def pace(self, state: State, weight: Array) -> Array:
        """a/(t + a − 1) from 1/t, which is aw/(1 + (a − 1)w) from w."""
        if not self.paced:
            return weight
        a = drift_constant(state.moments) ** -0.5
        return a * weight / (1 + (a - 1) * weight)

    def constant(self, state: State) -> Array:
        return drift_constant(state.moments)

    def sample(self, objective: ObjectiveLike, key: Array, number: Array) -> Tree:
        """The draw of that number, of those that `draws` takes for its steps."""
        return objective.draw(jax.random.split(key)[0], number)

    def increment(self, objective: ObjectiveLike, inputs: StepInputs, baseline: Tree) -> Increment:
        """The mean increment over the batch."""
        dtype = inputs.rho.dtype
        known = baseline if self.correction.uses_baseline else jnp.zeros((), dtype)

        draws, places = inputs.draws

        def one(draw: Tree, a: Tree) -> Increment:
            place = a.astype(dtype) if self.correction.uses_place else jnp.zeros((), dtype)
            return self.correction(objective, draw, place, inputs.x, inputs.previous, known)

        if self.batch == 1:
            return one(*jax.tree.map(lambda leaf: leaf[0], (draws, places)))
        return batch_mean(one, objective, draws, places, inputs.t, self.batch, inputs.x)

    def counts(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> OracleCounts:
        """The first step needs one gradient per sample, the others what the correction says."""
        later = max(steps - 1, 0)
        gradients = min(steps, 1) + later * self.correction.gradients
        return OracleCounts(self.batch * steps, self.batch * gradients, self.batch * later * self.correction.hvps)


def drift_constant(moments: Moments) -> Array:
    """c = (1 + √(1 + 4m²/s²))/2, at most 100."""
    ratio = moments.change / jnp.maximum(moments.noise, jnp.finfo(moments.noise.dtype).tiny)
    return jnp.minimum((1 + jnp.sqrt(1 + 4 * ratio)) / 2, LARGEST_CONSTANT)


def adaptive_rho(moments: Moments, t: Array) -> Array:
    """ρ_t = c/(t + c − 2); ρ_1 = ρ_2 = 1."""
    c = drift_constant(moments)
    return jnp.where(t <= 2, jnp.ones_like(t), c / (t + c - 2))


def observe(moments: Moments, increment: Increment, d: Tree, t: Array) -> Moments:
    """The running means after step t ≥ 2; the first step says nothing about either."""
    change = (t - 1) ** 2 * trees.squared_norm(increment.change)
    before = trees.subtract(increment.gradient, increment.change)
    noise = trees.squared_norm(trees.subtract(before, d))
    weight = jnp.where(t >= 2, 1 / jnp.maximum(t - 1, 1), 0.0)
    return Moments(
        moments.change + weight * (change - moments.change), moments.noise + weight * (noise - moments.noise)
    )
