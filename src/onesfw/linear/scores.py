"""How good predictions were: mean loss, accuracy, confusion, area under the curve, R² and root mean square error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from onesfw.data.labels import Label, show
from onesfw.linear.losses import LOSSES
from onesfw.trees import HostArray, Json

if TYPE_CHECKING:
    from onesfw.linear.model import LinearModel


@dataclass(frozen=True)
class Scores:
    """Figures over the rows whose targets were known; None for what does not apply.

    Args:
        rows: that were scored.
        loss: the mean loss; of several labels, the mean over the labels too.
        accuracy: the share of right labels.
        auc: the area under the curve, for two labels.
        r2: R² of a regression.
        rmse: the root mean square error of a regression.
        labels: of a classifier.
        confusion: rows of label i that were predicted as label j, in the order of `labels`.
        skipped: rows that could not be read.
        unknown: rows whose target is missing or is none of the labels.

    Example:
        >>> from onesfw.linear import Scores
        >>> Scores(1_000, loss=0.25, rmse=0.5).lines()
        [('rows', '1,000'), ('loss', '0.25'), ('RMSE', '0.5')]
    """

    rows: int
    loss: float | None = None
    accuracy: float | None = None
    auc: float | None = None
    r2: float | None = None
    rmse: float | None = None
    labels: tuple[Label, ...] | None = None
    confusion: tuple[tuple[int, ...], ...] | None = None
    skipped: int = 0
    unknown: int = 0

    @classmethod
    def from_json(cls, content: dict[str, Json]) -> Scores:
        """What `dataclasses.asdict` gave, through JSON."""
        labels, confusion = content["labels"], content["confusion"]
        return cls(
            **{
                **content,
                "labels": None if labels is None else tuple(labels),
                "confusion": None if confusion is None else tuple(tuple(row) for row in confusion),
            }
        )

    def lines(self) -> list[tuple[str, str]]:
        """Names and figures, a line each, for tables."""
        lines = [("rows", f"{self.rows:,}" + (f" ({self.unknown:,} without a known target)" if self.unknown else ""))]
        for name, text in (
            ("loss", None if self.loss is None else f"{self.loss:.6g}"),
            ("accuracy", None if self.accuracy is None else f"{self.accuracy:.2%}"),
            ("AUC", None if self.auc is None else f"{self.auc:.5f}"),
            ("R²", None if self.r2 is None else f"{self.r2:.5f}"),
            ("RMSE", None if self.rmse is None else f"{self.rmse:.6g}"),
        ):
            if text is not None:
                lines.append((name, text))
        return lines

    def confusion_rows(self) -> tuple[list[str], list[list[str]]]:
        """The confusion counts as heads and cells: a line a true label, a column a predicted one."""
        if self.labels is None or self.confusion is None:
            return [], []
        names = [show(label) for label in self.labels]
        return ["true \\ predicted", *names], [
            [name, *(f"{count:,}" for count in row)] for name, row in zip(names, self.confusion, strict=True)
        ]


@dataclass
class Counting:
    """Sums over the rows that were seen; of two labels the margins are kept, nine bytes a row, for the curve."""

    model: LinearModel
    rows: int = 0
    unknown: int = 0
    loss_sum: float = 0.0
    confusion: HostArray = field(init=False)
    margins: list[HostArray] = field(default_factory=list)
    positive: list[HostArray] = field(default_factory=list)
    mean: float = 0.0
    spread: float = 0.0
    """Σ (y − ȳ)², merged batch by batch: a difference of sums would lose small spreads of large numbers."""
    errors: float = 0.0
    """Σ (y − ŷ)²."""

    def __post_init__(self) -> None:
        size = len(self.model.labels or ())
        self.confusion = np.zeros((size, size), np.int64)

    def count(self, margin: HostArray, targets: HostArray) -> None:
        """Count rows by their margins and their targets: −1 and +1, class numbers, or numbers."""
        model, loss = self.model, LOSSES[self.model.loss]
        before, self.rows = self.rows, self.rows + len(targets)
        if not len(targets):
            return
        if model.labels is None:
            self.loss_sum += float(loss.value(margin, targets, model.delta).sum())
            mean = float(targets.mean())
            apart = mean - self.mean
            self.mean += apart * len(targets) / self.rows
            with np.errstate(over="ignore"):
                self.spread += float(((targets - mean) ** 2).sum()) + apart**2 * before * len(targets) / self.rows
                self.errors += float(((targets - model.predictions(margin)) ** 2).sum())
            return
        if len(model.labels) == 2:
            self.loss_sum += float(loss.value(margin, targets).sum())
            true, found = (targets > 0).astype(np.intp), (margin > 0).astype(np.intp)
            self.margins.append(margin)
            self.positive.append(targets > 0)
        else:
            true, found = targets.astype(np.intp), margin.argmax(axis=1)
            for c in range(len(model.labels)):
                y = np.where(true == c, 1.0, -1.0)
                self.loss_sum += float(loss.value(margin[:, c], y).sum()) / len(model.labels)
        np.add.at(self.confusion, (true, found), 1)

    def scores(self, skipped: int = 0) -> Scores:
        """The figures."""
        if not self.rows:
            return Scores(0, skipped=skipped, unknown=self.unknown)
        common: dict[str, Json] = {
            "rows": self.rows,
            "loss": self.loss_sum / self.rows,
            "skipped": skipped,
            "unknown": self.unknown,
        }
        if self.model.labels is None:
            r2 = 1.0 - self.errors / self.spread if self.spread > 0 else None
            return Scores(**common, r2=r2, rmse=(self.errors / self.rows) ** 0.5)
        return Scores(
            **common,
            accuracy=float(np.trace(self.confusion) / self.rows),
            auc=self.auc(),
            labels=self.model.labels,
            confusion=tuple(tuple(int(count) for count in row) for row in self.confusion),
        )

    def auc(self) -> float | None:
        """The area under the curve; None for several labels, or where one of two does not occur."""
        from sklearn.metrics import roc_auc_score

        if not self.positive:
            return None
        positive = np.concatenate(self.positive)
        if positive.all() or not positive.any():
            return None
        return float(roc_auc_score(positive, np.concatenate(self.margins)))
