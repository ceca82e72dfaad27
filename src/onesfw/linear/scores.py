"""How good a model is on a file: mean loss, accuracy, area under the curve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onesfw.data.batch import BadRows, Batch, unit_rows
from onesfw.data.labels import Targets
from onesfw.linear.model import LinearModel


@dataclass
class Scores:
    """Sums over the rows that were seen; a classifier's margins are kept, nine bytes a row, for the curve."""

    model: LinearModel
    targets: Targets
    rows: int = 0
    loss_sum: float = 0.0
    right: int = 0
    margins: list[np.ndarray] = field(default_factory=list)
    positive: list[np.ndarray] = field(default_factory=list)

    @classmethod
    def of(cls, model: LinearModel) -> Scores:
        """Scores of a model, with nothing seen yet."""
        return cls(model, Targets(model.labels, model.loss == "poisson"))

    def add(self, batch: Batch, bad: BadRows) -> None:
        """Count a batch."""
        rows, values = self.targets.of(batch, bad)
        self.count(margins(self.model, rows), values)

    def count(self, margin: np.ndarray, values: np.ndarray) -> None:
        """Count rows by their margins and targets."""
        from onesfw.linear import LOSSES

        self.rows += len(values)
        self.loss_sum += float(LOSSES[self.model.loss].value(margin, values).sum())
        if self.model.labels is not None:
            positive = values > 0
            self.right += int(((margin > 0) == positive).sum())
            self.margins.append(margin)
            self.positive.append(positive)

    def figures(self) -> dict[str, Any]:
        """Rows, loss, accuracy and AUC; None for what does not apply."""
        classifies = self.model.labels is not None and self.rows > 0
        return {
            "test_rows": self.rows,
            "test_loss": self.loss_sum / self.rows if self.rows else None,
            "accuracy": self.right / self.rows if classifies else None,
            "auc": self.auc() if classifies else None,
        }

    def auc(self) -> float | None:
        """The area under the curve; None where one of the labels does not occur."""
        from sklearn.metrics import roc_auc_score

        positive = np.concatenate(self.positive)
        if positive.all() or not positive.any():
            return None
        return float(roc_auc_score(positive, np.concatenate(self.margins)))


def margins(model: LinearModel, rows: Any) -> np.ndarray:
    """The margins of rows as a file has them."""
    normalize = model.encoding is not None and model.encoding.normalize
    return model.margins(unit_rows(rows) if normalize else rows)
