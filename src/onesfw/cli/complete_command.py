"""`onesfw complete`: parse the options, call `onesfw.lowrank.complete_file`, print."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import INTERRUPTED, MISTAKE, readable_errors, say
from onesfw.cli.option_values import one_or_more, whole
from onesfw.cli.output import check_outputs, print_written, write_outputs

if TYPE_CHECKING:
    from onesfw.lowrank import Columns, Completed

SPELLING = {"source": "RATINGS", "header": "--no-header", "format": "--format", "values": "--rating"}
EXAMPLES = """[bold]Examples[/bold]

onesfw complete ratings.csv --user userId --item movieId --rating rating --model m.safetensors

onesfw complete train.tsv --user u --item i --rating r --test test.tsv --plot path.png

onesfw complete ratings.parquet --user u --item i --rating r --recommend users.csv --k 10 --out best.csv

onesfw complete u.data --no-header --delimiter '\\t' --user 1 --item 2 --rating 3

onesfw complete clicks.csv --user u --item i --rating sign --loss logistic --radius 2

[bold]Files[/bold] are CSV, TSV or Parquet, texts also compressed by gzip, xz or bzip2; - is the standard input.

[bold]Exit codes[/bold]: 0 done, 2 a mistake in the call or the file, 130 Ctrl-C (the model so far is kept)."""

FILE, MODEL, RUN, SHOW = "The file", "The model", "The run", "Output"


def a_radius(text: str) -> Any:
    """A number, or the word for a path."""
    try:
        return float(text)
    except ValueError:
        return text


def complete_command(
    ratings: str = typer.Argument(..., metavar="RATINGS", help="A line an entry; - is the standard input."),
    user: str = typer.Option(..., metavar="COLUMN", help="The column of the users.", rich_help_panel=FILE),
    item: str = typer.Option(..., metavar="COLUMN", help="The column of the items.", rich_help_panel=FILE),
    rating: str = typer.Option(..., metavar="COLUMN", help="The column of the values.", rich_help_panel=FILE),
    test: str = typer.Option(None, metavar="FILE", help="Measure on these entries.", rich_help_panel=FILE),
    form: str = typer.Option(
        None, "--format", metavar="NAME", help="csv, parquet; default by the file.", rich_help_panel=FILE
    ),
    delimiter: str = typer.Option(None, metavar="C", help="CSV: what separates values.", rich_help_panel=FILE),
    no_header: bool = typer.Option(
        False, "--no-header", help="CSV: there is no header; columns are 1, 2, ….", rich_help_panel=FILE
    ),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Count and skip bad lines.", rich_help_panel=FILE),
    radius: Any = typer.Option(
        "path", parser=a_radius, metavar="R", help="Of the trace-norm ball; path, simplest.", rich_help_panel=MODEL
    ),
    loss: str = typer.Option(
        "squared", metavar="NAME", help="squared, huber, logistic (−1, +1), poisson.", rich_help_panel=MODEL
    ),
    delta: float = typer.Option(1.0, metavar="D", help="Where the Huber loss turns linear.", rich_help_panel=MODEL),
    weighted: bool = typer.Option(
        True, "--weighted/--uniform", help="Users and items count by their entries.", rich_help_panel=MODEL
    ),
    biases: bool = typer.Option(
        True, "--biases/--no-biases", help="The mean, and a number for each user and item.", rich_help_panel=MODEL
    ),
    ridge: Any = typer.Option(
        None,
        parser=one_or_more,
        metavar="W",
        rich_help_panel=MODEL,
        help="The weight of the biases' squares, or two, 5,2 for users and items; default: estimated.",
    ),
    max_rank: Any = typer.Option(None, parser=whole, metavar="N", help="The largest rank.", rich_help_panel=MODEL),
    gap_tol: float = typer.Option(1e-3, metavar="G", help="Stop at a gap of G times the value.", rich_help_panel=RUN),
    time_limit: float = typer.Option(None, metavar="S", help="Stop after S seconds.", rich_help_panel=RUN),
    key: Any = typer.Option("0", parser=whole, metavar="N", help="A seed.", rich_help_panel=RUN),
    checkpoint: Path = typer.Option(
        None, metavar="FOLDER", help="Save the run there; the same command goes on after a kill.", rich_help_panel=RUN
    ),
    model: Path = typer.Option(None, metavar="PATH", help="Where the model goes.", rich_help_panel=SHOW),
    recommend: str = typer.Option(
        None, metavar="FILE", help="A table of users to recommend items to; all for everyone.", rich_help_panel=SHOW
    ),
    k: Any = typer.Option(
        None, parser=whole, metavar="N", help="Items for each of them; default: 10.", rich_help_panel=SHOW
    ),
    out: Path = typer.Option(
        None, metavar="PATH", help="Where these go, as CSV; default: recommendations.csv.", rich_help_panel=SHOW
    ),
    plot: Path = typer.Option(
        None, metavar="PATH", help="A picture of singular values and path.", rich_help_panel=SHOW
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else.", rich_help_panel=SHOW),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress.", rich_help_panel=SHOW),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from.", rich_help_panel=SHOW),
) -> None:
    """Predict all ratings from some: a matrix of low rank and biases, with its errors, and recommendations."""
    with readable_errors(traceback, complete_command, **SPELLING):
        with contextlib.redirect_stdout(sys.stderr):
            from onesfw.arguments import whole_number
            from onesfw.lowrank import Columns, complete_file
            from onesfw.lowrank.rating_files import read_users

            for option, given in (("--out", out), ("--k", k)):
                if given is not None and recommend is None:
                    raise ValueError(f"{option} is for recommendations; give --recommend, or leave it out")
            count = 10 if k is None else whole_number(k, "k", 1)
            place = Path("recommendations.csv") if out is None else out
            outputs = {"--model": model, "--plot": plot, "--out": None if recommend is None else place}
            check_outputs(
                [ratings, test, None if recommend == "all" else recommend], outputs, {"--out": (".csv", ".txt")}
            )
            columns = Columns(user, item, rating, form, delimiter, not no_header, skip_bad)
            everyone = recommend is None or recommend == "all"
            names = None if everyone else read_users(recommend, user)  # before any work
            done = complete_file(
                ratings, columns, test=test, radius=radius, loss=loss, weighted=weighted, biases=biases,
                max_rank=max_rank, gap_tol=gap_tol, delta=delta, ridge=ridge, key=key,
                progress=not (quiet or as_json), checkpoint=checkpoint, time_limit=time_limit,
            )  # fmt: skip
        wish = None if recommend is None else (names, place)
        raise typer.Exit(show(done, ratings, columns, model, plot, wish, count, as_json))


def show(
    done: Completed, source: str, columns: Columns, model: Path | None, plot: Path | None,
    wish: tuple[list[str] | None, Path] | None, k: int, as_json: bool,
) -> int:  # fmt: skip
    """Write what was asked for, print the figures, and return the exit code: a failure costs the code, not the rest."""
    unknown = 0
    names, out = (None, None) if wish is None else wish

    def recommend(path: Path) -> None:
        nonlocal unknown
        unknown = done.recommend(names, columns.user, path, k, item=columns.item)

    written, failures = write_outputs(
        {"model": (model, done.model.save), "plot": (plot, done.model.plot), "recommendations": (out, recommend)}
    )
    for failure in failures:
        say(failure)
    code = MISTAKE if failures else INTERRUPTED if done.model.status == "interrupted" else 0
    if as_json:
        print(json.dumps(content(done, source, unknown) | written, allow_nan=False))
        return code
    from rich.console import Console

    from onesfw.lowrank.low_rank import ENDINGS
    from onesfw.results.show import boxed

    console = Console()
    lines = done.model.rows()
    if done.repeated:
        lines.insert(1, ("  given again", f"{done.repeated:,}; the mean counts"))
    if done.ratings.skipped:
        lines.insert(1, ("  skipped", f"{done.ratings.skipped:,}"))
    console.print(boxed(f"{source}: {done.model.title}", ("completion", "result"), lines))
    print(f"  {ENDINGS[done.model.status].replace('time_limit', '--time-limit').replace('gap_tol', '--gap-tol')}")
    if unknown:
        were = "user was" if unknown == 1 else "users were"
        print(f"  {unknown:,} {were} not known; their recommendations follow the items' biases")
    print_written(written)
    return code


def content(done: Completed, source: str, unknown: int) -> dict[str, Any]:
    """The figures of a run, as JSON has them."""
    from dataclasses import asdict

    from onesfw.results.jsonable import plain

    model = done.model
    figures = {
        name: getattr(model, name)
        for name in (
            "loss",
            "radius",
            "rank",
            "norm",
            "value",
            "gap",
            "status",
            "entries",
            "steps",
            "rounds",
            "seconds",
        )
    }
    path = model.path
    return {
        "ratings": source,
        "users": model.shape[0],
        "items": model.shape[1],
        "skipped": done.ratings.skipped,
        "repeated": done.repeated,
        **{name: plain(value) for name, value in figures.items()},
        "path": None if path is None else {
            "radii": plain(path.radii), "validation_loss": plain(path.validation_loss),
            "validation_stderr": plain(path.validation_stderr), "best": path.best_radius,
            "simplest": path.simplest_radius, "larger_may_be_better": bool(model.edge),
        },
        "test": None if model.test is None else plain(asdict(model.test)),
        "unknown_users": unknown,
    }  # fmt: skip
