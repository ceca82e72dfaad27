"""What rows and columns are called: labels of any kind as numbers from 0 on, in the order of their first appearance."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from onesfw.trees import HostArray


class LineLabels:
    """Labels and their numbers; new ones can be added.

    Args:
        labels: that are known from the start, different from one another.
    """

    def __init__(self, labels: Iterable[Hashable] = ()) -> None:
        self.numbers: dict[Hashable, int] = {}
        for label in labels:
            self.numbers.setdefault(label, len(self.numbers))

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def labels(self) -> list[Hashable]:
        """In the order of their numbers."""
        return list(self.numbers)

    def learn(self, column: HostArray) -> HostArray:
        """The numbers of a column of labels; those that are new get the next ones."""
        distinct, places = parted(column)
        numbers = self.numbers
        codes = np.fromiter((numbers.setdefault(label, len(numbers)) for label in distinct), np.int32, len(distinct))
        return codes[places]

    def copy(self) -> LineLabels:
        """Others, that learn for themselves."""
        return LineLabels(self.numbers)

    def find(self, column: HostArray) -> HostArray:
        """The numbers of a column of labels; −1 for those that are not known."""
        distinct, places = parted(column)
        codes = np.fromiter((self.numbers.get(label, -1) for label in distinct), np.int32, len(distinct))
        return codes[places]


def parted(column: HostArray) -> tuple[list[Hashable], HostArray]:
    """The different labels of a column, in the order of their first appearance, and the place of each entry's.

    Raises:
        TypeError: where a label cannot be hashed.
        ValueError: where one is missing.
    """
    if column.dtype.kind in "iufbSU":
        if column.dtype.kind == "f" and np.isnan(column).any():
            raise ValueError("X: a label is missing (NaN); leave those entries out")
        distinct, first, places = np.unique(column, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty(len(order), np.intp)
        rank[order] = np.arange(len(order))
        return distinct[order].tolist(), rank[places.ravel()]
    seen: dict[Hashable, int] = {}
    places = np.empty(len(column), np.intp)
    for place, label in enumerate(column.tolist()):
        if label is None or label != label:
            raise ValueError("X: a label is missing (None or NaN); leave those entries out")
        try:
            places[place] = seen.setdefault(label, len(seen))
        except TypeError:
            raise TypeError(f"X: the label {label!r:.80} is unhashable; make it a word, a number or a tuple") from None
    return list(seen), places
