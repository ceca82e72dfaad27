"""How good x is: F(x) and the Frank-Wolfe gap, from a full pass or from independent samples, never from d_t."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, SupportsFloat

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw import trees
from onesfw.arguments import whole_number
from onesfw.capabilities import FULL_GRADIENT, FullGradientLike, with_full_gradient
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet
from onesfw.trees import Array, HostArray, Tree

SAMPLES = 10_000  # of an objective that is not a finite sum
MOST_SAMPLES = 2**31 - 2_000  # sample numbers have 32 bits, and a pilot follows the last one
SLICE_BYTES = 1 << 22
CONFIDENCE = 1.6448536269514722  # one-sided 95 %

Measure = Callable[[Tree], SupportsFloat]
"""A user's own value of x."""
Evaluate = Literal[False] | int | Measure | None
"""The argument `evaluate`: nothing, a number of samples, a user's own measure, or the objective's default."""
Every = int | Literal["log"] | Iterable[int] | None
"""The argument `every`: a stride, \"log\", the steps themselves, or once at the end."""
Number = float | Array | HostArray


class Evaluation(NamedTuple):
    """F(x) and max ⟨∇F(x), x − v⟩ over v in K, each with its standard error (0 for a full pass)."""

    value: Number
    value_stderr: Number
    gap: Number
    gap_stderr: Number


Evaluator = Callable[[Array, Tree], Evaluation]  # (key, x) -> Evaluation, traceable


def gap_and_vertex(constraint: ConvexSet, gradient: Tree, x: Tree, sign: int) -> tuple[Array, Tree]:
    """max over v in K of ⟨±∇F(x), x − v⟩ and the direction x − v that attains it; + minimises, − maximises."""
    downhill = trees.scale(sign, gradient)
    away = trees.subtract(x, constraint.lmo(downhill))
    return trees.dot(downhill, away), away


def full_pass(objective: FullGradientLike, constraint: ConvexSet, sign: int) -> Evaluator:
    """Exact, by one pass over the rows of a finite sum."""

    def evaluate(key: Array, x: Tree) -> Evaluation:
        value, gradient = objective.full_value_and_gradient(x)
        gap, _ = gap_and_vertex(constraint, gradient, x, sign)
        zero = jnp.zeros_like(gap)
        return Evaluation(value, zero, gap, zero)

    return evaluate


def sampled(objective: Objective, constraint: ConvexSet, sign: int, samples: int) -> Evaluator:
    """From `samples` draws that depend on the key alone: the same ones at every x, independent of the run's.

    The vertex is chosen on the same samples as the gap is measured on, which biases the gap upwards: on the safe side.
    """

    def evaluate(key: Array, x: Tree) -> Evaluation:
        dtype = trees.dtype_of(x)
        size = sum(leaf.size for leaf in jax.tree.leaves(x)) * dtype.itemsize
        rows = max(1, min(samples, SLICE_BYTES // size))
        slices = -(-samples // rows)
        zero = jnp.zeros((), dtype)

        def integrand(number: Array) -> Array:
            return objective.at(objective.draw(key, number), x, zero).integrand(x).astype(dtype)

        # The pilot's samples come after all others: the baseline must not depend on what it is taken from.
        pilot = jnp.mean(jax.vmap(integrand)(samples + jnp.arange(min(rows, 1000), dtype=jnp.int32)))

        def one(number: Array) -> tuple[Array, Tree]:
            h = objective.at(objective.draw(key, number), x, pilot)
            return h.integrand(x).astype(dtype), h.gradient(x)

        def over_slices(summary: Callable[[Array, Tree, Array], Tree], like: Tree) -> Tree:
            def add(i: Array, state: tuple[Tree, Tree]) -> tuple[Tree, Tree]:
                numbers = i * rows + jnp.arange(rows, dtype=jnp.int32)
                values, gradients = jax.vmap(one)(numbers)
                return trees.compensated_add(*state, summary(values, gradients, (numbers < samples).astype(dtype)))

            return lax.fori_loop(0, slices, add, (like, trees.zeros_like(like)))[0]

        def moments(values: Array, gradients: Tree, use: Array) -> Tree:
            centred = use * (values - pilot)
            mean_gradient = jax.tree.map(lambda g: jnp.tensordot(use, g, 1), gradients)
            return jnp.sum(centred), jnp.sum(centred * centred), mean_gradient

        first, second, total = over_slices(moments, (zero, zero, trees.zeros_like(x)))
        gap, away = gap_and_vertex(constraint, trees.scale(1 / samples, total), x, sign)

        def spread(values: Array, gradients: Tree, use: Array) -> Tree:
            slopes = jax.vmap(lambda g: sign * trees.dot(g, away))(gradients)
            return jnp.sum(use * (slopes - gap) ** 2)

        mean = first / samples
        variance = jnp.maximum(second / samples - mean * mean, 0.0) / max(samples - 1, 1)
        gap_variance = over_slices(spread, zero) / (samples * max(samples - 1, 1))
        return Evaluation(pilot + mean, jnp.sqrt(variance), gap, jnp.sqrt(gap_variance))

    return evaluate


def evaluator_for(evaluate: Evaluate, objective: Objective, constraint: ConvexSet, sign: int) -> Evaluator | None:
    """The traceable evaluator that the argument `evaluate` asks for; None for `False` and for a callable."""
    if evaluate is False or callable(evaluate):
        return None
    if evaluate is None:
        if FULL_GRADIENT in objective.offers:
            return full_pass(with_full_gradient(objective), constraint, sign)
        return sampled(objective, constraint, sign, SAMPLES)
    if evaluate is True or not isinstance(evaluate, int | np.integer):
        raise TypeError(f"evaluate must be None, False, a number of samples or a function of x, got {evaluate!r}")
    return sampled(objective, constraint, sign, whole_number(evaluate, "evaluate", 2, MOST_SAMPLES))


def number_from(evaluate: Measure, x: Tree, name: str = "evaluate") -> float:
    """A user's own measure of x; raises TypeError, with the argument's name, where it is no number."""
    measured = evaluate(x)
    try:
        if isinstance(measured, int | float) or np.asarray(measured).dtype.kind in "fiub":
            return float(np.asarray(measured, np.float64).reshape(()))
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} must return one number for x, got {measured!r:.200}")


def evaluation_steps(every: Every, steps: int, log: bool) -> Sequence[int]:
    """After which steps to evaluate, in order; the last step is evaluated in any case."""
    if every is None:
        every = "log" if log else steps
    if isinstance(every, np.ndarray) and every.ndim == 0:
        every = every.item()
    if isinstance(every, str):
        if every != "log":
            raise ValueError(f"every must be a number of steps, a list of steps or 'log', got {every!r}")
        points = np.geomspace(1, steps, max(2, round(8 * np.log10(max(steps, 2))) + 1))
        return [int(point) for point in np.unique(np.rint(points).astype(np.int64))]
    if isinstance(every, int | float | np.number):
        stride = whole_number(every, "every", 1)
        return range(stride, steps + 1, stride)
    if not isinstance(every, Iterable):
        raise TypeError(f"every must be a number of steps, a list of steps or 'log', got {every!r}")
    chosen = sorted({whole_number(t, "every", 1) for t in every})
    if chosen and chosen[-1] > steps:
        raise ValueError(f"every asks for step {chosen[-1]:,}, but steps={steps:,}")
    return chosen
