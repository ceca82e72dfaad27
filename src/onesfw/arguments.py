"""Checks of arguments: each failure raises TypeError or ValueError, naming the argument and the remedy."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

import numpy as np

REAL = (int, float, np.integer, np.floating)
PACKAGE = __name__.partition(".")[0]

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


def warn(text: str, category: type[Warning]) -> None:
    """A warning at the line that called the library, however deep in it the reason was found."""
    frame: FrameType | None = sys._getframe()
    level = outermost = 0
    while frame is not None:
        level += 1
        if frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
            outermost = level
        frame = frame.f_back
    warnings.warn(text, category, stacklevel=outermost + 1)


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where no name is near.

    Near is a name that differs in capitals and hyphens only, one with a typing error for every four letters at most,
    or the only one that has `name` among its words: `sgd` is near `projected_sgd`, `longitude` not near `latitude`.
    """
    known = {plain_letters(candidate): candidate for candidate in reversed(list(names))}
    wanted = plain_letters(name)
    if not wanted or not known:
        return ""
    distance, letters = min((errors_between(wanted, letters), letters) for letters in known)
    holding = [candidate for candidate in known.values() if wanted in words_of(candidate)]
    if distance <= max(1, len(wanted) // 4):
        return f"; did you mean {known[letters]!r}?"
    return f"; did you mean {holding[0]!r}?" if len(holding) == 1 else ""


def plain_letters(name: str) -> str:
    """A name without capitals, hyphens, underscores and blanks."""
    return re.sub(r"[\W_]+", "", name).casefold()


def words_of(name: str) -> list[str]:
    """The words that a name is made of: `projected_sgd` and `NuclearBall` have two."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word.casefold() for word in re.split(r"[\W_]+", apart)]


def errors_between(a: str, b: str) -> int:
    """The least number of letters put in, left out, changed, or swapped with the next, that make b of a."""
    before, last = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            least = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before, last = last, row
    return last[-1]


def choose(name: object, names: Iterable[str], argument: str) -> None:
    """Raise ValueError where `name` is none of `names`, suggesting the nearest, and TypeError where it is no word."""
    names, argument = list(names), named(argument)
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be one of {', '.join(map(repr, names))}, got {name!r}")
    if name not in names:
        known = ", ".join(map(repr, names))
        raise ValueError(f"{argument}={name!r} is not known; choose one of {known}{nearest(name, names)}")


def real(value: object) -> float | None:
    """A real number as a float, infinite where an integer is too large for one; None for whatever else, bools too."""
    if isinstance(value, bool) or not isinstance(value, REAL):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number(value: object, argument: str, least: float, *, strict: bool = False) -> float:
    """A finite real number of at least (strictly above) `least`."""
    above, argument = "above" if strict else "of at least", named(argument)
    checked = real(value)
    if checked is None:
        raise TypeError(f"{argument} must be a number {above} {least:g}, got {value!r}")
    if not math.isfinite(checked) or checked < least or (strict and checked == least):
        shown = value if math.isfinite(checked) else checked
        raise ValueError(f"{argument} must be a finite number {above} {least:g}, got {shown!r}")
    return checked


def flag(value: object, argument: str) -> bool:
    """True or False; raises TypeError for anything else, words above all."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{named(argument)} must be True or False, got {value!r}")
    return bool(value)


def whole_number(value: object, argument: str, least: int, most: int | None = None) -> int:
    """An integer of at least `least` and at most `most`; 1e5 counts as one."""
    checked = number(value, argument, least)
    if checked != int(checked):
        raise ValueError(f"{named(argument)} must be a whole number, got {value!r}")
    if most is not None and checked > most:
        raise ValueError(f"{named(argument)} must be at most {most:,}, got {value!r}")
    assert isinstance(value, REAL)  # as `number` found; an integer beyond 2⁵³ keeps its last digits
    return int(value)


def subsets(family: object, n: int, name: str) -> list[list[int]]:
    """Sets of the whole numbers below n, each sorted; an error where they are something else."""
    message = f"{name}: family must be a list of sets of whole numbers, such as [[0, 1], [2]], got {family!r:.200}"
    if not isinstance(family, Iterable) or (isinstance(family, np.ndarray) and family.ndim == 0):
        raise TypeError(message)
    found = []
    for members in family:
        if not isinstance(members, Iterable) or (isinstance(members, np.ndarray) and members.ndim != 1):
            raise TypeError(message)
        found.append(sorted({whole_number(i, "family", 0, n - 1) for i in members}))
    return found
