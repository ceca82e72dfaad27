"""`sweep`: a run for every set, every choice of rows and every seed.

On a CPU the runs go through threads, or to the workers of the user's joblib backend; on an accelerator all runs of one
shape go together, in one program.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onesfw import trees
from onesfw.algorithms import DR_SUBMODULAR, Algorithm, one_sfw
from onesfw.arguments import choose, whole_number
from onesfw.engine import jobs
from onesfw.engine.checkpoint import Checkpoint, digest, open_folder
from onesfw.engine.checks import checked_run, over_another
from onesfw.engine.chunk_inputs import chunk_inputs
from onesfw.engine.devices import mesh_for
from onesfw.engine.evaluation import Evaluate, Measure, number_from
from onesfw.engine.fingerprint import fingerprint
from onesfw.engine.host_loop import HostLoop
from onesfw.engine.interrupts import catch_interrupt, cut_short, keep_interrupts
from onesfw.engine.keys import Key, as_key
from onesfw.engine.pace import Pace
from onesfw.engine.programs import Program, Programs, compile_cells, split, stacked
from onesfw.engine.replicates import MOST_REPLICATES, stack
from onesfw.engine.run import Run
from onesfw.engine.sweep_checks import checked_rows, checked_sets, told_apart
from onesfw.objectives import FiniteSum, Objective
from onesfw.progress import ProgressBar
from onesfw.results.sweep import MEASURES, STATUSES, Sweep
from onesfw.sets import ConvexSet
from onesfw.trees import Array, Function, HostArray, Tree

Validation = FiniteSum | Measure | Literal[False] | None
TOGETHER_BYTES = 1 << 34  # what the states of runs that go together may take


def sweep(
    objective: Objective,
    constraints: ConvexSet | Iterable[ConvexSet],
    x0: Tree | None = None,
    *,
    steps: int,
    algorithm: Algorithm | None = None,
    rows: Iterable[npt.ArrayLike] | None = None,
    replicates: int = 1,
    validation: Validation = None,
    sense: str = "minimize",
    key: Key = 0,
    evaluate: Evaluate = None,
    time_limit: float | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Sweep:
    """Solve a problem over many sets, on many choices of rows, from many seeds.

    Every run is the one that `minimize` makes of `objective.only(rows)`, the set, and the key
    `jax.random.fold_in(key, number)`, where number counts the runs: seeds fastest, then rows, then sets. On a CPU it
    is the same to the last bit.

    Args:
        objective: as in `minimize`; a `FiniteSum` where rows are given.
        constraints: one set, or several of one class and shape, in rising order of the number that tells them apart.
        x0: where every run starts; None starts each at a member of its set.
        steps: T, the iterations of each run.
        algorithm: a recipe; None for `one_sfw()`, or `one_sfw("dr_submodular")` where F is maximised.
        rows: for each choice the numbers of the rows to learn from, as `fw.rows.folds` gives them; None for all rows.
        replicates: seeds for every set and choice of rows.
        validation: None for the rows that are left out, where there are any; a `FiniteSum` of other rows, or a
            function of x, for its value; False for nothing.
        sense: "minimize" or "maximize".
        key: an integer seed or a JAX key.
        evaluate: as in `minimize`.
        time_limit: stop after so many seconds; the runs share them equally.
        progress: show a progress bar.
        checkpoint: a folder to save the runs in, as in `minimize`.

    Returns:
        Arrays over (constraint, rows, replicate), the best set, a table and a picture.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where sets differ in class or shape or are not sorted, a choice of rows is empty or out of range,
            or a number is wrong. Both name the argument and the remedy, before anything is compiled.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> import onesfw as fw
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(60, 4))
        >>> y = X @ [1.0, 0.0, 0.0, -0.5] + 0.1 * rng.normal(size=60)
        >>> objective = fw.FiniteSum(lambda x, row: (row[0] @ x - row[1]) ** 2 / 2, (X, y))
        >>> balls = [fw.sets.L1Ball(r, shape=4) for r in (0.5, 1.5, 6.0)]
        >>> found = fw.sweep(objective, balls, steps=2_000, rows=fw.rows.folds(60, 3))
        >>> found.best().at
        1.5
    """
    sets = checked_sets(constraints)
    choose(sense, ("minimize", "maximize"), "sense")
    sign = 1 if sense == "minimize" else -1
    algorithm = algorithm or (one_sfw() if sign > 0 else one_sfw(DR_SUBMODULAR))
    replicates = whole_number(replicates, "replicates", 1, MOST_REPLICATES)
    if not isinstance(checkpoint, str | os.PathLike | None):
        raise TypeError(f"checkpoint must be the path of a folder, got {checkpoint!r}")
    choices = checked_rows(rows, objective)
    objectives = [objective] if choices is None else [restricted(objective, numbers) for numbers in choices]
    begun = time.perf_counter()
    limits = {"steps": steps, "algorithm": algorithm, "evaluate": evaluate, "time_limit": time_limit}
    with keep_interrupts(), checked_run(objectives[0], sets[0], x0, sign, **limits) as first:  # type: ignore[arg-type]
        runs = [first, *(over_another(first, other, x0) for other in sets[1:])]
        judge = Judge.of(validation, objectives, first.x0)
        root = as_key(key)
        parts = [replace(run, objective=part) for run in runs for part in objectives]
        cells = [Cell(number, parts[number // replicates], root, judge) for number in range(len(parts) * replicates)]
        folder = None
        if checkpoint is not None:
            folder = open_folder(Path(checkpoint), parts_of(first, root, replicates, sets, choices))
        with catch_interrupt() as interrupted, ProgressBar(steps * len(cells), bool(progress)) as bar:
            carry = together if jax.default_backend() != "cpu" or mesh_for(len(cells)) is not None else apart
            found = carry(cells, folder, interrupted, bar)
    labels = (*told_apart(sets), type(sets[0]).__name__, first.algorithm.summary, sense)
    learnt = isinstance(objective, FiniteSum) and not callable(evaluate)
    return assembled(found, (len(sets), len(objectives), replicates), labels, learnt, time.perf_counter() - begun)


class Found(NamedTuple):
    """What one run has come to."""

    x: Tree
    measures: tuple[float, ...]
    """in the order of `MEASURES`"""
    status: int
    steps: int
    kernel: str


@dataclass(frozen=True)
class Judge:
    """How points are judged on rows that their runs did not learn from."""

    kind: Literal["left out", "others", "function", "nothing"]
    others: FiniteSum | None = None
    function: Measure | None = None

    @classmethod
    def of(cls, validation: Validation, objectives: Sequence[Objective], x: Tree) -> Judge:
        """What the argument `validation` asks for, tried at the starting point where it is a function."""
        if validation is False:
            return cls("nothing")
        if isinstance(validation, FiniteSum):
            try:
                validation.check(trees.shapes(x), 1)
            except (TypeError, ValueError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"validation: {error}") from error
            return cls("others", others=validation)
        if callable(validation):
            number_from(validation, x, "validation")
            return cls("function", function=validation)
        if validation is not None:
            raise TypeError(f"validation must be None, False, a FiniteSum or a function of x, got {validation!r}")
        complete = [not np.any(np.asarray(part.times) == 0) for part in objectives if isinstance(part, FiniteSum) and
                    part.times is not None]  # fmt: skip
        return cls("nothing" if not complete or any(complete) else "left out")

    def program(self, objective: Objective) -> tuple[list[Array | HostArray], Function]:
        """The arrays that the judgement reads, and the function of them and x; for the two kinds that are traced."""
        source = self.others if self.kind == "others" else objective
        assert isinstance(source, FiniteSum)
        arrays, join = split(source)

        def judged(arrays: list[Array], x: Tree) -> tuple[Array, Array]:
            rows: FiniteSum = join(arrays)
            return rows.value_and_error(x) if self.kind == "others" else rows.left_out(x)

        return arrays, judged

    def compiled(self, objective: Objective, x: Tree) -> Callable[[Objective, Tree], tuple[float, float]]:
        """(objective, x) ↦ the value at x on the other rows and its standard error, for objectives of one shape."""
        if self.kind == "nothing":
            return lambda objective, x: (np.nan, np.nan)
        if self.function is not None:
            function = self.function
            return lambda objective, x: (number_from(function, x, "validation"), np.nan)
        dtype = trees.dtype_of(x)
        arrays, judged = self.program(objective)
        program = Program(judged, stacked([arrays], dtype)[0], x)

        def one(objective: Objective, x: Tree) -> tuple[float, float]:
            mean, error = program(stacked([self.program(objective)[0]], dtype)[0], x)
            return float(mean), float(error)

        return one


class Compiled(NamedTuple):
    """What runs of one shape share."""

    programs: Programs
    judge: Callable[[Objective, Tree], tuple[float, float]]
    pace: Pace


@dataclass(frozen=True)
class Cell:
    """One run of a sweep."""

    number: int
    run: Run
    root: Array
    judge: Judge

    @property
    def key(self) -> Array:
        """The run's own key."""
        return jax.random.fold_in(self.root, self.number)

    @property
    def shape(self) -> str:
        """What runs must have in common to share a program."""
        return str([leaf.shape for leaf in split((self.run.objective, self.run.constraint))[0]])

    def compiled(self) -> Compiled:
        """The programs of this run, and of those of its shape."""
        judge = self.judge.compiled(self.run.objective, self.run.x0)
        return Compiled(compile_cells([self.run], self.key), judge, Pace())

    def go(
        self, shared: Compiled, folder: Path | None, interrupted: threading.Event, bar: ProgressBar, share: float | None
    ) -> Found:
        """Run it alone."""
        run = replace(self.run, time_limit=share)
        programs = shared.programs.bind(run)
        store = None if folder is None else Checkpoint(folder, f"run-{self.number}")
        outcome = HostLoop(run, programs, self.key, interrupted, bar, None, store, shared.pace).go()
        measured = (np.nan,) * 4 if outcome.final is None else tuple(float(value) for value in outcome.final)
        judged = shared.judge(run.objective, outcome.x)
        place = STATUSES.index(outcome.status[0])
        x = jax.tree.map(np.asarray, outcome.x)
        return Found(x, (*measured, *judged), place, int(outcome.rows[-1]["step"]), programs.kernel)


