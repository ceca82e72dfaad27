"""Linear models whose radius is chosen by cross-validation, as LassoCV chooses its penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onesfw.arguments import named
from onesfw.engine import rows
from onesfw.linear.constraints import CLASSES, CONSTRAINTS
from onesfw.linear.defaults import default_radius
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Settings
from onesfw.linear.losses import LOSSES
from onesfw.linear.radius_folds import (
    FOLD_STEPS,
    FOLD_TOL,
    GRID,
    LARGEST,
    RULES,
    SMALLEST,
    Fold,
    FoldLosses,
    cross_validate,
)
from onesfw.linear.stability import rising
from onesfw.linear.swept import ENGINES, Engine
from onesfw.linear.training import Budget
from onesfw.results.pictures import BLUE, GREY, VERMILION, log_radii, save_figure, styled
from onesfw.results.show import axes_of
from onesfw.sklearn.classifier import OneSFWClassifier
from onesfw.sklearn.linear_base import LinearOneSFW
from onesfw.sklearn.regressor import OneSFWRegressor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Folds = int | Iterable[tuple[Any, Any]]
KEPT = ("tol", "fit_intercept", "intercept_bound", "scale", "random_state", "n_jobs", "verbose")
SHARED: dict[str, list[Any]] = {
    **{name: LinearOneSFW._parameter_constraints[name] for name in KEPT},
    "constraint": [StrOptions({*CONSTRAINTS, *CLASSES})],
    "radii": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "cv": ["cv_object"],
    "rule": [StrOptions(set(RULES))],
    "engine": [StrOptions(set(ENGINES))],
    "steps": [Interval(Integral, 1, None, closed="left"), None],
}


def never(estimator: Any) -> bool:
    """A stream has no folds."""
    raise AttributeError("partial_fit goes with a radius that is given: OneSFWClassifier(radius=model.radius_)")


class CrossValidated(LinearOneSFW):
    """What both estimators share: radii, folds, the choice, and what is left of it."""

    # What OneSFWClassifier and OneSFWRegressor let the user choose, and has one answer here.
    radius: float | None = None
    schedule: str | None = None
    warm_start: bool = False

    radii: int | Sequence[float] | None
    cv: Folds | None
    rule: str
    engine: str
    _given: tuple[Any, ...]

    def _budget(self) -> Budget:
        """Half a pass, and the polish."""
        return Budget(tol=self.tol, polish=True)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose the radius by cross-validation, and train with it on all rows.

        Args:
            X: rows, dense or sparse.
            y: labels of any kind, or numbers for a regression.
            sample_weight: weights of the rows.
            groups: one for each row, for a splitter that keeps groups together, such as GroupKFold. It is asked for its
                folds with X and y as they came.
        """
        if groups is not None and (self.cv is None or isinstance(self.cv, Integral)):
            raise ValueError(f"groups are for a splitter that reads them; let {named('cv')} be one, as GroupKFold(5)")
        self._given = (X, y) if groups is None else (X, y, groups)
        try:
            return cast(Self, cast(Any, super()).fit(X, y, sample_weight))
        finally:
            del self._given

    @available_if(never)
    def partial_fit(self, X: Any, y: Any) -> None:
        """There is none."""

    def _radius_for(
        self,
        settings: Settings,
        data: Examples,
        seed: int,
        stop: Callable[[], bool],
        note: Callable[[str], None],
    ) -> float:
        """The radius by cross-validation; keeps what it was chosen by."""
        around = default_radius(data, settings)
        if self.radii is None or isinstance(self.radii, Integral):
            count = GRID if self.radii is None else int(self.radii)
            grid = [float(r) for r in np.geomspace(around * SMALLEST, around * LARGEST, count)]
        else:
            grid = rising(np.asarray(self.radii).tolist(), around)
        folds = self._folds(data, settings, seed)
        check_weights(folds, data.weights)
        engine = Engine.of(self.engine, FOLD_TOL, self.steps, FOLD_STEPS)
        found = cross_validate(
            settings, data, folds, grid, engine=engine, key=seed, n_jobs=self.n_jobs, stop=stop, note=note
        )
        place = found.chosen(self.rule)
        self._losses = found
        self.radii_, self.loss_path_ = found.radii, found.losses
        self.best_radius_ = float(found.radii[found.chosen()])
        self.cv_results_ = {
            "radius": found.radii,
            "mean_loss": found.mean,
            "std_loss": found.std,
            "stderr_loss": found.stderr,
            "mean_nonzeros": found.nonzeros.mean(axis=1),
            "unsolved": found.unsolved.any(axis=1),
            **{f"split{fold}_loss": column for fold, column in enumerate(found.losses.T)},
        }
        return float(found.radii[place])

    def _folds(self, data: Examples, settings: Settings, seed: int) -> list[Fold]:
        """The folds, each with rows to learn from and rows to measure on, and with every class among the former."""
        classes = getattr(self, "classes_", None)
        labels = None if classes is None else data.targets
        everything = np.arange(data.size)
        if self.cv is None or isinstance(self.cv, Integral):
            count = 5 if self.cv is None else int(self.cv)
            check_count(count, labels, classes, data.size)
            learnt = rows.folds(data.size, count, labels=labels, key=seed)
            return [(numbers, np.setdiff1d(everything, numbers)) for numbers in learnt]
        pairs: Any = self.cv.split(*self._given) if hasattr(self.cv, "split") else self.cv
        folds: list[Fold] = []
        for place, pair in enumerate(pairs):
            if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
                raise ValueError(
                    f"{named('cv')}: fold {place} must be a pair, the rows to learn from and those to measure on, got "
                    f"{pair!r:.200}"
                )
            learnt_rows, held_rows = (numbers_of(part, data.size) for part in pair)
            if not (len(learnt_rows) and len(held_rows)):
                raise ValueError(f"{named('cv')}: fold {place} has no row to learn from or to measure on; leave it out")
            if labels is not None and len(np.unique(labels[learnt_rows])) < len(np.unique(labels)):
                raise ValueError(
                    f"{named('cv')}: the rows that fold {place} learns from lack a class; take fewer folds, or let "
                    "cv be a number, which gives every fold its share of every class"
                )
            folds.append((learnt_rows, held_rows))
        if len(folds) < 2:
            raise ValueError(f"{named('cv')} must make at least two folds, got {len(folds)}")
        return folds

    @styled()
    def plot(self, path: str | Path | None = None, *, ax: Axes | None = None) -> Figure:
        """The mean loss on rows held out against the radius, with a band of one standard error, and each fold's.

        Args:
            path: where to save the picture (PNG, PDF or SVG by its ending); None draws without saving.
            ax: axes to draw into; None makes a figure.

        Returns:
            The figure.
        """
        check_is_fitted(self)
        found: FoldLosses = self._losses
        figure, axes = axes_of(ax, (7.0, 4.2))
        alone = len(found.radii) == 1  # neither lines nor bands have a width
        low, high = found.mean - found.stderr, found.mean + found.stderr
        marker = "o" if alone else ""
        axes.plot(found.radii, found.losses, marker=marker, color=GREY, alpha=0.5, linewidth=0.6, zorder=1)
        axes.fill_between(found.radii, low, high, color=BLUE, alpha=0.2, linewidth=0)
        if alone:
            axes.vlines(found.radii, low, high, color=BLUE, linewidth=4, alpha=0.4)
        axes.plot(found.radii, found.mean, "o-", color=BLUE, label="mean over folds, ± 1 standard error")
        axes.axvline(self.radius_, color=VERMILION, linewidth=1, linestyle=":", label=f"radius {self.radius_:.4g}")
        if not alone:
            log_radii(axes)
        axes.set_xlabel("radius of the set")
        axes.set_ylabel(f"mean {LOSSES[self.loss].title}")
        axes.legend()
        if path is not None:
            save_figure(figure, path)
        return figure


