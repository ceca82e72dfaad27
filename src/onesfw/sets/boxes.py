"""Boxes, and a box cut by one budget."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from onesfw import trees
from onesfw.sets.base import ConvexSet, VectorSet, known
from onesfw.sets.parameters import Parameter, Shape, as_shape, finite, is_number, matched, numbers, positive, within
from onesfw.sets.whole_calls import whole_call
from onesfw.trees import Array, Tree


class Box(ConvexSet):
    """{x : lower ≤ x ≤ upper}, the bounds being numbers, arrays, or pytrees like x.

    lmo(d) = lower where d_i > 0, upper elsewhere. O(d).

    Args:
        lower: the least x, a number, an array or a pytree like x.
        upper: the greatest x, likewise.
        shape: of x, where both bounds are numbers; None takes it from them or from x0.

    Raises:
        TypeError: where a bound holds something that is no real number.
        ValueError: where the bounds and the shape do not match, lower exceeds upper, or a bound is not finite.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> fw.sets.Box(0.0, [1.0, 2.0]).lmo(jnp.array([-1.0, 1.0])).tolist()
        [1.0, 0.0]
    """

    lower: Tree
    upper: Tree
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, lower: Tree, upper: Tree, shape: int | Shape | None = None) -> None:
        lower, upper = numbers(lower, "Box", "lower"), numbers(upper, "Box", "upper")
        if is_number(lower):
            lower = jax.tree.map(lambda _, number=lower: number, upper)
        if is_number(upper):
            upper = jax.tree.map(lambda _, number=upper: number, lower)
        self.shape = as_shape(shape, "Box")
        if self.shape is not None and not isinstance(lower, np.ndarray):
            raise ValueError("Box: shape goes with bounds that are numbers or arrays; a tree of bounds has its shapes")
        try:
            pairs = jax.tree.map(lambda a, b: np.broadcast_arrays(a, b), lower, upper)
            self.lower = jax.tree.map(lambda _, pair: pair[0].copy(), lower, pairs)
            self.upper = jax.tree.map(lambda _, pair: pair[1].copy(), lower, pairs)
            if self.shape is not None:
                self.lower, self.upper = (np.broadcast_to(side, self.shape) for side in (self.lower, self.upper))
        except ValueError:
            raise ValueError(
                f"Box: lower, upper and shape must match, got {trees.describe(lower)}, {trees.describe(upper)} "
                f"and {self.shape}: give both bounds the shape of x, or numbers"
            ) from None
        if any(np.any(a > b) for a, b in zip(jax.tree.leaves(self.lower), jax.tree.leaves(self.upper), strict=True)):
            raise ValueError("Box: lower must not exceed upper in any coordinate; are the two swapped?")

    def sides(self, like: Tree) -> tuple[Tree, Tree]:
        """The bounds in the shapes and dtypes of `like`."""
        return matched(self.lower, like, "Box", "lower"), matched(self.upper, like, "Box", "upper")

    def lmo(self, d: Tree) -> Tree:
        """lower where d > 0, upper elsewhere."""
        d = jax.tree.map(jnp.asarray, d)
        return jax.tree.map(lambda g, a, b: jnp.where(g > 0, a, b), d, *self.sides(d))

    def lmo_below(self, d: Tree, room: Tree) -> Tree:
        """The smaller of upper and room where d < 0, lower elsewhere."""
        d = jax.tree.map(jnp.asarray, d)
        return jax.tree.map(lambda g, r, a, b: jnp.where(g < 0, jnp.minimum(b, r), a), d, room, *self.sides(d))

    def contains(self, x: Tree, tol: float = 1e-6) -> Array:
        """Whether lower ≤ x ≤ upper up to tol · max(1, |bound|)."""
        x = jax.tree.map(jnp.asarray, x)
        inside = jax.tree.map(lambda y, a, b: jnp.all(within(y, b, tol) & within(-y, -a, tol)), x, *self.sides(x))
        return jnp.all(jnp.stack(jax.tree.leaves(inside)))

    def project(self, y: Tree) -> Tree:
        """y clipped to the box."""
        y = jax.tree.map(jnp.asarray, y)
        return jax.tree.map(jnp.clip, y, *self.sides(y))

    def start(self, like: Tree) -> Tree:
        """The midpoint."""
        return jax.tree.map(lambda a, b: a / 2 + b / 2, *self.sides(like))

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The box itself."""
        return self.sides(known(self, like))

    def template(self) -> Tree | None:
        """The shapes of the bounds; None where a number stands for bounds of any shape."""
        if any(is_number(leaf) for leaf in jax.tree.leaves(self.lower)):
            return self.shape
        return jax.tree.map(np.shape, self.lower)

    @property
    def diameter(self) -> float:
        """‖upper − lower‖₂."""
        known(self, None)
        return norm(jax.tree.map(lambda a, b: b - a, self.lower, self.upper))

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = ‖max(|lower|, |upper|)‖₂."""
        known(self, None)
        return norm(jax.tree.map(lambda a, b: np.maximum(np.abs(a), np.abs(b)), self.lower, self.upper))


def norm(tree: Tree) -> float:
    """‖a‖₂ over all leaves, on the host in float64."""
    return math.hypot(*(float(np.linalg.norm(np.ravel(leaf))) for leaf in jax.tree.leaves(tree)))


class Knapsack(VectorSet):
    """{x : 0 ≤ x ≤ upper, costs · x ≤ budget}, costs ≥ 0.

    lmo(d) takes the coordinates with d_i < 0 by falling −d_i/costs_i while the budget lasts, the last one in part
    (Dantzig 1957); what costs nothing is taken whole. O(d log d).

    Args:
        costs: an array with one cost for each coordinate of x, not negative.
        budget: positive.
        upper: the greatest x, a number or an array like costs.

    Raises:
        TypeError: where an argument holds something that is no real number.
        ValueError: where shapes do not match, a cost or upper is negative, or budget is not positive.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> sack = fw.sets.Knapsack(costs=[1.0, 2.0, 4.0], budget=4.0)
        >>> sack.lmo(jnp.array([-1.0, -1.0, -1.0])).tolist()
        [1.0, 1.0, 0.25]
    """

    costs: Parameter
    budget: Parameter
    upper: Parameter
    shape: Shape = eqx.field(static=True)

    def __init__(self, costs: npt.ArrayLike, budget: float, upper: npt.ArrayLike = 1.0) -> None:
        costs, upper = finite(costs, "Knapsack", "costs"), finite(upper, "Knapsack", "upper")
        if costs.ndim == 0:
            raise ValueError("Knapsack: costs must be an array with one cost per coordinate of x")
        if upper.ndim and upper.shape != costs.shape:
            raise ValueError(f"Knapsack: upper must be a number or have the shape {costs.shape}, got {upper.shape}")
        for value, what in ((costs, "costs"), (upper, "upper")):
            if np.any(value < 0):
                raise ValueError(f"Knapsack: {what} must not be negative; the smallest entry is {value.min()}")
        self.budget = positive(budget, "Knapsack", "budget")
        self.shape = costs.shape
        self.costs = costs.ravel()
        self.upper = np.broadcast_to(upper, costs.shape).ravel()

    def lmo_vector(self, d: Array) -> Array:
        return fill_knapsack(-d, self.costs, self.budget, self.upper)

    def lmo_below(self, d: Tree, room: Tree) -> Tree:
        """The same rule with the smaller of upper and room."""
        vector, unravel = self.as_vector(d)
        mine = trees.cast(self, vector.dtype)
        return unravel(fill_knapsack(-vector, mine.costs, mine.budget, jnp.minimum(mine.upper, trees.ravel(room)[0])))

    def contains_vector(self, x: Array, tol: float) -> Array:
        inside = jnp.all((x >= -tol) & within(x, self.upper, tol))
        return inside & within(jnp.sum(self.costs * x), self.budget, tol)

    def project_vector(self, y: Array) -> Array:
        return project_knapsack(y, self.costs, self.budget, self.upper)

    def start_vector(self, like: Array) -> Array:
        return jnp.zeros_like(like)

    def bounds_vector(self, like: Array) -> tuple[Array, Array]:
        affordable = self.budget / jnp.where(self.costs > 0, self.costs, 1.0)
        highest = jnp.where(self.costs > 0, jnp.minimum(self.upper, affordable), self.upper)
        return jnp.zeros_like(like), highest

    @property
    def diameter(self) -> float:
        """√(max upper · x) over twice the budget: an upper bound, exact when that maximum takes every item whole.

        (x_i − y_i)² ≤ upper_i · w_i for w = max(x, y), and w costs no more than 2 · budget.
        """
        return self.reach(2.0)

    @property
    def radius(self) -> float:
        """√(max upper · x) ≥ max ‖x‖₂, for x_i² ≤ upper_i x_i: exact when that maximum takes every item whole."""
        return self.reach(1.0)

    def reach(self, budgets: float) -> float:
        """√(max upper · x) over the knapsack with so many times the budget."""
        # By ratio upper/costs, on the host in float64: the same greedy rule as `fill_knapsack`.
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-np.nan_to_num(self.upper / self.costs, nan=0.0), kind="stable")
        spent = np.cumsum((self.costs * self.upper)[order])
        amount = np.diff(np.minimum(spent, budgets * self.budget), prepend=0.0)
        cost, upper = self.costs[order], self.upper[order]
        taken = np.where(cost > 0, amount / np.where(cost > 0, cost, 1.0), upper)
        return math.sqrt(float(np.sum(upper * taken)))


@whole_call
def fill_knapsack(gain: Array, costs: Array, budget: Array, upper: Array) -> Array:
    """argmax of ⟨gain, x⟩ over {0 ≤ x ≤ upper, costs · x ≤ budget}."""
    wanted, free = gain > 0, costs <= 0
    ratio = jnp.where(free, jnp.inf, gain / jnp.where(free, 1.0, costs))
    order = jnp.argsort(-jnp.where(wanted, ratio, 0.0), stable=True)
    whole = (costs * upper)[order]
    left = jnp.maximum(budget - (jnp.cumsum(whole) - whole), 0.0)
    part = jnp.minimum(1.0, left / jnp.where(whole > 0, whole, 1.0))
    part = jnp.where(whole > 0, part, 1.0)
    return jnp.where(wanted, upper * jnp.zeros_like(gain).at[order].set(part), 0.0)


def project_knapsack(y: Array, costs: Array, budget: Array, upper: Array) -> Array:
    """argmin of ‖x − y‖₂ over {0 ≤ x ≤ upper, costs · x ≤ budget}: x = clip(y − θ·costs, 0, upper). O(d log d).

    The cost of x falls piecewise linearly in θ ≥ 0. Its breakpoints are sorted, the piece that meets the budget found
    by bisection among them, and θ solved for on that piece: no tolerance is needed.
    """

    def clipped(theta: Array) -> Array:
        return jnp.clip(y - theta * costs, 0.0, upper)

    safe = jnp.where(costs > 0, costs, 1.0)
    breaks = jnp.where(costs > 0, jnp.stack([(y - upper) / safe, y / safe]), 0.0)
    breaks = jnp.sort(jnp.maximum(breaks.ravel(), 0.0))
    breaks = jnp.concatenate([jnp.zeros(1, y.dtype), breaks])

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) // 2
        dear = jnp.sum(costs * clipped(breaks[middle])) > budget
        return jnp.where(dear, middle, low), jnp.where(dear, high, middle)

    ends = (jnp.asarray(0), jnp.asarray(breaks.size - 1))
    low, high = lax.fori_loop(0, math.ceil(math.log2(breaks.size)), halve, ends)
    inside = y - (breaks[low] / 2 + breaks[high] / 2) * costs
    moving = (costs > 0) & (inside > 0) & (inside < upper)
    fixed = jnp.sum(jnp.where(moving, costs * y, costs * jnp.clip(inside, 0.0, upper)))
    slope = jnp.sum(jnp.where(moving, costs * costs, 0.0))
    theta = jnp.where(slope > 0, (fixed - budget) / jnp.where(slope > 0, slope, 1.0), breaks[low])
    theta = jnp.clip(theta, breaks[low], breaks[high])
    free = jnp.clip(y, 0.0, upper)
    return jnp.where(jnp.sum(costs * free) <= budget, free, clipped(theta))
