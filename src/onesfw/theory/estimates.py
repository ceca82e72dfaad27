"""G, L, B and their kin from a sample of points and draws: lower bounds of what the theorems ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onesfw import capabilities, trees
from onesfw.algorithms import CONVEX, DR_SUBMODULAR, MAXIMISED, one_sfw
from onesfw.arguments import warn, whole_number
from onesfw.engine.checks import checked_run
from onesfw.engine.keys import as_key
from onesfw.objectives import FiniteSum, Objective, Surrogate
from onesfw.sets import ConvexSet
from onesfw.theory.constants import Constants
from onesfw.trees import Array, Counts, Tree

POWER_ITERATIONS = 12
SLICE_BYTES = 1 << 22
Reals = npt.NDArray[np.float32] | npt.NDArray[np.float64]  # in x's dtype
MOMENTS = {"score_G": 4, "score_L": 2}  # Assumptions 3 and 4 bound these of the score, not its maximum


class EstimateWarning(UserWarning):
    """The constants are maxima over a sample, so that a bound computed from them is an estimate, not a guarantee.

    Example:
        >>> from onesfw import theory
        >>> issubclass(theory.EstimateWarning, UserWarning)
        True
    """


class Chances(NamedTuple):
    """The random numbers behind the points, and the rows of a finite sum to look at."""

    directions: Reals
    weights: Reals
    scales: Reals
    probe: Reals
    """where power iterations start"""
    rows: Counts


@dataclass(frozen=True)
class Function:
    """F̃(·; z) or log p(z; ·) for one draw z, with what its constants are read from."""

    gradient: Callable[[Tree], Tree]
    product: Callable[[Tree, Tree], Tree]
    """(y, u) ↦ ∇²ψ(y) u"""

    def slope(self, x: Tree) -> Array:
        """‖∇ψ(x)‖."""
        return norm(self.gradient(x))

    def curvature(self, x: Tree, u: Tree) -> Array:
        """‖∇²ψ(x)‖ from below, by the power method from u."""
        return largest(lambda v: self.product(x, v), u)

    def bend(self, x: Tree, u: Tree) -> Array:
        """‖∇³ψ(x)‖ from below, by v ← ∇³ψ(x)[v, v]: a symmetric form attains its norm on one vector (Banach 1938)."""
        return largest(lambda v: jax.jvp(lambda y: self.product(y, v), (x,), (v,))[1], u)


def estimate(
    objective: Objective,
    constraint: ConvexSet,
    x0: Tree | None = None,
    *,
    setting: str = CONVEX,
    points: int = 64,
    samples: int = 1_000,
    key: int | Array = 0,
) -> Constants:
    """The constants of a problem, as maxima over points of K and draws of z; emits an `EstimateWarning`.

    A maximum over a sample never exceeds the maximum it stands for: the bounds that follow from it are estimates. Where
    F̃ or its derivatives are unbounded in z, as with Gaussian noise, no finite constant is true and the estimates grow
    with `samples`. D and R are the set's own and no estimates; score_G and score_L are means over the draws.

    Points are vertices of K, points between two of them, and mixtures of many; in the dr_submodular setting they are
    also drawn towards 0. Spectral norms come from a dozen power iterations on Hessian-vector products.

    Args:
        objective: `Expectation`, `NonOblivious` or `FiniteSum`.
        constraint: a set from `onesfw.sets`.
        x0: a member of the set, which tells shapes and dtype and is one of the points; None for the set's own start.
        setting: "convex", "nonconvex" or "dr_submodular".
        points: how many points of K.
        samples: how many draws of z at each point; a finite sum of no more rows is gone through row by row.
        key: an integer seed or a JAX key.

    Returns:
        The constants, for `Bounds`.

    Raises:
        TypeError: where an argument is something else, or the objective has neither an integrand nor a log-density.
        ValueError: where x0 or the set does not fit, or a derivative overflows inside K.

    Example:
        >>> import warnings
        >>> from onesfw import theory, zoo
        >>> problem = zoo.get("quadratic-face")
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", theory.EstimateWarning)
        ...     constants = theory.estimate(problem.objective, problem.constraint, points=4, samples=50)
        >>> round(constants.D, 3), constants.G > 0
        (1.414, True)
    """
    points, samples = whole_number(points, "points", 1), whole_number(samples, "samples", 1)
    sign, algorithm = -1 if setting in MAXIMISED else 1, one_sfw(setting, schedule="paper")
    with checked_run(objective, constraint, x0, sign, steps=1, algorithm=algorithm, evaluate=False) as run:
        x = run.x0
        if not {capabilities.OBLIVIOUS, capabilities.DENSITY} & set(objective.offers):
            raise TypeError(f"estimate needs an integrand or a log-density, which {type(objective).__name__} has not")
        seed = as_key(key)
        # A function made anew, so that JAX forgets the program, and what the objective captured, with it.
        program = jax.jit(partial(measure, points=points, samples=samples, towards_zero=setting == DR_SUBMODULAR))
        chances = roll(seed, x, points, objective.n if isinstance(objective, FiniteSum) else 1, samples)
        maxima = program(trees.cast(objective, trees.dtype_of(x)), constraint, x, seed, chances)
        found = {name: float(value) for name, value in maxima.items()}
        D, R = extent(constraint, x)
    seen = min(samples, objective.n) if isinstance(objective, FiniteSum) else samples
    for name, value in found.items():
        if not math.isfinite(value):
            raise ValueError(f"the estimate of {name} is {value}: the objective or a derivative overflows inside K")
    warn(
        f"G, L and B are maxima over {points:,} points and {seen:,} draws, so lower bounds of the true constants: "
        "a bound computed from them is an estimate, not a guarantee",
        EstimateWarning,
    )
    oblivious = capabilities.OBLIVIOUS in objective.offers
    baseline = not oblivious and bool(getattr(objective, "baseline", False))
    return Constants(**found, D=D, R=R, oblivious=oblivious, baseline=baseline)


def roll(key: Array, x: Tree, points: int, rows: int, samples: int) -> Chances:
    """Random numbers from the host: JAX's hashes would take most of the program's compilation."""
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    size, count, dtype = sum(leaf.size for leaf in jax.tree.leaves(x)), max(points - 2, 1), trees.dtype_of(x)
    weights = generator.exponential(size=(count, count))
    return Chances(
        directions=generator.standard_normal((count, size)).astype(dtype),
        weights=(weights / weights.sum(1, keepdims=True)).astype(dtype),
        scales=generator.random((count, 1)).astype(dtype),
        probe=generator.standard_normal(size).astype(dtype),
        rows=np.arange(rows) if rows <= samples else generator.choice(rows, samples, replace=False),
    )


def measure(
    objective: Objective,
    constraint: ConvexSet,
    x: Tree,
    key: Array,
    chances: Chances,
    *,
    points: int,
    samples: int,
    towards_zero: bool,
) -> dict[str, Array]:
    """The maxima over points of the maxima, or means, over draws."""
    flat, unravel = trees.ravel(x)
    probe, zero = unravel(jnp.asarray(chances.probe)), jnp.zeros((), flat.dtype)
    oblivious = capabilities.OBLIVIOUS in objective.offers
    if isinstance(objective, FiniteSum):
        draws = jnp.asarray(chances.rows)
    else:
        draws = jax.vmap(lambda number: objective.draw(key, number))(jnp.arange(samples, dtype=jnp.int32))
    count = jax.tree.leaves(draws)[0].shape[0]
    batch = max(1, min(count, SLICE_BYTES // (4 * flat.size * flat.dtype.itemsize)))

    def at_point(place: Tree) -> dict[str, Array]:
        def at_draw(draw: Tree) -> dict[str, Array]:
            h = objective.at(draw, place, zero)
            integrand = function_of(h, oblivious)
            seen = {
                "B": jnp.abs(h.integrand(place)),
                "G": integrand.slope(place),
                "L": integrand.curvature(place, probe),
            }
            if h.log_prob is not None:
                score = by_autodiff(h.log_prob)
                seen["L2"] = integrand.bend(place, probe)
                seen["score_G"] = score.slope(place)
                seen["score_L"] = score.curvature(place, probe)
                seen["score_L2"] = score.bend(place, probe)
            return seen

        # A batch size compiles the draws twice, for the batches and for what is left over.
        seen = jax.vmap(at_draw)(draws) if batch >= count else jax.lax.map(at_draw, draws, batch_size=batch)
        return {
            name: jnp.mean(values ** MOMENTS[name]) ** (1 / MOMENTS[name]) if name in MOMENTS else jnp.max(values)
            for name, values in seen.items()
        }

    members = jax.tree.map(lambda leaf: leaf[:points], spread(constraint, x, chances, towards_zero))
    found: dict[str, Array] = jax.tree.map(jnp.max, jax.lax.map(at_point, members))
    return found


def spread(constraint: ConvexSet, x: Tree, chances: Chances, towards_zero: bool) -> Tree:
    """Members of K with a leading axis: x and the vertices' mean, then vertices, points between two, and mixtures.

    Slopes are often largest at vertices and curvatures in the middle, so that both must be among the points. Every
    second point is drawn towards 0 where continuous greedy would pass, and x is 0.
    """
    flat, unravel = trees.ravel(x)
    vertices = jax.lax.map(lambda d: trees.ravel(constraint.lmo(unravel(d)))[0], jnp.asarray(chances.directions))
    weights, numbers = chances.weights, jnp.arange(vertices.shape[0])
    share = weights[:, :1] / (weights[:, :1] + weights[:, -1:])
    between = share * vertices + (1 - share) * jnp.roll(vertices, 1, 0)
    chosen = jnp.stack([vertices, between, weights @ vertices])[numbers % 3, numbers]
    if towards_zero:
        chosen = jnp.where((numbers % 2 == 0)[:, None], chosen, chances.scales * chosen)
        flat = jnp.zeros_like(flat)
    return jax.vmap(unravel)(jnp.concatenate([flat[None], jnp.mean(vertices, 0)[None], chosen]))


def function_of(h: Surrogate, oblivious: bool) -> Function:
    """F̃(·; z), with the user's own derivatives where the surrogate is F̃ itself."""
    return Function(h.gradient, lambda y, u: h.hvp(y, u)[1]) if oblivious else by_autodiff(h.integrand)


