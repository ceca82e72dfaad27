"""CSV and Parquet, read by pyarrow batch by batch, with the kinds of columns decided once for the whole file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from onesfw.arguments import named, nearest
from onesfw.data.batch import START, BadRows, Batch, Position, joined, salvage
from onesfw.data.blocks import Block, Input
from onesfw.data.encoding import BOOLEAN, NUMBER, Encoding, as_numbers
from onesfw.data.footers import damaged, group_of, keep, twice
from onesfw.data.store import StoreError

ROWS = 8192  # of a Parquet file at a time, fewer where rows are wide
ENTRIES = 1 << 20
BUFFER = 1 << 20  # bytes of a column that are read at once; by default it is read whole
OPEN = "a value holds a line break, or a quote is left open; a row must stand in one line; Parquet takes any value"
DELIMITERS = (",", ";", "\t", "|", ":")
WORDS = "words"  # the kind of a column that is hashed or one-hot, before it is known which


def other_columns(name: str, names: Sequence[str], line: bytes | None = None) -> str:
    """What may have been meant by a column that is not there: a like one, another delimiter, or any of these.

    `line` is the first one of a table without names.
    """
    only = names[0] if line is None else line.decode(errors="replace").rstrip("\r\n")
    mark = next((mark for mark in DELIMITERS if len(names) == 1 and mark in only), None)
    if mark is not None:
        return f"; its only column is {only[:60]!r}: give {named('delimiter')}={mark!r}"
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return nearest(name, names) or f"; the columns are {shown}"


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a table as they are, with the means to read any part of them."""

    count: int
    table: Callable[[int, int], Any]
    place: Callable[[int], str]
    explain: Callable[[int, Exception], str]
    end: Position
    proof: str = ""
    line: Callable[[int], bytes] | None = None
    """A row as it stands in the text; None where the file is no text."""


class WithFolders:
    """A table whose columns are its file's own and those that its folders tell."""

    input: Input
    own: list[str]

    @property
    def constants(self) -> dict[str, int | str | None]:
        """What the folders tell and the file does not."""
        return {name: value for name, value in self.input.constants.items() if name not in self.own}

    @property
    def names(self) -> list[str]:
        """The columns to learn from: of folders those that differ between the files. Empty before the file was read."""
        return [*self.own, *(name for name in self.constants if name in self.input.varying)] if self.own else []

    @property
    def known(self) -> set[str]:
        """The columns that a model can be given: of folders also one in which all files lie."""
        return {*self.own, *self.input.constants}

    def completed(self, rows: Any, wanted: Iterable[str] | None) -> Any:
        """Rows of the file with the wanted columns of its folders; None for those to learn from."""
        import pyarrow as pa

        wanted = self.names if wanted is None else set(wanted)
        for name, value in self.constants.items():
            if name in wanted:
                kind = pa.int64() if isinstance(value, int) else pa.string()
                rows = rows.append_column(name, pa.repeat(pa.scalar(value, kind), rows.num_rows))
        return rows


