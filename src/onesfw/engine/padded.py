"""A traced step with every axis rounded up to a power of two, as a GPU kernel holds its arrays.

The step is traced at the true sizes and evaluated on larger arrays: elementwise operations do not mind, and every
reduction first puts the neutral element where there is only padding. So the numbers are those of the true sizes
whatever the padding holds: a mean divides by the true n, and no oracle picks a coordinate that does not exist. Axes of
length 1 are dropped on the way, so that a batch of one is a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from onesfw.engine import kernel_forms
from onesfw.trees import Array, Tree

# What Triton's lowering in Pallas has: `tests/engine/test_kernel_lowering.py` lowers each.
ELEMENTWISE = frozenset(
    """
    abs acos acosh add and asin asinh atan atan2 atanh cbrt ceil clamp clz convert_element_type cos cosh div eq erf_inv
    exp exp2 expm1 floor ge gt integer_pow is_finite le log log1p logistic lt max min mul ne neg nextafter not
    one_minus_square or population_count pow rem rsqrt select_n shift_left shift_right_arithmetic shift_right_logical
    sign sin sinh sqrt square sub tan tanh xor
    """.split()  # noqa: SIM905
)
CALLS = ("jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "remat2", "custom_jvp_call", "custom_vjp_call")


class NotPaddable(Exception):
    """A step does something that has no form on padded arrays; another loop runs it."""


class Stored(Protocol):
    """An array outside the kernel, of which one row at a time is read."""

    def row(self, number: Array) -> Array:
        """Row `number`, padded."""


def round_up(n: int) -> int:
    """The next power of two."""
    return 1 << (n - 1).bit_length()


def padded_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape a kernel gives an array: axes of length 1 left out, the others rounded up."""
    return tuple(round_up(n) for n in shape if n != 1)


def pad(array: Array, shape: Sequence[int], leading: int = 0) -> Array:
    """An array whose last axes have the true `shape`, after `leading` axes that stay, with padded last axes."""
    kept = array.shape[:leading]
    short = array.reshape(*kept, *(n for n in shape if n != 1))
    widths = [(0, 0)] * leading + [(0, round_up(n) - n) for n in shape if n != 1]
    return jnp.pad(short, widths) if any(after for _, after in widths) else short


def unpad(array: Array, shape: Sequence[int], leading: int = 0) -> Array:
    """The way back from `pad`."""
    inner = tuple(slice(n) for n in shape if n != 1)
    return array[(slice(None),) * leading + inner].reshape(*array.shape[:leading], *shape)


def sliced_only(jaxpr: core.Jaxpr, var: core.Var) -> bool:
    """Whether an argument is read a row at a time and nowhere else."""
    for eqn in jaxpr.eqns:
        for place, operand in enumerate(eqn.invars):
            if operand is not var:
                continue
            if eqn.primitive.name in CALLS:
                inner = inner_of(eqn)
                if not sliced_only(inner.jaxpr, inner.jaxpr.invars[place]):
                    return False
            elif eqn.primitive.name != "dynamic_slice" or place > 0 or not one_row(eqn):
                return False
    return var not in jaxpr.outvars


def one_row(eqn: core.JaxprEqn) -> bool:
    """Whether a dynamic slice takes one whole row."""
    shape, sizes = shape_of(eqn.invars[0]), eqn.params["slice_sizes"]
    return bool(sizes) and sizes[0] == 1 and tuple(sizes[1:]) == tuple(shape[1:])


def inner_of(eqn: core.JaxprEqn) -> core.ClosedJaxpr:
    """The program that an equation calls."""
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        inner = eqn.params.get(name)
        if inner is not None:
            return inner if hasattr(inner, "consts") else core.ClosedJaxpr(inner, ())
    raise NotPaddable(eqn.primitive.name)


