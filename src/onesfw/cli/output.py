"""What the commands print: tables as wide as the terminal."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onesfw.results.show import Sheet

WIDE = 200  # a pipe gets whole lines


def terminal_width() -> int:
    """The terminal's columns, or what COLUMNS says; a pipe has room for whole lines."""
    return shutil.get_terminal_size((WIDE, 50)).columns


def print_sheet(sheet: Sheet) -> None:
    """Print a table; no name and no figure is ever cut."""
    from onesfw.results.show import lines

    print(lines(sheet, terminal_width()))


def print_remark(text: str) -> None:
    """Print a line below a table, indented, wrapped where the terminal ends."""
    import textwrap

    print(textwrap.fill(text, terminal_width(), initial_indent="  ", subsequent_indent="    "))
