"""What oracles compute by sorting, from reductions alone: sorts have no form in a GPU kernel.

Every function takes padded vectors, of which the first n entries count, and gives what the function of the same name in
`onesfw.sets` gives, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from onesfw.trees import Array, DType

MOST_GROUPS = 256  # a reduction each


def k_largest(values: Array, n: int, k: int) -> Array:
    """Which are the k largest of values ≥ 0, ties to the lowest index: by bisection for the k-th largest."""
    bits = jnp.where(places(values) < n, order_bits(values), -1)
    least = last_that_holds(bits.dtype, lambda bound: count(bits >= bound) >= k)
    over, ties = bits > least, (bits == least).astype(jnp.int32)
    return over | ((ties > 0) & (lax.cumsum(ties) <= k - count(over)))


def first_largest(values: Array, n: int) -> Array:
    """The place of the first largest entry."""
    there = places(values) < n
    largest = jnp.max(jnp.where(there, values, -jnp.inf))
    return jnp.min(jnp.where(there & (values == largest), places(values), n))


def fill_knapsack(gain: Array, costs: Array, budget: Array, upper: Array, n: int) -> Array:
    """argmax of ⟨gain, x⟩ over {0 ≤ x ≤ upper, costs · x ≤ budget}: bisection for the ratio where the budget ends."""
    zero, free = jnp.zeros((), gain.dtype), costs <= 0
    wanted = (gain > 0) & (places(gain) < n)
    ratio = order_bits(gain / jnp.where(free, jnp.ones((), gain.dtype), costs))
    bits = jnp.where(wanted & ~free, jnp.maximum(ratio, 1), 0)
    whole = jnp.where(bits > 0, costs * upper, zero)
    edge = last_that_holds(bits.dtype, lambda bound: jnp.sum(jnp.where(bits >= bound, whole, zero)) > budget)
    ties = jnp.where(bits == edge, whole, zero)
    left = budget - jnp.sum(jnp.where(bits > edge, whole, zero)) - (lax.cumsum(ties) - ties)
    part = jnp.clip(left / jnp.where(ties > 0, ties, jnp.ones_like(ties)), 0, 1)
    share = jnp.where(ties > 0, part, ((bits > edge) | (whole <= 0)).astype(gain.dtype))
    return jnp.where(wanted, upper * share, zero)


def best_group(terms: Array, groups: Array, n: int, groups_in_all: int) -> Array:
    """Which coordinates lie in the group with the largest sum of terms ≥ 0, the first of equals: a group at a time."""
    zero = jnp.zeros((), terms.dtype)
    terms = jnp.where(places(terms) < n, terms, zero)

    def better(group: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        total = jnp.sum(jnp.where(groups == group, terms, zero))
        return jnp.maximum(best[0], total), jnp.where(total > best[0], group, best[1])

    return groups == lax.fori_loop(0, groups_in_all, better, (zero - 1, jnp.int32(0)))[1]


def places(values: Array) -> Array:
    """0, 1, 2, …"""
    return lax.broadcasted_iota(jnp.int32, values.shape, 0)


def count(chosen: Array) -> Array:
    """How many."""
    return jnp.sum(chosen.astype(jnp.int32))


def order_bits(values: Array) -> Array:
    """Integers in the order of numbers that are not negative; NaN is the largest."""
    return lax.bitcast_convert_type(values, jnp.int64 if values.dtype.itemsize == 8 else jnp.int32)


def last_that_holds(dtype: DType, holds: Callable[[Array], Array]) -> Array:
    """The largest integer for which `holds`, which is true up to there: bit by bit; 0 where it is true for none."""
    most = 8 * jnp.dtype(dtype).itemsize - 2

    def decide(i: Array, found: Array) -> Array:
        candidate = found | (jnp.ones((), dtype) << (most - i).astype(dtype))
        return jnp.where(holds(candidate), candidate, found)

    return lax.fori_loop(0, most + 1, decide, jnp.zeros((), dtype))
