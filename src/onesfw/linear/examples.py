"""Rows, targets and weights, checked once and in the types the kernels are compiled for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from onesfw.data.sources import check_indices
from onesfw.linear.losses import Loss
from onesfw.trees import HostArray, Rows

LARGEST = 1e100  # squares of larger numbers, summed, may be infinite


@dataclass(frozen=True)
class Examples:
    """CSR rows without duplicate entries, float64 targets and weights.

    Args:
        indptr: where each row begins in `indices` and `values`, and where the last one ends; int64.
        indices: the columns of the entries; uint32.
        values: the entries; float32 or float64.
        targets: y of each row.
        weights: of each row.
        n_features: the number of columns.

    Example:
        >>> from onesfw.linear import LOSSES, examples
        >>> rows = examples([[1.0, 0.0], [2.0, 3.0]], [1.0, -2.0], None, 2, LOSSES["squared"])
        >>> rows.indptr.tolist(), rows.values.tolist(), rows.size
        ([0, 1, 3], [1.0, 2.0, 3.0], 2)
    """

    indptr: HostArray
    indices: HostArray
    values: HostArray
    targets: HostArray
    weights: HostArray
    n_features: int

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.targets)

    def __setstate__(self, state: dict[str, HostArray]) -> None:
        """Rows that came from another process, in the types the kernels are compiled for: pickling forgets that arrays
        cannot be written to, and joblib hands large ones over as files."""
        for name, value in state.items():
            object.__setattr__(self, name, value if name == "n_features" else read_only(np.asarray(value)))

    @property
    def matrix(self) -> scipy.sparse.csr_array:
        """The rows as a SciPy matrix; nothing is copied."""
        indices = self.indices.view(np.int32)
        return scipy.sparse.csr_array((self.values, indices, self.indptr), (self.size, self.n_features))


def examples(
    rows: Rows, targets: Rows, weights: Rows, n_features: int, loss: Loss, labels: tuple[int, ...] | None = None
) -> Examples:
    """Check a matrix (CSR or dense), its targets and weights; copies only what has another type.

    Args:
        rows: the matrix, one row an example.
        targets: y, one number a row: class numbers with `labels`; without, −1 and +1 for a loss that classifies.
        weights: one number a row, none negative; None for 1.
        n_features: the columns that the matrix must have.
        loss: that the targets must fit.
        labels: the classes of models that learn one against the rest; None for one model.

    Returns:
        The rows in the types the kernels are compiled for.

    Raises:
        TypeError: where targets or weights are no numbers.
        ValueError: where shapes do not fit, a number is not finite, a weight is negative, or the loss cannot take a
            target.

    Example:
        >>> from onesfw.linear import LOSSES, examples
        >>> examples([[1.0, 0.0], [2.0, 3.0]], [1.0, -2.0], None, 2, LOSSES["squared"]).weights.tolist()
        [1.0, 1.0]
        >>> examples([[1.0]], [0.5], None, 1, LOSSES["logistic"])
        Traceback (most recent call last):
        ValueError: targets must be -1 or +1 for loss='logistic'
    """
    if isinstance(rows, np.ndarray) or not scipy.sparse.issparse(rows):
        dense = np.asarray(rows)
        if dense.ndim != 2:
            raise ValueError(f"rows must be a matrix, one row an example, got an array of shape {dense.shape}")
        rows = scipy.sparse.csr_array(dense)
    check_indices(rows, "rows")
    matrix = rows.tocsr()
    if matrix.shape[1] != n_features:
        raise ValueError(f"rows must have {n_features:,} columns, got {matrix.shape[1]:,}")
    if n_features > np.iinfo(np.int32).max:
        raise ValueError(f"rows must have at most {np.iinfo(np.int32).max:,} columns; hash the features to fewer")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = matrix.data if matrix.data.dtype == np.float32 else np.asarray(matrix.data, np.float64)
    if not np.isfinite(values).all():
        raise ValueError("rows must be finite: replace NaN and infinity before training")
    if values.size and float(max(values.max(), -values.min())) > LARGEST:
        raise ValueError(f"rows must hold no numbers beyond {LARGEST:g}: scale the columns")
    targets = check_targets(targets, matrix.shape[0], loss, labels)
    indices = np.ascontiguousarray(matrix.indices, np.int32).view(np.uint32)
    weights = check_weights(weights, matrix.shape[0])
    return Examples(
        read_only(np.ascontiguousarray(matrix.indptr, np.int64)), read_only(indices),
        read_only(np.ascontiguousarray(values)), read_only(targets), read_only(weights), n_features,
    )  # fmt: skip


def read_only(array: HostArray) -> HostArray:
    """A view that cannot be written to: a kernel is compiled anew for arrays that can and for those that cannot."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_targets(targets: Rows, size: int, loss: Loss, labels: tuple[int, ...] | None = None) -> HostArray:
    """float64 targets that the loss can take."""
    targets = np.ascontiguousarray(targets, np.float64)
    if targets.shape != (size,):
        raise ValueError(f"targets must be one number for each of the {size:,} rows, got shape {targets.shape}")
    if not np.isfinite(targets).all():
        raise ValueError("targets must be finite: drop the rows without a target")
    if size and max(targets.max(), -targets.min()) > LARGEST:
        raise ValueError(f"targets must hold no numbers beyond {LARGEST:g}: scale them")
    if loss.classifies and labels is None and not np.isin(targets, (-1.0, 1.0)).all():
        raise ValueError(f"targets must be -1 or +1 for loss={loss.name!r}")
    if size and targets.min() < loss.least_target:
        raise ValueError(
            f"targets must be at least {loss.least_target:g} for loss={loss.name!r}, got {targets.min():g}"
        )
    return targets


def check_weights(weights: Rows, size: int) -> HostArray:
    """float64 weights, 1 by default."""
    if weights is None:
        return np.ones(size)
    weights = np.ascontiguousarray(weights, np.float64)
    if weights.shape != (size,):
        raise ValueError(f"weights must be one number for each of the {size:,} rows, got shape {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("weights must be finite and not negative")
    return weights
