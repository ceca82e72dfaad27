"""A batch: some consecutive rows of a source, as CSR and targets, with their places for error messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onesfw.arguments import named

Position = tuple[int, ...]
"""Where a source can be read on: bytes and lines before it in a text, batches and rows before it in Parquet, blocks and
rows before it in a stream of blocks; before these, the number of the file where there are several."""
START: Position = (0, 0)


def memory() -> int:
    """The machine's memory in bytes; no limit where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize


@dataclass(frozen=True)
class Batch:
    """Rows a_i as CSR with int32 indices, and targets y_i (numbers, or words as objects; None where there are none)."""

    rows: Any
    targets: np.ndarray | None
    place: Callable[[int], str]
    """`line 17` for row i."""
    end: Position
    proof: str = ""
    """For a stream that cannot be read again: the SHA-256 of all bytes up to `end`."""


@dataclass
class BadRows:
    """What is done with a row that cannot be read: an error that names it, or, with `skip`, a count."""

    name: str
    skip: bool = False
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, place: str, reason: str) -> None:
        """Count a bad row, or raise an error that names it."""
        if not self.skip:
            raise ValueError(
                f"{self.name}, {place}: {reason}; mend it, or leave such rows out with {named('skip_bad')}"
            )
        self.count += 1
        if len(self.examples) < 3:
            self.examples.append(f"{place}: {reason}")


def salvage(
    first: int,
    last: int,
    parse: Callable[[int, int], Any],
    bad: Callable[[int, Exception], None],
) -> list[Any]:
    """parse(first, last) in as few pieces as the bad items among [first, last) allow; `bad` is told each, in order.

    By bisection: where nothing is wrong, one call; a single bad item costs about twice the reading of its block.
    """
    if first == last:
        return []
    try:
        return [parse(first, last)]
    except (ValueError, OverflowError) as error:
        if last - first == 1:
            bad(first, error)
            return []
    middle = (first + last) // 2
    return salvage(first, middle, parse, bad) + salvage(middle, last, parse, bad)


def csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_features: int) -> Any:
    """A CSR matrix over these arrays, whose indices rise along each row.

    32-bit indices, for memory's sake and so that kernels compile once.
    """
    from scipy.sparse import csr_array

    arrays = (data, indices.astype(np.int32, copy=False), indptr.astype(np.int32, copy=False))
    matrix = csr_array(arrays, shape=(len(indptr) - 1, n_features))
    matrix.has_canonical_format = True  # or SciPy looks for itself, at each use
    return matrix


def joined(parts: list[Any], n_features: int) -> Any:
    """CSR matrices one below the other."""
    if len(parts) == 1:
        return parts[0]
    shifts = np.cumsum([0] + [part.nnz for part in parts[:-1]])
    indptr = [parts[0].indptr[:1]] + [part.indptr[1:] + shift for part, shift in zip(parts, shifts, strict=True)]
    data, indices = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices"))
    return csr(data, indices, np.concatenate(indptr), n_features)


def unit_rows(rows: Any) -> Any:
    """The rows scaled to ‖a‖₂ = 1; empty rows stay empty."""
    entries = np.diff(rows.indptr)
    square = np.square(rows.data, dtype=np.float64)
    # A cumulative sum would lose small rows behind large ones; reduceat skips empty rows, which have no norm.
    filled = entries > 0
    norms = np.ones(len(entries))
    if filled.any():
        norms[filled] = np.sqrt(np.add.reduceat(square, rows.indptr[:-1][filled]))
    norms[norms == 0] = 1.0
    return csr((rows.data / np.repeat(norms, entries)).astype(rows.dtype), rows.indices, rows.indptr, rows.shape[1])
