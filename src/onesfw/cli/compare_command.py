"""`onesfw compare`: all methods that apply to a problem, at equal budgets, in a table and on a page."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import INTERRUPTED, sentences
from onesfw.cli.solve_command import whole

if TYPE_CHECKING:
    from onesfw.experiments.compare import Comparison, Plan

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
    seed: Any = typer.Option("0", parser=whole, metavar="N", help="The seed that all others are folded from."),
    step_rules: bool = typer.Option(
        False, "--step-rules", help="Give each competitor the best of its documented step rules (convex problems)."
    ),
    report: Path = typer.Option(None, metavar="PATH", help="Save an interactive page: .html, works offline."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress bar."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Compare all methods that apply: error, slope, samples, gradients, LMO calls and seconds at equal budgets."""
    with sentences(traceback):
        with contextlib.redirect_stdout(sys.stderr):  # only the answer goes to stdout, whatever a user's file prints
            from onesfw.arguments import whole_number
            from onesfw.experiments.compare import prepare
            from onesfw.files import check_target

            samples = whole_number(samples, "--samples", 1, 2**30)
            seeds = whole_number(seeds, "--seeds", 1, 10_000)
            seed = whole_number(seed, "--seed", 0, 2**32 - 1)
            if report is not None:
                if report.suffix not in (".html", ".htm"):
                    raise ValueError(f"--report {report} must end in .html: it is a page")
                check_target(report)
            targets, names = told_apart(problems, algorithms)
            plans = [prepare(subject_of(target), samples, seeds, seed, names, step_rules) for target in targets]
            for plan in plans:
                if not plan.work:
                    name, reason = next(iter(plan.comparison.skipped.items()))
                    raise ValueError(f"no method can run on {plan.comparison.subject.name}; {name}: {reason}")
            finished = run(plans, show=not (as_json or quiet))
        done = [plan.comparison for plan in plans if plan.comparison.curves or finished]
        show(done, report, as_json)
    raise typer.Exit(0 if finished else INTERRUPTED)


def told_apart(words: list[str], algorithms: list[str] | None) -> tuple[list[str], list[str] | None]:
    """Problems and methods, each once: after `--algorithms a b` the parser takes b for a problem."""
    from onesfw.algorithms import ALGORITHMS

    if not algorithms:
        return list(dict.fromkeys(words)), None
    names = [name.strip() for part in algorithms for name in part.split(",") if name.strip()]
    names += [word for word in words if word in ALGORITHMS]
    targets = list(dict.fromkeys(word for word in words if word not in ALGORITHMS))
    if not targets:
        raise ValueError("name at least one problem before --algorithms; `onesfw list problems` shows them")
    return targets, names


def subject_of(target: str) -> Any:
    """What a name or a file on the command line stands for."""
    from onesfw.cli.problems import find_task
    from onesfw.experiments.subject import Subject

    task = find_task(target)
    summary = task.name if task.problem is None else task.problem.summary
    return Subject(task.name, summary, task.objective, task.constraint, task.setting, task.sense, task.x0, task.problem)


def run(plans: list[Plan], show: bool) -> bool:
    """Carry the plans out behind a progress bar; False after Ctrl-C, which keeps the methods that were done."""
    from onesfw.experiments.compare import carry_out
    from onesfw.progress import RunsBar

    try:
        with RunsBar(sum(plan.runs for plan in plans), show) as bar:
            for plan in plans:
                carry_out(plan, bar.begin)
    except KeyboardInterrupt:
        return False
    return True


def show(done: list[Comparison], report: Path | None, as_json: bool) -> None:
    """Print the tables or the JSON, and write the page."""
    import json
    import shlex

    from onesfw.experiments.export import comparison_content
    from onesfw.experiments.grids import comparison_grid, rich_table
    from onesfw.experiments.page import Report, versions, write_page

    command = shlex.join(["onesfw", *sys.argv[1:]])
    if report is not None:
        title = "Methods compared on " + ", ".join(c.subject.name for c in done)
        lead = "Every method gets the same budget of samples; shown is the error of its own output."
        write_page(Report(title, lead, command, done), report)
    if as_json:
        content = {
            "command": command,
            "versions": versions(),
            "comparisons": [comparison_content(c) for c in done],
            "report": None if report is None else str(report),
        }
        print(json.dumps(content, allow_nan=False))
        return
    from rich.console import Console

    terminal = Console()
    console = terminal if terminal.is_terminal else Console(width=180)  # a pipe gets whole lines
    for comparison in done:
        console.print(rich_table(comparison_grid(comparison)))
        for name, reason in comparison.skipped.items():
            console.print(f"  {name}: {reason}", style="dim", markup=False, highlight=False)
        for name, rules in comparison.rules.items():
            best = min(rules, key=lambda rule: float(rules[rule].mean()))
            console.print(f"  {name}: {best!r} of {len(rules)} step rules", style="dim", markup=False, highlight=False)
    if report is not None:
        print(f"report: {report}")
