"""The rows of a whole table in memory, from CSV, Parquet or .npy; some of them written again as they were."""

from __future__ import annotations

import csv
import io
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import salvage
from onesfw.data.blocks import Input
from onesfw.data.columns import is_called_identifier, is_numeric
from onesfw.data.encoding import as_numbers
from onesfw.data.tables import OPEN, CsvTable, ParquetTable, Piece, is_number, other_columns

if TYPE_CHECKING:
    import pyarrow as pa

PathLike = str | os.PathLike[str]
ENDINGS = (".csv", ".parquet", ".npy")
LARGEST = 1e100  # squares of larger numbers, summed, may be infinite
MOST_BYTES = 256 << 20  # of a table, unpacked: in memory it takes about four times as much
MOST_ROWS = 5_000_000
COUNTED = 10  # rows from which whole numbers that rise by a constant are taken for an identifier
IDENTIFIER = "looks like an identifier"
SEPARATORS = ("|", ";", ",")


@dataclass(frozen=True)
class LeftOut:
    """A column that rows are not compared by, and why."""

    column: str
    reason: str


@dataclass(frozen=True)
class Compared:
    """The numbers that rows are compared by, their columns, and the other columns."""

    features: np.ndarray
    columns: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True)
class Rows:
    """A table as Arrow reads it, and as it stands in the file where that is something else."""

    name: str
    table: pa.Table
    lines: list[bytes] | None = None
    """Of a CSV text, one a row: Arrow takes 007 for 7, so rows are written from here."""
    headline: bytes | None = None
    delimiter: str = ","
    given: np.ndarray | None = None
    """A .npy matrix."""

    def take(self, indices: np.ndarray) -> Rows:
        """The rows of these numbers."""
        lines = None if self.lines is None else [self.lines[i] for i in indices.tolist()]
        given = None if self.given is None else self.given[indices]
        return Rows(self.name, self.table.take(indices), lines, self.headline, self.delimiter, given)

    def check(self, ending: str) -> None:
        """Raise an error where the rows do not fit into the format of that ending."""
        import pyarrow as pa

        try:
            self.take(np.arange(1)).write(ending, io.BytesIO())
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"{self.name} cannot be written as {ending}: {reason}; choose another ending") from None
        if ending == ".npy":
            self.matrix()

    def write(self, ending: str, file: BinaryIO) -> None:
        """All rows with all their columns."""
        if ending == ".npy":
            np.save(file, self.matrix())
        elif ending == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(self.table, file)
        elif self.lines is not None:
            file.write(self.csv_text(self.lines))
        else:
            import pyarrow.csv as arrow_csv

            arrow_csv.write_csv(self.table, file)

    def matrix(self) -> np.ndarray:
        """All columns in one dtype that holds each of their numbers exactly; an error where there is none."""
        if self.given is not None:
            return self.given
        names = self.table.column_names
        for name, column in zip(names, self.table.columns, strict=True):
            if not is_numeric(column.type):
                raise ValueError(
                    f"{self.name}: a .npy matrix holds numbers, and column {name!r} is of type {column.type}; let the "
                    "path end in .csv or .parquet"
                )
        columns = [column.to_numpy() for column in self.table.columns]
        dtype = np.result_type(*columns)
        for name, column in zip(names, columns, strict=True):
            if dtype.kind == "f" and column.dtype.kind in "iu":
                exact = 2 ** (np.finfo(dtype).nmant + 1)
                if max(-int(column.min()), int(column.max())) > exact:
                    raise ValueError(
                        f"{self.name}: the whole numbers of column {name!r} are too large for a .npy matrix of "
                        f"{dtype}; let the path end in .csv or .parquet"
                    )
        return np.column_stack([column.astype(dtype) for column in columns])

    def csv_text(self, lines: list[bytes]) -> bytes:
        """The headline and the rows to the letter, with commas; latin-1 takes every byte there and back."""
        whole = [line.strip(b"\r") for line in ([] if self.headline is None else [self.headline]) + lines]
        if self.delimiter == ",":
            return b"".join(line + b"\n" for line in whole)
        text = io.StringIO(newline="")
        cells = csv.reader((line.decode("latin-1") for line in whole), delimiter=self.delimiter)
        try:
            csv.writer(text, lineterminator="\n").writerows(cells)
        except csv.Error as error:
            raise ValueError(f"{self.name} cannot be written with commas: {error}") from None
        return text.getvalue().encode("latin-1")

    def compared(self, columns: Sequence[str] | None, drop: Sequence[str], groups: str | None) -> Compared:
        """The numeric columns as a matrix, and the others; an error where a number is missing.

        With `columns` those are taken and no others. Otherwise whatever is no number, is dropped, holds the groups or
        looks like an identifier is left out.
        """
        for argument, given in (("columns", columns or ()), ("drop", drop)):
            for name in given:
                self.require(name, argument)
        numbers, others = {}, []
        for name in self.table.column_names:
            column = self.table[name]
            reason = self.reason(name, column, columns, drop, groups)
            if reason is None:
                values = self.numbers(name)
                if columns is None and is_identifier(name, values):
                    reason = IDENTIFIER
                else:
                    numbers[name] = values
            if reason is not None:
                others.append(LeftOut(name, reason))
        if not numbers:
            names = ", ".join(f"{other.column} ({other.reason})" for other in others[:20])
            raise ValueError(f"{self.name} has no numeric column to compare rows by; its columns are {names}")
        return Compared(np.column_stack(list(numbers.values())), tuple(numbers), tuple(others))

    def reason(
        self, name: str, column: Any, columns: Sequence[str] | None, drop: Sequence[str], groups: str | None
    ) -> str | None:
        """Why a column is left out whatever its numbers are; None where it is not."""
        if columns is not None and name in columns:
            if not is_comparable(column.type):
                raise ValueError(f"{named('columns')}: {name!r} of {self.name} holds no numbers ({no_numbers(column)})")
            return None
        if name == groups:
            return "the groups"
        if name in drop:
            return "dropped"
        if not is_comparable(column.type):
            return no_numbers(column)
        return None if columns is None else "not asked for"

    def numbers(self, name: str) -> np.ndarray:
        """A numeric column in float64, or an error where a number is missing or out of range."""
        column = self.table[name]
        if column.null_count:
            raise ValueError(
                f"{self.name}, column {name!r}: {column.null_count:,} values are missing; fill them in first"
            )
        values = as_numbers(column)
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{self.name}, column {name!r} has NaN or infinite values; remove or impute them first")
        if np.abs(values).max() > LARGEST:
            raise ValueError(f"{self.name}, column {name!r} has numbers beyond {LARGEST:g}; divide it by some constant")
        return values

    def words(self, name: str, role: str) -> list[str]:
        """The values of the groups' column as words; an error where one is missing."""
        self.require(name, "groups")
        values = self.table[name].to_pylist()
        for row, value in enumerate(values):
            if value is None or value != value or value == "":  # a CSV text has nothing else for a missing word
                raise ValueError(
                    f"{self.name}, column {name!r} has no value in row {row} (rows count from 0): every row needs "
                    f"{role}; fill it in first"
                )
        return [value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in values]

    def items(self, name: str) -> list[list[str]]:
        """What each row's cell lists: separated by | or ; or , where any cell has one of these, else by blanks."""
        self.require(name, "items")
        cells = ["" if cell is None else str(cell) for cell in self.table[name].to_pylist()]
        mark = next((mark for mark in SEPARATORS if any(mark in cell for cell in cells)), None)
        lists = [[item.strip() for item in cell.split(mark) if item.strip()] for cell in cells]
        if not any(lists):
            raise ValueError(f"{self.name}, column {name!r} lists no items")
        return lists

    def require(self, name: str, argument: str) -> None:
        """Raise an error where there is no such column as the argument names."""
        names = self.table.column_names
        if name not in names:
            raise ValueError(f"{named(argument)}: {self.name} has no column {name!r}{other_columns(name, names)}")


