"""Chunks: the buffers that rows are shuffled in, gathered batch by batch from a source, and shuffled copies of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from onesfw.data.batch import START, Batch, Position, csr, joined, unit_rows
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


@njit(cache=True, nogil=True)
def gather(
    order: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    new_indptr: np.ndarray,
    new_indices: np.ndarray,
    new_data: np.ndarray,
) -> None:
    """Copy CSR rows in the given order; one loop for each array and indices without a sign, or it is 5 times slower."""
    end = np.uint64(0)
    new_indptr[0] = 0
    for place in range(order.shape[0]):
        begin = np.uint64(indptr[order[place]])
        count = np.uint64(indptr[order[place] + 1]) - begin
        for entry in range(count):
            new_indices[end + entry] = indices[begin + entry]
        for entry in range(count):
            new_data[end + entry] = data[begin + entry]
        end += count
        new_indptr[place + 1] = end


class Shuffler:
    """Shuffled copies of chunks: the learner then walks through memory in order, which is faster than jumping in it.

    One chunk's memory is used again for each: fresh memory would cost as much as the copying.
    """

    def __init__(self) -> None:
        self.buffers: dict[str, np.ndarray] = {}

    def shuffled(self, chunk: Chunk, order: np.ndarray | None) -> tuple[Any, np.ndarray]:
        """The chunk's rows and targets in the given order; the rows are overwritten by the next call."""
        rows = chunk.rows
        if order is None:
            return rows, chunk.targets
        indptr = self.room("indptr", rows.indptr)
        indices, data = self.room("indices", rows.indices), self.room("data", rows.data)
        gather(order, rows.indptr, rows.indices, rows.data, indptr, indices, data)
        return csr(data, indices, indptr, rows.shape[1]), chunk.targets[order]

    def room(self, name: str, like: np.ndarray) -> np.ndarray:
        """A part of a buffer, of the size and type of an array."""
        buffer = self.buffers.get(name)
        if buffer is None or len(buffer) < len(like) or buffer.dtype != like.dtype:
            buffer = self.buffers[name] = np.empty(len(like) + len(like) // 8, like.dtype)
        return buffer[: len(like)]
