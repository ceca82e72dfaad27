"""The paper's estimator: d_t = (1 − ρ_t)(d_{t−1} + Δ̃_t) + ρ_t g_t, from one sample (or a batch) a step."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw import trees
from onesfw.capabilities import ObjectiveLike
from onesfw.estimators.base import Estimator, OracleCounts, StepInputs
from onesfw.estimators.corrections import Correction, Increment, NoChange, NoChangeWithScore
from onesfw.estimators.sampling import batch_mean, draw_batch
from onesfw.trees import Array, Tree

LARGEST_CONSTANT = 100.0  # of the adaptive ρ_t = c/(t + c − 2)
MANY_STEPS = 20  # from 2^20 steps on, what float32 rounds away of d adds up to a share of the noise in it
MANY_ENTRIES = 150  # of x: a corrected output mixes some forty points, too few to make up for what x_{T+1} lacks
LONG_RUN = 23  # from 2^23 steps on, float32 is too coarse for the difference of two gradients a step apart


class Segment(NamedTuple):
    """The two points between which Δ̃ carries d at present: x_{t−1} and x_t, but for long runs in float32."""

    start: Tree
    end: Tree


class Moments(NamedTuple):
    """Running means behind the adaptive ρ: m² of (t−1)²‖Δ̃_t‖², s² of ‖g_t − Δ̃_t − d_{t−1}‖²."""

    change: Array
    noise: Array


class State(NamedTuple):
    """What step t + 1 needs of the steps before it; what is not used is an empty tuple and costs nothing."""

    d: Tree
    lost: Tree
    """what the last additions to d rounded away"""
    segment: Tree
    baseline: Tree
    moments: Tree


class OneSample(Estimator):
    """Algorithms 1 and 2 of Zhang, Shen, Mokhtari, Hassani and Karbasi (2020), by the choice of the correction.

    With the correction `NoChange` it is the momentum of Mokhtari, Hassani and Karbasi (2018).

    From 2^20 steps on, in float32, d_t is a compensated sum of Δ̃_t + ρ_t (g_t − d_{t−1} − Δ̃_t): rounding adds up to
    6e-8 √t of d, and 1 − ρ is 1 once ρ < 6e-8.

    Args:
        correction: the rule for Δ̃_t.
        batch: samples averaged in each step.
        adaptive: replaces ρ_t by c/(t + c − 2), where c balances the drift of the gradient against its noise as both
            have been observed up to step t − 1: a heuristic of this library.
        paced: replaces the step η_t = 1/t by a/(t + a − 1), a = haste · c^(−1/2): where the gradient drifts more than
            it is noisy, steps are shorter. Goes with `adaptive`.
        haste: without `paced` it is a: η_t = 1/(t + 1), say, becomes a/(t + a). x forgets its early vertices sooner.
        haste_of_many: takes the place of `haste` where x has more than 150 entries; set by `for_steps`. None: the same.
        compensated: whether what d_t rounds away is carried along; set by `for_steps`.
        long: whether Δ̃_t is taken over more than a step after 2^23 steps (`segment_at`); set by `for_steps`.

    Example:
        >>> from onesfw.estimators import OneSample, SameSample
        >>> OneSample(SameSample(), batch=4).counts(None, steps=100)
        OracleCounts(samples=400, gradients=796, hvps=0)
    """

    correction: Correction
    batch: int = eqx.field(static=True, default=1)
    adaptive: bool = eqx.field(static=True, default=False)
    paced: bool = eqx.field(static=True, default=False)
    haste: float = eqx.field(static=True, default=1.0)
    haste_of_many: float | None = eqx.field(static=True, default=None)
    compensated: bool = eqx.field(static=True, default=True, repr=False)
    long: bool = eqx.field(static=True, default=False)

    def for_steps(self, steps: int, x: Tree) -> OneSample:
        carries = not isinstance(self.correction, NoChange | NoChangeWithScore)
        single = trees.dtype_of(x) == np.float32
        entries = sum(leaf.size for leaf in jax.tree.leaves(x))
        return replace(
            self,
            haste=self.haste if entries <= MANY_ENTRIES or self.haste_of_many is None else self.haste_of_many,
            compensated=single and steps >= 1 << MANY_STEPS,
            long=carries and single and steps >= 1 << LONG_RUN,
        )

    @property
    def needs(self) -> Set[str]:
        return self.correction.needs

    def init(self, x: Tree) -> State:
        zero = jnp.zeros((), trees.dtype_of(x))
        return State(
            trees.zeros_like(x),
            trees.zeros_like(x),
            Segment(x, x) if self.long else (),
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
        rho, t, segment = inputs.rho, inputs.t, state.segment
        if self.long:
            segment, share = segment_at(segment, inputs.x, t)
            inputs = inputs._replace(x=segment.end, previous=segment.start)
        increment = self.increment(objective, inputs, state.baseline)
        if self.long:
            increment = increment._replace(change=trees.scale(share, increment.change))
        moments, baseline = state.moments, state.baseline
        if self.adaptive:
            steps = t.astype(rho.dtype)
            rho = adaptive_rho(moments, steps)
            moments = observe(moments, increment, state.d, steps)
        if self.correction.uses_baseline:
            baseline = baseline + (increment.value.astype(rho.dtype) - baseline) / t.astype(rho.dtype)
        d, lost = self.averaged(state, increment, rho)
        return State(d, lost, segment, baseline, moments)

    def averaged(self, state: State, increment: Increment, rho: Array) -> tuple[Tree, Tree]:
        """d_t, and what it rounded away."""
        if not self.compensated:
            d = jax.tree.map(
                lambda old, change, gradient: (1 - rho) * (old + change) + rho * gradient,
                state.d,
                increment.change,
                increment.gradient,
            )
            return d, state.lost
        # ρ = 1 forgets d_{t−1} whole: what it rounded away would be all there is where g_t = 0.
        kept = (rho < 1).astype(rho.dtype)
        move = jax.tree.map(
            lambda old, change, gradient: kept * change + rho * (gradient - kept * (old + change)),
            state.d,
            increment.change,
            increment.gradient,
        )
        return trees.compensated_add(trees.scale(kept, state.d), trees.scale(kept, state.lost), move)

    def pace(self, state: State, weight: Array) -> Array:
        """a/(t + a − 1) from 1/t, which is aw/(1 + (a − 1)w) from w."""
        if not self.paced and self.haste == 1:
            return weight
        a = self.haste * (drift_constant(state.moments) ** -0.5 if self.paced else 1.0)
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


def segment_at(segment: Segment, x: Tree, t: Array) -> tuple[Segment, Array]:
    """The segment of step t, and 1/k: the share of its Δ̃ that the step adds, k the steps that it lasts.

    Up to 2^23 steps it is [x_{t−1}, x_t] and k = 1. Later k = 2^(⌊log₂ t⌋ − 22): x moves by 1/t of the set, less than
    float32 resolves, and the difference of two gradients would be rounding noise, whose variance grows from step to
    step. So x is looked at every k steps, and each of the next k samples carries d a k-th of the way between the last
    two looks: the differences add up to the same, from as many samples, with k² times less noise. d is then an
    estimate at most 2k steps, a 2^21st of t, behind.
    """
    doublings = jnp.maximum(32 - lax.clz(t) - LONG_RUN, 0)
    begins = t & ((1 << doublings) - 1) == 0
    start = jax.tree.map(lambda old, end: jnp.where(begins, end, old), segment.start, segment.end)
    end = jax.tree.map(lambda old, now: jnp.where(begins, now, old), segment.end, x)
    return Segment(start, end), 1 / (1 << doublings).astype(trees.dtype_of(x))


def adaptive_rho(moments: Moments, t: Array) -> Array:
    """ρ_t = c/(t + c − 2); ρ_1 = ρ_2 = 1."""
    c = drift_constant(moments)
    return jnp.where(t <= 2, jnp.ones_like(t), c / (t + c - 2))


def observe(moments: Moments, increment: Increment, d: Tree, t: Array) -> Moments:
    """The running means after step t ≥ 2; the first step says nothing about either."""
    most = jnp.finfo(t.dtype).max  # squares may be too large where gradients are not
    change = jnp.minimum((t - 1) ** 2 * trees.squared_norm(increment.change), most)
    before = trees.subtract(increment.gradient, increment.change)
    noise = jnp.minimum(trees.squared_norm(trees.subtract(before, d)), most)
    weight = jnp.where(t >= 2, 1 / jnp.maximum(t - 1, 1), 0.0)
    return Moments(
        moments.change + weight * (change - moments.change), moments.noise + weight * (noise - moments.noise)
    )
