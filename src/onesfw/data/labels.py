"""Targets: two labels of any kind as −1 and +1, or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onesfw.data.batch import BadRows, Batch, csr

Label = float | str


@dataclass(frozen=True)
class Targets:
    """How a batch's targets become the learner's: with `labels`, the first is −1 and the second +1."""

    labels: tuple[Label, Label] | None
    non_negative: bool = False

    def of(self, batch: Batch, bad: BadRows) -> tuple[Any, np.ndarray]:
        """The rows and targets of a batch, without the rows whose target does not fit, which `bad` is told."""
        assert batch.targets is not None
        if self.labels is None:
            numbers = np.asarray(batch.targets, np.float64)
            fit = np.isfinite(numbers) if not self.non_negative else np.isfinite(numbers) & (numbers >= 0)
        else:
            second = batch.targets == self.labels[1]
            fit = second | (batch.targets == self.labels[0])
            numbers = np.where(second, 1.0, -1.0)
        if fit.all():
            return batch.rows, numbers
        for row in np.flatnonzero(~fit):
            bad.add(batch.place(int(row)), self.complaint(batch.targets[row]))
        return take(batch.rows, fit), numbers[fit]

    def complaint(self, target: Any) -> str:
        """Why a target does not fit."""
        if self.labels is not None:
            first, second = (show(label) for label in self.labels)
            return f"its label is {show(target)}, and the two labels are {first} and {second}"
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


def parse_labels(text: str, words: bool) -> tuple[Label, Label]:
    """The two labels in `A,B`; numbers unless the target column holds words."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or parts[0] == parts[1]:
        raise ValueError(f"--labels must be two different labels with a comma between them, got {text!r}")
    if words:
        return parts[0], parts[1]
    try:
        first, second = float(parts[0]), float(parts[1])
    except ValueError:
        raise ValueError(f"--labels: the file's labels are numbers, got {text!r}") from None
    return first, second
