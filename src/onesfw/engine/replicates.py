"""One seed or many: in threads, on the workers of a joblib backend or under `vmap`; one `Result` is collected."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from onesfw import trees
from onesfw.engine import jobs
from onesfw.engine.checkpoint import Checkpoint, open_folder
from onesfw.engine.devices import mesh_for
from onesfw.engine.evaluation import Evaluation
from onesfw.engine.fingerprint import fingerprint
from onesfw.engine.host_loop import HostLoop, Outcome
from onesfw.engine.interrupts import catch_interrupt, cut_short
from onesfw.engine.pace import Pace
from onesfw.engine.programs import compile_run
from onesfw.engine.run import Run
from onesfw.progress import ProgressBar
from onesfw.results.result import Result
from onesfw.results.trace import make_trace, stack_traces
from onesfw.trees import Array, HostArray, Tree

MOST_REPLICATES = 2**20


def carry_out(
    run: Run,
    key: Array,
    replicates: int | None,
    show: bool,
    checkpoint: str | os.PathLike[str] | None = None,
    vectorised: bool | None = None,
) -> Result:
    """Run one seed, or replicates: in threads on a CPU, under `vmap` on an accelerator; on several devices."""
    if vectorised is None:
        vectorised = jax.default_backend() != "cpu" or mesh_for(replicates) is not None
    together = replicates if vectorised else None
    keys = [key]
    if replicates is not None:
        folded = jax.vmap(lambda r: jax.random.fold_in(key, r))(np.arange(replicates))
        keys = [folded] if vectorised else list(folded)
    folder = None if checkpoint is None else open_folder(Path(checkpoint), fingerprint(run, key, replicates))
    if len(keys) > 1 and jobs.away() and not run.callbacks:  # a callback's own objects are here
        with catch_interrupt() as interrupted, ProgressBar(run.steps * len(keys), show) as bar:
            outcomes, seconds, kernel = on_workers(run, keys, folder, interrupted, bar)
        return collect(run, outcomes, seconds, replicates, kernel)
    with catch_interrupt() as interrupted, ProgressBar(run.steps * (replicates or 1), show) as bar:
        programs = compile_run(run, keys[0], together)
        bar.note("")
        loops, pace = [], Pace()
        for number, one in enumerate(keys):
            store = None if folder is None else Checkpoint(folder, f"run-{number}")
            numbered = number if replicates is not None and not vectorised else None
            loops.append(HostLoop(run, programs, one, interrupted, bar, numbered, store, pace))
        outcomes = [loops[0].go()] if len(loops) == 1 else in_threads(loops, run.time_limit)
    return collect(run, outcomes, programs.seconds, replicates, programs.kernel)


def in_threads(loops: list[HostLoop], time_limit: float | None) -> list[Outcome]:
    """Replicates as single runs in as many threads as there are cores; compiled code runs without Python's lock."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = 1 if jobs.nested() else min(len(loops), cores)
    share = None if time_limit is None else time_limit * workers / len(loops)
    wide = trees.wide()

    def one(loop: HostLoop) -> Outcome:
        loop.run = replace(loop.run, time_limit=share)
        try:
            with jax.enable_x64(wide):  # a setting of each thread
                return loop.go()
        except BaseException:
            loop.interrupted.set()  # an error in one replicate, in a callback say, ends the others too
            raise

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, loops))


