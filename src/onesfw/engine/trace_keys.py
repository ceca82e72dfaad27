"""What a traced program depends on besides the shapes of its arguments, by value.

A run is traced at every call, since a user's functions may read what has changed in the meantime. Where all that they
read can be seen and cannot change under the hand (numbers, other functions, modules of known libraries), it makes a key
under which the trace is found again: the same lambda written anew has the same key, another number in it another one.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType, NoneType

import equinox as eqx
import jax
import numpy as np

from onesfw.trees import Tree, wide

LIBRARIES = {"builtins", "equinox", "functools", "jax", "jaxlib", "math", "numpy", "onesfw", "operator"}
PLAIN = (NoneType, bool, int, str, bytes, np.dtype)
# What reads more than a function's own names: an import inside it, and these of Python's.
ELSEWHERE = frozenset(("import", "__import__", "eval", "exec", "globals", "input", "locals", "open", "vars"))
JITTED = type(jax.jit(lambda: None))
SETTINGS = (
    "jax_default_matmul_precision", "jax_numpy_dtype_promotion", "jax_numpy_rank_promotion", "jax_disable_jit",
    "jax_threefry_partitionable", "jax_debug_nans", "jax_debug_infs",
)  # fmt: skip


class Unseen(Exception):
    """Something whose content is not known, or may change."""


def trace_key(*parts: object) -> Hashable | None:
    """A key of modules, functions and plain values; None where one of them depends on something that is not seen."""
    try:
        return (described(parts, False, set()), around())
    except Unseen:
        return None


def around() -> Hashable:
    """The settings that decide what a trace looks like."""
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    return (wide(), str(device), *(str(getattr(jax.config, name, None)) for name in SETTINGS))


def shape_key(args: Tree) -> Hashable:
    """Shapes and dtypes of a program's arguments."""
    leaves, structure = jax.tree.flatten(args)
    return structure, tuple((leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in leaves)


def described(thing: object, argument: bool, above: set[int]) -> Hashable:
    """The content of something by value; `argument` where its arrays are a program's arguments, which have no say.

    `above` holds the functions that are being described: those that call themselves would not end otherwise.
    """
    if isinstance(thing, PLAIN):
        return type(thing), thing
    if isinstance(thing, float | complex | np.generic):
        return type(thing), repr(thing)
    if argument and isinstance(thing, jax.Array | np.ndarray):
        return "array"
    if isinstance(thing, tuple) or (argument and isinstance(thing, list)):
        return type(thing), tuple(described(part, argument, above) for part in thing)
    if argument and isinstance(thing, dict):
        return dict, tuple((key, described(part, argument, above)) for key, part in thing.items())
    if of_a_library(thing):
        return thing
    if is_dataclass(thing) and of_a_library(type(thing)):
        return type(thing), tuple(
            (field.name, described(getattr(thing, field.name, None), given(thing, field.metadata), above))
            for field in fields(thing)
        )
    if id(thing) in above:
        return "itself"
    return described_function(thing, above | {id(thing)})


def known(module: object) -> bool:
    """Whether a module of that name belongs to a library whose functions do not change."""
    return isinstance(module, str) and module.partition(".")[0] in LIBRARIES


def of_a_library(thing: object) -> bool:
    """Whether it is a library's module, or a function or class that a library's module holds under its name."""
    if isinstance(thing, ModuleType):
        return known(thing.__name__)
    module, name = getattr(thing, "__module__", None), getattr(thing, "__name__", None)
    return known(module) and getattr(sys.modules.get(str(module)), str(name), None) is thing


def given(module: object, metadata: Mapping[object, object]) -> bool:
    """Whether the arrays of a field become arguments: those of an `eqx.Module`, unless the field is static."""
    return isinstance(module, eqx.Module) and not metadata.get("static")


def described_function(function: object, above: set[int]) -> Hashable:
    """A function by its code and all that it reads: what it closes over, its defaults, its module's names."""
    if isinstance(function, partial):
        named = tuple((name, described(value, False, above)) for name, value in function.keywords.items())
        return partial, described((function.func, function.args), False, above), named
    if isinstance(function, MethodType):
        return MethodType, described((function.__func__, function.__self__), False, above)
    if isinstance(function, JITTED):
        return JITTED, described(getattr(function, "__wrapped__", None), False, above)
    if not isinstance(function, FunctionType):
        raise Unseen
    try:
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    except ValueError:  # not yet assigned
        raise Unseen from None
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    space = function.__globals__
    names = [] if known(space.get("__name__")) else sorted(set(names_in(function.__code__)))
    if not ELSEWHERE.isdisjoint(names):
        raise Unseen
    read = tuple((name, space[name]) for name in names if name in space)
    return function.__code__, described((cells, defaults, read, tuple(vars(function).items())), False, above)


def names_in(code: CodeType) -> Iterator[str]:
    """The names that a function and those inside it read; attributes are among them. An import is "import"."""
    yield from code.co_names
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME" and not known(instruction.argval):
            yield "import"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)