def row_ending(path: PathLike) -> str:
    """The ending that names the format of rows; an error where it names none."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{str(path)!r} must end in {' or '.join(ENDINGS)}: the ending is the format")
    return ending


def read_rows(
    source: str | os.PathLike[str] | np.ndarray, *, delimiter: str | None = None, header: bool = True
) -> Rows:
    """A whole table from a file, or from a matrix, whose columns are called c0, c1, c2, ….

    Text and Parquet are read as `fit` and `predict` read them, some rows at a time, and refused once they are too many
    to be kept: a small compressed file may hold gigabytes.
    """
    if isinstance(source, np.ndarray):
        return from_matrix("the matrix", source)
    path = os.fspath(source)
    if Path(path).suffix.lower() == ".npy":
        return from_matrix(path, load_matrix(path))
    from onesfw.data.prepare import ReadOptions, open_table

    file = Input(path)
    options = ReadOptions(format="parquet" if file.is_parquet() else "csv", delimiter=delimiter, header=header)
    options.check()
    table = open_table(file, options)
    rows = from_text(table) if isinstance(table, CsvTable) else from_parquet(table)
    if rows.table.num_rows == 0:
        raise ValueError(f"{file.name} holds no rows")
    return rows


def from_text(table: CsvTable) -> Rows:
    """All rows of a CSV text; the kinds of its columns are decided from all of them."""
    lines: list[bytes] = []
    pieces: list[tuple[int, Piece]] = []
    size = 0
    for piece in table.pieces():
        assert piece.line is not None
        pieces.append((len(lines), piece))
        lines += [piece.line(row) for row in range(piece.count)]
        size += sum(map(len, lines[pieces[-1][0] :]))
        check_size(table.input.name, size, len(lines))

    def bad(row: int, error: Exception) -> None:
        start, piece = next(entry for entry in reversed(pieces) if entry[0] <= row)
        raise ValueError(f"{table.input.name}, {piece.place(row - start)}: {piece.explain(row - start, error)}")

    parts = salvage(0, len(lines), lambda first, last: table.read(lines[first:last]), bad)
    if not parts:
        raise ValueError(f"{table.input.name} holds no rows")
    if len(parts) > 1:  # every row can be read, and all of them together cannot
        raise ValueError(f"{table.input.name}: {OPEN}")
    return Rows(table.input.name, parts[0], lines, table.headline, table.delimiter)


def from_parquet(table: ParquetTable) -> Rows:
    """All rows of a Parquet file."""
    import pyarrow as pa

    batches = []
    size = rows = 0
    for piece in table.pieces():
        batches.append(piece.table(0, piece.count))
        size, rows = size + batches[-1].nbytes, rows + piece.count
        check_size(table.input.name, size, rows)
    return Rows(table.input.name, pa.Table.from_batches(batches, table.file.schema_arrow))


def check_size(name: str, size: int, rows: int) -> None:
    """Refuse what is too large to be kept in memory."""
    if size > MOST_BYTES or rows > MOST_ROWS:
        raise ValueError(
            f"{name} holds more than {MOST_BYTES >> 20} MB or {MOST_ROWS:,} rows, and all rows are kept in memory: "
            "take a sample of them first"
        )


def load_matrix(path: str) -> np.ndarray:
    """A .npy file; its header is compared with its size before anything of that size is made."""
    Input(path)  # an error where it cannot be read
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            version = np.lib.format.read_magic(file)
            check_header(version, file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            start, end = file.tell(), file.seek(0, os.SEEK_END)
    except Exception as error:  # the header is a Python literal: a damaged one may raise anything
        raise ValueError(
            f"{path} is no .npy file of numbers: {(str(error) or type(error).__name__).splitlines()[0]}"
        ) from None
    if dtype.hasobject:
        raise ValueError(f"{path} is no .npy file of numbers: it holds Python objects")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed != end - start:
        raise ValueError(
            f"{path} is damaged: its header tells of {claimed:,} bytes of numbers, and there are {end - start:,}"
        )
    check_size(path, claimed, shape[0] if shape else 0)
    return np.load(path, allow_pickle=False)


def check_header(version: tuple[int, int], file: BinaryIO) -> None:
    """Raise ValueError for a version that nobody writes, or a header longer than the file: NumPy makes room for it."""
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"there is no version {version[0]}.{version[1]} of the format")
    if version != (1, 0):
        start = file.tell()
        length, end = int.from_bytes(file.read(4), "little"), file.seek(0, os.SEEK_END)
        file.seek(start)
        if length > end:
            raise ValueError(f"its header tells of {length:,} bytes, and the file has {end:,}")


def from_matrix(name: str, matrix: np.ndarray) -> Rows:
    """A matrix of numbers, a row each."""
    import pyarrow as pa

    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold a matrix of numbers, a row each, got {matrix.dtype} of {matrix.shape}")
    if matrix.dtype.itemsize > 8:
        raise ValueError(f"{name} holds {matrix.dtype}, more than 64 bits a number; save it with .astype(float)")
    native = matrix.astype(matrix.dtype.newbyteorder("="))
    return Rows(name, pa.table({f"c{c}": native[:, c] for c in range(matrix.shape[1])}), given=matrix)


def is_identifier(name: str, values: np.ndarray) -> bool:
    """Whether numbers name rows rather than describe them: whole, all different, and called so or counted up."""
    if values.size < 2 or not np.array_equal(values, np.floor(values)):
        return False
    steps = np.diff(values)
    counted = values.size >= COUNTED and steps[0] > 0 and bool(np.all(steps == steps[0]))
    return counted or is_called_identifier(name, values)


def is_comparable(kind: Any) -> bool:
    """Whether rows can be compared by an Arrow type: numbers, decimal ones too."""
    import pyarrow as pa

    return is_numeric(kind) or pa.types.is_decimal(kind)


def no_numbers(column: Any) -> str:
    """Why a column is not numeric: its type, or, where most of it are numbers, the first word among them."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return "text" if pa.types.is_binary(column.type) else str(column.type)
    values = column.to_pylist()
    words = [row for row, value in enumerate(values) if value is not None and not is_number(value)]
    if not words or 2 * len(words) >= len(values):
        return "text"
    return f"row {words[0]} holds {values[words[0]][:40]!r}, which is no number"


