"""`onesfw fit`: parse the options, call `onesfw.linear.train`, print."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import INTERRUPTED, MISTAKE, readable_errors, say
from onesfw.cli.option_values import listed_paths, whole
from onesfw.cli.output import check_outputs, files_of, print_written, write_outputs

if TYPE_CHECKING:
    from onesfw.linear.model import LinearModel

MOST_SHOWN = 12  # labels whose confusion counts fit on a screen
SPELLING = {"constraint": "--set", "format": "--format", "header": "--no-header", "source": "TRAIN", "test": "TEST"}
EXAMPLES = """[bold]Examples[/bold]

onesfw fit train.svm test.svm --radius 100 --passes 5 --model m.safetensors

onesfw fit big.svm.gz --radius 100 --passes 20 --cache big.rows --checkpoint run --model m.safetensors

onesfw fit "part-*.svm.gz" --radius 30 --model m.safetensors

onesfw fit s3://bucket/clicks --target clicked --radius 30 --passes 3 --cache clicks.rows --checkpoint run

zcat part-*.gz | onesfw fit - --features 1e6 --labels 0,1 --radius 30 --model m.safetensors

onesfw fit people.csv --target income --loss logistic --set l2 --radius 10 --model m.safetensors

[bold]Files[/bold] are LIBSVM text, CSV or Parquet, texts also compressed by gzip, xz or bzip2; - is the standard input.

