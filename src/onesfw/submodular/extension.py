"""F(x) = E f(S), S holding i with probability x_i: the multilinear extension of a set function, and samples of it."""

from __future__ import annotations

from collections.abc import Set
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw import trees
from onesfw.capabilities import FULL_GRADIENT, OBLIVIOUS, UNBIASED
from onesfw.engine.keys import Key, as_key
from onesfw.engine.programs import Program
from onesfw.estimators import Hessian
from onesfw.objectives.base import Objective
from onesfw.objectives.surrogates import Surrogate, surrogate
from onesfw.objectives.user_functions import step_key
from onesfw.submodular.base import Function, Source
from onesfw.trees import Array, HostArray, Tree

SLICE = 64  # ω that a full pass works on at once


class MultilinearExtension(Objective):
    """F(x) = E_ω E_{S~x} f_ω(S), S holding element i with probability x_i: multilinear and DR-submodular on [0, 1]ⁿ.

    Where f_ω has a closed form, samples do not depend on x, and Algorithm 2 applies; with finitely many ω there is a
    full gradient too. Otherwise S is drawn at x̄, and never through a score, which has no fourth moment near 0:
    g_i(S) = f_ω(S + i) − f_ω(S − i), and for u = x_t − x_{t−1} one coordinate j ~ |u_j|/‖u‖₁ gives
    Δ̃ = ‖u‖₁ sign(u_j) [g(S + j) − g(S − j)], unbiased for every x̄ in [0, 1]ⁿ. Corrections that need a
    log-density do not apply. x holds probabilities: a set that leaves [0, 1]ⁿ is refused.

    Args:
        function: a set function from `onesfw.submodular`.
        sampled: draw S even where there is a closed form.

    Raises:
        TypeError: where function is no set function.

    Example:
        >>> import onesfw as fw
        >>> from onesfw import submodular as sm
        >>> f, two = sm.Coverage([[1, 1, 0], [0, 1, 1], [0, 0, 1]]), sm.UniformMatroid(3, 2)
        >>> result = fw.maximize(fw.MultilinearExtension(f), fw.sets.MatroidPolytope(two), steps=50)
        >>> float(result.value) > 2
        True
    """

    domain: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    function: Function
    sampled: bool = eqx.field(static=True)

    def __init__(self, function: Function, *, sampled: bool = False) -> None:
        if not isinstance(function, Function):
            raise TypeError(
                "MultilinearExtension: function must be a set function from onesfw.submodular; wrap your own as "
                f"SetFunction(value, n), got {getattr(function, '__name__', repr(function))}"
            )
        self.function = function
        self.sampled = bool(sampled) or not function.closed_form

    @property
    def n(self) -> int:
        """The number of ω that a full pass goes through."""
        return self.function.omegas or 1

    @property
    def offers(self) -> Set[str]:
        if self.sampled:
            return {UNBIASED}
        return {UNBIASED, OBLIVIOUS} if self.function.omegas is None else {UNBIASED, OBLIVIOUS, FULL_GRADIENT}

    def draw(self, key: Array, number: Array) -> Tree:
        if not self.sampled:
            return self.function.draw(key, number)
        return self.function.draw(key, number), step_key(jax.random.fold_in(key, 0x5E7), number)

    def at(self, draw: Tree, point: Tree, baseline: Array) -> Surrogate:
        function = self.function
        if not self.sampled:
            return surrogate(
                lambda y: function.extension_at(y, draw), lambda y: function.extension_gradient_at(y, draw)
            )
        omega, key = draw
        chances, choice = jax.random.split(key)
        s = (jax.random.uniform(chances, point.shape, point.dtype) < point).astype(point.dtype)

        def value(y: Tree) -> Array:
            return function.value_at(s, omega)

        def gradient(y: Tree) -> Tree:
            return function.marginals_at(s, omega)

        def hvp(y: Tree, u: Tree) -> tuple[Tree, Tree]:
            size = jnp.cumsum(jnp.abs(u))
            j = jnp.searchsorted(size, jax.random.uniform(choice, (), u.dtype) * size[-1], side="right")
            j = jnp.minimum(j, u.size - 1)
            # One of S + j and S − j is S itself.
            here = function.marginals_at(s, omega)
            there = function.marginals_at(s.at[j].set(1 - s[j]), omega)
            rise = jnp.where(s[j] > 0.5, here - there, there - here)
            change = size[-1] * jnp.sign(u[j]) * rise
            return here, jnp.where(size[-1] > 0, change, 0.0)

        return Surrogate(value, gradient, hvp, value)

    def full_value_and_gradient(self, x: Tree) -> tuple[Array, Tree]:
        """F(x) and ∇F(x), by a pass over all ω in slices with compensated sums."""
        function = self.function
        count = self.n

        def one(omega: Array) -> tuple[Array, Array]:
            return function.extension_at(x, omega), function.extension_gradient_at(x, omega)

        def accumulate(i: Array, state: tuple[Tree, Tree]) -> tuple[Tree, Tree]:
            numbers = i * SLICE + lax.iota(jnp.int32, SLICE)
            use = (numbers < count).astype(x.dtype)
            values, gradients = jax.vmap(one)(jnp.minimum(numbers, count - 1))
            return trees.compensated_add(*state, (use @ values, use @ gradients))

        zero = (jnp.zeros((), x.dtype), jnp.zeros_like(x))
        (value, gradient), _ = lax.fori_loop(0, -(-count // SLICE), accumulate, (zero, trees.zeros_like(zero)))
        return value / count, gradient / count

    def check(self, like: Tree, samples: int) -> None:
        leaves = jax.tree.leaves(like)
        if len(leaves) != 1 or leaves[0].shape != (self.function.n,):
            raise ValueError(
                f"MultilinearExtension: x must be one vector of {self.function.n} entries, one per element of the set "
                f"function, got {trees.describe(like)}; give the set that shape"
            )


class TracedSource(Source):
    """The estimator of `MultilinearExtension` with the sampled coordinate, compiled: any function."""

    closed = False

    def __init__(self, function: Function, batch: int, key: Key) -> None:
        objective = MultilinearExtension(function, sampled=True)
        self.key = as_key(key)

        def increment(key: Array, number: Array, x: Array, previous: Array) -> tuple[Array, Array]:
            samples, places = jax.random.split(key)
            a = jax.random.uniform(jax.random.fold_in(places, number), (), x.dtype)
            made = Hessian()(objective, objective.draw(samples, number), a, x, previous, jnp.zeros((), x.dtype))
            return made.gradient, made.change

        def update(key: Array, d: Array, x: Array, previous: Array, rho: Array, t: Array) -> Array:
            numbers = t * batch + jnp.arange(batch, dtype=jnp.int32)
            gradient, change = jax.vmap(lambda number: increment(key, number, x, previous))(numbers)
            return (1 - rho) * (d + change.mean(0)) + rho * gradient.mean(0)

        point = jax.ShapeDtypeStruct((function.n,), jnp.float32)
        scalar = jax.ShapeDtypeStruct((), jnp.float32)
        self.program = Program(update, self.key, point, point, point, scalar, jax.ShapeDtypeStruct((), jnp.int32))

    def update(self, d: HostArray, x: HostArray, previous: HostArray, rho: float, t: int) -> None:
        points = (np.float32(d), np.float32(x), np.float32(previous))
        d[:] = np.asarray(self.program(self.key, *points, np.float32(rho), np.int32(t)))
