"""x_{t+1} = step(x_t, v_t, η_t): how the iterate moves towards a vertex, without drifting in float32."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw import trees
from onesfw.trees import Array, HostArray, Tree


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


class EpochPlace(Protocol):
    """Where in their epochs steps stand: place k of `length`."""

    @property
    def k(self) -> HostArray:
        """1, …, `length`"""

    @property
    def length(self) -> HostArray:
        """The steps of the epoch."""


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

    @property
    def settings(self) -> str:
        """What decides the course of a run beside η, for a checkpoint's fingerprint."""
        return ""

    def weights(self, t: HostArray, eta: HostArray, horizon: int) -> HostArray:
        """What `advance` takes for η_t, computed in float64 on the host: a row for each step t."""
        return eta

    @abc.abstractmethod
    def output(self, state: Tree, total_weight: float) -> Tree:
        """A member of K after the steps done so far, whose weights add up to `total_weight`."""


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

    def output(self, state: StepState, total_weight: float) -> Tree:
        return state.total


class ContinuousGreedyStep(Step):
    """x_{t+1} = x_t + η_t v_t from x_1 = 0, kept as the sum of T η_t v_t and divided by T.

    With η_t = 1/T and 0/1 vertices the sum holds integer counts, so that x_i never exceeds 1. After an early stop
    the sum divided by its own weight, (T/(t−1)) x_t for the paper's η, is a mean of members of K.
    """

    from_zero: ClassVar[bool] = True

    def init(self, x: Tree, horizon: int) -> StepState:
        zero = trees.zeros_like(x)
        return StepState(zero, zero, jnp.asarray(horizon, trees.dtype_of(x)))

    def point(self, state: StepState) -> Tree:
        return jax.tree.map(lambda total: total / state.divisor, state.total)

    def advance(self, state: StepState, vertex: Tree, weight: Array) -> StepState:
        total, lost = trees.compensated_add(state.total, state.lost, trees.scale(weight, vertex))
        return StepState(total, lost, state.divisor)

    def weights(self, t: HostArray, eta: HostArray, horizon: int) -> HostArray:
        product = eta * horizon
        whole = np.rint(product)
        return np.where(np.abs(product - whole) < 1e-9, whole, product)

    def output(self, state: StepState, total_weight: float) -> Tree:
        return jax.tree.map(lambda total: total / (total_weight or 1.0), state.total)


class TwoPhaseState(NamedTuple):
    """A compensated sum, the number by which it is divided to give x_t, and that by which it would lie in K."""

    total: Tree
    lost: Tree
    divisor: Array
    mass: Array


class TwoPhaseStep(Step):
    """Continuous greedy in the first quarter of the steps, x_{t+1} = x_t + v_t/T₁; then x_{t+1} = x_t + η_t(v_t − x_t).

    Frank-Wolfe steps of η_t = 4/t, or as much of it as the run thinks right (`Estimator.pace`), go on from where
    continuous greedy ends. A sum divided by its own weights lies in K at any time.
    """

    from_zero: ClassVar[bool] = True
    speed: ClassVar[float] = 4.0

    def init(self, x: Tree, horizon: int) -> TwoPhaseState:
        zero, dtype = trees.zeros_like(x), trees.dtype_of(x)
        return TwoPhaseState(zero, zero, jnp.asarray(greedy_steps(horizon), dtype), jnp.zeros((), dtype))

    def point(self, state: TwoPhaseState) -> Tree:
        return jax.tree.map(lambda total: total / state.divisor, state.total)

    def weights(self, t: HostArray, eta: HostArray, horizon: int) -> HostArray:
        """Rows of 1 and 0 in the first phase, of 0 and η_t in the second."""
        greedy = t <= greedy_steps(horizon)
        return np.stack([greedy, np.where(greedy, 0.0, np.minimum(1.0, self.speed / t))], 1)

    def advance(self, state: TwoPhaseState, vertex: Tree, weight: Array) -> TwoPhaseState:
        greedy, share = weight[0], weight[1]
        added = greedy + share * state.divisor
        move = jax.tree.map(lambda v, total: added * v - share * total, vertex, state.total)
        total, lost = trees.compensated_add(state.total, state.lost, move)
        return TwoPhaseState(total, lost, state.divisor, state.mass + added - share * state.mass)

    def output(self, state: TwoPhaseState, total_weight: float) -> Tree:
        def divided(total: Array) -> Array:  # replicates have a mass each
            mass = jnp.reshape(state.mass, state.mass.shape + (1,) * (total.ndim - state.mass.ndim))
            return total / jnp.where(mass > 0, mass, 1)

        return jax.tree.map(divided, state.total)


