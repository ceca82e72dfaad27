"""The compiled loop: d_t, the vertex, the step, for a number of steps that is an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.engine.small_loop import small_loop
from onesfw.estimators import Estimator, StepInputs
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet
from onesfw.steps import Step
from onesfw.trees import Array, Tree

CHUNK = 1 << 16  # steps whose ρ and η are handed over at once
BLOCK = 4096  # steps whose randomness is computed at once, fewer where draws are large
BLOCK_BYTES = 1 << 18
STRIDE = 32  # steps between two iterates that enter the averages of a corrected output: neighbours are almost alike
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
    """what the output is made of: x_o, the mean of the iterates so far, `Averages`; nothing where it is x_{T+1}"""


class Averages(NamedTuple):
    """Means of every 32nd x_t and d_t with weights that grow like t³, as compensated sums."""

    x: Tree
    d: Tree
    lost: Tree


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


def initial(
    constraint: ConvexSet, estimator: Estimator, step: Step, x: Tree, horizon: int, output: str = "last"
) -> RunState:
    """The state before step 1."""
    state = step.init(x, horizon)
    point = step.point(state)
    chosen = KEPT_AT_FIRST[output](point) if output in KEEPERS else ()
    return RunState(state, point, estimator.init(point), constraint.lmo_memory(point), chosen)


def block_length(objective: Objective, estimator: Estimator, key: Array) -> int:
    """How many steps' draws are computed together: a power of two, so that their arrays stay in the cache."""
    draws = jax.eval_shape(lambda k, t: estimator.draws(objective, k, t), key, jnp.int32(1))
    size = max(1, trees.size_in_bytes(draws))
    least = max(1, min(16, LARGEST_BYTES // size))
    return max(least, min(BLOCK, 1 << max(0, (BLOCK_BYTES // size).bit_length() - 1)))


def keep_one(x: Tree, d: Tree, chosen: Tree, chance: Array, t: Array) -> Tree:
    """x_t with probability 1/t, else what was chosen before: a reservoir of one."""
    return lax.cond(chance * t < 1, lambda new, old: new, lambda new, old: old, x, chosen)


def keep_mean(x: Tree, d: Tree, mean: Tree, chance: Array, t: Array) -> Tree:
    """The mean of x_1, …, x_t."""
    return jax.tree.map(lambda new, old: old + (new - old) / t.astype(old.dtype), x, mean)


def keep_averages(x: Tree, d: Tree, means: Averages, chance: Array, t: Array) -> Averages:
    """The means of x and d in which the n-th that enters weighs 4/(n + 3), as (n + 2)(n + 1)n against those before."""
    # A loop of one turn or none: XLA changes its state in place, where a condition copies all of it at every step.
    return lax.fori_loop(0, jnp.where(t % STRIDE == 0, 1, 0), lambda _, means: entered(x, d, means, t), means)


def keep_averages_in_kernel(x: Tree, d: Tree, means: Averages, chance: Array, t: Array) -> Averages:
    """The same where such a loop has no form."""
    return lax.cond(t % STRIDE == 0, lambda means: entered(x, d, means, t), lambda means: means, means)


def entered(x: Tree, d: Tree, means: Averages, t: Array) -> Averages:
    """The means with x_t and d_t among them."""
    old = (means.x, means.d)
    weight = 4 / (t // STRIDE + 3).astype(trees.dtype_of(x))
    move = jax.tree.map(lambda new, mean: weight * (new - mean), (x, d), old)
    (x_mean, d_mean), lost = trees.compensated_add(old, means.lost, move)
    return Averages(x_mean, d_mean, lost)


Keeper = Callable[[Tree, Tree, Tree, Array, Array], Tree]
"""(x_t, d_t, what is kept so far, a chance, t) ↦ what is kept then"""
KEEPERS: dict[str, Keeper] = {"random": keep_one, "average": keep_mean, "corrected": keep_averages}
KEEPERS_IN_KERNEL: dict[str, Keeper] = {**KEEPERS, "corrected": keep_averages_in_kernel}
KEPT_AT_FIRST: dict[str, Callable[[Tree], Tree]] = {
    "random": lambda x: x,
    "average": lambda x: x,
    "corrected": lambda x: Averages(x, trees.zeros_like(x), (trees.zeros_like(x), trees.zeros_like(x))),
}


def one_step(
    objective: Objective,
    constraint: ConvexSet,
    estimator: Estimator,
    step: Step,
    sign: int,
    keep: Keeper | None,
    state: RunState,
    draws: Tree,
    chance: Array,
    sizes: Tree,
    rho: Array,
    weight: Array,
    t: Array,
) -> RunState:
    """Step t: d_t from its draws, the vertex, x_{t+1}, and what is kept for the output."""
    x = step.point(state.step)
    inputs = StepInputs(x, state.previous, draws, sizes, rho, t)
    estimate = estimator.update(objective, state.estimate, inputs)
    direction = estimator.direction(estimate)
    chosen = state.chosen if keep is None else keep(x, direction, state.chosen, chance, t)
    direction = direction if sign > 0 else trees.scale(-1, direction)
    eta = estimator.pace(state.estimate, weight)
    moved, memory = step.move(constraint, state.step, direction, state.memory, eta)
    return RunState(moved, x, estimate, memory, chosen)


def overwritten(old: Tree, new: Tree, d: Tree, t: Array) -> Tree:
    """`new` in the place of `old`, once d_t has been made of it.

    `new` itself would do, but XLA does not see that order and keeps copies of both: a tenth of a step. t is never 0.
    """
    made = (jnp.ravel(jax.tree.leaves(d)[0])[0] < jnp.inf) | (t > 0)
    return jax.tree.map(lambda before, after: jnp.where(made, after, before), old, new)


def step_draws(objective: Objective, estimator: Estimator, keys: Keys, t: Array) -> tuple[Tree, Array]:
    """Step t's randomness: the estimator's draws, and the chance that decides on x_o."""
    return estimator.draws(objective, keys.draws, t), jax.random.uniform(jax.random.fold_in(keys.reservoir, t))


def compiled_chunk(
    objective: Objective,
    constraint: ConvexSet,
    estimator: Estimator,
    step: Step,
    sign: int,
    block: int,
    output: str = "last",
    whole: bool = False,
) -> Chunk:
    """The function (key, state, first, count, rho, weight, plan) ↦ (state after `count` steps, whether it is finite).

    Step numbers begin at `first`. Blocks lie on a fixed grid of steps, so that step t's randomness comes out of the
    same place of the same array, to the last bit, however the run is cut into chunks. Every step is the same turn of
    the same loop: several steps in one turn would be fused, and their last bits would follow the cuts. With `whole`,
    loops of small steps become one function of machine code.
    """
    keep = KEEPERS.get(output)

    def run(
        key: Array, state: RunState, first: Array, count: Array, rho: Array, weight: Array, plan: Tree
    ) -> tuple[RunState, Array]:
        keys = streams(key)

        def steps_of_block(b: Array, state: RunState) -> RunState:
            offset = b * block
            numbers = offset + 1 + jnp.arange(block, dtype=jnp.int32)
            drawn = jax.vmap(lambda t: step_draws(objective, estimator, keys, t))(numbers)
            if whole:  # first > 0: so that no draw is a constant to XLA
                drawn = jax.tree.map(lambda leaf: jnp.where(first > 0, leaf, jnp.zeros_like(leaf)), drawn)

            def numbered(i: Array, state: RunState) -> RunState:
                t = offset + 1 + i
                draws, chance = jax.tree.map(lambda leaf: leaf[i], drawn)
                sizes, rates, share = jax.tree.map(lambda leaf: leaf[t - first], (plan, rho, weight))
                new = one_step(
                    objective, constraint, estimator, step, sign, keep, state, draws, chance, sizes, rates, share, t
                )
                return new._replace(previous=overwritten(state.previous, new.previous, new.estimate.d, t))

            low = jnp.maximum(first - 1 - offset, 0)
            high = jnp.minimum(first - 1 + count - offset, block)
            if whole:
                return small_loop(low, high, jax.make_jaxpr(numbered)(low, state), state)
            return lax.fori_loop(low, high, numbered, state)

        begin, end = (first - 1) // block, (first - 1 + count + block - 1) // block
        state = lax.fori_loop(begin, end, steps_of_block, state)
        return state, trees.all_finite((step.point(state.step), state.estimate))

    return run
