"""A binary cache of rows: what the first pass read, memory-mapped for the passes after it.

The file: a first line, the chunks' arrays, a JSON index with a SHA-256 of each chunk, and a tail with the index's
length and SHA-256. It is written beside its place and moved there when it is whole. Writing needs a Unix system, whose
locks keep two runs from writing one cache.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import csr
from onesfw.data.chunks import Chunk
from onesfw.data.data_warning import warn
from onesfw.data.prepare import Prepared
from onesfw.data.sources import check_indices
from onesfw.files import check_target

MAGIC = b"onesfw rows, version 1\n"
TAIL = 8 + 32 + len(MAGIC)
ALIGN = 64
PARTS = ("targets", "data", "indices", "indptr")


class CacheWriter:
    """A cache that is being written; `commit` puts it in its place."""

    def __init__(self, path: Path) -> None:
        check_target(path)
        refuse_stranger(path)
        self.path = Path(os.path.realpath(path))  # a link is followed
        self.partial = self.path.with_name(f".{self.path.name}.partial")
        self.file: BinaryIO = open(self.partial, "ab")  # noqa: SIM115
        try:
            import fcntl

            # What a killed run left is taken over; what a living one writes is not.
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            self.file.close()
            raise ValueError(f"{named('cache')} needs a Unix system, whose locks keep two runs apart") from None
        except OSError:
            self.file.close()
            raise ValueError(f"another run is writing the cache {path}; wait for it, or give another path") from None
        self.file.truncate(0)
        self.file.write(MAGIC)
        self.place = len(MAGIC)
        self.index: list[dict[str, Any]] = []

    def add(self, chunk: Chunk) -> None:
        """Append a chunk."""
        rows = chunk.rows
        hasher = hashlib.sha256()
        entry = {"rows": len(chunk), "entries": int(rows.nnz), "end": list(chunk.end)}
        for name, array in zip(PARTS, (chunk.targets, rows.data, rows.indices, rows.indptr), strict=True):
            content = memoryview(np.ascontiguousarray(array).data).cast("B")
            padding = -self.place % ALIGN
            self.write(bytes(padding))
            entry[name] = self.place
            self.write(content)
            hasher.update(content)
        self.index.append({**entry, "sha256": hasher.hexdigest()})

    def write(self, content: bytes | memoryview) -> None:
        """Append bytes; a full disk is an error with a remedy."""
        try:
            self.file.write(content)
        except OSError as error:
            raise OSError(
                error.errno, f"the cache {self.path} cannot be written: {error.strerror}; give a path elsewhere"
            ) from error
        self.place += len(content)

    def commit(self, about: dict[str, str], prepared: dict[str, Any], skipped: int, dtype: Any) -> None:
        """Write the index, and put the file in its place."""
        content = {
            "about": about,
            "prepared": prepared,
            "skipped": skipped,
            "dtype": np.dtype(dtype).name,
            "chunks": self.index,
        }
        index = json.dumps(content, sort_keys=True).encode()
        self.write(index + len(index).to_bytes(8, "little") + hashlib.sha256(index).digest() + MAGIC)
        self.file.flush()
        os.fsync(self.file.fileno())
        os.replace(self.partial, self.path)
        self.file.close()

    def abandon(self) -> None:
        """Remove what was written."""
        if not self.file.closed:
            self.partial.unlink(missing_ok=True)
            self.file.close()


class RowCache:
    """A finished cache."""

    def __init__(self, path: Path, *, trusted: bool = False) -> None:
        """Open a cache; a ValueError where it is damaged. With `trusted`, this process wrote it, and chunks are not
        checked again."""
        self.path = path
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(MAGIC) + TAIL:
                raise self.damaged()
            # Private and writable: kernels compile once, for arrays that can be written, and nobody writes.
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        tail = self.map[size - TAIL :]
        length = int.from_bytes(tail[:8], "little")
        begin = size - TAIL - length
        if tail[40:] != MAGIC or begin < 0:
            raise self.damaged()
        index = self.map[begin : size - TAIL]
        if hashlib.sha256(index).digest() != tail[8:40]:
            raise self.damaged()
        try:
            self.decode(json.loads(index))
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise self.damaged() from error
        self.sound = [trusted] * len(self.index)

    def decode(self, content: dict[str, Any]) -> None:
        """Take in the index, whose fields must fit one another and the file."""
        self.about, self.prepared = dict(content["about"]), Prepared.from_json(content["prepared"])
        self.skipped, self.dtype, self.index = content["skipped"], np.dtype(content["dtype"]), list(content["chunks"])
        self.n_features = self.prepared.encoding.n_features
        if self.dtype not in (np.float32, np.float64):
            raise ValueError("rows are in single or in double precision")
        for entry in self.index:
            counts = (entry["rows"], entry["entries"], *entry["end"], *(entry[name] for name in PARTS), self.skipped)
            if not all(type(count) is int and count >= 0 for count in counts):
                raise ValueError("sizes and places are whole numbers")
            self.arrays(entry)  # within the file

    def damaged(self) -> ValueError:
        """The error for a damaged cache."""
        return ValueError(f"the cache {self.path} is damaged; delete it, and the next run writes it anew")

    def arrays(self, entry: dict[str, Any]) -> list[np.ndarray]:
        """The arrays of a chunk, in the file."""
        shapes = {
            "targets": (np.dtype(np.float64), entry["rows"]),
            "data": (self.dtype, entry["entries"]),
            "indices": (np.dtype(np.int32), entry["entries"]),
            "indptr": (np.dtype(np.int32), entry["rows"] + 1),
        }
        return [np.frombuffer(self.map, dtype, count, entry[name]) for name, (dtype, count) in shapes.items()]

    def chunks(self, first: int = 0) -> Iterator[Chunk]:
        """The chunks from the given one on; a chunk's memory is given back when the next one is asked for."""
        return self.some(range(first, len(self.index)))

    def some(self, places: Iterable[int]) -> Iterator[Chunk]:
        """The chunks of these numbers, in this order."""
        for place in places:
            entry = self.index[place]
            targets, data, indices, indptr = arrays = self.arrays(entry)
            if not self.sound[place]:
                hasher = hashlib.sha256()
                for array in arrays:
                    hasher.update(array.data)
                if hasher.hexdigest() != entry["sha256"]:
                    raise self.damaged()
            rows = csr(data, indices, indptr, self.n_features)
            if not self.sound[place]:
                check_indices(rows, f"the cache {self.path}")
                self.sound[place] = True
            yield Chunk(rows, targets, tuple(entry["end"]))
            self.release(entry)

    def release(self, entry: dict[str, Any]) -> None:
        """Let the pages of a chunk go; they stay in the system's cache while there is room."""
        if hasattr(mmap, "MADV_DONTNEED"):
            begin = entry["targets"] // mmap.PAGESIZE * mmap.PAGESIZE
            end = entry["indptr"] + 4 * (entry["rows"] + 1)
            self.map.madvise(mmap.MADV_DONTNEED, begin, end - begin)

    def differences(self, about: dict[str, str]) -> list[str]:
        """What this cache was written with and the present run is not."""
        return [name for name in {**self.about, **about} if self.about.get(name) != about.get(name)]


def usable_cache(path: Path, about: dict[str, str], repeatable: bool = True) -> RowCache | None:
    """The cache, if it is there and of these very rows, read in this very way; rows of a stream are never known."""
    refuse_stranger(path)
    if not repeatable or not path.exists() or not path.stat().st_size:
        return None
    cache = RowCache(path)
    different = cache.differences(about)
    if different:
        warn(f"the cache {path} was written with another {', '.join(map(named, different))}, and is written anew")
        return None
    return cache


def refuse_stranger(path: Path) -> None:
    """Raise an error where a file that is no cache would be overwritten."""
    if not path.exists():
        return
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC and os.fstat(file.fileno()).st_size:
            raise ValueError(f"{named('cache')}: {path} is a file, but no cache of onesfw; give another path")
