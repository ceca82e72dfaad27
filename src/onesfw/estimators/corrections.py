"""Δ̃_t: what one sample says about ∇F(x_t) − ∇F(x_{t−1}).

Each correction draws z at a point x̄ of the segment [x_{t−1}, x_t] and returns the gradient term at x̄ (`gradient`),
the change Δ̃ (`change`), and F̃(x̄; z) (`value`), which feeds the baseline. With u = x_t − x_{t−1}:

| correction   | x̄                | Δ̃                                                     | gradients, HVPs |
|--------------|-------------------|--------------------------------------------------------|-----------------|
| no_change    | x_t               | 0 (momentum, minibatches)                              | 1, 0            |
| same_sample  | any: z is oblivious | ∇F̃(x_t; z) − ∇F̃(x_{t−1}; z) (Algorithm 2)            | 2, 0            |
| hessian      | uniform           | ∇²h(x̄) u (eq. 6)                                       | 1, 1            |
| difference   | uniform           | eq. (8), the Hessians replaced by gradient differences | 3, 0            |
| importance   | the midpoint      | ∇h(x_t) − ∇h(x_{t−1})                                  | 3, 0            |
| as_printed   | uniform           | eq. (6), and a gradient term without the score         | 1, 1            |
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Set
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from onesfw import trees
from onesfw.capabilities import DENSITY, OBLIVIOUS, UNBIASED, ObjectiveLike, with_density
from onesfw.trees import Array, Tree


class Increment(NamedTuple):
    """One sample's contribution to d_t."""

    gradient: Tree
    change: Tree
    value: Array


class Correction(eqx.Module):
    """A rule for Δ̃_t. `gradients` and `hvps` are its costs at a step t ≥ 2; the first step needs one gradient.

    What a correction does not use (`uses_place`: the random a, `uses_baseline`) is neither drawn nor kept.

    Example:
        >>> from onesfw.estimators import Correction, Hessian
        >>> rule: Correction = Hessian()
        >>> rule.gradients, rule.hvps
        (1, 1)
    """

    uses_place: eqx.AbstractClassVar[bool]
    uses_baseline: eqx.AbstractClassVar[bool]
    gradients: eqx.AbstractClassVar[int]
    hvps: eqx.AbstractClassVar[int]
    needs: eqx.AbstractClassVar[Set[str]]

    @abc.abstractmethod
    def __call__(
        self, objective: ObjectiveLike, draw: Tree, a: Array, x: Tree, previous: Tree, baseline: Array
    ) -> Increment:
        """The increment from one draw; a ~ U[0, 1] places x̄ = a x + (1 − a) x_{t−1}."""

    @property
    def change_cost(self) -> tuple[int, int]:
        """Gradients and HVPs where only Δ̃ is wanted, as in path integration."""
        return self.gradients, self.hvps


def between(a: float | Array, x: Tree, previous: Tree) -> Tree:
    """x(a) = a x_t + (1 − a) x_{t−1}."""
    return jax.tree.map(lambda now, before: a * now + (1 - a) * before, x, previous)


class NoChange(Correction):
    """Δ̃ = 0: the estimate is a moving average of gradients, each at its own x_t.

    Example:
        >>> from onesfw.estimators import NoChange, OneSample
        >>> OneSample(NoChange()).counts(None, steps=10)
        OracleCounts(samples=10, gradients=10, hvps=0)
    """

    uses_place: ClassVar[bool] = False
    uses_baseline: ClassVar[bool] = False
    gradients: ClassVar[int] = 1
    hvps: ClassVar[int] = 0
    needs: ClassVar[Set[str]] = frozenset({UNBIASED})

    def __call__(
        self, objective: ObjectiveLike, draw: Tree, a: Array, x: Tree, previous: Tree, baseline: Array
    ) -> Increment:
        return Increment(objective.at(draw, x, baseline).gradient(x), trees.zeros_like(x), baseline)


