"""Steps from 0 for DR-submodular F: continuous greedy, in two phases, below an upper bound."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw import trees
from onesfw.steps.frank_wolfe import SetLike, Step, StepState
from onesfw.trees import Array, HostArray, Tree


class ContinuousGreedyStep(Step):
    """x_{t+1} = x_t + η_t v_t from x_1 = 0, kept as the sum of T η_t v_t and divided by T.

    With η_t = 1/T and 0/1 vertices the sum holds integer counts, so that x_i never exceeds 1. After an early stop
    the sum divided by its own weight, (T/(t−1)) x_t for the paper's η, is a mean of members of K.
    """

    from_zero: ClassVar[bool] = True

    def init(self, x: Tree, horizon: int) -> StepState:
        zero = trees.zeros_like(x)
        return StepState(zero, zero, jnp.asarray(horizon, trees.dtype_of(x)))

    def point(self, state: StepState) -> Tree:
        return jax.tree.map(lambda total: total / state.divisor, state.total)

    def advance(self, state: StepState, vertex: Tree, weight: Array) -> StepState:
        total, lost = trees.compensated_add(state.total, state.lost, trees.scale(weight, vertex))
        return StepState(total, lost, state.divisor)

    def weights(self, t: HostArray, eta: HostArray, horizon: int) -> HostArray:
        product = eta * horizon
        whole = np.rint(product)
        return np.where(np.abs(product - whole) < 1e-9, whole, product)

    def output(self, state: StepState, total_weight: float) -> Tree:
        return jax.tree.map(lambda total: total / (total_weight or 1.0), state.total)


class TwoPhaseState(NamedTuple):
    """A compensated sum, the number by which it is divided to give x_t, and that by which it would lie in K."""

    total: Tree
    lost: Tree
    divisor: Array
    mass: Array


class TwoPhaseStep(Step):
    """Continuous greedy in the first quarter of the steps, x_{t+1} = x_t + v_t/T₁; then x_{t+1} = x_t + η_t(v_t − x_t).

    Frank-Wolfe steps of η_t = 4/t, or as much of it as the run thinks right (`Estimator.pace`), go on from where
    continuous greedy ends. A sum divided by its own weights lies in K at any time.
    """

    from_zero: ClassVar[bool] = True
    speed: ClassVar[float] = 4.0

    def init(self, x: Tree, horizon: int) -> TwoPhaseState:
        zero, dtype = trees.zeros_like(x), trees.dtype_of(x)
        return TwoPhaseState(zero, zero, jnp.asarray(greedy_steps(horizon), dtype), jnp.zeros((), dtype))

    def point(self, state: TwoPhaseState) -> Tree:
        return jax.tree.map(lambda total: total / state.divisor, state.total)

    def weights(self, t: HostArray, eta: HostArray, horizon: int) -> HostArray:
        """Rows of 1 and 0 in the first phase, of 0 and η_t in the second."""
        greedy = t <= greedy_steps(horizon)
        return np.stack([greedy, np.where(greedy, 0.0, np.minimum(1.0, self.speed / t))], 1)

    def advance(self, state: TwoPhaseState, vertex: Tree, weight: Array) -> TwoPhaseState:
        # Not weight[0] and weight[1]: the kernel for accelerators cannot cut a vector into pieces.
        greedy, share = (jnp.sum(jnp.where(lax.iota(jnp.int32, 2) == place, weight, 0)) for place in (0, 1))
        added = greedy + share * state.divisor
        move = jax.tree.map(lambda v, total: added * v - share * total, vertex, state.total)
        total, lost = trees.compensated_add(state.total, state.lost, move)
        return TwoPhaseState(total, lost, state.divisor, state.mass + added - share * state.mass)

    def output(self, state: TwoPhaseState, total_weight: float) -> Tree:
        def divided(total: Array) -> Array:  # replicates have a mass each
            mass = jnp.reshape(state.mass, state.mass.shape + (1,) * (total.ndim - state.mass.ndim))
            return total / jnp.where(mass > 0, mass, 1)

        return jax.tree.map(divided, state.total)


def greedy_steps(horizon: int) -> int:
    """T₁, the steps of continuous greedy in a run of two phases."""
    return max(1, horizon // 4)


class BelowStep(ContinuousGreedyStep):
    """Continuous greedy for F that need not be monotone: v_t = argmax ⟨d, v⟩ over v in K with v ≤ ū − x_t.

    ū is the top of the box around K, which must be down-closed. Algorithm NMSCG of Mokhtari, Hassani and Karbasi
    (2018), 1/e of the optimum.
    """

    top: Tree = None

    def fit(self, constraint: SetLike, like: Tree) -> Step:
        try:
            jax.eval_shape(constraint.lmo_below, trees.shapes(like), trees.shapes(like))
        except NotImplementedError as error:
            raise ValueError(f"constraint: {error}") from error
        lower, upper = constraint.bounds(like)
        if any(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(lower)):
            raise ValueError("constraint: the nonmonotone_dr setting needs a down-closed set, which holds 0")
        return BelowStep(jax.tree.map(np.asarray, upper))

    def move(
        self, constraint: SetLike, state: StepState, direction: Tree, memory: Tree, weight: Array
    ) -> tuple[StepState, Tree]:
        room = jax.tree.map(lambda top, x: jnp.maximum(top - x, 0), self.top, self.point(state))
        return self.advance(state, constraint.lmo_below(direction, room), weight), memory
