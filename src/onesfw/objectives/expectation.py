"""F(x) = E_{z~p}[F̃(x; z)] with a distribution that does not depend on x (the oblivious setting)."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

import equinox as eqx
import jax

from onesfw.capabilities import OBLIVIOUS, UNBIASED
from onesfw.objectives.base import (
    Objective,
    Surrogate,
    require_callable,
    require_like,
    require_scalar,
    shape_of,
    step_key,
    surrogate,
)
from onesfw.trees import Array, Tree


class Expectation(Objective):
    """F(x) = E[value(x, z)], z = sample(key).

    `value(x, z)` returns one number and is differentiated by JAX; `grad(x, z)` and `hvp(x, z, u)` replace JAX's
    derivatives where a better formula is known. Where z = T(x, ε) depends on x through a transformation, write it as
    `value = lambda x, e: f(x, T(x, e))` with `sample` drawing ε: the samples then do not depend on x.
    """

    value: Callable[..., Any] = eqx.field(static=True)
    sample: Callable[..., Any] = eqx.field(static=True)
    grad: Callable[..., Any] | None = eqx.field(static=True)
    hvp: Callable[..., Any] | None = eqx.field(static=True)

    def __init__(
        self,
        value: Callable[..., Any],
        sample: Callable[..., Any],
        *,
        grad: Callable[..., Any] | None = None,
        hvp: Callable[..., Any] | None = None,
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
        z = shape_of(self.sample, "Expectation", "sample(key)", jax.random.key(0))
        require_scalar(shape_of(self.value, "Expectation", "value(x, z)", like, z), "Expectation", "value(x, z)")
        if self.grad is not None:
            require_like(shape_of(self.grad, "Expectation", "grad(x, z)", like, z), like, "Expectation", "grad(x, z)")
        if self.hvp is not None:
            product = shape_of(self.hvp, "Expectation", "hvp(x, z, u)", like, z, like)
            require_like(product, like, "Expectation", "hvp(x, z, u)")
