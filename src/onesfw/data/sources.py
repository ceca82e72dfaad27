"""What rows are read from: a file, several files one after the other, or blocks (X, y) made in Python."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import unquote

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import START, BadRows, Batch, Position, csr
from onesfw.data.blocks import Input
from onesfw.data.store import Store, hidden, is_uri

FEW_BYTES = 256 << 20  # of several files, that are read once more to know them
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")  # 007 is a word
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # Hive's name for a missing value
Pair = tuple[Any, Any]


class Files:
    """Several files, read as one: all of one format.

    Args:
        given: what they were asked for by: paths, patterns, folders, addresses.
        inputs: the files that were found there.
    """

    repeatable = True

    def __init__(self, given: Sequence[str], inputs: Sequence[Input]) -> None:
        self.given, self.inputs = given, list(inputs)
        more = f" and {len(self.inputs) - 1} more" if len(self.inputs) > 1 else ""
        self.name = f"{self.inputs[0].name}{more}"
        self.stamps = self.look()

    def look(self) -> dict[str, str]:
        """What tells each file from its earlier self; a file without a byte is refused."""
        for part in self.inputs:
            if not part.repeatable:
                raise ValueError(f"{named('source')}: {part.name} is a stream, which goes alone; give files only")
            if not part.size:
                raise ValueError(f"{part.name} is empty: it has no bytes; remove it, or write it again")
        return {part.name: part.stamp() for part in self.inputs}

    def check(self) -> None:
        """Raise ValueError, by its name, for a file that has changed, vanished or was added since the beginning."""
        now = {part.name: part.stamp() for part in found_files(self.given)}
        for name, what in differences(self.stamps, now).items():
            raise ValueError(
                f"{name} {what} since the pass before; a run needs the same rows in every pass: put them back, or "
                "start anew"
            )

    def text_size(self) -> int | None:
        """The bytes of texts that are not compressed; None where one is something else."""
        if self.inputs[0].text_size() is None:
            return None
        sizes = [part.text_size() for part in self.inputs]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def fingerprint(self) -> str:
        """What tells these files from others or from their earlier selves."""
        return hashlib.sha256(repr(sorted(self.stamps.items())).encode()).hexdigest()

    def contents(self) -> dict[str, str]:
        """What tells each file from whatever holds other bytes: a SHA-256 of few bytes, the stamp of many."""
        few = sum(part.size for part in self.inputs) <= FEW_BYTES
        return {part.name: part.content() if few else self.stamps[part.name] for part in self.inputs}

    def content(self) -> str:
        """All of it in one text."""
        return repr(sorted(self.contents().items()))


def differences(before: dict[str, str], now: dict[str, str]) -> dict[str, str]:
    """What happened to each file that is not as it was."""
    found = {name: "was added" for name in now if name not in before}
    found |= {name: "is gone" for name in before if name not in now}
    return found | {name: "has changed" for name in before if name in now and now[name] != before[name]}


class Blocks:
    """Blocks (X, y) of rows and targets from Python: an iterable, or a function that makes one for each pass."""

    def __init__(self, blocks: Callable[[], Iterable[Pair]] | Iterable[Pair]) -> None:
        self.name = "the blocks"
        self.given: Any = blocks
        self.repeatable = callable(blocks) or iter(blocks) is not blocks

    def pairs(self) -> Iterator[Pair]:
        """The blocks of one pass."""
        for pair in self.given() if callable(self.given) else self.given:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"{named('source')} must yield pairs (X, y), got {type(pair).__name__}")
            yield pair[0], pair[1]

    def text_size(self) -> int | None:
        """Not known."""
        return None

    def fingerprint(self) -> str:
        """A word: blocks are compared by their content as they are read again."""
        return "blocks"

    def content(self) -> str:
        """A word: as for `fingerprint`."""
        return "blocks"


RowsFrom = Input | Files | Blocks


def as_input(source: Any) -> RowsFrom:
    """What a user's `source` stands for: a path, `-`, a folder, a pattern such as part-*.svm, an address, a list of
    these, or blocks."""
    if isinstance(source, Input | Files | Blocks):
        return source
    if isinstance(source, str | os.PathLike):
        source = [source]
    if isinstance(source, list | tuple) and source and all(isinstance(part, str | os.PathLike) for part in source):
        paths = [os.fspath(part) for part in source]
        if not all(isinstance(path, str) for path in paths):
            raise TypeError(f"{named('source')} must be a path in text, got {source[0]!r}")
        inputs = found_files(paths)
        return inputs[0] if len(inputs) == 1 else Files(paths, inputs)
    if isinstance(source, bytes) or (isinstance(source, list | tuple) and not source):
        raise TypeError(f"{named('source')} must be a path in text, or a list of at least one, got {source!r}")
    if isinstance(source, tuple) and len(source) == 2 and hasattr(source[0], "shape"):
        return Blocks([source])
    if callable(source) or isinstance(source, Iterable):
        return Blocks(source)
    raise TypeError(
        f"{named('source')} must be a path, a list of paths, a pair (X, y) or an iterable of such pairs, got {source!r}"
    )


def found_files(given: Sequence[str]) -> list[Input]:
    """The files that paths, patterns, folders and addresses stand for, in that order; each folder's are sorted."""
    inputs = [part for path in given for part in files_at(path)]
    columns = partitions_of([part.path for part in inputs])
    names = {name for constants in columns for name in constants}
    varying = frozenset(name for name in names if len({constants.get(name) for constants in columns}) > 1)
    for part, constants in zip(inputs, columns, strict=True):
        part.constants, part.varying = constants, varying
    return inputs