[bold]Exit codes[/bold]: 0 done, 1 a loss that is not finite ended the run, 2 a mistake in the call or the file, 130 \
Ctrl-C (the model so far is kept)."""

FILE, MODEL, RUN, SHOW = "The file", "The model", "The run", "Output"


def fit_command(
    train: str = typer.Argument(
        ...,
        metavar="TRAIN",
        help="The file to learn from; a folder, a quoted pattern, an address, or several with commas; - is the "
        "standard input.",
    ),
    test: str = typer.Argument(None, metavar="TEST", help="A file, or files, to test on.", show_default=False),
    loss: str = typer.Option(
        "logistic", metavar="NAME", help="logistic, squared_hinge, squared, huber, poisson.", rich_help_panel=MODEL
    ),
    set_name: str = typer.Option(
        "l1", "--set", metavar="NAME", help="l1, l2, linf, simplex, nonnegative_l1.", rich_help_panel=MODEL
    ),
    radius: float = typer.Option(
        None, metavar="R", help="The largest norm of the coefficients; default: chosen.", rich_help_panel=MODEL
    ),
    scale: bool = typer.Option(
        None,
        "--scale/--no-scale",
        help="Divide columns by their scales; default: where they differ by more than 100.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
    intercept: bool = typer.Option(
        True,
        "--intercept/--no-intercept",
        help="Learn an intercept too, which is not part of the norm.",
        rich_help_panel=MODEL,
    ),
    intercept_bound: float = typer.Option(
        None, metavar="B", help="Keep the intercept within ±B; default anywhere.", rich_help_panel=MODEL
    ),
    delta: float = typer.Option(1.0, metavar="D", help="Where the Huber loss turns linear.", rich_help_panel=MODEL),
    passes: Any = typer.Option("1", parser=whole, metavar="N", help="Passes over the file.", rich_help_panel=RUN),
    polish: bool = typer.Option(
        True, "--polish/--no-polish", help="Solve for the optimum on rows that fit in memory.", rich_help_panel=RUN
    ),
    schedule: str = typer.Option(
        None, metavar="NAME", help="auto, paper, tuned, adaptive, c2, c4.", rich_help_panel=RUN
    ),
    buffer: Any = typer.Option(
        "50000", parser=whole, metavar="ROWS", help="Rows shuffled together; 1: as they come.", rich_help_panel=RUN
    ),
    readers: Any = typer.Option(
        None, parser=whole, metavar="N", help="Threads that decode many Parquet files.", rich_help_panel=RUN
    ),
    shards: Any = typer.Option(
        None, parser=whole, metavar="W", help="Learn from W parts at a time, and average.", rich_help_panel=RUN
    ),
    round_rows: Any = typer.Option(
        "1000", parser=whole, metavar="N", help="Shards: rows between two averages.", rich_help_panel=RUN
    ),
    key: Any = typer.Option("0", parser=whole, metavar="N", help="The seed of the shuffling.", rich_help_panel=RUN),
    cache: Path = typer.Option(
        None, metavar="PATH", help="Keep the rows there in binary; later passes are fast.", rich_help_panel=RUN
    ),
    checkpoint: Path = typer.Option(
        None, metavar="FOLDER", help="Save the run there; the same command goes on after a kill.", rich_help_panel=RUN
    ),
    form: str = typer.Option(
        None, "--format", metavar="NAME", help="libsvm, csv, parquet; default by the name.", rich_help_panel=FILE
    ),
    features: Any = typer.Option(
        None,
        parser=whole,
        metavar="N",
        help="LIBSVM: the number of features; needed for a stream.",
        rich_help_panel=FILE,
    ),
    zero_based: bool = typer.Option(
        False, "--zero-based", help="LIBSVM: indices count from 0, not from 1.", rich_help_panel=FILE
    ),
    target: str = typer.Option(None, metavar="COLUMN", help="Tables: the column to predict.", rich_help_panel=FILE),
    categorical: list[str] = typer.Option(
        [], metavar="COLUMN", help="Tables: its numbers are names; may be repeated.", rich_help_panel=FILE
    ),
    drop: list[str] = typer.Option(
        [], metavar="COLUMN", help="Tables: leave this column out; may be repeated.", rich_help_panel=FILE
    ),
    strings: str = typer.Option(
        "hash",
        metavar="NAME",
        help="Tables: words are hashed (hash) or have a feature each (onehot).",
        rich_help_panel=FILE,
    ),
    hash_bits: Any = typer.Option(
        "18", parser=whole, metavar="B", help="Tables: hash words to 2^B features.", rich_help_panel=FILE
    ),
    delimiter: str = typer.Option(None, metavar="C", help="CSV: what separates values.", rich_help_panel=FILE),
    no_header: bool = typer.Option(
        False, "--no-header", help="CSV: there is no header; columns are 1, 2, ….", rich_help_panel=FILE
    ),
    labels: str = typer.Option(
        None, metavar="A,B,…", help="The labels, where the first rows do not have them all.", rich_help_panel=FILE
    ),
    normalize: bool = typer.Option(False, "--normalize", help="Scale rows to l2 norm 1.", rich_help_panel=FILE),
    float64: bool = typer.Option(False, "--float64", help="Read rows in double precision.", rich_help_panel=FILE),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Count and skip bad rows.", rich_help_panel=FILE),
    model: Path = typer.Option(None, metavar="PATH", help="Where the model goes.", rich_help_panel=SHOW),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else.", rich_help_panel=SHOW),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress.", rich_help_panel=SHOW),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from.", rich_help_panel=SHOW),
) -> None:
    """Train a linear model under a norm constraint, one row at a time: a table of loss, accuracy, AUC and norm."""
    with readable_errors(traceback, fit_command, **SPELLING):
        with contextlib.redirect_stdout(sys.stderr):
            from onesfw.linear import train as train_model

            sources, tests = listed_paths(train), None if test is None else listed_paths(test)
            check_outputs(files_of(*sources, *(tests or ())), {"--cache": cache, "--model": model})
            trained = train_model(
                sources, test=tests, target=target, constraint=set_name, radius=radius, loss=loss, passes=passes,
                intercept=intercept, intercept_bound=intercept_bound, delta=delta, schedule=schedule, key=key,
                scale="auto" if scale is None else scale, polish=polish,
                cache=cache, checkpoint=checkpoint, progress=not (quiet or as_json), buffer=buffer,
                readers=readers, shards=shards, round_rows=round_rows, format=form,
                features=features, zero_based=zero_based, labels=labels, strings=strings, hash_bits=hash_bits,
                categorical=categorical, drop=drop, delimiter=delimiter, header=not no_header, normalize=normalize,
                float64=float64, skip_bad=skip_bad,
            )  # fmt: skip
        raise typer.Exit(show(trained, train, test, model, as_json))


def show(trained: LinearModel, train: str, test: str | None, path: Path | None, as_json: bool) -> int:
    """Write the model, print its figures, and return the exit code: a failure costs the code, not the figures."""
    written, failures = write_outputs({"model": (path, trained.save)})
    for failure in failures:
        say(failure)
    code = 0 if trained.training.finished else INTERRUPTED
    if failures or (code == 0 and test is not None and trained.test is None):
        code = MISTAKE
    if as_json:
        print(json.dumps(content(trained, train, test) | written, allow_nan=False))
        return code
    from rich.console import Console

    from onesfw.results.show import boxed

    console = Console()
    console.print(boxed(f"{train}: {trained.title}", ("training", "result"), trained.rows()))
    if trained.test is not None and trained.test.confusion is not None and len(trained.test.confusion) <= MOST_SHOWN:
        console.print(boxed("test rows by label", *trained.test.confusion_rows()))
    print_written(written)
    return code


def content(trained: LinearModel, train: str, test: str | None) -> dict[str, Any]:
    """The figures of a run, as JSON has them."""
    import numpy as np

    record, scores, training = trained.training, trained.test, trained.training.scores
    return {
        "train": train,
        "test": test,
        "finished": record.finished,
        "loss": trained.loss,
        "constraint": trained.constraint,
        "radius": trained.radius,
        "schedule": record.schedule,
        "rows": record.rows,
        "skipped": record.skipped,
        "features": trained.n_features,
        "passes": record.passes,
        "steps": record.steps,
        "labels": None if trained.labels is None else list(trained.labels),
        "progressive_loss": record.progressive_loss,
        "training_loss": None if training is None else training.loss,
        "training_gap": record.gap,
        "converged": record.converged,
        "polished": record.polished,
        "scaled": trained.scale is not None,
        "training_accuracy": None if training is None else training.accuracy,
        "training_r2": None if training is None else training.r2,
        "training_rmse": None if training is None else training.rmse,
        "columns": {} if trained.encoding is None else dict(trained.encoding.roles()),
        "test_rows": None if scores is None else scores.rows,
        "test_loss": None if scores is None else scores.loss,
        "accuracy": None if scores is None else scores.accuracy,
        "confusion": None if scores is None else scores.confusion,
        "auc": None if scores is None else scores.auc,
        "r2": None if scores is None else scores.r2,
        "rmse": None if scores is None else scores.rmse,
        "test_skipped": None if scores is None else scores.skipped,
        "nonzeros": int(np.count_nonzero(trained.coef)),
        "norm": trained.norm,
        "intercept": np.asarray(trained.intercept).tolist(),
        "seconds": record.seconds,
        "pass_seconds": list(record.pass_seconds),
        "compile_seconds": record.compile_seconds,
    }
