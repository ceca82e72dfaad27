"""What the classifier and the regressor share: parameters, training, streaming and the coefficients."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from onesfw.arguments import number
from onesfw.linear import CONSTRAINTS, LOSSES, SCHEDULES, Examples, Learner, Settings
from onesfw.linear.defaults import BLIND_RADIUS, default_interval, default_radius
from onesfw.linear.training import GRADIENTS, Budget, Fit, train
from onesfw.progress import ProgressBar

Start = tuple[np.ndarray, float, int]


class LinearOneSFW(BaseEstimator):
    """What the classifier and the regressor share: parameters, training, streaming and the coefficients."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "constraint": [StrOptions(set(CONSTRAINTS))],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "schedule": [StrOptions(set(SCHEDULES)), None],
        "gradient": [StrOptions(set(GRADIENTS))],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "steps": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "intercept_bound": [Interval(Real, 0, None, closed="left"), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _learners: list[Learner]
    _coef: np.ndarray | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_(self) -> np.ndarray:
        """The coefficients: one row a class, one row for two classes; a vector for a regression."""
        check_is_fitted(self)
        if self._coef is None:  # a stream leaves them to whoever asks: they cost O(features)
            self._coef = np.stack([learner.coef for learner in self._learners])
        return self._coef[0] if isinstance(self, RegressorMixin) else self._coef

    @property
    def intercept_(self) -> np.ndarray:
        """The intercepts, one a model; zeros without `fit_intercept`."""
        check_is_fitted(self)
        return np.array([learner.intercept for learner in self._learners])

    @property
    def sparse_coef_(self) -> scipy.sparse.csr_array:
        """`coef_` as a sparse matrix of one row a model."""
        return scipy.sparse.csr_array(np.atleast_2d(self.coef_))

    def _margins(self, X: Any) -> np.ndarray:
        """⟨a, x⟩ + intercept, one column a model."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return safe_sparse_dot(X, np.atleast_2d(self.coef_).T, dense_output=True) + self.intercept_

    def _settings(self, data: Examples | None) -> Settings:
        """What is learnt. Without data, as in a stream, the defaults are numbers that do not look at them."""
        loss, constraint = LOSSES[self.loss], CONSTRAINTS[self.constraint]
        huber = float(getattr(self, "epsilon", 1.0))
        if self.radius is not None:
            radius = number(self.radius, "radius", 0.0, strict=True)
        else:
            radius = BLIND_RADIUS if data is None else default_radius(data, loss, constraint)
        interval = None
        if self.fit_intercept and (self.intercept_bound is not None or data is None):
            bound = radius if self.intercept_bound is None else number(self.intercept_bound, "intercept_bound", 0.0)
            interval = (-bound, bound)
        elif self.fit_intercept and data is not None:
            interval = default_interval(data, loss, constraint, radius, huber)
        return Settings(self.n_features_in_, self.loss, self.constraint, radius, self.schedule, interval, huber)

    def _train(self, tasks: list[Examples]) -> None:
        """Fit one model a task, in parallel threads: the kernels do not hold the interpreter's lock."""
        budget = Budget(self.max_iter, self.steps, self.tol, self.gradient)
        settings = [self._settings(task) for task in tasks]
        starts = self._starts(settings)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=len(tasks))
        with ProgressBar(sum(budget.total(task.size) for task in tasks), bool(self.verbose), "rows", "rows") as bar:
            Learner(settings[0]).compile(tasks[0].values.dtype)
            bar.note("")
            fits: list[Fit] = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(train)(setting, task, budget, int(seed), start, bar.advance)
                for setting, task, seed, start in zip(settings, tasks, seeds, starts, strict=True)
            )
        if self.max_iter is not None and not all(fit.converged for fit in fits):
            worst = max(fit.evaluation.gap for fit in fits)
            warnings.warn(
                f"the Frank-Wolfe gap is {worst:.2g} after max_iter={self.max_iter} passes, more than tol={self.tol:g} "
                "allows; raise max_iter, or tol, or set tol=None",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._learners = [fit.learner for fit in fits]
        self._coef = np.stack([learner.coef for learner in self._learners])
        self.n_iter_ = max(fit.passes for fit in fits)
        self.gap_ = one_or_array([fit.evaluation.gap for fit in fits])
        self.objective_ = one_or_array([fit.evaluation.value for fit in fits])
        self.radius_ = one_or_array([setting.radius for setting in settings])

    def _starts(self, settings: list[Settings]) -> list[Start | None]:
        """Where the models start: with `warm_start`, at the coefficients of the fit before, drawn into the set."""
        if not (self.warm_start and hasattr(self, "_learners")):
            return [None] * len(settings)
        features = {learner.settings.n_features for learner in self._learners}
        if len(self._learners) != len(settings) or features != {self.n_features_in_}:
            raise ValueError("warm_start=True needs the features and classes of the fit before; use a new estimator")
        return [inside(learner, setting) for learner, setting in zip(self._learners, settings, strict=True)]

    def _learn(self, tasks: list[Examples]) -> None:
        """Go on with a stream: one step a row and model, in the order they came."""
        if not hasattr(self, "_learners"):
            self._learners = [Learner(self._settings(None)) for _ in tasks]
            self.radius_ = self._learners[0].settings.radius
        elif self._learners[0].table.size:  # after a fit with SAG, whose table is of rows that are gone
            self._learners = [self._without_table(learner) for learner in self._learners]
        Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(learner.learn_examples)(task, np.arange(task.size))
            for learner, task in zip(self._learners, tasks, strict=True)
        )
        self._coef = None
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1

    @staticmethod
    def _without_table(learner: Learner) -> Learner:
        return Learner(learner.settings, start=(learner.coef, learner.intercept), t0=learner.t0 + learner.steps)


def one_or_array(numbers: list[float]) -> Any:
    """One model's number as it is, several models' as an array."""
    return numbers[0] if len(numbers) == 1 else np.array(numbers)


def inside(learner: Learner, settings: Settings) -> Start:
    """(coefficients, intercept, steps taken), scaled into the set and cut to the interval of other settings."""
    constraint, radius, coef = settings.set, settings.radius, learner.coef
    if not constraint.signed:
        coef = np.maximum(coef, 0.0)
    norm = constraint.norm(coef)
    if constraint.name == "simplex" and norm == 0:
        coef[0], norm = radius, radius
    if norm > radius or constraint.name == "simplex":
        coef *= radius / norm
    low, high = settings.intercept or (0.0, 0.0)
    return coef, min(max(learner.intercept, low), high), learner.t0 + learner.steps
