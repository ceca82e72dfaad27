"""What the commands print and write: tables as wide as the terminal, files that are checked before a run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onesfw.cli.errors import message_of

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


def check_outputs(
    read: Iterable[str | Path | None], outputs: Mapping[str, Path | None], endings: Mapping[str, tuple[str, ...]] = {}
) -> None:
    """Raise ValueError where an option's file cannot be written, or would overwrite another of the call.

    Args:
        read: the files that are read; None and - are none.
        outputs: options and the files that they name.
        endings: options whose file must have one of these endings; that of --plot is checked without being asked for.
    """
    from onesfw.files import check_target
    from onesfw.results.pictures import ENDINGS

    taken = {os.path.realpath(path): "the data" for path in read if path is not None and str(path) != "-"}
    known = {"--plot": ENDINGS, **endings}
    for option, path in outputs.items():
        if path is None:
            continue
        if option in known and path.suffix.lower() not in known[option]:
            raise ValueError(f"{option} {path} must end in {' or '.join(known[option])}: the ending is the format")
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"{option} {path} would overwrite {taken[place]}; give another path")
        taken[place] = option
        check_target(path)


def files_of(*sources: str) -> list[str]:
    """The files here that arguments of a command stand for: paths, folders, patterns."""
    from onesfw.data.prepare import inputs_of
    from onesfw.data.sources import as_input

    here = [source for source in sources if source != "-" and "://" not in source]
    return [part.path for source in here for part in inputs_of(as_input(source))]


def write_outputs(
    writers: Mapping[str, tuple[Path | None, Callable[[Path], object]]],
) -> tuple[dict[str, str | None], list[str]]:
    """Write what was asked for; the paths by their names, None for what was not written, and a line for each failure.

    A failure costs the exit code, not the table: the run is done.
    """
    written: dict[str, str | None] = dict.fromkeys(writers)
    failures = []
    for name, (path, write) in writers.items():
        if path is not None:
            try:
                write(path)
                written[name] = str(path)
            except (OSError, TypeError, ValueError) as error:
                failures.append(message_of(error))
    return written, failures


def print_written(written: Mapping[str, str | None]) -> None:
    """A line for each file that was written."""
    for name, path in written.items():
        if path is not None:
            print(f"{name}: {path}")
