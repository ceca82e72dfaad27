"""Averages over batches whose size is an argument of the compiled loop: nothing is compiled anew for another size."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.capabilities import ObjectiveLike
from onesfw.trees import Array, Tree

BLOCK = 32  # samples evaluated together
BLOCK_BYTES = 1 << 22  # what their gradients may take in memory, however large the batch
WHOLE_BYTES = 1 << 26  # a fixed batch whose draws and gradients take no more is evaluated at once


def block_size(x: Tree) -> int:
    """How many samples are evaluated together: a power of two, so that their gradients fit into `BLOCK_BYTES`."""
    return max(1, min(BLOCK, 1 << max(0, (BLOCK_BYTES // max(1, trees.size_in_bytes(x))).bit_length() - 1)))


def drawn_late(objective: ObjectiveLike, batch: int) -> bool:
    """Whether a batch's draws are too large to be made before the step that uses them."""
    draw = jax.eval_shape(objective.draw, jax.random.key(0), jnp.int32(0))
    return batch > 1 and batch * trees.size_in_bytes(draw) > WHOLE_BYTES


def draw_batch(objective: ObjectiveLike, samples: Array, t: Array, batch: int) -> Tree:
    """The draws of step t along a leading axis; the key itself where they are `drawn_late`."""
    if drawn_late(objective, batch):
        return samples
    numbers = (t - 1) * batch + jnp.arange(batch, dtype=t.dtype)
    return jax.vmap(lambda number: objective.draw(samples, number))(numbers)


def batch_mean(
    one: Callable[[Tree, Tree], Tree],
    objective: ObjectiveLike,
    draws: Tree,
    beside: Tree,
    t: Array,
    batch: int,
    x: Tree,
) -> Tree:
    """The mean of one(draw, other) over the draws that `draw_batch` made for step t, and what stands `beside` each.

    All at once where their gradients, each as large as x, take little memory; a block at a time otherwise.
    """
    late = drawn_late(objective, batch)
    if not late and batch * trees.size_in_bytes(x) <= WHOLE_BYTES:
        return jax.tree.map(lambda leaf: jnp.mean(leaf, 0), jax.vmap(one)(draws, beside))

    def numbered(i: Array) -> Tree:
        draw = objective.draw(draws, (t - 1) * batch + i) if late else jax.tree.map(lambda leaf: leaf[i], draws)
        return one(draw, jax.tree.map(lambda leaf: leaf[i], beside))

    return mean_over(numbered, jnp.int32(0), jnp.int32(batch), block_size(x))


def still_sound(fault: Array, d: Tree) -> Array:
    """0 as long as every estimate was finite: a later one may be finite again, and the fault would be forgotten."""
    return jnp.where(trees.all_finite(d), fault, jnp.nan)


def mean_over(one: Callable[[Array], Tree], first: Array, count: Array, block: int, like: Tree | None = None) -> Tree:
    """(1/count) Σ one(number) over the samples number = first, …, first + count − 1; 0 where `count` is 0.

    `block` samples at a time; the last block's surplus is evaluated and left out. `like` has the shapes of one term,
    where they are known: it need not be traced for them.
    """
    places = jnp.arange(block, dtype=jnp.int32)
    shapes = jax.eval_shape(one, first) if like is None else like

    def add(b: Array, total: Tree) -> Tree:
        inside = b * block + places
        terms = jax.vmap(one)(first + inside)

        def kept(leaf: Array) -> Array:
            use = jnp.reshape(inside < count, (block,) + (1,) * (leaf.ndim - 1))
            return jnp.sum(jnp.where(use, leaf, 0), 0)

        return jax.tree.map(lambda old, leaf: old + kept(leaf), total, terms)

    total = lax.fori_loop(0, (count + block - 1) // block, add, trees.zeros_like(shapes))
    return jax.tree.map(lambda leaf: leaf / jnp.maximum(count, 1).astype(leaf.dtype), total)
