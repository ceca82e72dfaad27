"""Logistic regression over l1 balls on real rows, as problems for `onesfw compare` and `onesfw rates --also`.

    ONESFW_DATA=… onesfw compare benchmarks/real_sets.py:a9a --samples 1e5

LIBSVM files of the folder ONESFW_DATA, rows scaled to unit length, dense; class 1 against the rest. Sets whose dense
rows would not fit are those of `sparse_real.py`, in the sparse engine.
"""

from __future__ import annotations

from sparse_data import real

from onesfw.zoo import Problem
from onesfw.zoo.logistic import logistic_problem


def problem(name: str, radius: float) -> Problem:
    """The set of that name in a ball of that radius."""
    rows, labels = real(name)
    n, d = rows.shape
    summary = f"logistic loss over an l1 ball, r = {radius:g}: {name}, n = {n:,}, d = {d}"
    return logistic_problem(name, summary, rows.toarray(), labels, radius)


def a9a() -> Problem:
    """Adult: 32,561 × 123."""
    return problem("a9a", 30.0)


def mushrooms() -> Problem:
    """8,124 × 112, separable."""
    return problem("mushrooms", 30.0)


def ijcnn1() -> Problem:
    """49,990 × 22."""
    return problem("ijcnn1", 30.0)
