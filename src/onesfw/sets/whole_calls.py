"""Parts of oracles that stay one call in a traced program, so that a loop may have another form for them."""

from __future__ import annotations

import jax

from onesfw.trees import Function


def whole_call(function: Function) -> Function:
    """The function as a call under its full name, which `engine.padded` looks up: sorts have no form in a GPU kernel.

    Everywhere else the call is inlined.
    """
    function.__name__ = f"{function.__module__}.{function.__name__}"
    called: Function = jax.jit(function)
    return called
