"""Ready problems with known optima, by name: `zoo.get("logistic")`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from onesfw.arguments import choose, nearest
from onesfw.zoo import gaussian, least_squares, logistic, multilinear, nqp, quadratics, sigmoid
from onesfw.zoo.base import Optimum, Problem, known_sets
from onesfw.zoo.user_file import from_file

__all__ = ["Optimum", "Problem", "find", "get", "known_sets", "names", "summaries"]

PROBLEMS: dict[str, tuple[str, Callable[[str, str], Problem]]] = {
    "logistic": ("logistic loss over an l1 ball, r = 5: breast cancer, n = 569, d = 30", logistic.breast_cancer),
    "logistic-generated": ("logistic loss over an l1 ball, r = 3: generated, n = 5,000, d = 20", logistic.generated),
    "logistic-wide": ("the rows of logistic in an l1 ball of r = 50: a large diameter", logistic.wide),
    "interpolation": (
        "least squares over an l1 ball, r = 3, d = 20: some x fits all rows",
        least_squares.interpolation,
    ),
    "quadratic-interior": ("convex quadratic over the simplex, d = 20: optimum inside", quadratics.interior),
    "quadratic-face": ("convex quadratic over the simplex, d = 20: optimum on a face", quadratics.face),
    "quadratic-noisy": ("quadratic-face with twenty times its noise", quadratics.noisy),
    "sigmoid": ("sigmoid loss over an l1 ball, r = 5: non-convex, n = 2,000, d = 20", sigmoid.sigmoid),
    "indefinite": ("indefinite quadratic over a box, d = 15: non-convex", quadratics.indefinite),
    "nqp": ("DR-submodular quadratic over a knapsack, d = 20: maximised", nqp.nqp),
    "coverage": (
        "weighted coverage, multilinear extension, 5 of 20 elements: DR-submodular, maximised",
        multilinear.coverage,
    ),
    "gaussian": ("samples that depend on x: N(x, 0.25 I) over the simplex, d = 10", gaussian.gaussian),
}


def names() -> list[str]:
    """The names `get` knows.

    Returns:
        The names, in the order of the listing.

    Example:
        >>> from onesfw import zoo
        >>> zoo.names()[:2]
        ['logistic', 'logistic-generated']
    """
    return list(PROBLEMS)


def summaries() -> dict[str, str]:
    """A line about each problem, without building any.

    Returns:
        The lines, by the problem's name.

    Example:
        >>> from onesfw import zoo
        >>> zoo.summaries()["quadratic-face"]
        'convex quadratic over the simplex, d = 20: optimum on a face'
    """
    return {name: summary for name, (summary, _) in PROBLEMS.items()}


def get(name: str) -> Problem:
    """The problem of that name, built at the first call; its builder's docstring pins it.

    Args:
        name: one of `names()`.

    Returns:
        The problem, the same object at every call.

    Raises:
        ValueError: where there is no such problem.

    Example:
        >>> from onesfw import zoo
        >>> zoo.get("logistic").constraint.radius
        5.0
    """
    choose(name, PROBLEMS, "name")
    return build(name)


def find(target: str) -> Problem:
    """The problem that a word stands for: `logistic`, `file.py`, or `file.py:name`.

    A file defines `objective` and `constraint`, and may define `x0`, `setting` and `sense`; `file.py:name` takes a
    `Problem`, a function that returns one, or a pair (objective, constraint) of that name. The file is executed.

    Args:
        target: a name of the zoo, or the path of a Python file.

    Returns:
        The problem.

    Raises:
        ValueError: where there is no such problem, or the file does not define one.
        FileNotFoundError: where there is no such file.
        TypeError: where what the file defines is something else.

    Example:
        >>> from onesfw import zoo
        >>> zoo.find("nqp").sense
        'maximize'
        >>> zoo.find("logistik")
        Traceback (most recent call last):
        ValueError: there is no problem 'logistik'; did you mean 'logistic'?
    """
    path, _, name = target.partition(".py:")
    if name or target.endswith(".py"):
        return from_file(Path(f"{path}.py" if name else target), name)
    if target.endswith(".py:"):
        raise ValueError(f"{target!r} names nothing after the colon; write file.py:name, or file.py alone")
    if target not in PROBLEMS:
        hint = nearest(target, PROBLEMS) or f"; choose one of {', '.join(PROBLEMS)}, or a file that ends in .py"
        raise ValueError(f"there is no problem {target!r}{hint}")
    return get(target)


@cache
def build(name: str) -> Problem:
    """The problem, made once."""
    summary, builder = PROBLEMS[name]
    return builder(name, summary)
