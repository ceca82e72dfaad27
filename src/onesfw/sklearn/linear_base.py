"""What the classifier and the regressor share: parameters, training, streaming and the coefficients."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from onesfw.arguments import number
from onesfw.data.sources import check_indices
from onesfw.engine.interrupts import catch_interrupt
from onesfw.linear.constraints import CLASSES, CONSTRAINTS
from onesfw.linear.convergence import constant_message, gap_message, warn_unconverged
from onesfw.linear.defaults import ANYWHERE, BLIND_RADIUS
from onesfw.linear.examples import Examples
from onesfw.linear.finishing import Finished, at_most_a_constant, no_worse_than_a_constant
from onesfw.linear.first_rows import FirstRows
from onesfw.linear.learner import SCHEDULES, Settings, Start
from onesfw.linear.parallel_learners import ParallelLearners
from onesfw.linear.radii import chosen_radius
from onesfw.linear.scaling import chosen_scales, divided
from onesfw.linear.stream_sample import Sample
from onesfw.linear.stream_verdict import against_a_constant, held_back
from onesfw.linear.training import GRADIENTS, Budget, fit_in_memory
from onesfw.progress import ProgressBar


class LinearOneSFW(BaseEstimator):
    """What the classifier and the regressor share: parameters, training, streaming and the coefficients."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "constraint": [StrOptions({*CONSTRAINTS, *CLASSES})],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "schedule": [StrOptions(set(SCHEDULES)), None],
        "gradient": [StrOptions(set(GRADIENTS))],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "steps": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "intercept_bound": [Interval(Real, 0, None, closed="left"), None],
        "scale": ["boolean", StrOptions({"auto"})],
        "polish": ["boolean"],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _learners: ParallelLearners
    _coef: np.ndarray | None
    _intercepts: np.ndarray
    _scales: np.ndarray | None
    _sample: Sample | None = None
    _first: FirstRows | None = None
    _blind = False  # whether a stream has the default radius
    _told: frozenset[str] = frozenset()  # what was said of the stream: once is enough
    _largest_loss = 0.0  # that rows of a call of `partial_fit` had

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_(self) -> np.ndarray:
        """The coefficients: one row a class, one row for two classes; a vector for a regression."""
        check_is_fitted(self)
        coef, _ = self._model()
        return coef[0] if isinstance(self, RegressorMixin) else coef

    @property
    def intercept_(self) -> np.ndarray:
        """The intercepts, one a model; zeros without `fit_intercept`."""
        check_is_fitted(self)
        _, intercepts = self._model()
        return intercepts.copy()

    @property
    def sparse_coef_(self) -> scipy.sparse.csr_array:
        """`coef_` as a sparse matrix of one row a model."""
        return scipy.sparse.csr_array(np.atleast_2d(self.coef_))

    @property
    def scale_(self) -> np.ndarray | None:
        """What the columns were divided by; None for nothing. A stream takes it from its first 1,000 rows."""
        check_is_fitted(self)
        self._model()
        return self._scales

    def _margins(self, X: Any) -> np.ndarray:
        """⟨a, x⟩ + intercept, one column a model."""
        check_is_fitted(self)
        check_indices(X, "X")
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return safe_sparse_dot(X, np.atleast_2d(self.coef_).T, dense_output=True) + self.intercept_

    def _model(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts. A stream leaves them to whoever asks, for they cost more than a step.

        They are then no worse than the best constant on a sample of the stream's rows; the steps go on from where they
        were.
        """
        if self._coef is None:
            shown = self if self._first is None else deepcopy(self)._with_first_rows()
            said = shown._finish()
            self._coef, self._intercepts, self._scales = shown._coef, shown._intercepts, shown._scales
            self._told = shown._told
            for words in said:
                warn_unconverged(words)
        return cast(np.ndarray, self._coef), self._intercepts

    def _finish(self) -> list[str]:
        """The coefficients of a stream so far; what is to be said of them."""
        learners, said = self._learners, {}
        found = Finished(learners.coefs, learners.intercepts, float(learners.settings.radii[0]))
        if self._sample is not None:
            settings, rows, seen, raw = learners.settings, self._sample.weighted(), self._sample.seen, found
            found, share = no_worse_than_a_constant(settings, rows, raw)
            if self._blind and "radius" not in self._told:
                said["radius"] = held_back(settings, rows, raw, seen)
            if "constant" not in self._told and not said.get("radius"):
                said["constant"] = against_a_constant(
                    settings, rows, found, share, seen, self._largest_loss, self._blind
                )
            self._told |= {kind for kind, words in said.items() if words}
        self._coef, self._intercepts = self._in_units(found.coefs), found.intercepts
        return [words for words in said.values() if words]

    def _in_units(self, coefs: np.ndarray) -> np.ndarray:
        """Coefficients of the columns as they came, where training divided them."""
        return coefs if self._scales is None else coefs / self._scales

    def _settings(self, radius: float, classes: int | None = None) -> Settings:
        """What is learnt; with `classes`, targets are class numbers, and each class has a model against the rest."""
        interval = ANYWHERE if self.fit_intercept else None
        if self.fit_intercept and self.intercept_bound is not None:
            bound = number(self.intercept_bound, "intercept_bound", 0.0)
            interval = (-bound, bound)
        labels = None if classes is None else tuple(range(classes))
        delta = float(getattr(self, "epsilon", 1.0))
        return Settings(
            self.n_features_in_, self.loss, self.constraint, radius, self.schedule, interval, delta, labels
        )  # fmt: skip

    def _train(self, data: Examples, classes: int | None = None) -> None:
        """Fit all models over the same passes; after Ctrl-C the models as they stand are kept, and it is raised."""
        budget = self._budget()
        generator = check_random_state(self.random_state)
        seed, split = (int(generator.randint(np.iinfo(np.int32).max)) for _ in range(2))
        scales = chosen_scales(data, self.scale)
        rows = divided(data, scales)
        with (
            ProgressBar(budget.total(data.size), bool(self.verbose), "rows", "rows") as bar,
            catch_interrupt() as interrupted,
        ):
            settings = self._settings(1.0 if self.radius is None else self.radius, classes)
            ParallelLearners(settings, n_jobs=self.n_jobs).compile(data.values.dtype)
            if self.radius is None:
                radius = self._radius_for(settings, rows, split, interrupted.is_set, bar.note)
                settings = replace(settings, radius=radius)
            bar.note("")
            fit = fit_in_memory(
                settings, rows, budget, seed, n_jobs=self.n_jobs, start=self._start(settings, scales),
                advance=bar.advance, note=bar.note, stop=interrupted.is_set,
            )  # fmt: skip
        share = 1.0
        if not budget.polish:
            fit, share = at_most_a_constant(fit, settings, rows, self.n_jobs)
        self._learners, self._scales, self._sample, self._first = fit.learners, scales, None, None
        self._coef, self._intercepts = self._in_units(fit.learners.coefs), fit.learners.intercepts
        self.n_iter_ = fit.passes
        self.gap_ = one_or_array(fit.evaluation.gap)
        self.objective_ = one_or_array(fit.evaluation.value)
        self.radius_ = float(settings.radii[0])
        if not fit.finished:
            raise KeyboardInterrupt("interrupted; the estimator holds the model as it stands")
        message = gap_message(fit, rows, budget) if share == 1 else constant_message(share, rows, budget)
        if message is not None:
            warn_unconverged(message)

    def _budget(self) -> Budget:
        """How long to train."""
        return Budget(self.max_iter, self.steps, self.tol, self.gradient, self.polish)

    def _radius_for(
        self,
        settings: Settings,
        data: Examples,
        seed: int,
        stop: Callable[[], bool],
        note: Callable[[str], None],
    ) -> float:
        """The radius where none was given."""
        return chosen_radius(settings, data, seed, n_jobs=self.n_jobs, stop=stop, note=note)

    def _start(self, settings: Settings, scales: np.ndarray | None) -> Start | None:
        """Where the models start: with `warm_start`, at the coefficients of the fit before, drawn into the set."""
        if not (self.warm_start and hasattr(self, "_learners")):
            return None
        self._with_first_rows()
        before = self._learners.settings
        if (before.models, before.n_features) != (settings.models, settings.n_features):
            raise ValueError("warm_start=True needs the features and classes of the fit before; use a new estimator")
        coefs = np.atleast_2d(self.coef_) * (1.0 if scales is None else scales)
        low, high = np.asarray(settings.intervals or [(0.0, 0.0)] * settings.models).T
        steps = self._learners.t0 + self._learners.steps
        return Start(inside(coefs, settings), np.clip(self.intercept_, low, high), steps)

    def _learn(self, data: Examples, classes: int | None = None) -> None:
        """Go on with a stream: one step a row and model, in the order they came."""
        if not hasattr(self, "_learners"):
            radius = BLIND_RADIUS if self.radius is None else self.radius
            settings = self._settings(radius, classes)
            self._learners, self._scales = ParallelLearners(settings, n_jobs=self.n_jobs), None
            self._sample, self._blind = Sample(settings, 0), self.radius is None
            self._first = FirstRows(self.scale) if self.scale else None
            self.radius_ = float(self._learners.settings.radii[0])
        elif self._learners.remembers:  # after a fit with SAG, whose table is of rows that are gone
            learners = self._learners
            start = Start(learners.coefs, learners.intercepts, learners.t0 + learners.steps)
            self._learners = ParallelLearners(learners.settings, n_jobs=self.n_jobs, start=start)
        self._learners.streams = True
        if self._first is None:
            self._learn_rows(data)
        else:
            self._first.add(data)
            if self._first.complete:
                self._with_first_rows()
        self._coef = None
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1

    def _learn_rows(self, data: Examples) -> None:
        """A step for each row of a stream whose scales are known."""
        rows = divided(data, self._scales)
        totals = self._learners.learn_examples(rows, np.arange(rows.size))
        self._largest_loss = max(self._largest_loss, float(totals.max()))
        if self._sample is not None:
            self._sample.add(rows)

    def _with_first_rows(self) -> LinearOneSFW:
        """This one, after it has learnt the rows that waited, by the scales that they have."""
        if self._first is not None and self._sample is not None:
            rows, self._scales = self._first.gathered(self._sample)
            self._first = None
            self._learn_rows(rows)
        return self


def one_or_array(numbers: np.ndarray) -> Any:
    """One model's number as it is, several models' as an array."""
    return float(numbers[0]) if len(numbers) == 1 else numbers


def inside(coefs: np.ndarray, settings: Settings) -> np.ndarray:
    """Coefficients of other settings, scaled into the sets of these."""
    constraint = settings.set
    if not constraint.signed:
        coefs = np.maximum(coefs, 0.0)
    for coef, radius in zip(coefs, settings.radii, strict=True):
        norm = constraint.norm(coef)
        if constraint.name == "simplex" and norm == 0:
            coef[0], norm = radius, radius
        if norm > radius or constraint.name == "simplex":
            coef *= radius / norm
    return coefs
