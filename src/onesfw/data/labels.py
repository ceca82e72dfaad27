"""Targets: labels of any kind as −1 and +1, or as class numbers where there are more than two; or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import BadRows, Batch, csr

Label = float | str
MOST_CLASSES = 1_000


@dataclass(frozen=True)
class Targets:
    """How a batch's targets become the learner's: the first of two labels is −1, the second +1; of more, 0, 1, 2, …."""

    labels: tuple[Label, ...] | None
    non_negative: bool = False

    def of(self, batch: Batch, bad: BadRows) -> tuple[Any, np.ndarray]:
        """The rows and targets of a batch, without the rows whose target does not fit, which `bad` is told."""
        assert batch.targets is not None
        numbers, fit = self.read(batch.targets)
        if fit.all():
            return batch.rows, numbers
        for row in np.flatnonzero(~fit):
            bad.add(batch.place(int(row)), self.complaint(batch.targets[row]))
        return take(batch.rows, fit), numbers[fit]

    def read(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Targets as the learner's numbers, and which of them fit."""
        if self.labels is None:
            numbers = np.asarray(targets, np.float64)
            fit = np.isfinite(numbers) if not self.non_negative else np.isfinite(numbers) & (numbers >= 0)
            return numbers, fit
        if len(self.labels) == 2:
            second = targets == self.labels[1]
            return np.where(second, 1.0, -1.0), second | (targets == self.labels[0])
        codes = {label: code for code, label in enumerate(self.labels)}
        found = np.fromiter((codes.get(target, -1) for target in targets.tolist()), np.float64, len(targets))
        return found, found >= 0

    def complaint(self, target: Any) -> str:
        """Why a target does not fit."""
        if self.labels is not None:
            known = " and ".join(show(label) for label in self.labels) if len(self.labels) == 2 else some(self.labels)
            return f"its label is {show(target)}, and the labels are {known} (name them all with {named('labels')})"
        return f"its target is {show(target)}, and the Poisson loss needs counts of at least 0"


def take(rows: Any, fit: np.ndarray) -> Any:
    """The rows where `fit` is true."""
    chosen = rows[np.flatnonzero(fit)]
    return csr(chosen.data, chosen.indices, chosen.indptr, rows.shape[1])


def distinct(batch: Batch) -> list[Label]:
    """The different labels of a batch, sorted."""
    assert batch.targets is not None
    return [plain(label) for label in np.unique(batch.targets)]


def plain(label: Any) -> Label:
    """A label in Python's own terms."""
    return label if isinstance(label, str) else float(label)


def show(label: Any) -> str:
    """A label as a file would have it: 1, not 1.0; words in quotes."""
    if isinstance(label, str):
        return repr(label)
    return f"{float(label):.17g}" if float(label) != round(float(label), 6) else f"{float(label):g}"


def some(labels: Sequence[Label], most: int = 5) -> str:
    """The first labels, for messages."""
    return ", ".join(map(show, labels[:most])) + (f", … ({len(labels):,} in all)" if len(labels) > most else "")


def parse_labels(given: str | Sequence[Label], words: bool) -> tuple[Label, ...]:
    """The labels in `A,B,C`, or of a list; numbers unless the target column holds words."""
    name = named("labels")
    parts = [part.strip() for part in given.split(",")] if isinstance(given, str) else list(given)
    if len(parts) < 2 or len(set(parts)) < len(parts) or "" in parts:
        raise ValueError(f"{name} must be two or more different labels, A,B or ['A', 'B'], got {given!r}")
    if words:
        return tuple(str(part) for part in parts)
    try:
        return tuple(float(part) for part in parts)
    except (ValueError, TypeError):
        raise ValueError(f"{name}: the file's labels are numbers, got {given!r}") from None


def check_labels(labels: Sequence[Label], name: str) -> tuple[Label, ...]:
    """The labels that were found, or a ValueError where they are no classes."""
    if len(labels) < 2:
        only = f"the only label is {show(labels[0])}" if labels else "there is no label"
        raise ValueError(
            f"{name}: {only}, and two are needed; name all with {named('labels')} A,B where the others come later"
        )
    numbers = [label for label in labels if not isinstance(label, str)]
    if len(labels) > 2 and any(number != round(number) for number in numbers):
        odd = next(number for number in numbers if number != round(number))
        raise ValueError(
            f"{name}: {len(labels):,} different targets, {show(odd)} among them, are no classes; predict numbers with "
            f"{named('loss')} squared, huber or poisson, or name the classes with {named('labels')}"
        )
    if len(labels) > MOST_CLASSES:
        raise ValueError(
            f"{name}: there are more than {MOST_CLASSES:,} labels, {some(labels, 3)}; predict numbers with "
            f"{named('loss')} squared, huber or poisson, or name the classes with {named('labels')}"
        )
    return tuple(labels)
