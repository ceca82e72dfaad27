"""What is checked of a user's functions before anything is compiled, and the key of a sample."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from onesfw import trees
from onesfw.trees import Array, Function, Tree


def step_key(key: Array, number: Array) -> Array:
    """The key of sample `number`."""
    return jax.random.fold_in(key, number)


def require_callable(function: object, owner: str, name: str, optional: bool = False) -> None:
    """Raise TypeError where an argument is no function."""
    if not (callable(function) or (optional and function is None)):
        raise TypeError(f"{owner}: {name} must be a function, got {type(function).__name__}")


def shape_of(function: Function, owner: str, signature: str, *args: Tree) -> Tree:
    """The abstract result of a user's function; a ValueError says how it was called and why it failed."""
    try:
        return jax.eval_shape(function, *args)
    except Exception as error:
        shapes = ", ".join(trees.describe(a) for a in args if jax.tree.leaves(a))
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{owner}: {signature} failed on arguments of shapes {shapes}: {reason}") from error


def require_scalar(result: Tree, owner: str, signature: str) -> None:
    """Raise ValueError where a loss or log-density is not one real number."""
    leaves = jax.tree.leaves(result)
    if len(leaves) != 1 or leaves[0].shape != () or not jnp.issubdtype(leaves[0].dtype, jnp.floating):
        got = [f"{leaf.dtype}{tuple(leaf.shape)}" for leaf in leaves]
        raise ValueError(f"{owner}: {signature} must return one real number, got {', '.join(got) or 'nothing'}")


def require_like(result: Tree, like: Tree, owner: str, signature: str) -> None:
    """Raise ValueError where a derivative does not have x's structure and shapes."""
    if trees.describe(result) != trees.describe(like):
        raise ValueError(
            f"{owner}: {signature} must have the shapes of x, {trees.describe(like)}, got {trees.describe(result)}"
        )
