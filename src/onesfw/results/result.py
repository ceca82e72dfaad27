"""What comes out of a run: the point, how good it is, what it cost, and how it got there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onesfw.results import report, result_file
from onesfw.results.trace import Trace
from onesfw.trees import Tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        return report.text(self)

    def plot(self, path: str | Path | None = None, *, optimum: float | None = None) -> Figure:
        """Value and gap against samples, log-log where positive; median and the middle 80 % of replicates.

        Args:
            path: where to save the picture (PNG, PDF or SVG by its ending); None draws without saving.
            optimum: the optimal value, if known: the distance to it is drawn in place of the value.
        """
        return report.plot(self, path, optimum)

    def save(self, path: str | Path) -> None:
        """Write the result to a safetensors file, whole or not at all; `Result.load` reads it back."""
        result_file.save_result(self, path)

    @staticmethod
    def load(path: str | Path) -> Result:
        """Read a saved result; a damaged or foreign file raises a ValueError and executes nothing."""
        return result_file.read_result(path, Result)
