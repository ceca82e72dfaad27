"""The host's side of a run: compiled chunks, and between them evaluation, budgets, callbacks, saves and counting."""

from __future__ import annotations

import bisect
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.arguments import named
from onesfw.engine.checkpoint import Checkpoint
from onesfw.engine.chunk_inputs import ChunkInputs, chunk_inputs
from onesfw.engine.compiled_loop import CHUNK, RunState
from onesfw.engine.evaluation import CONFIDENCE, Evaluation, number_from
from onesfw.engine.programs import Programs
from onesfw.engine.run import Run
from onesfw.progress import ProgressBar
from onesfw.results.status import Status
from onesfw.trees import Array, Tree

CHUNK_SECONDS = 0.25
GROWTH = 8  # of a chunk's length over the one before, while its speed is still unknown


@dataclass
class Outcome:
    """What one run, or one batch of replicates under `vmap`, has come to."""

    x: Tree
    x_last: Tree
    state: RunState
    status: list[Status]
    steps: int
    final: Evaluation | None
    rows: list[dict[str, Any]]
    seconds: float
    evaluation_seconds: float
    batched: bool
    """Whether x, the values and the states hold several replicates."""
    failed_step: int | None = None


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
    done: int = 0
    weight: float = 0.0
    length: int = 1
    seconds: float = 0.0
    evaluation_seconds: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    failed_step: int | None = None

    def __post_init__(self) -> None:
        self.state = self.programs.start
        self.batched = jnp.ndim(self.key) > 0
        self.count = self.key.shape[0] if self.batched else 1
        self.measured: Evaluation | None = None
        if self.store is not None:
            self.resume()

    def go(self) -> Outcome:
        """Run until something ends it."""
        self.begun = time.perf_counter()
        status: list[Status] | None = None
        if self.done >= self.run.steps:
            status = [Status.STEPS_DONE] * self.count
        while status is None:
            pause = self.next_pause()
            status = self.advance(pause)
            if status is None and self.done == pause:
                status = self.look()
            if status is None and self.done >= self.run.steps:
                status = [Status.STEPS_DONE] * self.count
            if status is None:
                status = self.budget()
            if self.store is not None and (status is not None or self.store.due()):
                self.save()
        return self.finish(status)

    def next_pause(self) -> int:
        """The next step to evaluate after; the last step is always one."""
        place = bisect.bisect_right(self.run.pauses, self.done)
        return self.run.pauses[place] if place < len(self.run.pauses) else self.run.steps

    def save(self) -> None:
        """Keep what the run needs to go on."""
        assert self.store is not None
        content = {
            "done": self.done,
            "weight": self.weight,
            "seconds": self.seconds,
            "evaluation_seconds": self.evaluation_seconds,
            "rows": [{name: plain(value) for name, value in row.items()} for row in self.rows],
        }
        leaves = jax.tree.leaves(self.state)
        self.store.save(content, {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)})

    def resume(self) -> None:
        """Go on where a checkpoint left off."""
        assert self.store is not None
        saved = self.store.load()
        if saved is None:
            return
        content, tensors = saved
        leaves, structure = jax.tree.flatten(self.state)
        try:
            found = [tensors[f"leaf{i}"] for i in range(len(leaves))]
            fits = all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(found, leaves, strict=True))
            if not fits or len(tensors) != len(leaves):
                raise self.store.damaged()
            self.done, self.weight = int(content["done"]), float(content["weight"])
            self.seconds, self.evaluation_seconds = float(content["seconds"]), float(content["evaluation_seconds"])
            self.rows = [restored_row(row) for row in content["rows"]]
        except (KeyError, TypeError) as error:
            raise self.store.damaged() from error
        if self.done > self.run.steps:
            raise ValueError(
                f"{named('checkpoint')}: the run has done {self.done:,} steps, more than {named('steps')}="
                f"{self.run.steps:,}"
            )
        self.state = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in found])
        self.bar.advance(self.done * self.count)

    def budget(self) -> list[Status] | None:
        """Whether the clock or the user has ended the run."""
        if self.interrupted.is_set():
            return [Status.INTERRUPTED] * self.count
        if self.run.time_limit is not None and time.perf_counter() - self.begun >= self.run.time_limit:
            return [Status.TIME_UP] * self.count
        return None

    def advance(self, target: int) -> list[Status] | None:
        """One chunk of at most `target − done` steps, of about a quarter of a second."""
        count = max(1, min(self.length, CHUNK, target - self.done))
        first = self.done + 1
        begun = time.perf_counter()
        inputs, weight = chunk_inputs(self.run, first, count)
        state, finite = self.programs.chunk(self.key, self.state, jnp.int32(first), jnp.int32(count), *inputs)
        all_finite = bool(np.all(np.asarray(finite)))  # waits for the chunk
        elapsed = time.perf_counter() - begun
        if not all_finite:
            return self.last_finite(count, inputs, weight)
        self.seconds += elapsed
        self.state, self.done, self.weight = state, self.done + count, self.weight + float(weight.sum())
        self.measured = None
        self.bar.advance(count * self.count)
        self.length = max(1, min(int(CHUNK_SECONDS / max(elapsed / count, 1e-9)), self.length * GROWTH, CHUNK))
        if self.run.time_limit is not None:
            left = self.run.time_limit - (time.perf_counter() - self.begun)
            self.length = max(1, min(self.length, int(left / max(elapsed / count, 1e-9)) or 1))
        return None

    def last_finite(self, count: int, inputs: ChunkInputs, weight: np.ndarray) -> list[Status]:
        """Replay a chunk that ended with NaN or infinity: find the first bad step and keep the state before it."""

        def replay(steps: int) -> tuple[RunState, np.ndarray]:
            first = jnp.int32(self.done + 1)
            state, finite = self.programs.chunk(self.key, self.state, first, jnp.int32(steps), *inputs)
            return state, np.atleast_1d(np.asarray(finite))

        good, bad = 0, count
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if replay(middle)[1].all() else (good, middle)
        broken = ~replay(bad)[1]
        if good:
            self.state = replay(good)[0]
        self.weight += float(weight[:good].sum())
        self.done += good
        self.measured = None
        self.failed_step = self.done + 1
        return [Status.NOT_FINITE if b else Status.COMPANION for b in broken]

    def current(self) -> Tree:
        """The point that is looked at: x_{t+1} after t steps, or the mean of the iterates where that is the output."""
        average = self.run.algorithm.output == "average" and self.done > 0
        return self.state.chosen if average else self.iterate()

    def iterate(self) -> Tree:
        """The last iterate as a member of K."""
        if self.done == 0:
            like = self.state.previous
            return jax.tree.map(lambda leaf, x: jnp.broadcast_to(leaf, x.shape), self.run.inside, like)
        return self.run.step.output(self.state.step, self.weight)

    def look(self) -> list[Status] | None:
        """Evaluate, note a row of the trace, call the callbacks, and compare the gap with `gap_tol`."""
        x = self.current()
        self.measured = self.measure(x)
        row = self.row(self.measured)
        self.rows.append(row)
        if self.measured is not None and not self.batched:
            self.bar.note(f"value {float(np.ravel(row['value'])[0]):.6g}")
        wishes = [callback(dict(row), x) for callback in self.run.callbacks]
        if any(wish is False for wish in wishes):
            return [Status.STOPPED] * self.count
        if self.run.gap_tol is not None and self.measured is not None:
            limit = np.asarray(self.measured.gap) + CONFIDENCE * np.asarray(self.measured.gap_stderr)
            if np.all(limit <= self.run.gap_tol):
                return [Status.GAP_REACHED] * self.count
        return None

    def measure(self, x: Tree) -> Evaluation | None:
        """F and the gap at x; the time it takes is kept apart."""
        begun = time.perf_counter()
        try:
            if callable(self.run.evaluate):
                value = number_from(self.run.evaluate, x)
                return Evaluation(*(np.float64(v) for v in (value, 0.0, np.nan, np.nan)))
            if self.programs.evaluate is None:
                return None
            return Evaluation(*(np.asarray(v, np.float64) for v in self.programs.evaluate(self.key, x)))
        finally:
            self.evaluation_seconds += time.perf_counter() - begun

    def row(self, measured: Evaluation | None) -> dict[str, Any]:
        """A row of the trace."""
        counts = self.run.estimator.counts(self.run.objective, self.done, self.run.steps)
        calls = self.run.step.lmo_calls(self.state.step, self.done)
        missing = np.full(self.count, np.nan) if self.batched else np.nan
        row: dict[str, Any] = {"step": self.done, **counts._asdict(), "lmo_calls": calls, "seconds": self.seconds}
        for name in Evaluation._fields:
            row[name] = missing if measured is None else getattr(measured, name)
            if np.ndim(row[name]) == 0:
                row[name] = float(row[name])
        if self.replicate is not None:
            row["replicate"] = self.replicate
        return row

    def finish(self, status: list[Status]) -> Outcome:
        """The outcome, with the paper's output measured once more where it is not the last iterate."""
        x = self.current()
        if self.measured is None:
            self.measured = self.measure(x)
        if not self.rows or self.rows[-1]["step"] != self.done:
            self.rows.append(self.row(self.measured))
        final = self.measured
        if self.run.algorithm.output == "random" and Status.GAP_REACHED not in status:
            x = self.state.chosen
            final = self.measure(x)
        return Outcome(
            x,
            self.iterate(),
            self.state,
            status,
            self.done,
            final,
            self.rows,
            self.seconds,
            self.evaluation_seconds,
            self.batched,
            self.failed_step,
        )


def plain(value: Any) -> Any:
    """An entry of a trace row as JSON knows it: NaN as None, arrays as lists."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def restored_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row that `plain` wrote."""

    def back(value: Any) -> Any:
        if isinstance(value, list):
            return np.asarray([np.nan if v is None else v for v in value])
        return np.nan if value is None else value

    return {name: back(value) for name, value in row.items()}
