"""F(x) = (1/n) Σ_i loss(x, row_i): an expectation over the rows of a data set."""

from __future__ import annotations

from collections.abc import Callable, Set

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from onesfw import trees
from onesfw.capabilities import FULL_GRADIENT, OBLIVIOUS, ROWS, UNBIASED
from onesfw.objectives.base import Objective
from onesfw.objectives.indices import shuffled_index, uniform_index
from onesfw.objectives.surrogates import Surrogate, at_sample, surrogate
from onesfw.objectives.user_functions import require_callable, require_scalar, require_use, traced
from onesfw.trees import Array, DType, HostArray, Tree

UNUSED = "Compute the loss of the one row that it is given, not of all the data."
SLICE_BYTES = 1 << 22  # rows that a full pass works on at once


class FiniteSum(Objective):
    """F(x) = mean of loss(x, row) over the n rows of `data`.

    Args:
        loss: (x, row) ↦ one number; `row` has the structure of `data` without the leading axis.
        data: a pytree of arrays with a leading axis of length n, such as `(X, y)`. A list of numbers, nested or not,
            counts as an array.
        replacement: draw rows uniformly and independently; False for a fresh random order at every pass.
        indices: fixes the order instead: sample s is row indices[s], of `rows` where that is given.
        rows: the numbers of the rows that count, each as often as it is named: a fold, a half-sample, a bootstrap;
            None for all.

    Raises:
        TypeError: where loss is no function, or the data or indices hold no numbers.
        ValueError: where the data are empty, of unequal lengths, masked or not finite, or an index or a row number is
            out of range.

    Example:
        >>> import onesfw as fw
        >>> X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.5, 0.25, 0.75]
        >>> objective = fw.FiniteSum(lambda x, row: (row[0] @ x - row[1]) ** 2, (X, y))
        >>> objective.n
        3
        >>> result = fw.minimize(objective, fw.sets.L1Ball(1.0, shape=2), steps=2_000)
        >>> bool(result.value < 1e-3)
        True
    """

    loss: Callable[[Tree, Tree], Array] = eqx.field(static=True)
    data: Tree
    rows: HostArray | Array | None
    times: HostArray | Array | None
    """How often each row of the data counts, where `rows` is given."""
    indices: HostArray | Array | None
    replacement: bool = eqx.field(static=True)

    def __init__(
        self,
        loss: Callable[[Tree, Tree], Array],
        data: Tree,
        *,
        replacement: bool = True,
        indices: npt.ArrayLike | None = None,
        rows: npt.ArrayLike | None = None,
    ) -> None:
        require_callable(loss, "FiniteSum", "loss")
        self.loss, self.replacement = loss, bool(replacement)
        self.data = checked_data(data)
        self.rows = self.times = None
        if rows is not None:
            self.rows = checked_indices(rows, self.total, "rows")
            self.times = np.bincount(self.rows, minlength=self.total).astype(np.float32)
        self.indices = None if indices is None else checked_indices(indices, self.n, "indices")

    @property
    def n(self) -> int:
        """The number of rows that count."""
        return self.total if self.rows is None else int(self.rows.shape[0])

    @property
    def total(self) -> int:
        """The number of rows of the data."""
        return int(jax.tree.leaves(self.data)[0].shape[0])

    @property
    def offers(self) -> Set[str]:
        numbered = {ROWS} if self.rows is None else set()
        return {UNBIASED, OBLIVIOUS, FULL_GRADIENT} | numbered

    def draw(self, key: Array, number: Array) -> Array:
        if self.indices is not None:
            place = jnp.asarray(self.indices)[number]
        elif self.replacement:
            place = uniform_index(key, number, self.n)
        else:
            place = shuffled_index(key, number, self.n)
        return place if self.rows is None else jnp.asarray(self.rows)[place]

    def at(self, draw: Tree, point: Tree, baseline: Array) -> Surrogate:
        row = jax.tree.map(lambda leaf: leaf[draw], self.data)
        return surrogate(at_sample(self.loss, row))

    def full_value_and_gradient(self, x: Tree) -> tuple[Array, Tree]:
        """F(x) and ∇F(x), from one pass over the rows in slices with compensated sums."""

        def slice_sum(part: Tree, weights: Array | None) -> tuple[Array, Tree]:
            return jax.value_and_grad(lambda y: weighted(jax.vmap(self.loss, (None, 0))(y, part), weights))(x)

        value, gradient = self.over_slices(slice_sum, None if self.times is None else jnp.asarray(self.times))
        return value / self.n, trees.scale(1 / self.n, gradient)

    def only(self, rows: npt.ArrayLike) -> FiniteSum:
        """The same sum over some rows of the data, each as often as it is named."""
        numbers = checked_indices(rows, self.total, "rows")
        times = np.bincount(numbers, minlength=self.total).astype(np.float32)
        chosen: FiniteSum = eqx.tree_at(
            lambda whole: (whole.rows, whole.times), self, (numbers, times), is_leaf=lambda leaf: leaf is None
        )
        return chosen

    def left_out(self, x: Tree) -> tuple[Array, Array]:
        """The mean loss over the rows of the data that do not count, and its standard error."""
        if self.times is None:
            raise ValueError("FiniteSum: rows leaves none out; give the numbers of the rows that count")
        return self.mean_and_error(x, (jnp.asarray(self.times) == 0).astype(trees.dtype_of(x)))

    def value_and_error(self, x: Tree) -> tuple[Array, Array]:
        """F(x) as the mean of a sample of rows, and its standard error."""
        ones = jnp.ones(self.total) if self.times is None else jnp.asarray(self.times)
        return self.mean_and_error(x, ones.astype(trees.dtype_of(x)))

    def mean_and_error(self, x: Tree, weights: Array) -> tuple[Array, Array]:
        """The weighted mean of the losses, and its standard error where weights count repetitions."""
        count = jnp.sum(weights)

        def losses(part: Tree) -> Array:
            return jax.vmap(self.loss, (None, 0))(x, part)

        mean = self.over_slices(lambda part, some: weighted(losses(part), some), weights) / count
        square = self.over_slices(lambda part, some: weighted((losses(part) - mean) ** 2, some), weights)
        return mean, jnp.sqrt(square / (count * jnp.maximum(count - 1, 1)))

    def over_slices(self, summary: Callable[[Tree, Array | None], Tree], weights: Array | None) -> Tree:
        """Σ summary(rows, their weights) over slices of the data."""
        row_bytes = sum(leaf.size // self.total * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.data))
        size = max(1, min(self.total, SLICE_BYTES // max(1, row_bytes)))

        def of_slice(first: int | Array, count: int) -> Tree:
            part = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, first, count), self.data)
            return summary(part, None if weights is None else lax.dynamic_slice_in_dim(weights, first, count))

        def accumulate(i: Array, state: tuple[Tree, Tree]) -> tuple[Tree, Tree]:
            return trees.compensated_add(*state, of_slice(i * size, size))

        rest = self.total % size
        begun = of_slice(self.total - rest, rest) if rest else of_slice(0, size)
        state = (begun, trees.zeros_like(begun))
        return lax.fori_loop(0 if rest else 1, self.total // size, accumulate, state)[0]

    def check(self, like: Tree, samples: int) -> None:
        check_range(self.data, trees.dtype_of(like))
        row = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.data)
        loss = traced(self.loss, "FiniteSum", "loss(x, row)", like, row)
        require_scalar(loss.shapes, "FiniteSum", "loss(x, row)")
        if self.n > 1:
            require_use(loss, "FiniteSum", "loss(x, row)", "row", UNUSED)
        if self.indices is not None and samples > self.indices.size:
            raise ValueError(
                f"FiniteSum: indices holds {self.indices.size:,} rows but the run draws {samples:,} samples; "
                "lengthen indices or lower steps"
            )


def weighted(values: Array, weights: Array | None) -> Array:
    """Σ w_i v_i; w_i = 1 where there are no weights."""
    return jnp.sum(values) if weights is None else jnp.sum(weights.astype(values.dtype) * values)


def checked_data(data: Tree) -> Tree:
    """The data as arrays; an error says which leaf is wrong and how."""
    if hasattr(data, "tocsr"):
        raise TypeError("FiniteSum: data is a scipy sparse matrix; pass data.toarray()")
    paths, structure = jax.tree_util.tree_flatten_with_path(data, is_leaf=is_array)
    if not paths:
        raise ValueError("FiniteSum: data holds no array; pass a pytree of arrays with one row per example")
    leaves: list[Array | HostArray] = []
    for path, leaf in paths:
        name = f"data{jax.tree_util.keystr(path)}"
        if np.ma.is_masked(leaf):
            raise ValueError(f"FiniteSum: {name} has masked entries; remove or impute them first")
        array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
        if not (jnp.issubdtype(array.dtype, jnp.number) or array.dtype == bool):
            raise TypeError(f"FiniteSum: {name} must hold numbers, got dtype {array.dtype}")
        if array.ndim == 0 or array.shape[0] == 0:
            raise ValueError(f"FiniteSum: {name} needs a leading axis with at least one row, got shape {array.shape}")
        if leaves and array.shape[0] != leaves[0].shape[0]:
            raise ValueError(
                f"FiniteSum: every leaf of data needs the same number of rows; {name} has {array.shape[0]}, "
                f"the first leaf {leaves[0].shape[0]}"
            )
        if trees.is_floating(array) and not bool((np if isinstance(array, np.ndarray) else jnp).isfinite(array).all()):
            raise ValueError(f"FiniteSum: {name} holds NaN or infinite values; remove or impute them first")
        if isinstance(array, np.ndarray) and not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        # float64 stays on the host until a run says in which precision it is wanted.
        leaves.append(jnp.asarray(array) if array.dtype in (np.float32, np.int32) else array)
    return jax.tree.unflatten(structure, leaves)


def is_array(node: Tree) -> bool:
    """Whether a node of the data is a list that stands for an array: of numbers, or of rows of equal lengths."""
    if not isinstance(node, list) or not all(
        isinstance(leaf, int | float | np.number) for leaf in jax.tree.leaves(node)
    ):
        return False
    try:
        return np.asarray(node).size > 0
    except ValueError:  # rows of unequal lengths: a list of arrays
        return False


def check_range(data: Tree, dtype: DType) -> None:
    """Raise ValueError where a number of the data has no place in the precision of the run, x's dtype."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(data):
        floating = trees.is_floating(leaf)
        if not floating and not jnp.issubdtype(leaf.dtype, jnp.integer):
            continue
        target = np.dtype(dtype if floating else jax.dtypes.canonicalize_dtype(leaf.dtype))
        limits: Tree = np.finfo(target) if floating else np.iinfo(target)
        if leaf.dtype.itemsize > target.itemsize and (leaf.min() < limits.min or leaf.max() > limits.max):
            raise ValueError(
                f"FiniteSum: data{jax.tree_util.keystr(path)} holds numbers beyond the range of {target}; "
                "scale them, or pass a float64 x0"
            )


def checked_indices(indices: npt.ArrayLike, n: int, name: str) -> HostArray:
    """Row numbers as int32."""
    try:
        order = np.asarray(indices)
    except (TypeError, ValueError):
        raise TypeError(f"FiniteSum: {name} must be a non-empty vector of integers, got {indices!r}") from None
    if np.ma.is_masked(indices):
        raise ValueError(f"FiniteSum: {name} has masked entries; leave them out with {name}.compressed()")
    if order.ndim != 1 or order.size == 0 or not np.issubdtype(order.dtype, np.integer):
        raise TypeError(f"FiniteSum: {name} must be a non-empty vector of integers, got {order.dtype}{order.shape}")
    if order.min() < 0 or order.max() >= n:
        raise ValueError(f"FiniteSum: {name} must lie in 0..{n - 1}, got {order.min()}..{order.max()}")
    return order.astype(np.int32)
