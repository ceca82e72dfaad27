"""What the columns of a table are: decided from its first rows, once for the whole file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import salvage
from onesfw.data.data_warning import warn
from onesfw.data.encoding import BOOLEAN, HASHED, NUMBER, ONE_HOT, TABLE, Column, Encoding, as_numbers, count_features
from onesfw.data.tables import WORDS, CsvTable, ParquetTable, other_columns

MOSTLY = 0.5  # of a column's first words
LOOKED_AT = 1000
MOST_CATEGORIES = 1_000_000
NAMED = re.compile(r"(.*[ _.-])?(id|idx|index|uid|rowid|row|no|nr)|unnamed: 0|", re.IGNORECASE)


def first_rows(table: CsvTable | ParquetTable) -> Any:
    """The rows of the first piece that make sense, as an Arrow table of inferred types."""
    import pyarrow as pa

    piece = table.first()
    parts = salvage(0, piece.count, piece.table, lambda row, error: None) if piece is not None else []
    if not parts:
        raise ValueError(f"{table.input.name} holds no rows")
    parts = [pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part for part in parts]
    return max(parts, key=len)  # the parts around a bad line may differ in their types


def kind_of(array: Any, name: str, typed: bool) -> str:
    """Numbers, truth values or words; a ValueError for whatever else. With `typed`, the file says what words are."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_boolean(kind):
        return BOOLEAN
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return NUMBER
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return WORDS if typed else kind_of_words(array)
    what = "is empty in the first rows" if pa.types.is_null(kind) else f"holds values of type {kind}"
    raise ValueError(
        f"column {name!r} {what}; leave it out with {named('drop')}, or take it for words with {named('categorical')}"
    )


def kind_of_words(array: Any) -> str:
    """What a column of words holds: where most are numbers or truth values, the others are mistakes.

    A row with such a word is then refused, by its line. To hash the column would make 2^18 features of a typing error;
    codes such as 12 and 7B are declared as words.
    """
    import pyarrow as pa

    words = [word for word in array.cast(pa.string()).slice(0, LOOKED_AT).to_pylist() if word]
    if sum(is_number(word) for word in words) > MOSTLY * len(words):
        return NUMBER
    return BOOLEAN if sum(word.lower() in ("true", "false") for word in words) > MOSTLY * len(words) else WORDS


def is_number(word: str) -> bool:
    """Whether a word is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def is_called_identifier(name: str, values: np.ndarray) -> bool:
    """Whether whole numbers, all different, have a name such as id."""
    whole = values.size > 1 and np.array_equal(values, np.floor(values))
    return whole and NAMED.fullmatch(name.strip()) is not None and np.unique(values).size == values.size


def is_numeric(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers, or of true and false."""
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def make_encoding(
    table: CsvTable | ParquetTable,
    *,
    target: str | None,
    strings: str,
    hash_bits: int,
    categorical: tuple[str, ...],
    drop: tuple[str, ...],
    normalize: bool,
    float64: bool,
    others: Iterable[CsvTable | ParquetTable] = (),
) -> Encoding:
    """An encoding of all columns but the target and the dropped ones; reads the file once for categories."""
    rows = first_rows(table)
    shown = ", ".join(table.names[:20]) + (", …" if len(table.names) > 20 else "")
    if target is None:
        raise ValueError(f"{named('target')} is needed: which column is to be predicted? The columns are {shown}")
    for option, names in (("target", (target,)), ("categorical", categorical), ("drop", drop)):
        for name in names:
            if name not in table.names:
                hint = other_columns(name, table.names)
                raise ValueError(f"{named(option)}: {table.input.name} has no column {name!r}{hint}")
    used = [name for name in table.names if name != target and name not in drop]
    if not used:
        raise ValueError(f"{table.input.name}: no column is left to predict from")
    typed = isinstance(table, ParquetTable)
    kinds = {
        name: WORDS if name in categorical else kind_of(rows.column(name), name, typed or name in table.constants)
        for name in (*used, target)
    }
    target_kind = kinds.pop(target)
    for name, kind in kinds.items():
        column = rows.column(name)
        if kind == NUMBER and is_numeric(column.type) and is_called_identifier(name, as_numbers(column)):
            warn(
                f"{table.input.name}: column {name!r} looks like an identifier; if it is one, leave it out with "
                f"{named('drop')}"
            )
    words = [name for name, kind in kinds.items() if kind == WORDS]
    found: dict[str, tuple[str, ...]] = {}
    if strings == ONE_HOT and words:
        if not table.input.repeatable:
            raise ValueError(
                f"columns of words ({', '.join(words[:5])}{', …' if len(words) > 5 else ''}) are read for their "
                "categories first, and a stream can be read only once; save it to a file and give its path, or leave "
                f"them out with {named('drop')}"
            )
        found = {name: tuple(values) for name, values in distinct_words(chain([table], others), words).items()}
    columns = tuple(
        Column(name, kind if kind != WORDS else ONE_HOT if strings == ONE_HOT else HASHED, found.get(name, ()))
        for name, kind in kinds.items()
    )
    hashing = any(column.kind == HASHED for column in columns)
    return Encoding(
        TABLE, count_features(columns, hash_bits), normalize=normalize, float64=float64, columns=columns,
        hash_bits=hash_bits if hashing else 0, target=target, target_words=target_kind in (WORDS, BOOLEAN),
    )  # fmt: skip


def distinct_words(tables: Iterable[CsvTable | ParquetTable], names: list[str]) -> dict[str, list[str]]:
    """The different words of these columns, sorted, from one reading of the files; bad rows are left to the source."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, set[str]] = {name: set() for name in names}
    for table in tables:
        table.settle(dict.fromkeys(names, WORDS))
        for piece in table.pieces():
            for part in salvage(0, piece.count, piece.table, lambda row, error: None):
                for name, words in found.items():
                    words.update(pc.unique(part.column(name).cast(pa.string())).drop_null().to_pylist())
            if sum(map(len, found.values())) > MOST_CATEGORIES:
                raise ValueError(
                    f"there are more than {MOST_CATEGORIES:,} categories; hash them with {named('strings')} hash"
                )
    return {name: sorted(words) for name, words in found.items()}
