"""The rows of a table, read from CSV, Parquet or .npy; some of them written again as they were."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

ENDINGS = (".csv", ".parquet", ".npy")
LARGEST = 1e100  # squares of larger numbers, summed, may be infinite


@dataclass(frozen=True)
class LeftOut:
    """A column that rows are not compared by, and why."""

    column: str
    reason: str


@dataclass(frozen=True)
class Rows:
    """A table as Arrow reads it, and as it stands in the file where that is something else."""

    path: Path
    table: Any
    text: bytes | None = None
    """A CSV text: Arrow takes 007 for 7, so cells are written from here."""
    given: np.ndarray | None = None
    """A .npy matrix."""

    def check(self, ending: str) -> None:
        """Raise a sentence where the rows do not fit into the format of that ending."""
        import pyarrow as pa

        try:
            self.write(np.arange(1), ending, io.BytesIO())
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0]
            raise ValueError(
                f"{self.path} cannot be written as {ending}: {reason}; give --out another ending"
            ) from None

    def write(self, indices: np.ndarray, ending: str, file: Any) -> None:
        """The rows of these numbers with all their columns, in that order."""
        if ending == ".npy":
            np.save(file, self.matrix()[indices])
        elif ending == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(self.table.take(indices), file)
        elif self.text is not None:
            file.write(self.csv_lines(self.text, indices))
        else:
            import pyarrow.csv as arrow_csv

            arrow_csv.write_csv(self.table.take(indices), file)

    def matrix(self) -> np.ndarray:
        """All columns in one dtype that holds each of their numbers exactly, or a sentence."""
        if self.given is not None:
            return self.given
        names = self.table.column_names
        for name, column in zip(names, self.table.columns, strict=True):
            if not is_numeric(column.type):
                raise ValueError(
                    f"--out: a .npy matrix holds numbers, and column {name!r} of {self.path} is of type {column.type}; "
                    "let --out end in .csv or .parquet"
                )
        columns = [column.to_numpy() for column in self.table.columns]
        dtype = np.result_type(*columns)
        for name, column in zip(names, columns, strict=True):
            if dtype.kind == "f" and column.dtype.kind in "iu":
                exact = 2 ** (np.finfo(dtype).nmant + 1)
                if max(-int(column.min()), int(column.max())) > exact:
                    raise ValueError(
                        f"--out: the whole numbers of column {name!r} of {self.path} are too large for a .npy matrix "
                        f"of {dtype}; let --out end in .csv or .parquet"
                    )
        return np.column_stack([column.astype(dtype) for column in columns])

    def csv_lines(self, text: bytes, indices: np.ndarray) -> bytes:
        """A headline, and the cells of these rows to the letter; latin-1 takes every byte there and back."""
        import pyarrow as pa

        names = self.table.column_names
        chosen = arrow_table(text, {name: pa.binary() for name in names}).take(indices)
        lines = io.StringIO(newline="")
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow([name.encode().decode("latin-1") for name in names])
        cells = [[cell.decode("latin-1") for cell in column.to_pylist()] for column in chosen.columns]
        writer.writerows(zip(*cells, strict=True))
        return lines.getvalue().encode("latin-1")

    def features(self, groups: str | None) -> tuple[np.ndarray, list[LeftOut]]:
        """The numeric columns as a matrix, and the others; a sentence where a number is missing."""
        columns, others = [], []
        for name, column in zip(self.table.column_names, self.table.columns, strict=True):
            if name == groups or not is_numeric(column.type):
                others.append(LeftOut(name, "the groups" if name == groups else no_numbers(column)))
                continue
            if column.null_count:
                raise ValueError(
                    f"{self.path}, column {name!r}: {column.null_count:,} values are missing; fill them in first"
                )
            values = np.asarray(column.to_numpy(), np.float64)
            if not np.all(np.isfinite(values)):
                raise ValueError(
                    f"{self.path}, column {name!r} has NaN or infinite values; remove or impute them first"
                )
            if np.abs(values).max() > LARGEST:
                raise ValueError(
                    f"{self.path}, column {name!r} has numbers beyond {LARGEST:g}; divide it by some constant"
                )
            columns.append(values)
        if not columns:
            names = ", ".join(f"{other.column} ({other.reason})" for other in others[:20])
            raise ValueError(f"{self.path} has no numeric column to compare rows by; its columns are {names}")
        return np.column_stack(columns), others

    def groups(self, name: str) -> np.ndarray:
        """A column's values as labels; a sentence where one is missing."""
        names = self.table.column_names
        if name not in names:
            raise ValueError(f"{self.path} has no column {name!r}; it has {', '.join(names[:20])}")
        values = self.table[name].to_pylist()
        for row, value in enumerate(values):
            if value is None or value != value or value == "":  # a CSV text has nothing else for a missing word
                raise ValueError(
                    f"{self.path}, column {name!r} has no value in row {row} (rows count from 0): every row needs a "
                    "group; fill it in first"
                )
        return np.array([str(value) for value in values])


