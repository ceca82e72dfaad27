"""The progress bar: steps done, rate, time left and the last value, on the terminal's error stream."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class RateColumn(TextColumn):
    """Steps per second."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        """The rate, in a width that does not jump."""
        speed = task.finished_speed or task.speed or 0.0
        return Text(f"{speed:>12,.0f} steps/s", style="progress.data.speed")


class ProgressBar:
    """A Rich bar over `total` steps; silent when `show` is false."""

    def __init__(self, total: int, show: bool, label: str = "steps") -> None:
        self.lock = threading.Lock()
        self.bar: Progress | None = None
        if show:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                RateColumn(),
                TimeRemainingColumn(elapsed_when_finished=True),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self.task = self.bar.add_task(label, total=total, note="compiling")

    def __enter__(self) -> ProgressBar:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    def advance(self, steps: int) -> None:
        """Count steps as done."""
        if self.bar:
            with self.lock:
                self.bar.advance(self.task, steps)

    def note(self, text: str) -> None:
        """Show a word or two beside the bar."""
        if self.bar:
            with self.lock:
                self.bar.update(self.task, note=text)
