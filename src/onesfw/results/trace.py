"""The evaluations of a run as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onesfw.trees import Counts, Floats

if TYPE_CHECKING:
    from pandas import DataFrame

TRACE_FIELDS = (
    "step", "samples", "gradients", "hvps", "lmo_calls", "seconds", "value", "value_stderr", "gap", "gap_stderr",
)  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """The evaluations of a run as arrays; with replicates they have a leading axis, padded by NaN after a stop.

    Args:
        step: t, the steps that were done at each evaluation.
        samples: draws of z until then.
        gradients: evaluations of ∇F̃ or ∇h until then.
        hvps: Hessian-vector products until then.
        lmo_calls: calls of the set's linear oracle until then.
        seconds: wall time until then, compilation and evaluation left out.
        value: F(x_t).
        value_stderr: its standard error.
        gap: the Frank-Wolfe gap of x_t.
        gap_stderr: its standard error.

    Example:
        >>> import onesfw as fw
        >>> trace = fw.zoo.get("quadratic-face").run(steps=100, every=25).trace
        >>> trace.step.tolist(), len(trace)
        ([25, 50, 75, 100], 4)
    """

    step: Counts
    samples: Counts
    gradients: Counts
    hvps: Counts
    lmo_calls: Counts
    seconds: Floats
    value: Floats
    value_stderr: Floats
    gap: Floats
    gap_stderr: Floats

    def __len__(self) -> int:
        return int(self.step.shape[-1])

    def to_pandas(self) -> DataFrame:
        """The trace as a table of pandas, a row for each evaluation; replicates below one another, by number.

        Returns:
            A DataFrame with a column for each field, and `replicate` before them where there are several. Rows that
            only pad a replicate that ended early are left out.

        Raises:
            ImportError: where pandas is not installed.

        Example:
            >>> import onesfw as fw
            >>> table = fw.zoo.get("quadratic-face").run(steps=100, every=50, replicates=2).trace.to_pandas()
            >>> table[["replicate", "step"]].values.tolist()
            [[0, 50], [0, 100], [1, 50], [1, 100]]
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas needs pandas, which is not installed: pip install pandas") from error
        columns = {name: np.asarray(getattr(self, name)) for name in TRACE_FIELDS}
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
        wide = {name: np.broadcast_to(column, shape) for name, column in columns.items()}
        if len(shape) == 2:
            wide = {"replicate": np.broadcast_to(np.arange(shape[0])[:, None], shape), **wide}
        used = wide["step"].ravel() >= 0
        return pd.DataFrame({name: column.ravel()[used] for name, column in wide.items()})


def make_trace(rows: Sequence[Mapping[str, float | Floats | Counts]]) -> Trace:
    """One run's rows as arrays; under `vmap` value and gap have the replicates as their leading axis."""
    columns = {}
    for name in TRACE_FIELDS:
        column = np.asarray([row[name] for row in rows])
        columns[name] = column if column.ndim == 1 else column.T
    return Trace(**columns)


def stack_traces(traces: Sequence[Trace]) -> Trace:
    """Replicates' traces as one, padded by NaN (counts by −1) where some ended early."""
    longest = max(len(trace) for trace in traces)

    def counts(name: str) -> Counts:
        columns: list[Counts] = [getattr(trace, name) for trace in traces]
        return np.stack([np.concatenate([c, np.full(longest - c.size, -1, c.dtype)]) for c in columns])

    def measures(name: str) -> Floats:
        columns: list[Floats] = [getattr(trace, name) for trace in traces]
        return np.stack([np.concatenate([c, np.full(longest - c.size, np.nan, c.dtype)]) for c in columns])

    return Trace(
        counts("step"), counts("samples"), counts("gradients"), counts("hvps"), counts("lmo_calls"),
        measures("seconds"), measures("value"), measures("value_stderr"), measures("gap"), measures("gap_stderr"),
    )  # fmt: skip
