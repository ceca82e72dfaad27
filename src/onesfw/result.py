"""What comes out of a run: the point, how good it is, what it cost, and how it got there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from onesfw.status import Status
from onesfw.trees import Tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


@dataclass(frozen=True)
class Result:
    """The outcome of `minimize` or `maximize`.

    `x` is the paper's output: x_{T+1}, or x_o in the non-convex setting (the certified last iterate after a stop on
    `gap_tol`), or the mean of the iterates where a method returns that. `value` and `gap` belong to `x` and come from a
    full pass or from independent samples; they are None where nothing was evaluated. The trace follows x_t, or that
    mean. With replicates, x, x_last, value, gap, status and the trace have a leading axis.
    """

    x: Tree
    x_last: Tree
    status: Any
    value: Any
    value_stderr: Any
    gap: Any
    gap_stderr: Any
    steps: Any
    samples: Any
    gradients: Any
    hvps: Any
    lmo_calls: Any
    seconds: Any
    compile_seconds: float
    evaluation_seconds: Any
    trace: Trace
    algorithm: str
    sense: str
    replicates: int | None = None
    failed_step: Any = None
    """The step at which something became NaN or infinite."""
    state: Any = field(default=None, repr=False, compare=False)
    """The loop's last state (d_T in `state.estimate.d`, x_T in `state.previous`); not saved."""

    def __str__(self) -> str:
        from onesfw.report import text

        return text(self)

    def plot(self, path: str | Path | None = None, *, optimum: float | None = None) -> Figure:
        """Value and gap against samples, log-log where positive; median and the middle 80 % of replicates.

        Args:
            path: where to save the picture (PNG, PDF or SVG by its ending); None draws without saving.
            optimum: the optimal value, if known: the distance to it is drawn in place of the value.
        """
        from onesfw.report import plot

        return plot(self, path, optimum)

    def save(self, path: str | Path) -> None:
        """Write the result to a safetensors file, whole or not at all; `Result.load` reads it back."""
        from onesfw.storage import save_result

        save_result(self, path)

    @staticmethod
    def load(path: str | Path) -> Result:
        """Read a saved result; a damaged or foreign file raises a ValueError and executes nothing."""
        from onesfw.storage import load_result

        return load_result(path)


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


def stack(trees: list[Tree]) -> Tree:
    """Replicates' trees as one with a leading axis."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def status_name(status: Any) -> str:
    """One word or a count of words for printouts."""
    if isinstance(status, Status):
        return status.name.lower()
    kinds = sorted({s.name.lower() for s in status})
    return ", ".join(f"{kind} ({sum(s.name.lower() == kind for s in status)})" for kind in kinds)
