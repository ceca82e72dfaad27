"""`minimize` and `maximize`."""

from __future__ import annotations

import os
from dataclasses import replace

from onesfw.algorithms import DR_SUBMODULAR, Algorithm, one_sfw
from onesfw.arguments import whole_number
from onesfw.engine.checks import checked_run
from onesfw.engine.evaluation import Evaluate, Every
from onesfw.engine.interrupts import keep_interrupts
from onesfw.engine.keys import Key, as_key
from onesfw.engine.replicates import MOST_REPLICATES, carry_out
from onesfw.engine.run import Callbacks
from onesfw.objectives import Objective
from onesfw.results.result import Result
from onesfw.sets import ConvexSet
from onesfw.trees import Tree


def minimize(
    objective: Objective,
    constraint: ConvexSet,
    x0: Tree | None = None,
    *,
    steps: int,
    algorithm: Algorithm | None = None,
    key: Key = 0,
    replicates: int | None = None,
    evaluate: Evaluate = None,
    every: Every = None,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    callbacks: Callbacks = (),
) -> Result:
    """Minimise F(x) = E[F̃(x; z)] over a convex set, from one sample per iteration.

    Args:
        objective: `Expectation`, `NonOblivious` or `FiniteSum`.
        constraint: a set from `onesfw.sets`.
        x0: where to start, a pytree of float32 or float64 arrays inside the set; its dtype is the run's. None starts
            at a member the set chooses, in float32.
        steps: T, the number of iterations; `one_sfw` keeps the samples of the last 2 % for its corrected output.
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

    Returns:
        The point, how good it is, what it cost and how it got there.

    Raises:
        TypeError: where an argument is of the wrong kind, or the objective lacks what the algorithm needs.
        ValueError: where a number, a shape or x0 is wrong, or a checkpoint belongs to another run. Both name the
            argument and the remedy, before anything is compiled.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> import onesfw as fw
        >>> rows = np.random.default_rng(0).normal(0.2, 0.1, (500, 4))
        >>> objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2) / 2, rows)
        >>> result = fw.minimize(objective, fw.sets.L1Ball(1.0, shape=4), steps=5_000)
        >>> print(result.status)
        All steps were done.
        >>> result.samples, bool(result.gap < 0.01)
        (5000, True)
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
    key: Key = 0,
    replicates: int | None = None,
    evaluate: Evaluate = None,
    every: Every = None,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    callbacks: Callbacks = (),
) -> Result:
    """Maximise F(x) = E[F̃(x; z)] over a convex set, from one sample per iteration.

    The arguments are `minimize`'s. The default algorithm is `one_sfw("dr_submodular")`, for a monotone DR-submodular F
    over a set of non-negative vectors: it starts at 0 and takes neither another x0 nor `gap_tol`. A concave F is
    maximised with `one_sfw("convex")`. Values carry F's own sign; the gap is max ⟨∇F(x), v − x⟩ ≥ 0.

    Args:
        objective: as in `minimize`, and `MultilinearExtension`.
        constraint: a set from `onesfw.sets`, of non-negative vectors in the DR-submodular settings.
        x0: as in `minimize`; continuous greedy starts at 0 and takes only zeros, which set the dtype.
        steps: T, the number of iterations.
        algorithm: a recipe; None for `one_sfw("dr_submodular")`.
        key: an integer seed or a JAX key.
        replicates: run that many seeds.
        evaluate: as in `minimize`.
        every: as in `minimize`.
        gap_tol: as in `minimize`; not for continuous greedy, which runs all its steps.
        time_limit: as in `minimize`.
        progress: show a progress bar.
        checkpoint: as in `minimize`.
        callbacks: as in `minimize`.

    Returns:
        The point, how good it is, what it cost and how it got there.

    Raises:
        TypeError: as `minimize` does.
        ValueError: as `minimize` does.

    Example:
        >>> import onesfw as fw
        >>> objective = fw.FiniteSum(lambda x, row: row @ x - 0.1 * (row @ x) ** 2, [[1.0, 0.5], [0.5, 1.0]])
        >>> result = fw.maximize(objective, fw.sets.Box(0.0, 1.0, shape=2), steps=10)
        >>> result.sense, round(result.value, 3)
        ('maximize', 1.275)
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
    key: Key,
    replicates: int | None,
    progress: bool,
    checkpoint: str | os.PathLike[str] | None,
    *,
    steps: int,
    evaluate: Evaluate,
    every: Every,
    gap_tol: float | None,
    time_limit: float | None,
    callbacks: Callbacks,
) -> Result:
    """Check everything, then run in x0's precision."""
    if not isinstance(checkpoint, str | os.PathLike | None):
        raise TypeError(f"checkpoint must be the path of a folder, got {checkpoint!r}")
    if replicates is not None:
        replicates = whole_number(replicates, "replicates", 1, MOST_REPLICATES)
    with (
        keep_interrupts(),
        checked_run(
            objective, constraint, x0, sign, steps=steps, algorithm=algorithm, evaluate=evaluate, every=every,
            gap_tol=gap_tol, time_limit=time_limit, callbacks=callbacks,
        ) as run,
    ):  # fmt: skip
        result = carry_out(run, as_key(key), replicates, bool(progress), checkpoint)
        if replicates is not None:
            return result
        x, last = (run.objective.present(point, run.constraint) for point in (result.x, result.x_last))
        return replace(result, x=x, x_last=last, vertices=result.vertices if x is result.x else None)
