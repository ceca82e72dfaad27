"""Tables for the terminal, the page and the notebook: one way to lay out names and figures, drawn by Rich.

`Sheet` is a table of words, `Shown` what every result of the library has in common: a printed table, a picture, HTML
in a notebook, and a file.
"""

from __future__ import annotations

import abc
import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from onesfw.files import read_tensors, write_tensors
from onesfw.results.pictures import picture_ending, save_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

    from onesfw.files import Tensors
    from onesfw.trees import Json

__all__ = ["FileKind", "Sheet", "Shown", "as_html", "as_text", "axes_of", "boxed", "grid", "lines", "markdown"]

WIDTH = 100  # of a printed table, at most
MOST_TITLE = 78  # a longer title is wrapped at the table's width
PICTURE_DPI = 60  # of the small picture in a notebook
GAP = 2  # blanks between columns


@dataclass(frozen=True)
class Sheet:
    """A table of words: what is numeric was formatted where it was made.

    Args:
        title: the line above.
        columns: the heads; empty ones leave the head line out.
        rows: the cells; a row may be shorter than the heads.
        note: lines below the table.
        words: how many of the first columns hold words, not figures: they stand to the left, and may be wrapped.

    Example:
        >>> from onesfw.results.show import Sheet, lines
        >>> print(lines(Sheet("Two methods", ("method", "error"), [("one_sfw", "0.5"), ("svrf", "12")])))
        Two methods
        method   error
        one_sfw    0.5
        svrf        12
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]] = ()
    note: str = ""
    words: int = 1


class FileKind(NamedTuple):
    """What the file of a result is.

    Args:
        form: the name of its format.
        version: of that format.
        noun: what messages call it.

    Example:
        >>> import onesfw as fw
        >>> fw.Result.file_kind.noun
        'result'
    """

    form: str
    version: int
    noun: str


class Shown(abc.ABC):
    """What every result has in common: it prints as a table, draws itself, shows HTML in a notebook, saves and loads.

    A result says what its table holds (`sheet`), what its picture shows (`draw`) and what its file holds (`pack`,
    `unpack`, `file_kind`); the rest follows from them.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import LinearModel
        >>> from onesfw.results.show import Shown
        >>> model = LinearModel(np.array([1.0, -2.0]), 0.5, "squared", "l1", 3.0)
        >>> isinstance(model, Shown), str(model).startswith(model.sheet().title)
        (True, True)
    """

    file_kind: ClassVar[FileKind]

    @abc.abstractmethod
    def sheet(self) -> Sheet:
        """The table that is printed, and shown in a notebook."""

    @abc.abstractmethod
    def draw(self, ax: Axes | None = None) -> Figure:
        """The picture, drawn into `ax` or into a figure of its own."""

    @abc.abstractmethod
    def pack(self) -> tuple[dict[str, Json], Tensors]:
        """What the file holds: JSON, and arrays by name."""

    @classmethod
    @abc.abstractmethod
    def unpack(cls, content: dict[str, Json], tensors: Tensors) -> Self:
        """What `pack` packed; raises where fields are missing, or do not fit one another."""

    @styled()
    def plot(self, path: str | Path | None = None, *, ax: Axes | None = None) -> Figure:
        """The picture; `draw` says what it shows.

        Args:
            path: where to save it (PNG, PDF or SVG by its ending); None draws without saving.
            ax: axes to draw into; None makes a figure.

        Returns:
            The figure.

        Raises:
            ValueError: where the ending of `path` names no picture's format, or nothing was measured to draw.
        """
        if path is not None:
            picture_ending(path)  # before any work
        figure = self.draw(ax)
        if path is not None:
            save_figure(figure, path)
        return figure

    def save(self, path: str | Path) -> None:
        """Write it to a safetensors file, whole or not at all; `load` reads it back.

        Args:
            path: the file; its folder is made where it is missing.

        Raises:
            OSError: where it cannot be written.
        """
        content, tensors = self.pack()
        write_tensors(path, self.file_kind.form, self.file_kind.version, content, tensors)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; nothing in the file is executed.

        Args:
            path: the file.

        Returns:
            What was saved; arrays come back as NumPy arrays of the same dtypes.

        Raises:
            FileNotFoundError, IsADirectoryError: where there is no such file.
            ValueError: for a damaged or foreign file.
        """
        content, tensors = read_tensors(path, *cls.file_kind)
        try:
            found = cls.unpack(content, tensors)
            found.check()
            return found
        except Exception as error:  # forged fields may raise anything
            noun = cls.file_kind.noun
            raise ValueError(
                f"{path} is not a saved {noun} of this version of onesfw: its fields do not fit"
            ) from error

    def check(self) -> None:
        """Raise where the fields of a file do not fit, which a right checksum does not say: what cannot be printed."""
        str(self)

    def __str__(self) -> str:
        return lines(self.sheet())

    def _repr_html_(self) -> str:
        """The table with a small picture beside it, as notebooks ask for it."""
        sheet = self.sheet()
        return as_html(sheet.title, sheet.columns, sheet.rows, self.plot(), sheet.note, words=sheet.words)


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Table:
    """A table without lines: names to the left, `left` of the columns, figures to the right; no cell is ever cut.

    Args:
        columns: the heads; empty ones leave the head line out.
        rows: the cells; a row may be shorter than the heads.
        left: how many columns, from the first on, hold words, which may be wrapped.

    Returns:
        What `as_text` prints.

    Example:
        >>> from onesfw.results.show import as_text, grid
        >>> print(as_text(grid(("radius", "loss"), [("1", "0.25"), ("10", "0.125")])))
        radius   loss
        1        0.25
        10      0.125
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=any(columns), pad_edge=False, padding=(0, GAP, 0, 0))
    # The last column of words gives way on a narrow terminal; names before it, and figures, stay whole.
    for place, name in enumerate(columns):
        whole = place >= left or (place == 0 and len(columns) > 1)
        table.add_column(Text(name), justify="left" if place < left else "right", no_wrap=whole, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def boxed(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table with lines and a title, for the command line; no name or figure is ever cut.

    Args:
        title: the line above.
        columns: the heads; the first two stand to the left, the others to the right.
        rows: the cells; a row may be shorter than the heads.

    Returns:
        What a console of Rich prints.

    Example:
        >>> from onesfw.results.show import as_text, boxed
        >>> print(as_text(boxed("Sets", ("name", "radius"), [("L1Ball", "5")])))
        Sets
        ┏━━━━━━━━┳━━━━━━━━┓
        ┃ name   ┃ radius ┃
        ┡━━━━━━━━╇━━━━━━━━┩
        │ L1Ball │ 5      │
        └────────┴────────┘
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", min_width=min(MOST_TITLE, len(title)))
    for place, name in enumerate(columns):
        table.add_column(Text(name), no_wrap=place == 0, overflow="fold", justify="right" if place > 1 else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def as_text(table: Table, width: int = WIDTH) -> str:
    """A table as plain text, without trailing blanks.

    Args:
        table: what `grid` or `boxed` returned.
        width: of the longest line.

    Returns:
        The lines, without a newline after the last.

    Example:
        >>> from onesfw.results.show import as_text, grid
        >>> as_text(grid(("radius", "loss"), [("10", "0.5")]))
        'radius  loss\\n10       0.5'
    """
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as printed:
        console.print(table)
    return "\n".join(line.rstrip() for line in printed.get().rstrip("\n").splitlines())


def lines(sheet: Sheet, width: int = WIDTH) -> str:
    """A sheet as plain text of at most `width` columns: title, table, note.

    Where the figures do not fit side by side, the columns that are left over follow in a second table under the same
    names, so that no figure is cut and none is missing.

    Args:
        sheet: the table.
        width: of the longest line; a name or a figure that is longer still stays whole.

    Returns:
        The lines, without a newline after the last.

    Example:
        >>> from onesfw.results.show import Sheet, lines
        >>> print(lines(Sheet("", ("method", "error", "seconds"), [("one_sfw", "0.0012", "0.25")]), width=20))
        method    error
        one_sfw  0.0012
        <BLANKLINE>
        method   seconds
        one_sfw     0.25
    """
    parts = [] if not sheet.title else [wrapped(sheet.title, width)]
    tables = []
    for places in blocks(sheet, width):
        rows = [[row[place] for place in places if place < len(row)] for row in sheet.rows]
        columns = [sheet.columns[place] for place in places]
        least = sum(widest(sheet, place) + GAP for place in places if place == 0 or place >= sheet.words)
        tables.append(as_text(grid(columns, rows, left=sheet.words), max(width, least)))
    parts.append("\n\n".join(tables))
    if sheet.note:
        parts.append("\n".join(wrapped(line, width) for line in sheet.note.splitlines()))
    return "\n".join(parts)


def blocks(sheet: Sheet, width: int) -> list[list[int]]:
    """Which columns stand side by side: the words in every block, and as many figures as fit."""
    words = list(range(min(sheet.words, len(sheet.columns))))
    taken = sum(widest(sheet, place) + GAP for place in words)
    found: list[list[int]] = []
    room = 0
    for place in range(len(words), len(sheet.columns)):
        needed = widest(sheet, place) + GAP
        if not found or needed > room:
            found.append([*words])
            room = width + GAP - taken
        found[-1].append(place)
        room -= needed
    return found or [words]


def widest(sheet: Sheet, place: int) -> int:
    """The length of the longest cell of a column."""
    from rich.cells import cell_len

    return max(cell_len(row[place]) for row in (sheet.columns, *sheet.rows) if place < len(row))


def wrapped(text: str, width: int) -> str:
    """A paragraph in lines of at most `width` characters; words stay whole."""
    import textwrap

    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def markdown(sheet: Sheet, heading: str = "###") -> str:
    """A sheet as Markdown, under its title.

    Args:
        sheet: the table.
        heading: what stands before the title.

    Returns:
        The text, with a newline after the last line.

    Example:
        >>> from onesfw.results.show import Sheet, markdown
        >>> print(markdown(Sheet("", ("a", "b"), [("x", "1")])), end="")
        | a | b |
        |---|---|
        | x | 1 |
    """
    parts = [f"{heading} {sheet.title}", ""] if sheet.title else []
    parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in sheet.columns) + " |")
    parts.append("|" + "---|" * len(sheet.columns))
    parts += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in sheet.rows]
    if sheet.note:
        parts += ["", sheet.note]
    return "\n".join(parts) + "\n"


def as_html(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    figure: Figure | None = None,
    note: str = "",
    *,
    words: int = 1,
) -> str:
    """A table with a small picture beside it, for notebooks: one piece of HTML that needs nothing else.

    Args:
        title: the line above.
        columns: the heads; empty ones leave the head line out.
        rows: the cells.
        figure: drawn to the right of the table.
        note: lines below the table.
        words: how many of the first columns hold words; the others stand to the right.

    Returns:
        The HTML; what the cells hold is escaped.

    Example:
        >>> from onesfw.results.show import as_html
        >>> "<td" in as_html("One row", ("", ""), [("value", "1 < 2")])
        True
    """

    def cell(tag: str, place: int, text: str) -> str:
        side = "left" if place < words else "right"
        return (
            f'<{tag} style="text-align:{side};white-space:pre-wrap;padding:1px 0.8em 1px 0">{html.escape(text)}</{tag}>'
        )

    head = "".join(cell("th", place, name) for place, name in enumerate(columns))
    head = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    body = "".join("<tr>" + "".join(cell("td", place, c) for place, c in enumerate(row)) + "</tr>" for row in rows)
    below = "".join(f"<div>{html.escape(line)}</div>" for line in note.splitlines())
    picture = "" if figure is None else f'<img alt="{html.escape(title)}" src="{inline(figure)}">'
    table = f"<table>{head}<tbody>{body}</tbody></table>"
    return (
        '<div class="onesfw" style="display:flex;gap:1.5em;align-items:flex-start;flex-wrap:wrap">'
        f'<div style="max-width:32em"><strong>{html.escape(title)}</strong>{table}{below}</div>{picture}</div>'
    )


def inline(figure: Figure) -> str:
    """A figure as the address of an image: PNG in base64."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=PICTURE_DPI)
    return "data:image/png;base64," + base64.b64encode(picture.getvalue()).decode("ascii")


def axes_of(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """The axes to draw into and their figure: a new one of that size, in inches, where there is none.

    Args:
        ax: axes of the caller's; None makes a figure.
        size: width and height of a new figure, in inches.

    Returns:
        The figure, and the axes to draw into.

    Example:
        >>> from onesfw.results.show import axes_of
        >>> figure, axes = axes_of(None, (7.0, 4.2))
        >>> axes_of(axes, (1.0, 1.0))[0] is figure
        True
    """
    from matplotlib.figure import Figure

    if ax is not None:
        return ax.figure.figure, ax
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()