class NoChangeWithScore(Correction):
    """Δ̃ = 0 where z depends on x: each gradient is ∇F̃ + (F̃ − b)∇log p, from a z drawn at its own x_t.

    Example:
        >>> from onesfw.estimators import NoChangeWithScore
        >>> sorted(NoChangeWithScore().needs)
        ['a log-density of the samples']
    """

    uses_place: ClassVar[bool] = False
    uses_baseline: ClassVar[bool] = True
    gradients: ClassVar[int] = 1
    hvps: ClassVar[int] = 0
    needs: ClassVar[Set[str]] = frozenset({DENSITY})

    def __call__(
        self, objective: ObjectiveLike, draw: Tree, a: Array, x: Tree, previous: Tree, baseline: Array
    ) -> Increment:
        h = objective.at(draw, x, baseline)
        return Increment(h.gradient(x), trees.zeros_like(x), h.integrand(x))


class SameSample(Correction):
    """Algorithm 2: both gradients on the same z, which must not depend on x.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> from onesfw.estimators import SameSample
        >>> objective = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2) / 2, lambda key: jnp.zeros(2))
        >>> zero, draw = jnp.float32(0.0), jnp.zeros(2)
        >>> SameSample()(objective, draw, zero, jnp.ones(2), jnp.zeros(2), zero).change.tolist()
        [1.0, 1.0]
    """

    uses_place: ClassVar[bool] = False
    uses_baseline: ClassVar[bool] = False
    gradients: ClassVar[int] = 2
    hvps: ClassVar[int] = 0
    needs: ClassVar[Set[str]] = frozenset({OBLIVIOUS})

    def __call__(
        self, objective: ObjectiveLike, draw: Tree, a: Array, x: Tree, previous: Tree, baseline: Array
    ) -> Increment:
        h = objective.at(draw, x, baseline)
        gradient = h.gradient(x)
        return Increment(gradient, trees.subtract(gradient, h.gradient(previous)), baseline)


class Hessian(Correction):
    """Algorithm 1 with the exact Hessian-vector product of h, eq. (6).

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> from onesfw.estimators import Hessian
        >>> objective = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2) / 2, lambda key: jnp.zeros(2))
        >>> zero, draw = jnp.float32(0.0), jnp.zeros(2)
        >>> Hessian()(objective, draw, jnp.float32(0.5), jnp.ones(2), jnp.zeros(2), zero).gradient.tolist()
        [0.5, 0.5]
    """

    uses_place: ClassVar[bool] = True
    uses_baseline: ClassVar[bool] = True
    gradients: ClassVar[int] = 1
    hvps: ClassVar[int] = 1
    needs: ClassVar[Set[str]] = frozenset({UNBIASED})

    def __call__(
        self, objective: ObjectiveLike, draw: Tree, a: Array, x: Tree, previous: Tree, baseline: Array
    ) -> Increment:
        point = between(a, x, previous)
        h = objective.at(draw, point, baseline)
        gradient, change = h.hvp(point, trees.subtract(x, previous))
        return Increment(gradient, change, h.integrand(point))

    @property
    def change_cost(self) -> tuple[int, int]:
        """One HVP."""
        return 0, 1


