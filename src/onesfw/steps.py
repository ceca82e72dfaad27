"""x_{t+1} = step(x_t, v_t, η_t): how the iterate moves towards a vertex, without drifting in float32."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from onesfw import trees
from onesfw.trees import Array, Tree


class StepState(NamedTuple):
    """A compensated sum, and the number by which it is divided to give x."""

    total: Tree
    lost: Tree
    divisor: Array


class Step(eqx.Module):
    """A rule for x_{t+1}. Its state is a compensated sum: plain float32 sums leave K (8e-4 after 2e6 steps)."""

    from_zero: ClassVar[bool] = False
    """Whether x_1 = 0 and the weights must add up to 1."""
    largest: ClassVar[float] = 1.0
    """What η_t may be at most."""

    def fit(self, constraint: Any, like: Tree) -> Step:
        """The step with what it needs to know of K; a sentence where K cannot serve it."""
        return self

    @abc.abstractmethod
    def init(self, x: Tree, horizon: Any) -> StepState:
        """The state at x_1, for a run of `horizon` steps."""

    @abc.abstractmethod
    def point(self, state: StepState) -> Tree:
        """x_t."""

    @abc.abstractmethod
    def advance(self, state: StepState, vertex: Tree, weight: Array) -> StepState:
        """The state at x_{t+1}."""

    def move(
        self, constraint: Any, state: StepState, direction: Tree, memory: Tree, weight: Array
    ) -> tuple[StepState, Tree]:
        """The state at x_{t+1} and the oracle's memory: one call of the oracle at `direction`, then `advance`."""
        vertex, memory = constraint.lmo_from(direction, memory)
        vertex = jax.tree.map(lambda v, leaf: v.astype(leaf.dtype), vertex, direction)
        return self.advance(state, vertex, weight), memory

    def lmo_calls(self, state: StepState, steps: int) -> Any:
        """How often the oracle was asked in the first `steps` steps."""
        return steps

    def weights(self, t: np.ndarray, eta: np.ndarray, horizon: int) -> np.ndarray:
        """What `advance` takes for η_t, computed in float64 on the host: a row for each step t."""
        return eta

    @abc.abstractmethod
    def output(self, state: StepState, total_weight: float) -> Tree:
        """A member of K after the steps done so far, whose weights add up to `total_weight`."""


class FrankWolfeStep(Step):
    """x_{t+1} = x_t + η_t (v_t − x_t)."""

    def init(self, x: Tree, horizon: Any) -> StepState:
        return StepState(x, trees.zeros_like(x), jnp.ones((), trees.dtype_of(x)))

    def point(self, state: StepState) -> Tree:
        return state.total

    def advance(self, state: StepState, vertex: Tree, weight: Array) -> StepState:
        move = jax.tree.map(lambda v, x: weight * (v - x), vertex, state.total)
        total, lost = trees.compensated_add(state.total, state.lost, move)
        return StepState(total, lost, state.divisor)

    def output(self, state: StepState, total_weight: float) -> Tree:
        return state.total


class ContinuousGreedyStep(Step):
    """x_{t+1} = x_t + η_t v_t from x_1 = 0, kept as the sum of T η_t v_t and divided by T.

    With η_t = 1/T and 0/1 vertices the sum holds integer counts, so that x_i never exceeds 1. After an early stop
    the sum divided by its own weight, (T/(t−1)) x_t for the paper's η, is a mean of members of K.
    """

    from_zero: ClassVar[bool] = True

    def init(self, x: Tree, horizon: Any) -> StepState:
        zero = trees.zeros_like(x)
        return StepState(zero, zero, jnp.asarray(horizon, trees.dtype_of(x)))

    def point(self, state: StepState) -> Tree:
        return jax.tree.map(lambda total: total / state.divisor, state.total)

    def advance(self, state: StepState, vertex: Tree, weight: Array) -> StepState:
        total, lost = trees.compensated_add(state.total, state.lost, trees.scale(weight, vertex))
        return StepState(total, lost, state.divisor)

    def weights(self, t: np.ndarray, eta: np.ndarray, horizon: int) -> np.ndarray:
        product = eta * horizon
        whole = np.rint(product)
        return np.where(np.abs(product - whole) < 1e-9, whole, product)

    def output(self, state: StepState, total_weight: float) -> Tree:
        return jax.tree.map(lambda total: total / (total_weight or 1.0), state.total)
