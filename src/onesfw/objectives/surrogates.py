"""h: what one draw of randomness says about F near a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from onesfw.trees import Array, Tree


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


def at_sample(integrand: Callable[[Tree, Tree], Array], z: Tree) -> Callable[[Tree], Array]:
    """F̃(·; z) for a z that is drawn."""
    return lambda y: integrand(y, z)
