"""`minimize` and `maximize`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from onesfw import trees
from onesfw.algorithms import DR_SUBMODULAR, Algorithm, one_sfw
from onesfw.arguments import whole_number
from onesfw.build import as_key, build_run, require_types, starting_point
from onesfw.checkpoint import Checkpoint, open_folder
from onesfw.driver import Driver, Outcome, compile_run
from onesfw.evaluate import Evaluation
from onesfw.fingerprint import fingerprint
from onesfw.interrupts import catch_interrupt
from onesfw.objectives import Objective
from onesfw.progress import ProgressBar
from onesfw.result import Result, make_trace, stack, stack_traces
from onesfw.run import Run
from onesfw.sets import ConvexSet
from onesfw.trees import Array, Tree

MOST_REPLICATES = 2**20


def minimize(
    objective: Objective,
    constraint: ConvexSet,
    x0: Tree | None = None,
    *,
    steps: int,
    algorithm: Algorithm | None = None,
    key: Any = 0,
    replicates: int | None = None,
    evaluate: Any = None,
    every: Any = None,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    checkpoint: Any = None,
    callbacks: Iterable[Any] = (),
) -> Result:
    """Minimise F(x) = E[F̃(x; z)] over a convex set, from one sample per iteration.

    Args:
        objective: `Expectation`, `NonOblivious` or `FiniteSum`.
        constraint: a set from `onesfw.sets`.
        x0: where to start, a pytree of float32 or float64 arrays inside the set; its dtype is the run's. None starts
            at a member the set chooses, in float32.
        steps: T, the number of iterations.
        algorithm: a recipe such as `one_sfw("nonconvex")`; None for `one_sfw()`.
        key: an integer seed or a JAX key.
        replicates: run that many seeds; the result's arrays gain a leading axis.
        evaluate: None for a full pass or 10,000 independent samples; an integer for that many samples; a function of
            x for its value, tried at the starting point first; False for none.
        every: evaluate after every so many steps, after a list of steps, or "log"; None for once, at the end.
        gap_tol: stop when the upper 95 % confidence limit of the Frank-Wolfe gap is below this; implies every="log".
        time_limit: stop after so many seconds, evaluation included, compilation not. Replicates share it equally.
        progress: show a progress bar.
        checkpoint: a folder to save the run in, at most every 10 seconds and at the end. Run again with the same
            arguments, it goes on where it was, to the same last bit; with more steps it is prolonged where no schedule
            depends on T; with other arguments that would change the course of the run it is refused.
        callbacks: functions of (trace row, x), called after each evaluation; one that returns False stops the run.
    """
    return solve(
        1, objective, constraint, x0, one_sfw() if algorithm is None else algorithm, key, replicates, progress,
        checkpoint, steps=steps, evaluate=evaluate, every=every, gap_tol=gap_tol, time_limit=time_limit,
        callbacks=callbacks,
    )  # fmt: skip


def maximize(
    objective: Objective,
    constraint: ConvexSet,
    x0: Tree | None = None,
    *,
    steps: int,
    algorithm: Algorithm | None = None,
    key: Any = 0,
    replicates: int | None = None,
    evaluate: Any = None,
    every: Any = None,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    checkpoint: Any = None,
    callbacks: Iterable[Any] = (),
) -> Result:
    """Maximise F(x) = E[F̃(x; z)] over a convex set, from one sample per iteration.

    The arguments are `minimize`'s. The default algorithm is `one_sfw("dr_submodular")`, for a monotone DR-submodular F
    over a set of non-negative vectors: it starts at 0 and takes neither another x0 nor `gap_tol`. A concave F is
    maximised with `one_sfw("convex")`. Values carry F's own sign; the gap is max ⟨∇F(x), v − x⟩ ≥ 0.
    """
    return solve(
        -1, objective, constraint, x0, one_sfw(DR_SUBMODULAR) if algorithm is None else algorithm, key, replicates,
        progress, checkpoint, steps=steps, evaluate=evaluate, every=every, gap_tol=gap_tol, time_limit=time_limit,
        callbacks=callbacks,
    )  # fmt: skip


def solve(
    sign: int,
    objective: Objective,
    constraint: ConvexSet,
    x0: Tree | None,
    algorithm: Algorithm,
    key: Any,
    replicates: int | None,
    progress: bool,
    checkpoint: Any,
    **options: Any,
) -> Result:
    """Check everything, then run in x0's precision."""
    require_types(objective, constraint, algorithm)
    if not isinstance(checkpoint, str | os.PathLike | None):
        raise TypeError(f"checkpoint must be the path of a folder, got {checkpoint!r}")
    if replicates is not None:
        replicates = whole_number(replicates, "replicates", 1, MOST_REPLICATES)
    start = starting_point(x0, constraint)
    with jax.enable_x64(trees.wide() or trees.dtype_of(start) == np.float64):
        run = build_run(objective, constraint, start, x0 is not None, sign, algorithm=algorithm, **options)
        return carry_out(run, as_key(key), replicates, bool(progress), checkpoint)


