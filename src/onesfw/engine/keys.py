"""Keys: an integer or a JAX key as what the compiled loop takes, and as seeds of NumPy's generators on the host."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.arguments import named
from onesfw.trees import Array, HostArray

Key = int | np.int64 | np.int32 | np.uint32 | Array | HostArray
"""An integer seed, a JAX key, or the two words of an old-style key."""


def as_key(key: Key) -> Array:
    """A JAX key from an integer seed or a key; raises ValueError or TypeError where it is neither."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if not 0 <= key < 2**32:
            raise ValueError(f"{named('key')} must be a seed in 0..2^32 − 1, got {key}")
        return jax.random.key(int(key))
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ():
        return key
    if isinstance(key, jax.Array | np.ndarray) and key.dtype == np.uint32 and key.shape == (2,):
        return jax.random.wrap_key_data(jnp.asarray(key))
    raise TypeError(f"{named('key')} must be an integer seed or one JAX key, got {key!r}")


def seed_of(key: Key, stream: int = 0) -> int:
    """64 bits that belong to (key, stream): streams of one key are independent."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < 2**32:
        words = [int(key)]
    else:
        words = [int(word) for word in np.asarray(jax.random.key_data(as_key(key))).ravel()]
    high, low = np.random.SeedSequence([*words, stream]).generate_state(2)
    return int(high) << 32 | int(low)


def generator(key: Key, stream: int = 0) -> np.random.Generator:
    """NumPy's generator for (key, stream)."""
    return np.random.default_rng(seed_of(key, stream))
