"""Averages over batches whose size is an argument of the compiled loop: nothing is compiled anew for another size."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.trees import Array, Tree

BLOCK = 32  # samples evaluated together
BLOCK_BYTES = 1 << 22  # what their gradients may take in memory, however large the batch


def block_size(x: Tree) -> int:
    """How many samples are evaluated together: a power of two, so that their gradients fit into `BLOCK_BYTES`."""
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(x))
    return max(1, min(BLOCK, 1 << max(0, (BLOCK_BYTES // max(1, size)).bit_length() - 1)))


def still_sound(fault: Array, d: Tree) -> Array:
    """0 as long as every estimate was finite: a later one may be finite again, and the fault would be forgotten."""
    return jnp.where(trees.all_finite(d), fault, jnp.nan)


def mean_over(one: Callable[[Array], Tree], first: Array, count: Array, block: int) -> Tree:
    """(1/count) Σ one(number) over the samples number = first, …, first + count − 1; 0 where `count` is 0.

    `block` samples at a time; the last block's surplus is evaluated and left out.
    """
    places = jnp.arange(block, dtype=jnp.int32)
    shapes = jax.eval_shape(one, first)

    def add(b: Array, total: Tree) -> Tree:
        inside = b * block + places
        terms = jax.vmap(one)(first + inside)

        def kept(leaf: Array) -> Array:
            use = jnp.reshape(inside < count, (block,) + (1,) * (leaf.ndim - 1))
            return jnp.sum(jnp.where(use, leaf, 0), 0)

        return jax.tree.map(lambda old, leaf: old + kept(leaf), total, terms)

    total = lax.fori_loop(0, (count + block - 1) // block, add, trees.zeros_like(shapes))
    return jax.tree.map(lambda leaf: leaf / jnp.maximum(count, 1).astype(leaf.dtype), total)
