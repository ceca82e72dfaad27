"""`train`: linear models from files, pipes and streams of blocks, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from onesfw.arguments import choose, named, number, whole_number
from onesfw.data import passes as kept_rows
from onesfw.data.batch import memory
from onesfw.data.blocks import Input
from onesfw.data.data_warning import warn, warn_skipped
from onesfw.data.labels import Label
from onesfw.data.passes import Passes
from onesfw.data.prepare import Prepared, ReadOptions, inputs_of
from onesfw.data.row_groups import GroupPasses, grouped
from onesfw.data.sources import Files, RowsFrom, as_input
from onesfw.data.store import StoreError
from onesfw.engine.checkpoint import FILE_PART, Checkpoint, open_folder
from onesfw.engine.interrupts import catch_interrupt
from onesfw.files import check_target
from onesfw.linear.constraints import constraint_name
from onesfw.linear.convergence import LARGE_SHARE, warn_unconverged
from onesfw.linear.file_rows import FileRows, Learning, learner_for
from onesfw.linear.finishing import (
    Finished,
    converged,
    finish,
    gathered,
    no_worse_than_a_constant,
    stream_converged,
    warn_of_constant,
)
from onesfw.linear.learner import DEFAULT_SCHEDULE, SCHEDULES, Learner, evaluate
from onesfw.linear.losses import LOSSES
from onesfw.linear.model import LinearModel, Training, package_versions
from onesfw.linear.pass_rows import Progress
from onesfw.linear.plan import Plan, interval
from onesfw.linear.prediction import PathLike, Rows, score
from onesfw.linear.progressive_validation import FACTORS, RadiusCandidates, radii_for
from onesfw.linear.rounds import Split, deal, learn_shards
from onesfw.linear.scaling import check_scale, chosen_scales, divided
from onesfw.linear.shards import gap_over
from onesfw.linear.shifts import offsets
from onesfw.linear.stream_sample import Sample
from onesfw.linear.training import learn_passes, resumed
from onesfw.linear.training_scores import with_training_scores
from onesfw.progress import PassesBar


def train(
    source: Rows,
    *,
    target: str | None = None,
    constraint: str = "l1",
    radius: float | None = None,
    loss: str = "logistic",
    passes: int = 1,
    intercept: bool = True,
    intercept_bound: float | None = None,
    delta: float = 1.0,
    scale: bool | str = "auto",
    polish: bool = True,
    schedule: str | None = None,
    key: int = 0,
    test: Rows | None = None,
    cache: PathLike | None = None,
    checkpoint: PathLike | None = None,
    progress: bool = False,
    buffer: int = 50_000,
    readers: int | None = None,
    shards: int | None = None,
    round_rows: int = 1_000,
    format: str | None = None,
    features: int | None = None,
    zero_based: bool = False,
    labels: str | Sequence[Label] | None = None,
    strings: str = "hash",
    hash_bits: int = 18,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    delimiter: str | None = None,
    header: bool = True,
    normalize: bool = False,
    float64: bool = False,
    skip_bad: bool = False,
) -> LinearModel:
    """Train a linear model under a norm constraint from rows that need not fit in memory, one step a row.

    Rows that take at most 128 MB and can be read again are kept: after the passes, the model is polished on them until
    its Frank-Wolfe gap is a millionth of the loss of the best constant. A pipe and larger files end with the passes.

    Ctrl-C ends the training and returns the model as it stands, with `training.finished` False.

    Args:
        source: a path; "-" for the standard input; a folder; a pattern such as "part-*.svm"; an address that pyarrow or
            fsspec opens, such as "s3://bucket/folder"; a list of these; a pair (X, y); an iterable of such pairs, or a
            function that makes one for each pass. Files are LIBSVM text, CSV or Parquet, the texts also compressed by
            gzip, xz or bzip2. The row groups of several Parquet files come in an order that `key` and the pass decide.
        target: the column of a table that is to be predicted.
        constraint: "l1", "l2", "linf", "simplex" or "nonnegative_l1".
        radius: the largest norm of the coefficients, of columns that are scaled where `scale` says so. None: chosen, on
            kept rows by a path of radii and a fifth of the rows held out, in a stream by the loss of rows before they
            are learnt, over three radii side by side in the same passes.
        loss: "logistic" or "squared_hinge" for labels, two or more (each of more learns against the rest); "squared",
            "huber" or "poisson" for numbers.
        passes: over the rows.
        intercept: learn an intercept too.
        intercept_bound: it stays within ± this; None for anywhere.
        delta: where the Huber loss turns linear.
        scale: divide columns by their scales, as the first `buffer` rows have them: "auto" where they differ by more
            than 100, True or False. `coef` is for the columns as they came.
        polish: solve for the optimum on rows that were kept.
        schedule: of η and ρ, a name of `onesfw.linear.SCHEDULES`; None for "auto".
        key: the seed of the shuffling.
        test: rows to test on, as `source`; the scores are `model.test`.
        cache: a file to keep the rows in, in binary; later passes are fast.
        checkpoint: a folder to save the run in; the same call goes on after a kill and ends with the same bits.
        progress: show a progress bar.
        buffer: rows shuffled together; 1: as they come.
        readers: threads that decode several Parquet files ahead; None for one a core. The model is the same.
        shards: learn from so many parts of the rows at a time, on the joblib backend that `joblib.parallel_config`
            chose, and average; for clusters, past about 10¹⁰ rows (docs/scale.md). None for one learner.
        round_rows: with `shards`, the rows of each part between two averages.
        format: "libsvm", "csv" or "parquet"; None to go by the first bytes and the name.
        features: the number of features of LIBSVM text; None to read a file once to know it.
        zero_based: indices of LIBSVM text count from 0.
        labels: the labels, as a list or as "A,B"; None to find them in the rows.
        strings: "hash" or "onehot", for columns of words.
        hash_bits: hashed words share 2^this features.
        categorical: columns that are words although they look like numbers.
        drop: columns to leave out.
        delimiter: what separates the values of a CSV text.
        header: whether a CSV text begins with the columns' names.
        normalize: scale each row to length 1.
        float64: keep rows in double precision.
        skip_bad: leave out rows that cannot be read; their number is `training.skipped`.

    Returns:
        The model, with its record of the training and, where there were test rows, its scores.

    Raises:
        ValueError, TypeError: for a wrong argument, or a row that cannot be read, by its line.
        OSError: for a file that cannot be read or written.
        FloatingPointError: where the loss became infinite.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import train
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2_000, 5))
        >>> y = np.where(X[:, 0] - X[:, 1] > 0, "up", "down")
        >>> model = train((X, y), radius=5.0)
        >>> model.labels
        ('down', 'up')
        >>> float(np.mean(model.predict(X) == y)) > 0.97
        True
    """
    choose(loss, LOSSES, "loss")
    constraint = constraint_name(constraint)
    if schedule is not None:
        choose(schedule, SCHEDULES, "schedule")
    options = ReadOptions(
        format, features, zero_based, target, strings, hash_bits, tuple(categorical), tuple(drop), delimiter, header,
        tuple(labels) if labels is not None and not isinstance(labels, str) else labels, LOSSES[loss].classifies,
        loss == "poisson", normalize, float64, skip_bad,
    )  # fmt: skip
    check_scale(scale)
    plan = Plan(
        loss=loss,
        constraint=constraint,
        radius=None if radius is None else number(radius, "radius", 0.0, strict=True),
        scale=scale,
        polish=bool(polish),
        schedule=DEFAULT_SCHEDULE if schedule is None else schedule,
        intercept=interval(intercept, intercept_bound),
        delta=number(delta, "delta", 0.0, strict=True),
        passes=whole_number(passes, "passes", 1),
        buffer=whole_number(buffer, "buffer", 1),
        key=whole_number(key, "key", 0, 2**32 - 1),
    )
    options.check()
    if readers is not None:
        whole_number(readers, "readers", 1)
    rows, others = as_input(source), None if test is None else as_input(test)
    check_files(rows, others, plan, cache)
    if shards is not None:
        split = Split(whole_number(shards, "shards", 1), whole_number(round_rows, "round_rows", 1))
        return run_shards(plan, split, options, rows, others, cache, checkpoint, progress)
    return run(plan, options, rows, others, cache, checkpoint, progress, readers)


def check_files(rows: RowsFrom, test: RowsFrom | None, plan: Plan, cache: PathLike | None) -> None:
    """Raise where files of the call get in each other's way, before any work is done."""
    if isinstance(rows, Input) and isinstance(test, Input) and rows.path == test.path == "-":
        raise ValueError("the standard input cannot be both the training and the test file")
    if not rows.repeatable and plan.passes > 1 and cache is None:
        raise ValueError(
            f"{rows.name} can be read only once; give {named('cache')} a path for more than one pass, or, in Python, a "
            "function that makes the blocks anew"
        )
    if cache is not None:
        read = {os.path.realpath(part.path) for source in (rows, test) if source for part in inputs_of(source)}
        if os.path.realpath(cache) in read:
            raise ValueError(f"{named('cache')} {cache} would overwrite the data; give another path")
        check_target(os.fspath(cache))


