"""Passes over a file: the first one reads it, later ones come from memory or from the cache where there is one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

from onesfw.data.batch import START, Position
from onesfw.data.cache import CacheWriter, RowCache, usable_cache
from onesfw.data.chunk_digests import ChunkDigests
from onesfw.data.chunks import Chunk, read_chunks
from onesfw.data.labels import Targets
from onesfw.data.prepare import Prepared, ReadOptions, Source, inputs_of, prepare, reopen
from onesfw.data.sources import Files, RowsFrom

KEPT = 128 << 20  # bytes of rows that stay in memory where no cache is asked for


class Passes:
    """The chunks of each pass; what they are does not depend on where they come from.

    Args:
        source: the training file or stream.
        options: how it is read.
        buffer: rows in a chunk.
        cache: where the cache is or is to be.
        decided: what an earlier part of this run decided about the file.
        skipped: bad rows that it skipped.
        digests: of the chunks that it read.
    """

    def __init__(
        self,
        source: RowsFrom,
        options: ReadOptions,
        *,
        buffer: int,
        cache: Path | None = None,
        decided: Prepared | None = None,
        skipped: int = 0,
        digests: Mapping[str, str] | None = None,
    ) -> None:
        options.check()
        self.input, self.options, self.buffer, self.path = source, options, buffer, cache
        self.about = {**options.parts(source), "buffer": str(buffer)}
        # Nobody knows whether a stream is the one that was cached.
        self.cache = None if cache is None else usable_cache(cache, self.about, source.repeatable)
        self.kept: list[Chunk] | None = None
        # Blocks from Python may differ from pass to pass: their maker decides.
        self.unchanged = ChunkDigests(source.name, digests) if source.repeatable and inputs_of(source) else None
        self.source: Source | None = None
        self.prepared: Prepared
        self.skipped_before, self.counted = skipped, False
        if self.cache is not None:
            self.prepared = self.cache.prepared
            self.skipped_before, self.counted = self.cache.skipped, True
        elif decided is not None:
            self.prepared, self.source = decided, reopen(source, options, decided)
        else:
            self.prepared, self.source = prepare(source, options)
        self.targets = Targets(self.prepared.labels, options.non_negative)

    @property
    def at_hand(self) -> bool:
        """Whether the rows lie in memory or in a cache, so that another pass is cheap."""
        return self.kept is not None or self.cache is not None

    @property
    def digests(self) -> dict[str, str]:
        """Of the chunks that were read so far, for a run that goes on."""
        return {} if self.unchanged is None else self.unchanged.digests

    @property
    def skipped(self) -> int:
        """Bad rows that the first pass skipped so far."""
        return self.skipped_before + (0 if self.counted or self.source is None else self.source.bad.count)

    @property
    def bad_examples(self) -> list[str]:
        """Some of them."""
        return [] if self.source is None else self.source.bad.examples

    def chunks(
        self,
        first: int = 0,
        start: Position = START,
        proof: str = "",
        stop: Callable[[], bool] = lambda: False,
        sweep: int = 0,
    ) -> Generator[Chunk, None, None]:
        """The chunks of one pass from the given one on, which begins at `start`; ends early when `stop` says so."""
        if sweep and self.cache is None and self.kept is None and isinstance(self.input, Files):
            self.input.check()
        if self.cache is not None:
            yield from self.cache.chunks(first)
        elif self.kept is not None:
            yield from self.kept[first:]
        elif self.path is not None:
            yield from self.written(self.path, first, proof, stop)
        else:
            yield from self.read(first, start, proof, stop)

    def read(self, first: int, start: Position, proof: str, stop: Callable[[], bool]) -> Iterator[Chunk]:
        """Chunks from the file; those of a small file are kept."""
        kept: list[Chunk] | None = [] if first == 0 else None
        room = KEPT
        place = first
        for place, chunk in enumerate(self.fresh(start, proof, stop), first + 1):
            if self.unchanged is not None:
                self.unchanged.check(place - 1, chunk)
            room -= chunk.nbytes
            kept = None if kept is None or room < 0 else [*kept, chunk]
            yield chunk
        if not stop():
            if self.unchanged is not None:
                self.unchanged.check(place, None)
            self.kept = kept
            self.count()

    def written(self, path: Path, first: int, proof: str, stop: Callable[[], bool]) -> Iterator[Chunk]:
        """Chunks from the file, which go into a cache too.

        A run that goes on in the middle of the first pass reads the beginning again: the cache must have it.
        """
        self.skipped_before = 0
        writer = CacheWriter(path)
        try:
            for place, chunk in enumerate(self.fresh(START, "", stop)):
                writer.add(chunk)
                if place == first - 1 and chunk.proof != proof:
                    raise ValueError(f"{self.input.name} does not begin as it did when the checkpoint was saved")
                if place >= first:
                    yield chunk
            if not stop():
                self.count()
                writer.commit(self.about, self.prepared.to_json(), self.skipped, self.prepared.encoding.dtype)
                self.cache = RowCache(path, trusted=True)
        finally:
            writer.abandon()

    def fresh(self, start: Position, proof: str, stop: Callable[[], bool]) -> Iterator[Chunk]:
        """Chunks as the file has them."""
        if self.source is None:
            self.source = reopen(self.input, self.options, self.prepared)
        return read_chunks(
            self.source,
            self.targets,
            normalize=self.prepared.encoding.normalize,
            buffer=self.buffer,
            start=start,
            proof=proof,
            stop=stop,
        )

    def count(self) -> None:
        """The first pass is over: keep its number of bad rows."""
        self.skipped_before, self.counted = self.skipped, True
