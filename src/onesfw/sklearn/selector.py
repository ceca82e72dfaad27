"""Feature and row selection with scikit-learn's conventions; importing this file loads scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from onesfw.data.sources import check_indices
from onesfw.submodular.base import Function
from onesfw.submodular.facility import FacilityLocation, similarities
from onesfw.submodular.features import FeatureBased
from onesfw.submodular.logdet import LogDet
from onesfw.submodular.matroids import PartitionMatroid, UniformMatroid
from onesfw.submodular.select import select
from onesfw.submodular.selection import Selection

FUNCTIONS = ("facility-location", "log-determinant")
ROW_FUNCTIONS = (*FUNCTIONS, "feature-based")
Groups = Sequence[str] | Sequence[int] | np.ndarray
WHOLE = Interval(Integral, 1, None, closed="left")
SHARED: dict[str, list[Any]] = {
    "groups": ["array-like", None],
    "per_group": [WHOLE, None],
    "steps": [Interval(Integral, 2, None, closed="left")],
    "polish": ["boolean"],
    "random_state": ["random_state"],
}


class ColumnSelector(SelectorMixin):
    """What selects columns of X, which may be sparse."""

    def transform(self, X: Any) -> Any:
        """X without the columns that were not selected.

        Args:
            X: rows, dense or sparse.
        """
        check_indices(X, "X")
        return super().transform(X)


class SubmodularSelector(ColumnSelector, BaseEstimator):
    """Select the columns of X that represent all of them best, by `onesfw.select`.

    With "facility-location" every column is served by its most similar chosen one, similarity being |correlation|;
    with "log-determinant" the chosen columns are jointly informative, f = log det(I + correlations). y is not used.
    `RowSelector` selects rows.

    Args:
        n_features_to_select: how many columns to keep, at most as many as there are; None for half of them.
        function: "facility-location" or "log-determinant".
        groups: a group per column, where at most `per_group` columns of each group may be kept.
        per_group: the limit within a group; goes with `groups`, in place of `n_features_to_select`.
        steps: of `select`.
        polish: one sweep of improving exchanges at the end.
        random_state: None, a seed or a NumPy RandomState.

    Attributes:
        support_: the mask of the columns kept.
        selection_: the `Selection`, with its value, its upper bound and the certified ratio.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.

    Raises:
        ValueError: from `fit`, where a parameter is out of range or does not go with another.

    Example:
        >>> import numpy as np
        >>> from onesfw.sklearn import SubmodularSelector
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> twins = np.hstack([X, X + 0.01])  # columns 0 and 2, 1 and 3
        >>> chosen = SubmodularSelector(2, steps=100, random_state=0).fit(twins).get_support(indices=True)
        >>> sorted((chosen % 2).tolist())
        [0, 1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": [WHOLE, None],
        "function": [StrOptions(set(FUNCTIONS))],
        **SHARED,
    }

    support_: np.ndarray
    selection_: Selection

    def __init__(
        self,
        n_features_to_select: int | None = None,
        *,
        function: str = "facility-location",
        groups: Groups | None = None,
        per_group: int | None = None,
        steps: int = 2_000,
        polish: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.function = function
        self.groups = groups
        self.per_group = per_group
        self.steps = steps
        self.polish = polish
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> SubmodularSelector:
        """Choose the columns.

        Args:
            X: samples × columns, finite numbers.
            y: not used.
        """
        self._validate_params()
        table = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        n = table.shape[1]
        likeness = correlations(table)
        function: Function = FacilityLocation(np.abs(likeness)) if self.function == FUNCTIONS[0] else LogDet(likeness)
        matroid = matroid_of(
            self.n_features_to_select, n // 2, self.groups, self.per_group, n, "n_features_to_select", "column"
        )
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self.selection_ = select(function, matroid, steps=self.steps, polish=self.polish, key=int(seed))
        self.support_ = np.isin(np.arange(n), self.selection_.indices)
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_


class RowSelector(BaseEstimator):
    """Select the rows of X that represent all of them best, by `onesfw.select`.

    With "facility-location" every row is served by its most similar chosen one, similarity being exp(−d²/median d²);
    with "log-determinant" the chosen rows are jointly informative; with "feature-based" Σ over columns of the square
    root of the chosen rows' sum is large, X not negative. `fit_transform` returns the chosen rows, for instance to
    train on them with `sample_weight_`. There is no `transform`: the rows are those of the X that was fitted.

    Args:
        n_rows_to_select: how many rows to keep, at most as many as there are; None for a tenth of them.
        function: "facility-location", "log-determinant" or "feature-based".
        groups: a group per row, where at most `per_group` rows of each group may be kept.
        per_group: the limit within a group; goes with `groups`, in place of `n_rows_to_select`.
        neighbors: of "facility-location": so many nearest rows are compared with each one; None for all of them up to
            15,000 rows and for 100 beyond, see `FacilityLocation`.
        steps: of `select`.
        polish: one sweep of improving exchanges at the end.
        random_state: None, a seed or a NumPy RandomState.

    Attributes:
        indices_: the rows kept, in increasing order.
        sample_weight_: how many rows of X each of them represents, itself among them: those it is nearest to. They add
            up to the rows of X.
        selection_: the `Selection`, with its value, its upper bound and the certified ratio.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.

    Raises:
        ValueError: from `fit`, where a parameter is out of range or does not go with another.

    Example:
        >>> import numpy as np
        >>> from onesfw.sklearn import RowSelector
        >>> X = np.repeat([[0.0, 0.0], [5.0, 1.0]], [30, 10], axis=0)
        >>> selector = RowSelector(2, steps=100, random_state=0)
        >>> selector.fit_transform(X).tolist(), selector.sample_weight_.tolist()
        ([[0.0, 0.0], [5.0, 1.0]], [30.0, 10.0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_rows_to_select": [WHOLE, None],
        "function": [StrOptions(set(ROW_FUNCTIONS))],
        "neighbors": [WHOLE, None],
        **SHARED,
    }

    indices_: np.ndarray
    sample_weight_: np.ndarray
    selection_: Selection

    def __init__(
        self,
        n_rows_to_select: int | None = None,
        *,
        function: str = "facility-location",
        groups: Groups | None = None,
        per_group: int | None = None,
        neighbors: int | None = None,
        steps: int = 2_000,
        polish: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_rows_to_select = n_rows_to_select
        self.function = function
        self.groups = groups
        self.per_group = per_group
        self.neighbors = neighbors
        self.steps = steps
        self.polish = polish
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> RowSelector:
        """Choose the rows.

        Args:
            X: samples × columns, finite numbers.
            y: not used.
        """
        self._validate_params()
        points = validate_data(self, X, dtype=np.float64)
        n = points.shape[0]
        matroid = matroid_of(self.n_rows_to_select, n // 10, self.groups, self.per_group, n, "n_rows_to_select", "row")
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self.selection_ = select(
            self.row_function(points), matroid, steps=self.steps, polish=self.polish, key=int(seed)
        )
        self.indices_ = self.selection_.indices
        nearest = pairwise_distances_argmin(points, points[self.indices_])
        nearest[self.indices_] = np.arange(self.indices_.size)  # each chosen row stands for itself, twins or not
        self.sample_weight_ = np.bincount(nearest, minlength=self.indices_.size).astype(np.float64)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> Any:
        """Choose the rows and return them, in their order and of the kind of X: an array or a data frame.

        Args:
            X: samples × columns, finite numbers.
            y: not used.
        """
        return _safe_indexing(X, self.fit(X).indices_)

    def row_function(self, points: np.ndarray) -> Function:
        """The set function of the parameters over the rows."""
        if self.function == "facility-location":
            return FacilityLocation(features=points, neighbors=self.neighbors)
        if self.neighbors is not None:
            raise ValueError("neighbors goes with function='facility-location'")
        if self.function == "log-determinant":
            return LogDet(similarities(points, "rbf"))
        return FeatureBased(points)


def matroid_of(
    wanted: int | None, default: int, groups: Groups | None, per_group: int | None, n: int, argument: str, noun: str
) -> UniformMatroid | PartitionMatroid:
    """What the parameters allow, for n columns or rows."""
    if (groups is None) != (per_group is None):
        raise ValueError("groups and per_group go together: give both, or neither")
    if groups is not None and per_group is not None:
        if wanted is not None:
            raise ValueError(f"{argument} goes without groups, where per_group says how many to keep")
        if len(groups) != n:
            raise ValueError(f"groups must hold one group per {noun}, {n} in all, got {len(groups)}")
        return PartitionMatroid(groups, per_group)
    count = max(1, default) if wanted is None else wanted
    if count > n:
        raise ValueError(f"{argument}={count} is more than the {n} {noun}s of X; lower it")
    return UniformMatroid(n, count)


def correlations(X: np.ndarray) -> np.ndarray:
    """Correlations of the columns; a constant column is like itself and like nothing else."""
    centred = np.where(X.max(0) == X.min(0), 0.0, X - X.mean(0))  # the mean of equal numbers may differ from them
    centred = centred / np.maximum(np.abs(centred).max(0), np.finfo(float).tiny)  # no overflow in the squares below
    lengths = np.linalg.norm(centred, axis=0)
    unit = centred / np.where(lengths > 0, lengths, 1.0)
    made = np.clip(unit.T @ unit, -1.0, 1.0)
    np.fill_diagonal(made, 1.0)
    return (made + made.T) / 2
