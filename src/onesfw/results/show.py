"""Tables for the terminal, the page and the notebook: one way to lay out names and figures, drawn by Rich."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

WIDTH = 100  # of a printed table, at most
MOST_TITLE = 78  # a longer title is wrapped at the table's width
PICTURE_DPI = 80


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Table:
    """A table without lines: names to the left, `left` of the columns, figures to the right; no cell is ever cut.

    Args:
        columns: the heads; empty ones leave the head line out.
        rows: the cells.
        left: how many columns, from the first on, hold words.

    Returns:
        What `as_text` prints.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=any(columns), pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(columns):
        table.add_column(Text(name), justify="left" if place < left else "right", no_wrap=place > 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def boxed(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table with lines and a title, for the command line; no name or figure is ever cut."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", min_width=min(MOST_TITLE, len(title)))
    for place, name in enumerate(columns):
        table.add_column(Text(name), no_wrap=place == 0, overflow="fold", justify="right" if place > 1 else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def as_text(table: Table, width: int = WIDTH) -> str:
    """A table as plain text, without trailing blanks."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as printed:
        console.print(table)
    return "\n".join(line.rstrip() for line in printed.get().rstrip("\n").splitlines())


def as_html(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], figure: Figure | None = None) -> str:
    """A table with a small picture beside it, for notebooks: one piece of HTML that needs nothing else.

    Args:
        title: the line above.
        columns: the heads; empty ones leave the head line out.
        rows: the cells.
        figure: drawn to the right of the table.
    """
    head = "".join(f'<th style="text-align:left">{html.escape(name)}</th>' for name in columns)
    head = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    lines = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    picture = "" if figure is None else f'<img alt="{html.escape(title)}" src="{inline(figure)}">'
    return (
        '<div class="onesfw" style="display:flex;gap:1.5em;align-items:flex-start;flex-wrap:wrap">'
        f"<div><strong>{html.escape(title)}</strong><table>{head}<tbody>{lines}</tbody></table></div>{picture}</div>"
    )


def inline(figure: Figure) -> str:
    """A figure as the address of an image: PNG in base64."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=PICTURE_DPI)
    return "data:image/png;base64," + base64.b64encode(picture.getvalue()).decode("ascii")


def axes_of(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """The axes to draw into and their figure: a new one of that size, in inches, where there is none."""
    from matplotlib.figure import Figure

    if ax is not None:
        return ax.figure.figure, ax
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()
