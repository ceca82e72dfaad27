"""The host's side of a run: compiled chunks, and between them evaluation, budgets, callbacks, saves and counting."""

from __future__ import annotations

import bisect
import math
import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from onesfw import trees
from onesfw.algorithms.base import LINE_POINTS, SNAPSHOTS, checked_by, half_kept, most_vertices
from onesfw.arguments import named
from onesfw.engine.broken import Broken
from onesfw.engine.checkpoint import Checkpoint, restored_row, saved_entry
from onesfw.engine.chunk_inputs import ChunkInputs, chunk_inputs
from onesfw.engine.compiled_loop import CHUNK, RunState
from onesfw.engine.corrected_output import CAPACITY, Corrected, Sizes, enough, snapshot_space, with_snapshot
from onesfw.engine.evaluation import CONFIDENCE, Evaluation, number_from
from onesfw.engine.pace import Pace
from onesfw.engine.programs import Programs
from onesfw.engine.run import Row, Run
from onesfw.progress import ProgressBar
from onesfw.results.status import Status
from onesfw.steps import LazyStep
from onesfw.trees import Array, HostArray, Tree

SNAPSHOT_STEPS = [1 << k for k in range(8, 33)]  # after which an iterate is kept for a corrected output
HURRIED_SECONDS = 0.5  # for the corrected output of a run that the clock or the user has ended
GROWTH = 8  # of a chunk's length over the one before, while its speed is still unknown


class OutputCost(NamedTuple):
    """What a corrected output has taken."""

    steps: int = 0
    samples: int = 0
    gradients: int | HostArray = 0
    hvps: int | HostArray = 0
    lmo_calls: int | HostArray = 0

    @property
    def attempted(self) -> OutputCost:
        """What remains spent when the output is not taken and its samples go back to the run."""
        return self._replace(steps=0, samples=0)


NO_OUTPUT_COST = OutputCost()


@dataclass
class Outcome:
    """What one run, or one batch of replicates under `vmap`, has come to."""

    x: Tree
    x_last: Tree
    state: RunState
    status: list[Status]
    final: Evaluation | None
    rows: list[Row]
    end: Row
    """the last row, with the steps and the oracle calls of each replicate where some broke down"""
    seconds: float
    evaluation_seconds: float
    batched: bool
    """Whether x, the values and the states hold several replicates."""
    vertices: list[Tree]
    """of each replicate those that x is a mean of, along a leading axis; None where they were not kept"""
    failed_step: list[int | None]


