"""`onesfw list`: problems, algorithms and sets, a line each."""

from __future__ import annotations

import inspect
import textwrap

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onesfw.cli.errors import sentences

WIDE = 200
KINDS = ("problems", "algorithms", "sets")


def list_command(
    kind: str = typer.Argument("", metavar="[problems|algorithms|sets]", help="What to list; everything if left out."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """List the problems, algorithms and sets that `onesfw solve` knows by name."""
    with sentences(traceback):
        from onesfw.arguments import nearest

        if kind and kind not in KINDS:
            raise ValueError(f"{kind!r} cannot be listed; choose {', '.join(KINDS)}{nearest(kind, KINDS)}")
        # One grid for all kinds: their columns line up.
        grid = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        for place, name in enumerate([kind] if kind else KINDS):
            if place:
                grid.add_row()
            grid.add_row(Text(name, style="bold"))
            for entry, summary in LISTINGS[name]().items():
                grid.add_row(Text(f"  {entry}"), Text(summary))
        terminal = Console()
        console = terminal if terminal.is_terminal else Console(width=WIDE)  # a pipe gets whole lines
        console.print(grid)


def problems() -> dict[str, str]:
    """The zoo's problems."""
    from onesfw import zoo

    return zoo.summaries()


def algorithms() -> dict[str, str]:
    """The recipes."""
    from onesfw.algorithms import ALGORITHMS

    return {name: first_sentence(recipe) for name, recipe in ALGORITHMS.items()}


def sets() -> dict[str, str]:
    """The sets that can be built; the contracts they inherit from are left out."""
    from onesfw import sets as module

    classes = {name: getattr(module, name) for name in module.__all__}
    return {
        name: first_sentence(entry)
        for name, entry in classes.items()
        if inspect.isclass(entry) and not inspect.isabstract(entry)
    }


LISTINGS = {"problems": problems, "algorithms": algorithms, "sets": sets}


def first_sentence(entry: object) -> str:
    """The first paragraph of a docstring in one line, without its full stop."""
    paragraph = textwrap.dedent(inspect.getdoc(entry) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).removesuffix(".")
