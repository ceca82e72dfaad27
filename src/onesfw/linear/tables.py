"""The figures of a trained model for the eye."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

LOSSES = {
    "logistic": "logistic loss",
    "squared_hinge": "squared hinge loss",
    "squared": "squared loss",
    "huber": "Huber loss",
    "poisson": "Poisson loss",
}


def fit_table(figures: dict[str, Any]) -> Table:
    """What `onesfw fit` came to."""
    title = f"{figures['train']}: {LOSSES[figures['loss']]}, {figures['set']}, radius {figures['radius']:g}"
    table = empty_table(title, "training")
    table.add_row("rows", f"{figures['rows']:,}")
    if figures["skipped"]:
        table.add_row("  skipped", f"{figures['skipped']:,}")
    done = "" if figures["finished"] else ", then interrupted"
    table.add_row("passes", f"{figures['passes']}{done}")
    table.add_row("steps", f"{figures['steps']:,}")
    table.add_row("progressive loss", number(figures["progressive_loss"]))
    add_scores(table, figures)
    table.add_row("nonzeros", f"{figures['nonzeros']:,} of {figures['features']:,}")
    table.add_row("norm", f"{figures['norm']:.6g} of {figures['radius']:g}")
    if figures["intercept"]:
        table.add_row("intercept", f"{figures['intercept']:.6g}")
    table.add_row("seconds", f"{figures['seconds']:.2f}")
    table.add_row("  compiling", f"{figures['compile_seconds']:.2f}")
    return table


def score_table(figures: dict[str, Any], title: str) -> Table:
    """How good predictions were."""
    table = empty_table(title, "prediction")
    table.add_row("rows", f"{figures['test_rows']:,}")
    add_scores(table, figures)
    return table


def add_scores(table: Table, figures: dict[str, Any]) -> None:
    """Test loss, accuracy and AUC, as far as there are any."""
    if figures["test_loss"] is not None:
        table.add_row("test loss", number(figures["test_loss"]))
    if figures["accuracy"] is not None:
        table.add_row("accuracy", f"{figures['accuracy']:.2%}")
    if figures["auc"] is not None:
        table.add_row("AUC", f"{figures['auc']:.5f}")


def empty_table(title: str, head: str) -> Table:
    """A table of names and results."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", min_width=min(78, len(title)))
    table.add_column(head, no_wrap=True)
    table.add_column("result")
    return table


def number(value: float | None) -> str:
    """Six digits."""
    return "not measured" if value is None else f"{value:.6g}"
