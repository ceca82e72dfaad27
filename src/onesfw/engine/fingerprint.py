"""What makes two runs the same run, part by part, so that a difference can be named.

Functions are compared by their traced text and data by content, since a user's lambda is a new object at every call.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onesfw import trees
from onesfw.engine.checkpoint import digest
from onesfw.engine.programs import split
from onesfw.engine.run import Run
from onesfw.schedules.rates import Schedule
from onesfw.schedules.sizes import Batches
from onesfw.trees import Array, Tree


def fingerprint(run: Run, key: Array, replicates: int | None) -> dict[str, str]:
    """A name and a short text for everything that decides where the run goes.

    What only decides when it stops or what is looked at (time_limit, gap_tol, evaluate, every, callbacks, progress)
    is left out, and so is `steps` where no schedule depends on T: such a run can be prolonged.
    """
    algorithm = run.algorithm
    objective_arrays, objective_of = split(run.objective)
    constraint_arrays, constraint_of = split(run.constraint)

    def oracle(arrays: list[Any], key: Array, x: Tree) -> Tree:
        objective = objective_of(arrays)
        h = objective.at(objective.draw(key, jnp.int32(0)), x, jnp.zeros((), trees.dtype_of(x)))
        return h.value(x), h.gradient(x)

    def vertex(arrays: list[Any], x: Tree) -> Tree:
        return constraint_of(arrays).lmo(x)

    objective_text, captured = traced(oracle, objective_arrays, key, run.x0)
    constraint_text, held = traced(vertex, constraint_arrays, run.x0)
    method = f"{settings_of(run.estimator)}{run.step.settings}"
    parts = {
        "version of JAX": jax.__version__,
        "objective": f"{type(run.objective).__name__} {digest(objective_text)}",
        "data": digest(*objective_arrays, *captured),
        "constraint": f"{type(run.constraint).__name__} {digest(constraint_text, *constraint_arrays, *held)}",
        "algorithm": f"{algorithm.summary} {method} {digest(*schedule_values(run))}",
        "sense": "minimize" if run.sign > 0 else "maximize",
        "x0": f"{trees.describe(run.x0)} {trees.dtype_of(run.x0)} {digest(*jax.tree.leaves(run.x0))}",
        "key": digest(jax.random.key_data(key)),
        "replicates": str(replicates),
    }
    if algorithm.rho.uses_horizon or algorithm.eta.uses_horizon or run.estimator.uses_horizon:
        parts["steps"] = str(run.steps)
    return parts


def traced(function: Any, *args: Tree) -> tuple[str, list[Any]]:
    """A function's text, and the arrays it captured."""
    closed = jax.make_jaxpr(function)(*args)
    return str(closed.jaxpr), list(closed.consts)


def schedule_values(run: Run) -> list[np.ndarray]:
    """ρ, η and sample sizes on a grid of steps: schedules are compared by what they return."""
    t = np.unique(np.geomspace(1, 10**9, 1000).astype(np.int64))

    def values(schedule: Schedule) -> np.ndarray:
        return np.asarray(schedule(t, 10**6))  # `steps` is a part of its own

    sizes = jax.tree.leaves(run.estimator.plan(t, 10**6))
    return [values(run.algorithm.rho), values(run.algorithm.eta), np.asarray(run.algorithm.t0), *sizes]


def settings_of(module: Any) -> str:
    """A module's class and settings, those that are modules themselves included; not what it does not print."""
    if isinstance(module, Batches):
        return module.formula  # its function is another object in every process; its values are compared apart
    if not is_dataclass(module):
        return repr(module)
    shown = [field.name for field in fields(module) if field.repr]
    inner = ", ".join(f"{name}={settings_of(getattr(module, name))}" for name in shown)
    return f"{type(module).__name__}({inner})"