def on_workers(
    run: Run, keys: list[Array], folder: Path | None, interrupted: threading.Event, bar: ProgressBar
) -> tuple[list[Outcome], float, str]:
    """Replicates as single runs on the user's joblib backend, one a task, and the longest time one took to compile.

    The bits are those of the threads where the workers have the same processor. Their checkpoints are the same files,
    so the folder must be one that all workers see. Those that a Ctrl-C has kept from coming back end here.
    """
    workers = min(len(keys), jobs.workers(None))
    share = None if run.time_limit is None else run.time_limit * workers / len(keys)
    alone = replace(run, time_limit=share)
    kind = str(jax.random.key_impl(keys[0]))
    tasks = [
        (alone, np.asarray(jax.random.key_data(key)), kind, number, folder, trees.wide())
        for number, key in enumerate(keys)
    ]
    done = []
    bar.note("")
    with cut_short(interrupted):
        for one in jobs.in_order(single, tasks):
            done.append(one)
            bar.advance(int(one[0].rows[-1]["step"]))
    if len(done) < len(keys):
        programs = compile_run(run, keys[0])
        for number in range(len(done), len(keys)):
            store = None if folder is None else Checkpoint(folder, f"run-{number}")
            outcome = HostLoop(run, programs, keys[number], interrupted, bar, number, store).go()
            done.append((outcome, programs.seconds, programs.kernel))
    return [outcome for outcome, _, _ in done], max(seconds for _, seconds, _ in done), done[0][2]


def single(
    run: Run, key: HostArray, kind: str, number: int, folder: Path | None, wide: bool
) -> tuple[Outcome, float, str]:
    """One replicate from its key's numbers, and the seconds that compiling took: a task for any process."""
    with jax.enable_x64(wide), catch_interrupt() as interrupted, ProgressBar(run.steps, False) as bar:
        wrapped = jax.random.wrap_key_data(jnp.asarray(key), impl=kind)
        programs = compile_run(run, wrapped)
        store = None if folder is None else Checkpoint(folder, f"run-{number}")
        outcome = HostLoop(run, programs, wrapped, interrupted, bar, number, store).go()
        return outcome, programs.seconds, programs.kernel


def collect(run: Run, outcomes: list[Outcome], compile_seconds: float, replicates: int | None, kernel: str) -> Result:
    """One `Result` from one outcome, from one per replicate, or from one that holds all replicates."""
    several = replicates is not None
    ends = [o.end for o in outcomes]
    spread = outcomes[0].batched
    states = [s for o in outcomes for s in o.status]
    failed = [step for o in outcomes for step in o.failed_step]

    def each(values: list[Tree]) -> Tree:
        if not several:
            return values[0]
        return np.broadcast_to(values[0], (replicates or 1,)).copy() if spread else np.asarray(values)

    def measured(name: str) -> Tree:
        finals = [o.final for o in outcomes]
        if any(final is None for final in finals):
            return None
        values = [getattr(final, name) for final in finals]
        if several:
            return values[0] if spread else np.asarray(values, np.float64)
        unknown = callable(run.evaluate) and name != "value"  # a user's own measure has no error and no gap
        return None if unknown else float(values[0])

    def points(values: list[Tree]) -> Tree:
        return stack(values) if several and not spread else jax.tree.map(np.asarray, values[0])

    traces = [make_trace(o.rows) for o in outcomes]
    return Result(
        x=points([o.x for o in outcomes]),
        x_last=points([o.x_last for o in outcomes]),
        status=tuple(states) if several else states[0],
        **{name: measured(name) for name in Evaluation._fields},
        steps=each([end["step"] for end in ends]),
        samples=each([end["samples"] for end in ends]),
        gradients=each([end["gradients"] for end in ends]),
        hvps=each([end["hvps"] for end in ends]),
        lmo_calls=each([end["lmo_calls"] for end in ends]),
        seconds=each([o.seconds for o in outcomes]),
        compile_seconds=compile_seconds,
        evaluation_seconds=each([o.evaluation_seconds for o in outcomes]),
        trace=stack_traces(traces) if several and not spread else traces[0],
        algorithm=run.algorithm.summary,
        sense="minimize" if run.sign > 0 else "maximize",
        replicates=replicates,
        kernel=kernel,
        failed_step=None if not any(failed) else np.array(failed, object) if several else failed[0],
        vertices=[v for o in outcomes for v in o.vertices] if several else outcomes[0].vertices[0],
        state=[o.state for o in outcomes] if several and not spread else outcomes[0].state,
    )


def stack(points: list[Tree]) -> Tree:
    """Replicates' trees as one with a leading axis."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *points)
