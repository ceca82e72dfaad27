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
from jax.sharding import NamedSharding, PartitionSpec

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
from onesfw.engine.devices import each_replicate, mesh_for, shardings
from onesfw.engine.evaluation import Evaluation, evaluator_for
from onesfw.engine.run import Run
from onesfw.trees import Array, Function, HostArray, Tree, wide

KERNEL_VARIABLE = "ONESFW_KERNEL"
logger = logging.getLogger(__name__)
CHUNK_AXES = (False, True, True, False, False, False, False, False)  # which arguments hold a value a replicate
CORRECT_AXES = (False, True, True, True, True, False)
CAPACITY = 128  # programs kept; the least recently used is dropped

_programs: OrderedDict[tuple[str, bool, str], Function] = OrderedDict()
_lock = threading.Lock()
_compilations = 0


def compilations() -> int:
    """How many programs this process has compiled."""
    return _compilations


class Program:
    """A function ready to run, `seconds` after it was asked for."""

    def __init__(self, function: Function, *args: Tree, places: Sequence[NamedSharding] | None = None) -> None:
        """Trace `function` on arguments like `args` (arrays or shapes) and compile it unless its text is known.

        `places` says where the arguments lie, one each, where there are several devices.
        """
        begun = time.perf_counter()
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        self.structure = jax.tree.structure(shape)
        self.constants = [jnp.asarray(c) if not isinstance(c, jax.Array) else c for c in closed.consts]
        self.text = str(closed.jaxpr)
        self.places: list[NamedSharding] | None = None
        if places is not None:
            parts = zip(places, args, strict=True)
            self.places = [place for place, arg in parts for _ in jax.tree.leaves(arg)]
            self.constants = jax.device_put(self.constants, NamedSharding(places[0].mesh, PartitionSpec()))
        self.execute = executable(self.text, closed, self.constants, self.places)
        self.seconds = time.perf_counter() - begun

    def __call__(self, *args: Tree) -> Tree:
        """The function's result; arguments must have the shapes and dtypes it was traced with."""
        leaves = jax.tree.leaves(args)
        if self.places is not None:
            leaves = jax.device_put(leaves, self.places)
        return jax.tree.unflatten(self.structure, self.execute(self.constants, *leaves))


def executable(
    text: str,
    closed: jax.extend.core.ClosedJaxpr,
    constants: list[jax.Array],
    places: Sequence[NamedSharding] | None = None,
) -> Function:
    """The compiled form of a traced program, from the store or anew."""
    global _compilations
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    key = (text, wide(), str(device))
    with _lock:
        found = _programs.get(key)
        if found is None:
            jaxpr = closed.jaxpr  # not `closed`, which would keep the captured arrays alive
            where: Sequence[NamedSharding | None] = places or [None] * len(jaxpr.invars)
            arguments = [
                jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype, sharding=place)
                for v, place in zip(jaxpr.invars, where, strict=True)
            ]
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


def compile_run(run: Run, key: Array, replicates: int | None = None) -> Programs:
    """Trace and compile a run; with `replicates`, for that many keys at once."""
    algorithm, dtype = run.algorithm, trees.dtype_of(run.x0)
    arrays, join = split((run.objective, run.constraint, run.estimator, run.step))
    arrays = jax.tree.map(jnp.asarray, trees.cast(arrays, dtype))
    objective, constraint, estimator, step = join(arrays)
    block = block_length(objective, estimator, key if replicates is None else key[0])
    start = initial(constraint, estimator, step, run.x0, run.steps, algorithm.output)

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
    mesh = mesh_for(replicates)
    if replicates is not None:
        start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (replicates, *leaf.shape)), start)
        chunk, measure = each_replicate(chunk, CHUNK_AXES, mesh), each_replicate(measure, CHUNK_AXES[:3], mesh)
        correct = each_replicate(correct, CORRECT_AXES, mesh)
    program = kernel_program(run, join, arrays, key, start, inputs) if mesh is None and kernel_wanted() else None
    kernel = "persistent" if program else "xla"
    program = program or Program(chunk, arrays, key, start, one, one, *inputs, places=shardings(mesh, CHUNK_AXES))
    places = shardings(mesh, CHUNK_AXES[:3])
    evaluation = Program(measure, arrays, key, start.previous, places=places) if wanted else None
    correction = None
    if run.iterations < run.steps:
        snapshots = snapshot_space(start.previous, replicates is not None)
        correction = Program(
            correct, arrays, key, start, start.previous, snapshots, Sizes(one, one, one, one, one),
            places=shardings(mesh, CORRECT_AXES),
        )  # fmt: skip
    return Programs(
        chunk=lambda *args: program(arrays, *args),
        evaluate=None if evaluation is None else lambda key, x: evaluation(arrays, key, x),
        correct=None if correction is None else lambda *args: correction(arrays, *args),
        start=start,
        seconds=sum(part.seconds for part in (program, evaluation, correction) if part is not None),
        kernel=kernel,
    )


def kernel_wanted() -> bool:
    """Whether to try the persistent kernel: on a GPU, unless the environment variable says otherwise."""
    choice = os.environ.get(KERNEL_VARIABLE, "")
    if choice not in ("", "persistent", "xla"):
        raise ValueError(f"the environment variable {KERNEL_VARIABLE} must be persistent or xla, got {choice!r}")
    return choice == "persistent" or (choice == "" and jax.default_backend() == "gpu")


def kernel_program(
    run: Run, join: Callable[[list[Array]], Tree], arrays: list[Array], key: Array, start: RunState, inputs: Tree
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

    chunk = persistent_chunk(step, draws, finite, [False] * len(arrays), jax.default_backend() != "gpu")

    def single(arrays: list[Array], key: Array, state: RunState, *schedule: Tree) -> tuple[RunState, Array]:
        state, ends = chunk(arrays, key[None], jax.tree.map(lambda leaf: leaf[None], state), *schedule)
        return jax.tree.map(lambda leaf: leaf[0], state), ends[0]

    try:
        return Program(single if alone else chunk, arrays, key, start, jnp.int32(1), jnp.int32(1), *inputs)
    except Exception as reason:  # whatever a compiler may say: the other loop does the same steps
        logger.debug("no persistent kernel: %s: %s", type(reason).__name__, reason)
        return None
