"""How good predictions of entries were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onesfw.trees import HostArray


@dataclass(frozen=True)
class EntryScores:
    """Errors on entries whose values were known, each with its standard error.

    Args:
        entries: how many there were.
        rmse: the root mean square error.
        rmse_stderr: its standard error, from that of the mean square.
        mae: the mean absolute error.
        mae_stderr: its standard error.
        loss: the mean loss.
        skipped: lines of a file that could not be read.
        unknown: entries whose row or column was never seen; the biases of what is known predict them.

    Example:
        >>> from onesfw.lowrank import EntryScores
        >>> EntryScores(1_000, 0.9, 0.01, 0.7, 0.009, 0.405).lines()[1]
        ('RMSE', '0.9 ± 0.01')
    """

    entries: int
    rmse: float
    rmse_stderr: float
    mae: float
    mae_stderr: float
    loss: float
    skipped: int = 0
    unknown: int = 0

    def lines(self) -> list[tuple[str, str]]:
        """Names and figures, a line each, for tables."""
        strange = f", {self.unknown:,} of unknown rows or columns" if self.unknown else ""
        return [
            ("entries", f"{self.entries:,}{strange}"),
            ("RMSE", f"{self.rmse:.5g} ± {self.rmse_stderr:.2g}"),
            ("MAE", f"{self.mae:.5g} ± {self.mae_stderr:.2g}"),
            ("loss", f"{self.loss:.6g}"),
        ]


def entry_scores(predictions: HostArray, values: HostArray, losses: HostArray) -> EntryScores:
    """The errors of predictions."""
    errors = np.abs(np.asarray(predictions, np.float64) - values)
    squares = errors * errors
    rmse = float(np.sqrt(squares.mean()))
    return EntryScores(
        len(values),
        rmse,
        standard_error(squares) / (2 * rmse) if rmse > 0 else 0.0,
        float(errors.mean()),
        standard_error(errors),
        float(losses.mean()),
    )


def standard_error(numbers: HostArray) -> float:
    """Of the mean; 0 for a single number."""
    return float(numbers.std(ddof=1) / len(numbers) ** 0.5) if len(numbers) > 1 else 0.0
