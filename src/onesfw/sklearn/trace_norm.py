"""`OneSFWClassifier("trace")`: softmax regression over a trace-norm ball, by `onesfw.lowrank.train_rows`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from onesfw.arguments import number
from onesfw.linear.examples import Examples
from onesfw.lowrank.trace_rows import TraceModel, train_rows

TRACE = "trace"
PER_CLASS = 50.0  # of the default radius: a row of average size can reach a margin of this for each class
REFUSED = {"class_weight": None, "warm_start": False, "intercept_bound": None, "loss": "logistic", "steps": None}


@dataclass
class TraceModels:
    """What the estimators ask of a trained model."""

    coefs: np.ndarray
    intercepts: np.ndarray
    steps: int
    remembers: bool = False


def check_parameters(estimator: Any, sample_weight: Any) -> None:
    """Raise ValueError for what goes with the other constraints only."""
    for name, value in REFUSED.items():
        if getattr(estimator, name) != value:
            raise ValueError(f"{name} goes without constraint='trace'; leave it at {value!r}")
    if sample_weight is not None:
        raise ValueError("sample_weight goes without constraint='trace'; repeat rows instead")


def fit_trace(
    estimator: Any, data: Examples, places: np.ndarray, classes: int
) -> tuple[TraceModels, TraceModel, float]:
    """The model of an estimator's parameters: one row of coefficients a class, their difference for two classes."""
    if estimator.radius is None:
        sizes = np.sqrt(np.asarray(data.matrix.multiply(data.matrix).sum(axis=1)).ravel())
        radius = PER_CLASS * classes / max(float(sizes.mean()), 1e-300)
    else:
        radius = number(estimator.radius, "radius", 0.0, strict=True)
    seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    model = train_rows(
        data, np.eye(classes)[places], radius=radius, passes=estimator.max_iter, tol=estimator.tol,
        intercept=estimator.fit_intercept, key=seed,
    )  # fmt: skip
    if estimator.max_iter is not None and estimator.tol is not None and model.passes == estimator.max_iter:
        warnings.warn(
            f"the Frank-Wolfe gap is {model.gap:.2g} after max_iter={estimator.max_iter} passes; raise max_iter, "
            "or tol, or set tol=None",
            ConvergenceWarning,
            stacklevel=3,
        )
    coefs, intercepts = model.coef, model.intercept
    if classes == 2:
        coefs, intercepts = coefs[1:] - coefs[:1], intercepts[1:] - intercepts[:1]
    return TraceModels(coefs, intercepts, model.passes * data.size), model, radius
