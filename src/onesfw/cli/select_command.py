"""`onesfw select`: pick k rows of a table, or k seeds of a network, with a certificate."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import INTERRUPTED, MISTAKE, sentence, sentences
from onesfw.cli.solve_command import whole

if TYPE_CHECKING:
    from rich.table import Table

    from onesfw.cli.selecting import Choice
    from onesfw.submodular.select import Selection

EXAMPLES = """[bold]Examples[/bold]

onesfw select data.csv --k 50 --out rows.csv --plot map.png

onesfw select people.parquet --k 30 --groups region --per-group 5 --scale

onesfw select kernel-data.npy --function log-determinant --k 20 --json

onesfw select graph.txt --influence --k 50 --probability 0.1 --plot curve.png

[bold]Tables[/bold] are CSV (.csv, .csv.gz, …) with a headline, Parquet or .npy; numeric columns are what rows are \
compared by, others are carried along. [bold]Graphs[/bold] are text, two node numbers a line, and with --probability \
column an arc's probability. [bold]Files[/bold] that --out and --plot name are replaced, whole or not at all, once the \
choice is made; DATA never is. [bold]Exit codes[/bold]: 0 done, 2 a mistake in the call or the file, 130 Ctrl-C."""


def probability(text: str) -> float | str:
    """A number, or one of the words weighted-cascade and column."""
    if text in ("weighted-cascade", "column"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor weighted-cascade nor column") from None


def select_command(
    data: Path = typer.Argument(..., metavar="DATA", help="A table (.csv, .parquet, .npy), or a graph's edges."),
    k: Any = typer.Option(None, parser=whole, metavar="N", help="How many rows or nodes to choose."),
    function: str | None = typer.Option(
        None, metavar="NAME", help="facility-location (default), log-determinant or feature-based."
    ),
    groups: str | None = typer.Option(
        None, metavar="COLUMN", help="At most --per-group rows for each value of this column."
    ),
    per_group: Any = typer.Option(
        None, parser=whole, metavar="N", help="Rows of each group; with --k, so many in all."
    ),
    scale: bool = typer.Option(False, "--scale", help="Standardise the columns before rows are compared."),
    influence: bool = typer.Option(False, "--influence", help="DATA is a graph: choose the nodes that reach most."),
    chance: Any = typer.Option(
        None,
        "--probability",
        parser=probability,
        metavar="P",
        help="Of an arc: a number in [0, 1]; weighted-cascade (default), 1/indegree; or column, the file's third.",
    ),
    directed: bool = typer.Option(False, "--directed", help="Influence runs from a line's first node to its second."),
    steps: Any = typer.Option("10000", parser=whole, metavar="N", help="Steps of the run; half for each phase."),
    batch: Any = typer.Option("1", parser=whole, metavar="N", help="Samples averaged in each step."),
    polish: bool = typer.Option(True, "--polish/--no-polish", help="One sweep of improving exchanges at the end."),
    seed: Any = typer.Option("0", parser=whole, metavar="N", help="The seed of all randomness."),
    out: Path | None = typer.Option(
        None, metavar="PATH", help="Write the chosen rows: .csv, .parquet or .npy; replaces a file."
    ),
    plot: Path | None = typer.Option(
        None,
        metavar="PATH",
        help="Save a map of the rows, or a graph's value curve: .png, .pdf or .svg; replaces a file.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress bar."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Choose rows that represent a table, or seeds in a network, and certify how good the choice is."""
    with sentences(traceback), interruptible():
        with contextlib.redirect_stdout(sys.stderr):
            from onesfw.arguments import whole_number
            from onesfw.cli import selecting
            from onesfw.submodular.select import select

            steps = whole_number(steps, "--steps", 2)
            batch = whole_number(batch, "--batch", 1)
            seed = whole_number(seed, "--seed", 0, 2**32 - 1)
            table_only = {
                "--groups": groups,
                "--per-group": per_group,
                "--function": function,
                "--scale": scale or None,
            }
            graph_only = {"--probability": chance, "--directed": directed or None}
            check_options(table_only if influence else graph_only, influence)
            check_outputs(data, out, plot, influence)
            if influence:
                choice: Choice = selecting.graph_choice(
                    data, k, "weighted-cascade" if chance is None else chance, directed
                )
            else:
                choice = selecting.table_choice(data, k, function or "facility-location", groups, per_group, scale, out)
            result = select(
                choice.function, choice.matroid, steps=steps, batch=batch, polish=polish, key=seed,
                progress=not (as_json or quiet),
            )  # fmt: skip
        code = show(result, choice, out, plot, as_json)
    raise typer.Exit(code)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends the command with a sentence and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        print("onesfw: interrupted; nothing was chosen", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def check_options(others: dict[str, Any], influence: bool) -> None:
    """Raise a sentence where an option was given that has no part in this kind of selection."""
    for option, value in others.items():
        if value is not None:
            kind, remedy = ("tables", "leave it out with") if influence else ("graphs", "it goes with")
            raise ValueError(f"{option} is for {kind}; {remedy} --influence")


def check_outputs(data: Path, out: Path | None, plot: Path | None, influence: bool) -> None:
    """Raise a sentence where a file cannot be written, or would overwrite what is read, before a run is spent on it."""
    from onesfw.cli.selecting import check_ending
    from onesfw.files import check_target
    from onesfw.results.pictures import picture_ending

    if plot is not None:
        picture_ending(plot)
    if out is not None:
        check_ending(out, influence)
    taken = {os.path.realpath(data): "what is read"}
    for option, path in (("--out", out), ("--plot", plot)):
        if path is not None:
            place = os.path.realpath(path)
            if place in taken:
                raise ValueError(f"{option} {path} would overwrite {taken[place]}; give another path")
            taken[place] = option
            check_target(path)


def show(result: Selection, choice: Choice, out: Path | None, plot: Path | None, as_json: bool) -> int:
    """Print the answer, save what was asked for, and return the exit code."""
    failures = []
    written: dict[str, str | None] = {"out": None, "plot": None}
    if not as_json:
        from rich.console import Console

        Console().print(result_table(result, choice))
    for label, path, write in (("out", out, choice.save), ("plot", plot, choice.draw)):
        if path is None:
            continue
        try:
            write(result, path)
            written[label] = str(path)
        except (OSError, TypeError, ValueError) as error:
            failures.append(sentence(error))
    if as_json:
        print(json.dumps(content(result, choice) | written, allow_nan=False))
    else:
        for label, name in written.items():
            if name is not None:
                print(f"{label}: {name}")
    for failure in failures:
        print(f"onesfw: {failure}", file=sys.stderr)
    return MISTAKE if failures else 0


def content(result: Selection, choice: Choice) -> dict[str, Any]:
    """The answer in JSON's terms."""
    return {
        "data": choice.name,
        "function": choice.title,
        "n": choice.function.n,
        "chosen": [in_json(label) for label in choice.labels[result.indices].tolist()],
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
        "left_out": [{"column": other.column, "reason": other.reason} for other in choice.left_out],
    }


def in_json(label: Any) -> Any:
    """A row's number or a node's label as JSON can hold it."""
    return label if isinstance(label, int | float | str) else str(label)


def result_table(result: Selection, choice: Choice) -> Table:
    """The answer for the eye."""
    from rich.table import Table
    from rich.text import Text

    sampled = not result.exact
    sure = " at 95 % confidence" if sampled else ""
    table = Table(title=Text(f"{choice.name}: {choice.title}"), title_justify="left")
    table.add_column("selection", no_wrap=True)
    table.add_column("result")
    shown = ", ".join(str(label) for label in choice.labels[result.indices[:10]])
    more = ", …" if result.indices.size > 10 else ""
    table.add_row("chosen", f"{result.indices.size} of {choice.function.n:,} {choice.noun}: {shown}{more}")
    table.add_row("value", f"{result.value:.6g}" + (f" ± {result.value_stderr:.2g}" if sampled else ""))
    table.add_row("upper bound on the best", f"{result.upper_bound:.6g}{sure} (by {result.certificate})")
    table.add_row("certified ratio", f"{result.ratio:.4f}{sure}")
    table.add_row("samples", f"{result.samples:,}")
    table.add_row("LMO calls", f"{result.lmo_calls:,}")
    table.add_row("seconds", f"{result.seconds:.3g}")
    if choice.left_out:
        names = ", ".join(f"{other.column} ({other.reason})" for other in choice.left_out)
        table.add_row("not compared by", Text(names))
    return table
