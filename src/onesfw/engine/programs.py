"""Compiled programs, kept under the text of what they compute.

Users write closures over large arrays and fresh lambdas at every call. A program is traced once per run, the arrays
it captured become arguments, and the executable is found again by the traced text: a new lambda, new data, another
radius, key or number of steps compiles nothing, and no captured array is kept alive. Where all that a run's functions
read can be seen (`trace_keys`), and no array is captured, the trace itself is found again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from onesfw import trees
from onesfw.algorithms import CONVEX
from onesfw.engine.chunk_inputs import chunk_inputs
from onesfw.engine.compiled_loop import (
    KEEPERS_IN_KERNEL,
    Keys,
    RunState,
    block_length,
    compiled_chunk,
    initial,
    one_step,
    step_draws,
    streams,
)
from onesfw.engine.corrected_output import Corrected, Sizes, corrected_output, snapshot_space
from onesfw.engine.devices import each_replicate, in_turn, mesh_for, shardings, shared_out
from onesfw.engine.evaluation import Evaluation, evaluator_for
from onesfw.engine.run import Run
from onesfw.engine.trace_keys import shape_key, trace_key
from onesfw.estimators import Estimator, OneSample
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet
from onesfw.steps import LazyStep, Step
from onesfw.trees import Array, DType, Function, HostArray, Tree, wide

KERNEL_VARIABLE = "ONESFW_KERNEL"
CORRECTED_POINTS = 5_000  # like x that a corrected output keeps at its peak, under `vmap`
CORRECTED_ROOM = 1 << 30  # bytes for them, at least
logger = logging.getLogger(__name__)
# Which arguments hold a value for each run: the arrays of its own, its key and its state.
CHUNK_AXES = (False, True, True, True, False, False, False, False, False)
MEASURE_AXES = (False, True, True, True)
CORRECT_AXES = (False, True, True, True, True, True, False)
CAPACITY = 128  # programs kept; the least recently used is dropped

_programs: OrderedDict[tuple[str, bool, str], Function] = OrderedDict()
_traces: OrderedDict[Hashable, tuple[Tree, Function]] = OrderedDict()
_lock = threading.Lock()
_compilations = 0


def compilations() -> int:
    """How many programs this process has compiled."""
    return _compilations


class Program:
    """A function ready to run, `seconds` after it was asked for."""

    def __init__(
        self,
        function: Function,
        *args: Tree,
        places: Sequence[NamedSharding] | None = None,
        name: Hashable | None = None,
    ) -> None:
        """Trace `function` on arguments like `args` (arrays or shapes) and compile it unless its text is known.

        Args:
            function: of arrays.
            args: like those that it will be called with.
            places: where they lie, one each, where there are several devices.
            name: a key of all that the function depends on besides `args`; None where that is not known.
        """
        begun = time.perf_counter()
        self.constants: list[jax.Array] = []
        self.places: list[NamedSharding] | None = None
        if places is not None:
            parts = zip(places, args, strict=True)
            self.places = [place for place, arg in parts for _ in jax.tree.leaves(arg)]
        key = None if name is None else (name, shape_key(args), places and tuple(places))
        with _lock:
            found = _traces.get(key)
            if found is not None:
                _traces.move_to_end(key)  # the least recently used is dropped
        if found is None:
            structure, execute, pure = self.traced(function, *args)
            found = structure, execute
            if key is not None and pure and not self.constants:
                with _lock:
                    _traces[key] = found
                    while len(_traces) > CAPACITY:
                        _traces.popitem(last=False)
        self.structure, self.execute = found
        self.seconds = time.perf_counter() - begun

    def traced(self, function: Function, *args: Tree) -> tuple[Tree, Function, bool]:
        """The structure of the function's result, its compiled form, whether it does nothing but compute.

        The arrays that it captured become constants.
        """
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        self.constants = [jnp.asarray(c) if not isinstance(c, jax.Array) else c for c in closed.consts]
        if self.places is not None:
            self.constants = jax.device_put(self.constants, NamedSharding(self.places[0].mesh, PartitionSpec()))
        execute = executable(str(closed.jaxpr), closed, self.constants, self.places)
        return jax.tree.structure(shape), execute, not closed.effects

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


@dataclass(frozen=True)
class Programs:
    """The compiled parts of a run, shared by all its replicates, with the arrays they are called with."""

    held: Held
    start: RunState
    loop: Program
    evaluation: Program | None
    correction: Program | None
    begin: Callable[[list[Array], list[Array], Tree], RunState]
    kernel: str
    """"persistent" or "xla": which loop runs."""

    @property
    def seconds(self) -> float:
        """What compiling took."""
        return sum(part.seconds for part in (self.loop, self.evaluation, self.correction) if part is not None)

    def chunk(self, *args: Tree) -> tuple[RunState, Array]:
        """(key, state, first, count, rho, weight, plan) ↦ (state after `count` steps, whether it is finite)"""
        found: tuple[RunState, Array] = self.loop(*self.held, *args)
        return found

    def evaluate(self, key: Array, x: Tree) -> Evaluation | None:
        """How good x is; None where nothing is asked for."""
        return None if self.evaluation is None else self.evaluation(*self.held, key, x)

    def correct(self, *args: Tree) -> Corrected:
        """The corrected output, where the run keeps samples for it."""
        assert self.correction is not None
        found: Corrected = self.correction(*self.held, *args)
        return found

    def bind(self, run: Run) -> Programs:
        """The same programs for another run of the same shapes: nothing is traced anew."""
        leaves, _ = split((run.objective, run.constraint, run.estimator, run.step))
        arrays, _ = stacked([leaves], trees.dtype_of(run.x0))
        return replace(self, held=Held(arrays, []), start=self.begin(arrays, [], run.x0))


class Held(NamedTuple):
    """The arrays of one or several runs: those that all share, and those of which each has its own."""

    shared: list[Array]
    mine: list[Array]

    @classmethod
    def of(cls, arrays: Sequence[Array], own: Sequence[bool]) -> Held:
        """Divided by whether each run has its own."""
        pairs = list(zip(arrays, own, strict=True))
        return cls([array for array, mine in pairs if not mine], [array for array, mine in pairs if mine])

    def merged(self, own: Sequence[bool]) -> list[Array]:
        """All of them in their order."""
        shared, mine = iter(self.shared), iter(self.mine)
        return [next(mine) if is_own else next(shared) for is_own in own]


def compile_run(run: Run, key: Array, replicates: int | None = None) -> Programs:
    """Trace and compile a run; with `replicates`, for that many keys at once."""
    return compile_cells([run] * (replicates or 1), key)


def stacked(
    each: Sequence[Sequence[Array | HostArray]], dtype: DType, order: HostArray | None = None
) -> tuple[list[Array], list[int | None]]:
    """The arrays of several runs: those in which runs differ along a leading axis, the others once; and the axes.

    With `order`, run number i is the one at place order[i].
    """
    arrays, axes = [], []
    for leaves in zip(*each, strict=True):
        first = leaves[0]
        same = all(leaf is first or np.array_equal(leaf, first) for leaf in leaves)
        array = jnp.asarray(trees.cast(first if same else np.stack([np.asarray(leaf) for leaf in leaves]), dtype))
        arrays.append(array if same or order is None else array[order])
        axes.append(None if same else 0)
    return arrays, axes


class Gathered(NamedTuple):
    """One run, or several of one shape and one algorithm, as arrays."""

    held: Held
    parts: Callable[[list[Array], list[Array]], tuple[Objective, ConvexSet, Estimator, Step]]
    """what one run is made of, from the arrays that all share and its own"""
    begin: Callable[[list[Array], list[Array], Tree], RunState]
    start: RunState
    own: tuple[bool, ...]
    """of which arrays each run has its own"""


def gathered(runs: Sequence[Run], together: bool) -> Gathered:
    """The arrays of one run, or of several with an axis of runs where they differ, and their states before step 1."""
    run, dtype = runs[0], trees.dtype_of(runs[0].x0)
    _, join = split((run.objective, run.constraint, run.estimator, run.step))
    distinct = list({id(other): other for other in runs}.values())
    places = {id(other): place for place, other in enumerate(distinct)}
    order = np.array([places[id(other)] for other in runs])
    leaves = [split((other.objective, other.constraint, other.estimator, other.step))[0] for other in distinct]
    arrays, axes = stacked(leaves, dtype, order)
    own = [axis == 0 for axis in axes]
    held = Held.of(arrays, own)

    def parts(shared: list[Array], mine: list[Array]) -> tuple[Objective, ConvexSet, Estimator, Step]:
        found: tuple[Objective, ConvexSet, Estimator, Step] = join(Held(shared, mine).merged(own))
        return found

    def begin(shared: list[Array], mine: list[Array], x0: Tree) -> RunState:
        _, constraint, estimator, step = parts(shared, mine)
        return initial(constraint, estimator, step, x0, run.steps, run.algorithm.output)

    if not together:
        return Gathered(held, parts, begin, begin(*held, run.x0), tuple(own))
    points, whose = stacked([jax.tree.leaves(other.x0) for other in distinct], dtype, order)
    x0, along = (jax.tree.unflatten(jax.tree.structure(run.x0), part) for part in (points, whose))
    start = jax.vmap(begin, (None, 0, along), axis_size=len(runs))(*held, x0)
    return Gathered(held, parts, begin, start, tuple(own))


def compile_cells(runs: Sequence[Run], key: Array) -> Programs:
    """Trace and compile one run, or several that go together: as many keys as runs, one shape, one algorithm.

    Of several, what differs between them has an axis of runs; on several devices each takes its share of that axis.
    """
    run, together = runs[0], jnp.ndim(key) > 0
    algorithm, cells = run.algorithm, gathered(runs, together)
    held, parts, start = cells.held, cells.parts, cells.start
    objective, constraint, *_ = parts(held.shared, [leaf[0] for leaf in held.mine])
    mesh = mesh_for(len(runs)) if together else None
    one = jnp.int32(1)
    inputs = trees.shapes(chunk_inputs(run, 1, 1)[0])
    made_of = (run.objective, run.constraint, run.estimator, run.step, run.sign, cells.own)

    def loop(whole: bool) -> Program:
        def chunk(
            shared: list[Array], mine: list[Array], key: Array, state: RunState, *rest: Tree
        ) -> tuple[RunState, Array]:
            objective, constraint, estimator, step = parts(shared, mine)
            block = block_length(objective, estimator, key)
            body = compiled_chunk(objective, constraint, estimator, step, run.sign, block, algorithm.output, whole)
            return body(key, state, *rest)

        every = each_replicate(chunk, CHUNK_AXES, mesh) if together else chunk
        name, where = trace_key("chunk", made_of, algorithm.output, whole), shardings(mesh, CHUNK_AXES)
        return Program(every, *held, key, start, one, one, *inputs, places=where, name=name)

    def measure(shared: list[Array], mine: list[Array], key: Array, x: Tree) -> Evaluation:
        objective, constraint, _, _ = parts(shared, mine)
        evaluate = evaluator_for(run.evaluate, objective, constraint, run.sign)
        assert evaluate is not None
        return evaluate(streams(key).evaluation, x)

    def correct(
        shared: list[Array], mine: list[Array], key: Array, state: RunState, x: Tree, snapshots: Tree, sizes: Sizes
    ) -> Corrected:
        objective, constraint, estimator, step = parts(shared, mine)
        assert isinstance(estimator, OneSample)  # no other recipe has this output
        keeps = isinstance(step, LazyStep)
        body = corrected_output(objective, constraint, estimator, run.sign, algorithm.setting == CONVEX, keeps)
        return body(key, state, x, snapshots, sizes)

    wanted = evaluator_for(run.evaluate, objective, constraint, run.sign) is not None
    if together:
        measure = each_replicate(measure, MEASURE_AXES, mesh)
        correct = each_replicate(correct, CORRECT_AXES, mesh, few_corrected(trees.size_in_bytes(run.x0)))
    program = kernel_program(run, cells, key, mesh) if kernel_wanted() else None
    kernel = "persistent" if program else "xla"
    program = program or xla_program(loop, one_at_a_time=in_turn() or not together)
    evaluation = None
    if wanted:
        name, where = trace_key("measure", made_of, run.evaluate), shardings(mesh, MEASURE_AXES)
        evaluation = Program(measure, *held, key, start.previous, places=where, name=name)
    correction = None
    if run.iterations < run.steps:
        snapshots = snapshot_space(start.previous, together)
        correction = Program(
            correct, *held, key, start, start.previous, snapshots, Sizes(one, one, one, one, one),
            places=shardings(mesh, CORRECT_AXES), name=trace_key("correct", made_of, algorithm.setting),
        )  # fmt: skip
    return Programs(held, start, program, evaluation, correction, cells.begin, kernel)


def xla_program(loop: Callable[[bool], Program], one_at_a_time: bool) -> Program:
    """The chunk as XLA compiles it: on a CPU with small loops whole, if it can."""
    if jax.default_backend() == "cpu" and one_at_a_time and os.environ.get(KERNEL_VARIABLE) != "xla":
        try:
            return loop(True)
        except jax.errors.JaxRuntimeError as reason:
            logger.debug("no small loop: %s", reason)
    return loop(False)


def few_corrected(size: int) -> int:
    """How many runs' outputs are corrected at a time, x being of that many bytes: each keeps many points like x."""
    stats = jax.local_devices()[0].memory_stats() or {}
    room = max(CORRECTED_ROOM, stats.get("bytes_limit", 0) // 2)
    return max(1, room // (CORRECTED_POINTS * size))


def kernel_wanted() -> bool:
    """Whether to try the persistent kernel: on a GPU, unless the environment variable says otherwise."""
    choice = os.environ.get(KERNEL_VARIABLE, "")
    if choice not in ("", "persistent", "xla"):
        raise ValueError(f"the environment variable {KERNEL_VARIABLE} must be persistent or xla, got {choice!r}")
    return choice == "persistent" or (choice == "" and jax.default_backend() == "gpu")


def kernel_program(run: Run, cells: Gathered, key: Array, mesh: Mesh | None) -> Program | None:
    """The chunk as one persistent kernel for all runs of a device, or None where something in it has no such form."""
    try:
        with warnings.catch_warnings():  # of JAX 0.11 about Pallas' Triton, which is no matter of the user's
            warnings.simplefilter("ignore", DeprecationWarning)
            chunk, *arguments = kernel_chunk(run, cells, key, jax.default_backend() != "gpu")
            chunk = chunk if mesh is None else shared_out(chunk, CHUNK_AXES, mesh)
            return Program(chunk, *arguments, places=shardings(mesh, CHUNK_AXES))
    except Exception as reason:  # whatever a compiler may say: the other loop does the same steps
        logger.debug("no persistent kernel: %s: %s", type(reason).__name__, reason)
        return None


def kernel_chunk(run: Run, cells: Gathered, key: Array, interpret: bool) -> tuple[Function, *tuple[Tree, ...]]:
    """The chunk as a function with a persistent kernel in it, and arguments like those that it is called with."""
    from onesfw.engine.persistent import persistent_chunk  # Pallas takes a while to import

    count = len(cells.held.shared)
    own = [False] * count + [True] * len(cells.held.mine)

    def step(arrays: list[Array], state: RunState, draws: Tree, chance: Array, *schedule: Tree) -> RunState:
        objective, constraint, estimator, step = cells.parts(arrays[:count], arrays[count:])
        keep = KEEPERS_IN_KERNEL.get(run.algorithm.output)
        return one_step(objective, constraint, estimator, step, run.sign, keep, state, draws, chance, *schedule)

    def draws(arrays: list[Array], keys: Keys, t: Array) -> tuple[Tree, Array]:
        objective, _, estimator, _ = cells.parts(arrays[:count], arrays[count:])
        return step_draws(objective, estimator, keys, t)

    def finite(state: RunState) -> Array:
        return trees.all_finite((run.step.point(state.step), state.estimate))

    chunk = persistent_chunk(step, draws, finite, own, interpret)

    def several(shared: list[Array], mine: list[Array], *rest: Tree) -> tuple[RunState, Array]:
        found: tuple[RunState, Array] = chunk([*shared, *mine], *rest)
        return found

    def single(
        shared: list[Array], mine: list[Array], key: Array, state: RunState, *schedule: Tree
    ) -> tuple[RunState, Array]:
        state, ends = chunk([*shared, *mine], key[None], jax.tree.map(lambda leaf: leaf[None], state), *schedule)
        return jax.tree.map(lambda leaf: leaf[0], state), ends[0]

    one, inputs = jnp.int32(1), trees.shapes(chunk_inputs(run, 1, 1)[0])
    return single if jnp.ndim(key) == 0 else several, *cells.held, key, cells.start, one, one, *inputs
