"""Entries (user, item, rating) of a table, a line each; users and items by the words that stand there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import BadRows, memory, salvage
from onesfw.data.blocks import Input
from onesfw.data.encoding import NUMBER, as_numbers, dictionary
from onesfw.data.prepare import ReadOptions, open_table
from onesfw.data.tables import WORDS, CsvTable, ParquetTable, Piece, other_columns

ENTRY_BYTES = 64  # of an entry in memory while a matrix is fitted to it
WORD_BYTES = 400  # of a user or an item: its name, its number and its factors


@dataclass(frozen=True)
class Ratings:
    """Numbers of users and items, ratings (None where they were not asked for), and what users and items are called."""

    name: str
    users: np.ndarray
    items: np.ndarray
    values: np.ndarray | None
    user_labels: tuple[str, ...]
    item_labels: tuple[str, ...]
    skipped: int


class Words:
    """Words as numbers, in the order of their first appearance; without `grow`, −1 for a word that is not known."""

    def __init__(self, known: tuple[str, ...] = (), grow: bool = True) -> None:
        self.numbers = {word: number for number, word in enumerate(known)}
        self.grow = grow

    def codes(self, column: Any) -> np.ndarray:
        """The numbers of an Arrow column, which has no missing word."""
        places, words = dictionary(column)
        numbers = self.numbers
        if self.grow:
            found = [numbers.setdefault(word, len(numbers)) for word in words]
        else:
            found = [numbers.get(word, -1) for word in words]
        return np.asarray(found, np.int32)[places]


def read_ratings(
    source: str | os.PathLike[str],
    columns: dict[str, str | None],
    *,
    users: Words,
    items: Words,
    check: Any = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    skip_bad: bool = False,
) -> Ratings:
    """All entries of a CSV, TSV or Parquet file.

    Args:
        source: the file; - is the standard input.
        columns: which column holds the "user", the "item" and the "rating"; None for one that is not read.
        users: the users that are known, and that are learnt.
        items: likewise.
        check: raises ValueError where a rating does not fit.
        format: "csv" or "parquet"; None decides by the file.
        delimiter: of a CSV text.
        header: whether the first line holds the columns' names.
        skip_bad: leave lines out that cannot be read, and count them.
    """
    file = Input(os.fspath(source))
    options = ReadOptions(
        format=format or ("parquet" if file.is_parquet() else "csv"), delimiter=delimiter, header=header
    )
    options.check()
    table = open_table(file, options)
    if isinstance(table, CsvTable):
        table.words_allowed = False
    wanted = {role: name for role, name in columns.items() if name is not None}
    bad = BadRows(file.name, skip_bad)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    count, known, room = 0, 0, memory()
    for piece in whole_pieces(table, wanted):

        def rejected(row: int, error: Exception, piece: Piece = piece) -> None:
            ours = isinstance(error, Unfit)
            bad.add(piece.place(row), str(error) if ours else piece.explain(row, error))

        def parsed(first: int, last: int, piece: Piece = piece) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return parse(piece.table(first, last), wanted, users, items, check)

        parts += salvage(0, piece.count, parsed, rejected)
        count += sum(len(part[0]) for part in parts[known:])
        known = len(parts)
        if ENTRY_BYTES * count + WORD_BYTES * (len(users.numbers) + len(items.numbers)) > room:
            raise ValueError(
                f"{file.name} holds more than {count:,} ratings, which this machine's {room >> 30} GB cannot keep; "
                "take a sample of them first"
            )
    if not parts:
        skipped = f" that can be read ({bad.count:,} bad ones were skipped)" if bad.count else ""
        raise ValueError(f"{file.name} holds no rows{skipped}")
    rows, cols, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Ratings(
        file.name, rows, cols, values if "rating" in wanted else None, tuple(users.numbers), tuple(items.numbers),
        bad.count,
    )  # fmt: skip


class Unfit(ValueError):
    """A value that was read and makes no sense; its message says why."""


def whole_pieces(table: CsvTable | ParquetTable, wanted: dict[str, str]) -> Any:
    """The pieces of a table, with the wanted columns read as what they are."""
    first = table.first()
    if first is None:
        raise ValueError(f"{table.input.name} holds no rows")
    for role, name in wanted.items():
        if name not in table.names:
            named_by_place = isinstance(table, CsvTable) and not table.header
            line = first.line(0) if first.line is not None and named_by_place else None
            hint = other_columns(name, table.names, line)
            raise ValueError(f"{named(role)}: {table.input.name} has no column {name!r}{hint}")
    if len(set(wanted.values())) < len(wanted):
        raise ValueError(f"{', '.join(named(role) for role in wanted)} must name different columns")
    table.settle({name: NUMBER if role == "rating" else WORDS for role, name in wanted.items()})
    return table.pieces()


def parse(
    table: Any, wanted: dict[str, str], users: Words, items: Words, check: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries of a part of a table, or a ValueError; nothing is learnt from a part that holds a bad line."""
    values = np.zeros(table.num_rows)
    for role, name in wanted.items():
        column = table.column(name)
        if role == "rating":
            values = as_numbers(column)
            if not np.isfinite(values).all():
                raise Unfit(f"column {name!r}: a rating is missing or not finite")
            if check is not None:
                try:
                    check(values)
                except ValueError as error:
                    raise Unfit(str(error)) from None
        elif column.null_count or "" in column.unique().to_pylist():
            raise Unfit(f"column {name!r}: a value is missing")
    rows = users.codes(table.column(wanted["user"])) if "user" in wanted else np.zeros(table.num_rows, np.int32)
    cols = items.codes(table.column(wanted["item"])) if "item" in wanted else np.zeros(table.num_rows, np.int32)
    return rows, cols, values