class CsvTable(WithFolders):
    """A CSV text with a header line, or with columns named 1, 2, …; a value cannot hold a line break."""

    def __init__(self, source: Input, delimiter: str, header: bool, names: list[str] | None = None) -> None:
        """`names` are the columns' names where the text is not read from its beginning."""
        self.input, self.delimiter, self.header = source, delimiter, header
        self.own: list[str] = names or []
        self.peeked: tuple[Piece, Iterator[Piece]] | None = None
        self.headline: bytes | None = None  # as it stands there, once it was read
        self.types: dict[str, Any] | None = None  # by inference, until `settle` fixes them
        self.words_allowed = True  # whether a column of numbers could be one of words

    def settle(self, kinds: dict[str, str]) -> None:
        """Read these columns, as these kinds, from now on."""
        import pyarrow as pa

        arrow = {NUMBER: pa.float64(), BOOLEAN: pa.bool_()}
        self.types = {name: arrow.get(kind, pa.string()) for name, kind in kinds.items()}

    def first(self) -> Piece | None:
        """The first piece, kept for `pieces`: a stream can be read only once."""
        if self.peeked is None:
            pieces = self.read_pieces(START, "")
            piece = next(pieces, None)
            if piece is None:
                return None
            self.peeked = piece, pieces
        return self.peeked[0]

    def pieces(self, start: Position = START, proof: str = "") -> Iterator[Piece]:
        """Pieces from `start` on."""
        peeked, self.peeked = self.peeked, None
        if peeked is not None and start == START:
            return chain([peeked[0]], peeked[1])
        return self.read_pieces(start, proof)

    def read_pieces(self, start: Position, proof: str) -> Iterator[Piece]:
        """Pieces from `start` on; a start that is not the beginning needs names that are known."""
        for block in self.input.blocks(start, proof):
            lines, first = block.lines(), block.first
            if not lines:  # nothing but a byte order mark
                continue
            if not self.own or first == 1:
                names = self.columns(lines)
                if self.own and names != self.own:
                    raise ValueError(f"{self.input.name} has other columns than before")
                self.own = names
                if self.header:
                    self.headline, lines, first = lines[0], lines[1:], first + 1
            yield self.piece(block, lines, first)

    def columns(self, lines: list[bytes]) -> list[str]:
        """The names of the columns."""
        try:
            cells = self.cells(lines[0])
        except ValueError as error:
            raise ValueError(f"{self.input.name}, line 1: {error}") from None
        if not cells:
            raise ValueError(f"{self.input.name}: the first line is empty, and it must hold the columns' names")
        if not self.header:
            return [str(place) for place in range(1, len(cells) + 1)]
        if looks_like_data(cells):
            raise ValueError(
                f"{self.input.name}: the first line looks like data, not names ({', '.join(cells[:5])}); add a "
                f"headline, begin each name with a letter, or give {named('header')}"
            )
        twice = next((name for name in cells if cells.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{self.input.name} has two columns {twice!r}; rename one, or give {named('header')}")
        return cells

    def cells(self, line: bytes) -> list[str]:
        """The cells of one line, or a ValueError."""
        text = line.decode(errors="replace").rstrip("\r\n")
        try:
            return next(csv.reader([text], delimiter=self.delimiter), [])
        except csv.Error as error:  # a carriage return inside, or a value of more than 128 KB
            reason = "a carriage return stands inside it" if "\r" in text else str(error)
            raise ValueError(f"it cannot be split into values: {reason}") from None

    def piece(self, block: Block, lines: list[bytes], first: int) -> Piece:
        """A block's lines, without the empty ones, as a piece."""
        filled = [place for place, line in enumerate(lines) if line.strip()]
        return Piece(
            len(filled),
            lambda start, stop: self.read([lines[k] for k in filled[start:stop]]),
            lambda row: f"line {first + filled[row]:,}",
            lambda row, error: self.explain(lines[filled[row]], error),
            block.end,
            block.proof,
            lambda row: lines[filled[row]],
        )

    def explain(self, line: bytes, error: Exception) -> str:
        """What is wrong with a line, in words; Arrow counts rows from where it was made to begin."""
        if open_quote(line, self.delimiter):
            return OPEN
        try:
            cells = self.cells(line)
        except ValueError as wrong:
            return str(wrong)
        if len(cells) != len(self.own):
            return f"it has {len(cells)} values, and there are {len(self.own)} columns"
        for name, cell in zip(self.own, cells, strict=True):
            if self.types and str(self.types.get(name)) in ("double", "bool"):
                kind = "a finite number" if str(self.types[name]) == "double" else "true or false"
                try:
                    right = cell.strip().lower() in ("true", "false", "0", "1")
                    right = right if kind == "true or false" else math.isfinite(float(cell))
                except ValueError:
                    right = False
                if not right:
                    what = f"{cell!r} is not {kind}" if cell.strip() else "a value is missing"
                    remedy = f"; name the column in {named('categorical')} if it holds words" * self.words_allowed
                    return f"column {name!r}: {what}{remedy}"
        return str(error).strip().splitlines()[0]

    def read(self, lines: list[bytes]) -> Any:
        """An Arrow table of some lines; a ValueError where one of them does not fit."""
        import pyarrow.csv as arrow

        text, own = b"\n".join(lines), set(self.own)
        table = arrow.read_csv(
            io.BytesIO(text),
            read_options=arrow.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=self.own),
            parse_options=arrow.ParseOptions(delimiter=self.delimiter),
            convert_options=arrow.ConvertOptions(
                column_types=self.types or {}, include_columns=[name for name in self.types or () if name in own]
            ),
        )
        if table.num_rows != len(lines):
            raise ValueError("a value holds a line break")
        if len(lines) == 1 and open_quote(text, self.delimiter):
            raise ValueError(OPEN)
        return self.completed(table, self.types)


def open_quote(line: bytes, delimiter: str) -> bool:
    """Whether a line ends inside a quoted value; Arrow would take the value to end there too."""
    if line.count(b'"') % 2 == 0:
        return False
    try:
        next(csv.reader([line.decode(errors="replace").rstrip("\r\n")], delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def looks_like_data(names: list[str]) -> bool:
    """Whether a first line can hardly be names.

    Whole numbers beside words may be years, and 0, 1, 2, … are names that other programs give; other numbers, and
    numbers alone, are values.
    """
    numbers = [name for name in names if is_number(name)]
    counted = len(names) > 1 and names == [str(place) for place in range(len(names))]
    return not counted and (len(numbers) == len(names) or not all(name.strip().isdigit() for name in numbers))


def is_number(text: str) -> bool:
    """Whether a text is a number in digits: neither nan nor inf."""
    try:
        float(text)
    except ValueError:
        return False
    return any(letter.isdigit() for letter in text)


class ParquetTable(WithFolders):
    """A Parquet file, or one of its row groups."""

    def __init__(self, source: Input, group: int | None = None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not source.repeatable:
            raise ValueError("Parquet cannot be read from a stream; give a file")
        self.input = source
        try:
            content, about = (source.seekable(), None) if group is None else group_of(source, group)
            self.file = pq.ParquetFile(content, metadata=about, buffer_size=BUFFER if source.store is None else 0)
            self.own = list(self.file.schema_arrow.names)
        except StoreError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise damaged(source, error) from error
        if group is not None and about is None:
            keep(source, self.file.metadata)
        self.groups = None if group is None else [group]
        if len(set(self.own)) < len(self.own):
            raise ValueError(f"{source.name} has two columns {twice(self.own)!r}; rename one")
        self.wanted: list[str] | None = None

    def settle(self, kinds: dict[str, str]) -> None:
        """Read only these columns from now on."""
        self.wanted = list(kinds)

    def first(self) -> Piece | None:
        """The first piece."""
        return next(self.pieces(), None)

    def pieces(self, start: Position = START, proof: str = "") -> Iterator[Piece]:
        """Pieces from `start` on."""
        import pyarrow as pa

        own = set(self.own)
        wanted = None if self.wanted is None else [name for name in self.wanted if name in own]
        size = max(1, min(ROWS, ENTRIES // max(1, len(self.wanted or self.names))))
        done, rows = 0, 0
        try:
            for batch in self.file.iter_batches(
                batch_size=size, row_groups=self.groups, columns=wanted, use_threads=False
            ):
                done, before, rows = done + 1, rows, rows + batch.num_rows
                if done > start[0]:
                    yield self.piece(self.completed(batch, self.wanted), before, (done, rows))
        except StoreError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{self.input.name} is damaged after row {rows:,}: {error}") from error

    @staticmethod
    def piece(batch: Any, before: int, end: Position) -> Piece:
        """A batch of Arrow's as a piece."""
        return Piece(
            batch.num_rows,
            lambda start, stop: batch.slice(start, stop - start),
            lambda row: f"row {before + row + 1:,}",
            lambda row, error: str(error).strip().splitlines()[0],
            end,
        )


class TableSource:
    """Rows of a table, by an encoding that names its columns."""

    def __init__(self, table: CsvTable | ParquetTable, bad: BadRows, encoding: Encoding, *, targets: bool) -> None:
        self.table, self.bad, self.encoding, self.targets = table, bad, encoding, targets
        kinds = {column.name: column.kind for column in encoding.columns}
        if targets and encoding.target is not None:
            kinds[encoding.target] = WORDS if encoding.target_words else NUMBER
        self.kinds = kinds
        if table.names:
            self.prepare()

    def prepare(self) -> None:
        """Read only the columns that are needed, as what they are."""
        known = self.table.known
        for name in self.kinds:
            if name not in known:
                raise ValueError(f"{self.table.input.name} has no column {name!r}{nearest(name, self.table.names)}")
        self.table.settle(self.kinds)

    def batches(self, start: Position = START, proof: str = "") -> Iterator[Batch]:
        """Batches from `start` on."""
        for piece in self.table.pieces(start, proof):
            self.prepare()
            batch = self.batch(piece)
            if batch is not None:
                yield batch

    def batch(self, piece: Piece) -> Batch | None:
        """A piece's rows, encoded; None where it holds none."""
        skipped: set[int] = set()

        def rejected(row: int, error: Exception) -> None:
            self.bad.add(piece.place(row), piece.explain(row, error))
            skipped.add(row)

        parts = salvage(0, piece.count, lambda first, last: self.parse(piece.table(first, last)), rejected)
        if not parts:
            return None
        rows = joined([part[0] for part in parts], self.encoding.n_features)
        targets = np.concatenate([part[1] for part in parts]) if self.targets else None
        kept = [row for row in range(piece.count) if row not in skipped] if skipped else range(piece.count)
        return Batch(rows, targets, lambda row: piece.place(kept[row]), piece.end, piece.proof)

    def parse(self, table: Any) -> tuple[Any, np.ndarray | None]:
        """Rows and targets of a part of a table, or a ValueError."""
        rows = self.encoding.rows(table.column, table.num_rows)
        if not self.targets:
            return rows, None
        assert self.encoding.target is not None
        return rows, target_values(table.column(self.encoding.target), self.encoding)


def target_values(array: Any, encoding: Encoding) -> np.ndarray:
    """The targets, numbers or words; one that is missing is a ValueError."""
    import pyarrow as pa

    if array.null_count:
        raise ValueError(f"the target {encoding.target!r} is missing")
    if encoding.target_words:
        return np.asarray(array.cast(pa.string()).to_pylist(), object)
    numbers = as_numbers(array)
    if not np.isfinite(numbers).all():
        raise ValueError(f"the target {encoding.target!r} is not a finite number")
    return numbers
