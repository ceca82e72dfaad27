"""A file that is read more than once must stay what it was: a digest of each chunk of rows, compared pass by pass."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from onesfw.arguments import named
from onesfw.data.chunks import Chunk

END = "end"  # stands behind the last chunk, so that a file that grew or shrank is noticed too


class ChunkDigests:
    """The digests of a file's chunks, by the place in which the first pass read them.

    Size and time of change would not do: a file may be replaced while it is read, and a copy may keep its time.

    Args:
        name: of the file, for the error.
        digests: as an earlier part of the run saw them; places are words, as JSON has it.
    """

    def __init__(self, name: str, digests: Mapping[str, str] | None = None) -> None:
        self.name, self.digests = name, dict(digests or {})

    def check(self, place: int, chunk: Chunk | None) -> None:
        """Compare a chunk with the first pass's, or remember it; None stands for the end of the file.

        Raises:
            ValueError: where it is another one.
        """
        found = END if chunk is None else digest(chunk)
        if self.digests.setdefault(str(place), found) != found:
            raise ValueError(
                f"{self.name} has changed: its rows are no longer those of the first pass; train from a file that "
                f"nobody writes to, or give {named('cache')} a path, which keeps the rows of the first pass"
            )


def digest(chunk: Chunk) -> str:
    """The first 16 hexadecimal digits of a SHA-256 over rows and targets."""
    hasher = hashlib.sha256()
    for array in (chunk.targets, chunk.rows.data, chunk.rows.indices, chunk.rows.indptr):
        hasher.update(np.ascontiguousarray(array).data)
    return hasher.hexdigest()[:16]