def run(
    plan: Plan,
    options: ReadOptions,
    rows: RowsFrom,
    test: RowsFrom | None,
    cache: PathLike | None,
    checkpoint: PathLike | None,
    show: bool,
    readers: int | None = None,
) -> LinearModel:
    """Train and test."""
    import sklearn.datasets  # noqa: F401  its reader, before the clock runs

    saves, saved = None, None
    if checkpoint is not None:
        saves = Checkpoint(open_folder(os.fspath(checkpoint), {**plan.parts(), **parts_of(rows, options)}))
        saved = resumed(saves)
    record, about, tensors = saved if saved is not None else (Progress(), {}, {})
    if record.sweep > plan.passes:
        raise ValueError(
            f"{named('checkpoint')} {checkpoint}: the run has {record.sweep} passes behind it; give {named('passes')} "
            f"{record.sweep}"
        )
    candidates: tuple[float, ...] = ()
    decided, digests = None, {}
    place = None if cache is None else Path(cache)
    if saves is not None and saved is not None:
        try:
            decided, digests = Prepared.from_json(about["prepared"]), dict(about["digests"])
            candidates = tuple(map(float, about["radii"]))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise saves.damaged() from error
    passes: Passes | GroupPasses
    if isinstance(rows, Files) and grouped(rows, options, plan.buffer):
        passes = GroupPasses(
            rows, options, buffer=plan.buffer, key=plan.key, readers=readers, cache=place, decided=decided,
            skipped=record.skipped, digests=digests,
        )  # fmt: skip
    else:
        passes = Passes(
            rows, options, buffer=plan.buffer, cache=place, decided=decided, skipped=record.skipped,
            digests=digests,
        )  # fmt: skip
    try:
        settings = plan.settings(passes.prepared.encoding.n_features, passes.prepared.labels)
    except (ValueError, TypeError) as error:
        raise (error if saves is None or decided is None else saves.damaged()) from error
    check_memory(settings.n_features, 16 * settings.models * (1 if plan.radius is not None else len(FACTORS)))
    source = FileRows(passes, plan.key, settings)
    size = rows.text_size()
    with PassesBar(show, plan.passes) as bar, catch_interrupt() as interrupted, kept_in(checkpoint):
        if saved is None:
            first = source.first_rows(interrupted.is_set)
            source.scales = chosen_scales(first, plan.scale)
            first = divided(first, source.scales)
            source.means = offsets(first, settings)
            if plan.radius is None:
                candidates = radii_for(first, settings)
        else:
            source.scales, source.means = tensors.get("scales"), tensors.get("means")
            for columns in (source.scales, source.means):
                if saves is not None and columns is not None and columns.shape != (settings.n_features,):
                    raise saves.damaged()
        try:
            learner = learner_for(settings, candidates, None if decided is None else tensors)
            sample = Sample(settings, plan.key, None if decided is None else tensors)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise (error if saves is None else saves.damaged()) from error
        compiling = learner.compile(passes.prepared.encoding.dtype)

        def report(now: Progress) -> None:
            bar.report(now.sweep, now.all_rows, now.loss / now.rows, expected(now, plan.passes, size))

        finished = learn_passes(
            Learning(learner, source, sample, record), source, record, passes=plan.passes, stop=interrupted.is_set,
            report=report,
            satisfied=learner.first_pass_is_over if isinstance(learner, RadiusCandidates) else lambda: False,
            saves=saves,
            about=lambda: {"prepared": passes.prepared.to_json(), "digests": passes.digests, "radii": list(candidates)},
        )  # fmt: skip
        if not learner.steps:
            raise KeyboardInterrupt("interrupted before a row was learnt")
        radius = learner.radius if isinstance(learner, RadiusCandidates) else float(settings.radii[0])
        ended = Finished(learner.coefs, learner.intercepts, radius)
        data = None
        # By what the first pass read, which a run that goes on remembers: both must decide alike.
        if finished and (rows.repeatable or cache is not None) and record.first_bytes <= kept_rows.KEPT:
            data = gathered(passes.chunks(), settings, source.scales)
        share, polished = 1.0, data is not None and plan.polish
        if not polished:
            ended, share = no_worse_than_a_constant(replace(settings, radius=radius), sample.weighted(), ended)
        ended = ended.unshifted(source.means)
        if data is not None and plan.polish:
            ended = finish(
                settings, data, ended, choose=plan.radius is None, key=plan.key, stop=interrupted.is_set, note=bar.say
            )  # fmt: skip
            finished = not interrupted.is_set()
    warn_skipped(rows.name, passes.bad_examples, record.skipped)
    several, coefs = settings.models > 1, ended.coefs if source.scales is None else ended.coefs / source.scales
    model = LinearModel(
        coefs if several else coefs[0],
        ended.intercepts if several else float(ended.intercepts[0]),
        plan.loss, plan.constraint, ended.radius, passes.prepared.labels, plan.delta, passes.prepared.encoding,
        package_versions(),
        Training(
            record.first_rows, record.sweep, record.all_rows, record.skipped, record.progressive_loss, plan.schedule,
            plan.key, record.seconds, tuple(record.pass_seconds), compiling, finished, polished=ended.rounds,
        ),
        scale=source.scales,
    )  # fmt: skip
    if not finished:
        return model
    settings = replace(settings, radius=ended.radius)
    training = with_training_scores(model.training, model, settings, passes)
    chosen = ended.radius if plan.radius is None else None
    if share < 1:
        warn_of_constant(share, data, chosen)
        near: bool | None = False
    elif data is None:
        near = stream_converged(training, chosen)
    else:
        found = ended.evaluation or evaluate(settings, data, ended.coefs, ended.intercepts)
        near = converged(settings, data, found.gap, found.value, plan.polish, chosen)
    model = replace(model, training=replace(training, converged=near))
    return model if test is None else tested(model, test, options)


