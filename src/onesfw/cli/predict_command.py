"""`onesfw predict`: predictions of a trained model for a file, in bounded memory."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import sentences

if TYPE_CHECKING:
    import numpy as np

    from onesfw.data.prepare import Source
    from onesfw.linear.model import LinearModel
    from onesfw.linear.scores import Scores

EXAMPLES = """[bold]Examples[/bold]

onesfw predict m.safetensors new.svm --out predictions.csv

onesfw predict m.safetensors new.csv.gz --probabilities | head

[bold]Output[/bold] is CSV with a line for each row: the prediction and the margin ⟨a, x⟩ + intercept; with \
--probabilities the probability of the second label too. Where the file has its targets, a table of loss, accuracy and \
AUC goes to the error stream."""


def predict_command(
    model: Path = typer.Argument(..., metavar="MODEL", help="A model that `onesfw fit` wrote."),
    data: str = typer.Argument(..., metavar="DATA", help="The file to predict; - is the standard input."),
    out: Path | None = typer.Option(None, metavar="PATH", help="Write a CSV file there, whole or not at all."),
    probabilities: bool = typer.Option(
        False, "--probabilities", help="Add the probability of the second label; logistic loss only."
    ),
    form: str = typer.Option(None, "--format", metavar="NAME", help="libsvm, csv, parquet; default by the name."),
    delimiter: str = typer.Option(None, metavar="C", help="CSV: what separates values."),
    no_header: bool = typer.Option(False, "--no-header", help="CSV: there is no header; columns are 1, 2, …."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no table of scores."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Predict the rows of a file by a model that `onesfw fit` wrote."""
    with sentences(traceback):
        from onesfw.data.blocks import Input
        from onesfw.data.prepare import ReadOptions
        from onesfw.files import whole_file
        from onesfw.linear.model import LinearModel
        from onesfw.linear.scores import Scores

        trained = LinearModel.load(model)
        options = ReadOptions(format=form, delimiter=delimiter, header=not no_header)
        options.check()
        source, scored = open_data(trained, Input(data), options)
        scores = Scores.of(trained) if scored and not quiet else None
        lines = predictions(trained, source, probabilities, scores)
        if out is None:
            for text in lines:
                sys.stdout.write(text)
            sys.stdout.flush()
        else:
            if os.path.realpath(out) in (os.path.realpath(data), os.path.realpath(model)):
                raise ValueError(f"--out {out} would overwrite what is read; give another path")
            with whole_file(out) as file:
                for text in lines:
                    file.write(text.encode())
        if scores is not None and scores.rows:
            show(scores, data)


def open_data(model: LinearModel, source: Any, options: Any) -> tuple[Source, bool]:
    """The source of a file to predict, and whether it has the targets too."""
    from onesfw.data.prepare import Prepared, open_table, reopen

    if model.encoding is None:
        raise ValueError("the model does not say how a file becomes rows; predict with LinearModel.predict")
    prepared = Prepared(model.encoding, model.labels)
    if model.encoding.format == "libsvm":
        return reopen(source, options, prepared, strict=False), True
    if not source.repeatable:
        return reopen(source, options, prepared, targets=False), False
    table = open_table(source, options)
    table.first()
    present = model.encoding.target in table.names
    return reopen(source, options, prepared, targets=present), present


def predictions(model: LinearModel, source: Source, probabilities: bool, scores: Scores | None) -> Iterator[str]:
    """The lines of the output, a batch at a time; the header only when the first batch could be read."""
    from onesfw.linear.scores import margins

    head = ["prediction", "margin", *(["probability"] if probabilities else [])]
    for batch in source.batches():
        margin = margins(model, batch.rows)
        columns = [model.predictions(margin).tolist(), margin.tolist()]
        if probabilities:
            columns.append(model.probabilities(margin).tolist())
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if head:
            writer.writerow(head)
            head = []
        writer.writerows(zip(*([plain(cell) for cell in column] for column in columns), strict=True))
        if scores is not None:
            count(scores, margin, batch.targets)
        yield text.getvalue()
    if head:
        raise ValueError(f"{source.bad.name} holds no rows")


def count(scores: Scores, margin: np.ndarray, targets: np.ndarray | None) -> None:
    """Score the rows whose targets the model knows: in a file to predict others may stand for `not known`."""
    import numpy as np

    if targets is None:
        return
    labels = scores.targets.labels
    if labels is None:
        fit = np.isfinite(targets)
        values = np.asarray(targets, np.float64)
    else:
        second = targets == labels[1]
        fit = second | (targets == labels[0])
        values = np.where(second, 1.0, -1.0)
    scores.count(margin[fit], values[fit])


def plain(cell: Any) -> Any:
    """A number without a needless .0."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53 else cell


def show(scores: Scores, data: str) -> None:
    """The table of scores, on the error stream."""
    from rich.console import Console

    from onesfw.linear.tables import score_table

    with contextlib.suppress(BrokenPipeError):
        Console(stderr=True).print(score_table(scores.figures(), data))
