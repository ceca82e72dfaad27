"""What an objective is to the library: draws of randomness, and what one draw says about F near a point."""

from __future__ import annotations

import abc
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from onesfw import trees
from onesfw.trees import Array, Function, Tree


@dataclass(frozen=True)
class Surrogate:
    """h: a function of y with E ∇h(y) = ∇F(y), made from one draw of randomness at the point x̄.

    For oblivious objectives h(y) = F̃(y; z). For the others h(y) = (F̃(y; z) − b) p(z; y)/p(z; x̄) + b with z drawn at
    x̄, so that ∇h(x̄) = ∇F̃ + (F̃ − b)∇log p and ∇²h(x̄) is the paper's eq. (6).

    Args:
        value: y ↦ h(y).
        gradient: y ↦ ∇h(y).
        hvp: (y, u) ↦ (∇h(y), ∇²h(y) u).
        integrand: F̃(·; z) itself.
        log_prob: log p(z; ·), for objectives whose samples depend on x; None for the others.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2) / 2, [[1.0, 2.0], [3.0, 4.0]])
        >>> h = objective.at(draw=1, point=jnp.zeros(2), baseline=jnp.float32(0.0))
        >>> h.gradient(jnp.zeros(2)).tolist()
        [-3.0, -4.0]
    """

    value: Callable[[Tree], Array]
    gradient: Callable[[Tree], Tree]
    hvp: Callable[[Tree, Tree], tuple[Tree, Tree]]
    integrand: Callable[[Tree], Array]
    log_prob: Callable[[Tree], Array] | None = None


class Objective(eqx.Module):
    """F(x) = E_{z~p(z;x)}[F̃(x; z)]: what a new kind of objective subclasses.

    Example:
        >>> import jax.numpy as jnp
        >>> from onesfw.objectives import Expectation, Objective
        >>> objective = Expectation(lambda x, z: jnp.sum((x - z) ** 2), lambda key: jnp.ones(2))
        >>> isinstance(objective, Objective), sorted(objective.offers)[0]
        (True, 'samples whose distribution does not depend on x')
    """

    domain: ClassVar[tuple[float, float] | None] = None
    """Between which two numbers every entry of x must lie, where F has no meaning elsewhere."""

    @property
    @abc.abstractmethod
    def offers(self) -> Set[str]:
        """Which of the names in `capabilities` this objective has."""

    @abc.abstractmethod
    def draw(self, key: Array, number: Array) -> Tree:
        """The part of sample `number` (0, 1, 2, …) that does not depend on x: a pure function of both arguments."""

    @abc.abstractmethod
    def at(self, draw: Tree, point: Tree, baseline: Array) -> Surrogate:
        """The surrogate h that `draw` gives when sampled at `point`."""

    @abc.abstractmethod
    def check(self, like: Tree, samples: int) -> None:
        """Raise ValueError where the functions do not fit x's shapes, or `samples` draws are more than there are."""


def surrogate(
    integrand: Callable[[Tree], Array],
    gradient: Callable[[Tree], Tree] | None = None,
    product: Callable[[Tree, Tree], Tree] | None = None,
) -> Surrogate:
    """h = F̃(·; z), differentiated by JAX unless the user gave the derivatives."""
    differentiate = jax.grad(integrand) if gradient is None else gradient

    def gradient_like(y: Tree) -> Tree:
        return jax.tree.map(lambda g, leaf: jnp.asarray(g, leaf.dtype), differentiate(y), y)

    def hvp(y: Tree, u: Tree) -> tuple[Tree, Tree]:
        if product is None:
            return jax.jvp(gradient_like, (y,), (u,))
        return gradient_like(y), jax.tree.map(lambda p, leaf: jnp.asarray(p, leaf.dtype), product(y, u), y)

    return Surrogate(integrand, gradient_like, hvp, integrand)


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
