"""A loop of small steps as one function of machine code.

XLA's runtime for CPUs calls every operation in the body of a loop by itself, some 30 ns each: more than half of a step
in 20 dimensions. Loops that touch less than a kilobyte it compiles whole; an attribute on a call asks for the same.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend import core

from onesfw.trees import Array, Tree

MOST_ENTRIES = 4095  # of an array in the body: reductions of more have library forms, which only the runtime can call
WHOLE = {"xla_cpu_small_call": "true", "inlineable": "false"}
# What a function of machine code may hold. Sorts, scatters, factorisations and callbacks are the runtime's.
SIMPLE = frozenset(
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh bitcast_convert_type broadcast_in_dim cbrt ceil clamp
    concatenate cond convert_element_type copy cos cosh div dot_general dynamic_slice dynamic_update_slice eq erf
    erf_inv exp exp2 expm1 floor gather ge gt integer_pow iota is_finite le log log1p logistic lt max min
    mul ne neg nextafter not or pad population_count pow reduce_and reduce_max reduce_min reduce_or reduce_prod
    reduce_sum rem reshape rev round rsqrt scan select_n shift_left shift_right_arithmetic shift_right_logical sign sin
    sinh slice split sqrt square squeeze stop_gradient sub tan tanh transpose while xor
    jit custom_jvp_call custom_vjp_call remat2
    """.split()  # noqa: SIM905
)
KINDS = ("float32", "float64", "int32", "int64", "uint32", "uint64", "bool")
# These may have large operands: a row of the data, or what a called program takes it from.
FROM_LARGE = frozenset(("dynamic_slice", "gather", "slice", "cond", "scan", "while", "jit", "remat2"))


def small_loop(low: Array, high: Array, body: core.ClosedJaxpr, state: Tree) -> Tree:
    """`lax.fori_loop(low, high, body, state)` for a traced body; where it is small, as one function of machine code.

    XLA ends the process where such a function has an argument that it does not read, or that is a constant. So all are
    read; `low`, `high`, the state and the arrays that the body captures must come from the arguments of the program.
    """
    given, count = [*body.consts, *jax.tree.leaves(state)], len(body.consts)

    def steps(low: Array, high: Array, given: list[Array]) -> list[Array]:
        def turn(i: Array, leaves: list[Array]) -> list[Array]:
            found: list[Array] = jax.core.eval_jaxpr(body.jaxpr, given[:count], i, *leaves)
            return found

        found: list[Array] = lax.fori_loop(low, high, turn, given[count:])
        return found

    def whole(low: Array, high: Array, given: list[Array]) -> tuple[list[Array], Array]:
        with set_xla_metadata(**dict.fromkeys(WHOLE)):  # of the call alone, not of what is in it
            read = jnp.stack([jnp.ravel(array)[0] != 0 for array in given])
            return steps(low, jnp.where((low >= 0) | jnp.any(read), high, low), given), read

    if is_small(body.jaxpr) and all(is_plain(array) for array in given):
        with set_xla_metadata(**WHOLE):
            leaves, _ = jax.jit(whole)(low, high, given)
    else:
        leaves = steps(low, high, given)
    return jax.tree.unflatten(jax.tree.structure(state), leaves)


def is_plain(array: Array) -> bool:
    """Whether there is something in it, and of an ordinary kind."""
    return array.size > 0 and str(array.dtype) in KINDS


def is_small(jaxpr: core.Jaxpr) -> bool:
    """Whether nothing that a traced program works on is large, or of a kind that needs the runtime."""
    return all(
        eqn.primitive.name in SIMPLE
        and all(fits(out) for out in eqn.outvars)
        and (eqn.primitive.name in FROM_LARGE or all(fits(operand) for operand in eqn.invars))
        and all(is_small(inner) for inner in core.jaxprs_in_params(eqn.params))
        for eqn in jaxpr.eqns
    )


def fits(operand: core.Var | core.Literal) -> bool:
    """Whether an operand is small, and its numbers of an ordinary kind."""
    aval: jax.core.ShapedArray = operand.aval  # type: ignore[assignment]
    return math.prod(aval.shape) <= MOST_ENTRIES and str(aval.dtype) in KINDS
