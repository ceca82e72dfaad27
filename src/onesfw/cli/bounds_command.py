"""`onesfw bounds`: what the paper's theorems promise for a problem, from estimated constants."""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from typing import TYPE_CHECKING, Any

import typer

from onesfw.cli.errors import sentences
from onesfw.cli.solve_command import whole

if TYPE_CHECKING:
    from rich.table import Table

    from onesfw.cli.problems import Task
    from onesfw.theory import Constants

EXAMPLES = """[bold]Examples[/bold]

onesfw bounds quadratic-interior --steps 1e6 --epsilon 0.01

onesfw bounds gaussian --correction difference --json

onesfw bounds my_problem.py --setting nonconvex --samples 10000"""

LABELS = {
    "G": "G, largest ‖∇F̃‖",
    "L": "L, largest ‖∇²F̃‖",
    "B": "B, largest |F̃|",
    "D": "D, diameter of the set",
    "R": "R, largest ‖x‖ in the set",
    "L2": "L2, largest ‖∇³F̃‖",
    "score_G": "score_G, fourth moment of ‖∇log p‖",
    "score_L": "score_L, second moment of ‖∇²log p‖",
    "score_L2": "score_L2, largest ‖∇³log p‖",
}
PROMISES = {
    "convex": "E F(x_T+1) − F*",
    "nonconvex": "E gap(x_o)",
    "dr_submodular": "(1 − 1/e) F* − E F(x_T+1)",
}


def bounds_command(
    problem: str = typer.Argument(
        ..., metavar="PROBLEM", help="A name that `onesfw list problems` shows, or file.py, or file.py:name."
    ),
    steps: Any = typer.Option("100000", parser=whole, metavar="N", help="Steps T to bound the error after."),
    epsilon: float = typer.Option(None, metavar="E", help="Also the steps after which the bound is below E."),
    setting: str = typer.Option(
        None, metavar="NAME", help="convex, nonconvex or dr_submodular; default the problem's."
    ),
    correction: str = typer.Option(None, metavar="NAME", help="hessian or difference; default one_sfw's own."),
    points: Any = typer.Option("64", parser=whole, metavar="N", help="Points of the set to estimate constants at."),
    samples: Any = typer.Option("1000", parser=whole, metavar="N", help="Draws at each point."),
    seed: Any = typer.Option("0", parser=whole, metavar="N", help="The seed of points and draws."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Bound the error of one_sfw: the theorems' constants, the bound after N steps, the steps for an error E."""
    with sentences(traceback):
        with contextlib.redirect_stdout(sys.stderr):
            from onesfw.arguments import choose, number, whole_number
            from onesfw.cli.problems import find_task
            from onesfw.theory.bounds import CORRECTIONS, EXPONENTS

            whole_number(steps, "--steps", 1)
            if epsilon is not None:
                number(epsilon, "--epsilon", 0, strict=True)
            if correction is not None:
                choose(correction, CORRECTIONS, "--correction")
            if setting is not None:
                choose(setting, EXPONENTS, "--setting")
            task = find_task(problem)
            kind = setting or task.setting
            constants, warning = estimated(task, setting=kind, points=points, samples=samples, key=seed)
            rows = calculate(constants, kind, correction, steps, epsilon)
        answer = {
            "problem": task.name,
            "setting": kind,
            "oblivious": constants.oblivious,
            "constants": {name: value for name in LABELS if (value := getattr(constants, name)) is not None},
            "promise": PROMISES[kind],
            "steps": steps,
            "epsilon": epsilon,
            "bounds": rows,
            "warning": warning,
        }
        if as_json:
            print(json.dumps(answer, allow_nan=False))
        else:
            show(answer)


def estimated(task: Task, **options: Any) -> tuple[Constants, str]:
    """The constants of a task, and the sentence that says how far to trust them."""
    from onesfw.theory import EstimateWarning, estimate

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        constants = estimate(task.objective, task.constraint, task.x0, **options)
    doubts = [str(entry.message) for entry in caught if issubclass(entry.category, EstimateWarning)]
    for entry in caught:
        if not issubclass(entry.category, EstimateWarning):
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    return constants, " ".join(doubts)


def calculate(
    constants: Constants, setting: str, correction: str | None, steps: int, epsilon: float | None
) -> list[dict[str, Any]]:
    """A row for each form of C; where samples depend on x, with the score term and as printed without it."""
    from onesfw.theory import Bounds
    from onesfw.theory.bounds import FORMS

    rows = []
    for score in (True,) if constants.oblivious else (True, False):
        for form in FORMS:
            bounds = Bounds(constants, form, score, correction)
            rows.append(
                {
                    "form": form,
                    "score": score,
                    "smoothness": bounds.smoothness,
                    "C": bounds.error_constant(setting),
                    "gradient_error": bounds.gradient_error(steps, setting),
                    "bound": bounds.at(steps, setting),
                    "steps_for_epsilon": None if epsilon is None else bounds.steps_for(epsilon, setting),
                }
            )
    return rows


def show(answer: dict[str, Any]) -> None:
    """Two tables and the warning."""
    from rich.console import Console

    console = Console()
    samples = "samples do not depend on x" if answer["oblivious"] else "samples depend on x"
    console.print(f"{answer['problem']}: {answer['setting']}, {samples}", style="bold", highlight=False)
    console.print(constants_table(answer["constants"]))
    console.print(f"{answer['promise']} after T = {answer['steps']:,} steps", style="bold", highlight=False)
    console.print(bounds_table(answer))
    if not answer["oblivious"]:
        console.print("Without the score term the gradient estimate is biased, and the bound promises nothing.")
    console.print(f"Note: {answer['warning']}.", style="yellow", highlight=False)


def constants_table(constants: dict[str, float]) -> Table:
    """The estimates, a line each."""
    from rich.table import Table

    table = Table("constant")
    table.add_column("estimate", justify="right")
    for name, value in constants.items():
        table.add_row(LABELS[name], f"{value:.4g}")
    return table


def bounds_table(answer: dict[str, Any]) -> Table:
    """The bounds, a line for each form of C."""
    from rich.table import Table

    table = Table("form of C")
    columns = {"smoothness": "L̄", "C": "C", "gradient_error": "E‖d_T − ∇F(x_T)‖² ≤", "bound": "bound"}
    if answer["epsilon"] is not None:
        columns["steps_for_epsilon"] = f"steps for {answer['epsilon']:g}"
    for heading in columns.values():
        table.add_column(heading, justify="right")
    for row in answer["bounds"]:
        score = "" if answer["oblivious"] else ", with score" if row["score"] else ", without score"
        table.add_row(row["form"] + score, *(f"{row[column]:.3g}" for column in columns))
    return table
