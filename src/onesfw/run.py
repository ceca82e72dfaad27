"""A checked problem, and what the compiled loop is told about its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from onesfw import loop, trees
from onesfw.algorithms import Algorithm
from onesfw.estimators import Estimator
from onesfw.objectives import Objective
from onesfw.schedules import require_range
from onesfw.sets import ConvexSet
from onesfw.steps import Step
from onesfw.trees import Array, Tree

Callback = Callable[[dict[str, Any], Tree], Any]


@dataclass(frozen=True)
class Run:
    """A checked problem: everything a run needs but its key."""

    objective: Objective
    constraint: ConvexSet
    algorithm: Algorithm
    estimator: Estimator
    step: Step
    """The algorithm's, fitted to the constraint."""
    x0: Tree
    """x_1"""
    inside: Tree
    """A member of K, for a run that ends before its first step."""
    steps: int
    sign: int
    """+1 minimises, −1 maximises: the only place where the two differ."""
    evaluate: Any = None
    pauses: Sequence[int] = ()
    """After which steps to evaluate."""
    gap_tol: float | None = None
    time_limit: float | None = None
    callbacks: Sequence[Callback] = ()


class Told(NamedTuple):
    """What the compiled loop is told about the steps of a chunk: arrays of a fixed length."""

    rho: Array
    weight: Array
    plan: Tree


def schedules(run: Run, first: int, count: int) -> tuple[Told, np.ndarray]:
    """ρ, the step's weights and the estimator's plan for a chunk, computed in float64 and cast; and the weights."""
    algorithm, steps, dtype = run.algorithm, run.steps, trees.dtype_of(run.x0)
    t = np.arange(first, first + count, dtype=np.int64)
    rho = np.where(t == 1, 1.0, algorithm.rho(t, steps))
    eta = algorithm.eta(t + algorithm.t0, steps)
    require_range(rho, t, "rho")  # long runs were checked on a grid of steps only
    require_range(eta, t + algorithm.t0, "eta", run.step.largest)

    def padded(values: Any, dtype: Any) -> Array:
        values = np.asarray(values)
        full = np.zeros((loop.CHUNK, *values.shape[1:]), values.dtype)
        full[:count] = values
        return jnp.asarray(full, dtype)

    plan = jax.tree.map(lambda sizes: padded(sizes, jnp.int32), run.estimator.plan(t, steps))
    weight = run.step.weights(t, eta, steps)
    return Told(padded(rho, dtype), padded(weight, dtype), plan), weight
