"""The evaluations of a run as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

TRACE_FIELDS = (
    "step", "samples", "gradients", "hvps", "lmo_calls", "seconds", "value", "value_stderr", "gap", "gap_stderr",
)  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """The evaluations of a run as arrays; with replicates they have a leading axis, padded by NaN after a stop."""

    step: np.ndarray
    samples: np.ndarray
    gradients: np.ndarray
    hvps: np.ndarray
    lmo_calls: np.ndarray
    seconds: np.ndarray
    value: np.ndarray
    value_stderr: np.ndarray
    gap: np.ndarray
    gap_stderr: np.ndarray

    def __len__(self) -> int:
        return int(self.step.shape[-1])


def make_trace(rows: list[dict[str, Any]]) -> Trace:
    """One run's rows as arrays; under `vmap` value and gap have the replicates as their leading axis."""
    columns = {}
    for name in TRACE_FIELDS:
        column = np.asarray([row[name] for row in rows])
        columns[name] = column if column.ndim == 1 else column.T
    return Trace(**columns)


def stack_traces(traces: list[Trace]) -> Trace:
    """Replicates' traces as one, padded by NaN (counts by −1) where some ended early."""
    longest = max(len(trace) for trace in traces)

    def padded(column: np.ndarray) -> np.ndarray:
        filler = np.nan if np.issubdtype(column.dtype, np.floating) else -1
        return np.concatenate([column, np.full(longest - column.size, filler, column.dtype)])

    return Trace(**{name: np.stack([padded(getattr(t, name)) for t in traces]) for name in TRACE_FIELDS})
