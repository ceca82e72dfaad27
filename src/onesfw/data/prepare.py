"""From a path and options to a source: format, encoding and labels, decided before the first row is learnt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import Any

import numpy as np

from onesfw.arguments import choose, named, whole_number
from onesfw.data.batch import START, BadRows, Batch, Position
from onesfw.data.blocks import Block, Input
from onesfw.data.encoding import BLOCKS, LIBSVM, NUMBERS, ONE_HOT, Encoding
from onesfw.data.labels import Label, check_labels, distinct, parse_labels
from onesfw.data.sources import Blocks, BlockSource, Files, Parts, RowsFrom
from onesfw.data.store import address_of, is_uri

FORMATS = (LIBSVM, "csv", "parquet")
STRINGS = ("hash", ONE_HOT)
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
COMPRESSED = (".gz", ".xz", ".bz2")
MOST_BITS = 30
TAB = r"\t"  # a delimiter as it is typed
HEADLINE = 1 << 16  # bytes of a text that are read to see its headline


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read; None leaves the decision to what the file shows."""

    format: str | None = None
    features: int | None = None
    zero_based: bool = False
    target: str | None = None
    strings: str = "hash"
    hash_bits: int = 18
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    delimiter: str | None = None
    header: bool = True
    labels: str | tuple[Label, ...] | None = None
    classify: bool = True
    non_negative: bool = False
    normalize: bool = False
    float64: bool = False
    skip_bad: bool = False

    def check(self) -> None:
        """Raise an error for a value that makes no sense."""
        if self.format is not None:
            choose(self.format, FORMATS, "format")
        choose(self.strings, STRINGS, "strings")
        whole_number(self.hash_bits, "hash_bits", 1, MOST_BITS)
        if self.features is not None:
            whole_number(self.features, "features", 1, 2**31 - 1)
        if self.delimiter not in (None, TAB) and len(self.delimiter.encode()) != 1:
            remedy = "replace it by one first"
            if self.delimiter == 2 * self.delimiter[:1] != "":
                remedy = f"give {self.delimiter[0]!r}, and count the empty columns between two of them"
            raise ValueError(f"{named('delimiter')} must be one character, got {self.delimiter!r}; {remedy}")

    def parts(self, source: RowsFrom) -> dict[str, str]:
        """A name and a text for everything that decides which rows come out."""
        return {"file": source.fingerprint(), **self.words()}

    def words(self) -> dict[str, str]:
        """A name and a text for every option."""
        return {field.name: str(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True)
class Prepared:
    """What was decided about a file."""

    encoding: Encoding
    labels: tuple[Label, ...] | None
    names: tuple[str, ...] = ()
    """All columns of a CSV text, in its order."""

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "encoding": self.encoding.to_json(),
            "labels": None if self.labels is None else list(self.labels),
            "names": list(self.names),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Prepared:
        """What `to_json` wrote.

        Raises:
            KeyError, TypeError, AttributeError: where it did not.
        """
        labels = None if content["labels"] is None else tuple(content["labels"])
        if not all(isinstance(label, (str, int, float)) for label in labels or ()):
            raise TypeError("labels are words or numbers")
        return cls(Encoding.from_json(content["encoding"]), labels, tuple(content["names"]))


class Source:
    """Batches of a file or a stream; the first one can be looked at beforehand."""

    def __init__(self, inner: Any, bad: BadRows) -> None:
        self.inner, self.bad = inner, bad
        self.peeked: tuple[Batch, Iterator[Batch]] | None = None

    def first(self) -> Batch:
        """The first batch, which `batches` will yield too."""
        batches = self.inner.batches()
        batch = next(batches, None)
        if batch is None:
            count = f" that can be read ({self.bad.count:,} bad ones were skipped)" if self.bad.count else ""
            raise ValueError(f"{self.bad.name} holds no rows{count}")
        self.peeked = batch, batches
        return batch

    def batches(self, start: Position = START, proof: str = "") -> Iterator[Batch]:
        """Batches from `start` on."""
        peeked, self.peeked = self.peeked, None
        if peeked is not None and not any(start):
            return chain([peeked[0]], peeked[1])
        self.bad.count, self.bad.examples = 0, []
        return self.inner.batches(start, proof)


def find_format(source: Input, wished: str | None) -> str:
    """The format by wish, by the first bytes or by the name."""
    if wished is not None:
        return wished
    if source.is_parquet():
        return "parquet"
    path = address_of(source.path) if is_uri(source.path) else source.path
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1], LIBSVM) if suffixes else LIBSVM


def open_table(source: Input, options: ReadOptions, names: tuple[str, ...] = ()) -> Any:
    """A CSV text or a Parquet file."""
    from onesfw.data.tables import CsvTable, ParquetTable

    if find_format(source, options.format) == "parquet":
        return ParquetTable(source)
    tabs = PurePath(source.path).name.lower().partition(".tsv")[1] != ""
    mark = "\t" if options.delimiter == TAB else options.delimiter
    return CsvTable(source, mark or ("\t" if tabs else ","), options.header, list(names))


