"""`onesfw fit`: train a sparse linear model from a file or a stream, in bounded memory."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import sentences
from onesfw.cli.solve_command import whole

if TYPE_CHECKING:
    from onesfw.linear.fitting import Outcome

INTERCEPT_BOUND = 10.0  # of the logit or the logarithm of a count
EXAMPLES = """[bold]Examples[/bold]

onesfw fit train.svm test.svm --radius 100 --passes 5 --model m.safetensors

onesfw fit big.svm.gz --radius 100 --passes 20 --cache big.rows --checkpoint run --model m.safetensors

zcat part-*.gz | onesfw fit - --features 1e6 --labels 0,1 --radius 30 --model m.safetensors

onesfw fit people.csv --target income --loss logistic --set l2 --radius 10 --model m.safetensors

[bold]Files[/bold] are LIBSVM text, CSV or Parquet, texts also compressed by gzip, xz or bzip2; - is the standard input.

[bold]Exit codes[/bold]: 0 done, 1 a loss that is not finite ended the run, 2 a mistake in the call or the file, 130 \
Ctrl-C (the model so far is kept)."""

FILE, MODEL, RUN, SHOW = "The file", "The model", "The run", "Output"


def fit_command(
    train: str = typer.Argument(..., metavar="TRAIN", help="The file to learn from; - is the standard input."),
    test: str = typer.Argument(None, metavar="TEST", help="A file to test on.", show_default=False),
    loss: str = typer.Option(
        "logistic", metavar="NAME", help="logistic, squared_hinge, squared, huber, poisson.", rich_help_panel=MODEL
    ),
    set_name: str = typer.Option(
        "l1", "--set", metavar="NAME", help="l1, l2, linf, simplex, nonnegative_l1.", rich_help_panel=MODEL
    ),
    radius: float = typer.Option(..., metavar="R", help="The largest norm of the coefficients.", rich_help_panel=MODEL),
    intercept: bool = typer.Option(
        False, "--intercept", help="Learn an intercept too, in an interval around 0.", rich_help_panel=MODEL
    ),
    intercept_bound: float = typer.Option(
        None, metavar="B", help="The interval is [−B, B]; 10 for labels and counts.", rich_help_panel=MODEL
    ),
    passes: Any = typer.Option("1", parser=whole, metavar="N", help="Passes over the file.", rich_help_panel=RUN),
    schedule: str = typer.Option(None, metavar="NAME", help="paper, c2, c4, adaptive.", rich_help_panel=RUN),
    buffer: Any = typer.Option(
        "50000", parser=whole, metavar="ROWS", help="Rows shuffled together; 1: as they come.", rich_help_panel=RUN
    ),
    seed: Any = typer.Option("0", parser=whole, metavar="N", help="The seed of the shuffling.", rich_help_panel=RUN),
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
        None, metavar="A,B", help="The two labels, where the first rows have only one.", rich_help_panel=FILE
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
    with sentences(traceback), contextlib.redirect_stdout(sys.stderr):
        from onesfw.arguments import choose, number, whole_number
        from onesfw.data.prepare import ReadOptions
        from onesfw.linear import CONSTRAINTS, LOSSES, SCHEDULES
        from onesfw.linear.fitting import Plan, fit

        choose(loss, LOSSES, "--loss")
        choose(set_name, CONSTRAINTS, "--set")
        if schedule is not None:
            choose(schedule, SCHEDULES, "--schedule")
        plan = Plan(
            loss, set_name, number(radius, "--radius", 0.0, strict=True), schedule,
            interval(intercept, intercept_bound, loss), whole_number(passes, "--passes", 1),
            whole_number(buffer, "--buffer", 1), whole_number(seed, "--seed", 0),
        )  # fmt: skip
        options = ReadOptions(
            form, features, zero_based, target, strings, hash_bits, tuple(categorical), tuple(drop), delimiter,
            not no_header, labels, LOSSES[loss].classifies, loss == "poisson", normalize, float64, skip_bad,
        )  # fmt: skip
        check_outputs(model, cache, [train, test])
        outcome = fit(train, test, plan, options, cache, checkpoint, model, show=not (quiet or as_json))
    if as_json:
        print(json.dumps(outcome.figures, allow_nan=False))
    else:
        show(outcome)
    raise typer.Exit(outcome.code)


def interval(wanted: bool, bound: float | None, loss: str) -> tuple[float, float] | None:
    """The interval of the intercept."""
    from onesfw.arguments import number

    if bound is not None:
        bound = number(bound, "--intercept-bound", 0.0, strict=True)
    elif wanted and loss in ("squared", "huber"):
        raise ValueError(f"--intercept needs --intercept-bound with the {loss} loss: how large may the intercept be?")
    elif wanted:
        bound = INTERCEPT_BOUND
    return None if bound is None else (-bound, bound)


def check_outputs(model: Path | None, cache: Path | None, inputs: list[str | None]) -> None:
    """Raise a sentence where a file cannot be written, or would overwrite another one of the call."""
    from onesfw.files import check_target

    taken = {os.path.realpath(path): "the data" for path in inputs if path not in (None, "-") and path is not None}
    for option, path in (("--model", model), ("--cache", cache)):
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"{option} {path} would overwrite {taken[place]}; give another path")
        taken[place] = option
        check_target(path)


def show(outcome: Outcome) -> None:
    """The table of a run."""
    from rich.console import Console

    from onesfw.linear.tables import fit_table

    Console().print(fit_table(outcome.figures))
    if outcome.figures["model"]:
        print(f"model: {outcome.figures['model']}")
