"""Columns that are selected whatever half of the rows is looked at, with a bound on the false ones among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from onesfw.data.sources import check_indices
from onesfw.linear.column_selection import check_rare, loss_for
from onesfw.linear.constraints import CLASSES, constraint_name
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.examples import Examples, examples
from onesfw.linear.false_selections import ASSUMPTIONS
from onesfw.linear.learner import Settings
from onesfw.linear.losses import LOSSES
from onesfw.linear.scaling import chosen_scales, divided
from onesfw.linear.stability import SETS, Stability, stability_selection
from onesfw.linear.swept import ENGINES
from onesfw.sklearn.selector import ColumnSelector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class StabilitySelector(ColumnSelector, BaseEstimator):
    """Select the columns that l1 models of most half-samples have (Meinshausen and Bühlmann 2010).

    Half of the rows, then the other half, a model of each at rising radii; and again for other halves (the
    complementary pairs of Shah and Samworth 2013). A column that at least `threshold` of the models have, at one radius
    or another, is stable. A half-sample may select so many columns that the expected number of false selections,
    columns that a half-sample selects no more often than chance would have it, is at most `expected_false`.

    Args:
        loss: "logistic", "squared_hinge", "squared", "huber" or "poisson". None: "logistic" for words, truth values,
            two values, and at most 10 distinct whole numbers, "squared" for other numbers. Several classes are taken
            one against the rest, and a column is selected that one of them needs.
        constraint: "l1", "nonnegative_l1" (x ≥ 0, Σx ≤ radius) or "simplex" (x ≥ 0, Σx = radius).
        radii: rising; None for 30 that the data choose.
        threshold: the share of half-samples, over 0.5, that makes a column stable.
        expected_false: what the bound is to be at most; with many columns, more lets more weak ones be found. None:
            all radii are looked at, and the bound is what follows.
        assumption: what the bound rests on: "r_concave" (Shah and Samworth 2013) or "none", which lets half-samples
            select fewer columns.
        n_pairs: of half-samples.
        epsilon: where the Huber loss turns linear.
        fit_intercept: learn an intercept, which is not part of the norm.
        scale: divide columns by their scales, so that the norm compares like with like: True, False, or "auto" where
            they differ by more than 100.
        engine: "linear", which solves each radius from the one before; or "sweep", for dense X on an accelerator: each
            radius and half-sample is a run of one-sample steps, all of them one `fw.sweep`, and a column is selected
            whose coefficient exceeds 1 % of the radius.
        steps: of each run of a sweep; None for 20,000.
        tol: the Frank-Wolfe gap to which each model is solved, over the loss of the best constant; a sweep is content
            with a tenth.
        random_state: the seed of the half-samples.
        n_jobs: half-samples at a time: threads, or workers of the joblib backend that the user chose; the selection is
            the same bit for bit.
        verbose: show a progress bar.

    Attributes:
        radii_: the radii.
        selection_probabilities_: radii × columns, the share of half-samples that select the column.
        scores_: the largest share of each column, over the radii.
        support_: the mask of the stable columns.
        false_selections_: the bound of the expected false selections, under `assumption`.
        n_selected_: how many columns a half-sample could select, over all radii together; where there was no limit, how
            many it did on average.
        loss_: the loss.
        stability_: the `Stability`, which prints a table, has both bounds, draws, saves and shows itself in notebooks.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.

    Raises:
        ValueError: from `fit`, where a parameter is out of range, X or y do not fit, y holds one class only or a class
            has one row, or the bound cannot be kept.

    Example:
        >>> import numpy as np
        >>> from onesfw.sklearn import StabilitySelector
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 40))
        >>> y = 2 * X[:, 3] - X[:, 8] + rng.normal(size=200)
        >>> selector = StabilitySelector(expected_false=0.2, random_state=0).fit(X, y)
        >>> selector.get_support(indices=True).tolist(), selector.false_selections_ <= 0.2
        ([3, 8], True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(LOSSES)), None],
        "constraint": [StrOptions({*SETS, *(word for word, name in CLASSES.items() if name in SETS)})],
        "radii": ["array-like", None],
        "threshold": [Interval(Real, 0.5, 1, closed="right")],
        "expected_false": [Interval(Real, 0, None, closed="neither"), None],
        "assumption": [StrOptions(set(ASSUMPTIONS))],
        "n_pairs": [Interval(Integral, 1, None, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "scale": ["boolean", StrOptions({"auto"})],
        "engine": [StrOptions(set(ENGINES))],
        "steps": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    stability_: Stability
    selection_probabilities_: np.ndarray
    scores_: np.ndarray
    support_: np.ndarray

    def __init__(
        self,
        loss: str | None = None,
        *,
        constraint: str = "l1",
        radii: Sequence[float] | None = None,
        threshold: float = 0.75,
        expected_false: float | None = 1.0,
        assumption: str = "r_concave",
        n_pairs: int = 50,
        epsilon: float = 1.35,
        fit_intercept: bool = True,
        scale: bool | str = True,
        engine: str = "linear",
        steps: int | None = None,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radii = radii
        self.threshold = threshold
        self.expected_false = expected_false
        self.assumption = assumption
        self.n_pairs = n_pairs
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.scale = scale
        self.engine = engine
        self.steps = steps
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> StabilitySelector:
        """Select columns of X, dense or sparse, that y depends on.

        Args:
            X: rows.
            y: numbers, or labels of any kind.
        """
        self._validate_params()
        check_indices(X, "X")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=4)
        self.loss_ = loss_for(y) if self.loss is None else self.loss
        data, labels = targets_for(X, y, self.loss_)
        settings = Settings(
            self.n_features_in_, self.loss_, constraint_name(self.constraint), 1.0, None,
            ANYWHERE if self.fit_intercept else None, float(self.epsilon), labels,
        )  # fmt: skip
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        found = stability_selection(
            settings, divided(data, chosen_scales(data, self.scale)), self.radii, pairs=self.n_pairs,
            threshold=self.threshold, expected_false=self.expected_false, assumption=self.assumption,
            engine=self.engine, steps=self.steps, tol=self.tol, key=seed, n_jobs=self.n_jobs,
            progress=bool(self.verbose),
        )  # fmt: skip
        names = getattr(self, "feature_names_in_", None)
        self.stability_ = found if names is None else replace(found, names=tuple(str(name) for name in names))
        self.radii_, self.selection_probabilities_, self.scores_ = found.radii, found.probabilities, found.scores
        self.support_ = np.isin(np.arange(self.n_features_in_), found.stable)
        self.false_selections_ = found.bound()
        self.n_selected_ = found.selected if found.most_selected is None else found.most_selected
        return self

    def plot(self, path: str | Path | None = None, *, ax: Axes | None = None) -> Figure:
        """The paths: each column's share of half-samples against the radius, those of stable columns in colour.

        Args:
            path: where to save the picture (PNG, PDF or SVG by its ending); None draws without saving.
            ax: axes to draw into; None makes a figure.

        Returns:
            The figure.
        """
        check_is_fitted(self)
        return self.stability_.plot(path, ax=ax)

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_


def targets_for(X: Any, y: np.ndarray, loss: str) -> tuple[Examples, tuple[int, ...] | None]:
    """The rows with targets as the loss wants them, and the classes where there are more than two."""
    function, width = LOSSES[loss], X.shape[1]
    if not function.classifies:
        try:
            targets = np.asarray(y, np.float64)
        except ValueError:
            raise ValueError(f"y holds words, and loss={loss!r} needs numbers; leave loss out for classes") from None
        return examples(X, targets, None, width, function), None
    check_classification_targets(y)
    classes, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got one class, {classes.tolist()[0]!r}")
    numbers = np.issubdtype(classes.dtype, np.number)
    check_rare([repr(label) for label in classes.tolist()], counts.tolist(), numbers)
    if len(classes) == 2:
        return examples(X, np.where(places == 1, 1.0, -1.0), None, width, function), None
    labels = tuple(range(len(classes)))
    return examples(X, places.astype(np.float64), None, width, function, labels), labels