def open_part(source: RowsFrom, part: Input, options: ReadOptions, names: tuple[str, ...]) -> Any:
    """A table among several, whose columns may stand in another order: each text is asked for its own headline."""
    if isinstance(source, Input) or not options.header or find_format(part, options.format) == "parquet":
        return open_table(part, options, names)
    table = open_table(part, options)
    table.first()
    return table


def check_alike(source: RowsFrom, options: ReadOptions, encoding: Encoding | None = None) -> None:
    """Raise ValueError, by its name, for a file of another format than the first, or with other columns or kinds.

    The row groups of Parquet are looked at on their own (`row_groups.py`).
    """
    parts = inputs_of(source)
    if len(parts) < 2:
        return
    formats = {part.name: find_format(part, options.format) for part in parts}
    first = formats[parts[0].name]
    for name, found in formats.items():
        if found != first:
            raise ValueError(
                f"{named('source')}: {name} is {found}, and {parts[0].name} is {first}; give files of one format"
            )
    if encoding is None or first != "csv" or not options.header or not isinstance(source, Files):
        return
    wanted = [column.name for column in encoding.columns] + ([encoding.target] if encoding.target else [])
    for part in parts[1:]:
        block = next(part.blocks(size=HEADLINE), None)
        if block is None:
            raise ValueError(f"{part.name} holds no rows")
        table = open_table(part, options)
        table.own = table.columns(block.lines())
        missing = next((name for name in wanted if name not in table.known), None)
        other = next((name for name in table.names if name not in wanted and name not in options.drop), None)
        if missing is not None or other is not None:
            what = f"lacks the column {missing!r} of" if missing is not None else f"has a column {other!r} unlike"
            raise ValueError(f"{part.name} {what} {parts[0].name}; all files need the same columns")
        check_kinds(table, block, encoding, parts[0].name)


def check_kinds(table: Any, block: Block, encoding: Encoding, first: str) -> None:
    """Raise ValueError where the first rows of a text hold words in a column of numbers."""
    from onesfw.data.columns import WORDS, first_rows, kind_of

    piece = table.piece(block, block.lines()[1:], 2)
    if not piece.count:
        return
    table.peeked = piece, iter(())
    rows = first_rows(table)
    numbers = [column.name for column in encoding.columns if column.kind in NUMBERS]
    for name in numbers if encoding.target_words or encoding.target is None else [*numbers, encoding.target]:
        if name not in table.own or rows.column(name).null_count == rows.num_rows:
            continue
        try:
            found = kind_of(rows.column(name), name, False)
        except ValueError as error:
            raise ValueError(f"{table.input.name}: {error}") from None
        if found == WORDS:
            raise ValueError(
                f"{table.input.name} holds words in column {name!r}, not numbers, unlike {first}; all files need the "
                f"same kinds, or name the column in {named('categorical')}"
            )


def reopen(
    source: RowsFrom, options: ReadOptions, prepared: Prepared, *, strict: bool = True, targets: bool = True
) -> Source:
    """A source with everything decided: a run that goes on, a test file, a file to predict."""
    bad = BadRows(source.name, options.skip_bad)
    encoding = prepared.encoding
    if isinstance(source, Blocks):
        return Source(BlockSource(source, bad, encoding.n_features, encoding.dtype), bad)
    if encoding.format == BLOCKS:
        raise ValueError(f"{source.name} is a file, and the model was trained on blocks (X, y); predict such blocks")

    def opened(part: Input) -> Any:
        found = find_format(part, options.format)
        if encoding.format == LIBSVM:
            if found != LIBSVM:
                raise ValueError(
                    f"{part.name} is {found}, and the model was trained on LIBSVM text; {named('format')} overrides"
                )
            return libsvm(part, bad, encoding, strict)
        from onesfw.data.tables import TableSource

        if found == LIBSVM:
            raise ValueError(
                f"{part.name} is not known for CSV or Parquet, which the model needs; say so with {named('format')}"
            )
        return TableSource(open_part(source, part, options, prepared.names), bad, encoding, targets=targets)

    return Source(one_after_another(source, opened, bad), bad)


def one_after_another(source: Input | Files, opened: Callable[[Input], Any], bad: BadRows) -> Any:
    """The source of a file, or of several."""
    if isinstance(source, Input):
        return opened(source)
    makers = [partial(opened, part) for part in source.inputs]
    return Parts(makers, [part.name for part in source.inputs], bad)


def inputs_of(source: RowsFrom) -> list[Input]:
    """The files of a source."""
    return [source] if isinstance(source, Input) else source.inputs if isinstance(source, Files) else []


def libsvm(source: Input, bad: BadRows, encoding: Encoding, strict: bool) -> Any:
    """The source of a LIBSVM text."""
    from onesfw.data.libsvm import LibsvmSource

    return LibsvmSource(
        source, bad, n_features=encoding.n_features, zero_based=encoding.zero_based, dtype=encoding.dtype, strict=strict
    )


