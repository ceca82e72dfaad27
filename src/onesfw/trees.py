"""Arithmetic on pytrees of float arrays: every x, d and vertex in the library is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.flatten_util import ravel_pytree
from jax.typing import DTypeLike

# The one place of the package's public modules where `Any` is written, for what no checker can say.
Tree = Any  # a pytree of float arrays: arrays in any nest of tuples, lists, dictionaries and modules
HostArray = npt.NDArray[Any]  # a NumPy array; its numbers' type is data, known at run time
DType = np.dtype[Any]
Json = Any  # what a JSON text holds, before it has been checked
Record = Any  # a row of a structured array, as numba's kernels see it
Rows = Any  # X and y: nested lists, NumPy, pandas, any of SciPy's sparse formats; checked where they come in
Function = Callable[..., Any]  # a function whose arguments its caller knows
Array = jax.Array
Floats = npt.NDArray[np.float64]  # NumPy arrays on the host
Counts = npt.NDArray[np.int64]


def ravel(tree: Tree) -> tuple[Array, Callable[[Array], Tree]]:
    """The tree as one vector, and the way back. A tree of one leaf costs nothing."""
    return ravel_pytree(jax.tree.map(jnp.asarray, tree))


def is_floating(leaf: object) -> bool:
    """Whether a leaf is a floating array (keys and integer leaves are not)."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic) and jnp.issubdtype(leaf.dtype, jnp.floating)


def cast(tree: Tree, dtype: DTypeLike) -> Tree:
    """The floating leaves of a tree in another dtype; everything else as it is."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype) if is_floating(leaf) else leaf, tree)


def dtype_of(tree: Tree) -> DType:
    """The common dtype of a tree's leaves."""
    return np.result_type(*(leaf.dtype for leaf in jax.tree.leaves(tree)))


def dot(a: Tree, b: Tree) -> Array:
    """⟨a, b⟩ summed over all leaves."""
    return sum(jax.tree.leaves(jax.tree.map(lambda p, q: jnp.sum(p * q), a, b)), start=jnp.zeros((), dtype_of(a)))


def squared_norm(a: Tree) -> Array:
    """‖a‖² over all leaves."""
    return dot(a, a)


def subtract(a: Tree, b: Tree) -> Tree:
    """a − b."""
    return jax.tree.map(jnp.subtract, a, b)


def add(a: Tree, b: Tree) -> Tree:
    """a + b."""
    return jax.tree.map(jnp.add, a, b)


def scale(factor: float | Array, a: Tree) -> Tree:
    """factor · a."""
    return jax.tree.map(lambda leaf: factor * leaf, a)


def compensated_add(total: Tree, lost: Tree, increment: Tree) -> tuple[Tree, Tree]:
    """total + increment, and the rounding error to take off the next increment (Kahan's summation)."""
    corrected = jax.tree.map(jnp.subtract, increment, lost)
    new = jax.tree.map(jnp.add, total, corrected)
    return new, jax.tree.map(lambda n, t, c: (n - t) - c, new, total, corrected)


def zeros_like(tree: Tree) -> Tree:
    """Zeros of the same shapes and dtypes; accepts `jax.ShapeDtypeStruct` leaves."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype)), tree)


def shapes(tree: Tree) -> Tree:
    """The tree's shapes and dtypes."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


def all_finite(tree: Tree) -> Array:
    """Whether no leaf holds a NaN or an infinity."""
    leaves = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]
    return jnp.all(jnp.stack(leaves)) if leaves else jnp.asarray(True)


def wide() -> bool:
    """Whether 64-bit numbers are enabled here and now."""
    return bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]


def size_in_bytes(tree: Tree) -> int:
    """What a tree's arrays take in memory; accepts `jax.ShapeDtypeStruct` leaves. A key counts eight bytes."""
    return sum(leaf.size * getattr(leaf.dtype, "itemsize", 8) for leaf in jax.tree.leaves(tree))


def describe(tree: Tree) -> str:
    """Shapes in words, for error messages: `(20,)` or `{'w': (20,), 'b': ()}`."""
    leaves = jax.tree.leaves(tree)
    if len(leaves) == 1 and jax.tree_util.treedef_is_leaf(jax.tree.structure(tree)):
        return str(tuple(leaves[0].shape))
    return str(jax.tree.map(lambda leaf: tuple(leaf.shape), tree))


def as_array(value: object, name: str) -> HostArray:
    """NumPy's array of a value; an error where lists of different lengths make none."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        raise ValueError(f"{name} must be an array, and its rows have different lengths") from None
