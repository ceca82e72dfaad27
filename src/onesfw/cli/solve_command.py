"""`onesfw solve`: run one problem, print a table or JSON, save a plot, the result or x."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import INTERRUPTED, MISTAKE, sentence, sentences

if TYPE_CHECKING:
    from onesfw.results.result import Result
    from onesfw.zoo import Problem

BROKEN_DOWN = 1
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


def whole(text: str) -> int:
    """A whole number; 1e6 and 1_000_000 count as one."""
    try:
        value = float(text)
        if value == int(value):
            return int(text) if text.lstrip("+-").isdigit() else int(value)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number")


def count_or_log(text: str) -> int | str:
    """A whole number, or the word log."""
    return text if text == "log" else whole(text)


@dataclass(frozen=True)
class Outputs:
    """Where the result goes."""

    plot: Path | None
    save: Path | None
    out: Path | None
    as_json: bool
    quiet: bool

    def check(self) -> None:
        """Raise a sentence where a file cannot be written, before a run is spent on it."""
        from onesfw.files import check_target
        from onesfw.results.pictures import picture_ending

        if self.plot is not None:
            picture_ending(self.plot)
        if self.out is not None and self.out.suffix.lower() != ".csv":
            raise ValueError(f"--out {self.out} must end in .csv: it is a table of x's entries")
        for path in (self.plot, self.save, self.out):
            if path is not None:
                check_target(path)


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
    outputs = Outputs(plot, save, out, as_json, quiet)
    with sentences(traceback, solve_command):
        # Only the answer goes to stdout, whatever a user's file prints.
        with contextlib.redirect_stdout(sys.stderr):
            from onesfw import zoo

            outputs.check()
            found = zoo.find(problem)
            result = found.over(set_name, radius).run(
                steps=steps, algorithm=algorithm, setting=setting, float64=float64, key=key,
                replicates=replicates, every=every, gap_tol=gap_tol, time_limit=time_limit,
                progress=not (as_json or quiet), checkpoint=checkpoint,
            )  # fmt: skip
            result = with_optimum(result, found.over(set_name, radius))
        code = show(result, outputs)
    raise typer.Exit(code)


def with_optimum(result: Result, problem: Problem) -> Result:
    """The result with F*, where it is known; the run's table matters more than a failure or a Ctrl-C in here."""
    from dataclasses import replace

    try:
        return replace(result, optimum=problem.best_value())
    except KeyboardInterrupt:
        return result
    except Exception as error:
        print(f"onesfw: the optimum could not be found: {sentence(error)}", file=sys.stderr)
        return result


def show(result: Result, outputs: Outputs) -> int:
    """Print the answer, save what was asked for, and return the exit code."""
    from onesfw.cli.output import print_sheet

    if not outputs.as_json:
        print_sheet(result.sheet())
    failures = []
    writers: list[tuple[str, Path | None, Callable[[Path], Any]]] = [
        ("plot", outputs.plot, result.plot),
        ("saved", outputs.save, result.save),
        ("x", outputs.out, result.save_x),
    ]
    written: dict[str, str | None] = {}
    for label, path, write in writers:
        written[label] = None
        if path is None:
            continue
        try:
            write(path)
            written[label] = str(path)
        except (OSError, TypeError, ValueError) as error:
            failures.append(sentence(error))
    if outputs.as_json:
        import json

        files = {"plot": written["plot"], "saved": written["saved"], "out": written["x"]}
        print(json.dumps({**result.as_dict(), **files}, allow_nan=False))
    else:
        for label, path_written in written.items():
            if path_written is not None:
                print(f"{label}: {path_written}")
    for failure in failures:
        print(f"onesfw: {failure}", file=sys.stderr)
    return MISTAKE if failures else exit_code(result)


def exit_code(result: Result) -> int:
    """130 after Ctrl-C, 1 after a NaN or an infinity, 0 otherwise."""
    from onesfw.results.status import Status

    states = {result.status} if isinstance(result.status, Status) else set(result.status)
    if Status.INTERRUPTED in states:
        return INTERRUPTED
    return BROKEN_DOWN if Status.NOT_FINITE in states else 0