class Difference(Correction):
    """Algorithm 1 with eq. (8): ∇²ψ u by a difference of ∇ψ along the segment, for ψ = F̃ and ψ = log p.

    `delta=None` spans the whole segment: ∇ψ(x_t) − ∇ψ(x_{t−1}), whose error is of second order in ‖u‖, which stays in
    K and divides by nothing. A number δ ≤ 1/2 takes the window [a − δ, a + δ], cut at the ends of the segment and
    divided by its true length. (The paper's δ_t ∝ η_t needs constants nobody has and loses float32.)

    Args:
        delta: half the width of the window, at most 1/2; None for the whole segment.

    Example:
        >>> from onesfw.estimators import Difference
        >>> Difference().gradients, Difference(0.1).delta
        (3, 0.1)
    """

    delta: float | None = eqx.field(static=True, default=None)
    uses_place: ClassVar[bool] = True
    uses_baseline: ClassVar[bool] = True
    gradients: ClassVar[int] = 3
    hvps: ClassVar[int] = 0
    needs: ClassVar[Set[str]] = frozenset({DENSITY})

    def __call__(
        self, objective: ObjectiveLike, draw: Tree, a: Array, x: Tree, previous: Tree, baseline: Array
    ) -> Increment:
        point, u = between(a, x, previous), trees.subtract(x, previous)
        h = objective.at(draw, point, baseline)
        assert h.log_prob is not None  # DENSITY promises it
        low = jnp.zeros_like(a) if self.delta is None else jnp.maximum(a - self.delta, 0.0)
        high = jnp.ones_like(a) if self.delta is None else jnp.minimum(a + self.delta, 1.0)
        left, right = between(low, x, previous), between(high, x, previous)

        def along(gradient: Callable[[Tree], Tree]) -> Tree:
            return trees.scale(1 / (high - low), trees.subtract(gradient(right), gradient(left)))

        value, slope = jax.value_and_grad(h.integrand)(point)
        score = jax.grad(h.log_prob)(point)
        centred = value - (baseline if with_density(objective).baseline else 0.0)
        stretch, climb = trees.dot(score, u), trees.dot(slope, u)
        change = jax.tree.map(
            lambda f, p, g, s: f + centred * p + (centred * stretch + climb) * s + stretch * g,
            along(jax.grad(h.integrand)),
            along(jax.grad(h.log_prob)),
            slope,
            score,
        )
        gradient = jax.tree.map(lambda g, s: g + centred * s, slope, score)
        return Increment(gradient, change, value)


class Importance(Correction):
    """∇h(x_t) − ∇h(x_{t−1}) with z drawn at the midpoint: unbiased, no Hessian, no second-order smoothness.

    At the midpoint each factor of the weight is at most 2 for Bernoulli and categorical p, however near the boundary;
    on it, `log_prob` must stay finite (log(x + 1e-12) rather than log x).

    Example:
        >>> from onesfw.estimators import Importance
        >>> Importance().gradients, Importance().change_cost
        (3, (2, 0))
    """

    uses_place: ClassVar[bool] = False
    uses_baseline: ClassVar[bool] = True
    gradients: ClassVar[int] = 3
    hvps: ClassVar[int] = 0
    needs: ClassVar[Set[str]] = frozenset({DENSITY})

    def __call__(
        self, objective: ObjectiveLike, draw: Tree, a: Array, x: Tree, previous: Tree, baseline: Array
    ) -> Increment:
        point = between(0.5, x, previous)
        h = objective.at(draw, point, baseline)
        change = trees.subtract(h.gradient(x), h.gradient(previous))
        return Increment(h.gradient(point), change, h.integrand(point))

    @property
    def change_cost(self) -> tuple[int, int]:
        """The two gradients of the difference."""
        return 2, 0


class AsPrinted(Correction):
    """Algorithm 1 to the letter: the gradient term ∇F̃(x_t; z_t) lacks F̃ ∇log p. Kept to show that it stalls.

    Example:
        >>> from onesfw.estimators import AsPrinted
        >>> AsPrinted().gradients, AsPrinted().hvps
        (1, 1)
    """

    uses_place: ClassVar[bool] = True
    uses_baseline: ClassVar[bool] = False
    gradients: ClassVar[int] = 1
    hvps: ClassVar[int] = 1
    needs: ClassVar[Set[str]] = frozenset({DENSITY})

    def __call__(
        self, objective: ObjectiveLike, draw: Tree, a: Array, x: Tree, previous: Tree, baseline: Array
    ) -> Increment:
        point = between(a, x, previous)
        h = objective.at(draw, point, jnp.zeros_like(baseline))
        _, change = h.hvp(point, trees.subtract(x, previous))
        return Increment(jax.grad(h.integrand)(x), change, jnp.zeros_like(baseline))