def pack_rows(rows: Rows, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """Rows as JSON and arrays of bytes, for a file; `unpack_rows` reads them back."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.table.schema) as writer:
        writer.write_table(rows.table)
    tensors["rows.table"] = np.frombuffer(sink.getvalue(), np.uint8)
    if rows.lines is not None:
        tensors["rows.lines"] = np.frombuffer(b"\n".join(rows.lines), np.uint8)
    if rows.given is not None:
        tensors["rows.given"] = np.ascontiguousarray(rows.given.astype(rows.given.dtype.newbyteorder("=")))
    return {
        "name": rows.name,
        "delimiter": rows.delimiter,
        "headline": None if rows.headline is None else rows.headline.decode("latin-1"),
        "order": None if rows.given is None else rows.given.dtype.byteorder,
    }


def unpack_rows(content: dict[str, Any], tensors: dict[str, np.ndarray]) -> Rows:
    """What `pack_rows` was given."""
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(tensors["rows.table"].tobytes())) as reader:
        table = reader.read_all()
    lines, given = tensors.get("rows.lines"), tensors.get("rows.given")
    headline = content["headline"]
    return Rows(
        content["name"],
        table,
        None if lines is None else lines.tobytes().split(b"\n"),
        None if headline is None else headline.encode("latin-1"),
        content["delimiter"],
        None if given is None else given.astype(given.dtype.newbyteorder(content["order"])),
    )
