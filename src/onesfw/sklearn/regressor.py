"""Linear regression under a hard norm constraint."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

from onesfw.linear.examples import Examples, examples
from onesfw.linear.losses import LOSSES
from onesfw.sklearn.linear_base import LinearOneSFW


class OneSFWRegressor(RegressorMixin, LinearOneSFW):
    """Linear regression with ‖x‖ ≤ radius at every moment, by one-sample stochastic Frank-Wolfe.

    Args:
        constraint: "l1", "l2", "linf", "simplex" (x ≥ 0, Σx = radius) or "nonnegative_l1" (x ≥ 0, Σx ≤ radius).
        radius: of the set. None: the radius at which a row of average size can reach 10 standard deviations of y (a
            log-mean of 10 for "poisson"); 10 in `partial_fit`, which must not look ahead. `radius_` tells.
        loss: "squared", "huber" or "poisson" (y ≥ 0, predicts exp of the margin).
        epsilon: where the Huber loss turns linear.
        schedule, gradient, max_iter, steps, tol, fit_intercept, intercept_bound, warm_start, random_state, verbose: as
            in `OneSFWClassifier`.
        n_jobs: for symmetry; there is one model.

    Attributes:
        coef_, sparse_coef_, intercept_: the model.
        gap_, objective_: the Frank-Wolfe gap and the mean loss after `fit`, from all rows.
        radius_: the radius used.
        n_iter_: passes done.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearOneSFW._parameter_constraints,
        "loss": [StrOptions({name for name, loss in LOSSES.items() if not loss.classifies})],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        constraint: str = "l1",
        *,
        radius: float | None = None,
        loss: str = "squared",
        epsilon: float = 1.35,
        schedule: str | None = None,
        gradient: str = "one_sample",
        max_iter: int | None = None,
        steps: int | None = None,
        tol: float | None = 1e-3,
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.constraint = constraint
        self.radius = radius
        self.loss = loss
        self.epsilon = epsilon
        self.schedule = schedule
        self.gradient = gradient
        self.max_iter = max_iter
        self.steps = steps
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_bound = intercept_bound
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneSFWRegressor:
        """Train on the rows of X, dense or sparse."""
        self._validate_params()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], y_numeric=True)
        self._train(self._examples(X, y, sample_weight))
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneSFWRegressor:
        """Learn each row once, in order. However a stream is cut into calls, the model is the same bit for bit."""
        self._validate_params()
        first = not hasattr(self, "_team")
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], y_numeric=True, reset=first
        )
        self._learn(self._examples(X, y, sample_weight))
        return self

    def _examples(self, X: Any, y: Any, sample_weight: Any) -> Examples:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return examples(X, y, weights, self.n_features_in_, LOSSES[self.loss])

    def predict(self, X: Any) -> np.ndarray:
        """⟨a, x⟩ + intercept, and its exponential for the Poisson loss."""
        margins = self._margins(X).ravel()
        return np.exp(margins) if self.loss == "poisson" else margins
