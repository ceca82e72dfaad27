"""Compiled programs, kept under the text of what they compute.

Users write closures over large arrays and fresh lambdas at every call. A program is traced once per run, the arrays
it captured become arguments, and the executable is found again by the traced text: a new lambda, new data, another
radius, key or number of steps compiles nothing, and no captured array is kept alive.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from onesfw import trees
from onesfw.algorithms import CONVEX
from onesfw.engine.chunk_inputs import chunk_inputs
from onesfw.engine.compiled_loop import (
    Chunk,
    Keys,
    RunState,
    block_length,
    compiled_chunk,
    initial,
    one_step,
    step_draws,
    streams,
)
from onesfw.engine.corrected_output import Correct, Corrected, Sizes, corrected_output, snapshot_space
from onesfw.engine.evaluation import Evaluation, evaluator_for
from onesfw.engine.run import Run
from onesfw.trees import Array, DType, Function, HostArray, Tree, wide

KERNEL_VARIABLE = "ONESFW_KERNEL"
CORRECTED_POINTS = 5_000  # like x that a corrected output keeps at its peak, under `vmap`
CORRECTED_ROOM = 1 << 30  # bytes for them, at least
logger = logging.getLogger(__name__)
CAPACITY = 128  # programs kept; the least recently used is dropped

_programs: OrderedDict[tuple[str, bool, str], Function] = OrderedDict()
_lock = threading.Lock()
_compilations = 0


def compilations() -> int:
    """How many programs this process has compiled."""
    return _compilations


class Program:
    """A function ready to run, `seconds` after it was asked for."""

    def __init__(self, function: Function, *args: Tree) -> None:
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


def executable(text: str, closed: jax.extend.core.ClosedJaxpr, constants: list[jax.Array]) -> Function:
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


def split(tree: Tree) -> tuple[list[Array | HostArray], Callable[[list[Array]], Tree]]:
    """The arrays of a tree of modules as a flat list, and the way back.

    Flat, because a module's structure holds the user's functions, and JAX remembers the structure of every argument
    it has traced: the functions, and the arrays they captured, would never be freed.
    """
    arrays, rest = eqx.partition(tree, lambda leaf: isinstance(leaf, jax.Array | np.ndarray))
    leaves, structure = jax.tree.flatten(arrays)
    return leaves, lambda flat: eqx.combine(jax.tree.unflatten(structure, flat), rest)


@dataclass
class Programs:
    """The compiled parts of a run, shared by all its replicates."""

    chunk: Chunk
    evaluate: Callable[[Array, Tree], Evaluation] | None
    correct: Correct | None
    start: RunState
    seconds: float
    kernel: str
    """"persistent" or "xla": which loop runs."""
    bind: Callable[[Run], Programs]
    """The same programs for another run of the same shapes: nothing is traced anew."""


def compile_run(run: Run, key: Array, replicates: int | None = None) -> Programs:
    """Trace and compile a run; with `replicates`, for that many keys at once."""
    return compile_cells([run] * (replicates or 1), key)


def stacked(each: Sequence[Sequence[Array | HostArray]], dtype: DType) -> tuple[list[Array], list[int | None]]:
    """The arrays of several runs: those in which runs differ along a leading axis, the others once; and the axes."""
    arrays, axes = [], []
    for leaves in zip(*each, strict=True):
        first = leaves[0]
        same = all(leaf is first for leaf in leaves) or all(np.array_equal(leaf, first) for leaf in leaves)
        cast = trees.cast(first if same else np.stack([np.asarray(leaf) for leaf in leaves]), dtype)
        arrays.append(jnp.asarray(cast))
        axes.append(None if same else 0)
    return arrays, axes


def compile_cells(runs: Sequence[Run], key: Array) -> Programs:
    """Trace and compile one run, or several that go together: as many keys as runs, one shape, one algorithm."""
    run = runs[0]
    algorithm, dtype, together = run.algorithm, trees.dtype_of(run.x0), jnp.ndim(key) > 0
    _, join = split((run.objective, run.constraint, run.estimator, run.step))
    alike = {id(other): split((other.objective, other.constraint, other.estimator, other.step))[0] for other in runs}
    arrays, axes = stacked([alike[id(other)] for other in runs], dtype)
    alone = [leaf if axis is None else leaf[0] for leaf, axis in zip(arrays, axes, strict=True)]
    objective, constraint, estimator, _ = join(alone)
    block = block_length(objective, estimator, key[0] if together else key)

    def begin(arrays: Tree, x0: Tree) -> RunState:
        _, constraint, estimator, step = join(arrays)
        return initial(constraint, estimator, step, x0, run.steps, algorithm.output)

    def chunk(arrays: Tree, key: Array, state: RunState, *schedule: Tree) -> tuple[RunState, Array]:
        objective, constraint, estimator, step = join(arrays)
        body = compiled_chunk(objective, constraint, estimator, step, run.sign, block, algorithm.output)
        return body(key, state, *schedule)

    def measure(arrays: Tree, key: Array, x: Tree) -> Evaluation:
        objective, constraint, _, _ = join(arrays)
        evaluate = evaluator_for(run.evaluate, objective, constraint, run.sign)
        assert evaluate is not None
        return evaluate(streams(key).evaluation, x)

    def correct(arrays: Tree, key: Array, state: RunState, x: Tree, snapshots: Tree, sizes: Sizes) -> Corrected:
        objective, constraint, estimator, _ = join(arrays)
        body = corrected_output(objective, constraint, estimator, run.sign, algorithm.setting == CONVEX)
        return body(key, state, x, snapshots, sizes)

    wanted = evaluator_for(run.evaluate, objective, constraint, run.sign) is not None
    one = jnp.int32(1)
    inputs = trees.shapes(chunk_inputs(run, 1, 1)[0])
    if together:
        leaves, places = stacked([jax.tree.leaves(other.x0) for other in runs], dtype)
        x0, place = (jax.tree.unflatten(jax.tree.structure(run.x0), part) for part in (leaves, places))
        start = jax.vmap(begin, (axes, place), axis_size=len(runs))(arrays, x0)
        chunk = jax.vmap(chunk, (axes, 0, 0, None, None, None, None, None))
        measure = jax.vmap(measure, (axes, 0, 0))
        correct = few_at_a_time(correct, axes, trees.size_in_bytes(run.x0))
    else:
        start = begin(arrays, run.x0)
    own_arrays = [axis == 0 for axis in axes]
    program = kernel_program(run, join, arrays, own_arrays, key, start, inputs) if kernel_wanted() else None
    kernel = "persistent" if program else "xla"
    program = program or Program(chunk, arrays, key, start, one, one, *inputs)
    evaluation = Program(measure, arrays, key, start.previous) if wanted else None
    correction = None
    if run.iterations < run.steps:
        snapshots = snapshot_space(start.previous, together)
        correction = Program(correct, arrays, key, start, start.previous, snapshots, Sizes(one, one, one, one, one))
    seconds = sum(part.seconds for part in (program, evaluation, correction) if part is not None)

    def bound(arrays: list[Array], start: RunState) -> Programs:
        return Programs(
            chunk=lambda *args: program(arrays, *args),
            evaluate=None if evaluation is None else lambda key, x: evaluation(arrays, key, x),
            correct=None if correction is None else lambda *args: correction(arrays, *args),
            start=start,
            seconds=seconds,
            kernel=kernel,
            bind=rebound,
        )

    def rebound(other: Run) -> Programs:
        leaves, _ = split((other.objective, other.constraint, other.estimator, other.step))
        arrays, _ = stacked([leaves], dtype)
        return bound(arrays, begin(arrays, other.x0))

    return bound(arrays, start)


def few_at_a_time(correct: Function, axes: list[int | None], size: int) -> Function:
    """A corrected output for each of many runs, as many at a time as memory holds: each keeps many points like x."""
    stats = jax.local_devices()[0].memory_stats() or {}
    room = max(CORRECTED_ROOM, stats.get("bytes_limit", 0) // 2)
    count = max(1, room // (CORRECTED_POINTS * size))

    def batched(
        arrays: list[Array], key: Array, state: RunState, x: Tree, snapshots: Tree, sizes: Sizes
    ) -> Corrected:  # fmt: skip
        own = [leaf for leaf, axis in zip(arrays, axes, strict=True) if axis == 0]

        def one(mapped: Tree) -> Corrected:
            mine, *rest = mapped
            parts = iter(mine)
            return correct(
                [next(parts) if axis == 0 else leaf for leaf, axis in zip(arrays, axes, strict=True)], *rest, sizes
            )

        return jax.lax.map(one, (own, key, state, x, snapshots), batch_size=min(count, key.shape[0]))

    return batched


def kernel_wanted() -> bool:
    """Whether to try the persistent kernel: on a GPU, unless the environment variable says otherwise."""
    choice = os.environ.get(KERNEL_VARIABLE, "")
    if choice not in ("", "persistent", "xla"):
        raise ValueError(f"the environment variable {KERNEL_VARIABLE} must be persistent or xla, got {choice!r}")
    return choice == "persistent" or (choice == "" and jax.default_backend() == "gpu")


def kernel_program(
    run: Run,
    join: Callable[[list[Array]], Tree],
    arrays: list[Array],
    own: list[bool],
    key: Array,
    start: RunState,
    inputs: Tree,
) -> Program | None:
    """The chunk as one persistent kernel for all runs, or None where something in it has no such form."""
    from onesfw.engine.persistent import persistent_chunk  # Pallas takes a while to import

    alone = jnp.ndim(key) == 0

    def step(arrays: list[Array], state: RunState, draws: Tree, chance: Array, *schedule: Tree) -> RunState:
        objective, constraint, estimator, step = join(arrays)
        output = run.algorithm.output
        return one_step(objective, constraint, estimator, step, run.sign, output, state, draws, chance, *schedule)

    def draws(arrays: list[Array], keys: Keys, t: Array) -> tuple[Tree, Array]:
        objective, _, estimator, _ = join(arrays)
        return step_draws(objective, estimator, keys, t)

    def finite(state: RunState) -> Array:
        return trees.all_finite((run.step.point(state.step), state.estimate))

    chunk = persistent_chunk(step, draws, finite, own, jax.default_backend() != "gpu")

    def single(arrays: list[Array], key: Array, state: RunState, *schedule: Tree) -> tuple[RunState, Array]:
        state, ends = chunk(arrays, key[None], jax.tree.map(lambda leaf: leaf[None], state), *schedule)
        return jax.tree.map(lambda leaf: leaf[0], state), ends[0]

    try:
        return Program(single if alone else chunk, arrays, key, start, jnp.int32(1), jnp.int32(1), *inputs)
    except Exception as reason:  # whatever a compiler may say: the other loop does the same steps
        logger.debug("no persistent kernel: %s: %s", type(reason).__name__, reason)
        return None
