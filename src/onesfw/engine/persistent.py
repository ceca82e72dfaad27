"""Many runs in one GPU kernel: a block keeps the state of its run in registers for a whole chunk, and only rows travel.

The library's own step (`compiled_loop.one_step`: estimator, oracle, step rule, JAX's derivative of the user's loss) is
traced once and evaluated on padded arrays inside a Pallas kernel. What the step draws is made outside, by the same
functions and for the same step numbers as in the compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jax.extend import core

from onesfw import trees
from onesfw.engine.compiled_loop import BLOCK, Keys, RunState, streams
from onesfw.engine.padded import NotPaddable, evaluate, pad, padded_shape, sliced_only, unpad
from onesfw.trees import Array, Function, HostArray, Tree

DRAW_BYTES = 1 << 28  # what the draws of a block of steps may take, over all runs
STORED_BYTES = 1 << 33  # what padded copies of the data may take
THREADS = 32  # of a warp
MOST_WARPS = 16
# As few warps as hold a run: each thread has some registers for itself, and fewer runs would fit beside one another.
REGISTERS = 225  # of the 255 that a thread may have, for entries of arrays
TEMPORARIES = 3  # arrays like x that a step needs beside its state: the row, its derivative, the vertex
ROOM = 3 << 15  # registers for a run: half as many again as a multiprocessor has, the rest being in its cache

Draws = Callable[[Tree, Keys, Array], tuple[Tree, Array]]
"""(arrays, keys, t) ↦ step t's draws, and the chance that decides on x_o"""


@dataclass(frozen=True)
class Slot:
    """Where one argument of the step comes from inside the kernel."""

    shape: tuple[int, ...]
    """the true one"""
    by_run: bool
    """whether every run has its own"""
    rows: bool
    """whether it stays outside, to be read a row at a time"""
    read: bool
    """whether the step reads it at all"""


@dataclass(frozen=True)
class StoredRows:
    """An array outside the kernel: its first axis is never padded."""

    ref: Tree
    run: Array | None

    def row(self, number: Array) -> Array:
        return load(self.ref, self.run, number)


def load(ref: Tree, *leading: Array | None) -> Array:
    """What a reference holds behind its leading axes; those that are None are not there."""
    places = tuple(place for place in leading if place is not None)
    return ref[places + (slice(None),) * (len(ref.shape) - len(places))]


