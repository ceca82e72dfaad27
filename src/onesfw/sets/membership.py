"""Membership from the oracle alone: the distance from x to K by Wolfe's nearest-point algorithm (1976)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.trees import Array, Tree

LIMIT = 5_000


class State(NamedTuple):
    """Points a_i − x of K with weights, the iterate being Σ w_i a_i, and what is known of its distance to x."""

    iteration: Array
    points: Array
    weights: Array
    settled: Array  # whether the weights are the best for these points: only then may another point come in
    distance: Array
    gap: Array


def within_distance(lmo: Callable[[Tree], Tree], start: Tree, x: Tree, tol: Array) -> Array:
    """Whether min over y in K of ‖y − x‖ is at most tol · (1 + ‖start‖).

    Wolfe's algorithm, which is fully corrective Frank-Wolfe on ½‖y − x‖²: the oracle's vertex joins the points kept,
    then the weights move to the nearest point of their affine hull, as far as they stay non-negative. Finite on
    polytopes. At most `room` points are kept: the lightest two are merged into their mean when another needs room.
    """
    x = jax.tree.map(jnp.asarray, x)
    finite = trees.all_finite(x)
    target, unravel = trees.ravel(x)
    target = jnp.where(finite, target, 0.0)
    first = trees.ravel(start)[0]
    enough = tol * (1.0 + jnp.linalg.norm(first))
    room = min(target.size + 3, 500)
    places = lax.iota(jnp.int32, room)

    def undecided(state: State) -> Array:
        # ½ distance² − ½ (least distance)² ≤ gap: beyond this the least distance is more than enough.
        outside = state.distance * state.distance - 2 * state.gap > enough * enough
        return (state.iteration < LIMIT) & (state.distance > enough) & ~outside

    def improve(state: State) -> State:
        points, weights = state.points, state.weights
        offset = weights @ points
        vertex = trees.ravel(lmo(unravel(offset)))[0] - target
        gap = offset @ offset - vertex @ offset

        joins = state.settled & ~jnp.any((weights > 0) & jnp.all(points == vertex, axis=1))
        lightest, second = jnp.argsort(weights)[:2]
        pair = weights[lightest] + weights[second]
        share = weights[lightest] / jnp.where(pair > 0, pair, 1.0)
        merged = share * points[lightest] + (1 - share) * points[second]
        points = jnp.where(joins, points.at[second].set(merged).at[lightest].set(vertex), points)
        weights = jnp.where(joins, weights.at[second].set(pair).at[lightest].set(0.0), weights)
        active = (weights > 0) | (joins & (places == lightest))

        change = affine_step(points, points @ offset, active)
        ratios = jnp.where(active & (change < 0), -weights / jnp.where(change < 0, change, -1.0), jnp.inf)
        length = jnp.minimum(1.0, jnp.min(ratios))
        weights = jnp.where(active & (ratios > length), jnp.maximum(weights + length * change, 0.0), 0.0)
        weights = weights / jnp.sum(weights)
        return State(state.iteration + 1, points, weights, length >= 1.0, jnp.linalg.norm(offset), gap)

    infinity = jnp.asarray(jnp.inf, target.dtype)
    points = jnp.broadcast_to(first - target, (room, first.size))
    weights = jnp.zeros(room, target.dtype).at[0].set(1.0)
    state = State(jnp.asarray(0), points, weights, jnp.asarray(True), infinity, infinity)
    return finite & (lax.while_loop(undecided, improve, state).distance <= enough)


def affine_step(points: Array, slopes: Array, active: Array) -> Array:
    """The δ with Σδ = 0, zero outside `active`, that minimises ‖y + Σ δ_i p_i‖, where slopes_i = ⟨p_i, y⟩.

    Adding a constant to the Gram matrix changes nothing under Σδ = 0 and makes it regular. What rounding leaves over
    is corrected by the next step, since the slopes are computed anew.
    """
    gram = points @ points.T
    scale = jnp.max(jnp.where(active, jnp.diag(gram), 0.0))
    scale = jnp.where(scale > 0, scale, 1.0)
    ridge = 10 * jnp.finfo(points.dtype).eps
    system = jnp.where(active[:, None] & active, gram + scale, 0.0) + jnp.diag(jnp.where(active, ridge, 1.0)) * scale
    sides = jnp.where(active[:, None], jnp.stack([slopes, jnp.ones_like(slopes)], axis=1), 0.0)
    step, level = jnp.linalg.solve(system, sides).T
    return level * (jnp.sum(step) / jnp.sum(level)) - step
