"""Matrix completion with scikit-learn's conventions; importing this file loads scikit-learn."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from onesfw.arguments import spelled, whole_number
from onesfw.data.sources import check_indices
from onesfw.lowrank.completion import CHOICES, complete, refined
from onesfw.lowrank.entry_stream import EntryStream
from onesfw.lowrank.line_labels import LineLabels
from onesfw.lowrank.low_rank import LowRank
from onesfw.lowrank.observed import ENTRY_LOSSES, NO_BIASES, Triplets, check_values, checked_ridge

Labels = tuple[LineLabels, LineLabels]
"""Of users and of items."""

SPELLING = {"values": "y", "delta": "epsilon", "gap_tol": "tol"}

POSITIVE = Interval(Real, 0, None, closed="neither")


class MatrixCompletion(RegressorMixin, BaseEstimator):
    """Predict entries (user, item) of a matrix from some of them, by a matrix of low rank and biases.

    X holds one entry a row, its user and its item, by labels of any kind that can be hashed, and y the values; or X is
    a scipy sparse matrix, whose stored entries are known, without y. Users and items that were not seen in `fit` are
    predicted by the biases of what is known.

    Args:
        radius: of the trace-norm ball; "path" for the best of a path of radii, on a tenth of the entries held out,
            "simplest" for the smallest within one standard error of it.
        loss: "squared", "huber", "logistic" (y of −1 and +1; chances of +1 are predicted) or "poisson" (counts).
        epsilon: where the Huber loss turns linear.
        weighted: let rows and columns count in the norm by their entries.
        biases: learn one number for each user and item too.
        ridge: the weight of the biases' squares, in entries; two for users and items, None to estimate them.
        max_rank: of the matrix; None for no limit.
        tol: stop when the Frank-Wolfe gap is at most tol times the value, or a hundredth of that of the biases alone.
        stream: what `partial_fit` does: "corrected" for a round of corrected factors and atoms on the entries that it
            keeps, "one_sfw" for one 1-SFW step on the new entries alone, which are forgotten but for their slopes.
        memory: the entries, or slopes of entries, that `partial_fit` keeps, the latest ones.
        random_state: the seed of the held-out entries.
        verbose: show a progress bar.

    Attributes:
        model_: the `LowRank`, whose rows are users and whose columns are items.
        users_, items_: their labels, in the order of its rows and columns.
        radius_, rank_: of the model.
        gap_, objective_: the Frank-Wolfe gap, and the value that it is a bound for.
        n_features_in_, feature_names_in_: 2, the user and the item; and their names, where X had some.

    Raises:
        ValueError, TypeError: from `fit`, `partial_fit` and `predict`, where a parameter is out of range, or X and y
            are no entries.

    Example:
        >>> import numpy as np
        >>> from onesfw.sklearn import MatrixCompletion
        >>> users, items = np.repeat(["ann", "bob", "cat"], 4), np.tile(["a", "b", "c", "d"], 3)
        >>> y = np.array([5, 4, 1, 2, 4, 5, 2, 1, 1, 2, 5, 4])
        >>> model = MatrixCompletion(radius=2.0).fit(np.column_stack([users, items]), y)
        >>> bool(model.predict([["ann", "a"]])[0] > model.predict([["ann", "c"]])[0] + 2)
        True
        >>> [str(item) for item, value in model.recommend("cat", 2, exclude_seen=False)]
        ['c', 'd']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "radius": [StrOptions(set(CHOICES)), POSITIVE],
        "loss": [StrOptions(set(ENTRY_LOSSES))],
        "epsilon": [POSITIVE],
        "weighted": ["boolean"],
        "biases": ["boolean"],
        "ridge": [POSITIVE, tuple, None],
        "max_rank": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [POSITIVE],
        "stream": [StrOptions({"corrected", "one_sfw"})],
        "memory": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    model_: LowRank

    def __init__(
        self,
        radius: float | str = "path",
        *,
        loss: str = "squared",
        epsilon: float = 1.35,
        weighted: bool = True,
        biases: bool = True,
        ridge: float | tuple[float, float] | None = None,
        max_rank: int | None = None,
        tol: float = 1e-3,
        stream: str = "corrected",
        memory: int = 1_000_000,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.radius = radius
        self.loss = loss
        self.epsilon = epsilon
        self.weighted = weighted
        self.biases = biases
        self.ridge = ridge
        self.max_rank = max_rank
        self.tol = tol
        self.stream = stream
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> MatrixCompletion:
        """Learn from known entries.

        Args:
            X: one (user, item) a row, or a scipy sparse matrix.
            y: their values; None for a sparse matrix.
        """
        self._validate_params()
        for name in ("_users", "_items", "_kept", "_stream", "model_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        with spelled(SPELLING):
            given, labels = self._entries(X, y, (LineLabels(), LineLabels()))
            model = complete(
                given.rows, given.cols, given.values, given.shape, radius=self.radius, loss=self.loss,
                delta=float(self.epsilon), weighted=self.weighted, biases=self.biases, ridge=self.ridge,
                max_rank=self.max_rank, gap_tol=float(self.tol), key=self._seed(), progress=bool(self.verbose),
            )  # fmt: skip
        self._adopt(model, given, labels)
        names = names_of(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> MatrixCompletion:
        """Go on with more entries: `fit` at the first call, then a round or a step of what `stream` says.

        New users and items may come; the radius and the limit of the rank stay those of the first call. With
        "corrected" the latest `memory` entries are kept and learnt from, and an entry that comes again replaces what
        was known of it (`fit` takes the mean of one that comes twice): while they fit, it predicts better. With
        "one_sfw" no entry is kept, a call costs the slopes that are kept and (users + items) · rank, and `objective_`
        is the loss of the new entries before they were learnt; there is no gap.

        Args:
            X: one (user, item) a row, or a scipy sparse matrix.
            y: their values; None for a sparse matrix.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        self._validate_params()
        with spelled(SPELLING):
            given, labels = self._entries(X, y, (self._users, self._items))
        if self.stream == "one_sfw":
            stream = self._stream or EntryStream.after(self.model_, self._kept)
            stream = stream.step(given, int(self.memory), self._seed())
            self._adopt(stream.model, stream.d, labels, stream)  # d tells where values were seen, for `recommend`
            return self
        if self._stream is not None:
            raise ValueError("stream was 'one_sfw', which keeps no entries; call fit before stream='corrected'")
        kept = latest(self._kept, given, int(self.memory))
        ridge = checked_ridge(self.ridge) if self.biases else NO_BIASES
        self._adopt(refined(self.model_, kept, ridge=ridge, key=self._seed()), kept, labels)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """What is expected of entries: values, chances of +1 for the logistic loss, rates for counts.

        Args:
            X: one (user, item) a row; of a scipy sparse matrix, the stored entries in the order of its `tocoo()`.
        """
        margins = self._margins(X)
        return self.model_.predictions(margins)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² of the predictions; for the logistic loss, the share of right signs."""
        if scipy.sparse.issparse(X):
            y = entries_of(X).data
        if self.loss == "logistic":
            return float(accuracy_score(np.asarray(y) > 0, self._margins(X) > 0, sample_weight=sample_weight))
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def recommend(self, user: Any, k: int = 10, *, exclude_seen: bool = True) -> list[tuple[Any, float]]:
        """The k items with the largest predictions for a user, best first, each with its prediction.

        Args:
            user: a label; one that was not seen gets what the items' biases say.
            k: how many.
            exclude_seen: leave out the items that the user is known to have a value for.
        """
        check_is_fitted(self)
        row = int(self._users.find(as_column([user]))[0])
        seen = self._kept.cols[self._kept.rows == row] if exclude_seen and row >= 0 else np.zeros(0, np.int32)
        columns, values = self.model_.top_of_code(row, whole_number(k, "k", 1), seen)
        return list(zip(self.items_[columns].tolist(), values.tolist(), strict=True))

    def _adopt(self, model: LowRank, kept: Triplets, labels: Labels, stream: EntryStream | None = None) -> None:
        """Take a model for one's own, with its labels and entries: a call that fails before leaves all as it was."""
        self.model_, self._kept, self._stream = model, kept, stream
        self._users, self._items = labels
        self.users_, self.items_ = as_column(self._users.labels), as_column(self._items.labels)
        self.radius_, self.rank_, self.gap_, self.objective_ = model.radius, model.rank, model.gap, model.value
        self.n_features_in_ = 2

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _entries(self, X: Any, y: Any, known: Labels) -> tuple[Triplets, Labels]:
        """Known entries by the numbers of their users and items, and the labels with those that are new."""
        if scipy.sparse.issparse(X):
            if y is not None:
                raise ValueError("y goes without a sparse X, which holds the values itself")
            matrix = entries_of(X)
            users, items, values = matrix.coords[0], matrix.coords[1], np.asarray(matrix.data)
        else:
            self._check_names(X)
            if y is None:
                raise ValueError("y is needed: the values of the entries; or give X as a scipy sparse matrix")
            users, items = pairs(X)
            values = np.asarray(y)
        if values.ndim != 1 or len(values) != len(users):
            raise ValueError(f"y must hold one value for each of the {len(users):,} entries, got shape {values.shape}")
        if not len(values):
            raise ValueError("X holds no entry; at least one must be known")
        if values.dtype.kind not in "fiub":
            raise TypeError(f"y must hold numbers, got {values.dtype}")
        check_values(values, self.loss)
        labels = known[0].copy(), known[1].copy()
        rows, cols = labels[0].learn(users), labels[1].learn(items)
        return Triplets(rows, cols, values, (len(labels[0]), len(labels[1]))), labels

    def _check_names(self, X: Any) -> None:
        """Raise where columns have other names than in `fit`: users taken for items are all unknown."""
        names, known = names_of(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names != list(known):
            raise ValueError(f"X has the columns {names}, and fit had {list(known)}; give X the same, in that order")

    def _margins(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if scipy.sparse.issparse(X):
            users, items = entries_of(X).coords
        else:
            self._check_names(X)
            users, items = pairs(X)
        return self.model_.margins_of_codes(self._users.find(users), self._items.find(items))


def entries_of(X: Any) -> scipy.sparse.coo_array:
    """The stored entries of a sparse matrix."""
    check_indices(X, "X")
    return scipy.sparse.coo_array(X)


def names_of(X: Any) -> list[str] | None:
    """The columns' names of a data frame; None where X is none, or they are no words."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def pairs(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The two columns of X, in the types of their labels."""
    if hasattr(X, "iloc"):  # a data frame, whose columns may differ in type
        if X.shape[1] != 2:
            raise ValueError(f"X must have two columns, the user and the item, got {X.shape[1]}")
        return tuple(as_column(list(X.iloc[:, c])) for c in (0, 1))  # type: ignore[return-value]
    if hasattr(X, "__array__"):  # tables that are no pandas frames too: polars, Arrow
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(f"X must have two columns, the user and the item, got shape {X.shape}")
        return np.ascontiguousarray(X[:, 0]), np.ascontiguousarray(X[:, 1])
    rows = list(X)
    if not all(isinstance(row, tuple | list | np.ndarray) and len(row) == 2 for row in rows):
        raise ValueError("X must hold one pair (user, item) a row, or be a scipy sparse matrix")
    return as_column([row[0] for row in rows]), as_column([row[1] for row in rows])


def as_column(labels: list[Any]) -> np.ndarray:
    """Labels as a vector: of numbers or words where all are of one kind, of objects otherwise."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and next(iter(kinds)) in (int, str, np.int64, np.int32, np.str_):
        return np.asarray(labels)
    column = np.empty(len(labels), object)
    column[:] = labels
    return column


def latest(before: Triplets, new: Triplets, memory: int) -> Triplets:
    """The latest entries, each once: what came later replaces what was there before."""
    rows, cols = np.concatenate([before.rows, new.rows]), np.concatenate([before.cols, new.cols])
    values = np.concatenate([before.values, new.values])
    places = rows.astype(np.int64) * new.shape[1] + cols
    _, last = np.unique(places[::-1], return_index=True)
    keep = np.sort(len(places) - 1 - last)[-memory:]
    return Triplets(rows[keep], cols[keep], values[keep], new.shape)
