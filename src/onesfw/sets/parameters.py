"""The parameters of sets: checked when a set is built, kept as float64 leaves, cast to x's dtype at every call."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onesfw import trees
from onesfw.trees import Array, HostArray, Tree

Shape = tuple[int, ...]
MOST_ENTRIES = 2**31 - 1  # coordinates are numbered in 32 bits
Parameter = Tree  # a leaf of the set: a float64 NumPy array on the host, a JAX array in x's dtype inside a call


def as_shape(shape: int | tuple[int, ...] | None, name: str, most: float = MOST_ENTRIES) -> Shape | None:
    """A shape argument in one form, of so many entries at most; an integer is a vector's length."""
    if shape is None:
        return None
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not all(isinstance(size, int | np.integer) and size >= 1 for size in sizes):
        raise ValueError(f"{name}: shape must be a positive integer or a tuple of them, got {shape!r}")
    if math.prod(int(size) for size in sizes) > most:
        raise ValueError(f"{name}: shape must have at most {most:,} entries in all, got {shape!r}")
    return tuple(int(size) for size in sizes)


def finite(value: npt.ArrayLike, name: str, what: str) -> HostArray:
    """A finite number or array of numbers as an array leaf; an error names the argument."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: {what} must hold numbers, got {value!r}") from None
    if array.dtype.kind not in "fiub" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(f"{name}: {what} must hold real numbers, got {value!r}")
    if np.ma.is_masked(value):
        raise ValueError(f"{name}: {what} has masked entries: fill them with .filled(...), or leave them out")
    if array.size == 0:
        raise ValueError(f"{name}: {what} is empty: give it at least one entry")
    array = array.astype(np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name}: {what} must be finite, without NaN or infinity, got {value!r}")
    return array


def numbers(value: Tree, name: str, what: str) -> Tree:
    """A number, an array, nested lists of numbers, or a pytree of these, with float64 array leaves."""

    def is_array(node: Tree) -> bool:
        return isinstance(node, list | tuple) and all(
            isinstance(n, int | float | np.number) or is_array(n) for n in node
        )

    if not jax.tree.leaves(value, is_leaf=is_array):
        raise ValueError(f"{name}: {what} is empty: give it at least one entry")
    return jax.tree.map(lambda leaf: finite(leaf, name, what), value, is_leaf=is_array)


def is_number(leaf: object) -> bool:
    """Whether a parameter is one number, and so serves leaves of any shape."""
    return isinstance(leaf, np.ndarray | Array) and leaf.ndim == 0


def matched(prefix: Tree, like: Tree, name: str, what: str) -> Tree:
    """A tree of parameters in the structure, shapes and dtypes of `like`.

    The tree may be a prefix of `like`: a leaf then serves a whole subtree. A number fits any shape.
    """

    def fit(leaf: Parameter, target: Array) -> Array:
        return jnp.broadcast_to(jnp.asarray(leaf, target.dtype), target.shape)

    try:
        full = jax.tree.broadcast(prefix, like)
        if all(
            is_number(leaf) or np.shape(leaf) == target.shape
            for leaf, target in zip(jax.tree.leaves(full), jax.tree.leaves(like), strict=True)
        ):
            return jax.tree.map(fit, full, like)
    except ValueError:
        pass
    raise ValueError(
        f"{name}: {what} has shape {trees.describe(prefix)}, x has {trees.describe(like)}: give both the same shape"
    )


def positive(value: npt.ArrayLike, name: str, what: str) -> HostArray:
    """A positive finite number as an array leaf; an error names the argument."""
    number = finite(value, name, what)
    if number.ndim != 0:
        raise ValueError(f"{name}: {what} must be one number, got an array of shape {number.shape}")
    if not number > 0:
        raise ValueError(f"{name}: {what} must be positive, got {value!r}")
    return number


def within(value: Parameter, bound: Parameter, tol: float) -> Array:
    """value ≤ bound up to tol · max(1, |bound|)."""
    return value <= bound + tol * jnp.maximum(1.0, jnp.abs(bound))
