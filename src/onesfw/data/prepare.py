"""From a path and options to a source: format, encoding and labels, decided before the first row is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import PurePath
from typing import Any

from onesfw.arguments import choose, whole_number
from onesfw.data.batch import START, BadRows, Batch, Position
from onesfw.data.blocks import Input
from onesfw.data.encoding import LIBSVM, ONE_HOT, TABLE, Encoding
from onesfw.data.labels import Label, distinct, parse_labels, show

FORMATS = (LIBSVM, "csv", "parquet")
STRINGS = ("hash", ONE_HOT)
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
COMPRESSED = (".gz", ".xz", ".bz2")
MOST_BITS = 30


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
    labels: str | None = None
    classify: bool = True
    non_negative: bool = False
    normalize: bool = False
    float64: bool = False
    skip_bad: bool = False

    def check(self) -> None:
        """Raise a sentence for a value that makes no sense."""
        if self.format is not None:
            choose(self.format, FORMATS, "--format")
        choose(self.strings, STRINGS, "--strings")
        whole_number(self.hash_bits, "--hash-bits", 1, MOST_BITS)
        if self.features is not None:
            whole_number(self.features, "--features", 1, 2**31 - 1)
        if self.delimiter is not None and len(self.delimiter.encode()) != 1:
            raise ValueError(f"--delimiter must be one character, got {self.delimiter!r}")

    def parts(self, source: Input) -> dict[str, str]:
        """A name and a text for everything that decides which rows come out."""
        options = {f"--{field.name.replace('_', '-')}": str(getattr(self, field.name)) for field in fields(self)}
        return {"file": source.fingerprint(), **options}


@dataclass(frozen=True)
class Prepared:
    """What was decided about a file."""

    encoding: Encoding
    labels: tuple[Label, Label] | None
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
        """What `to_json` wrote."""
        labels = content["labels"]
        pair = None if labels is None else (labels[0], labels[1])
        return cls(Encoding.from_json(content["encoding"]), pair, tuple(content["names"]))


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
        if peeked is not None and start == START:
            return chain([peeked[0]], peeked[1])
        self.bad.count, self.bad.examples = 0, []
        return self.inner.batches(start, proof)


def find_format(source: Input, wished: str | None) -> str:
    """The format by wish, by the first bytes or by the name."""
    if wished is not None:
        return wished
    if source.is_parquet():
        return "parquet"
    suffixes = [suffix.lower() for suffix in PurePath(source.path).suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1], LIBSVM) if suffixes else LIBSVM


def open_table(source: Input, options: ReadOptions, names: tuple[str, ...] = ()) -> Any:
    """A CSV text or a Parquet file."""
    from onesfw.data.tables import CsvTable, ParquetTable

    if find_format(source, options.format) == "parquet":
        return ParquetTable(source)
    tabs = PurePath(source.path).name.lower().partition(".tsv")[1] != ""
    return CsvTable(source, options.delimiter or ("\t" if tabs else ","), options.header, list(names))


def reopen(
    source: Input, options: ReadOptions, prepared: Prepared, *, strict: bool = True, targets: bool = True
) -> Source:
    """A source with everything decided: a run that goes on, a test file, a file to predict."""
    bad = BadRows(source.name, options.skip_bad)
    encoding = prepared.encoding
    if encoding.format == LIBSVM:
        found = find_format(source, options.format)
        if found != LIBSVM:
            raise ValueError(f"{source.name} is {found}, and the model was trained on LIBSVM text; --format overrides")
        return Source(libsvm(source, bad, encoding, strict), bad)
    from onesfw.data.tables import TableSource

    if find_format(source, options.format) == LIBSVM:
        raise ValueError(f"{source.name} is not known for CSV or Parquet, which the model needs; say so with --format")
    table = open_table(source, options, prepared.names)
    return Source(TableSource(table, bad, encoding, targets=targets), bad)


def libsvm(source: Input, bad: BadRows, encoding: Encoding, strict: bool) -> Any:
    """The source of a LIBSVM text."""
    from onesfw.data.libsvm import LibsvmSource

    return LibsvmSource(
        source, bad, n_features=encoding.n_features, zero_based=encoding.zero_based, dtype=encoding.dtype, strict=strict
    )


def prepare(source: Input, options: ReadOptions) -> tuple[Prepared, Source]:
    """Decide the encoding and the labels of a training file; reads it once beforehand only where it must."""
    options.check()
    bad = BadRows(source.name, options.skip_bad)
    seen: list[Label] = []
    names: tuple[str, ...] = ()
    inner: Any
    if find_format(source, options.format) == LIBSVM:
        width = options.features
        if width is None:
            if not source.repeatable:
                raise ValueError("--features is needed: how many features has the stream? It can be read only once")
            width, seen = scan_libsvm(source, options.zero_based)
        encoding = Encoding(
            LIBSVM, width, zero_based=options.zero_based, normalize=options.normalize, float64=options.float64
        )
        inner = libsvm(source, bad, encoding, strict=True)
    else:
        from onesfw.data.columns import make_encoding
        from onesfw.data.tables import TableSource

        table = open_table(source, options)
        encoding = make_encoding(
            table, target=options.target, strings=options.strings, hash_bits=options.hash_bits,
            categorical=options.categorical, drop=options.drop, normalize=options.normalize, float64=options.float64,
        )  # fmt: skip
        if encoding.target_words and not options.classify:
            raise ValueError(f"--target {encoding.target}: the column holds words, and this loss needs numbers")
        names = tuple(table.names)
        inner = TableSource(table, bad, encoding, targets=True)
    opened = Source(inner, bad)
    prepared = Prepared(encoding, None, names)
    if options.classify:
        return replace(prepared, labels=find_labels(source, options, encoding, opened, seen)), opened
    opened.first()
    return prepared, opened


def scan_libsvm(source: Input, zero_based: bool) -> tuple[int, list[Label]]:
    """The number of features and the labels of a whole file."""
    from onesfw.data.libsvm import scan

    width, labels = scan(source, zero_based)
    return width, list(labels)


def find_labels(
    source: Input, options: ReadOptions, encoding: Encoding, opened: Source, seen: list[Label]
) -> tuple[Label, Label]:
    """The two labels: as given, as scanned, as in the first batch, or as a reading of the whole file shows them."""
    batch = opened.first()
    if options.labels is not None:
        return parse_labels(options.labels, encoding.target_words)
    labels = seen if len(seen) == 2 else distinct(batch)
    if len(labels) == 1 and source.repeatable:
        labels = sorted(all_labels(source, options, encoding))
    if len(labels) == 1:
        raise ValueError(
            f"{source.name}: the only label is {show(labels[0])}, and two are needed; "
            "name both with --labels A,B where the second one comes later"
        )
    if len(labels) > 2:
        row = next((i for i, label in enumerate(plain_targets(batch)) if label not in labels[:2]), None)
        place = "" if row is None else f", {batch.place(row)}"
        raise ValueError(
            f"{source.name}{place}: there are more labels than two, {', '.join(map(show, labels[:3]))} among them; "
            "name two with --labels A,B, and leave rows with other ones out with --skip-bad"
        )
    return labels[0], labels[1]


def plain_targets(batch: Batch) -> list[Any]:
    """A batch's targets as a list."""
    return [] if batch.targets is None else batch.targets.tolist()


def all_labels(source: Input, options: ReadOptions, encoding: Encoding) -> set[Any]:
    """The labels of a whole file."""
    if encoding.format == LIBSVM:
        return set(scan_libsvm(source, encoding.zero_based)[1])
    from onesfw.data.columns import distinct_words
    from onesfw.data.libsvm import as_number

    assert encoding.target is not None
    words = distinct_words(open_table(source, options), [encoding.target])[encoding.target]
    if encoding.target_words:
        return set(words)
    return {number for word in words if (number := as_number(word.encode())) is not None}


__all__ = ["FORMATS", "STRINGS", "TABLE", "Prepared", "ReadOptions", "Source", "find_format", "prepare", "reopen"]