def apart(cells: list[Cell], folder: Path | None, interrupted: threading.Event, bar: ProgressBar) -> list[Found]:
    """The runs one by one: in as many threads as there are cores, or on the workers of the user's joblib backend.

    Those that a Ctrl-C has kept from coming back end here, as runs in threads do.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    away = jobs.away()
    workers = min(len(cells), jobs.workers(None) if away else 1 if jobs.nested() else cores)
    limit, wide = cells[0].run.time_limit, trees.wide()
    share = None if limit is None else limit * workers / len(cells)
    found: list[Found] = []
    if away:
        bar.note("")
        kind = str(jax.random.key_impl(cells[0].root))
        root = np.asarray(jax.random.key_data(cells[0].root))
        tasks = [(cell.number, cell.run, cell.judge, root, kind, folder, share, wide) for cell in cells]
        with cut_short(interrupted):
            for one in jobs.in_order(elsewhere, tasks):
                found.append(one)
                bar.advance(one.steps)
        cells = cells[len(found) :]

    shared: dict[str, Compiled] = {}
    for cell in {id(cell.run): cell for cell in cells}.values():
        if cell.shape not in shared:
            shared[cell.shape] = cell.compiled()
    bar.note("")

    def here(cell: Cell) -> Found:
        try:
            with jax.enable_x64(wide):  # a setting of each thread
                return cell.go(shared[cell.shape], folder, interrupted, bar, share)
        except BaseException:
            interrupted.set()  # an error in one run ends the others too
            raise

    with ThreadPoolExecutor(workers) as pool:
        return found + list(pool.map(here, cells))


def elsewhere(
    number: int,
    run: Run,
    judge: Judge,
    root: HostArray,
    kind: str,
    folder: Path | None,
    share: float | None,
    wide: bool,
) -> Found:
    """One run as a task for any process."""
    with jax.enable_x64(wide), catch_interrupt() as interrupted, ProgressBar(run.steps, False) as bar:
        key = jax.random.wrap_key_data(jnp.asarray(root), impl=kind)
        cell = Cell(number, run, key, judge)
        return cell.go(cell.compiled(), folder, interrupted, bar, share)


def together(cells: list[Cell], folder: Path | None, interrupted: threading.Event, bar: ProgressBar) -> list[Found]:
    """The runs of one shape in one program, as many as memory holds; groups one after the other."""
    found: dict[int, Found] = {}
    for number, group in enumerate(groups(cells)):
        share = cells[0].run.time_limit
        share = None if share is None else share * len(group) / len(cells)
        runs = [cell.run for cell in group]
        keys = jax.vmap(jax.random.fold_in, (None, 0))(cells[0].root, np.array([cell.number for cell in group]))
        programs = compile_cells(runs, keys)
        bar.note("")
        first = replace(runs[0], time_limit=share, inside=stack([run.inside for run in runs]))
        store = None if folder is None else Checkpoint(folder, f"group-{number}")
        outcome = HostLoop(first, programs, keys, interrupted, bar, None, store).go()
        measured = [np.full(len(group), np.nan)] * 4 if outcome.final is None else list(outcome.final)
        table = np.stack([*(np.broadcast_to(column, len(group)) for column in measured), *judged(group, outcome.x)], 1)
        leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, outcome.x))
        steps = np.broadcast_to(outcome.end["step"], len(group)).tolist()
        for place, cell in enumerate(group):
            point = jax.tree.unflatten(structure, [leaf[place] for leaf in leaves])
            status = STATUSES.index(outcome.status[place])
            found[cell.number] = Found(point, tuple(table[place].tolist()), status, steps[place], programs.kernel)
    return [found[cell.number] for cell in cells]


def groups(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Runs whose arrays have the same shapes, and whose steps the same weights, no more at once than memory holds."""
    alike: dict[tuple[str, bytes], list[Cell]] = {}
    shapes: dict[int, tuple[str, bytes]] = {}
    for cell in cells:
        if id(cell.run) not in shapes:
            shapes[id(cell.run)] = cell.shape, chunk_inputs(cell.run, 1, 1)[1].tobytes()
        alike.setdefault(shapes[id(cell.run)], []).append(cell)
    most = max(1, TOGETHER_BYTES // (20 * max(1, trees.size_in_bytes(cells[0].run.x0))))
    for group in alike.values():
        for begin in range(0, len(group), most):
            yield group[begin : begin + most]


def judged(group: list[Cell], x: Tree) -> tuple[HostArray, HostArray]:
    """The values of many points on their other rows, and standard errors."""
    judge, nothing = group[0].judge, np.full(len(group), np.nan)
    if judge.kind == "nothing":
        return nothing, nothing
    if judge.function is not None:
        points = [jax.tree.map(lambda leaf: leaf[place], x) for place in range(len(group))]  # noqa: B023
        return np.array([number_from(judge.function, point, "validation") for point in points]), nothing
    distinct = list({id(cell.run.objective): cell.run.objective for cell in group}.values())
    places = {id(part): place for place, part in enumerate(distinct)}
    order = np.array([places[id(cell.run.objective)] for cell in group])
    arrays, axes = stacked([judge.program(part)[0] for part in distinct], trees.dtype_of(x), order)
    _, function = judge.program(distinct[0])
    x = jax.tree.map(np.asarray, x)  # it may lie on several devices
    mean, error = Program(jax.vmap(function, (axes, 0)), arrays, x)(arrays, x)
    return np.asarray(mean, np.float64), np.asarray(error, np.float64)


def restricted(objective: Objective, numbers: HostArray) -> FiniteSum:
    """The objective over some rows."""
    assert isinstance(objective, FiniteSum)
    return objective.only(numbers)


def parts_of(
    run: Run, key: Array, replicates: int, sets: Sequence[ConvexSet], choices: list[HostArray] | None
) -> dict[str, str]:
    """What makes two sweeps the same, for a checkpoint."""
    arrays = [np.asarray(leaf) for constraint in sets for leaf in jax.tree.leaves(constraint)]
    return {
        **fingerprint(run, key, replicates),
        "constraints": f"{len(sets)} × {type(sets[0]).__name__} {digest(*arrays)}",
        "rows": "all" if choices is None else f"{len(choices)} {digest(*choices)}",
    }


def assembled(
    found: list[Found],
    shape: tuple[int, int, int],
    labels: tuple[HostArray, str, str, str, str],
    learnt: bool,
    seconds: float,
) -> Sweep:
    """The runs as arrays over (constraint, rows, replicate)."""
    at, parameter, constraint, algorithm, sense = labels
    table = np.array([one.measures for one in found], np.float64)
    x = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), stack([one.x for one in found]))
    measures = {name: table[:, place].reshape(shape) for place, name in enumerate(MEASURES)}
    return Sweep(
        x=x,
        **measures,
        status=np.array([one.status for one in found]).reshape(shape),
        at=at,
        parameter=parameter,
        constraint=constraint,
        algorithm=algorithm,
        sense=sense,
        steps=np.array([one.steps for one in found]).reshape(shape),
        seconds=seconds,
        kernel=found[0].kernel,
        learnt=learnt,
    )