def by_autodiff(function: Callable[[Tree], Array]) -> Function:
    """ψ with JAX's derivatives."""
    gradient = jax.grad(function)
    return Function(gradient, lambda y, u: jax.jvp(gradient, (y,), (u,))[1])


def largest(operator: Callable[[Tree], Tree], u: Tree) -> Array:
    """The largest ‖operator(v)‖ over the unit vectors v of a power iteration from u."""

    def advance(_: Array, state: tuple[Tree, Array]) -> tuple[Tree, Array]:
        v, best = state
        image = operator(v)
        return unit(image, v), jnp.maximum(best, norm(image))

    first = unit(u, u)
    found: Array = jax.lax.fori_loop(0, POWER_ITERATIONS, advance, (first, jnp.zeros((), trees.dtype_of(u))))[1]
    return found


def unit(v: Tree, otherwise: Tree) -> Tree:
    """v/‖v‖, or another vector where v = 0."""
    size = norm(v)
    safe = jnp.where(size > 0, size, 1)
    return jax.tree.map(lambda a, b: jnp.where(size > 0, a / safe, b), v, otherwise)


def norm(v: Tree) -> Array:
    """‖v‖₂ over all leaves."""
    return jnp.sqrt(trees.squared_norm(v))


def extent(constraint: ConvexSet, like: Tree) -> tuple[float, float]:
    """D and R as the set knows them, or from the box around a set that has its shape from x0 alone."""
    try:
        return constraint.diameter, constraint.radius
    except TypeError:  # of `known`: no shape
        lower, upper = constraint.bounds(like)
    reach = jax.tree.map(lambda a, b: jnp.maximum(jnp.abs(a), jnp.abs(b)), lower, upper)
    return float(norm(trees.subtract(upper, lower))), float(norm(reach))
