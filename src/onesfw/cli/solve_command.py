"""`onesfw solve`: run one problem, print a table or JSON, save a plot, the result or x."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import BROKEN_DOWN, INTERRUPTED, MISTAKE, message_of, readable_errors, say
from onesfw.cli.option_values import count_or_log, whole
from onesfw.cli.output import check_outputs, print_sheet, print_written, write_outputs

if TYPE_CHECKING:
    from onesfw.results.result import Result
    from onesfw.zoo import Problem

EXAMPLES = """[bold]Examples[/bold]

onesfw solve logistic --steps 200000 --plot out/logistic.png

onesfw solve logistic --set L2Ball --radius 2 --algorithm frank_wolfe --steps 1000

onesfw solve nqp --steps 1e5 --replicates 10 --key 7

onesfw solve my_problem.py --steps 1e6 --time-limit 60 --save out/result.safetensors --out out/x.csv

onesfw solve my_problem.py:portfolio --json > portfolio.json

[bold]A file of your own[/bold] defines [cyan]objective[/cyan] and [cyan]constraint[/cyan], and may define \
[cyan]x0[/cyan], [cyan]setting[/cyan] and [cyan]sense[/cyan] (minimize or maximize). file.py:name takes a Problem, a \
function that returns one, or a pair (objective, constraint).

[bold]Exit codes[/bold]: 0 done, 1 a NaN or an infinity ended the run, 2 a mistake in the call, 130 Ctrl-C (the table \
shows what the steps done have come to)."""


def solve_command(
    problem: str = typer.Argument(
        ..., metavar="PROBLEM", help="A name that `onesfw list problems` shows, or file.py, or file.py:name."
    ),
    steps: Any = typer.Option("100000", parser=whole, metavar="N", help="The number of iterations; 1e6 is understood."),
    key: Any = typer.Option("0", parser=whole, metavar="N", help="The seed of all randomness."),
    algorithm: str = typer.Option(
        None, metavar="NAME", help="One of `onesfw list algorithms`, one_sfw[paper]; default one_sfw."
    ),
    setting: str = typer.Option(
        None, metavar="NAME", help="convex, nonconvex, dr_submodular or nonmonotone_dr; default the problem's."
    ),
    set_name: str = typer.Option(None, "--set", metavar="NAME", help="Another set of the same shape, such as L1Ball."),
    radius: float = typer.Option(None, metavar="R", help="The radius, or total, of --set or of the problem's own set."),
    gap_tol: float = typer.Option(None, metavar="TOL", help="Stop when the Frank-Wolfe gap is surely below this."),
    time_limit: float = typer.Option(None, metavar="SECONDS", help="Stop after so many seconds, compilation excluded."),
    replicates: Any = typer.Option(None, parser=whole, metavar="N", help="Run N seeds; show the median and the range."),
    every: Any = typer.Option("log", parser=count_or_log, metavar="N|log", help="How often to evaluate."),
    float64: bool = typer.Option(False, "--float64", help="Compute in double precision."),
    plot: Path = typer.Option(None, metavar="PATH", help="Save a picture: .png, .pdf or .svg."),
    save: Path = typer.Option(None, metavar="PATH", help="Save the result, x included, for Result.load(PATH)."),
    out: Path = typer.Option(None, metavar="PATH", help="Save x as a table, a line for each entry: .csv."),
    checkpoint: Path = typer.Option(
        None, metavar="FOLDER", help="Save the run there as it goes; run the same command again to go on after a kill."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object, x included, and nothing else."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress bar."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Solve a problem: a progress bar, then a table of value, gap, oracle calls, seconds and x's largest entries."""
    with readable_errors(traceback, solve_command):
        # Only the answer goes to stdout, whatever a user's file prints.
        with contextlib.redirect_stdout(sys.stderr):
            from onesfw import zoo

            file = problem.partition(".py:")[0].removesuffix(".py") + ".py"  # of a name that is no file, nothing
            check_outputs([file], {"--plot": plot, "--save": save, "--out": out}, {"--out": (".csv",)})
            found = zoo.find(problem)
            result = found.over(set_name, radius).run(
                steps=steps, algorithm=algorithm, setting=setting, float64=float64, key=key,
                replicates=replicates, every=every, gap_tol=gap_tol, time_limit=time_limit,
                progress=not (as_json or quiet), checkpoint=checkpoint,
            )  # fmt: skip
            result = with_optimum(result, found.over(set_name, radius))
        code = show(result, plot, save, out, as_json)
    raise typer.Exit(code)


def with_optimum(result: Result, problem: Problem) -> Result:
    """The result with F*, where it is known; the run's table matters more than a failure or a Ctrl-C in here."""
    from dataclasses import replace

    try:
        return replace(result, optimum=problem.best_value())
    except KeyboardInterrupt:
        return result
    except Exception as error:
        say(f"the optimum could not be found: {message_of(error)}")
        return result


def show(result: Result, plot: Path | None, save: Path | None, out: Path | None, as_json: bool) -> int:
    """Print the answer, save what was asked for, and return the exit code."""
    if not as_json:
        print_sheet(result.sheet())
    written, failures = write_outputs(
        {"plot": (plot, result.plot), "saved": (save, result.save), "x": (out, result.save_x)}
    )
    if as_json:
        import json

        files = {"plot": written["plot"], "saved": written["saved"], "out": written["x"]}
        print(json.dumps({**result.as_dict(), **files}, allow_nan=False))
    else:
        print_written(written)
    for failure in failures:
        say(failure)
    return MISTAKE if failures else exit_code(result)


def exit_code(result: Result) -> int:
    """130 after Ctrl-C, 1 after a NaN or an infinity, 0 otherwise."""
    from onesfw.results.status import Status

    states = {result.status} if isinstance(result.status, Status) else set(result.status)
    if Status.INTERRUPTED in states:
        return INTERRUPTED
    return BROKEN_DOWN if Status.NOT_FINITE in states else 0
