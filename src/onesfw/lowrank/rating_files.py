"""Completion of a file of ratings: users and items by their words, a test file, and recommendations."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from onesfw.arguments import choose, whole_number
from onesfw.data.data_warning import warn
from onesfw.data.ratings import Ratings, Words, read_ratings
from onesfw.engine.keys import Key
from onesfw.files import check_target, whole_file
from onesfw.lowrank.bias_ridge import Ridge
from onesfw.lowrank.completion import complete
from onesfw.lowrank.low_rank import LowRank
from onesfw.lowrank.observed import ENTRY_LOSSES, check_values
from onesfw.trees import HostArray

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Columns:
    """How a file of ratings is read.

    Args:
        user: the column of the users.
        item: the column of the items.
        rating: the column of the values.
        format: "csv" or "parquet"; None decides by the file.
        delimiter: of a CSV text; None for a comma, or a tab where the name ends in .tsv.
        header: whether the first line of a CSV text holds names; without it columns are called 1, 2, ….
        skip_bad: leave lines out that cannot be read, and count them, instead of raising.

    Example:
        >>> from onesfw.lowrank import Columns
        >>> Columns("userId", "movieId", "rating").delimiter is None
        True
    """

    user: str
    item: str
    rating: str
    format: str | None = None
    delimiter: str | None = None
    header: bool = True
    skip_bad: bool = False

    def __post_init__(self) -> None:
        if self.format is not None:
            choose(self.format, ("csv", "parquet"), "format")

    def read(self, source: PathLike, loss: str, users: Words, items: Words) -> Ratings:
        """The entries of a file."""
        found = read_ratings(
            source, {"user": self.user, "item": self.item, "rating": self.rating}, users=users, items=items,
            check=lambda values: check_values(values, loss), format=self.format, delimiter=self.delimiter,
            header=self.header, skip_bad=self.skip_bad,
        )  # fmt: skip
        if found.skipped:
            warn(f"{found.name}: {found.skipped:,} bad lines were skipped")
        return found


@dataclass(frozen=True)
class Completed:
    """A model of a file of ratings, and the entries that it was learnt from.

    Args:
        model: whose rows are users and whose columns are items, by their labels.
        ratings: the entries.

    Example:
        >>> from onesfw.lowrank import Completed
        >>> Completed.__name__  # `complete_file` makes it
        'Completed'
    """

    model: LowRank
    ratings: Ratings

    @property
    def repeated(self) -> int:
        """Lines whose user and item stood there before; such entries count once, with the mean of their values."""
        return len(self.ratings.users) - self.model.entries

    def recommend(
        self, users: PathLike | list[str] | None, column: str, out: PathLike, k: int = 10, *, item: str = "item"
    ) -> int:
        """Write the best items that each user has no rating for, as CSV: user, item, place and prediction.

        Args:
            users: a table with a column of users, or their names; None for all that were learnt.
            column: of the users, in the table and in the CSV file.
            out: the CSV file, written whole or not at all.
            k: how many items for each user.
            item: what the CSV file calls the column of the items.

        Returns:
            How many users were not known; they get what the items' biases say.

        Raises:
            ValueError, OSError: where the table has no such column, or the file cannot be written.
        """
        most = whole_number(k, "k", 1)
        target = os.fspath(out)
        check_target(target)
        known = self.ratings.user_labels
        names = list(known) if users is None else users if isinstance(users, list) else read_users(users, column)
        numbers = {name: number for number, name in enumerate(known)}
        order = np.argsort(self.ratings.users, kind="stable")
        begin = np.searchsorted(self.ratings.users[order], np.arange(len(known) + 1))
        with whole_file(target) as file:
            text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow([column, item, "place", "prediction"])
            for name in names:
                row = numbers.get(name, -1)
                seen = self.ratings.items[order[begin[row] : begin[row + 1]]] if row >= 0 else np.zeros(0, np.int32)
                writer.writerows(self.lines(name, row, seen, most))
            text.detach()
        return sum(name not in numbers for name in names)

    def lines(self, name: str, row: int, seen: HostArray, k: int) -> Iterator[list[str]]:
        """The lines of one user."""
        columns, values = self.model.top_of_code(row, k, seen)
        for place, (item, value) in enumerate(zip(columns, values, strict=True), 1):
            yield [name, self.ratings.item_labels[item], str(place), f"{value:.6g}"]


def read_users(source: PathLike, column: str) -> list[str]:
    """The users of a table, each once, in the order of their first appearance."""
    asked = Words()
    read_ratings(source, {"user": column}, users=asked, items=Words())
    return list(asked.numbers)


def complete_file(
    source: PathLike,
    columns: Columns,
    *,
    test: PathLike | None = None,
    radius: float | str = "path",
    loss: str = "squared",
    weighted: bool = True,
    biases: bool = True,
    max_rank: int | None = None,
    gap_tol: float = 1e-3,
    delta: float = 1.0,
    ridge: float | Ridge | None = None,
    key: Key = 0,
    progress: bool = False,
    checkpoint: PathLike | None = None,
    time_limit: float | None = None,
) -> Completed:
    """`complete` from a table of ratings in CSV, TSV or Parquet, whose users and items have names.

    Args:
        source: the file; - is the standard input.
        columns: which columns hold users, items and ratings, and how the file is read.
        test: a file of the same columns to measure on.
        radius: as in `complete`, like all that follows.
        loss: "squared", "huber", "logistic" or "poisson".
        weighted: let users and items count in the norm by their ratings.
        biases: learn one number for each user and item too.
        max_rank: of the matrix; None for no limit.
        gap_tol: relative to the value.
        delta: where the Huber loss turns linear.
        ridge: of the biases; None estimates it.
        key: a seed.
        progress: show a bar.
        checkpoint: a folder to save the run in.
        time_limit: in seconds.

    Returns:
        The model with its labels and its scores on the test file, and the entries.

    Raises:
        ValueError, TypeError, OSError: where an argument is wrong, or a file cannot be read.

    Example:
        >>> import tempfile, pathlib
        >>> import onesfw as fw
        >>> lines = [f"u{i},m{j},{1 + (i * j) % 5}" for i in range(8) for j in range(6)]
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "ratings.csv"
        >>> _ = file.write_text("user,item,rating\\n" + "\\n".join(lines))
        >>> done = fw.lowrank.complete_file(file, fw.lowrank.Columns("user", "item", "rating"), radius=1.0)
        >>> done.model.shape, done.model.row_labels[:2]
        ((8, 6), ('u0', 'u1'))
    """
    choose(loss, ENTRY_LOSSES, "loss")
    ratings = columns.read(source, loss, Words(), Words())
    held = None
    if test is not None:
        known = Words(ratings.user_labels, grow=False), Words(ratings.item_labels, grow=False)
        held = columns.read(test, loss, *known)
    model = complete(
        ratings.users, ratings.items, ratings.values, (len(ratings.user_labels), len(ratings.item_labels)),
        radius=radius, loss=loss, weighted=weighted, biases=biases, max_rank=max_rank, gap_tol=gap_tol, delta=delta,
        ridge=ridge, key=key, progress=progress, checkpoint=checkpoint, time_limit=time_limit,
    )  # fmt: skip
    model = replace(model, row_labels=ratings.user_labels, col_labels=ratings.item_labels)
    if held is not None:
        assert held.values is not None
        scores = model.scores(model.margins_of_codes(held.users, held.items), held.values)
        unknown = int(((held.users < 0) | (held.items < 0)).sum())
        model = replace(model, test=replace(scores, skipped=held.skipped, unknown=unknown))
    return Completed(model, ratings)
