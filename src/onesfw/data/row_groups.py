"""Many Parquet files as one table: row groups in an order that (key, pass) decides, decoded ahead in threads.

What a pass yields depends on the files, the key, the pass and the buffer alone: not on where the files are, nor on how
many threads decode, nor on whether rows come from the files, from memory or from the cache.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from onesfw.data import passes
from onesfw.data.batch import BadRows, csr, joined, unit_rows
from onesfw.data.blocks import Input
from onesfw.data.cache import CacheWriter, RowCache, usable_cache
from onesfw.data.chunk_digests import ChunkDigests
from onesfw.data.chunks import MOST_ENTRIES, Chunk
from onesfw.data.encoding import Encoding
from onesfw.data.footers import Footer, read_footer, small_files
from onesfw.data.labels import Targets
from onesfw.data.prepare import Prepared, ReadOptions, check_alike, find_format, prepare
from onesfw.data.sources import Files, RowsFrom
from onesfw.data.tables import ParquetTable, TableSource

AHEAD = 512 << 20  # bytes of row groups, as the files count them, that are decoded at a time
T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class Group:
    """A row group: its file's number, its own in the file, its rows and its bytes before compression."""

    file: int
    number: int
    rows: int
    size: int


def grouped(source: RowsFrom, options: ReadOptions, buffer: int) -> bool:
    """Whether rows come by row groups: from several Parquet files that are to be shuffled."""
    if not isinstance(source, Files) or buffer <= 1:
        return False
    return find_format(source.inputs[0], options.format) == "parquet"


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ahead(function: Callable[[S], T], items: Iterable[S], threads: int) -> Iterator[T]:
    """function(item) in order, computed by so many threads, at most one item more than there are threads waiting."""
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="onesfw-reader")
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def read_groups(files: Files, options: ReadOptions, threads: int) -> list[Group]:
    """All row groups, from the footers; a file with other columns than the first is refused by its name."""
    groups: list[Group] = []
    first: Footer | None = None
    check_alike(files, options)
    small_files.clear()  # of a run that ended before it had read them
    for number, footer in enumerate(ahead(read_footer, files.inputs, threads)):
        first = first or footer
        alike = footer.schema.equals(first.schema) and footer.constants.keys() == first.constants.keys()
        if not alike and footer.columns() != first.columns():
            raise ValueError(
                f"{files.inputs[number].name} {unlike(first.columns(), footer.columns())}, unlike "
                f"{files.inputs[0].name}; all files need the same columns, by name and kind"
            )
        groups += [Group(number, place, rows, size) for place, (rows, size) in enumerate(footer.groups) if rows]
    if not groups:
        raise ValueError(f"{files.name} hold no rows")
    return groups


def unlike(first: dict[str, str], other: dict[str, str]) -> str:
    """The first difference between two files' columns, in words."""
    for name, kind in first.items():
        if name not in other:
            return f"has no column {name!r}"
        if other[name] != kind:
            return f"holds {other[name]} in column {name!r}, not {kind}"
    return f"has a column {next(name for name in other if name not in first)!r}"


