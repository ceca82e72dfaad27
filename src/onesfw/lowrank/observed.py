"""The observed entries of a matrix, checked once, in the order that the kernels read; the weights of its norm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse

from onesfw.arguments import choose, named, number, whole_number
from onesfw.data.sources import check_indices
from onesfw.linear.losses import LOSSES, Loss, best_shift
from onesfw.lowrank.bias_ridge import Ridge, estimated_ridge
from onesfw.lowrank.entry_kernels import bias_sweep, counts, merge, place, slopes
from onesfw.trees import HostArray, Rows

ENTRY_LOSSES = ("squared", "huber", "logistic", "poisson")
SMOOTH = 0.5  # the share of the uniform distribution in the weights of rows and columns
FARTHEST = 20.0  # a mean on the scale of log odds or log rates: all signs alike, or no counts at all
SMALLEST = 1e-12  # the largest value at least, but for zeros alone
LARGEST = 1e100  # squares of larger numbers, summed, may be infinite
TILE = 16_384  # columns whose factors stay in the cache
FEWEST_IN_TILE = 2  # entries for each row of each tile: below, the rows cost more than the cache gains
NO_BIASES = (0.0, 0.0)
SWEEPS = 5  # of the biases, before there are factors: they converge fast
MOST_LINES = 2**31 - 1  # rows and columns are numbered in 32 bits


@dataclass(frozen=True)
class Triplets:
    """Row numbers, column numbers and values of the observed entries, as they were given, and the matrix's shape."""

    rows: HostArray
    cols: HostArray
    values: HostArray
    shape: tuple[int, int]
    whole: tuple[int, int] | None = None
    """The matrix's shape with rows and columns that were left out, which count in uniform weights; None for none."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, which: HostArray) -> Triplets:
        """Some of the entries, of the same matrix."""
        return replace(self, rows=self.rows[which], cols=self.cols[which], values=self.values[which])


def triplets(
    rows: Rows, cols: Rows = None, values: Rows = None, shape: tuple[int, int] | None = None, loss: str = "squared"
) -> Triplets:
    """Checked triplets, from three vectors or from a sparse matrix in the place of the first.

    Raises:
        TypeError, ValueError: where they are no entries of one matrix, or values that the loss cannot take.
    """
    if scipy.sparse.issparse(rows):
        if cols is not None or values is not None:
            raise TypeError(
                f"{named('rows')} is a sparse matrix, which holds the columns and values too; give it alone"
            )
        check_indices(rows, named("rows"))
        matrix = scipy.sparse.coo_array(rows)
        (i, j), numbers, found = matrix.coords, matrix.data, matrix.shape
        shape = found if shape is None else shape
    elif cols is None or values is None:
        raise TypeError(
            f"{named('cols')} and {named('values')} are needed beside {named('rows')}, or a scipy sparse matrix alone"
        )
    else:
        i, j, numbers = rows, cols, values
    i, j = indices(i, "rows"), indices(j, "cols")
    numbers = np.asarray(numbers)
    if numbers.dtype.kind not in "fiub" or numbers.ndim != 1:
        raise TypeError(f"{named('values')} must be a vector of numbers, got {numbers.dtype} of shape {numbers.shape}")
    if not len(i) == len(j) == len(numbers):
        raise ValueError(
            f"{named('rows')}, {named('cols')} and {named('values')} must be of one length, got {len(i):,}, {len(j):,} "
            f"and {len(numbers):,}"
        )
    if not len(numbers):
        raise ValueError(f"{named('values')} holds no entry; at least one must be known")
    sizes = checked_shape(shape, i, j)
    check_values(numbers, loss)
    return Triplets(i, j, numbers, sizes)


def indices(given: Rows, argument: str) -> HostArray:
    """A vector of row or column numbers from 0 on, in 32 bits."""
    numbers = np.asarray(given)
    name = named(argument)
    if numbers.ndim != 1:
        raise TypeError(f"{name} must be a vector of whole numbers, got shape {numbers.shape}")
    whole = numbers.dtype.kind in "iu" or (numbers.dtype.kind == "f" and np.array_equal(numbers, np.floor(numbers)))
    if not whole:
        raise TypeError(f"{name} must hold whole numbers, got {numbers.dtype}; MatrixCompletion takes any labels")
    if len(numbers) and numbers.min() < 0:
        raise ValueError(f"{name} holds {numbers.min()}, and numbers count from 0; leave negative ones out")
    if len(numbers) and numbers.max() >= MOST_LINES:
        raise ValueError(f"{name} holds {numbers.max()}; number them below {MOST_LINES:,}")
    return numbers.astype(np.int32, copy=False)


def checked_shape(shape: tuple[int, int] | None, rows: HostArray, cols: HostArray) -> tuple[int, int]:
    """(rows, columns), as given or as the largest numbers tell."""
    least = (int(rows.max()) + 1, int(cols.max()) + 1)
    if shape is None:
        return least
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise TypeError(f"{named('shape')} must be (rows, columns), got {shape!r}")
    sizes = (whole_number(shape[0], "shape", 1, MOST_LINES), whole_number(shape[1], "shape", 1, MOST_LINES))
    for size, needed, argument in zip(sizes, least, ("rows", "cols"), strict=True):
        if needed > size:
            raise ValueError(
                f"{named(argument)} holds {needed - 1:,}, outside of {named('shape')}={sizes}; numbers count from 0"
            )
    return sizes


def check_values(values: HostArray, loss: str) -> None:
    """Raise where a value is no number, or none that the loss can take."""
    choose(loss, ENTRY_LOSSES, "loss")
    name = named("values")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds NaN or infinite numbers; leave those entries out: what is not given is unknown")
    if loss == "logistic" and not np.isin(values, (-1, 1)).all():
        odd = values[~np.isin(values, (-1, 1))][0]
        remedy = "give 2 v − 1 for a v of 0 or 1"
        raise ValueError(f"{name} must be −1 or +1 for {named('loss')}='logistic', got {odd:g}: {remedy}")
    if loss == "poisson" and values.min() < 0:
        raise ValueError(f"{name} must be counts of at least 0 for {named('loss')}='poisson', got {values.min():g}")
    largest = max(float(values.max()), -float(values.min()))
    if largest > LARGEST:
        raise ValueError(f"{name} holds numbers beyond {LARGEST:g}; divide them by some constant")
    if 0 < largest < SMALLEST:
        raise ValueError(f"{name} holds no number beyond {SMALLEST:g}; multiply them by some constant")


@dataclass(frozen=True)
class Observed:
    """Entries by rows, with what they are to be predicted by: the loss, the mean, the weights of the norm.

    The norm is ‖diag(√p) X diag(√q)‖_*: p and q are the shares of the entries in each row and column, smoothed towards
    uniform ones (Salakhutdinov and Srebro 2010), and sum to 1, so that a radius is in the units of the values.
    """

    ptr: HostArray
    cols: HostArray
    y: HostArray
    shape: tuple[int, int]
    loss: Loss
    delta: float
    mean: float
    ridge: Ridge
    """Of the rows' and of the columns' biases; 0 where there are none."""
    p: HostArray
    q: HostArray
    row_counts: HostArray
    col_counts: HostArray
    offset: float = 0.0
    """What was taken off the values before they were rounded: y + offset are the values, nearly."""
    bounds: tuple[float, float] = (-np.inf, np.inf)
    """The least and the largest value."""

    @property
    def n(self) -> int:
        """How many entries there are."""
        return len(self.y)

    @property
    def head(self) -> tuple[HostArray, HostArray, HostArray, int, float, float]:
        """The arguments that every kernel begins with."""
        return self.ptr, self.cols, self.y, self.loss.code, self.delta, self.mean - self.offset

    @cached_property
    def null(self) -> tuple[HostArray, HostArray, float]:
        """X = 0 with its best biases, nearly: those of rows, of columns, and F."""
        bu, bi = np.zeros(self.shape[0]), np.zeros(self.shape[1])
        for _ in range(SWEEPS if self.ridge[0] else 0):
            bias_sweep(*self.head, self.ridge, bu, bi)
        P, Q = (np.zeros((size, 1), self.y.dtype) for size in self.shape)
        total, _ = slopes(*self.head, P, Q, bu, bi, np.empty_like(self.y))
        shrunk = self.ridge[0] * float(bu @ bu) + self.ridge[1] * float(bi @ bi)
        return bu, bi, (total + 0.5 * shrunk) / self.n

    @cached_property
    def floor(self) -> float:
        """The least mean loss that any predictions could have."""
        if self.loss.name != "poisson":
            return 0.0
        counts = self.y[self.y > 0].astype(np.float64)
        return float((counts - counts * np.log(counts)).sum()) / self.n


def observe(
    given: Triplets,
    loss: str,
    *,
    delta: float = 1.0,
    weighted: bool = True,
    ridge: Ridge | None = None,
    dtype: type = np.float32,
    mean: float | None = None,
) -> Observed:
    """Triplets in the order of the kernels; entries that were given twice count once, with their mean.

    A ridge of None is estimated; (0, 0) leaves the biases out.

    Raises:
        ValueError: where an entry was given with both signs, for the logistic loss.
    """
    m, n = given.shape
    function = LOSSES[loss]
    tiles = -(-n // TILE)
    width = TILE if tiles > 1 and len(given) > FEWEST_IN_TILE * tiles * m else n
    ptr = np.zeros(-(-n // width) * m + 1, np.int64)
    counts(given.rows, given.cols, m, width, ptr)
    cols: HostArray = np.empty(len(given), np.int32)
    y: HostArray = np.empty(len(given), dtype)
    values, offset = centred(given.values, loss, mean, ridge, dtype)
    place(given.rows, given.cols, values, m, width, ptr[:-1].copy(), cols, y)
    del values
    kept = merge(ptr, cols, y)
    if kept < len(given):
        cols, y = cols[:kept].copy(), y[:kept].copy()
        if function.classifies and not np.isin(y, (-1, 1)).all():
            raise ValueError(f"{named('values')} holds an entry with both signs; keep one of them")
    if mean is None:
        mean = 0.0 if ridge == NO_BIASES else offset + central(function, delta, y)
    row_counts = np.diff(ptr).reshape(-1, m).sum(0).astype(np.float64)
    col_counts = np.bincount(cols, minlength=n).astype(np.float64)
    p, q = norm_weights(row_counts, col_counts, weighted, given.whole or given.shape)
    bounds = (float(given.values.min()), float(given.values.max()))
    found = Observed(
        ptr,
        cols,
        y,
        given.shape,
        function,
        delta,
        mean,
        ridge or NO_BIASES,
        p,
        q,
        row_counts,
        col_counts,
        offset,
        bounds,
    )
    return replace(found, ridge=estimated_ridge(found)) if ridge is None else found


def centred(
    values: HostArray, loss: str, mean: float | None, ridge: Ridge | None, dtype: type
) -> tuple[HostArray, float]:
    """Values that a mean predicts, without it: single precision would round what is left beside a large one."""
    if loss not in ("squared", "huber") or (mean is None and ridge == NO_BIASES):
        return values.astype(dtype, copy=False), 0.0
    offset = float(np.mean(values, dtype=np.float64)) if mean is None else mean
    rest: HostArray = np.empty(len(values), dtype)
    np.subtract(values, offset, out=rest, dtype=np.float64, casting="same_kind")
    return rest, offset


def norm_weights(
    row_counts: HostArray, col_counts: HostArray, weighted: bool, whole: tuple[int, int]
) -> tuple[HostArray, HostArray]:
    """p and q of the norm, from the entries in each row and column, of a matrix that may have more of both."""
    pair = []
    for entries, size in zip((row_counts, col_counts), whole, strict=True):
        even = np.full(len(entries), 1.0 / size)
        pair.append(SMOOTH * even + (1 - SMOOTH) * entries / entries.sum() if weighted else even)
    return pair[0], pair[1]


def central(loss: Loss, delta: float, y: HostArray) -> float:
    """The number that alone predicts the values best."""
    if loss.name == "squared":
        return float(np.mean(y, dtype=np.float64))
    bound = FARTHEST if loss.name in ("logistic", "poisson") else np.inf
    targets = y.astype(np.float64)
    weights = np.full(len(y), 1.0 / len(y))
    return float(best_shift(loss.code, delta, np.zeros(len(y)), targets, weights, -bound, bound, 0.0))


def checked_delta(delta: object) -> float:
    """Where the Huber loss turns linear."""
    return number(delta, "delta", 0.0, strict=True)


def checked_ridge(ridge: object) -> Ridge | None:
    """The weights of the rows' and the columns' biases: one number for both, two, or None to estimate them."""
    if ridge is None:
        return None
    both = tuple(ridge) if isinstance(ridge, tuple | list | np.ndarray) else (ridge, ridge)
    if len(both) != 2:
        raise ValueError(f"{named('ridge')} must be one number, or two for rows and columns, got {ridge!r}")
    return number(both[0], "ridge", 0.0, strict=True), number(both[1], "ridge", 0.0, strict=True)
