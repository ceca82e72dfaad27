"""What stands behind an option, read as numbers and names; a mistake names the option."""

from __future__ import annotations

import os
from collections.abc import Callable

import typer


def whole(text: str) -> int:
    """A whole number; 1e6 and 1_000_000 count as one."""
    try:
        value = float(text)
        if value == int(value):
            return int(text) if text.lstrip("+-").isdigit() else int(value)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number")


def count_or_log(text: str) -> int | str:
    """A whole number, or the word log."""
    return text if text == "log" else whole(text)


def number_or(*words: str) -> Callable[[str], float | str]:
    """Reads a number, or one of the words."""

    def read(text: str) -> float | str:
        try:
            return text if text in words else float(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is neither a number nor {' nor '.join(words)}") from None

    return read


def number_or_none(text: str) -> float | None:
    """A number, or the word none."""
    found = number_or("none")(text.lower())
    return None if isinstance(found, str) else found


def numbers(text: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} must be numbers with commas between them, such as 0.1,1,10") from None


def one_or_more(text: str) -> float | tuple[float, ...]:
    """A number, or some with commas between them."""
    found = numbers(text)
    return found[0] if len(found) == 1 else tuple(found)


def listed(names: list[str]) -> list[str]:
    """Names that were given one by one or with commas between them."""
    return [name for some in names for name in some.split(",")]


def listed_paths(text: str) -> list[str]:
    """Paths with commas between them; a file whose name has a comma is one."""
    return [text] if os.path.lexists(text) else text.split(",")