def evaluate(jaxpr: core.Jaxpr, consts: Sequence[Tree], args: Sequence[Tree]) -> list[Tree]:
    """The results of a traced program on padded arguments, arrays or `Stored`; padded."""
    values: dict[core.Var, Tree] = {}

    def read(operand: core.Var | core.Literal) -> Tree:
        return constant(operand.val) if isinstance(operand, core.Literal) else values[operand]

    values.update(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        operands = [read(operand) for operand in eqn.invars]
        values.update(zip(eqn.outvars, apply(eqn, operands), strict=True))
    return [read(operand) for operand in jaxpr.outvars]


def constant(number: Tree) -> Tree:
    """A literal of the program: a scalar of NumPy's, which a kernel takes as it is."""
    return np.asarray(number).reshape(())[()]


def apply(eqn: core.JaxprEqn, operands: list[Tree]) -> list[Tree]:
    """One equation on padded operands."""
    name = eqn.primitive.name
    if name in ELEMENTWISE:
        long = [shape_of(operand) for operand in eqn.invars if padded_shape(shape_of(operand))]
        if any(shape != shape_of(eqn.outvars[0]) for shape in long):
            raise NotPaddable(f"{name} of different shapes")
        if all(isinstance(operand, np.generic) for operand in operands):  # Triton's lowering takes no such operation
            with jax.ensure_compile_time_eval():
                return [constant(eqn.primitive.bind(*operands, **eqn.params))]
        return [eqn.primitive.bind(*operands, **eqn.params)]
    if name in CALLS:
        form = WHOLE_CALLS.get(eqn.params.get("name", ""))
        if form is not None:
            return form(eqn, operands)
        inner = inner_of(eqn)
        return evaluate(inner.jaxpr, [constant_array(c) for c in inner.consts], operands)
    rule = RULES.get(name)
    if rule is None:
        raise NotPaddable(name)
    return rule(eqn, operands)


def constant_array(array: Tree) -> Tree:
    """A constant inside a called program; only single numbers travel into a kernel so."""
    if np.size(array) != 1:
        raise NotPaddable("an array as a constant")
    return constant(array)


def shape_of(operand: core.Var | core.Literal) -> tuple[int, ...]:
    """The true shape."""
    return tuple(operand.aval.shape)  # type: ignore[attr-defined]  # every argument here is an array


def axes_of(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Where axes are once those of length 1 are left out."""
    kept = [axis for axis, n in enumerate(shape) if n != 1]
    return tuple(kept.index(axis) for axis in axes if shape[axis] != 1)


def masked(value: Array, shape: Sequence[int], axes: Sequence[int], neutral: Tree) -> Array:
    """The value with the neutral element in the padding of `axes`, given in the true shape."""
    for axis, place in zip([a for a in axes if shape[a] != 1], axes_of(shape, axes), strict=True):
        if value.shape[place] != shape[axis]:
            places = lax.broadcasted_iota(jnp.int32, value.shape, place)
            value = jnp.where(places < shape[axis], value, jnp.asarray(neutral, value.dtype))
    return value


def extreme(dtype: Tree, largest: bool) -> Tree:
    """The largest or the smallest number of a dtype."""
    if jnp.issubdtype(dtype, jnp.floating):
        return np.inf if largest else -np.inf
    if dtype == np.bool_:
        return largest
    return jnp.iinfo(dtype).max if largest else jnp.iinfo(dtype).min


def reduction(
    reduce: Callable[[Array, tuple[int, ...]], Array], neutral: Callable[[Tree], Tree]
) -> Callable[[core.JaxprEqn, list[Array]], list[Array]]:
    """The rule of a reduction: the neutral element into the padding, then the reduction itself."""

    def rule(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
        shape, axes, value = shape_of(eqn.invars[0]), eqn.params["axes"], operands[0]
        places = axes_of(shape, axes)
        if not places:
            return [value]
        return [reduce(masked(value, shape, axes, neutral(value.dtype)), places)]

    return rule


def place_of(largest: bool) -> Callable[[core.JaxprEqn, list[Array]], list[Array]]:
    """The rule of argmax and argmin over one axis: the first place of the extreme, from two plain reductions."""

    def rule(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
        shape, axes, dtype = shape_of(eqn.invars[0]), eqn.params["axes"], eqn.params["index_dtype"]
        places = axes_of(shape, axes)
        if not places:
            return [jnp.zeros(padded_shape(shape_of(eqn.outvars[0])), dtype)]
        if operands[0].ndim != 1:
            raise NotPaddable("argmax of a matrix")
        value = masked(operands[0], shape, axes, extreme(operands[0].dtype, not largest))
        best = jnp.max(value) if largest else jnp.min(value)
        numbers = lax.broadcasted_iota(jnp.int32, value.shape, 0)
        # a NaN is the extreme, as in NumPy
        return [jnp.min(jnp.where((value == best) | (value != value), numbers, value.size)).astype(dtype)]

    return rule


def product(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
    """dot_general of vectors, and of a number and anything: a sum of products."""
    (left, _), (left_batch, _) = eqn.params["dimension_numbers"]
    shapes = [shape_of(operand) for operand in eqn.invars]
    dtype = eqn.outvars[0].aval.dtype  # type: ignore[attr-defined]
    a, b = (operand.astype(dtype) for operand in operands)
    if a.ndim == 0 or b.ndim == 0:
        return [a * b]
    if left_batch or not (a.ndim == b.ndim == 1) or not axes_of(shapes[0], left):
        raise NotPaddable("a product of matrices")
    return [jnp.sum(masked(a * b, shapes[0], left, 0))]


def same(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
    """Operations that only add, remove or permute axes of length 1."""
    long = [[n for n in shape_of(v) if n != 1] for v in (eqn.invars[0], eqn.outvars[0])]
    if long[0] != long[1] or len(eqn.outvars) > 1 or (eqn.primitive.name == "transpose" and len(long[0]) > 1):
        raise NotPaddable(eqn.primitive.name)
    return [operands[0]]


def broadcast(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
    """broadcast_in_dim to the padded shape."""
    source, target = shape_of(eqn.invars[0]), shape_of(eqn.outvars[0])
    value, shape = operands[0], padded_shape(target)
    if np.ndim(value) == 0:
        return [jnp.broadcast_to(value, shape) if shape else value]
    dimensions = [to for to, n in zip(eqn.params["broadcast_dimensions"], source, strict=True) if n != 1]
    places = axes_of(target, dimensions)
    return [value if value.shape == shape else lax.broadcast_in_dim(value, shape, places)]


def iota(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
    """Numbers along an axis of the padded shape."""
    shape, dimension, dtype = shape_of(eqn.outvars[0]), eqn.params["dimension"], eqn.params["dtype"]
    places = axes_of(shape, [dimension])
    if not places:
        return [jnp.zeros(padded_shape(shape), dtype)]
    return [lax.broadcasted_iota(jnp.int32, padded_shape(shape), places[0]).astype(dtype)]


def dynamic_slice(eqn: core.JaxprEqn, operands: list[Tree]) -> list[Array]:
    """One row of an array outside the kernel."""
    if not hasattr(operands[0], "row") or not one_row(eqn):
        raise NotPaddable("dynamic_slice")
    return [operands[0].row(operands[1])]


def cond(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
    """Every branch, and the results of the one that was meant."""
    number, arguments = operands[0], operands[1:]
    branches = [evaluate(b.jaxpr, [constant_array(c) for c in b.consts], arguments) for b in eqn.params["branches"]]
    chosen = branches[0]
    for place, branch in enumerate(branches[1:], 1):
        chosen = [jnp.where(number >= place, new, old) for new, old in zip(branch, chosen, strict=True)]
    return chosen


def k_largest(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
    """`sets.sparsity.k_largest`."""
    return [kernel_forms.k_largest(operands[0], length(eqn), shape_of(eqn.invars[1])[0])]


def first_largest(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
    """`sets.simplices.first_largest`; of a single entry, 0."""
    single = shape_of(eqn.invars[0]) == (1,)
    return [jnp.int32(0) if single else kernel_forms.first_largest(operands[0], length(eqn))]


def fill_knapsack(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
    """`sets.boxes.fill_knapsack`."""
    gain, costs, budget, upper = operands
    return [kernel_forms.fill_knapsack(gain, costs, budget, upper, length(eqn))]


def best_group(eqn: core.JaxprEqn, operands: list[Array]) -> list[Array]:
    """`sets.sparsity.best_group`."""
    groups_in_all = shape_of(eqn.invars[2])[0]
    if groups_in_all > kernel_forms.MOST_GROUPS:
        raise NotPaddable("too many groups")
    return [kernel_forms.best_group(operands[0], operands[1], length(eqn), groups_in_all)]


def length(eqn: core.JaxprEqn) -> int:
    """The true length of the vector that is an equation's first argument."""
    shape = shape_of(eqn.invars[0])
    if len(shape) != 1 or shape == (1,):
        raise NotPaddable(f"{eqn.params['name']} of anything but a vector")
    return shape[0]


Rule = Callable[[core.JaxprEqn, list[Tree]], list[Tree]]
WHOLE_CALLS: dict[str, Rule] = {
    "onesfw.sets.sparsity.k_largest": k_largest,
    "onesfw.sets.sparsity.best_group": best_group,
    "onesfw.sets.boxes.fill_knapsack": fill_knapsack,
    "onesfw.sets.simplices.first_largest": first_largest,
}
RULES: dict[str, Rule] = {
    "reduce_sum": reduction(jnp.sum, lambda dtype: 0),
    "reduce_max": reduction(jnp.max, lambda dtype: extreme(dtype, False)),
    "reduce_min": reduction(jnp.min, lambda dtype: extreme(dtype, True)),
    "reduce_and": reduction(lambda v, axes: jnp.min(v.astype(jnp.int32), axes) > 0, lambda dtype: True),
    "reduce_or": reduction(lambda v, axes: jnp.max(v.astype(jnp.int32), axes) > 0, lambda dtype: False),
    "argmax": place_of(True),
    "argmin": place_of(False),
    "dot_general": product,
    "broadcast_in_dim": broadcast,
    "iota": iota,
    "dynamic_slice": dynamic_slice,
    "cond": cond,
    "add_any": lambda eqn, operands: [operands[0] + operands[1]],
    **dict.fromkeys(("copy", "copy_p", "optimization_barrier", "stop_gradient"), lambda eqn, operands: operands),
    **dict.fromkeys(("reshape", "squeeze", "expand_dims", "transpose", "split", "concatenate"), same),
}
