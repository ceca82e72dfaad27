"""Ready problems with known optima, by name: `zoo.get("logistic")`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from onesfw.arguments import choose
from onesfw.zoo import gaussian, least_squares, logistic, multilinear, nqp, quadratics, sigmoid
from onesfw.zoo.base import Optimum, Problem

__all__ = ["Optimum", "Problem", "get", "names", "summaries"]

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
    """The names `get` knows."""
    return list(PROBLEMS)


def summaries() -> dict[str, str]:
    """A line about each problem, without building any."""
    return {name: summary for name, (summary, _) in PROBLEMS.items()}


def get(name: str) -> Problem:
    """The problem of that name, built at the first call; its builder's docstring pins it."""
    choose(name, PROBLEMS, "name")
    return build(name)


@cache
def build(name: str) -> Problem:
    """The problem, made once."""
    summary, builder = PROBLEMS[name]
    return builder(name, summary)
