"""A progress bar over the runs of a comparison, on the terminal's error stream."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Bar:
    """A bar over `total` runs; silent when `show` is false."""

    def __init__(self, total: int, show: bool) -> None:
        self.begun = 0
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=not show,
        )
        self.task = self.progress.add_task("preparing", total=total)

    def begin(self, subject: str, method: str) -> None:
        """Say what is running now; what began before is done."""
        self.progress.update(self.task, description=f"{subject}: {method}", completed=self.begun)
        self.begun += 1

    def __enter__(self) -> Bar:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.progress.update(self.task, completed=self.begun, description="done")
        self.progress.stop()
