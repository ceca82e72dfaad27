"""Oracles that SciPy answers on the host, called from compiled code."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw.sets.parameters import Parameter
from onesfw.trees import Array, DType, Function, HostArray

PIECE = 1 << 16  # bytes of an argument of a callback, at most


def on_host(function: Function, like: Array | jax.ShapeDtypeStruct, *args: Parameter) -> Array:
    """function(*args) on NumPy arrays; the result has the shape and dtype of `like`. The function is a module's own.

    float64 travels as pairs of 32-bit words: whether 64-bit numbers are enabled is a setting of each thread, a callback
    may come from a thread that lacks it, and JAX would then round arguments and results to float32. Large arrays travel
    in pieces: beyond 100 kB JAX hands the copy to a thread of its pool, and on one core that thread is in the callback.
    """
    arrays = [jnp.asarray(arg) for arg in args]
    words = [lax.bitcast_convert_type(a, jnp.uint32) if a.dtype == jnp.float64 else a for a in arrays]
    wide = like.dtype == jnp.float64
    shape = jax.ShapeDtypeStruct((*like.shape, 2), jnp.uint32) if wide else jax.ShapeDtypeStruct(like.shape, like.dtype)
    passed = tuple((a.shape, a.dtype == jnp.float64) for a in arrays)
    call = across(function, passed, np.dtype(like.dtype))
    result = jax.pure_callback(call, shape, [pieces(w) for w in words], vmap_method="sequential")
    return lax.bitcast_convert_type(result, jnp.float64) if wide else result


def pieces(array: Array) -> list[Array]:
    """The array flat, cut where it is large."""
    flat, length = jnp.reshape(array, -1), PIECE // array.dtype.itemsize
    return [flat[first : first + length] for first in range(0, max(flat.size, 1), length)]


@cache  # one callback for the same call: compiled programs are found again by their text, which names it
def across(function: Function, passed: tuple[tuple[tuple[int, ...], bool], ...], dtype: DType) -> Function:
    """The function between pieces of words and numbers; `passed` says each argument's shape and if it is float64."""

    def call(given: list[list[Parameter]]) -> HostArray:
        numbers = [whole(g, *how) for g, how in zip(given, passed, strict=True)]
        result = np.asarray(function(*numbers), dtype)
        return to_words(result) if dtype == np.float64 else result

    # A program's text shows a callback by its name alone: functions of different names must not look the same.
    call.__qualname__ = f"{function.__module__}.{function.__qualname__}"
    return call


def whole(parts: list[Parameter], shape: tuple[int, ...], double: bool) -> HostArray:
    """An argument from its pieces."""
    flat = np.asarray(parts[0]) if len(parts) == 1 else np.concatenate([np.asarray(part) for part in parts])
    return (from_words(flat.reshape(-1, 2)) if double else flat).reshape(shape)


def to_words(array: HostArray) -> HostArray:
    """float64 numbers as pairs of 32-bit words, along a new last axis."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint32).reshape(*array.shape, 2)


def from_words(words: HostArray) -> HostArray:
    """The numbers that `to_words` wrote."""
    return np.ascontiguousarray(words).reshape(-1).view(np.float64).reshape(words.shape[:-1])
