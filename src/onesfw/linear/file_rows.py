"""The rows of files and streams as the loop over passes wants them, and what learns from them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from onesfw.arguments import named
from onesfw.data.chunks import Chunk, Shuffler, order_of
from onesfw.data.passes import Passes
from onesfw.data.row_groups import GroupPasses
from onesfw.linear.examples import Examples, examples
from onesfw.linear.learner import Learner, Settings
from onesfw.linear.pass_rows import Piece, Progress
from onesfw.linear.progressive_validation import RadiusCandidates
from onesfw.linear.scaling import divided
from onesfw.linear.shifts import shifted
from onesfw.linear.stream_sample import Sample
from onesfw.trees import HostArray, Rows


class FileRows:
    """The pieces of each pass over a file or stream: chunks, each shuffled."""

    def __init__(self, passes: Passes | GroupPasses, key: int, settings: Settings) -> None:
        self.passes, self.key, self.settings, self.shuffler = passes, key, settings, Shuffler()
        self.scales: HostArray | None = None
        self.means: HostArray | None = None
        self.begun: tuple[Chunk | None, Generator[Chunk, None, None]] | None = None

    def first_rows(self, stop: Callable[[], bool]) -> Examples:
        """The first rows, before any is learnt: what scales and radii are taken from."""
        chunks = self.chunks(Progress(), stop)
        chunk = next(chunks, None)
        self.begun = chunk, chunks
        if chunk is None:
            raise ValueError(f"{named('source')} holds no rows to learn from")
        return self.as_examples(chunk.rows, chunk.targets)

    def chunks(self, progress: Progress, stop: Callable[[], bool]) -> Generator[Chunk, None, None]:
        """The chunks of the present pass from where `progress` stands; that of `first_rows` is not read again."""
        if self.begun is not None and not (progress.sweep or progress.piece):
            (first, rest), self.begun = self.begun, None
            try:
                if first is not None:
                    yield first
                yield from rest
            finally:
                rest.close()
        elif isinstance(self.passes, GroupPasses):
            yield from self.passes.chunks(progress.sweep, progress.piece, stop)
        else:
            yield from self.passes.chunks(
                progress.piece, progress.position, progress.proof, stop, progress.sweep
            )  # fmt: skip

    def as_examples(self, rows: Rows, targets: HostArray) -> Examples:
        """Rows in the types of the kernels: columns divided by their scales, means of those far from 0 taken off."""
        settings = self.settings
        data = examples(rows, targets, None, settings.n_features, settings.loss_function, settings.labels)
        return shifted(divided(data, self.scales), self.means)

    def pieces(self, progress: Progress, stop: Callable[[], bool]) -> Generator[Piece, None, None]:
        """The pieces of the present pass from where `progress` stands."""
        with closing(self.chunks(progress, stop)) as chunks:
            for place, chunk in enumerate(chunks, progress.piece):
                order = order_of(len(chunk), self.passes.buffer, self.key, progress.sweep, place)
                data = self.as_examples(*self.shuffler.shuffled(chunk, order))
                yield Piece(data, np.arange(data.size), chunk.end, chunk.proof, chunk.nbytes)

    def skipped(self) -> int:
        """Bad rows that the first pass left out so far."""
        return self.passes.skipped


def learner_for(
    settings: Settings, candidates: tuple[float, ...], tensors: dict[str, HostArray] | None
) -> Learner | RadiusCandidates:
    """What learns: models of one radius, or of several that are compared; from a saved state where there is one."""
    if candidates:
        return RadiusCandidates(settings, candidates, tensors)
    return Learner(settings) if tensors is None else Learner.from_tensors(settings, tensors)


@dataclass(frozen=True)
class Learning:
    """A learner whose state holds the scales of the columns and a sample of the rows too."""

    learner: Learner | RadiusCandidates
    source: FileRows
    sample: Sample
    progress: Progress

    def learn_examples(self, data: Examples, order: HostArray) -> HostArray:
        """A step for each row of the order; the sums of the losses before, one a model."""
        totals = self.learner.learn_examples(data, order)
        if not self.progress.sweep:
            self.sample.add(data)
        return totals

    def tensors(self) -> dict[str, HostArray]:
        """The whole state."""
        columns = {"scales": self.source.scales, "means": self.source.means}
        own = self.learner.tensors() | self.sample.tensors()
        return own | {name: array for name, array in columns.items() if array is not None}
