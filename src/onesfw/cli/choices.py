"""The algorithm, the set and the precision that the options ask for."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from onesfw import sets, trees
from onesfw.algorithms import ALGORITHMS, KNOWN_SETTINGS, Algorithm
from onesfw.arguments import choose, nearest
from onesfw.cli.list_command import sets as known_sets
from onesfw.cli.problems import Task
from onesfw.sets.base import is_shape, known
from onesfw.trees import Tree

SIZES = ("radius", "total")  # what --radius may be called in a set's constructor


def choose_algorithm(task: Task, name: str | None, setting: str | None) -> Algorithm:
    """The recipe of that name in the task's setting; one_sfw unless another is named."""
    if setting is not None:
        choose(setting, KNOWN_SETTINGS, "--setting")
    if name is None:
        if setting is None and task.problem is not None:
            return task.problem.algorithm()
        name = "one_sfw"
    if name not in ALGORITHMS:
        hint = nearest(name, ALGORITHMS) or f"; choose one of {', '.join(ALGORITHMS)}"
        raise ValueError(f"there is no algorithm {name!r}{hint}")
    recipe = ALGORITHMS[name]
    if "setting" in inspect.signature(recipe).parameters:
        return recipe(setting or task.setting)
    if setting is not None:
        raise ValueError(f"--setting: {name} has only one setting; leave --setting out")
    return recipe()


def with_set(task: Task, name: str | None, radius: float | None) -> Task:
    """The task over another set of the same shape, or over its own set with another radius; its optimum is unknown."""
    if name is None and radius is None:
        return task
    if name is None:
        name = type(task.constraint).__name__
    if name not in known_sets():
        hint = nearest(name, known_sets()) or "; `onesfw list sets` shows all"
        raise ValueError(f"there is no set {name!r}{hint}")
    maker = getattr(sets, name)
    parameters = list(inspect.signature(maker).parameters.values())
    needed = [p.name for p in parameters if p.default is p.empty]
    size = next((p for p in parameters if p.name in SIZES), None)
    if size is None or set(needed) - {size.name}:
        raise ValueError(
            f"{name} takes {', '.join(p.name for p in parameters)}, more than --radius can say; "
            "define it as `constraint` in a file of your own, and solve that file"
        )
    if radius is None and size.name in needed:
        meaning = "" if size.name == "radius" else f", its {size.name}"
        raise ValueError(f"{name} needs --radius{meaning}")
    arguments: dict[str, Any] = {} if radius is None else {size.name: radius}
    if "shape" in (p.name for p in parameters):
        arguments["shape"] = shape_of(task)
    return replace(task, constraint=maker(**arguments), problem=None)


def shape_of(task: Task) -> tuple[int, ...] | None:
    """The shape of x where it is one array; None where x0 is a tree, which then tells the shapes itself."""
    if task.x0 is not None:
        return tuple(np.shape(task.x0)) if isinstance(task.x0, np.ndarray | jax.Array) else None
    template = task.constraint.template()
    if template is None or not is_shape(template):
        raise ValueError(
            "--set needs the shape of x, and the problem's own set does not know it; define x0 in the file"
        )
    return template


def in_float64(task: Task, at_zero: bool) -> Task:
    """The task with a starting point in float64, for x0's dtype is the run's: the set's own, or 0."""
    with jax.enable_x64(True):
        start: Tree
        if task.x0 is not None:
            start = task.x0
        else:
            like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, np.float64), known(task.constraint, None))
            start = trees.zeros_like(like) if at_zero else task.constraint.start(like)
        return replace(task, x0=jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), start))
