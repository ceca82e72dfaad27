"""The compiled loop: d_t, the vertex, the step, for a number of steps that is an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.estimators import Estimator, StepInputs
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet
from onesfw.steps import Step
from onesfw.trees import Array, Tree

CHUNK = 1 << 16  # steps whose ρ and η are handed over at once
BLOCK = 4096  # steps whose randomness is computed at once, fewer where draws are large
BLOCK_BYTES = 1 << 18
LARGEST_BYTES = 1 << 26  # what the draws of a short block, of 16 steps, may take


class RunState(NamedTuple):
    """Everything step t + 1 needs of the past."""

    step: Tree
    previous: Tree
    """x_{t−1}"""
    estimate: Tree
    """the estimator's state; its field `d` is d_t"""
    memory: Tree
    """what the linear minimisation oracle remembers"""
    chosen: Tree
    """x_o or the mean of the iterates so far, or nothing where neither is wanted"""


Chunk = Callable[[Array, RunState, Array, Array, Array, Array, Tree], tuple[RunState, Array]]
"""(key, state, first, count, rho, weight, plan) ↦ (state after `count` steps, whether it is finite)"""


class Keys(NamedTuple):
    """Independent streams of a run's key."""

    draws: Array
    reservoir: Array
    evaluation: Array


def streams(key: Array) -> Keys:
    """The streams of a run."""
    return Keys(*(jax.random.fold_in(key, i) for i in range(3)))


def initial(constraint: ConvexSet, estimator: Estimator, step: Step, x: Tree, horizon: int, keep: bool) -> RunState:
    """The state before step 1."""
    state = step.init(x, horizon)
    point = step.point(state)
    return RunState(state, point, estimator.init(point), constraint.lmo_memory(point), point if keep else ())


def block_length(objective: Objective, estimator: Estimator, key: Array) -> int:
    """How many steps' draws are computed together: a power of two, so that their arrays stay in the cache."""
    draws = jax.eval_shape(lambda k, t: estimator.draws(objective, k, t), key, jnp.int32(1))
    size = max(1, trees.size_in_bytes(draws))
    least = max(1, min(16, LARGEST_BYTES // size))
    return max(least, min(BLOCK, 1 << max(0, (BLOCK_BYTES // size).bit_length() - 1)))


def keep_one(x: Tree, chosen: Tree, chance: Array, t: Array) -> Tree:
    """x_t with probability 1/t, else what was chosen before: a reservoir of one."""
    return lax.cond(chance * t < 1, lambda new, old: new, lambda new, old: old, x, chosen)


def keep_mean(x: Tree, mean: Tree, chance: Array, t: Array) -> Tree:
    """The mean of x_1, …, x_t."""
    return jax.tree.map(lambda new, old: old + (new - old) / t.astype(old.dtype), x, mean)


KEEPERS = {"random": keep_one, "average": keep_mean}


def compiled_chunk(
    objective: Objective,
    constraint: ConvexSet,
    estimator: Estimator,
    step: Step,
    sign: int,
    block: int,
    output: str = "last",
) -> Chunk:
    """The function (key, state, first, count, rho, weight, plan) ↦ (state after `count` steps, whether it is finite).

    Step numbers begin at `first`. Blocks lie on a fixed grid of steps, so that step t's randomness comes out of the
    same place of the same array, to the last bit, however the run is cut into chunks. Every step is the same turn of
    the same loop: several steps in one turn would be fused, and their last bits would follow the cuts.
    """

    keep = KEEPERS.get(output)

    def run(
        key: Array, state: RunState, first: Array, count: Array, rho: Array, weight: Array, plan: Tree
    ) -> tuple[RunState, Array]:
        keys = streams(key)

        def steps_of_block(b: Array, state: RunState) -> RunState:
            offset = b * block
            numbers = offset + 1 + jnp.arange(block, dtype=jnp.int32)
            draws = jax.vmap(lambda t: estimator.draws(objective, keys.draws, t))(numbers)
            chances = jax.vmap(lambda t: jax.random.uniform(jax.random.fold_in(keys.reservoir, t)))(numbers)

            def one_step(i: Array, state: RunState) -> RunState:
                t = offset + 1 + i
                place = t - first
                x = step.point(state.step)
                chosen = state.chosen
                if keep is not None:
                    chosen = keep(x, chosen, chances[i], t)
                here = jax.tree.map(lambda leaf: leaf[i], draws)
                sizes = jax.tree.map(lambda leaf: leaf[place], plan)
                inputs = StepInputs(x, state.previous, here, sizes, rho[place], t)
                estimate = estimator.update(objective, state.estimate, inputs)
                direction = estimator.direction(estimate)
                direction = direction if sign > 0 else trees.scale(-1, direction)
                moved, memory = step.move(constraint, state.step, direction, state.memory, weight[place])
                return RunState(moved, x, estimate, memory, chosen)

            low = jnp.maximum(first - 1 - offset, 0)
            high = jnp.minimum(first - 1 + count - offset, block)
            return lax.fori_loop(low, high, one_step, state)

        begin, end = (first - 1) // block, (first - 1 + count + block - 1) // block
        state = lax.fori_loop(begin, end, steps_of_block, state)
        return state, trees.all_finite((step.point(state.step), state.estimate))

    return run
