"""The contract of a step, and steps towards a vertex: plain, lazy, of a fixed length."""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw import trees
from onesfw.trees import Array, HostArray, Tree

LAZY_BYTES = 1 << 28  # that vertices may take where it was not asked for to keep them
AT_HAND = 1 << 18  # entries of vertices at hand: a product with all of them costs less than an oracle that is dear


class SetLike(Protocol):
    """What a step may ask of K; the sets of `onesfw.sets` have it, and say where they cannot serve."""

    def lmo_from(self, d: Tree, memory: Tree) -> tuple[Tree, Tree]:
        """argmin over v in K of ⟨d, v⟩, and what the oracle remembers for the next call."""

    def lmo_below(self, d: Tree, room: Tree) -> Tree:
        """argmin of ⟨d, v⟩ over the members v ≤ room of K."""

    def project(self, y: Tree) -> Tree:
        """argmin over x in K of ‖x − y‖₂."""

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The smallest box that contains K."""

    @property
    def diameter(self) -> float:
        """An upper bound on max ‖x − y‖₂ over K."""

    @property
    def dear(self) -> bool:
        """Whether the oracle costs far more than products with some hundred vertices."""


class StepState(NamedTuple):
    """A compensated sum, and the number by which it is divided to give x."""

    total: Tree
    lost: Tree
    divisor: Array


class Step(eqx.Module):
    """A rule for x_{t+1}. Its state is a compensated sum: plain float32 sums leave K (8e-4 after 2e6 steps)."""

    from_zero: ClassVar[bool] = False
    """Whether x_1 = 0 and the weights must add up to 1."""
    largest: ClassVar[float] = 1.0
    """What η_t may be at most."""

    def fit(self, constraint: SetLike, like: Tree) -> Step:
        """The step with what it needs to know of K; raises ValueError where K cannot serve it."""
        return self

    @abc.abstractmethod
    def init(self, x: Tree, horizon: int) -> Tree:
        """The state at x_1, for a run of `horizon` steps."""

    @abc.abstractmethod
    def point(self, state: Tree) -> Tree:
        """x_t."""

    @abc.abstractmethod
    def advance(self, state: Tree, vertex: Tree, weight: Array) -> Tree:
        """The state at x_{t+1}."""

    def move(self, constraint: SetLike, state: Tree, direction: Tree, memory: Tree, weight: Array) -> tuple[Tree, Tree]:
        """The state at x_{t+1} and the oracle's memory: one call of the oracle at `direction`, then `advance`."""
        vertex, memory = constraint.lmo_from(direction, memory)
        vertex = jax.tree.map(lambda v, leaf: v.astype(leaf.dtype), vertex, direction)
        return self.advance(state, vertex, weight), memory

    def lmo_calls(self, state: Tree, steps: int) -> int | HostArray:
        """How often the oracle was asked in the first `steps` steps."""
        return steps

    def kept(self, state: Tree) -> Tree:
        """The vertices that were kept, along a leading axis; None where a step keeps none."""
        return None

    @property
    def settings(self) -> str:
        """What decides the course of a run beside η, for a checkpoint's fingerprint."""
        return ""

    def weights(self, t: HostArray, eta: HostArray, horizon: int) -> HostArray:
        """What `advance` takes for η_t, computed in float64 on the host: a row for each step t."""
        return eta

    def output(self, state: Tree, total_weight: float) -> Tree:
        """A member of K after the steps done so far, whose weights add up to `total_weight`: x_t, if not said."""
        return self.point(state)


class FrankWolfeStep(Step):
    """x_{t+1} = x_t + η_t (v_t − x_t)."""

    def init(self, x: Tree, horizon: int) -> StepState:
        return StepState(x, trees.zeros_like(x), jnp.ones((), trees.dtype_of(x)))

    def point(self, state: StepState) -> Tree:
        return state.total

    def advance(self, state: StepState, vertex: Tree, weight: Array) -> StepState:
        move = jax.tree.map(lambda v, x: weight * (v - x), vertex, state.total)
        total, lost = trees.compensated_add(state.total, state.lost, move)
        return StepState(total, lost, state.divisor)


class LazyState(NamedTuple):
    """The iterate, the vertices met so far, and what the oracle said when it was asked last."""

    iterate: StepState
    vertices: Array  # at hand, in rows, as vectors
    used: Array  # the step at which each was taken last
    record: Array  # every vertex as it came to hand, the oldest overwritten
    met: Array  # how many came
    asked: Array  # the step of the oracle's last call
    t: Array
    calls: Array


