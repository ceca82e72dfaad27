"""What the parts of benchmarks/sparse.py share: clocks, passes, rivals that may be missing, and a verified optimum."""

from __future__ import annotations

import importlib
import importlib.metadata
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from onesfw.linear import LOSSES, Examples, Learner, Settings, evaluate, examples
from onesfw.linear.pass_rows import draw_order

ROWS = 50_000
LOGISTIC = LOSSES["logistic"]


def installed(name: str) -> Any:
    """The package, or None with a line that says so."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        print(f"   {name} is left out: {type(error).__name__}: {str(error).splitlines()[0][:80]}")
        return None


def version(package: str) -> str:
    return f"{package} {importlib.metadata.version(package)}"


def as_examples(matrix: scipy.sparse.csr_matrix, labels: np.ndarray) -> Examples:
    return examples(matrix, labels, None, matrix.shape[1], LOGISTIC)


def seconds(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def passes(learner: Learner, data: Examples, count: int, seed: int = 0) -> Learner:
    """Shuffled passes, as `onesfw.linear.pass_rows.Memory` makes them."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        learner.learn_examples(data, draw_order(rng, data.size, 1, learner.table.size > 0 and number > 0))
    return learner


def constrained_optimum(
    matrix: Any, labels: np.ndarray, radius: float, data: Examples
) -> tuple[float, float, float, np.ndarray]:
    """(F*, the gap that proves it, the penalty C of the same solution, x*): liblinear by bisection on C."""
    settings = Settings(matrix.shape[1], "logistic", "l1", radius)
    low, high = 1e-3 / len(labels), 1e5 / len(labels)

    def solve(c: float, tol: float) -> np.ndarray:
        model = LogisticRegression(l1_ratio=1.0, C=c, solver="liblinear", fit_intercept=False, tol=tol, max_iter=10_000)
        return model.fit(matrix, labels).coef_[0]

    for tol in (*[1e-3] * 14, *[1e-6] * 12):
        c = (low * high) ** 0.5
        norm = np.abs(solve(c, tol)).sum()
        low, high = (c, high) if norm < radius else (low, c)
        if tol == 1e-3 and high / low < 1.05:
            low, high = low / 1.02, high * 1.02
    coef = solve(high, 1e-7)
    coef *= min(1.0, radius / np.abs(coef).sum())
    (value,), (gap,), _ = evaluate(settings, data, coef)
    return value, gap, high, coef
