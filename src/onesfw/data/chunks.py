"""Chunks: the buffers that rows are shuffled in, gathered batch by batch from a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from onesfw.data.batch import START, Batch, Position, joined, unit_rows
from onesfw.data.labels import Targets
from onesfw.data.prepare import Source

MOST_ENTRIES = 1 << 22  # of a chunk, whatever its rows: 32 MB in single precision


@dataclass(frozen=True)
class Chunk:
    """Rows and their targets, ready to be learnt."""

    rows: Any
    targets: np.ndarray
    end: Position
    proof: str = ""

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        rows = self.rows
        return rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes + self.targets.nbytes


def read_chunks(
    source: Source,
    targets: Targets,
    *,
    normalize: bool,
    buffer: int,
    start: Position = START,
    proof: str = "",
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Chunk]:
    """Batches joined until there are `buffer` rows or MOST_ENTRIES entries; where chunks end depends on the data alone.

    `stop` is asked before each batch: a chunk that is not full when it says so is dropped, for it could not be found
    again.
    """
    parts: list[tuple[Any, np.ndarray]] = []
    count = entries = 0
    last: Batch | None = None
    for batch in source.batches(start, proof):
        if stop():
            return
        rows, values = targets.of(batch, source.bad)
        if len(values):
            parts.append((unit_rows(rows) if normalize else rows, values))
        count, entries, last = count + len(values), entries + rows.nnz, batch
        if parts and (count >= buffer or entries >= MOST_ENTRIES):
            yield assembled(parts, last)
            parts, count, entries = [], 0, 0
    if parts and last is not None:
        yield assembled(parts, last)


def assembled(parts: list[tuple[Any, np.ndarray]], last: Batch) -> Chunk:
    """One chunk of several batches."""
    rows = joined([part[0] for part in parts], last.rows.shape[1])
    return Chunk(rows, np.concatenate([part[1] for part in parts]), last.end, last.proof)


def order_of(count: int, buffer: int, seed: int, sweep: int, place: int) -> np.ndarray | None:
    """The order in which a chunk's rows are learnt, which (seed, pass, chunk) decide; None: as they come."""
    return None if buffer <= 1 else np.random.default_rng([seed, sweep, place]).permutation(count)
