"""Oracles that SciPy answers on the host, called from compiled code."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw.sets.parameters import Parameter
from onesfw.trees import Array, DType, Function, HostArray


def on_host(function: Function, like: Array | jax.ShapeDtypeStruct, *args: Parameter) -> Array:
    """function(*args) on NumPy arrays; the result has the shape and dtype of `like`. The function is a module's own.

    float64 travels as pairs of 32-bit words: whether 64-bit numbers are enabled is a setting of each thread, a callback
    may come from a thread that lacks it, and JAX would then round arguments and results to float32.
    """
    arrays = [jnp.asarray(arg) for arg in args]
    words = [lax.bitcast_convert_type(a, jnp.uint32) if a.dtype == jnp.float64 else a for a in arrays]
    wide = like.dtype == jnp.float64
    shape = jax.ShapeDtypeStruct((*like.shape, 2), jnp.uint32) if wide else jax.ShapeDtypeStruct(like.shape, like.dtype)
    call = across(function, tuple(a.dtype == jnp.float64 for a in arrays), np.dtype(like.dtype))
    result = jax.pure_callback(call, shape, *words, vmap_method="sequential")
    return lax.bitcast_convert_type(result, jnp.float64) if wide else result


@cache  # one callback for the same call: compiled programs are found again by their text, which names it
def across(function: Function, doubles: tuple[bool, ...], dtype: DType) -> Function:
    """The function between words and numbers; `doubles` says which arguments are words of float64."""

    def call(*given: Parameter) -> HostArray:
        numbers = [from_words(np.asarray(g)) if d else np.asarray(g) for g, d in zip(given, doubles, strict=True)]
        result = np.asarray(function(*numbers), dtype)
        return to_words(result) if dtype == np.float64 else result

    # A program's text shows a callback by its name alone: functions of different names must not look the same.
    call.__qualname__ = f"{function.__module__}.{function.__qualname__}"
    return call


def to_words(array: HostArray) -> HostArray:
    """float64 numbers as pairs of 32-bit words, along a new last axis."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint32).reshape(*array.shape, 2)


def from_words(words: HostArray) -> HostArray:
    """The numbers that `to_words` wrote."""
    return np.ascontiguousarray(words).reshape(-1).view(np.float64).reshape(words.shape[:-1])