class GroupPasses:
    """The chunks of each pass over many Parquet files.

    Args:
        files: the training files.
        options: how they are read.
        buffer: rows in a chunk, at least; a row group is not cut.
        key: the seed of the order.
        readers: threads that decode; None for one a core.
        cache: where the cache is or is to be: the first pass then goes to the files, and later ones to it.
        decided: what an earlier part of this run decided about the files.
        skipped: bad rows that it skipped.
        digests: of the row groups that it read.
    """

    def __init__(
        self,
        files: Files,
        options: ReadOptions,
        *,
        buffer: int,
        key: int,
        readers: int | None = None,
        cache: Path | None = None,
        decided: Prepared | None = None,
        skipped: int = 0,
        digests: Mapping[str, str] | None = None,
    ) -> None:
        self.files, self.options, self.buffer, self.key, self.path = files, options, buffer, key, cache
        self.readers = readers or cores()
        self.about = {**options.parts(files), "buffer": "row groups"}
        self.groups = read_groups(files, options, self.readers)
        self.readers = max(1, min(self.readers, AHEAD // max(1, max(group.size for group in self.groups))))
        self.prepared = decided or prepare(files, options)[0]
        self.cache = None if cache is None else usable_cache(cache, self.about)
        self.kept: dict[int, Chunk] | None = None
        self.unchanged = ChunkDigests(files.name, digests)
        self.skipped = skipped
        self.bad_examples: list[str] = []
        if self.cache is not None:
            self.skipped = self.cache.skipped

    def plan(self, sweep: int) -> list[list[int]]:
        """The row groups of each chunk of a pass."""
        order = np.random.default_rng([self.key, sweep]).permutation(len(self.groups)).tolist()
        return chunked(order, self.groups, self.buffer, len(self.prepared.encoding.columns))

    @property
    def at_hand(self) -> bool:
        """Whether the rows lie in memory or in a cache, so that another pass is cheap."""
        return self.kept is not None or self.cache is not None

    @property
    def digests(self) -> dict[str, str]:
        """Of the row groups that were read so far, for a run that goes on."""
        return self.unchanged.digests

    def chunks(
        self, sweep: int = 0, first: int = 0, stop: Callable[[], bool] = lambda: False
    ) -> Generator[Chunk, None, None]:
        """The chunks of a pass from the given one on; ends early when `stop` says so."""
        plan = self.plan(sweep)
        source = self.from_anywhere(plan, first, sweep)
        try:
            for place, wanted in enumerate(plan[first:], first):
                parts = [part for part in (next(source) for _ in wanted) if len(part)]
                if stop():
                    return
                if parts:
                    rows = joined([part.rows for part in parts], self.prepared.encoding.n_features)
                    yield Chunk(rows, np.concatenate([part.targets for part in parts]), (place + 1, 0))
            deque(source, maxlen=0)  # what comes after the last row group: the cache is put in its place
        finally:
            source.close()

    def from_anywhere(self, plan: list[list[int]], first: int, sweep: int) -> Generator[Chunk, None, None]:
        """The row groups of the plan's chunks from the given one on, from wherever they are at hand."""
        wanted = [place for chunk in plan[first:] for place in chunk]
        if self.cache is not None:
            where = {entry["end"][0]: number for number, entry in enumerate(self.cache.index)}
            yield from self.cache.some(where[place] for place in wanted)
        elif self.kept is not None:
            yield from (self.kept[place] for place in wanted)
        else:
            if sweep:
                self.files.check()
            if self.path is None:
                yield from self.read(wanted, keep=first == 0)
            else:
                yield from self.written(self.path, [place for chunk in plan for place in chunk], len(wanted))

    def read(self, wanted: Sequence[int], keep: bool) -> Iterator[Chunk]:
        """Row groups from the files; those of small files are kept."""
        kept: dict[int, Chunk] | None = {} if keep else None
        room = passes.KEPT
        count = 0
        for place, (chunk, bad) in zip(wanted, ahead(self.decode, wanted, self.readers), strict=True):
            room -= chunk.nbytes
            if kept is not None:
                kept[place] = chunk
            if room < 0:
                kept = None
            count += bad.count
            self.note(bad)
            self.unchanged.name = self.files.inputs[self.groups[place].file].name
            self.unchanged.check(place, chunk)
            yield chunk
        if keep:
            self.skipped = count
        self.kept = kept

    def written(self, path: Path, order: Sequence[int], wanted: int) -> Iterator[Chunk]:
        """Row groups from the files, which go into a cache too; the last `wanted` of them.

        A run that goes on in the middle of a pass reads its beginning again: the cache must have it.
        """
        writer = CacheWriter(path)
        count = 0
        try:
            for place, (chunk, bad) in enumerate(ahead(self.decode, order, self.readers)):
                writer.add(chunk)
                count += bad.count
                self.note(bad)
                if place >= len(order) - wanted:
                    yield chunk
            self.skipped = count
            writer.commit(self.about, self.prepared.to_json(), count, self.prepared.encoding.dtype)
            self.cache = RowCache(path, trusted=True)
        finally:
            writer.abandon()

    def note(self, bad: BadRows) -> None:
        """Remember some examples of bad rows."""
        for example in bad.examples:
            if len(self.bad_examples) < 3:
                self.bad_examples.append(f"{bad.name}, {example}")

    def decode(self, place: int) -> tuple[Chunk, BadRows]:
        """The rows of a row group, ready to be learnt."""
        group = self.groups[place]
        chunk, bad = decode(self.files.inputs[group.file], group.number, self.options, self.prepared)
        return replace(chunk, end=(place, 0)), bad


def chunked(order: Sequence[int], groups: Sequence[Group], buffer: int, columns: int) -> list[list[int]]:
    """Row groups in this order, joined until there are `buffer` rows or as many entries as a chunk may have."""
    chunks: list[list[int]] = [[]]
    rows = 0
    for place in order:
        if chunks[-1] and (rows >= buffer or rows * max(1, columns) >= MOST_ENTRIES):
            chunks.append([])
            rows = 0
        chunks[-1].append(place)
        rows += groups[place].rows
    return chunks


def decode(part: Input, number: int, options: ReadOptions, prepared: Prepared) -> tuple[Chunk, BadRows]:
    """The rows of a row group of a file, ready to be learnt, and those that are not."""
    encoding, wanted = prepared.encoding, Targets(prepared.labels, options.non_negative)
    bad = BadRows(part.name, options.skip_bad)
    table = ParquetTable(part, number)
    source = TableSource(table, bad, encoding, targets=True)
    rows, targets = [], []
    for batch in source.batches():
        matrix, values = wanted.of(batch, bad)
        rows.append(unit_rows(matrix) if encoding.normalize else matrix)
        targets.append(values)
    table.file.close()
    if not rows:
        rows, targets = [none(encoding)], [np.zeros(0)]
    return Chunk(joined(rows, encoding.n_features), np.concatenate(targets), (number, 0)), bad


def none(encoding: Encoding) -> Any:
    """No rows."""
    return csr(np.zeros(0, encoding.dtype), np.zeros(0, np.int32), np.zeros(1, np.int32), encoding.n_features)
