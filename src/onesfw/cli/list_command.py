"""`onesfw list`: problems, algorithms and sets, a line each."""

from __future__ import annotations

import inspect
import textwrap

import typer

from onesfw.cli.errors import readable_errors
from onesfw.cli.output import print_sheet

KINDS = ("problems", "algorithms", "sets")


def list_command(
    kind: str = typer.Argument("", metavar="[problems|algorithms|sets]", help="What to list; everything if left out."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """List the problems, algorithms and sets that `onesfw solve` knows by name."""
    with readable_errors(traceback):
        from onesfw.arguments import nearest
        from onesfw.results.show import Sheet

        if kind and kind not in KINDS:
            raise ValueError(f"{kind!r} cannot be listed; choose {', '.join(KINDS)}{nearest(kind, KINDS)}")
        rows: list[tuple[str, str]] = []  # one table for all kinds: their columns line up
        for name in [kind] if kind else KINDS:
            rows += [("", "")] if rows else []
            rows.append((name, ""))
            rows += [(f"  {entry}", summary) for entry, summary in LISTINGS[name]().items()]
        print_sheet(Sheet("", ("", ""), rows, words=2))


def problems() -> dict[str, str]:
    """The zoo's problems."""
    from onesfw import zoo

    return zoo.summaries()


def algorithms() -> dict[str, str]:
    """The recipes."""
    from onesfw.algorithms import ALGORITHMS

    return {name: first_sentence(recipe) for name, recipe in ALGORITHMS.items()}


def sets() -> dict[str, str]:
    """The sets that can be built."""
    from onesfw.zoo import known_sets

    return {name: first_sentence(entry) for name, entry in known_sets().items()}


LISTINGS = {"problems": problems, "algorithms": algorithms, "sets": sets}


def first_sentence(entry: object) -> str:
    """The first paragraph of a docstring in one line, without its full stop."""
    paragraph = textwrap.dedent(inspect.getdoc(entry) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).removesuffix(".")