def run_shards(
    plan: Plan,
    split: Split,
    options: ReadOptions,
    rows: RowsFrom,
    test: RowsFrom | None,
    cache: PathLike | None,
    checkpoint: PathLike | None,
    show: bool,
) -> LinearModel:
    """Train by rounds over shards, and test."""
    if plan.radius is None:
        raise ValueError(f"{named('radius')} is needed with {named('shards')}; find one on a part of the rows")
    if cache is not None:
        raise ValueError(f"{named('cache')} and {named('shards')} exclude each other: each worker reads its own rows")
    saves = None
    if checkpoint is not None:
        parts = {**plan.parts(), **parts_of(rows, options), **split.parts()}
        saves = Checkpoint(open_folder(os.fspath(checkpoint), parts))
    with PassesBar(show, plan.passes) as bar, catch_interrupt() as interrupted, kept_in(checkpoint):
        prepared, shards = deal(rows, options, split, plan.key, plan.buffer)
        settings = plan.settings(prepared.encoding.n_features, prepared.labels)
        check_memory(settings.n_features, 16 * settings.models)
        scales = chosen_scales(shards[0].whole(settings)[0](), plan.scale)
        shards = shards if scales is None else [shard.scaled(scales) for shard in shards]
        check = rows.check if isinstance(rows, Files) else lambda: None
        compiling = Learner(settings).compile(prepared.encoding.dtype)
        done = learn_shards(settings, shards, split, plan.passes, saves, interrupted.is_set, bar.report, check)
    if not done.state.step:
        raise KeyboardInterrupt("interrupted before a row was learnt")
    several, state = settings.models > 1, done.state
    coefs = state.coefs if scales is None else state.coefs / scales
    size = sum(shard.rows for shard in shards)
    model = LinearModel(
        coefs if several else coefs[0],
        state.intercepts if several else float(state.intercepts[0]),
        plan.loss, plan.constraint, plan.radius, prepared.labels, plan.delta, prepared.encoding, package_versions(),
        Training(
            size, done.rows // size, done.rows, 0, None, plan.schedule, plan.key, done.seconds,
            compile_seconds=compiling, finished=done.finished,
        ),
        scale=scales,
    )  # fmt: skip
    if not done.finished:
        return model
    value, gap = gap_over(settings, state, shards)
    if gap > LARGE_SHARE * abs(value):
        warn_unconverged(
            f"the Frank-Wolfe gap over all shards is {gap:.2g}, and the loss {value:.2g}; give more {named('passes')}, "
            f"or fewer {named('shards')}"
        )
    model = replace(model, training=replace(model.training, gap=gap, converged=gap <= LARGE_SHARE * abs(value)))
    return model if test is None else tested(model, test, options)


