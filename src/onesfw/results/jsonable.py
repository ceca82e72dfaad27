"""Numbers and results as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import numpy as np

from onesfw.results.report import named_leaves, nonzeros, ranks, suboptimality
from onesfw.results.status import Status
from onesfw.results.trace import TRACE_FIELDS
from onesfw.trees import Tree

if TYPE_CHECKING:
    from onesfw.results.result import Result

Jsonable = None | bool | int | float | str | Sequence["Jsonable"] | Mapping[str, "Jsonable"]

MEASURES = ("value", "value_stderr", "gap", "gap_stderr")
COUNTS = ("steps", "samples", "gradients", "hvps", "lmo_calls", "seconds", "evaluation_seconds", "failed_step")


def plain(value: object) -> Jsonable:
    """A number, a word, an array, None, or lists and dicts of them in JSON's terms: no finite number becomes null."""
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        value = np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"JSON has no {type(value).__name__}")


def result_content(result: Result) -> dict[str, Jsonable]:
    """Everything about a result, x included, in JSON's terms: what was not measured, or is not finite, is null.

    With replicates, each measure is a list with one entry per replicate, and a trace column a list of lists.
    """
    nonzero, size = nonzeros(result)
    states = [result.status] if isinstance(result.status, Status) else list(result.status)
    statuses = [state.name.lower() for state in states]
    sentences = [str(state) for state in states]
    alone = result.replicates is None
    far = None if result.optimum is None else suboptimality(result.value, result.optimum, result.sense)
    found = ranks(result)
    return {
        "problem": result.problem or None,
        "sense": result.sense,
        "algorithm": result.algorithm,
        "replicates": result.replicates,
        "status": statuses[0] if alone else statuses,
        "status_text": sentences[0] if alone else sentences,
        **{field: plain(getattr(result, field)) for field in MEASURES},
        "optimum": plain(result.optimum),
        "suboptimality": plain(far),
        **{field: plain(getattr(result, field)) for field in COUNTS},
        "compile_seconds": plain(result.compile_seconds),
        "nonzeros": plain(nonzero),
        "size": size,
        "rank": plain(found[0][1]) if len(found) == 1 else None,
        "x": plain(result.x),
        "x_last": plain(result.x_last),
        "trace": {field: trace_column(result, field) for field in TRACE_FIELDS},
    }


def trace_column(result: Result, field: str) -> Jsonable:
    """A column of the trace; the −1 that pads the counts of replicates that ended early becomes null."""
    column = np.asarray(getattr(result.trace, field))
    if np.issubdtype(column.dtype, np.integer) and (column < 0).any():
        column = column.astype(np.float64)
        column[column < 0] = np.nan
        return [[None if np.isnan(v) else int(v) for v in row] for row in np.atleast_2d(column)]
    return plain(column)


def entries_table(x: Tree, replicates: int | None) -> str:
    """x as CSV: a line for each entry, with the numbers that lead to it, the part of a tree, and the replicate."""
    leaves = named_leaves(x)
    places = max((leaf.ndim for _, leaf in leaves), default=0) - (0 if replicates is None else 1)
    names = [] if replicates is None else ["replicate"]
    names += ["part"] if len(leaves) > 1 else []
    names += ["row", "column"] if places == 2 else ["index"] if places == 1 else [f"index_{k}" for k in range(places)]
    written = [",".join([*names, "value"])]
    for name, leaf in leaves:
        for place in np.ndindex(leaf.shape):
            numbers = [str(number) for number in place]
            head = [] if replicates is None else [numbers.pop(0)]
            part = ['"' + name.replace('"', '""') + '"'] if len(leaves) > 1 else []
            padding = [""] * (places - len(numbers))
            written.append(",".join([*head, *part, *numbers, *padding, repr(float(leaf[place]))]))
    return "\n".join(written) + "\n"