def check_count(count: int, labels: np.ndarray | None, classes: np.ndarray | None, size: int) -> None:
    """Raise where so many folds cannot be made, or one would lack a class."""
    if count > size:
        raise ValueError(
            f"{named('cv')}={count}: every fold needs a row, and there are n_samples={size}; take fewer folds"
        )
    if labels is None or classes is None:
        return
    _, counts = np.unique(labels, return_counts=True)
    if counts.min() < count:
        rare, few = classes[counts.argmin()].item(), int(counts.min())
        remedy = f"take cv={few}" if few > 1 else "leave that class out, or join it with another"
        raise ValueError(
            f"{named('cv')}={count}: the class {rare!r} has {few} {'rows' if few > 1 else 'row'}, and every fold needs "
            f"one; {remedy}"
        )


def check_weights(folds: Sequence[Fold], weights: np.ndarray) -> None:
    """Raise where a fold has rows to learn from or to measure on, and none of them weighs anything."""
    for place, parts in enumerate(folds):
        for part, purpose in zip(parts, ("learns from", "measures on"), strict=True):
            if not weights[part].any():
                raise ValueError(
                    f"sample_weight: the rows that fold {place} of {named('cv')} {purpose} have weight 0, all of them; "
                    "leave rows of weight 0 out before fit, or take fewer folds"
                )


