"""Steps to a point near x_t − η_t d_t: by a projection, and by sliding, which finds it with the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw import trees
from onesfw.steps.frank_wolfe import SetLike, Step, StepState, diameter_of, whole
from onesfw.trees import Array, HostArray, Tree


class EpochPlace(Protocol):
    """Where in their epochs steps stand: place k of `length`."""

    @property
    def k(self) -> HostArray:
        """1, …, `length`"""

    @property
    def length(self) -> HostArray:
        """The steps of the epoch."""


class ProjectedStep(Step):
    """x_{t+1} = the projection of x_t − η_t d_t onto K. No oracle call."""

    largest: ClassVar[float] = np.inf

    def fit(self, constraint: SetLike, like: Tree) -> Step:
        try:
            jax.eval_shape(constraint.project, trees.shapes(like))
        except NotImplementedError as error:
            raise ValueError(f"constraint: {error}, such as one_sfw") from error
        return self

    def init(self, x: Tree, horizon: int) -> StepState:
        return StepState(x, (), jnp.ones((), trees.dtype_of(x)))

    def point(self, state: StepState) -> Tree:
        return state.total

    def advance(self, state: StepState, vertex: Tree, weight: Array) -> StepState:
        return StepState(vertex, (), state.divisor)

    def move(
        self, constraint: SetLike, state: StepState, direction: Tree, memory: Tree, weight: Array
    ) -> tuple[StepState, Tree]:
        target = jax.tree.map(lambda x, d: x - weight * d, state.total, direction)
        return self.advance(state, constraint.project(target), weight), memory

    def lmo_calls(self, state: StepState, steps: int) -> int | HostArray:
        return 0


class SlidingState(NamedTuple):
    """The three sequences of conditional gradient sliding, and the oracle calls so far."""

    x: Tree
    y: Tree
    z: Tree
    calls: Array


class SlidingStep(Step):
    """Accelerated sliding (Lan and Zhou 2016): x_k ≈ argmin ⟨d, x⟩ + (β_k/2)‖x − x_{k−1}‖² over K by Frank-Wolfe.

    The gradient is asked for at z_k = (1 − γ_k) y_{k−1} + γ_k x_{k−1}; y_k = (1 − γ_k) y_{k−1} + γ_k x_k is the output.
    With N steps in an epoch, β_k = 3L/k and the inner Frank-Wolfe, with exact steps, ends at the gap 2LD²/(Nk), or
    after `most` calls of the oracle. γ is the schedule η. An epoch begins with x_0 = y_0 = y of the last one.
    """

    epochs: Callable[[HostArray], EpochPlace] = eqx.field(static=True)
    """t ↦ its place (epoch, k, length)"""
    smoothness: float = eqx.field(static=True)
    most: int = eqx.field(static=True)
    gamma: Callable[[HostArray, int], HostArray] = eqx.field(static=True)
    """t ↦ γ_t, which the step before must know"""
    diameter: float = eqx.field(static=True, default=1.0)

    def fit(self, constraint: SetLike, like: Tree) -> Step:
        return SlidingStep(self.epochs, self.smoothness, self.most, self.gamma, diameter_of(constraint, like))

    @property
    def settings(self) -> str:
        return f" smoothness={self.smoothness:g} inner={self.most}"

    def init(self, x: Tree, horizon: int) -> SlidingState:
        return SlidingState(x, x, x, jnp.int32(0))

    def point(self, state: SlidingState) -> Tree:
        return state.z

    def weights(self, t: HostArray, eta: HostArray, horizon: int) -> HostArray:
        """Rows of γ_t, β_t, the tolerance of step t, γ_{t+1}, and whether t + 1 begins an epoch."""
        here, following = self.epochs(t), self.epochs(t + 1)
        beta = 3 * self.smoothness / here.k
        tolerance = 2 * self.smoothness * self.diameter**2 / (here.length * here.k)
        return np.stack([eta, beta, tolerance, self.gamma(t + 1, horizon), following.k == 1], 1)

    def advance(self, state: SlidingState, vertex: Tree, weight: Array) -> SlidingState:
        gamma, following, begins = weight[0], weight[3], weight[4] > 0
        y = mixed(gamma, vertex, state.y)
        x = jax.tree.map(lambda new, mean: jnp.where(begins, mean, new), vertex, y)
        return SlidingState(x, y, mixed(following, x, y), state.calls)

    def move(
        self, constraint: SetLike, state: SlidingState, direction: Tree, memory: Tree, weight: Array
    ) -> tuple[SlidingState, Tree]:
        beta, tolerance = weight[1], weight[2]

        def slide(inner: tuple[Tree, Tree, Array, Array]) -> tuple[Tree, Tree, Array, Array]:
            point, memory, calls, _ = inner
            slope = jax.tree.map(lambda d, u, x: d + beta * (u - x), direction, point, state.x)
            vertex, memory = constraint.lmo_from(slope, memory)
            towards = jax.tree.map(lambda v, u: v.astype(u.dtype) - u, vertex, point)
            gap = -trees.dot(slope, towards)
            length = jnp.maximum(beta * trees.squared_norm(towards), jnp.finfo(beta.dtype).tiny)
            share = jnp.where(gap > tolerance, jnp.minimum(gap / length, 1.0), 0.0)
            moved = jax.tree.map(lambda u, w: u + share * w, point, towards)
            return moved, memory, calls + 1, gap > tolerance

        def goes_on(inner: tuple[Tree, Tree, Array, Array]) -> Array:
            return inner[3] & (inner[2] - state.calls < self.most)

        start = (state.x, memory, state.calls, jnp.asarray(True))
        point, memory, calls, _ = lax.while_loop(goes_on, slide, start)
        return self.advance(state, point, weight)._replace(calls=calls), memory

    def lmo_calls(self, state: SlidingState, steps: int) -> int | HostArray:
        return whole(state.calls)

    def output(self, state: SlidingState, total_weight: float) -> Tree:
        return state.y


def mixed(share: Array, new: Tree, old: Tree) -> Tree:
    """old + share (new − old)."""
    return jax.tree.map(lambda a, b: b + share * (a - b), new, old)