def tested(model: LinearModel, test: RowsFrom, options: ReadOptions) -> LinearModel:
    """The model with its scores on test rows; a test file that cannot be read costs the scores, not the model."""
    try:
        return replace(model, test=score(model, test, options))
    except (ValueError, OSError) as error:
        warn(f"{named('test')}: {error}")
        return model


def parts_of(rows: RowsFrom, options: ReadOptions) -> dict[str, str]:
    """A name and a text for everything that decides the rows; of several files, each has its own."""
    if isinstance(rows, Files):
        return options.words() | {f"{FILE_PART}{name}": text for name, text in rows.contents().items()}
    # By all its bytes: what is resumed must be the very file, and size, ends and time of change can be the same.
    return {**options.parts(rows), "file": rows.content()}


@contextmanager
def kept_in(checkpoint: PathLike | None) -> Iterator[None]:
    """Say what is left of a run whose store stopped answering."""
    try:
        yield
    except StoreError as error:
        if checkpoint is None:
            remedy = f"give {named('checkpoint')} a folder, and a run that ends so can go on"
        else:
            remedy = f"what was learnt is in {checkpoint}, and the same call goes on from there"
        raise StoreError(f"{error}; {remedy}") from error


def check_memory(n_features: int, each: int) -> None:
    """Raise where features of so many bytes each are more than the machine's memory: one wrong index of a LIBSVM text
    does that."""
    size, room = each * n_features, memory()
    if size > room:
        raise ValueError(
            f"{named('features')}: a model of {n_features:,} features takes {size >> 30:,} GB, and this "
            f"machine has {room >> 30:,}; the largest index of the file makes their number: look for a wrong one, or "
            f"give {named('features')} the right number and leave rows beyond it out with {named('skip_bad')}"
        )


def expected(progress: Progress, passes: int, size: int | None) -> float | None:
    """Rows of all passes, as far as can be said."""
    if progress.rows_of_pass:
        return passes * progress.rows_of_pass
    if size and progress.position[-2]:
        return passes * progress.rows * max(1.0, size / progress.position[-2])
    return None
