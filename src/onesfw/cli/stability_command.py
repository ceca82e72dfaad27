"""`onesfw stability`: parse the options, call `onesfw.linear.select_columns`, print."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import MISTAKE, interruptible, readable_errors, say
from onesfw.cli.option_values import listed, number_or_none, numbers, whole
from onesfw.cli.output import check_outputs, files_of, print_sheet, print_written, write_outputs

if TYPE_CHECKING:
    from onesfw.linear.stability import Stability

SPELLING = {
    "constraint": "--set", "format": "--format", "header": "--no-header", "source": "DATA", "n_jobs": "--jobs",
}  # fmt: skip
EXAMPLES = """[bold]Examples[/bold]

onesfw stability data.csv --target y --plot paths.png

onesfw stability genes.parquet --target tumour --expected-false 0.5 --threshold 0.9

onesfw stability people.csv --target income --drop id --categorical region --json

onesfw stability train.svm --loss logistic --jobs 2 --save stability.safetensors

[bold]Files[/bold] are those of onesfw fit: LIBSVM text, CSV or Parquet; all rows are held in memory. Columns of words \
become a column for each word, named column=word.

[bold]What is promised[/bold]: at most --expected-false columns are selected by mistake, in expectation: columns that \
half of the rows select no more often than chance would have it (Meinshausen and Bühlmann 2010; Shah and Samworth 2013).

