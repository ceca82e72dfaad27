"""`OneSFWClassifier("trace")`: softmax regression over a trace-norm ball, by `onesfw.lowrank.train_rows`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from onesfw.arguments import number
from onesfw.linear.convergence import gap_sentence, remedy, warn_unconverged
from onesfw.linear.examples import Examples
from onesfw.linear.scaling import chosen_scales, divided
from onesfw.lowrank.trace_rows import TraceModel, train_rows
from onesfw.lowrank.trace_task import largest_singular, task

TRACE = "trace"
STEEPNESS = 6.0  # of the default radius: the best constant's gap there, in units of its loss
PER_CLASS = 50.0  # of the largest default radius: a row of average size can reach a margin of this for each class
REFUSED = {
    "class_weight": None, "warm_start": False, "intercept_bound": None, "loss": "logistic", "steps": None,
    "schedule": None,
}  # fmt: skip


@dataclass
class TraceModels:
    """What the estimators ask of a trained model."""

    coefs: np.ndarray
    intercepts: np.ndarray
    steps: int
    scales: np.ndarray | None
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
    """The model of an estimator's parameters: one row of coefficients a class, their difference for two classes.

    Its norm and its gap are those of the columns divided by their scales, its coefficients those of the columns as
    they came.
    """
    targets = np.eye(classes)[places]
    scales = chosen_scales(data, estimator.scale)
    rows = divided(data, scales)
    if estimator.radius is None:
        radius = trace_radius(rows, targets, estimator.fit_intercept)
    else:
        radius = number(estimator.radius, "radius", 0.0, strict=True)
    seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    model = train_rows(
        rows, targets, radius=radius, passes=estimator.max_iter, tol=estimator.tol,
        intercept=estimator.fit_intercept, polish=estimator.polish, key=seed,
    )  # fmt: skip
    warn_of_gap(model, rows, estimator)
    coefs, intercepts = model.coef if scales is None else model.coef / scales, model.intercept
    if classes == 2:
        coefs, intercepts = coefs[1:] - coefs[:1], intercepts[1:] - intercepts[:1]
    return TraceModels(coefs, intercepts, model.passes * data.size, scales), model, radius


def trace_radius(data: Examples, targets: np.ndarray, intercept: bool) -> float:
    """min(6 F(0)/‖∇F(0)‖₂, 50 k/√mean‖x − x̄‖²), F(0) the loss of the best constant of k classes.

    ∇F(0) sees along which directions the classes lie apart, and how far: at this radius the gap of the best constant is
    six times its loss. Where they hardly do, the other term is smaller. Without an intercept x̄ is 0.
    """
    problem = task(data, targets, "softmax", 1.0, intercept)
    constant, matrix, n = problem.constant(), problem.matrix, data.size
    mean = matrix.sum(axis=0) / n if intercept else np.zeros(1)
    spread = float((matrix.data**2).sum() / n - (mean**2).sum())
    widest = PER_CLASS * targets.shape[1] / max(spread, 1e-20) ** 0.5
    slope = largest_singular(constant.gradient)
    return min(widest, STEEPNESS * constant.value / max(slope, 1e-300)) / problem.unit


def warn_of_gap(model: TraceModel, rows: Examples, estimator: Any) -> None:
    """Warn where the gap is larger than tol allows or than a tenth of the loss, with what will help."""
    message = gap_sentence(
        np.array([model.gap]), np.array([model.value]), np.array([model.limit]), np.array([model.unit]),
        estimator.tol, lambda: remedy(rows, estimator.polish, ["raise max_iter"]),
    )  # fmt: skip
    if message is not None:
        warn_unconverged(message)
