"""A result as one JSON object."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from onesfw.results.jsonable import plain
from onesfw.results.report import nonzeros, suboptimality
from onesfw.results.result import Result
from onesfw.results.status import Status
from onesfw.results.trace import TRACE_FIELDS

COUNTS = ("steps", "samples", "gradients", "hvps", "lmo_calls", "seconds", "evaluation_seconds", "failed_step")
MEASURES = ("value", "value_stderr", "gap", "gap_stderr")


def as_json(result: Result, name: str, optimum: float | None, files: dict[str, str | None]) -> str:
    """Everything but x, as strictly valid JSON: what was not measured, or is no finite number, is null.

    With replicates, each measure is a list with one entry per replicate, and a trace column a list of lists.
    """
    nonzero, size = nonzeros(result)
    states = [result.status] if isinstance(result.status, Status) else list(result.status)
    statuses = [state.name.lower() for state in states]
    alone = result.replicates is None
    content: dict[str, Any] = {
        "problem": name,
        "sense": result.sense,
        "algorithm": result.algorithm,
        "replicates": result.replicates,
        "status": statuses[0] if alone else statuses,
        "status_text": str(states[0]) if alone else [str(state) for state in states],
        **{field: plain(getattr(result, field)) for field in MEASURES},
        "optimum": plain(optimum),
        "suboptimality": None if optimum is None else plain(suboptimality(result.value, optimum, result.sense)),
        **{field: plain(getattr(result, field)) for field in COUNTS},
        "compile_seconds": plain(result.compile_seconds),
        "nonzeros": plain(nonzero),
        "size": size,
        "trace": {field: plain(trace_column(result, field)) for field in TRACE_FIELDS},
        **files,
    }
    return json.dumps(content, allow_nan=False)


def trace_column(result: Result, field: str) -> Any:
    """A column of the trace; the −1 that pads the counts of replicates that ended early becomes null."""
    column = np.asarray(getattr(result.trace, field))
    if np.issubdtype(column.dtype, np.integer) and (column < 0).any():
        column = column.astype(object)
        column[column < 0] = None
    return column
