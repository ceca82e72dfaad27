"""`predict`: what a model says of the rows of a file or stream, and how good that is."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import IO

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import unit_rows
from onesfw.data.data_warning import warn, warn_skipped
from onesfw.data.labels import Targets
from onesfw.data.prepare import Prepared, ReadOptions, Source, check_alike, inputs_of, open_table, reopen
from onesfw.data.sources import Blocks, RowsFrom, as_input
from onesfw.files import whole_file
from onesfw.linear.model import LinearModel
from onesfw.linear.scores import Counting, Scores
from onesfw.trees import HostArray, Json
from onesfw.trees import Rows as RowsLike

PathLike = str | os.PathLike[str]
Rows = (
    PathLike
    | Sequence[PathLike]
    | tuple[RowsLike, RowsLike]
    | Iterable[tuple[RowsLike, RowsLike]]
    | Callable[[], Iterable[tuple[RowsLike, RowsLike]]]
)


def score(model: LinearModel, source: RowsFrom, options: ReadOptions) -> Scores:
    """How good a model is on rows with targets."""
    assert model.encoding is not None
    check_alike(source, options)
    opened = reopen(source, options, Prepared(model.encoding, model.labels), strict=False)
    counting, targets = Counting(model), Targets(model.labels, model.loss == "poisson")
    for batch in opened.batches():
        rows, values = targets.of(batch, opened.bad)
        counting.count(model_margins(model, rows), values)
    if not counting.rows:
        raise ValueError(f"{source.name} holds no rows to test on")
    warn_skipped(opened.bad.name, opened.bad.examples, opened.bad.count)
    return counting.scores(opened.bad.count)


def model_margins(model: LinearModel, rows: RowsLike) -> HostArray:
    """The margins of rows as a file has them."""
    normalize = model.encoding is not None and model.encoding.normalize
    return model.margins(unit_rows(rows) if normalize else rows)


@dataclass(frozen=True)
class Predictions:
    """What a model says of the rows of a file.

    Args:
        rows: how many there were.
        predictions: labels or numbers; None where they went to a file.
        margins: ⟨a, x⟩ + intercept, a column a label where there are more than two; None where they went to a file.
        probabilities: of the second label, or of each; None where they were not asked for or went to a file.
        scores: how good they are, where the file has targets.
        skipped: rows that could not be read, and have no prediction.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import LinearModel, Predictions
        >>> model = LinearModel(np.array([1.0, -2.0]), 0.5, "squared", "l1", 3.0)
        >>> margins = model.margins(np.eye(2))
        >>> Predictions(2, model.predictions(margins), margins).predictions
        array([ 1.5, -1.5])
    """

    rows: int
    predictions: HostArray | None = None
    margins: HostArray | None = None
    probabilities: HostArray | None = None
    scores: Scores | None = None
    skipped: int = 0


def predict(
    model: LinearModel | PathLike,
    source: Rows,
    *,
    out: PathLike | IO[bytes] | None = None,
    probabilities: bool = False,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    skip_bad: bool = False,
) -> Predictions:
    """Predict the rows of a file or stream by a trained model, in bounded memory where they go to a file.

    Args:
        model: a model, or the path of one.
        source: as in `train`.
        out: where to write a CSV text, a line a row, whole or not at all; or a binary stream to write to; None to
            return the arrays.
        probabilities: add them; for the logistic loss.
        format: "libsvm", "csv" or "parquet"; None to go by the first bytes and the name.
        delimiter: what separates the values of a CSV text.
        header: whether a CSV text begins with the columns' names.
        skip_bad: leave out rows that cannot be read; their number is `skipped`.

    Returns:
        The predictions, or only their number and scores where they were written.

    Raises:
        ValueError, TypeError: for a wrong argument, or a row that cannot be read, by its line.
        OSError: for a file that cannot be read or written.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import predict, train
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = train((X, X[:, 0]), loss="squared", radius=2.0, passes=20)
        >>> found = predict(model, (X, X[:, 0]))
        >>> found.scores.r2 > 0.99
        True
    """
    path = None if isinstance(model, LinearModel) else model
    trained = model if isinstance(model, LinearModel) else LinearModel.load(os.fspath(model))
    options = ReadOptions(format=format, delimiter=delimiter, header=header, skip_bad=skip_bad)
    options.check()
    if probabilities and trained.loss != "logistic":
        raise ValueError(
            f"{named('probabilities')}: a model of the {trained.loss} loss has none; train with loss='logistic'"
        )
    rows = as_input(source)
    opened, scored = open_data(trained, rows, options)
    counting = Counting(trained) if scored else None
    batches = scored_batches(trained, opened, counting, probabilities)
    if out is None:
        parts = list(batches)
        columns = [np.concatenate([part[i] for part in parts]) for i in range(2 + probabilities)] if parts else []
        if not columns:
            raise ValueError(f"{opened.bad.name} holds no rows")
        count = len(columns[0])
        chances = columns[2] if probabilities else None
        return Predictions(count, columns[0], columns[1], chances, finished(counting, opened), opened.bad.count)
    place: AbstractContextManager[IO[bytes]]
    if isinstance(out, str | os.PathLike):
        taken = {os.path.realpath(part.path) for part in inputs_of(rows)} | (
            {os.path.realpath(path)} if path else set()
        )
        if os.path.realpath(out) in taken:
            raise ValueError(f"{named('out')} {out} would overwrite what is read; give another path")
        place = whole_file(os.fspath(out))
    else:
        place = nullcontext(out)
    count = 0
    with place as file:
        for text, size in as_csv(trained, batches, probabilities):
            file.write(text.encode())
            count += size
        if not count:
            raise ValueError(f"{opened.bad.name} holds no rows")
    return Predictions(count, scores=finished(counting, opened), skipped=opened.bad.count)


def finished(counting: Counting | None, opened: Source) -> Scores | None:
    """The scores, where there are some; rows that were left out are told of, and targets that are all unknown."""
    warn_skipped(opened.bad.name, opened.bad.examples, opened.bad.count)
    table = counting is not None and counting.model.encoding is not None and counting.model.encoding.columns
    if table and counting is not None and counting.unknown and not counting.rows:  # other files have to have a target
        warn(f"{opened.bad.name}: no row was scored, for the model knows none of the targets")
    return None if counting is None or not counting.rows else counting.scores(opened.bad.count)


def open_data(model: LinearModel, source: RowsFrom, options: ReadOptions) -> tuple[Source, bool]:
    """The source of rows to predict, and whether it has the targets too."""
    if model.encoding is None:
        raise ValueError("the model does not say how a file becomes rows; predict with LinearModel.predict")
    check_alike(source, options)
    prepared = Prepared(model.encoding, model.labels)
    if isinstance(source, Blocks) or model.encoding.format == "libsvm":
        return reopen(source, options, prepared, strict=False), True
    if not source.repeatable:
        return reopen(source, options, prepared, targets=False), False
    table = open_table(inputs_of(source)[0], options)
    table.first()
    present = model.encoding.target in table.known
    return reopen(source, options, prepared, targets=present), present


def scored_batches(
    model: LinearModel, source: Source, counting: Counting | None, probabilities: bool
) -> Iterator[tuple[HostArray, ...]]:
    """(predictions, margins, probabilities) of each batch; rows whose target the model knows are scored on the way.

    In a file to predict, other targets may stand for `not known`.
    """
    targets = Targets(model.labels, model.loss == "poisson")
    for batch in source.batches():
        margin = model_margins(model, batch.rows)
        if counting is not None and batch.targets is not None:
            values, fit = targets.read(batch.targets)
            counting.unknown += int((~fit).sum())
            counting.count(margin[fit], values[fit])
        chances = (model.probabilities(margin),) if probabilities else ()
        yield (model.predictions(margin), margin, *chances)


def as_csv(
    model: LinearModel, batches: Iterator[tuple[HostArray, ...]], probabilities: bool
) -> Iterator[tuple[str, int]]:
    """The lines of the output with their number, a batch at a time; the head comes with the first one."""
    several = model.labels is not None and len(model.labels) > 2
    names = [f"{label:g}" if isinstance(label, float) else label for label in model.labels or ()]
    head = ["prediction", *([f"margin {name}" for name in names] if several else ["margin"])]
    if probabilities:
        head += [f"probability {name}" for name in names] if several else ["probability"]
    for predictions, *columns in batches:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if head:
            writer.writerow(head)
            head = []
        for one, numbers in zip(predictions.tolist(), np.column_stack(columns).tolist(), strict=True):
            writer.writerow([plain(one), *map(plain, numbers)])
        yield text.getvalue(), len(predictions)


def plain(cell: Json) -> Json:
    """A number without a needless .0."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53 else cell
