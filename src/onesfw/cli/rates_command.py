"""`onesfw rates`: the paper's Tables 1–3 as measurements."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import typer

from onesfw.cli.errors import interruptible, readable_errors
from onesfw.cli.option_values import whole
from onesfw.cli.output import print_sheet, print_written

EXAMPLES = """[bold]Examples[/bold]

onesfw rates --quick

onesfw rates --out out/rates --markdown docs/evidence.md

onesfw rates --quick --also my_problem.py:portfolio

The folder gets rates.md, rates.json and rates.html, an interactive page that works offline. A full run takes about \
half an hour on one core, a quick one less than two minutes; nothing is written after Ctrl-C."""


def rates_command(
    quick: bool = typer.Option(False, "--quick", help="Short runs, few problems and seeds: to try the command."),
    also: list[str] = typer.Option(
        [], metavar="PROBLEM", help="A problem beside the zoo's: file.py or file.py:name; may be repeated."
    ),
    out: Path = typer.Option(Path("out/rates"), metavar="FOLDER", help="Where the three files go."),
    markdown: Path = typer.Option(None, metavar="PATH", help="Another place for the Markdown file."),
    key: Any = typer.Option("0", parser=whole, metavar="N", help="The seed that all others are folded from."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress bar."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Measure the rates of all methods in all settings; print the tables, write Markdown, JSON and a page."""
    with readable_errors(traceback, rates_command):
        with contextlib.redirect_stdout(sys.stderr):
            import shlex

            from onesfw.experiments import rates

            command = shlex.join(["onesfw", *sys.argv[1:]])
            with interruptible("nothing was written"):
                found = rates(
                    "quick" if quick else "full", also=also, key=key, progress=not quiet, out=out, markdown=markdown,
                    command=command,
                )  # fmt: skip
        for sheet in found.sheets():
            print_sheet(sheet)
            print()
        print_written({name: str(path) for name, path in found.files.items()})