class LazyStep(Step):
    """Frank-Wolfe that asks the oracle again s/80 steps after step s, and between takes a vertex it has met.

    d_t changes by a share of 1/t a step: for a small share of s steps it is about the same, and the best of the
    vertices at hand serves it; the calls grow like ln T. Of those at hand, at most `capacity` and as many as AT_HAND
    entries hold, the one unused longest makes room for a new one; the record of `recorded` is for `Result.atoms`.
    """

    capacity: int = eqx.field(static=True, default=400)
    recorded: int = eqx.field(static=True, default=400)
    share: int = eqx.field(static=True, default=80)
    """the oracle rests for a share 1/`share` of the steps done"""
    always: bool = eqx.field(static=True, default=True)
    """False: only where K's oracle is dear; elsewhere it is asked at every step"""

    def fit(self, constraint: SetLike, like: Tree) -> Step:
        capacity = max(1, min(self.capacity, AT_HAND // max(1, sum(leaf.size for leaf in jax.tree.leaves(like)))))
        room = (capacity + self.recorded) * trees.size_in_bytes(like) <= LAZY_BYTES
        lazy = self.always or (constraint.dear and room)
        return replace(self, capacity=capacity) if lazy else FrankWolfeStep()

    def init(self, x: Tree, horizon: int) -> LazyState:
        flat, zero = trees.ravel(x)[0], jnp.int32(0)
        return LazyState(
            FrankWolfeStep().init(x, horizon),
            jnp.zeros((self.capacity, flat.size), flat.dtype),
            jnp.zeros(self.capacity, jnp.int32),
            jnp.zeros((self.recorded, flat.size), flat.dtype),
            zero,
            zero,
            zero,
            zero,
        )

    def point(self, state: LazyState) -> Tree:
        return state.iterate.total

    def advance(self, state: LazyState, vertex: Tree, weight: Array) -> LazyState:
        return state._replace(iterate=FrankWolfeStep().advance(state.iterate, vertex, weight))

    @property
    def settings(self) -> str:
        return f" lazy={self.capacity},{self.recorded},{self.share}"

    def move(
        self, constraint: SetLike, state: LazyState, direction: Tree, memory: Tree, weight: Array
    ) -> tuple[LazyState, Tree]:
        t = state.t + 1
        d, unravel = trees.ravel(direction)
        x, _ = trees.ravel(state.iterate.total)
        scores = jnp.where(jnp.arange(self.capacity) < state.met, state.vertices @ d, jnp.inf)
        best = jnp.argmin(scores)
        asks = self.share * (t - state.asked) >= state.asked

        def ask(memory: Tree) -> tuple[Array, Tree]:
            vertex, memory = constraint.lmo_from(direction, memory)
            return trees.ravel(vertex)[0].astype(d.dtype), memory

        def reuse(memory: Tree) -> tuple[Array, Tree]:
            return state.vertices[best], memory

        v, memory = lax.cond(asks, ask, reuse, memory)
        gap = d @ (x - v)
        better = asks & (d @ x - scores[best] < gap - 1e-6 * jnp.abs(gap))
        v = jnp.where(better, v, state.vertices[best])  # of equals the kept one: x stays in their hull
        place = jnp.where(better, jnp.argmin(state.used), best)  # those not yet taken have the step 0
        line = state.met % self.recorded
        return LazyState(
            self.advance(state, unravel(v), weight).iterate,
            state.vertices.at[place].set(jnp.where(better, v, state.vertices[place])),
            state.used.at[place].set(t),
            state.record.at[line].set(jnp.where(better, v, state.record[line])),
            state.met + better,
            jnp.where(asks, t, state.asked),
            t,
            state.calls + asks,
        ), memory

    def lmo_calls(self, state: LazyState, steps: int) -> int | HostArray:
        return whole(state.calls)

    def kept(self, state: LazyState) -> Tree:
        return jax.vmap(trees.ravel(state.iterate.total)[1])(state.record[: int(state.met)])


class NormalizedStep(FrankWolfeStep):
    """x_{t+1} = x_t + η_t D (v_t − x_t)/‖v_t − x_t‖, at most as far as v_t; D is the diameter of K."""

    diameter: float | None = None

    def fit(self, constraint: SetLike, like: Tree) -> Step:
        return NormalizedStep(np.float64(diameter_of(constraint, like)))

    def advance(self, state: StepState, vertex: Tree, weight: Array) -> StepState:
        distance = jnp.sqrt(trees.squared_norm(trees.subtract(vertex, state.total)))
        reach = weight * jnp.asarray(self.diameter, weight.dtype)
        share = jnp.minimum(reach / jnp.maximum(distance, jnp.finfo(weight.dtype).tiny), 1.0)
        return FrankWolfeStep.advance(self, state, vertex, share)


def whole(count: Array) -> int | HostArray:
    """A count as a number; those of replicates as an array."""
    return np.asarray(count) if jnp.ndim(count) else int(count)


def diameter_of(constraint: SetLike, like: Tree) -> float:
    """The diameter of K; of the box around it where K does not know its shape."""
    try:
        return float(constraint.diameter)
    except TypeError:
        lower, upper = constraint.bounds(like)
        return float(jnp.sqrt(trees.squared_norm(trees.subtract(upper, lower))))
