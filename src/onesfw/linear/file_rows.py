"""The rows of files and streams as the loop over passes wants them, and what learns from them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from onesfw.arguments import named
from onesfw.data.batch import joined
from onesfw.data.chunks import Chunk, Shuffler, order_of
from onesfw.data.passes import Passes
from onesfw.data.row_groups import GroupPasses
from onesfw.linear.defaults import largest_margins
from onesfw.linear.examples import Examples, examples, read_only
from onesfw.linear.learner import Learner, Settings
from onesfw.linear.pass_rows import Piece, Progress
from onesfw.linear.progressive_validation import RadiusCandidates
from onesfw.linear.scaling import divided
from onesfw.trees import HostArray, Rows


class FileRows:
    """The pieces of each pass over a file or stream: chunks, each shuffled."""

    def __init__(self, passes: Passes | GroupPasses, key: int, settings: Settings) -> None:
        self.passes, self.key, self.settings, self.shuffler = passes, key, settings, Shuffler()
        self.scales: HostArray | None = None
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
        """Rows in the types of the kernels, their columns divided by their scales."""
        settings = self.settings
        data = examples(rows, targets, None, settings.n_features, settings.loss_function, settings.labels)
        return divided(data, self.scales)

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


class Sample:
    """Some rows of a stream by which its model is judged: those that lie farthest out, and a random part of the rest.

    A mean over the rest stands for all of them; rows far out are rare, and one of them can outweigh a million others.

    Args:
        settings: of the models.
        key: the seed of the draw.
        tensors: the state of a sample that goes on.
    """

    FARTHEST, DRAWN = 1_000, 4_000

    def __init__(self, settings: Settings, key: int, tensors: dict[str, HostArray] | None = None) -> None:
        self.settings, self.key, self.seen = settings, key, 0
        empty = scipy.sparse.csr_array((0, settings.n_features))
        self.rows = examples(empty, np.zeros(0), None, settings.n_features, settings.loss_function)
        self.sizes, self.draws = np.zeros(0), np.zeros(0)
        if tensors is not None:
            found = {name: tensors[f"sample.{name}"] for name in ("indptr", "indices", "values", "targets")}
            matrix = scipy.sparse.csr_array(
                (found["values"], found["indices"].view(np.int32), found["indptr"]),
                (len(found["targets"]), settings.n_features),
            )
            self.rows = self.as_examples(matrix, found["targets"])
            self.sizes, self.draws = tensors["sample.sizes"], tensors["sample.draws"]
            self.seen = int(tensors["sample.seen"][0])
            if not len(self.sizes) == len(self.draws) == self.rows.size <= self.seen:
                raise ValueError("a sample has a size and a draw for each row")

    def as_examples(self, matrix: Rows, targets: HostArray) -> Examples:
        """Rows in the types of the kernels."""
        settings = self.settings
        return examples(matrix, targets, None, settings.n_features, settings.loss_function, settings.labels)

    def add(self, data: Examples) -> None:
        """Take in the next rows of the stream."""
        sizes = largest_margins(data, self.settings.set)
        draws = np.random.default_rng([self.key, self.seen]).random(data.size)
        self.seen += data.size
        new = np.arange(data.size)
        if len(self.sizes) == self.FARTHEST + self.DRAWN:
            far = self.farthest(self.sizes)
            new = np.flatnonzero((sizes > self.sizes[far].min()) | (draws < np.delete(self.draws, far).max()))
        if not len(new):
            return
        sizes, draws = np.append(self.sizes, sizes[new]), np.append(self.draws, draws[new])
        rest = np.delete(np.arange(len(sizes)), self.farthest(sizes))
        out = rest[np.argsort(draws[rest], kind="stable")[self.DRAWN :]]
        kept = np.delete(np.arange(len(sizes)), out)
        parts = [self.rows.matrix, data.matrix[new]] if self.rows.size else [data.matrix[new]]
        matrix = joined(parts, data.n_features)[kept]
        targets = np.append(self.rows.targets, data.targets[new])[kept]
        self.rows, self.sizes, self.draws = self.as_examples(matrix, targets), sizes[kept], draws[kept]

    def farthest(self, sizes: HostArray) -> HostArray:
        """The places of the rows that can have the largest margins."""
        return np.argsort(-sizes, kind="stable")[: self.FARTHEST]

    def weighted(self) -> Examples:
        """The rows with weights by which their mean stands for that of the stream."""
        weights = np.ones(self.rows.size)
        far = self.farthest(self.sizes)
        rest = np.delete(np.arange(self.rows.size), far)
        weights[rest] = (self.seen - len(far)) / max(1, len(rest))
        return replace(self.rows, weights=read_only(weights))

    def tensors(self) -> dict[str, HostArray]:
        """The whole state."""
        rows = {name: getattr(self.rows, name) for name in ("indptr", "indices", "values", "targets")}
        own = {"sizes": self.sizes, "draws": self.draws, "seen": np.array([self.seen])}
        return {f"sample.{name}": np.array(array) for name, array in (rows | own).items()}


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
        scales = self.source.scales
        own = self.learner.tensors() | self.sample.tensors()
        return own | ({} if scales is None else {"scales": scales})
