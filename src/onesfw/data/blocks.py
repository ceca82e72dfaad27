"""Text in blocks of whole lines, from a file or the standard input, decompressed on the way."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from onesfw.data.batch import START, Position
from onesfw.data.store import Entry, Store, StoreError

BLOCK = 4 << 20
LONGEST = 256 << 20  # bytes of one line; more is no text
MARK = b"\xef\xbb\xbf"  # some programs begin a text with it
OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open, b"BZh": bz2.open}
PARQUET = b"PAR1"
HEAD = 6
AT_ONCE = 32 << 20  # bytes up to which a file elsewhere is fetched whole: one request instead of several
ENDS = 1 << 16  # bytes at either end of a file that its fingerprint looks at


@dataclass(frozen=True)
class Block:
    """Whole lines; `first` counts from 1."""

    text: bytes
    first: int
    end: Position
    proof: str

    def lines(self) -> list[bytes]:
        """The lines without their ends."""
        lines = self.text.split(b"\n")
        return lines[:-1] if not lines[-1] else lines


class Rejoined(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self.head, self.rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.head:
            return cast(Any, self.rest).readinto(buffer)
        count = min(len(buffer), len(self.head))
        buffer[:count], self.head = self.head[:count], self.head[count:]
        return count

    def close(self) -> None:
        if self.rest is not sys.stdin.buffer:
            self.rest.close()
        super().close()


class Input:
    """A file, or `-` for the standard input.

    Args:
        path: of the file, or its path in the store.
        store: where it is, if not on this machine.
        entry: what the store's listing says of it.

    `constants` are the columns that the folders of a data set with partitions tell, one value for the whole file;
    `varying` of them differ between the files that are read together, and are learnt from.
    """

    def __init__(self, path: str, store: Store | None = None, entry: Entry | None = None) -> None:
        self.path, self.store, self.entry = path, store, entry
        self.constants: dict[str, int | str | None] = {}
        self.varying: frozenset[str] = frozenset()
        self.name = "the standard input" if path == "-" else path
        if store is not None:
            self.name, self.repeatable = store.name_of(path), True
            return
        if path == "-":
            self.repeatable = False
            return
        if "\0" in path:
            raise ValueError(f"{path!r} holds a null character, which no path may")
        try:
            kind = os.stat(path).st_mode
        except OSError as error:
            raise type(error)(f"{path} cannot be read: {error.strerror or error}") from None
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(f"{path} is a folder; give the path of a file in it")
        self.repeatable = stat.S_ISREG(kind)  # a named pipe is a stream too

    def raw(self) -> BinaryIO:
        """The bytes as they are."""
        if self.store is not None and self.entry is not None:
            return cast(BinaryIO, self.store.open(self.entry))
        if self.path == "-":
            return sys.stdin.buffer
        try:
            return open(self.path, "rb")
        except OSError as error:
            raise type(error)(f"{self.path} cannot be read: {error.strerror or error}") from None

    def is_parquet(self) -> bool:
        """Whether a file begins as Parquet does."""
        if not self.repeatable:
            return False
        if self.store is not None and self.path.lower().endswith((".parquet", ".pq")):
            return True  # without asking the store for its first bytes
        with self.raw() as stream:
            return stream.read(len(PARQUET)) == PARQUET

    def seekable(self) -> Any:
        """What pyarrow reads Parquet from: a path, or the bytes of a file elsewhere, small ones at once."""
        if self.store is None or self.entry is None:
            return self.path
        if self.entry.size <= AT_ONCE:
            import pyarrow as pa

            return pa.BufferReader(self.store.whole(self.entry))
        return self.store.open(self.entry)

    @property
    def size(self) -> int:
        """Bytes."""
        return os.stat(self.path).st_size if self.entry is None else self.entry.size

    def text_size(self) -> int | None:
        """The bytes of a text that is not compressed; None for whatever else."""
        if not self.repeatable:
            return None
        with self.raw() as stream:
            head = stream.read(HEAD)
            packed = any(head.startswith(magic) for magic in (*OPENERS, PARQUET))
            return None if packed else self.size

    def open(self) -> BinaryIO:
        """The bytes, decompressed; what they are is seen from the first of them, whatever the name."""
        stream = self.raw()
        head = stream.read(HEAD)
        if self.repeatable:
            stream.seek(0)
        else:
            stream = cast(BinaryIO, io.BufferedReader(Rejoined(head, stream), BLOCK))
        opener = next((opener for magic, opener in OPENERS.items() if head.startswith(magic)), None)
        if opener is None:
            return stream
        if not self.repeatable:
            return opener(stream)
        if self.store is not None:
            return opener(stream)
        stream.close()
        return opener(self.path)

    def blocks(self, start: Position = START, proof: str = "", size: int = BLOCK) -> Iterator[Block]:
        """Blocks of whole lines from `start` on.

        A stream is read up to there first, and what was read must have the SHA-256 `proof`.
        """
        offset, line = start
        hasher = None if self.repeatable else hashlib.sha256()
        with self.open() as stream:
            try:
                if hasher is None:
                    stream.seek(offset)
                else:
                    skip(stream, offset, hasher)
                    if proof and proof != hasher.hexdigest():
                        raise ValueError(f"{self.name} does not begin as it did when the checkpoint was saved")
                for text in whole_lines(stream, size):
                    if hasher is not None:
                        hasher.update(text)
                    count = text.count(b"\n") + (not text.endswith(b"\n"))
                    body = text.removeprefix(MARK) if offset == 0 else text
                    offset += len(text)
                    digest = "" if hasher is None else hasher.hexdigest()
                    yield Block(body, line + 1, (offset, line + count), digest)
                    line += count
            except StoreError:
                raise
            except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
                raise ValueError(f"{self.name} is damaged after line {line:,}: {error}") from error
            except OverlongLine as error:
                place = f"line {line + error.args[0] + 1:,}"
                raise ValueError(
                    f"{self.name}, {place} is longer than {LONGEST >> 20} MB: this is no text of rows"
                ) from None

    def fingerprint(self) -> str:
        """What tells a file from another or from its earlier self: size, time of change, hash of both ends."""
        if not self.repeatable:
            return "a stream"
        if self.store is not None:
            return self.stamp()
        with self.raw() as stream:
            status = os.fstat(stream.fileno())
            hasher = hashlib.sha256(stream.read(ENDS))
            stream.seek(max(0, status.st_size - ENDS))
            hasher.update(stream.read(ENDS))
        return f"{status.st_size} bytes, changed at {status.st_mtime_ns}, {hasher.hexdigest()[:16]}"

    def stamp(self) -> str:
        """What tells one of many files from its earlier self, without reading it: size and time of change, or ETag."""
        if self.entry is not None:
            return self.entry.stamp
        status = os.stat(self.path)
        return f"{status.st_size} bytes, changed at {status.st_mtime_ns}"

    def content(self) -> str:
        """What tells a file from whatever holds other bytes: its size and a SHA-256 of all of it."""
        if not self.repeatable:
            return "a stream"
        if self.store is not None:
            return self.stamp()
        with self.raw() as stream:
            found = hashlib.file_digest(cast(io.BufferedReader, stream), "sha256").hexdigest()
            return f"{os.fstat(stream.fileno()).st_size} bytes, SHA-256 {found[:16]}"


class OverlongLine(Exception):
    """A line without an end."""


def skip(stream: BinaryIO, count: int, hasher: Any) -> None:
    """Read over `count` bytes."""
    while count > 0:
        data = stream.read(min(count, BLOCK))
        if not data:
            return
        hasher.update(data)
        count -= len(data)


def whole_lines(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """The stream in pieces: `size` bytes and what is missing of the last line.

    Where a piece ends depends on where it begins and on nothing before: reading on from there gives the same pieces.
    """
    while data := stream.read(size):
        if not data.endswith(b"\n"):
            data += stream.readline(LONGEST)
            if len(data) >= size + LONGEST:
                raise OverlongLine(data.count(b"\n"))
        yield data
