"""`onesfw compare`: all methods that apply to a problem, at equal budgets, in a table and on a page."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import INTERRUPTED, readable_errors
from onesfw.cli.option_values import whole
from onesfw.cli.output import check_outputs, print_remark, print_sheet

if TYPE_CHECKING:
    from onesfw.experiments import Comparison

EXAMPLES = """[bold]Examples[/bold]

onesfw compare logistic --seeds 16 --samples 1e5 --report out/logistic.html

onesfw compare quadratic-interior quadratic-face --algorithms one_sfw,momentum_sfw --step-rules

onesfw compare my_problem.py --samples 1e4 --json > comparison.json

Methods that do not apply to a problem are listed with the reason. Ctrl-C keeps what is done (exit code 130)."""


def compare_command(
    problems: list[str] = typer.Argument(
        ..., metavar="PROBLEM", help="Names that `onesfw list problems` shows, or file.py, or file.py:name."
    ),
    algorithms: list[str] = typer.Option(
        None, metavar="NAME,NAME", help="Which methods, with commas or blanks between them; all that apply if left out."
    ),
    samples: Any = typer.Option("100000", parser=whole, metavar="N", help="The budget of each run; 1e5 is understood."),
    seeds: Any = typer.Option("8", parser=whole, metavar="R", help="How many seeds."),
    key: Any = typer.Option("0", parser=whole, metavar="N", help="The seed that all others are folded from."),
    step_rules: bool = typer.Option(
        False, "--step-rules", help="Give each competitor the best of its documented step rules (convex problems)."
    ),
    report: Path = typer.Option(None, metavar="PATH", help="Save an interactive page: .html, works offline."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress bar."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Compare all methods that apply: error, slope, samples, gradients, LMO calls and seconds at equal budgets."""
    with readable_errors(traceback, compare_command):
        with contextlib.redirect_stdout(sys.stderr):  # only the answer goes to stdout, whatever a user's file prints
            from onesfw.experiments import compare

            check_outputs([], {"--report": report}, {"--report": (".html", ".htm")})
            targets, names = told_apart(problems, algorithms)
            done = compare(
                targets, algorithms=names, samples=samples, seeds=seeds, key=key, step_rules=step_rules,
                progress=not (as_json or quiet),
            )  # fmt: skip
        show(done, report, as_json)
    raise typer.Exit(0 if all(comparison.finished for comparison in done) else INTERRUPTED)


def told_apart(words: list[str], algorithms: list[str] | None) -> tuple[list[str], list[str] | None]:
    """Problems and methods, each once: after `--algorithms a b` the parser takes b for a problem."""
    from onesfw.experiments.comparison import METHODS

    if not algorithms:
        return list(dict.fromkeys(words)), None
    names = [name.strip() for part in algorithms for name in part.split(",") if name.strip()]
    names += [word for word in words if word in METHODS]
    targets = list(dict.fromkeys(word for word in words if word not in METHODS))
    if not targets:
        raise ValueError("name at least one problem before --algorithms; `onesfw list problems` shows them")
    return targets, names


def show(done: list[Comparison], report: Path | None, as_json: bool) -> None:
    """Print the tables or the JSON, and write the page."""
    import json
    import shlex

    from onesfw.experiments import Report, write_page

    page = Report.of(done, shlex.join(["onesfw", *sys.argv[1:]]))
    if report is not None:
        write_page(page, report)
    if as_json:
        content = {
            "command": page.command,
            "versions": page.versions,
            "comparisons": [comparison.as_dict() for comparison in done],
            "report": None if report is None else str(report),
        }
        print(json.dumps(content, allow_nan=False))
        return
    for place, comparison in enumerate(done):
        if place:
            print()
        print_sheet(comparison.sheet())
        for remark in comparison.remarks():
            print_remark(remark)
    if report is not None:
        print(f"report: {report}")