def carry_out(
    run: Run,
    key: Array,
    replicates: int | None,
    show: bool,
    checkpoint: Any = None,
    vectorised: bool | None = None,
) -> Result:
    """Run one seed, or replicates: in worker threads on a CPU, under `vmap` on an accelerator."""
    if vectorised is None:
        vectorised = jax.default_backend() != "cpu"
    together = replicates if vectorised else None
    keys = [key]
    if replicates is not None:
        folded = jax.vmap(lambda r: jax.random.fold_in(key, r))(np.arange(replicates))
        keys = [folded] if vectorised else list(folded)
    folder = None if checkpoint is None else open_folder(checkpoint, fingerprint(run, key, replicates))
    with catch_interrupt() as interrupted, ProgressBar(run.steps * (replicates or 1), show) as bar:
        programs = compile_run(run, keys[0], together)
        bar.note("")
        drivers = []
        for number, one in enumerate(keys):
            store = None if folder is None else Checkpoint(folder / f"run-{number}", programs.start)
            numbered = number if replicates is not None and not vectorised else None
            drivers.append(Driver(run, programs, one, interrupted, bar, numbered, store))
        outcomes = [drivers[0].go()] if len(drivers) == 1 else in_threads(drivers, run.time_limit)
    return collect(run, outcomes, programs.seconds, replicates)


def in_threads(drivers: list[Driver], time_limit: float | None) -> list[Outcome]:
    """Replicates as single runs in as many threads as there are cores; compiled code runs without Python's lock."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(len(drivers), cores)
    share = None if time_limit is None else time_limit * workers / len(drivers)
    wide = trees.wide()

    def one(driver: Driver) -> Outcome:
        driver.run = replace(driver.run, time_limit=share)
        try:
            with jax.enable_x64(wide):  # a setting of each thread
                return driver.go()
        except BaseException:
            driver.interrupted.set()  # an error in one replicate, in a callback say, ends the others too
            raise

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, drivers))


def collect(run: Run, outcomes: list[Outcome], compile_seconds: float, replicates: int | None) -> Result:
    """One `Result` from one outcome, from one per replicate, or from one that holds all replicates."""
    several = replicates is not None
    counts = [run.estimator.counts(run.objective, o.steps, run.steps) for o in outcomes]
    spread = outcomes[0].batched
    states = [s for o in outcomes for s in o.status]

    def each(values: list[Any]) -> Any:
        if not several:
            return values[0]
        return np.broadcast_to(values[0], (replicates or 1,)).copy() if spread else np.asarray(values)

    def measured(name: str) -> Any:
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
        steps=each([o.steps for o in outcomes]),
        samples=each([c.samples for c in counts]),
        gradients=each([c.gradients for c in counts]),
        hvps=each([c.hvps for c in counts]),
        lmo_calls=each([run.step.lmo_calls(o.state.step, o.steps) for o in outcomes]),
        seconds=each([o.seconds for o in outcomes]),
        compile_seconds=compile_seconds,
        evaluation_seconds=each([o.evaluation_seconds for o in outcomes]),
        trace=stack_traces(traces) if several and not spread else traces[0],
        algorithm=run.algorithm.summary,
        sense="minimize" if run.sign > 0 else "maximize",
        replicates=replicates,
        failed_step=each([o.failed_step for o in outcomes]) if any(o.failed_step for o in outcomes) else None,
        state=[o.state for o in outcomes] if several and not spread else outcomes[0].state,
    )
