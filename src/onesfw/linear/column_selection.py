"""`select_columns`: stability selection over the columns of a file, or of rows in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onesfw.arguments import choose, named, nearest, number
from onesfw.data.batch import Batch, joined, memory
from onesfw.data.columns import first_rows
from onesfw.data.data_warning import warn_skipped
from onesfw.data.encoding import NUMBERS, ONE_HOT, Encoding
from onesfw.data.labels import Targets, check_labels, plain, show
from onesfw.data.prepare import ReadOptions, Source, find_format, inputs_of, open_table, prepare
from onesfw.data.sources import RowsFrom, as_input
from onesfw.linear.constraints import constraint_name
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.examples import Examples, examples
from onesfw.linear.learner import Settings
from onesfw.linear.losses import LOSSES
from onesfw.linear.prediction import Rows
from onesfw.linear.scaling import check_scale, chosen_scales, divided
from onesfw.linear.stability import Stability, checked_engine, stability_selection
from onesfw.linear.streaming import check_memory
from onesfw.trees import HostArray

FEW_VALUES = 10  # of whole numbers, up to which they are taken for classes
COPIES = 6  # of all rows in memory, at the peak: as they are read, joined, scaled, and in halves
FEATURE_BYTES = 1_000  # of each feature: its name, and its shares at all radii
UNDECIDED = ("0", "1")  # labels that are never looked at: all targets are read before anything is decided


def loss_for(y: HostArray) -> str:
    """The loss of targets for which none is named: "logistic" for classes, "squared" for numbers.

    Words, truth values, two values and at most 10 distinct whole numbers are classes.
    """
    values = np.unique(y)
    numbers = np.issubdtype(values.dtype, np.number)
    few = len(values) <= 2 or (len(values) <= FEW_VALUES and numbers and bool(np.all(values == np.round(values))))
    return "logistic" if not numbers or few else "squared"


def check_rare(labels: Sequence[str], counts: Sequence[int], numbers: bool) -> None:
    """Raise where a label, as its user wrote it, has one row: one half of each pair would have none of it."""
    for label, count in zip(labels, counts, strict=True):
        if count == 1:
            other = f", or predict numbers with {named('loss')} squared" if numbers else ""
            raise ValueError(
                f"only 1 row has the label {label}, and a half-sample would have none of it; leave that row out, or "
                f"join the label with another{other}"
            )


def select_columns(
    source: Rows,
    *,
    target: str | None = None,
    loss: str | None = None,
    constraint: str = "l1",
    radii: Sequence[float] | None = None,
    threshold: float = 0.75,
    expected_false: float | None = 1.0,
    assumption: str = "r_concave",
    pairs: int = 50,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    intercept: bool = True,
    delta: float = 1.0,
    scale: bool | str = True,
    engine: str = "linear",
    steps: int | None = None,
    key: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
    format: str | None = None,
    features: int | None = None,
    zero_based: bool = False,
    delimiter: str | None = None,
    header: bool = True,
    skip_bad: bool = False,
) -> Stability:
    """Select the columns that models of most half-samples have, from a file.

    Args:
        source: as in `train`: a path, a folder, a pattern, an address, "-", or a pair (X, y). All rows are read.
        target: the column of a table that the others are to explain.
        loss: "logistic", "squared_hinge", "squared", "huber" or "poisson". None: "logistic" for words, truth values,
            two values and at most 10 distinct whole numbers, "squared" for other numbers.
        constraint: "l1", "nonnegative_l1" or "simplex".
        radii: as in `stability_selection`, as are the next four.
        threshold: the share of half-samples that makes a column stable.
        expected_false: the false selections to expect, at most.
        assumption: of the bound.
        pairs: of half-samples.
        columns: of a table, to choose among; None for all but the target.
        drop: columns to leave out.
        categorical: columns that are words although they look like numbers. Each word is a column of its own.
        intercept: learn an intercept too.
        delta: where the Huber loss turns linear.
        scale: divide columns by their scales: True, False, or "auto" where they differ by more than 100.
        engine: as in `stability_selection`.
        steps: likewise.
        key: the seed of the half-samples.
        n_jobs: half-samples at a time; the selection is the same bit for bit.
        progress: show a bar.
        format: as in `train`, as are the others.
        features: of LIBSVM text.
        zero_based: whether its columns count from 0.
        delimiter: between the columns of a table.
        header: whether a table has one.
        skip_bad: leave out rows that cannot be read.

    Returns:
        The shares of half-samples, the stable columns by their names, and the bound.

    Raises:
        ValueError, TypeError: for a wrong argument, or a row that cannot be read, by its line.
        OSError: for a file that cannot be read.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import select_columns
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 20))
        >>> y = np.where(X[:, 2] + X[:, 5] > 0, "up", "down")
        >>> select_columns((X, y), pairs=20, expected_false=0.2).stable.tolist()
        [2, 5]
    """
    if loss is not None:
        choose(loss, LOSSES, "loss")
    check_scale(scale)
    number(delta, "delta", 0.0, strict=True)
    word = constraint_name(constraint)
    checked_engine(
        word, radii, pairs=pairs, threshold=threshold, expected_false=expected_false, assumption=assumption,
        engine=engine, steps=steps, key=key, n_jobs=n_jobs,
    )  # fmt: skip
    options = ReadOptions(
        format, features, zero_based, target, ONE_HOT, categorical=tuple(categorical), drop=tuple(drop),
        delimiter=delimiter, header=header, labels=UNDECIDED, float64=True, skip_bad=skip_bad,
    )  # fmt: skip
    rows = as_input(source)
    if columns is not None:
        options = replace(options, drop=all_but(rows, options, tuple(columns)))
    prepared, opened = prepare(rows, options)
    check_memory(prepared.encoding.n_features, FEATURE_BYTES)
    data, labels, loss = read_all(opened, prepared.encoding, rows.name, loss)
    warn_skipped(rows.name, opened.bad.examples, opened.bad.count)
    settings = Settings(
        data.n_features, loss, word, 1.0, None, ANYWHERE if intercept else None, delta, labels
    )  # fmt: skip
    found = stability_selection(
        settings, divided(data, chosen_scales(data, scale)), radii, pairs=pairs, threshold=threshold,
        expected_false=expected_false, assumption=assumption, engine=engine, steps=steps, key=key, n_jobs=n_jobs,
        progress=progress,
    )  # fmt: skip
    return replace(found, names=names_of(prepared.encoding))


def all_but(rows: RowsFrom, options: ReadOptions, columns: tuple[str, ...]) -> tuple[str, ...]:
    """What is to be dropped so that these columns are left."""
    if not inputs_of(rows) or find_format(inputs_of(rows)[0], options.format) == "libsvm":
        raise ValueError(f"{named('columns')} names columns of a table, and {rows.name} has numbers; leave it out")
    table = open_table(inputs_of(rows)[0], options)
    first_rows(table)
    for name in columns:
        if name not in table.names:
            hint = nearest(name, table.names) or f"; the columns are {', '.join(table.names[:20])}"
            raise ValueError(f"{named('columns')}: {table.input.name} has no column {name!r}{hint}")
        if name == options.target:
            raise ValueError(f"{named('columns')} holds the target, {name!r}; leave it out")
    return tuple(
        name for name in table.names if (name not in columns or name in options.drop) and name != options.target
    )


def read_all(
    opened: Source, encoding: Encoding, name: str, loss: str | None
) -> tuple[Examples, tuple[int, ...] | None, str]:
    """(rows in memory, the classes where there are more than two, the loss)."""
    batches: list[Batch] = []
    size, room = 0, memory()
    for batch in opened.batches():
        size += batch.rows.data.nbytes + batch.rows.indices.nbytes
        if COPIES * size > room:
            raise ValueError(f"{name} takes more than {room >> 30} GB in memory, all of it; take a part of its rows")
        batches.append(batch)
    targets = np.concatenate([batch.targets for batch in batches if batch.targets is not None])
    known = targets if encoding.target_words else targets[np.isfinite(np.asarray(targets, np.float64))]
    loss = loss or loss_for(known.astype(str) if encoding.target_words else known)
    function, labels = LOSSES[loss], None
    if function.classifies:
        counts = Counter(plain(label) for label in known.tolist())
        if len(counts) == 1:
            raise ValueError(
                f"{name}: the only label is {show(next(iter(counts)))}, and two are needed; give rows with another one "
                f"too, or choose another {named('target')}"
            )
        labels = check_labels(sorted(counts), name)
        check_rare([show(label) for label in labels], [counts[label] for label in labels], not encoding.target_words)
    elif encoding.target_words:
        raise ValueError(
            f"{named('target')}: the targets are words, and {named('loss')} {loss} needs numbers; choose logistic or "
            "squared_hinge for classes"
        )
    reader = Targets(labels, loss == "poisson")
    parts = [reader.of(batch, opened.bad) for batch in batches]
    several = tuple(range(len(labels))) if labels is not None and len(labels) > 2 else None
    matrix = joined([part for part, _ in parts], encoding.n_features)
    y = np.concatenate([values for _, values in parts])
    return examples(matrix, y, None, encoding.n_features, function, several), several, loss


def names_of(encoding: Encoding) -> tuple[str, ...]:
    """What the features are called: columns of a table, words as column=word, numbers as the file counts them."""
    if not encoding.columns:
        first = 0 if encoding.zero_based or encoding.format != "libsvm" else 1
        return tuple(str(j + first) for j in range(encoding.n_features))
    numbers = [column.name for column in encoding.columns if column.kind in NUMBERS]
    return (*numbers, *(f"{column.name}={word}" for column in encoding.columns for word in column.categories))
