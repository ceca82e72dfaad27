"""Real data without tuning, and what tuned and batch solvers reach in which time."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sparse_common import as_examples, constrained_optimum, installed, passes, seconds, version
from sparse_data import real

from onesfw.linear import Examples, Learner, Settings, evaluate


def radially(coef: np.ndarray, radius: float) -> np.ndarray:
    return coef * min(1.0, radius / max(np.abs(coef).sum(), 1e-300))


def real_data() -> None:
    for name in ("a9a", "news20", "reuters-moneyfx", "classic.libsvm"):
        matrix, labels = real(name)
        data = as_examples(matrix, labels)
        for radius in (30.0, 100.0):
            settings = Settings(matrix.shape[1], "logistic", "l1", radius)
            optimum, gap, penalty, _ = constrained_optimum(matrix, labels, radius, data)
            print(f"\n== {name}, {matrix.shape[0]:,} x {matrix.shape[1]:,}, l1 ball of radius {radius:g}")
            print(f"   F* = {optimum:.5f}, its duality gap {gap:.1e}")
            rows: list[tuple[str, np.ndarray, float]] = []
            for label, options in (
                ("onesfw, default, 20 passes", {}),
                ("onesfw, gradient=sag, 20 passes", {"rows": data.size}),
            ):
                learner = Learner(settings, **options)
                learner.compile()
                taken = seconds(lambda learner=learner, data=data: passes(learner, data, 20))
                rows.append((label, learner.coef, taken))
            rows += sgd_rows(matrix, labels, settings, data, penalty)
            rows += solver_rows(matrix, labels, penalty)
            for label, coef, taken in rows:
                inside = radially(coef, radius)
                value = evaluate(settings, data, inside).value[0]
                mark = "" if np.abs(coef).sum() <= radius * (1 + 1e-6) else f"  (norm {np.abs(coef).sum():.0f}, scaled)"
                print(f"   {label:<38} F = {value:.5f}   F − F* = {value - optimum:8.1e}   {taken:7.3f} s{mark}")
            ours, theirs = (evaluate(settings, data, radially(row[1], radius)).value[0] for row in (rows[0], rows[2]))
            print(f"   {'lower' if ours < theirs else 'NOT lower'} than SGDClassifier with default settings")


def sgd_rows(
    matrix: Any, labels: np.ndarray, settings: Settings, data: Examples, penalty: float
) -> list[tuple[str, np.ndarray, float]]:
    """SGD with l1: default settings; the best of a grid, at the penalty of the constrained solution among others."""
    plain = SGDClassifier(loss="log_loss", penalty="l1", fit_intercept=False, random_state=0)
    rows = [("SGDClassifier l1, default", plain, seconds(lambda: plain.fit(matrix, labels)))]
    matched = 1 / (penalty * len(labels))
    best, total = None, 0.0
    for alpha in (matched, 1e-4, 1e-5, 1e-6):
        for rate, eta in (("optimal", 0.0), ("adaptive", 1.0), ("adaptive", 10.0), ("invscaling", 10.0)):
            model = SGDClassifier(
                loss="log_loss", penalty="l1", alpha=alpha, learning_rate=rate, eta0=eta or 0.01, max_iter=20, tol=None,
                average=False, fit_intercept=False, random_state=0,
            )  # fmt: skip
            taken = seconds(lambda model=model: model.fit(matrix, labels))
            total += taken
            value = evaluate(settings, data, radially(model.coef_[0], settings.radius)).value[0]
            if best is None or value < best[0]:
                best = (value, model, taken)
    assert best is not None
    rows.append((f"SGDClassifier l1, best of 16 ({total:.1f} s)", best[1], best[2]))
    return [(name, model.coef_[0], taken) for name, model, taken in rows]


def solver_rows(matrix: Any, labels: np.ndarray, penalty: float) -> list[tuple[str, np.ndarray, float]]:
    """Solvers of the penalised problem at the penalty whose solution has the norm asked for."""
    common = {"C": penalty, "fit_intercept": False, "l1_ratio": 1.0}
    rows = []
    for label, model in (
        (
            "prox-SAGA (scikit-learn), 100 passes",
            LogisticRegression(solver="saga", max_iter=100, tol=1e-5, random_state=0, **common),
        ),
        ("liblinear", LogisticRegression(solver="liblinear", tol=1e-4, **common)),
    ):
        rows.append((label, model, seconds(lambda model=model: model.fit(matrix, labels))))
    if (celer := installed("celer")) is not None:
        model = celer.LogisticRegression(C=penalty, fit_intercept=False, tol=1e-4)
        rows.append((version("celer"), model, seconds(lambda: model.fit(matrix, labels))))
    if (skglm := installed("skglm")) is not None:
        other = skglm.SparseLogisticRegression(alpha=1 / (penalty * len(labels)), fit_intercept=False, tol=1e-4)
        other.fit(matrix[:200], labels[:200])  # compiles
        rows.append((version("skglm"), other, seconds(lambda: other.fit(matrix, labels))))
    return [(name, np.asarray(model.coef_).ravel(), taken) for name, model, taken in rows]
