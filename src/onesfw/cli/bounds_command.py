"""`onesfw bounds`: what the paper's theorems promise for a problem, from estimated constants."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import typer

from onesfw.cli.errors import readable_errors
from onesfw.cli.option_values import whole
from onesfw.cli.output import print_sheet

EXAMPLES = """[bold]Examples[/bold]

onesfw bounds quadratic-interior --steps 1e6 --epsilon 0.01

onesfw bounds gaussian --correction difference --json

onesfw bounds my_problem.py --setting nonconvex --samples 10000"""


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
    key: Any = typer.Option("0", parser=whole, metavar="N", help="The seed of points and draws."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Bound the error of one_sfw: the theorems' constants, the bound after N steps, the steps for an error E."""
    with readable_errors(traceback, bounds_command):
        with contextlib.redirect_stdout(sys.stderr):
            from onesfw import zoo
            from onesfw.theory import promises

            found = zoo.find(problem)
            answer = promises(
                found.objective, found.constraint, found.x0, setting=setting or found.setting, steps=steps,
                epsilon=epsilon, correction=correction, points=points, samples=samples, key=key,
            )  # fmt: skip
        if as_json:
            print(json.dumps({"problem": found.name, **answer.as_dict()}, allow_nan=False))
            return
        print(found.name)
        for sheet in answer.sheets():
            print_sheet(sheet)
            print()
