"""What the compiled loop is handed for a chunk of steps, computed on the host: ρ, the step's weights, sample sizes."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from onesfw import trees
from onesfw.engine.compiled_loop import CHUNK
from onesfw.engine.run import Run
from onesfw.schedules import require_range
from onesfw.trees import Array, HostArray, Tree

KEPT = 16  # chunks, half a megabyte each: short runs have no more


class ChunkInputs(NamedTuple):
    """What the compiled loop is given for the steps of a chunk: arrays of a fixed length."""

    rho: Array
    weight: Array
    plan: Tree


def chunk_inputs(run: Run, first: int, count: int) -> tuple[ChunkInputs, HostArray]:
    """ρ, the step's weights and the estimator's plan for a chunk, computed in float64 and cast; and the weights."""
    step, found = run.inputs.get((first, count), (None, None))
    if found is None or step is not run.step:  # another set's weights may be others
        found = computed_inputs(run, first, count)
        if len(run.inputs) >= KEPT:
            run.inputs.clear()
        run.inputs[first, count] = run.step, found
    return found


def computed_inputs(run: Run, first: int, count: int) -> tuple[ChunkInputs, HostArray]:
    """The same, anew."""
    algorithm, steps, dtype = run.algorithm, run.steps, trees.dtype_of(run.x0)
    t = np.arange(first, first + count, dtype=np.int64)
    rho = np.where(t == 1, 1.0, algorithm.rho(t, steps))
    eta = algorithm.eta(t + algorithm.t0, steps)
    require_range(rho, t, "rho")  # long runs were checked on a grid of steps only
    require_range(eta, t + algorithm.t0, "eta", run.step.largest)

    def padded(values: HostArray, dtype: DTypeLike) -> Array:
        full = np.zeros((CHUNK, *np.shape(values)[1:]), dtype)
        full[:count] = values
        return jnp.asarray(full)

    plan = jax.tree.map(lambda sizes: padded(sizes, jnp.int32), run.estimator.plan(t, steps))
    weight = run.step.weights(t, eta, steps)
    return ChunkInputs(padded(rho, dtype), padded(weight, dtype), plan), weight
