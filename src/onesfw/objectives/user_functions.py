"""What is checked of a user's functions before anything is compiled, and the key of a sample."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from onesfw import trees
from onesfw.arguments import warn
from onesfw.objectives.tracing import Tracing, reason_of, same_numbers, trace
from onesfw.trees import Array, Function, Tree


def step_key(key: Array, number: Array) -> Array:
    """The key of sample `number`."""
    return jax.random.fold_in(key, number)


def require_callable(function: object, owner: str, name: str, optional: bool = False) -> None:
    """Raise TypeError where an argument is no function."""
    if not (callable(function) or (optional and function is None)):
        raise TypeError(f"{owner}: {name} must be a function, got {type(function).__name__}")


class ObjectiveWarning(UserWarning):
    """A user's function does what it says, and it is hardly what was meant."""


def traced(function: Function, owner: str, signature: str, *args: Tree) -> Tracing:
    """A user's function as JAX sees it; a ValueError says how it was called and why it failed.

    It is traced twice: numbers that differ from one tracing to the next come from NumPy's or Python's generators, and
    would be constants of the compiled run.
    """
    try:
        first, second = trace(function, *args), trace(function, *args)
    except Exception as error:
        shapes = ", ".join(trees.describe(a) for a in args if jax.tree.leaves(a))
        raise ValueError(f"{owner}: {signature} failed on arguments of shapes {shapes}: {reason_of(error)}") from error
    if not same_numbers(first, second):
        raise ValueError(
            f"{owner}: {signature} computes with other numbers every time it is traced, and a compiled run would "
            "freeze them into constants: np.random does not work here, nor does the clock; use jax.random with the "
            "key, in sample"
        )
    return first


def shape_of(function: Function, owner: str, signature: str, *args: Tree) -> Tree:
    """The abstract result of a user's function."""
    return traced(function, owner, signature, *args).shapes


def sampled(function: Function, owner: str, signature: str, *args: Tree) -> tuple[Tree, bool]:
    """The shapes of z, and whether it is random: whether it depends on the key, the first of `args`.

    A z of zeros, or of nothing, is a deterministic objective on purpose, and nothing is said about it.

    Raises:
        ValueError: where z is drawn with another key than the one given.
    """
    found = traced(function, owner, signature, *args)
    if found.depends_on(0):
        return found.shapes, True
    if found.draws:
        raise ValueError(
            f"{owner}: {signature} draws from a key of its own, so that every sample is the same; use jax.random with "
            "the key that it is given"
        )
    if found.holds_arrays or found.holds_numbers:
        warn(
            f"{owner}: {signature} does not depend on its key, so that every sample is the same: np.random and the "
            "clock are frozen into one constant by tracing. Use jax.random with the key (FiniteSum with one row, or a "
            "z of zeros, if F is deterministic)",
            ObjectiveWarning,
        )
    return found.shapes, False


def require_use(function: Tracing, owner: str, signature: str, name: str, remedy: str) -> None:
    """Warn where a loss does not depend on its row or sample, its second argument."""
    if function.arguments[1] and not function.depends_on(1):
        text = f"{owner}: {signature} does not depend on its {name}: every sample says the same about F. {remedy}"
        warn(text, ObjectiveWarning)


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
