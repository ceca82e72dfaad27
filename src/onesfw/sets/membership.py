"""Membership from the oracle alone: the distance from x to K by Frank-Wolfe."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from onesfw import trees
from onesfw.trees import Array, Tree

State = tuple[Array, Array, Array, Array, Array]  # count, points, weights, distance, gap


def within_distance(lmo: Callable[[Tree], Tree], start: Tree, x: Tree, tol: float) -> Array:
    """Whether min over y in K of ‖y − x‖ is at most tol · (1 + ‖start‖), by pairwise Frank-Wolfe on y = Σ w_i a_i.

    At most `room` points a_i of K are kept: the lightest two are merged into their mean when a new vertex needs room.
    """
    x = jax.tree.map(jnp.asarray, x)
    finite = trees.all_finite(x)
    target, unravel = trees.ravel(x)
    target = jnp.where(finite, target, 0.0)
    first = trees.ravel(start)[0]
    enough = tol * (1.0 + jnp.linalg.norm(first))
    room = min(2 * target.size + 2, max(8, 10_000_000 // target.size), 500)

    def undecided(state: State) -> Array:
        count, _, _, distance, gap = state
        # ½ distance² − ½ (least distance)² ≤ gap: beyond this the least distance is more than enough.
        outside = distance * distance - 2 * gap > enough * enough
        return (count < 10_000) & (distance > enough) & ~outside

    def improve(state: State) -> State:
        count, points, weights, _, _ = state
        gradient = weights @ points - target
        vertex = trees.ravel(lmo(unravel(gradient)))[0]
        gap = weights @ (points @ gradient) - vertex @ gradient

        known_already = (weights > 0) & jnp.all(points == vertex, axis=1)
        lightest, second = jnp.argsort(weights)[:2]
        pair = weights[lightest] + weights[second]
        share = weights[lightest] / jnp.where(pair > 0, pair, 1.0)
        merged = share * points[lightest] + (1 - share) * points[second]
        place = jnp.where(jnp.any(known_already), jnp.argmax(known_already), lightest)
        makes_room = ~jnp.any(known_already)
        points = jnp.where(makes_room, points.at[second].set(merged).at[place].set(vertex), points)
        weights = jnp.where(makes_room, weights.at[second].set(pair).at[place].set(0.0), weights)

        worst = jnp.argmax(jnp.where(weights > 0, points @ gradient, -jnp.inf))
        towards = vertex - points[worst]
        length = -(gradient @ towards) / jnp.maximum(towards @ towards, jnp.finfo(target.dtype).tiny)
        length = jnp.clip(length, 0.0, weights[worst])
        weights = weights.at[worst].add(-length).at[place].add(length)
        return count + 1, points, weights / jnp.sum(weights), jnp.linalg.norm(gradient), gap

    infinity = jnp.asarray(jnp.inf, target.dtype)
    points = jnp.broadcast_to(first, (room, first.size))
    weights = jnp.zeros(room, target.dtype).at[0].set(1.0)
    state = (jnp.asarray(0), points, weights, infinity, infinity)
    return finite & (jax.lax.while_loop(undecided, improve, state)[3] <= enough)
