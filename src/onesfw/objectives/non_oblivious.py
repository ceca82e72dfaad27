"""F(x) = E_{z~p(z;x)}[F̃(x; z)] with a distribution that depends on x (the non-oblivious setting)."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp

from onesfw.capabilities import DENSITY, UNBIASED
from onesfw.objectives.base import Objective
from onesfw.objectives.surrogates import Surrogate, surrogate
from onesfw.objectives.user_functions import require_callable, require_scalar, sampled, shape_of, step_key
from onesfw.trees import Array, Tree


class NonOblivious(Objective):
    """F(x) = E[value(x, z)], z = sample(key, x) with log-density `log_prob(z, x)`.

    With z drawn at x̄ one surrogate carries everything: h(y) = (F̃(y; z) − b) p(z; y)/p(z; x̄) + b. Its gradient at x̄
    is unbiased for ∇F(x̄), its Hessian there is the paper's eq. (6), and E ∇h(y) = ∇F(y) for every y with the same
    support.

    `log_prob` must be finite, with a finite derivative, wherever the run goes: the theorem's η_1 = 1 puts x_2 on a
    vertex, where log x of a Bernoulli or categorical p is not; log(x + 1e-12) is. What has probability 0 at x is never
    drawn there, and its part of ∇F(x) never seen.

    Where z = T(x, ε) can be written with an ε that does not depend on x, use `Expectation` on F̃(x; T(x, ε)) instead:
    its variance is smaller by orders of magnitude, because no score appears.

    Args:
        value: (x, z) ↦ F̃(x; z), one number.
        sample: (key, x) ↦ z ~ p(·; x), drawn with `jax.random`.
        log_prob: (z, x) ↦ log p(z; x), up to a constant.
        baseline: take for b the running mean of the values seen so far, which leaves every expectation as it is and
            always lowers the variance.

    Raises:
        TypeError: where an argument is no function. What the functions return is checked when a run is built.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> objective = fw.NonOblivious(
        ...     value=lambda x, z: jnp.sum((z - 0.5) ** 2),
        ...     sample=lambda key, x: x + 0.1 * jax.random.normal(key, (2,)),
        ...     log_prob=lambda z, x: -jnp.sum((z - x) ** 2) / (2 * 0.1**2),
        ... )
        >>> result = fw.minimize(objective, fw.sets.Box(0.0, 1.0, shape=2), steps=10, evaluate=False)
        >>> result.gradients, result.hvps
        (10, 9)
    """

    value: Callable[[Tree, Tree], Array] = eqx.field(static=True)
    sample: Callable[[Array, Tree], Tree] = eqx.field(static=True)
    log_prob: Callable[[Tree, Tree], Array] = eqx.field(static=True)
    baseline: bool = eqx.field(static=True)

    def __init__(
        self,
        value: Callable[[Tree, Tree], Array],
        sample: Callable[[Array, Tree], Tree],
        log_prob: Callable[[Tree, Tree], Array] | None = None,
        *,
        baseline: bool = True,
    ) -> None:
        require_callable(value, "NonOblivious", "value")
        require_callable(sample, "NonOblivious", "sample")
        if not callable(log_prob):
            raise TypeError(
                f"NonOblivious: log_prob must be a function, got {type(log_prob).__name__}; without it no gradient has "
                "its score, and no method can use it. Where z = T(x, ε), write Expectation of F̃(x; T(x, ε)) instead"
            )
        self.value, self.sample, self.log_prob, self.baseline = value, sample, log_prob, bool(baseline)

    @property
    def offers(self) -> Set[str]:
        return {UNBIASED, DENSITY}

    def draw(self, key: Array, number: Array) -> Tree:
        return step_key(key, number)

    def at(self, draw: Tree, point: Tree, baseline: Array) -> Surrogate:
        z = self.sample(draw, point)
        b = baseline if self.baseline else jnp.zeros_like(baseline)
        reference = self.log_prob(z, point)

        def importance_weighted(y: Tree) -> Array:
            return (self.value(y, z) - b) * jnp.exp(self.log_prob(z, y) - reference) + b

        return replace(
            surrogate(importance_weighted),
            integrand=lambda y: self.value(y, z),
            log_prob=lambda y: self.log_prob(z, y),
        )

    def check(self, like: Tree, samples: int) -> None:
        z, _ = sampled(self.sample, "NonOblivious", "sample(key, x)", jax.random.key(0), like)
        require_scalar(shape_of(self.value, "NonOblivious", "value(x, z)", like, z), "NonOblivious", "value(x, z)")
        density = shape_of(self.log_prob, "NonOblivious", "log_prob(z, x)", z, like)
        require_scalar(density, "NonOblivious", "log_prob(z, x)")
