"""A user's function as JAX traces it: what its result depends on, which numbers it holds, and why tracing failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
from jax.extend import core

from onesfw import trees
from onesfw.trees import Function, HostArray, Tree

MOST_COMPARED = 10_000  # entries of an array that are compared: random ones differ everywhere
CALLS = frozenset({"jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "custom_jvp_call"})
"""Primitives that call a function with their own arguments, in order."""
DRAWS = ("random_", "threefry2x32")
"""How the primitives begin that draw random numbers."""

REMEDIES: tuple[tuple[type[Exception], str], ...] = (
    (
        jax.errors.NonConcreteBooleanIndexError,
        "it indexes with a condition on a traced value, whose shape is then not known; use jnp.where",
    ),
    (
        jax.errors.TracerBoolConversionError,
        "a Python if, while, and, or, min or max asks for the truth of a traced value; use jnp.where, jnp.logical_and, "
        "jnp.minimum, jnp.maximum or jax.lax.cond",
    ),
    (
        jax.errors.TracerArrayConversionError,
        "a NumPy function was called on a traced value; use the same function of jax.numpy, jnp. instead of np.",
    ),
    (
        jax.errors.TracerIntegerConversionError,
        "a traced value was used as a Python index, in range() or for a list; put the list into a jnp.array and index "
        "that",
    ),
    (
        jax.errors.ConcretizationTypeError,
        "float(), int() or .item() asks for the number behind a traced value; leave it an array, and compute with jnp",
    ),
)


def reason_of(error: Exception) -> str:
    """Why a function failed when it was traced, in a line: what to write instead, where it is tracing that failed."""
    for kind, remedy in REMEDIES:
        if isinstance(error, kind):
            return remedy
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    traced = "Tracer" in said
    return f"{said}; it met a traced value: compute with jnp, and draw with jax.random and the key" if traced else said


@dataclass(frozen=True)
class Tracing:
    """A traced function."""

    shapes: Tree
    """Of its result."""
    closed: core.ClosedJaxpr
    arguments: tuple[int, ...]
    """How many arrays each argument consists of."""

    def depends_on(self, argument: int) -> bool:
        """Whether the result depends on that argument."""
        first = sum(self.arguments[:argument])
        given = [first <= place < first + self.arguments[argument] for place in range(sum(self.arguments))]
        return any(reached(self.closed.jaxpr, given))

    @property
    def draws(self) -> bool:
        """Whether random numbers are drawn with `jax.random`."""
        return any(equation.primitive.name.startswith(DRAWS) for equation in equations(self.closed.jaxpr))

    @property
    def holds_arrays(self) -> bool:
        """Whether arrays of numbers were captured, rather than made from single numbers as zeros and ones are."""
        return any(np.size(number) > 1 for number in numbers(self.closed))

    @property
    def holds_numbers(self) -> bool:
        """Whether it has numbers of its own, other than zeros."""
        counted = any(equation.primitive.name == "iota" for equation in equations(self.closed.jaxpr))
        return counted or any(np.any(some_of(number) != 0) for number in numbers(self.closed))


def trace(function: Function, *args: Tree) -> Tracing:
    """Trace a function anew: JAX remembers what it traced by the function's identity."""
    closed, shapes = jax.make_jaxpr(lambda *given: function(*given), return_shape=True)(*args)
    return Tracing(trees.shapes(shapes), closed, tuple(len(jax.tree.leaves(arg)) for arg in args))


def same_numbers(one: Tracing, other: Tracing) -> bool:
    """Whether two tracings of a function hold the same numbers."""
    mine, theirs = numbers(one.closed), numbers(other.closed)
    return len(mine) == len(theirs) and all(alike(a, b) for a, b in zip(mine, theirs, strict=True))


def alike(a: Tree, b: Tree) -> bool:
    """Whether two constants are the same, by a part of their entries where they are large."""
    if a is b:
        return True
    if np.shape(a) != np.shape(b):
        return False
    return np.array_equal(some_of(a), some_of(b), equal_nan=trees.is_floating(np.asarray(some_of(a))))


def some_of(constant: Tree) -> HostArray:
    """A constant's entries, at most `MOST_COMPARED` of them; the bits of a key."""
    if jax.dtypes.issubdtype(getattr(constant, "dtype", np.float32), jax.dtypes.prng_key):
        constant = jax.random.key_data(constant)
    flat = constant.reshape(-1) if np.ndim(constant) else np.asarray(constant)[None]
    return np.asarray(flat[:: max(1, flat.size // MOST_COMPARED)])


def numbers(closed: core.ClosedJaxpr) -> list[Tree]:
    """Every constant of a traced function, captured arrays and single numbers alike."""
    found: list[Tree] = list(closed.consts)
    for inner in functions(closed.jaxpr):
        found += inner.consts
    for equation in equations(closed.jaxpr):
        found += [atom.val for atom in equation.invars if isinstance(atom, core.Literal)]
    return found + [atom.val for atom in closed.jaxpr.outvars if isinstance(atom, core.Literal)]


def equations(jaxpr: core.Jaxpr) -> Iterator[core.JaxprEqn]:
    """All equations, those of inner functions too."""
    yield from jaxpr.eqns
    for inner in functions(jaxpr):
        yield from inner.jaxpr.eqns


def functions(jaxpr: core.Jaxpr) -> Iterator[core.ClosedJaxpr]:
    """All inner functions: of jit, loops and branches."""
    for equation in jaxpr.eqns:
        for inner in called(equation):
            yield inner
            yield from functions(inner.jaxpr)


def called(equation: core.JaxprEqn) -> list[core.ClosedJaxpr]:
    """The functions among an equation's parameters."""
    values = [part for value in equation.params.values() for part in (value if isinstance(value, tuple) else (value,))]
    return [v if isinstance(v, core.ClosedJaxpr) else core.ClosedJaxpr(v, ()) for v in values
            if isinstance(v, core.ClosedJaxpr | core.Jaxpr)]  # fmt: skip


def reached(jaxpr: core.Jaxpr, given: list[bool]) -> list[bool]:
    """Which results depend on the inputs that are `given`; a loop's depend on all of its inputs."""
    found = {variable for variable, here in zip(jaxpr.invars, given, strict=True) if here}
    for equation in jaxpr.eqns:
        inputs = [not isinstance(atom, core.Literal) and atom in found for atom in equation.invars]
        inner = called(equation)
        if equation.primitive.name in CALLS and len(inner) == 1 and len(inner[0].jaxpr.invars) == len(inputs):
            outputs = reached(inner[0].jaxpr, inputs)
        else:
            outputs = [any(inputs)] * len(equation.outvars)
        found.update(variable for variable, here in zip(equation.outvars, outputs, strict=True) if here)
    return [not isinstance(atom, core.Literal) and atom in found for atom in jaxpr.outvars]
