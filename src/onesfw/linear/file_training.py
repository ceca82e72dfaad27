"""Training over the passes of a file: the loop, its state on disk, and its end by Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onesfw.data.batch import START, Position
from onesfw.data.chunks import Chunk, order_of
from onesfw.data.passes import Passes
from onesfw.data.prepare import Prepared
from onesfw.data.shuffle import Shuffler
from onesfw.engine.checkpoint import REMEDY
from onesfw.files import read_tensors, write_tensors
from onesfw.progress import PassesBar

if TYPE_CHECKING:
    import numpy as np

    from onesfw.linear import Learner

INTERVAL = 10.0  # seconds between saves, at least
SHARE = 20.0  # a save that takes a second is made every 20 seconds at most
STATE = "state.safetensors"
FORMAT, VERSION = "onesfw.fit", 1


@dataclass
class Progress:
    """How far a run has come: whole passes, and in the present one chunks, the place they end at, rows and loss."""

    sweep: int = 0
    chunk: int = 0
    position: Position = START
    proof: str = ""
    rows: int = 0
    loss: float = 0.0
    rows_of_pass: int = 0
    """Rows of the first pass, 0 until it is over."""
    first_rows: int = 0
    first_loss: float = 0.0
    skipped: int = 0
    seconds: float = 0.0
    pass_seconds: list[float] = field(default_factory=list)
    """Seconds of the passes that are over."""

    def learnt(self, chunk: Chunk, loss: float) -> None:
        """Count a chunk."""
        self.chunk += 1
        self.position, self.proof = chunk.end, chunk.proof
        self.rows += len(chunk)
        self.loss += loss
        if self.sweep == 0:
            self.first_rows, self.first_loss = self.rows, self.loss

    def turn(self) -> None:
        """Begin the next pass."""
        self.pass_seconds.append(self.seconds - sum(self.pass_seconds))
        self.rows_of_pass = self.rows
        self.sweep, self.chunk, self.rows, self.loss = self.sweep + 1, 0, 0, 0.0
        self.position, self.proof = START, ""

    @property
    def progressive_loss(self) -> float | None:
        """The mean loss of each row before it was first learnt."""
        return self.first_loss / self.first_rows if self.first_rows else None

    @property
    def all_rows(self) -> int:
        """Rows learnt, those of earlier passes too."""
        return self.sweep * self.rows_of_pass + self.rows


@dataclass
class Saves:
    """A run's state in a folder, one file, written whole or not at all."""

    folder: Path
    tell: Callable[[str], None]
    """Gets a sentence where a save fails."""
    last: float = 0.0
    cost: float = 0.0

    def load(self) -> tuple[Progress, Prepared, dict[str, np.ndarray]] | None:
        """What was saved last; None where nothing was."""
        path = self.folder / STATE
        self.last = time.monotonic()
        for left in self.folder.glob(f".{STATE}.*.tmp"):  # by a run that was killed while it saved
            left.unlink(missing_ok=True)
        if not path.exists():
            return None
        try:
            content, tensors = read_tensors(path, FORMAT, VERSION, "state")
            progress = Progress(**content["progress"])
            progress.position = (progress.position[0], progress.position[1])
            return progress, Prepared.from_json(content["prepared"]), tensors
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"checkpoint: {path} is damaged; {REMEDY}") from error

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() - self.last >= max(INTERVAL, SHARE * self.cost)

    def save(self, progress: Progress, prepared: Prepared, learner: Learner) -> None:
        """Save the run as it is; where the disk refuses, say so, and go on with the earlier save."""
        begun = time.monotonic()
        content = {"progress": asdict(progress), "prepared": prepared.to_json()}
        try:
            write_tensors(self.folder / STATE, FORMAT, VERSION, content, learner.tensors())
        except OSError as error:
            self.tell(f"checkpoint: {error.strerror or error}; the run goes on, and the earlier save is kept")
        self.last = time.monotonic()
        self.cost = self.last - begun


def train(
    passes: Passes,
    learner: Learner,
    progress: Progress,
    *,
    sweeps: int,
    seed: int,
    saves: Saves | None,
    bar: PassesBar,
    stop: Callable[[], bool],
) -> bool:
    """Learn `sweeps` passes from where `progress` stands; whether they were all done, or `stop` ended the run.

    The order of a chunk's rows depends on the seed, the pass and the chunk alone, and a save lies between chunks:
    a run that goes on from one ends bit for bit as if it had not been interrupted.
    """
    clock, size = time.perf_counter(), passes.input.text_size()
    begun_with, shuffler = progress.all_rows, Shuffler()
    before = progress.seconds
    while progress.sweep < sweeps and not stop():
        with closing(passes.chunks(progress.chunk, progress.position, progress.proof, stop)) as chunks:
            for chunk in chunks:
                order = order_of(len(chunk), passes.buffer, seed, progress.sweep, progress.chunk)
                progress.learnt(chunk, learner.learn(*shuffler.shuffled(chunk, order)))
                progress.skipped, progress.seconds = passes.skipped, before + time.perf_counter() - clock
                rate = (progress.all_rows - begun_with) / max(1e-9, progress.seconds - before)
                loss, total = progress.loss / progress.rows, expected(progress, sweeps, size)
                bar.report(progress.sweep, progress.all_rows, rate, loss, total)
                if stop():
                    break
                if saves is not None and saves.due():
                    saves.save(progress, passes.prepared, learner)
        if not stop():
            if not progress.rows:
                raise ValueError(f"{passes.input.name} holds no rows to learn from")
            progress.seconds = before + time.perf_counter() - clock
            progress.turn()
    progress.skipped, progress.seconds = passes.skipped, before + time.perf_counter() - clock
    if saves is not None and learner.steps:
        saves.save(progress, passes.prepared, learner)
    return progress.sweep >= sweeps


def expected(progress: Progress, sweeps: int, size: int | None) -> float | None:
    """Rows of all passes, as far as can be said."""
    if progress.rows_of_pass:
        return sweeps * progress.rows_of_pass
    if size and progress.position[0]:
        return sweeps * progress.rows * max(1.0, size / progress.position[0])
    return None


def training_record(progress: Progress, passes: int, seed: int, schedule: str) -> dict[str, Any]:
    """Figures of a run that its model keeps."""
    return {
        "rows": progress.first_rows,
        "passes": passes,
        "steps": progress.all_rows,
        "progressive_loss": progress.progressive_loss,
        "skipped": progress.skipped,
        "seed": seed,
        "schedule": schedule,
    }