def read_rows(path: Path) -> Rows:
    """A table from CSV, Parquet or .npy; a .npy matrix has the columns c0, c1, c2, …."""
    import pyarrow as pa

    from onesfw.data.blocks import Input

    source = Input(str(path))
    try:
        if path.suffix == ".npy":
            rows = read_matrix(path)
        elif source.is_parquet():
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                rows = Rows(path, file.read(use_threads=False))
        else:
            with source.open() as stream:
                rows = read_csv(path, stream)
    except pa.ArrowException as error:
        raise ValueError(f"{path} could not be read as a table: {str(error).splitlines()[0]}") from None
    names = rows.table.column_names
    if rows.table.num_rows == 0:
        raise ValueError(f"{path} holds no rows")
    if len(set(names)) < len(names):
        raise ValueError(f"{path} has two columns of the same name; rename one")
    return rows


def read_matrix(path: Path) -> Rows:
    """A .npy matrix."""
    import pyarrow as pa

    try:
        matrix = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is no .npy file of numbers: {error}") from None
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        got = f"{matrix.dtype} of {matrix.shape}" if isinstance(matrix, np.ndarray) else "several arrays"
        raise ValueError(f"{path} must hold a matrix of numbers, a row each, got {got}")
    if matrix.dtype.itemsize > 8:
        raise ValueError(f"{path} holds {matrix.dtype}, more than 64 bits a number; save it with .astype(float)")
    native = matrix.astype(matrix.dtype.newbyteorder("="))
    return Rows(path, pa.table({f"c{c}": native[:, c] for c in range(matrix.shape[1])}), given=matrix)


def read_csv(path: Path, stream: BinaryIO) -> Rows:
    """A CSV text with a headline."""
    text = stream.read()
    table = arrow_table(text, {})
    names = table.column_names
    numbers = [name for name in names if is_number(name)]
    # Whole numbers beside words may be years, and 0, 1, 2, … are names that other programs give; other numbers, and
    # numbers alone, are hardly names.
    counted = len(names) > 1 and names == [str(place) for place in range(len(names))]
    if not counted and (len(numbers) == len(names) or not all(name.strip().isdigit() for name in numbers)):
        raise ValueError(
            f"{path}: the first line looks like data, not names ({', '.join(names[:5])}); add a headline, or begin "
            "each name with a letter"
        )
    return Rows(path, table, text=text)


def arrow_table(text: bytes, types: dict[str, Any]) -> Any:
    """A CSV text as Arrow reads it, without threads: theirs may abort the process when it ends."""
    import pyarrow.csv as arrow_csv

    return arrow_csv.read_csv(
        io.BytesIO(text),
        read_options=arrow_csv.ReadOptions(use_threads=False),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(column_types=types),
    )


def is_numeric(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers, or of true and false."""
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def is_number(text: str) -> bool:
    """Whether a text is a number in digits."""
    try:
        float(text)
    except ValueError:
        return False
    return any(letter.isdigit() for letter in text)


def no_numbers(column: Any) -> str:
    """Why a column is not numeric: its type, or, where most of it are numbers, the first word among them."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return str(column.type)
    values = column.to_pylist()
    words = [row for row, value in enumerate(values) if value is not None and not is_number(value)]
    if not words or 2 * len(words) >= len(values):
        return "text"
    return f"row {words[0]} holds {values[words[0]][:40]!r}, which is no number"
