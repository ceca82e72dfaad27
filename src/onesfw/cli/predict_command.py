"""`onesfw predict`: parse the options, call `onesfw.linear.predict`, print."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from onesfw.cli.errors import readable_errors
from onesfw.cli.option_values import listed_paths

if TYPE_CHECKING:
    from onesfw.linear.prediction import Predictions

EXAMPLES = """[bold]Examples[/bold]

onesfw predict m.safetensors new.svm --out predictions.csv

onesfw predict m.safetensors new.csv.gz --probabilities | head

[bold]Output[/bold] is CSV with a line for each row: the prediction and the margin ⟨a, x⟩ + intercept; with \
--probabilities the probability of the second label too; of more than two labels, a margin and a probability each. \
Where the file has its targets, a table of loss, accuracy and \
AUC goes to the error stream."""


def predict_command(
    model: Path = typer.Argument(..., metavar="MODEL", help="A model that `onesfw fit` wrote."),
    data: str = typer.Argument(
        ...,
        metavar="DATA",
        help="The file to predict; a folder, a pattern, an address, or several with commas; - is the standard input.",
    ),
    out: Path | None = typer.Option(None, metavar="PATH", help="Write a CSV file there, whole or not at all."),
    probabilities: bool = typer.Option(
        False, "--probabilities", help="Add the probability of the second label; logistic loss only."
    ),
    form: str = typer.Option(None, "--format", metavar="NAME", help="libsvm, csv, parquet; default by the name."),
    delimiter: str = typer.Option(None, metavar="C", help="CSV: what separates values."),
    no_header: bool = typer.Option(False, "--no-header", help="CSV: there is no header; columns are 1, 2, …."),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Count and skip bad rows."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no table of scores."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Predict the rows of a file by a model that `onesfw fit` wrote."""
    with readable_errors(traceback, predict_command, format="--format", header="--no-header", source="DATA"):
        from onesfw.linear import predict

        found = predict(
            model, listed_paths(data), out=sys.stdout.buffer if out is None else out, probabilities=probabilities,
            format=form, delimiter=delimiter, header=not no_header, skip_bad=skip_bad,
        )  # fmt: skip
        sys.stdout.flush()
        if found.scores is not None and not quiet:
            show(found, data)


def show(found: Predictions, data: str) -> None:
    """The table of scores, on the error stream; rows that could not be scored are counted."""
    from rich.console import Console

    from onesfw.results.show import boxed

    assert found.scores is not None
    lines = [(name, text) for name, text in found.scores.lines() if name != "rows"]
    scored = f"{found.scores.rows:,} of {found.rows:,}" if found.scores.rows < found.rows else f"{found.rows:,}"
    with contextlib.suppress(BrokenPipeError):
        Console(stderr=True).print(boxed(data, ("prediction", "result"), [("rows scored", scored), *lines]))
