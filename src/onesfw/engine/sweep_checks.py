"""The sets and the rows of a sweep, checked before anything is compiled; and the number that tells the sets apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import jax
import numpy as np
import numpy.typing as npt

from onesfw.objectives import FiniteSum, Objective
from onesfw.sets import ConvexSet
from onesfw.trees import HostArray, Tree


def checked_sets(constraints: ConvexSet | Iterable[ConvexSet]) -> list[ConvexSet]:
    """One set or several as a list; raises where they differ in more than their numbers, or are not sorted."""
    sets: list[Tree] = [constraints] if isinstance(constraints, ConvexSet) else list(as_iterable(constraints))
    for constraint in sets:
        if not isinstance(constraint, ConvexSet):
            name = getattr(constraint, "__name__", repr(constraint))
            raise TypeError(f"constraints must be sets from onesfw.sets, such as L1Ball(5.0, shape=20), got {name}")
    if not sets:
        raise ValueError("constraints holds no set; give one, or several of one class")
    kind = type(sets[0])
    other = next((constraint for constraint in sets if type(constraint) is not kind), None)
    if other is not None:
        raise ValueError(
            f"constraints must be sets of one class, got {kind.__name__} and {type(other).__name__}; sweep over each "
            "class apart"
        )
    for constraint in sets[1:]:
        if form(constraint) != form(sets[0]):
            raise ValueError(unlike(sets[0], constraint))
    at, parameter = told_apart(sets)
    if len(sets) > 1 and parameter != "set" and not np.all(np.diff(at) > 0):
        raise ValueError(f"constraints must rise in their {parameter}, each larger than the one before; sort them")
    return sets


def as_iterable(constraints: Iterable[ConvexSet]) -> Iterable[ConvexSet]:
    """What can be gone through; raises TypeError otherwise."""
    if not isinstance(constraints, Iterable):
        raise TypeError(f"constraints must be a set or several from onesfw.sets, got {constraints!r}")
    return constraints


def form(constraint: ConvexSet) -> tuple[object, str]:
    """What sets of one program have in common: all but their numbers."""
    held = [np.shape(leaf) for leaf in jax.tree.leaves(constraint)]
    return jax.tree.structure(constraint), str((constraint.template(), held))


def unlike(first: ConvexSet, other: ConvexSet) -> str:
    """Why two sets of one class cannot share a program, and what to do."""
    if str(first.template()) != str(other.template()):
        return "constraints must have one shape; give every set the same shape=, and arrays of one length"
    fields = [field.name for field in dataclasses.fields(first) if field.metadata.get("static")]
    pairs = [(name, getattr(first, name), getattr(other, name)) for name in fields]
    found = [f"{name}={one!r} and {name}={two!r}" for name, one, two in pairs if str(one) != str(two)]
    what = f" ({', '.join(found)})" if found else ""
    return (
        f"constraints: two sets of the class {type(first).__name__} differ in more than numbers{what}, and need "
        "programs of their own; call fw.sweep for each"
    )


def told_apart(sets: Sequence[ConvexSet]) -> tuple[HostArray, str]:
    """The one number in which sets differ, and its name; their places where there is no such number."""
    leaves = [jax.tree.leaves(constraint) for constraint in sets]
    columns = [np.stack([np.asarray(held[place]) for held in leaves]) for place in range(len(leaves[0]))]
    differing = [place for place, column in enumerate(columns) if not np.all(column == column[:1])]
    candidates = differing or range(len(columns))
    single = [place for place in candidates if columns[place].ndim == 1]
    if not single or len(differing) > 1:
        return np.arange(len(sets), dtype=np.float64), "set"
    paths = jax.tree_util.tree_flatten_with_path(sets[0])[0]
    words = jax.tree_util.keystr(paths[single[0]][0], simple=True, separator=".").strip(".").split(".")
    *parts, name = [word for word in words if word not in ("sets", "set")]  # the fields of sets that hold sets
    name = {"bound": "radius"}.get(name, name)
    return columns[single[0]].astype(np.float64), f"{name} of {'.'.join(parts)}" if parts else name


def checked_rows(rows: Iterable[npt.ArrayLike] | None, objective: Objective) -> list[HostArray] | None:
    """The choices of rows as arrays; raises where there is none, or one is empty."""
    if rows is None:
        return None
    if not isinstance(objective, FiniteSum):
        raise TypeError(f"rows: only a FiniteSum has rows, and the objective is {type(objective).__name__}")
    if objective.rows is not None or objective.indices is not None:
        raise ValueError("rows: the objective has rows or indices of its own; give FiniteSum the data alone")
    if not isinstance(rows, Iterable):
        raise TypeError(f"rows must be arrays of row numbers, as fw.rows.folds(n, 10) gives them, got {rows!r}")
    choices = []
    for place, numbers in enumerate(rows):
        if isinstance(numbers, tuple) and len(numbers) == 2 and all(np.ndim(part) == 1 for part in numbers):
            raise TypeError(
                f"rows: choice {place} is a pair of vectors, as scikit-learn's splitters give them; give the rows to "
                "learn from alone: [learnt for learnt, _ in splitter.split(X)]"
            )
        try:
            array = np.asarray(numbers)
        except ValueError:
            raise TypeError(f"rows: choice {place} must be a vector of row numbers, got {numbers!r:.200}") from None
        if array.dtype == bool and array.shape == (objective.total,):
            array = np.flatnonzero(array)
        if array.size == 0:
            raise ValueError(f"rows: choice {place} names no row; leave it out, or take fewer folds")
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise TypeError(
                f"rows: choice {place} must be a vector of row numbers, or a mask of all {objective.total} rows, got "
                f"{array.dtype}{array.shape}{'; let one choice alone be [numbers]' if array.ndim == 0 else ''}"
            )
        if array.min() < 0 or array.max() >= objective.total:
            raise ValueError(
                f"rows: choice {place} names row {array.max() if array.max() >= objective.total else array.min()}, and "
                f"the data have rows 0..{objective.total - 1}"
            )
        choices.append(array)
    if not choices:
        raise ValueError("rows holds no choice of rows; give arrays of row numbers, or None for all rows")
    return choices
