"""Progress bars, on the terminal's error stream."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

WIDEST = 10_000
LONGEST_BAR, SHORTEST_BAR = 40, 8


class RateColumn(ProgressColumn):
    """Steps, or rows, per second."""

    def __init__(self, unit: str) -> None:
        super().__init__(Column(no_wrap=True))
        self.unit = unit

    def render(self, task: Task) -> Text:
        """The rate, in a width that does not jump."""
        speed = task.finished_speed or task.speed or 0.0
        return Text(f"{speed:>12,.0f} {self.unit}/s", style="progress.data.speed")


class NoteColumn(TextColumn):
    """A word or two, or the figures of the moment."""

    def __init__(self) -> None:
        super().__init__("{task.fields[note]}")


class FittedProgress(Progress):
    """Rich's display of a label, a bar and further columns: those that do not fit are left out, and none is cut."""

    def __init__(self, *columns: ProgressColumn, console: Console) -> None:
        self.terminal = console
        super().__init__(*columns, console=console)

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """The columns that fit: the bar shrinks, then goes, then the last columns; the label and the note stay."""
        tasks, columns = list(tasks), self.columns
        _, bar, *others = columns
        wide = self.terminal.options.update(width=WIDEST)
        try:
            for dropped in [bar, *(column for column in reversed(others) if not isinstance(column, NoteColumn)), None]:
                table = super().make_tasks_table(tasks)
                give = LONGEST_BAR - SHORTEST_BAR if bar in self.columns else 0
                if Measurement.get(self.terminal, wide, table).maximum - give <= self.terminal.width:
                    break
                self.columns = tuple(column for column in self.columns if column is not dropped)
        finally:
            self.columns = columns
        return table


class Bar:
    """A label, a bar and further columns, shown between `with` and its end; silent when `show` is false.

    On a narrow terminal the bar is left out first, then the columns from the last on, but for the note.
    """

    def __init__(self, show: bool, label: str, total: float | None, *columns: ProgressColumn, note: str = "") -> None:
        self.lock = threading.Lock()
        self.display: FittedProgress | None = None
        if show:
            bar = BarColumn(None, table_column=Column(max_width=LONGEST_BAR))
            self.display = FittedProgress(TextColumn("{task.description}"), bar, *columns, console=Console(stderr=True))
            self.task = self.display.add_task(label, total=total, note=note)

    def __enter__(self) -> Self:
        if self.display is not None:
            self.display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.display is not None:
            self.display.stop()

    def update(
        self,
        *,
        advance: float | None = None,
        completed: float | None = None,
        total: float | None = None,
        description: str | None = None,
        note: str | None = None,
    ) -> None:
        """Change what is shown; from any thread. What is left out stays as it is."""
        if self.display is None:
            return
        with self.lock:
            self.display.update(self.task, advance=advance, completed=completed, total=total, description=description)
            if note is not None:
                self.display.update(self.task, note=note)


class ProgressBar(Bar):
    """Steps done of `total`, their rate, the time left and a note."""

    def __init__(self, total: int, show: bool, label: str = "steps", unit: str = "steps") -> None:
        columns = (
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            RateColumn(unit),
            TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
            NoteColumn(),
        )
        super().__init__(show, label, total, *columns, note="compiling")

    def advance(self, steps: int) -> None:
        """Count steps as done."""
        self.update(advance=steps)

    def note(self, text: str) -> None:
        """Show a word or two beside the bar."""
        self.update(note=text)


class RunsBar(Bar):
    """Runs of a comparison: which one is under way, how many are done."""

    def __init__(self, total: int, show: bool) -> None:
        self.begun = 0
        super().__init__(
            show,
            "preparing",
            total,
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(Column(no_wrap=True)),
        )

    def begin(self, problem: str, method: str) -> None:
        """Say what is running now; what began before is done."""
        self.update(description=f"{problem}: {method}", completed=self.begun)
        self.begun += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.update(completed=self.begun, description="done")
        super().__exit__(kind, error, trace)


class PassesBar(Bar):
    """Rows of all passes over a stream, whose number may not be known, and the running loss."""

    def __init__(self, show: bool, passes: int) -> None:
        self.passes = passes
        columns = (
            TextColumn("{task.completed:,.0f} rows"),
            RateColumn("rows"),
            NoteColumn(),
            TimeElapsedColumn(Column(no_wrap=True)),
        )
        super().__init__(show, "compiling", None, *columns)

    def say(self, text: str) -> None:
        """Show what follows the passes."""
        self.update(description=f"pass {self.passes}/{self.passes}, then {text}", note="")

    def report(self, sweep: int, rows: int, loss: float, total: float | None) -> None:
        """The state after a chunk: the pass from 0 on, the rows of all passes, and the loss of this pass's rows."""
        # In the first pass each row's loss is taken before the row is learnt: an honest estimate on unseen rows.
        name = "loss on unseen rows" if sweep == 0 else "loss"
        self.update(
            description=f"pass {sweep + 1}/{self.passes}",
            completed=rows,
            total=total,
            note=f"{name} {loss:.5f}",
        )
