"""`onesfw select`: pick k rows of a table, or k seeds of a network, with a certificate."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import MISTAKE, interruptible, readable_errors, say
from onesfw.cli.option_values import listed, number_or, whole
from onesfw.cli.output import check_outputs, print_written, write_outputs

if TYPE_CHECKING:
    from onesfw.submodular.selection import Selection

EXAMPLES = """[bold]Examples[/bold]

onesfw select data.csv --k 50 --out rows.csv --plot map.png

onesfw select people.parquet --k 30 --groups region --per-group 5 --scale --drop age

onesfw select kernel-data.npy --function log-determinant --k 20 --json

onesfw select films.csv --function coverage --items genres --k 8

onesfw select graph.txt --influence --k 50 --probability 0.1 --plot curve.png

[bold]Tables[/bold] are CSV (.csv, .tsv, .csv.gz, …) with a headline, Parquet or .npy; numeric columns are what rows \
are compared by, others are carried along, and so is a column that looks like an identifier, unless --columns names \
it. [bold]Graphs[/bold] are text, two node numbers a line, and with --probability column an arc's probability. \
[bold]Files[/bold] that --out and --plot name are replaced, whole or not at all, once the choice is made; DATA never \
is. [bold]Exit codes[/bold]: 0 done, 2 a mistake in the call or the file, 130 Ctrl-C."""


