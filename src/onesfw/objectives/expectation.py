"""F(x) = E_{z~p}[F̃(x; z)] with a distribution that does not depend on x (the oblivious setting)."""

from __future__ import annotations

from collections.abc import Callable, Set

import equinox as eqx
import jax

from onesfw.capabilities import OBLIVIOUS, UNBIASED
from onesfw.objectives.base import Objective
from onesfw.objectives.surrogates import Surrogate, surrogate
from onesfw.objectives.user_functions import (
    require_callable,
    require_like,
    require_scalar,
    require_use,
    sampled,
    shape_of,
    step_key,
    traced,
)
from onesfw.trees import Array, Tree

UNUSED = "Use z in value, or write FiniteSum with one row where F is deterministic."


class Expectation(Objective):
    """F(x) = E[value(x, z)], z = sample(key).

    Where z = T(x, ε) depends on x through a transformation, write it as `value = lambda x, e: f(x, T(x, e))` with
    `sample` drawing ε: the samples then do not depend on x.

    Args:
        value: (x, z) ↦ F̃(x; z), one number; differentiated by JAX.
        sample: key ↦ z, drawn with `jax.random`. A z that does not depend on the key is an error where NumPy's or
            other random numbers are in it, a warning where it is any other constant, as ones or the time of day are,
            and taken for a deterministic objective on purpose where it is made of zeros, or of nothing.
        grad: (x, z) ↦ ∇F̃(x; z), where a better formula than JAX's is known.
        hvp: (x, z, u) ↦ ∇²F̃(x; z) u, likewise.

    Raises:
        TypeError: where an argument is no function. What the functions return is checked when a run is built.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> objective = fw.Expectation(
        ...     value=lambda x, z: jnp.sum((x - z) ** 2) / 2,
        ...     sample=lambda key: 0.3 + 0.1 * jax.random.normal(key, (3,)),
        ... )
        >>> result = fw.minimize(objective, fw.sets.L2Ball(1.0, shape=3), steps=1_000, evaluate=False)
        >>> bool(jnp.all(jnp.abs(result.x - 0.3) < 0.05))
        True
    """

    value: Callable[[Tree, Tree], Array] = eqx.field(static=True)
    sample: Callable[[Array], Tree] = eqx.field(static=True)
    grad: Callable[[Tree, Tree], Tree] | None = eqx.field(static=True)
    hvp: Callable[[Tree, Tree, Tree], Tree] | None = eqx.field(static=True)

    def __init__(
        self,
        value: Callable[[Tree, Tree], Array],
        sample: Callable[[Array], Tree],
        *,
        grad: Callable[[Tree, Tree], Tree] | None = None,
        hvp: Callable[[Tree, Tree, Tree], Tree] | None = None,
    ) -> None:
        require_callable(value, "Expectation", "value")
        require_callable(sample, "Expectation", "sample")
        require_callable(grad, "Expectation", "grad", optional=True)
        require_callable(hvp, "Expectation", "hvp", optional=True)
        self.value, self.sample, self.grad, self.hvp = value, sample, grad, hvp

    @property
    def offers(self) -> Set[str]:
        return {UNBIASED, OBLIVIOUS}

    def draw(self, key: Array, number: Array) -> Tree:
        return self.sample(step_key(key, number))

    def at(self, draw: Tree, point: Tree, baseline: Array) -> Surrogate:
        grad, hvp = self.grad, self.hvp
        return surrogate(
            lambda y: self.value(y, draw),
            None if grad is None else lambda y: grad(y, draw),
            None if hvp is None else lambda y, u: hvp(y, draw, u),
        )

    def check(self, like: Tree, samples: int) -> None:
        z, random = sampled(self.sample, "Expectation", "sample(key)", jax.random.key(0))
        value = traced(self.value, "Expectation", "value(x, z)", like, z)
        require_scalar(value.shapes, "Expectation", "value(x, z)")
        if random:
            require_use(value, "Expectation", "value(x, z)", "sample z", UNUSED)
        if self.grad is not None:
            require_like(shape_of(self.grad, "Expectation", "grad(x, z)", like, z), like, "Expectation", "grad(x, z)")
        if self.hvp is not None:
            product = shape_of(self.hvp, "Expectation", "hvp(x, z, u)", like, z, like)
            require_like(product, like, "Expectation", "hvp(x, z, u)")
