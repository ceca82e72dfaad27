"""Linear regression under a hard norm constraint."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

from onesfw.data.sources import check_indices
from onesfw.linear.examples import Examples, examples
from onesfw.linear.losses import LOSSES
from onesfw.sklearn.linear_base import LinearOneSFW


class OneSFWRegressor(RegressorMixin, LinearOneSFW):
    """Linear regression with ‖x‖ ≤ radius at every moment, by one-sample stochastic Frank-Wolfe.

    Args:
        constraint: "l1", "l2", "linf", "simplex" (x ≥ 0, Σx = radius) or "nonnegative_l1" (x ≥ 0, Σx ≤ radius).
        radius: of the set. None: chosen among seven, by what models of four fifths of the rows lose on the others, and
            10 in `partial_fit`, which must not look ahead. `radius_` tells.
        loss: "squared", "huber" or "poisson" (y ≥ 0, predicts exp of the margin).
        epsilon: where the Huber loss turns linear.
        schedule: a name of `onesfw.linear.SCHEDULES`; None for "auto".
        gradient: "one_sample" (Algorithm 2 of Zhang et al. 2020) or "sag" (Négiar et al. 2020, one number a row).
        max_iter: passes over the data before the polish. None: half a one; without polish 20, or as many as make
            100,000 steps.
        steps: rows to learn from, instead of passes.
        tol: stop when the Frank-Wolfe gap, computed from all rows, is at most tol times the loss of the best constant
            (of 0 without an intercept). None: never before the passes are over, and the polish goes to 1e-9.
        fit_intercept: learn an intercept, which is not part of the norm and moves by steps of its own.
        intercept_bound: it stays within ± this. None: anywhere.
        scale: divide columns by their scales: "auto" where they differ by more than 100, True or False. The constraint
            is then on the coefficients of the scaled columns, `coef_ * scale_`; `coef_` is for the columns as they
            came. `partial_fit` takes the scales from its first 1,000 rows, or from `fit` before it.
        polish: solve for the optimum of the set after the passes, by Newton's method on the nonzero coefficients, until
            the gap is below tol. `partial_fit` does not polish.
        warm_start: start `fit` at the coefficients of the fit before, with its step sizes, or polish right there.
        random_state: the seed of the order of the rows.
        n_jobs: for symmetry; there is one model.
        verbose: show a progress bar.

    Attributes:
        coef_, sparse_coef_, intercept_: the model.
        gap_, objective_: the Frank-Wolfe gap and the mean loss after `fit`, from all rows.
        radius_: the radius used.
        scale_: what the columns were divided by; None for nothing.
        n_iter_: passes done and rounds of the polish.

    Warns:
        ConvergenceWarning: from `fit`, where the gap is larger than tol allows or than a tenth of the loss, with what
            will help; after `partial_fit`, once, where a constant loses less than the model, or the default radius
            holds it back near a constant.

    Raises:
        ValueError: from `fit` and `partial_fit`, where a parameter is out of range, X, y or the weights do not fit, or
            the loss cannot take y.
        FloatingPointError: where the loss overflows: X or y should be scaled, or the radius lowered. The exponentials
            of the Poisson loss alone do not do that.

    Example:
        >>> import numpy as np
        >>> from onesfw.sklearn import OneSFWRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> model = OneSFWRegressor("l1", radius=5.0, random_state=0).fit(X, X @ [1.0, 2.0, -1.0])
        >>> model.coef_.round(1).tolist()
        [1.0, 2.0, -1.0]
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
        tol: float | None = 1e-6,
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
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
        self.epsilon = epsilon
        self.schedule = schedule
        self.gradient = gradient
        self.max_iter = max_iter
        self.steps = steps
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_bound = intercept_bound
        self.scale = scale
        self.polish = polish
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneSFWRegressor:
        """Train on the rows of X, dense or sparse."""
        self._validate_params()
        check_indices(X, "X")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], y_numeric=True)
        self._train(self._examples(X, y, sample_weight))
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneSFWRegressor:
        """Learn each row once, in order. However a stream is cut into calls, the model is the same bit for bit.

        Up to 5,000 rows are kept, and the coefficients are no worse on them than a constant; not after `fit`. Where
        `scale` is not False, the first 1,000 rows wait for one another; whoever asks before sees what they make.
        """
        self._validate_params()
        check_indices(X, "X")
        first = not hasattr(self, "_learners")
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
