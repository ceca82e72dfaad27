"""What the commands print and write: tables as wide as the terminal, files that overwrite nothing of the call."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onesfw.results.show import Sheet

WIDE = 200  # a pipe gets whole lines


def terminal_width() -> int:
    """The terminal's columns, or what COLUMNS says; a pipe has room for whole lines."""
    return shutil.get_terminal_size((WIDE, 50)).columns


def check_outputs(outputs: dict[str, Path | None], read: Iterable[str | Path]) -> None:
    """Raise where a file cannot be written, or would overwrite another one of the call, before a run is spent on it."""
    from onesfw.files import check_target

    taken = {os.path.realpath(path): "what is read" for path in read}
    for option, path in outputs.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"{option} {path} would overwrite {taken[place]}; give another path")
        taken[place] = option
        check_target(path)


def files_of(*sources: str | None) -> list[str]:
    """The files here that the arguments of a command stand for: paths, folders, patterns."""
    from onesfw.data.prepare import inputs_of
    from onesfw.data.sources import as_input

    here = [source for source in sources if source is not None and source != "-" and "://" not in source]
    return [part.path for source in here for part in inputs_of(as_input(source))]


def print_sheet(sheet: Sheet) -> None:
    """Print a table; no name and no figure is ever cut."""
    from onesfw.results.show import lines

    print(lines(sheet, terminal_width()))


def print_remark(text: str) -> None:
    """Print a line below a table, indented, wrapped where the terminal ends."""
    import textwrap

    print(textwrap.fill(text, terminal_width(), initial_indent="  ", subsequent_indent="    "))
