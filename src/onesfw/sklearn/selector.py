"""Feature selection with scikit-learn's conventions; importing this file loads scikit-learn."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from onesfw.submodular.base import Function
from onesfw.submodular.facility import FacilityLocation
from onesfw.submodular.logdet import LogDet
from onesfw.submodular.matroids import PartitionMatroid, UniformMatroid
from onesfw.submodular.select import Selection, select

FUNCTIONS = ("facility-location", "log-determinant")


class SubmodularSelector(SelectorMixin, BaseEstimator):
    """Select the columns of X that represent all of them best, by `onesfw.select`.

    With "facility-location" every column is served by its most similar chosen one, similarity being |correlation|;
    with "log-determinant" the chosen columns are jointly informative, f = log det(I + correlations). y is not used.
    Rows are selected with `onesfw.select` itself.

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
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None],
        "function": [StrOptions(set(FUNCTIONS))],
        "groups": ["array-like", None],
        "per_group": [Interval(Integral, 1, None, closed="left"), None],
        "steps": [Interval(Integral, 2, None, closed="left")],
        "polish": ["boolean"],
        "random_state": ["random_state"],
    }

    support_: np.ndarray
    selection_: Selection

    def __init__(
        self,
        n_features_to_select: int | None = None,
        *,
        function: str = "facility-location",
        groups: Any = None,
        per_group: int | None = None,
        steps: int = 2_000,
        polish: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.function = function
        self.groups = groups
        self.per_group = per_group
        self.steps = steps
        self.polish = polish
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SubmodularSelector:
        """Choose the columns.

        Args:
            X: samples × columns, finite numbers.
            y: not used.
        """
        self._validate_params()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        n = X.shape[1]
        likeness = correlations(X)
        function: Function = FacilityLocation(np.abs(likeness)) if self.function == FUNCTIONS[0] else LogDet(likeness)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self.selection_ = select(function, self.matroid(n), steps=self.steps, polish=self.polish, key=int(seed))
        self.support_ = np.isin(np.arange(n), self.selection_.indices)
        return self

    def matroid(self, n: int) -> UniformMatroid | PartitionMatroid:
        """What the parameters allow, for n columns."""
        if (self.groups is None) != (self.per_group is None):
            raise ValueError("groups and per_group go together: give both, or neither")
        if self.groups is not None:
            if self.n_features_to_select is not None:
                raise ValueError("n_features_to_select goes without groups, where per_group says how many to keep")
            if len(self.groups) != n:
                raise ValueError(f"groups must hold one group per column, {n} in all, got {len(self.groups)}")
            return PartitionMatroid(self.groups, self.per_group)
        wanted = max(1, n // 2) if self.n_features_to_select is None else self.n_features_to_select
        if wanted > n:
            raise ValueError(f"n_features_to_select={wanted} is more than the {n} columns of X; lower it")
        return UniformMatroid(n, wanted)

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_


def correlations(X: np.ndarray) -> np.ndarray:
    """Correlations of the columns; a constant column is like itself and like nothing else."""
    centred = np.where(X.max(0) == X.min(0), 0.0, X - X.mean(0))  # the mean of equal numbers may differ from them
    centred = centred / np.maximum(np.abs(centred).max(0), np.finfo(float).tiny)  # no overflow in the squares below
    lengths = np.linalg.norm(centred, axis=0)
    unit = centred / np.where(lengths > 0, lengths, 1.0)
    made = np.clip(unit.T @ unit, -1.0, 1.0)
    np.fill_diagonal(made, 1.0)
    return (made + made.T) / 2
