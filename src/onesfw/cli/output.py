"""What the commands print: tables as wide as the terminal, and errors that name the option, not the argument."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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


@contextmanager
def as_options(options: Mapping[str, str]) -> Iterator[None]:
    """Errors of the API, which begin with an argument's name, begin with the option's name instead."""
    try:
        yield
    except (TypeError, ValueError) as error:
        found = re.match(r"(\w+)(?=[ :=])", str(error))
        if found is None or found[1] not in options:
            raise
        message = options[found[1]] + str(error)[found.end() :]
        raise type(error)(message) from error
