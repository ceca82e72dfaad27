"""Linear classification under a hard norm constraint."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from onesfw.data.sources import check_indices
from onesfw.linear.constraints import CLASSES, CONSTRAINTS
from onesfw.linear.examples import Examples, examples
from onesfw.linear.losses import LOSSES
from onesfw.sklearn.linear_base import LinearOneSFW
from onesfw.sklearn.trace_norm import TRACE, check_parameters, fit_trace


class OneSFWClassifier(ClassifierMixin, LinearOneSFW):
    """Linear classification with ‖x‖ ≤ radius at every moment, by one-sample stochastic Frank-Wolfe.

    Several classes are taken one against the rest, and learn each row together.

    Args:
        constraint: "l1", "l2", "linf", "simplex" (x ≥ 0, Σx = radius) or "nonnegative_l1" (x ≥ 0, Σx ≤ radius);
            "trace" for all classes in one matrix of low rank, Σσ_i ≤ radius, learnt with the softmax loss and SAG in
            one thread: parameters that it cannot serve are refused.
        radius: of the set. None: chosen among seven, by what models of four fifths of the rows lose on the others, and
            10 in `partial_fit`, which must not look ahead. `radius_` tells. With "trace": that at which the gap of the
            best constant is six times its loss, and at most 50 a class over the size of rows around their mean.
        loss: "logistic" or "squared_hinge".
        schedule: a name of `onesfw.linear.SCHEDULES`; None for "auto".
        gradient: "one_sample" (Algorithm 2 of Zhang et al. 2020) or "sag" (Négiar et al. 2020, one number a row).
        max_iter: passes over the data before the polish. None: half a one, three for "trace"; without polish
            20, or as many as make 100,000 steps.
        steps: rows to learn from, instead of passes.
        tol: stop when the Frank-Wolfe gap, computed from all rows, is at most tol times the loss of the best constant
            (of 0 without an intercept). None: never before the passes are over, and the polish goes to 1e-9.
        fit_intercept: learn an intercept, which is not part of the norm and moves by steps of its own.
        intercept_bound: it stays within ± this. None: anywhere.
        class_weight: weights of the classes, or "balanced".
        scale: divide columns by their scales: "auto" where they differ by more than 100, True or False. The constraint
            is then on the coefficients of the scaled columns, `coef_ * scale_`; `coef_` is for the columns as they
            came. `partial_fit` takes the scales from its first 1,000 rows, or from `fit` before it.
        polish: solve for the optimum of the set after the passes, by Newton's method on the nonzero coefficients, for
            "trace" by limited-memory BFGS on factors, until the gap is below tol. `partial_fit` does not polish.
        warm_start: start `fit` at the coefficients of the fit before, with its step sizes, or polish right there.
        random_state: the seed of the order of the rows.
        n_jobs: threads among which the classes are divided; None for one, −1 for all cores. The model is the same
            bit for bit.
        verbose: show a progress bar.

    Attributes:
        coef_, sparse_coef_, intercept_, classes_: the model.
        gap_, objective_: the Frank-Wolfe gap and the mean loss after `fit`, from all rows; arrays for several classes.
        radius_: the radius used.
        scale_: what the columns were divided by; None for nothing.
        n_iter_: passes done and rounds of the polish.

    Warns:
        ConvergenceWarning: from `fit`, where the gap is larger than tol allows or than a tenth of the loss, with what
            will help; after `partial_fit`, once, where a constant loses less than the model, or the default radius
            holds it back near a constant.

    Raises:
        ValueError: from `fit` and `partial_fit`, where a parameter is out of range, X, y or the weights do not fit, or
            y holds one class only.
        FloatingPointError: where the loss overflows: X should be scaled, or the radius lowered.

    Example:
        >>> import numpy as np
        >>> from onesfw.sklearn import OneSFWClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = np.where(X[:, 0] > 0, "above", "below")
        >>> model = OneSFWClassifier("l1", radius=5.0, random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.95, bool(abs(model.coef_).sum() <= 5.0 + 1e-9)
        (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearOneSFW._parameter_constraints,
        "constraint": [StrOptions({*CONSTRAINTS, *CLASSES, TRACE})],
        "loss": [StrOptions({name for name, loss in LOSSES.items() if loss.classifies})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        constraint: str = "l1",
        *,
        radius: float | None = None,
        loss: str = "logistic",
        schedule: str | None = None,
        gradient: str = "one_sample",
        max_iter: int | None = None,
        steps: int | None = None,
        tol: float | None = 1e-6,
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        scale: bool | str = "auto",
        polish: bool = True,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.constraint = constraint
        self.radius = radius
        self.loss = loss
        self.schedule = schedule
        self.gradient = gradient
        self.max_iter = max_iter
        self.steps = steps
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_bound = intercept_bound
        self.class_weight = class_weight
        self.scale = scale
        self.polish = polish
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneSFWClassifier:
        """Train on the rows of X, dense or sparse, with labels of any kind."""
        self._validate_params()
        check_indices(X, "X")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold at least two classes, got one class, {self.classes_.tolist()[0]!r}")
        if self.constraint == TRACE:
            self._fit_trace(X, y, sample_weight)
        else:
            self._train(self._examples(X, y, sample_weight), self._classes())
        return self

    def _fit_trace(self, X: Any, y: Any, sample_weight: Any) -> None:
        """All classes in one matrix of low rank."""
        check_parameters(self, sample_weight)
        places = np.searchsorted(self.classes_, y)
        data = examples(X, places.astype(np.float64), None, self.n_features_in_, LOSSES["squared"])
        learners, model, self.radius_ = fit_trace(self, data, places, len(self.classes_))
        self._learners, self._coef, self._scales = cast(Any, learners), learners.coefs, learners.scales
        self._intercepts, self._sample, self._first = learners.intercepts, None, None
        self.n_iter_, self.gap_, self.objective_ = model.passes + model.rounds, model.gap, model.value

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> OneSFWClassifier:
        """Learn each row once, in order. However a stream is cut into calls, the model is the same bit for bit.

        Up to 5,000 rows are kept, and the coefficients are no worse on them than a constant; not after `fit`. Where
        `scale` is not False, the first 1,000 rows wait for one another; whoever asks before sees what they make.

        Args:
            X: rows.
            y: their labels.
            classes: all labels that will ever come; needed in the first call.
            sample_weight: weights of the rows.
        """
        self._validate_params()
        if self.constraint == TRACE:
            raise ValueError("partial_fit goes without constraint='trace', whose gradient needs all rows; use fit")
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all labels at once; give partial_fit a dict of weights")
        check_indices(X, "X")
        first = not hasattr(self, "_learners")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=first)
        check_classification_targets(y)
        if classes is None and not hasattr(self, "classes_"):
            raise ValueError("classes must be given in the first call of partial_fit: all labels that will ever come")
        if classes is not None:
            known = np.unique(classes)
            if not first and not np.array_equal(known, self.classes_):
                raise ValueError(f"classes={classes!r} differs from the classes before, {self.classes_}; leave it out")
            if len(known) < 2:
                raise ValueError(f"classes must name at least two labels, got {classes!r}")
            self.classes_ = known
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y holds {unknown[0]!r}, which is not among the classes {self.classes_}")
        self._learn(self._examples(X, y, sample_weight), self._classes())
        return self

    def _classes(self) -> int | None:
        """How many classes learn one against the rest; None for two, which one model tells apart."""
        return None if len(self.classes_) == 2 else len(self.classes_)

    def _examples(self, X: Any, y: Any, sample_weight: Any) -> Examples:
        """The rows, with targets −1 and +1 for two classes, and class numbers for more."""
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        places = np.searchsorted(self.classes_, y)
        if self.class_weight is not None:
            weights = weights * compute_class_weight(self.class_weight, classes=self.classes_, y=y)[places]
        two = len(self.classes_) == 2
        targets = np.where(places == 1, 1.0, -1.0) if two else places.astype(np.float64)
        labels = None if two else tuple(range(len(self.classes_)))
        return examples(X, targets, weights, self.n_features_in_, LOSSES[self.loss], labels)

    def decision_function(self, X: Any) -> np.ndarray:
        """⟨a, x⟩ + intercept: positive for the second of two classes; one column a class where there are more."""
        margins = self._margins(X)
        return margins.ravel() if margins.shape[1] == 1 else margins

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest margin."""
        margins = self.decision_function(X)
        places = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        return self.classes_[places]

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> np.ndarray:
        """1/(1 + exp(−margin)), scaled to sum to one over several classes; only for the logistic loss."""
        margins = self.decision_function(X)
        if margins.ndim == 1:
            return np.column_stack([expit(-margins), expit(margins)])
        if self.constraint == TRACE:
            return softmax(margins, axis=1)
        chances = expit(margins)
        totals = chances.sum(axis=1, keepdims=True)
        return np.divide(chances, totals, out=np.full_like(chances, 1 / chances.shape[1]), where=totals > 0)

    @available_if(lambda self: self.loss == "logistic")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