def select_command(
    data: Path = typer.Argument(..., metavar="DATA", help="A table (.csv, .parquet, .npy), or a graph's edges."),
    k: Any = typer.Option(None, parser=whole, metavar="N", help="How many rows or nodes to choose."),
    function: str | None = typer.Option(
        None, metavar="NAME", help="facility-location (default), log-determinant, feature-based or coverage."
    ),
    groups: str | None = typer.Option(
        None,
        metavar="COLUMN",
        help="At most --per-group rows for each value of this column; of a graph: the file of nodes and groups.",
    ),
    per_group: Any = typer.Option(
        None, parser=whole, metavar="N", help="Rows or nodes of each group; with --k, so many in all."
    ),
    columns: list[str] = typer.Option(
        [], metavar="NAMES", help="Compare rows by these columns only; with commas between them, or repeated."
    ),
    drop: list[str] = typer.Option(
        [], metavar="NAMES", help="Do not compare rows by these columns; with commas between them, or repeated."
    ),
    scale: bool = typer.Option(False, "--scale", help="Standardise the columns before rows are compared."),
    neighbors: Any = typer.Option(
        None, parser=whole, metavar="N", help="Compare a row with its N nearest only; 100 beyond 15,000 rows."
    ),
    items: str | None = typer.Option(
        None, metavar="COLUMN", help="With --function coverage: the column that lists what a row covers."
    ),
    delimiter: str | None = typer.Option(None, metavar="C", help="CSV: what separates values."),
    no_header: bool = typer.Option(False, "--no-header", help="CSV: there is no header; columns are 1, 2, …."),
    influence: bool = typer.Option(False, "--influence", help="DATA is a graph: choose the nodes that reach most."),
    chance: Any = typer.Option(
        None,
        "--probability",
        parser=number_or("weighted-cascade", "column"),
        metavar="P",
        help="Of an arc: a number in [0, 1]; weighted-cascade (default), 1/indegree; or column, the file's third.",
    ),
    directed: bool = typer.Option(False, "--directed", help="Influence runs from a line's first node to its second."),
    steps: Any = typer.Option("10000", parser=whole, metavar="N", help="Steps of the run; half for each phase."),
    batch: Any = typer.Option("1", parser=whole, metavar="N", help="Samples averaged in each step."),
    polish: bool = typer.Option(True, "--polish/--no-polish", help="One sweep of improving exchanges at the end."),
    key: Any = typer.Option("0", parser=whole, metavar="N", help="The seed of all randomness."),
    out: Path | None = typer.Option(
        None, metavar="PATH", help="Write the chosen rows or nodes: .csv, .parquet or .npy; replaces a file."
    ),
    plot: Path | None = typer.Option(
        None,
        metavar="PATH",
        help="Save a map of the rows, or a graph's value curve: .png, .pdf or .svg; replaces a file.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress bar and no notes."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Choose rows that represent a table, or seeds in a network, and certify how good the choice is."""
    spelling = {"probability": "--probability", "header": "--no-header"}
    with readable_errors(traceback, select_command, **spelling), interruptible("nothing was chosen"):
        with contextlib.redirect_stdout(sys.stderr):
            from onesfw.data.table_rows import ENDINGS
            from onesfw.submodular.from_files import select_nodes, select_rows

            table_only = {
                "--function": function, "--columns": columns or None, "--drop": drop or None, "--scale": scale or None,
                "--neighbors": neighbors, "--items": items, "--delimiter": delimiter, "--no-header": no_header or None,
            }  # fmt: skip
            graph_only = {"--probability": chance, "--directed": directed or None}
            check_options(table_only if influence else graph_only, influence)
            read = [data, groups] if influence else [data]
            check_outputs(read, {"--out": out, "--plot": plot}, {"--out": ENDINGS})
            if influence:
                result = select_nodes(
                    data, k, probability="weighted-cascade" if chance is None else chance, directed=directed,
                    groups=groups, per_group=per_group, steps=steps, batch=batch, polish=polish, key=key,
                    progress=not (as_json or quiet),
                )  # fmt: skip
            else:
                result = select_rows(
                    data, k, function=function or "facility-location", groups=groups, per_group=per_group,
                    columns=listed(columns) or None, drop=listed(drop), scale=scale, neighbors=neighbors, items=items,
                    delimiter=delimiter, header=not no_header, steps=steps, batch=batch, polish=polish, key=key,
                    progress=not (as_json or quiet), out=out,
                )  # fmt: skip
        code = show(result, data.name, out, plot, as_json, quiet)
    raise typer.Exit(code)


def check_options(others: dict[str, Any], influence: bool) -> None:
    """Raise ValueError where an option was given that has no part in this kind of selection."""
    for option, value in others.items():
        if value is not None:
            kind, remedy = ("tables", "leave it out with") if influence else ("graphs", "it goes with")
            raise ValueError(f"{option} is for {kind}; {remedy} --influence")


def show(result: Selection, name: str, out: Path | None, plot: Path | None, as_json: bool, quiet: bool) -> int:
    """Print the answer, save what was asked for, and return the exit code."""
    if not quiet:
        for note in result.notes:
            say(note)
    if not as_json:
        from rich.console import Console

        from onesfw.submodular.selection import selection_table

        Console().print(selection_table(result))
    written, failures = write_outputs({"out": (out, result.write), "plot": (plot, result.plot)})
    if as_json:
        print(json.dumps(content(result, name) | written, allow_nan=False))
    else:
        print_written(written)
    for failure in failures:
        say(failure)
    return MISTAKE if failures else 0


def content(result: Selection, name: str) -> dict[str, Any]:
    """The answer in JSON's terms."""
    return {
        "data": name,
        "function": result.title.removeprefix(f"{name}: "),
        "n": int(result.x.size),
        "chosen": result.names.tolist(),
        "value": result.value,
        "value_stderr": result.value_stderr,
        "exact": result.exact,
        "fractional_value": result.fractional_value,
        "upper_bound": result.upper_bound,
        "certificate": result.certificate,
        "ratio": result.ratio,
        "phase": result.phase,
        "exchanges": result.exchanges,
        "samples": result.samples,
        "lmo_calls": result.lmo_calls,
        "seconds": result.seconds,
        "sampling_seconds": result.sampling_seconds,
        "judging_seconds": result.judging_seconds,
        "certificate_seconds": result.certificate_seconds,
        "columns": list(result.columns),
        "left_out": [{"column": other.column, "reason": other.reason} for other in result.left_out],
        "notes": list(result.notes),
    }
