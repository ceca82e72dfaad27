"""LIBSVM text, `label index:value …` a line, read block by block by scikit-learn's reader."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import START, BadRows, Batch, Position, csr, joined, salvage
from onesfw.data.blocks import Block, Input

LARGEST = 2**31 - 1  # the reader's indices are C ints
MANY = 1_000  # labels, above which they are no classes


class LibsvmSource:
    """Rows of a LIBSVM text.

    Whether indices count from 0 or from 1, and the number of features, are the same for every block: decided block
    by block they would differ. With `strict`, an index beyond `n_features` makes a bad row; without, it is left out,
    as a feature that the model never saw.
    """

    def __init__(
        self, source: Input, bad: BadRows, *, n_features: int, zero_based: bool, dtype: Any, strict: bool = True
    ) -> None:
        self.input, self.bad, self.n_features = source, bad, n_features
        self.zero_based, self.dtype, self.strict = zero_based, dtype, strict

    def batches(self, start: Position = START, proof: str = "") -> Iterator[Batch]:
        """Batches from `start` on."""
        for block in self.input.blocks(start, proof):
            batch = self.batch(block)
            if batch is not None:
                yield batch

    def batch(self, block: Block) -> Batch | None:
        """A block's rows; None where it holds none."""
        lines: list[bytes] | None = None
        skipped: set[int] = set()

        def rejected(place: int, error: Exception) -> None:
            assert lines is not None
            self.bad.add(f"line {block.first + place:,}", explain(lines[place], self, error))
            skipped.add(place)

        def parse(first: int, last: int) -> Any:
            assert lines is not None
            return self.parse(b"\n".join(lines[first:last]))

        try:
            parts = [self.parse(block.text)]
        except (ValueError, OverflowError):
            lines = block.lines()
            parts = salvage(0, len(lines), parse, rejected)
        parts = [part for part in parts if part[0].shape[0]]
        if not parts:
            return None
        rows = joined([part[0] for part in parts], self.n_features)
        targets = np.concatenate([part[1] for part in parts])

        kept: list[int] = []

        def place(row: int) -> str:
            if not kept:  # seldom asked for, but then for many rows
                kept.extend(i for i, line in enumerate(block.lines()) if i not in skipped and content(line))
            return f"line {block.first + kept[row]:,}"

        return Batch(rows, targets, place, block.end, block.proof)

    def parse(self, text: bytes) -> tuple[Any, np.ndarray]:
        """Rows and labels of a text, or a ValueError where a line of it is wrong."""
        from sklearn.datasets import load_svmlight_file

        if b"_" in text and any(b"_" in content(line) for line in text.split(b"\n")):
            raise ValueError("1_000 is a number in Python's source only, which the reader does not know")
        width = self.n_features if self.strict else None
        rows, labels = load_svmlight_file(
            io.BytesIO(text), n_features=width, zero_based=self.zero_based, dtype=self.dtype
        )
        if not (np.isfinite(rows.data).all() and np.isfinite(labels).all()):
            raise ValueError("a number is not finite")
        data, indices, indptr = rows.data, rows.indices, rows.indptr
        if rows.shape[1] > self.n_features:
            known = indices < self.n_features
            counts = np.concatenate([[0], np.cumsum(known)])
            data, indices, indptr = data[known], indices[known], counts[indptr]
        return csr(data, indices, indptr, self.n_features), labels


def content(line: bytes) -> bytes:
    """A line without its comment and the spaces around."""
    return line.partition(b"#")[0].strip()


def explain(line: bytes, source: LibsvmSource, error: Exception) -> str:
    """What is wrong with a line, in words."""
    words = content(line).split()
    label, features = words[0], words[1:]
    if b":" in label:
        return f"it begins with {shown(label)}, not with a label; write 0 where the label is not known"
    value = as_number(label)
    if value is None or not math.isfinite(value):
        table = f"; give {named('format')} csv if this is a table" if b"," in line else ""
        return f"the label {shown(label)} is not a finite number{table}"
    if features and features[0].startswith(b"qid"):
        features = features[1:]
    before = -1
    for word in features:
        index_text, colon, value_text = word.partition(b":")
        if not colon:
            return f"{shown(word)} is not of the form index:value"
        try:
            index = int(plain(index_text))
        except ValueError:
            return f"{shown(index_text)} in {shown(word)} is not a whole number"
        number = as_number(value_text)
        if number is None:
            return f"the value {shown(value_text)} of feature {index} is not a number"
        if index < 0:
            return f"the index {index} is negative"
        if index == 0 and not source.zero_based:
            return f"it has a feature 0, but indices count from 1; give {named('zero_based')} if they count from 0"
        if index <= before:
            return f"feature {index} comes after feature {before}; indices must rise"
        last = source.n_features - source.zero_based
        if index > LARGEST or (source.strict and index > last):
            return f"feature {index} is beyond the last one, {min(last, LARGEST)}; give a larger {named('features')}"
        if not abs(number) <= float(np.finfo(source.dtype).max):
            return f"the value {shown(value_text)} of feature {index} is not finite in {np.dtype(source.dtype).name}"
        before = index
    return str(error)


def as_number(text: bytes) -> float | None:
    """A number as the reader reads it; None where it is none."""
    try:
        return float(plain(text))
    except ValueError:
        return None


def plain(text: bytes) -> bytes:
    """The text, without an underscore: `float` and `int` would read over it."""
    if b"_" in text:
        raise ValueError("an underscore is no digit")
    return text


def shown(text: bytes) -> str:
    """A word of the file in quotes, shortened."""
    word = text.decode(errors="replace")
    return repr(word if len(word) <= 40 else f"{word[:40]}…")


def scan(source: Input, zero_based: bool) -> tuple[int, list[float]]:
    """The number of features of a file and its labels, from the first and last words of each line.

    Indices rise along a line, so its last one is its largest. Lines that make no sense are left to the reader, which
    names them. No more than `MANY` labels and one are listed.
    """
    largest = -1
    words: set[bytes] = set()
    for block in source.blocks():
        commented = b"#" in block.text
        for line in block.lines():
            if commented:
                line = line.partition(b"#")[0]
            head, _, value = line.rpartition(b":")
            try:
                if head:
                    float(value)
                    index = int(head.rsplit(None, 1)[-1])
                    if largest < index <= LARGEST and as_number(line.split(None, 1)[0]) is not None:
                        largest = index
                if len(words) <= MANY:
                    words.update(line.split(None, 1)[:1])
            except (ValueError, IndexError):
                continue
    labels = {number for word in words if (number := as_number(word)) is not None and math.isfinite(number)}
    return max(1, largest + zero_based), sorted(labels)