[bold]Exit codes[/bold]: 0 done, 2 a mistake in the call or the file, 130 Ctrl-C."""

FILE, MODEL, RUN, SHOW = "The file", "The selection", "The run", "Output"


def stability_command(
    data: str = typer.Argument(
        ..., metavar="DATA", help="The file; a folder, a quoted pattern or an address for several; - standard input."
    ),
    target: str = typer.Option(
        None, metavar="COLUMN", help="Tables: the column that the others are to explain.", rich_help_panel=FILE
    ),
    loss: str = typer.Option(
        None,
        metavar="NAME",
        help="logistic, squared_hinge, squared, huber, poisson; default: logistic for classes, squared for numbers.",
        rich_help_panel=MODEL,
    ),
    set_name: str = typer.Option(
        "l1", "--set", metavar="NAME", help="l1, nonnegative_l1, simplex.", rich_help_panel=MODEL
    ),
    threshold: float = typer.Option(
        0.75, metavar="S", help="The share of half-samples that makes a column stable.", rich_help_panel=MODEL
    ),
    expected_false: Any = typer.Option(
        "1",
        parser=number_or_none,
        metavar="V",
        help="False selections at most, in expectation; none: all radii, and the bound that follows.",
        rich_help_panel=MODEL,
    ),
    assumption: str = typer.Option(
        "r_concave", metavar="NAME", help="Of that bound: r_concave or none.", rich_help_panel=MODEL
    ),
    radii: Any = typer.Option(
        None, parser=numbers, metavar="A,B,…", help="Rising radii; default: 30.", rich_help_panel=MODEL
    ),
    scale: bool = typer.Option(
        True, "--scale/--no-scale", help="Divide columns by their scales.", rich_help_panel=MODEL
    ),
    intercept: bool = typer.Option(
        True, "--intercept/--no-intercept", help="Learn an intercept too.", rich_help_panel=MODEL
    ),
    delta: float = typer.Option(1.0, metavar="D", help="Where the Huber loss turns linear.", rich_help_panel=MODEL),
    pairs: Any = typer.Option("50", parser=whole, metavar="N", help="Pairs of half-samples.", rich_help_panel=RUN),
    engine: str = typer.Option(
        "linear", metavar="NAME", help="linear, or sweep: dense rows on an accelerator.", rich_help_panel=RUN
    ),
    steps: Any = typer.Option(
        None, parser=whole, metavar="N", help="Of each run of a sweep; default: 20,000.", rich_help_panel=RUN
    ),
    key: Any = typer.Option("0", parser=whole, metavar="N", help="The seed of the half-samples.", rich_help_panel=RUN),
    n_jobs: Any = typer.Option(
        None, "--jobs", parser=whole, metavar="N", help="Half-samples at a time; -1: one a core.", rich_help_panel=RUN
    ),
    columns: list[str] = typer.Option(
        [], metavar="NAMES", help="Choose among these columns only; with commas, or repeated.", rich_help_panel=FILE
    ),
    drop: list[str] = typer.Option(
        [], metavar="NAMES", help="Leave these columns out; with commas, or repeated.", rich_help_panel=FILE
    ),
    categorical: list[str] = typer.Option(
        [], metavar="COLUMN", help="Tables: its numbers are names; may be repeated.", rich_help_panel=FILE
    ),
    form: str = typer.Option(
        None, "--format", metavar="NAME", help="libsvm, csv, parquet; default by the name.", rich_help_panel=FILE
    ),
    features: Any = typer.Option(
        None, parser=whole, metavar="N", help="LIBSVM: the number of features.", rich_help_panel=FILE
    ),
    zero_based: bool = typer.Option(
        False, "--zero-based", help="LIBSVM: indices count from 0, not from 1.", rich_help_panel=FILE
    ),
    delimiter: str = typer.Option(None, metavar="C", help="CSV: what separates values.", rich_help_panel=FILE),
    no_header: bool = typer.Option(
        False, "--no-header", help="CSV: there is no header; columns are 1, 2, ….", rich_help_panel=FILE
    ),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Count and skip bad rows.", rich_help_panel=FILE),
    plot: Path = typer.Option(
        None, metavar="PATH", help="Draw the paths: .png, .pdf or .svg; replaces a file.", rich_help_panel=SHOW
    ),
    save: Path = typer.Option(
        None, metavar="PATH", help="Keep all shares; onesfw.linear.Stability.load reads them.", rich_help_panel=SHOW
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else.", rich_help_panel=SHOW),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress.", rich_help_panel=SHOW),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from.", rich_help_panel=SHOW),
) -> None:
    """Select the columns that matter whatever half of the rows is looked at, with a bound on false selections."""
    with readable_errors(traceback, stability_command, **SPELLING), interruptible("nothing was selected"):
        with contextlib.redirect_stdout(sys.stderr):
            from onesfw.linear.column_selection import select_columns

            check_outputs(files_of(data), {"--plot": plot, "--save": save})
            found = select_columns(
                data, target=target, loss=loss, constraint=set_name, radii=radii, threshold=threshold,
                expected_false=expected_false, assumption=assumption, pairs=pairs, columns=listed(columns) or None,
                drop=listed(drop), categorical=listed(categorical), intercept=intercept, delta=delta, scale=scale,
                engine=engine, steps=steps, key=key, n_jobs=n_jobs, progress=not (quiet or as_json), format=form,
                features=features, zero_based=zero_based, delimiter=delimiter, header=not no_header, skip_bad=skip_bad,
            )  # fmt: skip
        code = show(found, data, plot, save, as_json)
    raise typer.Exit(code)


def show(found: Stability, data: str, plot: Path | None, save: Path | None, as_json: bool) -> int:
    """Write what was asked for, print the table, and return the exit code: a failure costs the code, not the table."""
    written, failures = write_outputs({"plot": (plot, found.plot), "save": (save, found.save)})
    if as_json:
        print(json.dumps(content(found, data) | written, allow_nan=False))
    else:
        print_sheet(found.sheet())
        print_written(written)
    for failure in failures:
        say(failure)
    return MISTAKE if failures else 0


def content(found: Stability, data: str) -> dict[str, Any]:
    """The selection in JSON's terms: columns that were ever selected, the stablest first."""
    from onesfw.results.jsonable import plain

    scores, stable = found.scores, set(found.stable.tolist())
    return {
        "data": data,
        "columns": found.columns,
        "half_samples": 2 * found.pairs,
        "threshold": found.threshold,
        "selected_by_a_half": found.selected,
        "most_selected_by_a_half": found.most_selected,
        "assumption": found.assumption,
        "expected_false": {name: found.bound(name) for name in ("none", "r_concave")},
        "stable": [found.name(j) for j in found.stable.tolist()],
        "radii": plain(found.radii),
        "shares": [
            {"column": found.name(j), "largest": float(scores[j]), "stable": j in stable,
             "by_radius": plain(found.probabilities[:, j])}
            for j in found.ranked.tolist()
        ],
    }  # fmt: skip
