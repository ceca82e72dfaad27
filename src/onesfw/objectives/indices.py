"""Row numbers as pure functions of (key, sample number): one hash each, and nothing stored."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from onesfw.trees import Array

ROUNDS = 6
traced_once = partial(jax.jit, static_argnames="n", inline=True)  # a run is traced anew at every call


@traced_once
def uniform_index(key: Array, number: Array, n: int) -> Array:
    """A uniform row 0..n−1 for sample `number`, independent of all other samples'.

    The folded key is itself a 64-bit hash w; ⌊n w/2⁶⁴⌋ is uniform up to n/2⁶⁴. `jax.random.randint` would hash five
    times, which is a fifth of a whole step at d = 20.
    """
    words = jax.random.key_data(jax.random.fold_in(key, number))
    high, low = words[0], words[1]
    product = high * jnp.uint32(n)
    carry = product + upper_product(low, n) < product
    return (upper_product(high, n) + carry).astype(jnp.int32)


def upper_product(word: Array, n: int) -> Array:
    """⌊word · n/2³²⌋ from 16-bit halves, 64-bit integers being off by default."""
    top, bottom = word >> 16, word & jnp.uint32(0xFFFF)
    n_top, n_bottom = jnp.uint32(n >> 16), jnp.uint32(n & 0xFFFF)
    middle = top * n_bottom + ((bottom * n_bottom) >> 16)
    other = bottom * n_top + (middle & jnp.uint32(0xFFFF))
    return top * n_top + (middle >> 16) + (other >> 16)


@traced_once
def shuffled_index(key: Array, number: Array, n: int) -> Array:
    """Entry `number mod n` of the random permutation of 0..n−1 that belongs to pass `number // n`.

    A Feistel network permutes the integers below the next power of four, whatever its round function; following it
    until it lands below n (at most four times on average) restricts it to a permutation of 0..n−1.
    """
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    mask = jnp.uint32(2**half - 1)
    number = jnp.asarray(number, jnp.uint32)
    keys = jax.random.bits(jax.random.fold_in(key, number // n), (ROUNDS,), jnp.uint32)

    def permute(value: Array) -> Array:
        left, right = value >> half, value & mask
        for r in range(ROUNDS):
            left, right = right, left ^ (mixed(right + keys[r]) & mask)
        return (left << half) | right

    def walk(value: Array) -> Array:
        return jax.lax.while_loop(lambda v: v >= n, permute, value)

    return walk(permute(number % n)).astype(jnp.int32)


def mixed(word: Array) -> Array:
    """A 32-bit word whose every output bit depends on every input bit (xor-shift and multiply, twice)."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x7FEB352D)
    word = (word ^ (word >> 15)) * jnp.uint32(0x846CA68B)
    return word ^ (word >> 16)
