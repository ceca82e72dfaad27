"""What a training run shows while it runs: rows, rows a second, the running loss; on the error stream."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Meter:
    """A Rich bar over the rows of all passes, whose number may not be known; silent when `show` is false."""

    def __init__(self, show: bool, passes: int) -> None:
        self.passes = passes
        self.bar: Progress | None = None
        if show:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f} rows"),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
            )
            self.task = self.bar.add_task("compiling", total=None, note="")

    def __enter__(self) -> Meter:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    def show(self, sweep: int, rows: int, rate: float, loss: float, total: float | None) -> None:
        """The state after a chunk: the pass from 0 on, the rows of all passes, and the loss of this pass's rows."""
        if self.bar:
            # In the first pass each row's loss is taken before the row is learnt: an honest estimate on unseen rows.
            name = "loss on unseen rows" if sweep == 0 else "loss"
            self.bar.update(
                self.task,
                description=f"pass {sweep + 1}/{self.passes}",
                completed=rows,
                total=total,
                note=f"{rate:>11,.0f} rows/s  {name} {loss:.5f}",
            )