def persistent_chunk(
    step: Function, draws: Draws, finite: Callable[[RunState], Array], own: list[bool], interpret: bool
) -> Function:
    """The chunk of `compiled_loop` for many runs: every leaf of the state and every key has a leading axis of runs.

    Args:
        step: (arrays, state, draws, chance, sizes, rho, weight, t) ↦ the state after step t, of one run.
        draws: (arrays, keys, t) ↦ what `step` takes as draws and chance.
        finite: whether the state of a run is finite.
        own: which of the arrays that the objective, the set, the estimator and the step hold have an axis of runs.
        interpret: evaluate the kernel without a GPU, slowly.

    Raises:
        NotPaddable: where the step does something that has no form in a kernel.
    """

    def chunk(
        arrays: list[Array],
        key: Array,
        state: RunState,
        first: Array,
        count: Array,
        rho: Array,
        weight: Array,
        plan: Tree,
    ) -> tuple[RunState, Array]:
        runs = key.shape[0]
        batch_axes = [0 if by_run else None for by_run in own]
        keys = jax.vmap(streams)(key)
        one_run = [leaf[0] if by_run else leaf for leaf, by_run in zip(arrays, own, strict=True)]
        example = jax.eval_shape(lambda a, k: draws(a, k, jnp.int32(1)), one_run, jax.tree.map(lambda k: k[0], keys))
        if any(not jnp.issubdtype(leaf.dtype, jnp.number) for leaf in jax.tree.leaves(example)):
            raise NotPaddable("draws that are keys")
        alone = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), state)
        schedule = (plan, rho, weight)
        here = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), schedule)
        traced = jax.make_jaxpr(lambda a, s, d, h, t: step(a, s, *d, *h, t))(
            trees.shapes(one_run), alone, example, here, jax.ShapeDtypeStruct((), jnp.int32)
        )
        drawn = jax.tree.leaves(example)
        kernel = Kernel(traced, own, len(jax.tree.leaves(alone)), len(drawn), runs, interpret)
        size = runs * max(4, trees.size_in_bytes(kernel.read_of(drawn)))
        block = max(1, min(BLOCK, 1 << max(0, (DRAW_BYTES // size).bit_length() - 1)))
        held = kernel.held([*arrays, *traced.consts])

        def steps_of_block(b: Array, leaves: list[Array]) -> list[Array]:
            offset = b * block
            numbers = offset + 1 + jnp.arange(block, dtype=jnp.int32)
            of_run = jax.vmap(draws, (None, None, 0))
            mine = jax.vmap(of_run, (batch_axes, 0, None))(arrays, keys, numbers)
            low = jnp.maximum(first - 1 - offset, 0)
            high = jnp.minimum(first - 1 + count - offset, block)
            bounds = jnp.stack([low, high, offset + 1, first])
            return kernel(held, leaves, mine, schedule, bounds)

        leaves, structure = jax.tree.flatten(state)
        shapes = [leaf.shape[1:] for leaf in leaves]
        padded = [pad(leaf, shape, 1) for leaf, shape in zip(leaves, shapes, strict=True)]
        begin, end = (first - 1) // block, (first - 1 + count + block - 1) // block
        padded = lax.fori_loop(begin, end, steps_of_block, padded)
        after = [unpad(leaf, shape, 1) for leaf, shape in zip(padded, shapes, strict=True)]
        moved: RunState = jax.tree.unflatten(structure, after)
        return moved, jax.vmap(finite)(moved)

    return chunk


class Kernel:
    """The steps of a block for all runs: one program of the grid is one run."""

    def __init__(
        self, traced: core.ClosedJaxpr, own: list[bool], states: int, draws: int, runs: int, interpret: bool
    ) -> None:
        jaxpr = traced.jaxpr
        inputs = [*jaxpr.invars[: len(own)], *jaxpr.constvars]
        self.jaxpr, self.runs, self.interpret = jaxpr, runs, interpret
        self.arrays = len(own)
        read = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, core.Var)}
        read |= {v for v in jaxpr.outvars if isinstance(v, core.Var)}
        self.slots = [
            Slot(tuple(v.aval.shape), by_run, bool(v.aval.shape) and sliced_only(jaxpr, v), v in read)
            for v, by_run in zip(inputs, [*own, *[False] * len(jaxpr.constvars)], strict=True)
        ]
        begin = self.arrays + states
        self.drawn = [v in read for v in jaxpr.invars[begin : begin + draws]]
        pairs = zip(jaxpr.invars[self.arrays : begin], jaxpr.outvars, strict=True)
        moving = [before for before, after in pairs if before is not after]
        constants = [v for v, slot in zip(inputs, self.slots, strict=True) if slot.read and not slot.rows]
        registers = [registers_of(v) for v in (*moving, *constants)]
        room = sum(registers) + TEMPORARIES * max(registers)
        if room > ROOM:
            raise NotPaddable("arrays too large for the registers of one block")
        warps = 1
        while warps < MOST_WARPS and room > warps * THREADS * REGISTERS:
            warps *= 2
        self.warps = warps

    def read_of(self, drawn: list[Tree]) -> list[Tree]:
        """Those of a step's draws that it reads."""
        return [leaf for leaf, read in zip(drawn, self.drawn, strict=True) if read]

    def held(self, arrays: list[Array | HostArray]) -> list[Array]:
        """The arrays that the step reads and does not change, padded."""
        result = []
        for slot, array in zip(self.slots, arrays, strict=True):
            if not slot.read:
                continue
            if array.dtype == bool:
                raise NotPaddable("an array of truth values")
            leading = int(slot.by_run) + int(slot.rows)
            result.append(pad(jnp.asarray(array), slot.shape[int(slot.rows) :], leading))
        if trees.size_in_bytes(result) > STORED_BYTES:
            raise NotPaddable("data too large to be copied")
        return result

    def __call__(
        self, held: list[Array], state: list[Array], drawn: Tree, schedule: Tree, bounds: Array
    ) -> list[Array]:
        """The states after the steps that `bounds` names."""
        drawn_leaves, schedule_leaves = self.read_of(jax.tree.leaves(drawn)), jax.tree.leaves(schedule)
        shapes = [[leaf.shape[2:] for leaf in drawn_leaves], [leaf.shape[1:] for leaf in schedule_leaves]]
        draws = [pad(leaf, shape, 2) for leaf, shape in zip(drawn_leaves, shapes[0], strict=True)]
        rates = [pad(leaf, shape, 1) for leaf, shape in zip(schedule_leaves, shapes[1], strict=True)]
        fixed = [array.reshape(1) if array.ndim == 0 else array for array in held]
        flat = [*fixed, *draws, *rates, bounds, *state]
        parts = [len(fixed), len(draws), len(rates), 1, len(state)]

        def body(*refs: Tree) -> None:
            groups, begin = [], 0
            for length in [*parts, len(state)]:
                groups.append(refs[begin : begin + length])
                begin += length
            self.run(*groups)

        moved = pl.pallas_call(
            body,
            grid=(self.runs,),
            in_specs=[pl.BlockSpec(None, None)] * len(flat),
            out_specs=[pl.BlockSpec(None, None)] * len(state),
            out_shape=[jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in state],
            input_output_aliases={len(flat) - len(state) + i: i for i in range(len(state))},
            compiler_params=triton.CompilerParams(num_warps=self.warps, num_stages=1),
            interpret=self.interpret,
        )(*flat)
        return list(moved)

    def run(self, held: Tree, draws: Tree, rates: Tree, bounds: Tree, before: Tree, after: Tree) -> None:
        """One run's steps, inside the kernel."""
        r = pl.program_id(0)
        low, high, offset, first = (bounds[0][i] for i in range(4))

        def fetch(slot: Slot, ref: Tree) -> Tree:
            run = r if slot.by_run else None
            if slot.rows:
                return StoredRows(ref, run)
            scalar = not padded_shape(slot.shape) and not slot.by_run
            return ref[0] if scalar else load(ref, run)

        refs = iter(held)
        constants = [fetch(slot, next(refs)) if slot.read else None for slot in self.slots]

        def one_step(i: Array, state: list[Tree]) -> list[Tree]:
            t = offset + i
            loaded = iter([load(ref, r, i) for ref in draws])
            drawn = [next(loaded) if read else None for read in self.drawn]
            here = [load(ref, t - first) for ref in rates]
            arguments = [*constants[: self.arrays], *state, *drawn, *here, t]
            return evaluate(self.jaxpr, constants[self.arrays :], arguments)

        state = lax.fori_loop(low, high, one_step, [load(ref, r) for ref in before])
        for ref, value in zip(after, state, strict=True):
            ref[(r,) + (slice(None),) * (len(ref.shape) - 1)] = value


def registers_of(var: core.Var) -> int:
    """How many registers hold an array in a kernel."""
    total: int = max(1, var.aval.dtype.itemsize // 4)  # type: ignore[attr-defined]
    for n in padded_shape(var.aval.shape):  # type: ignore[attr-defined]
        total *= n
    return total