def prepare(source: RowsFrom, options: ReadOptions) -> tuple[Prepared, Source]:
    """Decide the encoding and the labels of training rows; reads files once beforehand only where it must."""
    options.check()
    if isinstance(source, Blocks):
        return prepare_blocks(source, options)
    bad = BadRows(source.name, options.skip_bad)
    check_alike(source, options)
    first = inputs_of(source)[0]
    found = find_format(first, options.format)
    seen: list[Label] = []
    names: tuple[str, ...] = ()
    if found == LIBSVM:
        if options.target is not None:
            raise ValueError(
                f"{named('target')} names a column of a table, and {first.name} is taken for LIBSVM text; give "
                f"{named('format')} csv, or leave {named('target')} out"
            )
        width = options.features
        if width is None:
            if not source.repeatable:
                raise ValueError(
                    f"{named('features')} is needed: how many features has the stream? It can be read only once"
                )
            width, seen = scan_libsvm(source, options.zero_based)
        encoding = Encoding(
            LIBSVM, width, zero_based=options.zero_based, normalize=options.normalize, float64=options.float64
        )
        inner = one_after_another(source, lambda part: libsvm(part, bad, encoding, True), bad)
    else:
        from onesfw.data.columns import make_encoding
        from onesfw.data.tables import TableSource

        table = open_table(first, options)
        others = (open_table(part, options) for part in inputs_of(source)[1:])
        encoding = make_encoding(
            table, target=options.target, strings=options.strings, hash_bits=options.hash_bits,
            categorical=options.categorical, drop=options.drop, normalize=options.normalize, float64=options.float64,
            others=others,
        )  # fmt: skip
        if encoding.target_words and not options.classify:
            raise ValueError(
                f"{named('target')} {encoding.target}: the column holds words, and this loss needs numbers; choose "
                f"{named('loss')} logistic or squared_hinge for classes"
            )
        names = tuple(table.own)
        check_alike(source, options, encoding)

        def opened_table(part: Input) -> Any:
            again = table if part is first else open_part(source, part, options, names)
            return TableSource(again, bad, encoding, targets=True)

        inner = one_after_another(source, opened_table, bad)
    opened = Source(inner, bad)
    prepared = Prepared(encoding, None, names)
    if options.classify:
        return replace(prepared, labels=find_labels(source, options, encoding, opened, seen)), opened
    opened.first()
    return prepared, opened


def prepare_blocks(source: Blocks, options: ReadOptions) -> tuple[Prepared, Source]:
    """The same for blocks (X, y): the first one tells the number of columns and what the targets are."""
    bad = BadRows(source.name, options.skip_bad)
    dtype = np.float64 if options.float64 else np.float32
    opened = Source(BlockSource(source, bad, options.features, dtype), bad)
    batch = opened.first()
    width = batch.rows.shape[1]
    opened.inner.n_features = width
    words = batch.targets is not None and batch.targets.dtype == object
    if words and not options.classify:
        raise ValueError(f"{named('source')}: the targets are words, and this loss needs numbers")
    encoding = Encoding(BLOCKS, width, normalize=options.normalize, float64=options.float64, target_words=words)
    prepared = Prepared(encoding, None)
    if not options.classify:
        return prepared, opened
    if options.labels is not None:
        return replace(prepared, labels=parse_labels(options.labels, words)), opened
    labels = set(distinct(batch))
    if source.repeatable:
        for other in BlockSource(source, bad, width, dtype).batches():
            labels.update(distinct(other))
    return replace(prepared, labels=check_labels(sorted(labels), source.name)), opened


def scan_libsvm(source: RowsFrom, zero_based: bool) -> tuple[int, list[Label]]:
    """The number of features and the labels of whole files."""
    from onesfw.data.libsvm import scan

    width, labels = 1, set()
    for part in inputs_of(source):
        wide, found = scan(part, zero_based)
        width = max(width, wide)
        labels.update(found)
    return width, sorted(labels)


def find_labels(
    source: RowsFrom, options: ReadOptions, encoding: Encoding, opened: Source, seen: list[Label]
) -> tuple[Label, ...]:
    """The labels: as given, as scanned, as in the first batch where it has two, or as the whole of the files shows."""
    batch = opened.first()
    if options.labels is not None:
        return parse_labels(options.labels, encoding.target_words)
    labels = seen or distinct(batch)
    if len(labels) != 2 and not seen and source.repeatable:
        labels = sorted(all_labels(source, options, encoding))
    return check_labels(labels, source.name)


def all_labels(source: RowsFrom, options: ReadOptions, encoding: Encoding) -> set[Any]:
    """The labels of whole files."""
    if encoding.format == LIBSVM:
        return set(scan_libsvm(source, encoding.zero_based)[1])
    from onesfw.data.columns import distinct_words
    from onesfw.data.libsvm import as_number

    assert encoding.target is not None
    found: set[Any] = set()
    for part in inputs_of(source):
        found.update(distinct_words([open_table(part, options)], [encoding.target])[encoding.target])
    if encoding.target_words:
        return found
    return {number for word in found if (number := as_number(word.encode())) is not None}
