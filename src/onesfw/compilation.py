"""Compiled programs, kept under the text of what they compute.

Users write closures over large arrays and fresh lambdas at every call. A program is traced once per run, the arrays
it captured become arguments, and the executable is found again by the traced text: a new lambda, new data, another
radius, key or number of steps compiles nothing, and no captured array is kept alive.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from onesfw.trees import Tree, wide

CAPACITY = 128  # programs kept; the least recently used is dropped

_programs: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
_lock = threading.Lock()
_compilations = 0


def compilations() -> int:
    """How many programs this process has compiled."""
    return _compilations


class Program:
    """A function ready to run, `seconds` after it was asked for."""

    def __init__(self, function: Callable[..., Tree], *args: Tree) -> None:
        """Trace `function` on arguments like `args` (arrays or shapes) and compile it unless its text is known."""
        begun = time.perf_counter()
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        self.structure = jax.tree.structure(shape)
        self.constants = [jnp.asarray(c) if not isinstance(c, jax.Array) else c for c in closed.consts]
        self.text = str(closed.jaxpr)
        self.execute = executable(self.text, closed, self.constants)
        self.seconds = time.perf_counter() - begun

    def __call__(self, *args: Tree) -> Tree:
        """The function's result; arguments must have the shapes and dtypes it was traced with."""
        return jax.tree.unflatten(self.structure, self.execute(self.constants, *jax.tree.leaves(args)))


def executable(text: str, closed: Any, constants: list[jax.Array]) -> Any:
    """The compiled form of a traced program, from the store or anew."""
    global _compilations
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    key = (text, wide(), str(device))
    with _lock:
        found = _programs.get(key)
        if found is None:
            jaxpr = closed.jaxpr  # not `closed`, which would keep the captured arrays alive
            arguments = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in jaxpr.invars]
            run = jax.jit(lambda consts, *flat: jax.core.eval_jaxpr(jaxpr, consts, *flat))
            found = run.lower(constants, *arguments).compile()
            _programs[key] = found
            _compilations += 1
            while len(_programs) > CAPACITY:
                _programs.popitem(last=False)
        _programs.move_to_end(key)
        return found


def split(tree: Tree) -> tuple[list[Any], Callable[[list[Any]], Tree]]:
    """The arrays of a tree of modules as a flat list, and the way back.

    Flat, because a module's structure holds the user's functions, and JAX remembers the structure of every argument
    it has traced: the functions, and the arrays they captured, would never be freed.
    """
    arrays, rest = eqx.partition(tree, lambda leaf: isinstance(leaf, jax.Array | np.ndarray))
    leaves, structure = jax.tree.flatten(arrays)
    return leaves, lambda flat: eqx.combine(jax.tree.unflatten(structure, flat), rest)