@dataclass
class HostLoop:
    """One run from its first step to its last."""

    run: Run
    programs: Programs
    key: Array
    interrupted: threading.Event
    bar: ProgressBar
    replicate: int | None = None
    store: Checkpoint | None = None
    pace: Pace = field(default_factory=Pace)
    done: int = 0
    weight: float = 0.0
    length: int = 1
    seconds: float = 0.0
    evaluation_seconds: float = 0.0
    rows: list[Row] = field(default_factory=list)
    output: OutputCost = NO_OUTPUT_COST

    def __post_init__(self) -> None:
        self.state = self.programs.start
        self.batched = jnp.ndim(self.key) > 0
        self.count = self.key.shape[0] if self.batched else 1
        self.measured: Evaluation | None = None
        self.broken = Broken.none(jnp.shape(self.key))
        self.found: Tree | None = None  # what reached `gap_tol`
        self.correction: Corrected | None = None  # the last one
        self.snapshots: Tree = snapshot_space(self.state.previous, self.batched) if self.run.corrects else ()
        if self.store is not None:
            self.resume()
        self.limit = self.run.iterations if self.done <= self.run.iterations else self.run.steps

    def go(self) -> Outcome:
        """Run until something ends it."""
        self.begun = time.perf_counter()
        self.length = 1 if self.interrupted.is_set() else self.pace.steps(self.left())
        status: Status | None = None
        if self.broken.all:
            status = Status.NOT_FINITE
        elif self.at_the_end():
            status = Status.STEPS_DONE
        while status is None:
            pause, looks = self.next_pause()
            status = self.advance(pause)
            if self.run.corrects and self.done == pause and self.done in SNAPSHOT_STEPS:
                self.snapshots = with_snapshot(self.snapshots, self.iterate(), self.batched)
            if status is None and self.done == pause and looks:
                status = self.evaluate()
            if status is None and self.at_the_end():
                status = Status.STEPS_DONE
            if status is None:
                status = self.budget()
            if self.store is not None and (status is not None or self.store.due()):
                self.save()
        return self.finish(status)

    def at_the_end(self) -> bool:
        """Whether the loop has done its steps; it goes on with those kept for an output that cannot be corrected."""
        if self.done == self.run.iterations < self.run.steps and not self.trusted():
            self.limit = self.run.steps
        return self.done >= self.limit

    def trusted(self) -> bool:
        """Whether enough samples are behind some replicate's d for a corrected output."""
        constants = (
            jax.vmap(self.run.estimator.constant)(self.state.estimate)
            if self.batched
            else (self.run.estimator.constant(self.state.estimate))
        )
        return bool(np.any(enough(self.done, np.asarray(constants)) & ~self.broken.which))

    def next_pause(self) -> tuple[int, bool]:
        """The next step to stop after, and whether to evaluate there; the last step is always one."""
        place = bisect.bisect_right(self.run.pauses, self.done)
        pause = self.run.pauses[place] if place < len(self.run.pauses) else self.run.steps
        snapshot = SNAPSHOT_STEPS[bisect.bisect_right(SNAPSHOT_STEPS, self.done)] if self.run.corrects else pause
        step = min(pause, snapshot, self.limit)
        return step, step == pause

    def save(self) -> None:
        """Keep what the run needs to go on."""
        assert self.store is not None
        content = {
            "done": self.done,
            "weight": self.weight,
            "seconds": self.seconds,
            "evaluation_seconds": self.evaluation_seconds,
            "output": {name: saved_entry(cost) for name, cost in self.output.attempted._asdict().items()},
            "broken": [self.broken.which.tolist(), self.broken.steps.tolist()],
            "rows": [{name: saved_entry(value) for name, value in row.items()} for row in self.rows],
        }
        leaves = jax.tree.leaves((self.state, self.snapshots, self.broken.x))
        self.store.save(content, {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)})

    def resume(self) -> None:
        """Go on where a checkpoint left off."""
        assert self.store is not None
        saved = self.store.load()
        if saved is None:
            return
        content, tensors = saved
        try:
            which, steps = (np.asarray(part) for part in content["broken"])
            x = self.iterate() if which.any() else ()
            leaves, structure = jax.tree.flatten((self.state, self.snapshots, x))
            found = [tensors[f"leaf{i}"] for i in range(len(leaves))]
            fits = which.shape == steps.shape == jnp.shape(self.key) and all(
                a.shape == b.shape and a.dtype == b.dtype for a, b in zip(found, leaves, strict=True)
            )
            if not fits or len(tensors) != len(leaves):
                raise self.store.damaged()
            self.done, self.weight = int(content["done"]), float(content["weight"])
            self.seconds, self.evaluation_seconds = float(content["seconds"]), float(content["evaluation_seconds"])
            self.rows = [restored_row(row) for row in content["rows"]]
            self.output = OutputCost(**restored_row(content["output"]))
        except (KeyError, TypeError) as error:
            raise self.store.damaged() from error
        if self.done > self.run.steps:
            raise ValueError(
                f"{named('checkpoint')}: the run has done {self.done:,} steps, more than {named('steps')}="
                f"{self.run.steps:,}; raise it, or give another folder"
            )
        self.state, self.snapshots, x = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in found])
        self.broken = Broken(which, steps, x)
        self.bar.advance(self.done * self.count)

    def budget(self) -> Status | None:
        """Whether the clock or the user has ended the run."""
        if self.interrupted.is_set():
            return Status.INTERRUPTED
        return Status.TIME_UP if self.left() <= 0 else None

    def left(self) -> float:
        """Seconds until the time limit."""
        limit = self.run.time_limit
        return math.inf if limit is None else limit - (time.perf_counter() - self.begun)

    def advance(self, target: int) -> Status | None:
        """One chunk of at most `target − done` steps, of about a quarter of a second."""
        count = max(1, min(self.length, CHUNK, target - self.done))
        first = self.done + 1
        begun = time.perf_counter()
        inputs, weight = chunk_inputs(self.run, first, count)
        state, finite = self.programs.chunk(self.key, self.state, jnp.int32(first), jnp.int32(count), *inputs)
        bad = self.newly_broken(finite)  # waits for the chunk
        elapsed = time.perf_counter() - begun
        if bad.any():
            return self.break_down(bad, state, inputs, weight)
        self.seconds += elapsed
        self.move(state, weight)
        self.pace.seconds = max(elapsed / count, 1e-9)
        self.length = min(self.pace.steps(self.left()), self.length * GROWTH)
        return None

    def newly_broken(self, finite: Array) -> HostArray:
        """Which runs are not finite and were so far."""
        bad: HostArray = ~(np.asarray(finite) | self.broken.which)
        return bad

    def move(self, state: RunState, weight: HostArray) -> None:
        """Take the state after steps of these weights; what broke down stays where it is."""
        self.state = self.broken.kept(self.state, state)
        self.weight += float(weight.sum())
        self.done += len(weight)
        self.measured = None
        self.bar.advance(len(weight) * self.count)

    def break_down(self, bad: HostArray, state: RunState, inputs: ChunkInputs, weight: HostArray) -> Status | None:
        """Hold the runs that a chunk has ended with NaN or infinity; the others go on.

        The chunk is replayed to find the first bad step, and ends before it. Where many were found so, it is taken
        whole, and the runs are held where it began.
        """

        def replay(steps: int) -> tuple[RunState, HostArray]:
            first = jnp.int32(self.done + 1)
            state, finite = self.programs.chunk(self.key, self.state, first, jnp.int32(steps), *inputs)
            return state, self.newly_broken(finite)

        if self.broken.searched:
            self.broken = self.broken.joined(bad, self.done, self.iterate())
            self.move(state, weight)
        else:
            good, end = 0, len(weight)
            while end - good > 1:
                middle = (good + end) // 2
                good, end = (good, middle) if replay(middle)[1].any() else (middle, end)
            bad = replay(end)[1]
            if good:
                self.move(replay(good)[0], weight[:good])
            self.broken = self.broken.joined(bad, self.done, self.iterate())
        return Status.NOT_FINITE if self.broken.all else None

    def current(self) -> Tree:
        """The point that is evaluated: x_{t+1} after t steps, or the mean of the iterates where that is the output."""
        average = self.run.algorithm.output == "average" and self.done > 0
        return self.state.chosen if average else self.iterate()

    def iterate(self) -> Tree:
        """The last iterate as a member of K."""
        if self.done == 0:
            like = self.state.previous
            return jax.tree.map(lambda leaf, x: jnp.broadcast_to(leaf, x.shape), self.run.inside, like)
        return self.broken.kept(self.broken.x, self.run.step.output(self.state.step, self.weight))

    def evaluate(self) -> Status | None:
        """Evaluate, note a row of the trace, call the callbacks, and compare the gap with `gap_tol`."""
        x = self.current()
        if self.run.gap_tol is not None and self.correctable():
            x = self.corrected(x)  # what would be returned if it were certified
        self.measured = self.measure(x)
        stop = self.show(x, self.measured)
        if self.certified(self.measured):
            self.found = x
            return Status.GAP_REACHED
        if self.output.steps:  # the samples go back to the run
            self.output = self.output.attempted
            self.measured = None
        return Status.STOPPED if stop else None

    def show(self, x: Tree, measured: Evaluation | None) -> bool:
        """Note a row of the trace and call the callbacks; whether one of them wishes to stop."""
        row = self.row(measured)
        self.rows.append(row)
        if measured is not None and not self.batched:
            self.bar.note(f"value {float(np.ravel(row['value'])[0]):.6g}")
        wishes = [callback(dict(row), x) for callback in self.run.callbacks]
        return any(wish is False for wish in wishes)

    def certified(self, measured: Evaluation | None) -> bool:
        """Whether the gap is surely below `gap_tol`."""
        if self.run.gap_tol is None or measured is None:
            return False
        limit = np.asarray(measured.gap) + CONFIDENCE * np.asarray(measured.gap_stderr)
        return bool(np.all((limit <= self.run.gap_tol) | self.broken.which))

    def measure(self, x: Tree) -> Evaluation | None:
        """F and the gap at x; the time it takes is kept apart."""
        begun = time.perf_counter()
        try:
            if callable(self.run.evaluate):
                value = number_from(self.run.evaluate, x)
                return Evaluation(*(np.float64(v) for v in (value, 0.0, np.nan, np.nan)))
            found = self.programs.evaluate(self.key, x)
            return None if found is None else Evaluation(*(np.asarray(v, np.float64) for v in found))
        finally:
            self.evaluation_seconds += time.perf_counter() - begun

    def row(self, measured: Evaluation | None) -> Row:
        """A row of the trace."""
        row: Row = {"step": self.done + self.output.steps}
        for name, count in self.counts(self.done).items():
            total = count + getattr(self.output, name)
            row[name] = np.broadcast_to(total, self.count) if self.batched and self.run.corrects else total
        row["seconds"] = self.seconds
        missing = np.full(self.count, np.nan) if self.batched else np.nan
        for name in Evaluation._fields:
            value = missing if measured is None else getattr(measured, name)
            row[name] = value if np.ndim(value) else float(value)
        if self.replicate is not None:
            row["replicate"] = self.replicate
        return row

    def counts(self, steps: int) -> dict[str, int | HostArray]:
        """The oracle calls of so many steps."""
        counts = self.run.estimator.counts(self.run.objective, steps, self.run.steps)._asdict()
        return {**counts, "lmo_calls": self.run.step.lmo_calls(self.state.step, steps)}

    def end(self) -> Row:
        """The last row, with the steps and the oracle calls of each replicate where some broke down."""
        row = dict(self.rows[-1])
        if not self.batched or not self.broken.some:
            return row
        for name in ("step", *self.counts(0)):
            row[name] = np.array(np.broadcast_to(row[name], self.count))
        for place in np.flatnonzero(self.broken.which):
            steps = int(self.broken.steps[place])
            for name, count in {"step": steps, **self.counts(steps)}.items():
                row[name][place] = np.broadcast_to(count, self.count)[place]  # type: ignore[index]  # made above
        return row

    def finish(self, status: Status) -> Outcome:
        """The outcome, with the output measured once more where it is not the last iterate."""
        x, final = self.current(), self.measured
        if self.found is not None:
            x = self.found
        elif self.correctable() and not self.broken.all:
            x = self.corrected(x, hurried=status in (Status.INTERRUPTED, Status.TIME_UP))
            final = self.measure(x)
            self.show(x, final)
            if status is Status.STEPS_DONE and self.certified(final):
                status = Status.GAP_REACHED
            self.bar.advance(self.output.steps * self.count)
        else:
            final = self.measure(x) if final is None else final
            if not self.rows or self.rows[-1]["step"] != self.done:
                self.rows.append(self.row(final))
            if self.run.algorithm.output == "random":
                x = self.state.chosen
                final = self.measure(x)
        return Outcome(
            x,
            self.iterate(),
            self.state,
            [Status.NOT_FINITE if failed else status for failed in self.broken.failed],
            final,
            self.rows,
            self.end(),
            self.seconds,
            self.evaluation_seconds,
            self.batched,
            self.vertices(),
            self.broken.failed,
        )

    def vertices(self) -> list[Tree]:
        """Of each replicate the vertices that x is a mean of; None where the step keeps none."""
        if not self.batched:
            return [self.kept(self.state.step, self.state.previous, self.correction)]
        if not isinstance(self.run.step, LazyStep):
            return [None] * self.count
        held = jax.tree.map(np.asarray, (self.state.step, self.state.previous, self.correction))
        return [self.kept(*jax.tree.map(lambda leaf: leaf[place], held)) for place in range(self.count)]  # noqa: B023

    def kept(self, state: Tree, x: Tree, correction: Corrected | None) -> Tree:
        """Kept vertices, the correction's, and x_1 where a share of it is left; of one replicate."""
        kept = self.run.step.kept(state)
        if kept is None:
            return None
        if correction is not None:
            new = jax.vmap(trees.ravel(x)[1])(correction.vertices[: int(correction.found)])
            kept = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), kept, new)
        if chunk_inputs(self.run, 1, 1)[1][0] < 1:
            kept = jax.tree.map(lambda a, x: jnp.concatenate([a, jnp.asarray(x, a.dtype)[None]]), kept, self.run.x0)
        return jax.tree.map(np.asarray, kept)

    def correctable(self) -> bool:
        """Whether the steps done are worth a corrected output, and there are samples left for it."""
        return self.done <= self.run.iterations < self.run.steps and self.trusted()

    def corrected(self, x: Tree, hurried: bool = False) -> Tree:
        """The corrected output of the steps done so far, from samples after theirs; what it takes is counted.

        A Hessian-vector product costs about as much as a step: in a hurry, there are as many as fit into the time.
        """
        begun = time.perf_counter()
        half = half_kept(self.run.steps if self.done == self.run.iterations else self.done)
        if hurried:
            affordable = HURRIED_SECONDS * self.done / max(self.seconds, 1e-9) / (CAPACITY + LINE_POINTS)
            half = min(half, half_kept(int(100 * affordable)))
        counts = self.run.estimator.counts
        seen = counts(self.run.objective, self.done, self.run.steps).samples
        batch = counts(self.run.objective, self.done + half, self.run.steps).samples - seen
        known = min(SNAPSHOTS, bisect.bisect_right(SNAPSHOT_STEPS, self.done))
        sizes = Sizes(*map(jnp.int32, (known, seen, batch, most_vertices(batch), self.done)))
        found = self.programs.correct(self.key, self.state, x, self.snapshots, sizes)
        if self.broken.some:  # x stays as it is
            found = self.broken.kept(jax.tree.map(jnp.zeros_like, found)._replace(x=x), found)
        self.correction = found
        products, calls = (whole(np.asarray(leaf)) for leaf in (found.products, found.lmo_calls))  # waits for it
        self.seconds += time.perf_counter() - begun
        before = self.output  # attempts on the way to `gap_tol`
        gradients, hvps = checked_by(self.run.objective, batch)
        made = whole(np.asarray(products) > 0)  # a replicate whose d rests on too few samples has none
        self.output = OutputCost(
            2 * half,
            2 * batch,
            before.gradients + made * gradients,
            before.hvps + made * hvps + products * batch,
            before.lmo_calls + calls,
        )
        return found.x


def whole(counts: HostArray) -> int | HostArray:
    """A count as a number; those of replicates stay an array."""
    return counts if counts.ndim else int(counts)
