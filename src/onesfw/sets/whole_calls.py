"""Parts of oracles that stay one call in a traced program, so that a loop may have another form for them."""

from __future__ import annotations

from collections.abc import Callable

import jax

from onesfw.trees import Array


def whole_call(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function as a call under its full name, which `engine.padded` looks up: sorts have no form in a GPU kernel.

    Everywhere else the call is inlined.
    """
    function.__name__ = f"{function.__module__}.{function.__name__}"
    called: Callable[..., Array] = jax.jit(function)
    return called
