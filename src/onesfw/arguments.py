"""Checks of arguments: each failure is a sentence that names the argument and the remedy."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

_spelling: ContextVar[Mapping[str, str]] = ContextVar("spelling", default={})  # noqa: B039  never written to


def named(argument: str) -> str:
    """An argument as its user wrote it: `radius` in Python, `--radius` on the command line."""
    return _spelling.get().get(argument, argument)


@contextmanager
def spelled(names: Mapping[str, str]) -> Iterator[None]:
    """Inside, messages call arguments by these names."""
    token = _spelling.set(names)
    try:
        yield
    finally:
        _spelling.reset(token)


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where no name is near."""
    near = difflib.get_close_matches(name, list(names), 1, 0.4)
    return f"; did you mean {near[0]!r}?" if near else ""


def choose(name: Any, names: Iterable[str], argument: str) -> None:
    """Raise a sentence that suggests the nearest right name."""
    names, argument = list(names), named(argument)
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be one of {', '.join(map(repr, names))}, got {name!r}")
    if name not in names:
        known = ", ".join(map(repr, names))
        raise ValueError(f"{argument}={name!r} is not known; choose one of {known}{nearest(name, names)}")


def real(value: Any) -> float | None:
    """A real number as a float, infinite where an integer is too large for one; None for whatever else, bools too."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number(value: Any, argument: str, least: float, *, strict: bool = False) -> float:
    """A finite real number of at least (strictly above) `least`."""
    above, argument = "above" if strict else "of at least", named(argument)
    checked = real(value)
    if checked is None:
        raise TypeError(f"{argument} must be a number {above} {least:g}, got {value!r}")
    if not math.isfinite(checked) or checked < least or (strict and checked == least):
        shown = value if math.isfinite(checked) else checked
        raise ValueError(f"{argument} must be a finite number {above} {least:g}, got {shown!r}")
    return checked


def whole_number(value: Any, argument: str, least: int, most: int | None = None) -> int:
    """An integer of at least `least` and at most `most`; 1e5 counts as one."""
    checked = number(value, argument, least)
    if checked != int(checked):
        raise ValueError(f"{named(argument)} must be a whole number, got {value!r}")
    if most is not None and checked > most:
        raise ValueError(f"{named(argument)} must be at most {most:,}, got {value!r}")
    return int(value)