def greedy_steps(horizon: int) -> int:
    """T₁, the steps of continuous greedy in a run of two phases."""
    return max(1, horizon // 4)


class BelowStep(ContinuousGreedyStep):
    """Continuous greedy for F that need not be monotone: v_t = argmax ⟨d, v⟩ over v in K with v ≤ ū − x_t.

    ū is the top of the box around K, which must be down-closed. Algorithm NMSCG of Mokhtari, Hassani and Karbasi
    (2018), 1/e of the optimum.
    """

    top: Tree = None

    def fit(self, constraint: SetLike, like: Tree) -> Step:
        try:
            jax.eval_shape(constraint.lmo_below, trees.shapes(like), trees.shapes(like))
        except NotImplementedError as error:
            raise ValueError(f"constraint: {error}") from error
        lower, upper = constraint.bounds(like)
        if any(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(lower)):
            raise ValueError("constraint: the nonmonotone_dr setting needs a down-closed set, which holds 0")
        return BelowStep(jax.tree.map(np.asarray, upper))

    def move(
        self, constraint: SetLike, state: StepState, direction: Tree, memory: Tree, weight: Array
    ) -> tuple[StepState, Tree]:
        room = jax.tree.map(lambda top, x: jnp.maximum(top - x, 0), self.top, self.point(state))
        return self.advance(state, constraint.lmo_below(direction, room), weight), memory


class LazyState(NamedTuple):
    """The iterate, the vertices met so far, and what the oracle said when it was asked last."""

    iterate: StepState
    vertices: Array  # in rows, as vectors
    used: Array  # the step at which each was taken last
    size: Array
    gap: Array  # ⟨d, x − v⟩ at the last call of the oracle
    asked: Array  # the step of that call
    t: Array
    calls: Array


class LazyStep(Step):
    """Frank-Wolfe that takes a vertex it has met before while one of them is good enough.

    The best of them, u, is taken unless ⟨d_t, x_t − u⟩ < κ G s/t, where G was the gap at the oracle's last call, at
    step s, or t ≥ (1 + ε)s. When there are `capacity` of them, the one unused longest makes room.
    """

    capacity: int = eqx.field(static=True, default=400)
    kappa: float = eqx.field(static=True, default=0.5)
    epsilon: float = eqx.field(static=True, default=0.1)

    def init(self, x: Tree, horizon: int) -> LazyState:
        flat, zero = trees.ravel(x)[0], jnp.int32(0)
        vertices, used = jnp.zeros((self.capacity, flat.size), flat.dtype), jnp.zeros(self.capacity, jnp.int32)
        return LazyState(
            FrankWolfeStep().init(x, horizon), vertices, used, zero, jnp.zeros((), flat.dtype), zero, zero, zero
        )

    def point(self, state: LazyState) -> Tree:
        return state.iterate.total

    def advance(self, state: LazyState, vertex: Tree, weight: Array) -> LazyState:
        return state._replace(iterate=FrankWolfeStep().advance(state.iterate, vertex, weight))

    @property
    def settings(self) -> str:
        return f" lazy={self.capacity},{self.kappa:g},{self.epsilon:g}"

    def move(
        self, constraint: SetLike, state: LazyState, direction: Tree, memory: Tree, weight: Array
    ) -> tuple[LazyState, Tree]:
        t = state.t + 1
        d, unravel = trees.ravel(direction)
        x, _ = trees.ravel(state.iterate.total)
        scores = jnp.where(jnp.arange(self.capacity) < state.size, state.vertices @ d, jnp.inf)
        best = jnp.argmin(scores)
        near = d @ x - scores[best]
        now, then = t.astype(d.dtype), state.asked.astype(d.dtype)
        asks = (near < self.kappa * state.gap * then / now) | (now >= (1 + self.epsilon) * then)

        def ask(memory: Tree) -> tuple[Array, Tree, Array]:
            vertex, memory = constraint.lmo_from(direction, memory)
            v = trees.ravel(vertex)[0].astype(d.dtype)
            return v, memory, d @ (x - v)

        def reuse(memory: Tree) -> tuple[Array, Tree, Array]:
            return state.vertices[best], memory, state.gap

        v, memory, gap = lax.cond(asks, ask, reuse, memory)
        better = asks & (near < gap - 1e-6 * jnp.abs(gap))
        room = jnp.where(state.size < self.capacity, state.size, jnp.argmin(state.used))
        place = jnp.where(better, room, best)
        return LazyState(
            self.advance(state, unravel(v), weight).iterate,
            state.vertices.at[place].set(jnp.where(better, v, state.vertices[place])),
            state.used.at[place].set(t),
            jnp.minimum(state.size + better, self.capacity),
            gap,
            jnp.where(asks, t, state.asked),
            t,
            state.calls + asks,
        ), memory

    def lmo_calls(self, state: LazyState, steps: int) -> int | HostArray:
        calls = np.asarray(state.calls)
        return int(calls) if calls.ndim == 0 else calls

    def output(self, state: LazyState, total_weight: float) -> Tree:
        return state.iterate.total


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


class ProjectedStep(Step):
    """x_{t+1} = the projection of x_t − η_t d_t onto K. No oracle call."""

    largest: ClassVar[float] = np.inf

    def fit(self, constraint: SetLike, like: Tree) -> Step:
        try:
            jax.eval_shape(constraint.project, trees.shapes(like))
        except NotImplementedError as error:
            raise ValueError(f"constraint: {error}, such as one_sfw") from error
        return self

    def init(self, x: Tree, horizon: int) -> StepState:
        return StepState(x, (), jnp.ones((), trees.dtype_of(x)))

    def point(self, state: StepState) -> Tree:
        return state.total

    def advance(self, state: StepState, vertex: Tree, weight: Array) -> StepState:
        return StepState(vertex, (), state.divisor)

    def move(
        self, constraint: SetLike, state: StepState, direction: Tree, memory: Tree, weight: Array
    ) -> tuple[StepState, Tree]:
        target = jax.tree.map(lambda x, d: x - weight * d, state.total, direction)
        return self.advance(state, constraint.project(target), weight), memory

    def lmo_calls(self, state: StepState, steps: int) -> int | HostArray:
        return 0

    def output(self, state: StepState, total_weight: float) -> Tree:
        return state.total


class SlidingState(NamedTuple):
    """The three sequences of conditional gradient sliding, and the oracle calls so far."""

    x: Tree
    y: Tree
    z: Tree
    calls: Array


class SlidingStep(Step):
    """Accelerated sliding (Lan and Zhou 2016): x_k ≈ argmin ⟨d, x⟩ + (β_k/2)‖x − x_{k−1}‖² over K by Frank-Wolfe.

    The gradient is asked for at z_k = (1 − γ_k) y_{k−1} + γ_k x_{k−1}; y_k = (1 − γ_k) y_{k−1} + γ_k x_k is the output.
    With N steps in an epoch, β_k = 3L/k and the inner Frank-Wolfe, with exact steps, ends at the gap 2LD²/(Nk), or
    after `most` calls of the oracle. γ is the schedule η. An epoch begins with x_0 = y_0 = y of the last one.
    """

    epochs: Callable[[HostArray], EpochPlace] = eqx.field(static=True)
    """t ↦ its place (epoch, k, length)"""
    smoothness: float = eqx.field(static=True)
    most: int = eqx.field(static=True)
    gamma: Callable[[HostArray, int], HostArray] = eqx.field(static=True)
    """t ↦ γ_t, which the step before must know"""
    diameter: float = eqx.field(static=True, default=1.0)

    def fit(self, constraint: SetLike, like: Tree) -> Step:
        return SlidingStep(self.epochs, self.smoothness, self.most, self.gamma, diameter_of(constraint, like))

    @property
    def settings(self) -> str:
        return f" smoothness={self.smoothness:g} inner={self.most}"

    def init(self, x: Tree, horizon: int) -> SlidingState:
        return SlidingState(x, x, x, jnp.int32(0))

    def point(self, state: SlidingState) -> Tree:
        return state.z

    def weights(self, t: HostArray, eta: HostArray, horizon: int) -> HostArray:
        """Rows of γ_t, β_t, the tolerance of step t, γ_{t+1}, and whether t + 1 begins an epoch."""
        here, following = self.epochs(t), self.epochs(t + 1)
        beta = 3 * self.smoothness / here.k
        tolerance = 2 * self.smoothness * self.diameter**2 / (here.length * here.k)
        return np.stack([eta, beta, tolerance, self.gamma(t + 1, horizon), following.k == 1], 1)

    def advance(self, state: SlidingState, vertex: Tree, weight: Array) -> SlidingState:
        gamma, following, begins = weight[0], weight[3], weight[4] > 0
        y = mixed(gamma, vertex, state.y)
        x = jax.tree.map(lambda new, mean: jnp.where(begins, mean, new), vertex, y)
        return SlidingState(x, y, mixed(following, x, y), state.calls)

    def move(
        self, constraint: SetLike, state: SlidingState, direction: Tree, memory: Tree, weight: Array
    ) -> tuple[SlidingState, Tree]:
        beta, tolerance = weight[1], weight[2]

        def slide(inner: tuple[Tree, Tree, Array, Array]) -> tuple[Tree, Tree, Array, Array]:
            point, memory, calls, _ = inner
            slope = jax.tree.map(lambda d, u, x: d + beta * (u - x), direction, point, state.x)
            vertex, memory = constraint.lmo_from(slope, memory)
            towards = jax.tree.map(lambda v, u: v.astype(u.dtype) - u, vertex, point)
            gap = -trees.dot(slope, towards)
            length = jnp.maximum(beta * trees.squared_norm(towards), jnp.finfo(beta.dtype).tiny)
            share = jnp.where(gap > tolerance, jnp.minimum(gap / length, 1.0), 0.0)
            moved = jax.tree.map(lambda u, w: u + share * w, point, towards)
            return moved, memory, calls + 1, gap > tolerance

        def goes_on(inner: tuple[Tree, Tree, Array, Array]) -> Array:
            return inner[3] & (inner[2] - state.calls < self.most)

        start = (state.x, memory, state.calls, jnp.asarray(True))
        point, memory, calls, _ = lax.while_loop(goes_on, slide, start)
        return self.advance(state, point, weight)._replace(calls=calls), memory

    def lmo_calls(self, state: SlidingState, steps: int) -> int | HostArray:
        calls = np.asarray(state.calls)
        return int(calls) if calls.ndim == 0 else calls

    def output(self, state: SlidingState, total_weight: float) -> Tree:
        return state.y


def mixed(share: Array, new: Tree, old: Tree) -> Tree:
    """old + share (new − old)."""
    return jax.tree.map(lambda a, b: b + share * (a - b), new, old)


def diameter_of(constraint: SetLike, like: Tree) -> float:
    """The diameter of K; of the box around it where K does not know its shape."""
    try:
        return float(constraint.diameter)
    except TypeError:
        lower, upper = constraint.bounds(like)
        return float(jnp.sqrt(trees.squared_norm(trees.subtract(upper, lower))))