def numbers_of(part: Any, size: int) -> np.ndarray:
    """Row numbers, from numbers or a mask; raises ValueError where there is no such row."""
    array = np.asarray(part)
    if array.dtype == bool and array.shape == (size,):
        return np.flatnonzero(array)
    if array.ndim != 1 or not (array.size == 0 or np.issubdtype(array.dtype, np.integer)):
        raise ValueError(
            f"{named('cv')}: the rows of a fold must be whole numbers, or a mask of all {size} rows, got "
            f"{array.dtype}{array.shape}"
        )
    if array.size and (array.min() < 0 or array.max() >= size):
        raise ValueError(f"{named('cv')} names rows that are not there: the rows are 0..{size - 1}, counted from 0")
    return np.sort(array.astype(np.int64))


class OneSFWClassifierCV(CrossValidated, OneSFWClassifier):
    """Linear classification with ‖x‖ ≤ radius, the radius chosen by cross-validation.

    On every fold each radius is solved from the one before it, and all folds at a time; the radius with the least mean
    loss on rows held out is then solved on all rows. Several classes are taken one against the rest, with one radius.

    Args:
        constraint: "l1", "l2", "linf", "simplex" (x ≥ 0, Σx = radius) or "nonnegative_l1" (x ≥ 0, Σx ≤ radius).
        radii: rising; a number for so many of them; None for 20, from 1/100 to 10 times the radius at which a row of
            average size can reach a margin of 10.
        cv: how many folds, shuffled, each with its share of every class; None for 5. Or a splitter of scikit-learn,
            whose groups are given to `fit`, or pairs of row numbers.
        rule: "best", or "one_standard_error": the smallest radius whose mean loss is within one standard error of the
            best one's.
        engine: "linear", which solves each radius of a fold from the one before; or "sweep", for dense X on an
            accelerator: each radius and fold is a run of one-sample steps, and all of them are one `fw.sweep`. The fit
            on all rows is the same.
        steps: of each run of a sweep; None for 100,000.
        loss: "logistic" or "squared_hinge"; what is measured on the rows held out, too.
        tol: of the fit on all rows, see `OneSFWClassifier`; folds are solved to a gap of 1e-4, by a sweep to a tenth.
        fit_intercept: learn an intercept, which is not part of the norm.
        intercept_bound: it stays within ± this. None: anywhere.
        class_weight: weights of the classes, or "balanced".
        scale: divide columns by their scales: "auto" where they differ by more than 100, True or False. The scales are
            those of all rows, so that a radius means the same on every fold.
        random_state: the seed of the folds and of the order of the rows.
        n_jobs: folds at a time: threads, or workers of the joblib backend that the user chose; None for one, −1 for all
            cores. The model is the same bit for bit.
        verbose: show a progress bar.

    Attributes:
        radius_, best_radius_: the radius chosen by the rule, and the one with the least mean loss.
        radii_: those that were tried.
        loss_path_: radii × folds, the mean loss on the rows held out.
        cv_results_: "radius", "mean_loss", "std_loss", "stderr_loss", "mean_nonzeros", "unsolved", "split0_loss",
            ….
        coef_, sparse_coef_, intercept_, classes_, gap_, objective_, scale_, n_iter_: as in `OneSFWClassifier`.

    Raises:
        ValueError: from `fit`, where a parameter is out of range, X, y or the weights do not fit, radii do not rise, or
            a fold has no row or lacks a class.

    Example:
        >>> import numpy as np
        >>> from onesfw.sklearn import OneSFWClassifierCV
        >>> X = np.random.default_rng(0).normal(size=(200, 10))
        >>> model = OneSFWClassifierCV(random_state=0).fit(X, X[:, 0] > 0)
        >>> model.score(X, X[:, 0] > 0) > 0.95, model.loss_path_.shape
        (True, (20, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED,
        **{name: OneSFWClassifier._parameter_constraints[name] for name in ("loss", "class_weight")},
    }

    def __init__(
        self,
        constraint: str = "l1",
        *,
        radii: int | Sequence[float] | None = None,
        cv: Folds | None = None,
        rule: str = "best",
        engine: str = "linear",
        steps: int | None = None,
        loss: str = "logistic",
        tol: float | None = 1e-6,
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        scale: bool | str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.constraint = constraint
        self.radii = radii
        self.cv = cv
        self.rule = rule
        self.engine = engine
        self.steps = steps
        self.loss = loss
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_bound = intercept_bound
        self.class_weight = class_weight
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class OneSFWRegressorCV(CrossValidated, OneSFWRegressor):
    """Linear regression with ‖x‖ ≤ radius, the radius chosen by cross-validation.

    On every fold each radius is solved from the one before it, and all folds at a time; the radius with the least mean
    loss on rows held out is then solved on all rows.

    Args:
        constraint: "l1", "l2", "linf", "simplex" (x ≥ 0, Σx = radius) or "nonnegative_l1" (x ≥ 0, Σx ≤ radius).
        radii: rising; a number for so many of them; None for 20, from 1/100 to 10 times the radius at which a row of
            average size can reach a margin of 10 standard deviations of y.
        cv: how many folds, shuffled; None for 5. Or a splitter of scikit-learn, whose groups are given
            to `fit`, or pairs of row numbers.
        rule: "best", or "one_standard_error": the smallest radius whose mean loss is within one standard error of the
            best one's.
        engine: "linear", which solves each radius of a fold from the one before; or "sweep", for dense X on an
            accelerator: each radius and fold is a run of one-sample steps, and all of them are one `fw.sweep`. The fit
            on all rows is the same.
        steps: of each run of a sweep; None for 100,000.
        loss: "squared", "huber" or "poisson"; what is measured on the rows held out, too.
        epsilon: where the Huber loss turns linear.
        tol: of the fit on all rows, see `OneSFWRegressor`; folds are solved to a gap of 1e-4, by a sweep to a tenth.
        fit_intercept: learn an intercept, which is not part of the norm.
        intercept_bound: it stays within ± this. None: anywhere.
        scale: divide columns by their scales: "auto" where they differ by more than 100, True or False. The scales are
            those of all rows, so that a radius means the same on every fold.
        random_state: the seed of the folds and of the order of the rows.
        n_jobs: folds at a time: threads, or workers of the joblib backend that the user chose; None for one, −1 for all
            cores. The model is the same bit for bit.
        verbose: show a progress bar.

    Attributes:
        radius_, best_radius_: the radius chosen by the rule, and the one with the least mean loss.
        radii_: those that were tried.
        loss_path_: radii × folds, the mean loss on the rows held out; of "squared", half the squared error.
        cv_results_: "radius", "mean_loss", "std_loss", "stderr_loss", "mean_nonzeros", "unsolved", "split0_loss",
            ….
        coef_, sparse_coef_, intercept_, gap_, objective_, scale_, n_iter_: as in `OneSFWRegressor`.

    Raises:
        ValueError: from `fit`, where a parameter is out of range, X, y or the weights do not fit, radii do not rise, or
            a fold has no row.

    Example:
        >>> import numpy as np
        >>> from onesfw.sklearn import OneSFWRegressorCV
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 10))
        >>> y = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=200)
        >>> model = OneSFWRegressorCV(random_state=0).fit(X, y)
        >>> model.coef_[:2].round(1).tolist(), bool(abs(model.coef_).sum() <= model.radius_ * (1 + 1e-9))
        ([1.0, -2.0], True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED,
        **{name: OneSFWRegressor._parameter_constraints[name] for name in ("loss", "epsilon")},
    }

    def __init__(
        self,
        constraint: str = "l1",
        *,
        radii: int | Sequence[float] | None = None,
        cv: Folds | None = None,
        rule: str = "best",
        engine: str = "linear",
        steps: int | None = None,
        loss: str = "squared",
        epsilon: float = 1.35,
        tol: float | None = 1e-6,
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        scale: bool | str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.constraint = constraint
        self.radii = radii
        self.cv = cv
        self.rule = rule
        self.engine = engine
        self.steps = steps
        self.loss = loss
        self.epsilon = epsilon
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_bound = intercept_bound
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
