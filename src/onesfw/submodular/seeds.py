"""Randomness on the host, from the same keys that the compiled loop takes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from onesfw.build import as_key


def seed_of(key: Any, stream: int = 0) -> int:
    """64 bits that belong to (key, stream): streams of one key are independent."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < 2**32:
        words = [int(key)]
    else:
        words = [int(word) for word in np.asarray(jax.random.key_data(as_key(key))).ravel()]
    high, low = np.random.SeedSequence([*words, stream]).generate_state(2)
    return int(high) << 32 | int(low)


def generator(key: Any, stream: int = 0) -> np.random.Generator:
    """NumPy's generator for (key, stream)."""
    return np.random.default_rng(seed_of(key, stream))