def files_at(path: str) -> list[Input]:
    """The files of one path, pattern, folder or address."""
    if is_uri(path) and not path.startswith("file://"):
        return files_in(Store(path))
    path = unquote(path.removeprefix("file://")) if path.startswith("file://") else path
    if "\0" in path or path == "-":
        return [Input(path)]
    if os.path.isdir(path):
        below = glob.glob(os.path.join(glob.escape(path), "**"), recursive=True)
        found = sorted(name for name in below if not (os.path.isdir(name) or hidden(os.path.relpath(name, path))))
        if not found:
            raise FileNotFoundError(f"{named('source')}: the folder {path} holds no files; give another path")
    elif glob.has_magic(path) and not os.path.lexists(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise FileNotFoundError(f"{named('source')}: no file matches {path}; check the pattern and its folder")
    else:
        return [Input(path)]
    return [Input(name) for name in found]


def files_in(store: Store) -> list[Input]:
    """The files of an address."""
    entries = store.entries()
    if not entries:
        raise FileNotFoundError(f"{named('source')}: there is no file at {store.address}; check the address")
    return [Input(entry.path, store, entry) for entry in entries]


def partitions_of(paths: Sequence[str]) -> list[dict[str, int | str | None]]:
    """The columns that folders such as year=2024 stand for, as Hive names them; whole numbers where all are."""
    pairs = [[part.partition("=") for part in path.split("/")[:-1]] for path in paths]
    texts = [{unquote(name): unquote(value) for name, _, value in folders if name and value} for folders in pairs]
    words = {name for text in texts for name, value in text.items() if not WHOLE.fullmatch(value)}

    def typed(name: str, value: str) -> int | str | None:
        return None if value == NO_PARTITION else value if name in words else int(value)

    return [{name: typed(name, value) for name, value in text.items()} for text in texts]


class Parts:
    """The rows of several files: a source that opens one after the other."""

    def __init__(self, makers: Sequence[Callable[[], Any]], names: Sequence[str], bad: BadRows) -> None:
        self.makers, self.names, self.bad = makers, names, bad

    def batches(self, start: Position = START, proof: str = "") -> Iterator[Batch]:
        """Batches from `start` on: the number of the file, and the place in it."""
        first, inside = (start[0], start[1:]) if len(start) == 3 else (0, START)
        for number in range(first, len(self.makers)):
            self.bad.name = self.names[number]
            for batch in self.makers[number]().batches(inside if number == first else START, proof):
                yield replace(batch, end=(number, *batch.end))


class BlockSource:
    """Rows from Python."""

    def __init__(self, blocks: Blocks, bad: BadRows, n_features: int | None, dtype: Any) -> None:
        self.blocks, self.bad, self.n_features, self.dtype = blocks, bad, n_features, dtype

    def batches(self, start: Position = START, proof: str = "") -> Iterator[Batch]:
        """Batches from `start` on; blocks before it are read over, and must be what they were."""
        hasher = hashlib.sha256()
        before = 0
        for number, (rows, targets) in enumerate(self.blocks.pairs()):
            matrix, values = self.checked(rows, targets, number)
            for array in (matrix.data, matrix.indices, matrix.indptr):
                hasher.update(np.ascontiguousarray(array).data)
            end = (number + 1, before + matrix.shape[0])
            if number + 1 == start[0] and proof and hasher.hexdigest() != proof:
                raise ValueError(f"{self.blocks.name} do not begin as they did when the checkpoint was saved")
            if number >= start[0]:
                yield Batch(matrix, values, partial(row_place, before), end, hasher.hexdigest())
            before = end[1]

    def checked(self, rows: Any, targets: Any, number: int) -> tuple[Any, np.ndarray]:
        """A block as CSR and targets."""
        import scipy.sparse

        where = f"{named('source')}: block {number}"
        given = rows if scipy.sparse.issparse(rows) else np.asarray(rows)
        values = np.asarray(targets)
        if given.ndim != 2 or values.shape != (given.shape[0],):
            raise ValueError(
                f"{where} must hold a matrix X and a target for each row, got {given.shape}, {values.shape}"
            )
        if self.n_features is not None and given.shape[1] != self.n_features:
            raise ValueError(f"{where} has {given.shape[1]:,} columns, and the first one {self.n_features:,}")
        check_indices(given, where)
        matrix = scipy.sparse.csr_array(given)
        matrix.sum_duplicates()
        if not np.isfinite(matrix.data).all():
            raise ValueError(f"{where} holds NaN or infinite values; remove or impute them first")
        if values.dtype.kind in "OUS":
            values = np.array([value if isinstance(value, str) else str(value) for value in values.tolist()], object)
        elif values.dtype.kind in "fiub":
            values = values.astype(np.float64)
        else:
            raise TypeError(f"{where} must have numbers or words for targets, got {values.dtype}")
        return csr(matrix.data.astype(self.dtype, copy=False), matrix.indices, matrix.indptr, given.shape[1]), values


def row_place(before: int, row: int) -> str:
    """`row 17`, counted from 0 over all blocks."""
    return f"row {before + row:,}"


def check_indices(matrix: Any, where: str) -> None:
    """Raise ValueError where a CSR or CSC matrix points outside itself: compiled code, SciPy's too, would read there.

    Whatever is not such a matrix passes: SciPy checks other sparse ones itself.
    """
    kind = getattr(matrix, "format", None)
    if kind not in ("csr", "csc"):
        return
    indices, indptr = matrix.indices, matrix.indptr
    size, noun = (matrix.shape[1], "columns") if kind == "csr" else (matrix.shape[0], "rows")
    bad = indices.size and not (indices.min() >= 0 and indices.max() < size)
    if bad or (len(indptr) and (indptr[0] != 0 or indptr[-1] > indices.size or (np.diff(indptr) < 0).any())):
        raise ValueError(f"{where}: the sparse matrix is broken, its indices lie outside its {size:,} {noun}")
