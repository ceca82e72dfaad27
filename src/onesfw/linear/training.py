"""The loop over passes, for data in memory and for files alike, with the one place that saves and resumes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Protocol

import numpy as np

from onesfw.arguments import choose, named, number, whole_number
from onesfw.engine.checkpoint import Checkpoint, saved_after
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Evaluation, Settings, Start, evaluate
from onesfw.linear.parallel_learners import ParallelLearners
from onesfw.linear.pass_rows import Memory, Piece, Progress
from onesfw.linear.polish import polish
from onesfw.linear.profile import loss_units
from onesfw.trees import HostArray, Json

GRADIENTS = {
    "one_sample": "Algorithm 2: remembers no row, for streams",
    "sag": "one number for each row (Négiar et al. 2020), for data that fit in memory",
}
LEAST_STEPS, LEAST_PASSES = 100_000, 20
POLISH_TOL = 1e-9  # where there is no tol
LEAST_TOL = 1e-13  # of the loss of the zero model: what arithmetic allows


class RowSource(Protocol):
    """Where the loop gets its rows from."""

    def pieces(self, progress: Progress, stop: Callable[[], bool]) -> Generator[Piece, None, None]:
        """The pieces of the present pass from where `progress` stands; ends early when `stop` says so."""

    def skipped(self) -> int:
        """Rows that could not be read so far."""


class Models(Protocol):
    """What learns: a `Learner`, or `ParallelLearners`."""

    def learn_examples(self, data: Examples, order: HostArray) -> HostArray:
        """A step for each row of the order; the sums of the losses before, one a model."""

    def tensors(self) -> dict[str, HostArray]:
        """The whole state."""


def learn_passes(
    models: Models,
    source: RowSource,
    progress: Progress,
    *,
    passes: int,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Progress], None] = lambda progress: None,
    satisfied: Callable[[], bool] = lambda: False,
    saves: Checkpoint | None = None,
    about: Callable[[], dict[str, Json]] = dict,
) -> bool:
    """Learn so many passes from where `progress` stands; whether they were all done, or nothing was left to gain.

    The order of a piece's rows depends on the seed, the pass and the piece alone, and a save lies between pieces: a run
    that goes on from one ends bit for bit as if it had not been interrupted.

    Args:
        models: what learns.
        source: the rows.
        progress: where the run stands; changed as it goes.
        passes: how many there are to be in all.
        stop: asked after each piece.
        report: hears of each piece.
        satisfied: asked after each pass; True ends the run.
        saves: where the state is kept.
        about: what is kept beside the state and the progress.
    """
    clock, before = time.perf_counter(), progress.seconds

    def save() -> None:
        if saves is not None and progress.all_rows:
            saves.save({"progress": asdict(progress), **about()}, models.tensors())

    done = progress.sweep >= passes
    while not done and not stop():
        with closing(source.pieces(progress, stop)) as pieces, saved_after(OSError, save):
            for piece in pieces:
                progress.learnt(piece, float(models.learn_examples(piece.data, piece.order).mean()))
                progress.skipped, progress.seconds = source.skipped(), before + time.perf_counter() - clock
                report(progress)
                if stop():
                    break
                if saves is not None and saves.due():
                    save()
        if not stop():
            if not progress.rows:
                raise ValueError(f"{named('source')} holds no rows to learn from")
            progress.seconds = before + time.perf_counter() - clock
            progress.turn()
            done = progress.sweep >= passes or satisfied()
    progress.skipped, progress.seconds = source.skipped(), before + time.perf_counter() - clock
    save()
    return done


def resumed(saves: Checkpoint) -> tuple[Progress, dict[str, Json], dict[str, HostArray]] | None:
    """(progress, what `about` gave, the state) as they were saved; None where nothing was."""
    found = saves.load()
    if found is None:
        return None
    content, tensors = found
    try:
        progress = Progress(**content.pop("progress"))
        progress.position = tuple(progress.position)
        if not progress.sound:
            raise TypeError("counts are whole numbers, seconds numbers")
    except (TypeError, KeyError) as error:
        raise saves.damaged() from error
    return progress, content, tensors


@dataclass(frozen=True)
class Budget:
    """How long to train.

    Args:
        passes: over the data; None for 20, or as many as make 100,000 steps where there are few rows.
        steps: instead of passes.
        tol: stop when the Frank-Wolfe gap, from all rows and at most once a pass, is at most tol times the loss of the
            best constant; None: never.
        gradient: "one_sample" or "sag".
        polish: go on by Newton's method until the gap is below tol, or 1e-9 of that loss where there is no tol. Without
            passes and steps, half a pass comes before it.
    """

    passes: int | None = None
    steps: int | None = None
    tol: float | None = None
    gradient: str = "one_sample"
    polish: bool = False

    def __post_init__(self) -> None:
        choose(self.gradient, GRADIENTS, "gradient")
        if self.passes is not None:
            whole_number(self.passes, "max_iter", 1)
        if self.steps is not None:
            whole_number(self.steps, "steps", 1)
        if self.tol is not None:
            number(self.tol, "tol", 0.0)

    def total(self, rows: int) -> int:
        """Steps for so many rows."""
        if self.steps is not None:
            return int(self.steps)
        if self.polish and self.passes is None:
            return -(-rows // 2)
        return rows * int(self.passes or max(LEAST_PASSES, -(-LEAST_STEPS // rows)))


@dataclass(frozen=True)
class Fit:
    """Trained models and what a last full pass says of them."""

    learners: ParallelLearners
    evaluation: Evaluation
    passes: int
    """Looks at all rows: of the one-sample phase, and rounds of the polish."""
    limits: HostArray
    """The gap that each model was to reach; infinite where there is no tol."""
    units: HostArray
    """What each model's loss and gap are to be compared with: the loss of the best constant."""
    finished: bool = True
    """False where `stop` ended the run."""

    @property
    def converged(self) -> bool:
        """Whether every gap fell below tol; True where there is no tol."""
        return bool((self.evaluation.gap <= self.limits).all())


def fit_in_memory(
    settings: Settings,
    data: Examples,
    budget: Budget,
    seed: int,
    *,
    n_jobs: int | None = None,
    start: Start | None = None,
    advance: Callable[[int], None] = lambda steps: None,
    note: Callable[[str], None] = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
) -> Fit:
    """Train all models of the settings over shuffled passes, until each of them has a gap below the tolerance.

    Args:
        settings: what is learnt.
        data: the rows.
        budget: how long, and whether to polish.
        seed: of the shuffling.
        n_jobs: threads among which the models are divided.
        start: where the models start; a polish without passes or steps begins right there.
        advance: hears of the steps done.
        note: hears how the polish goes on.
        stop: asked now and then; the models are then as they stand.

    Returns:
        The models, and a full pass's evaluation of them.
    """
    table = data.size if budget.gradient == "sag" else None
    learners = ParallelLearners(settings, n_jobs=n_jobs, rows=table, start=start)
    units = loss_units(settings, data)
    limits = np.full(settings.models, np.inf)
    if budget.tol is not None:
        least = LEAST_TOL * np.abs(loss_units(replace(settings, intercept=None), data))
        limits = np.maximum(budget.tol * units, least)
    if start is None and settings.intercept is not None:
        learners.set_intercepts(evaluate(settings, data, learners.coefs).intercepts)
    measured: tuple[int, Evaluation] | None = None
    seen = 0

    def measure() -> Evaluation:
        nonlocal measured
        if measured is None or measured[0] != learners.steps:
            measured = learners.steps, evaluate(settings, data, learners.coefs, learners.intercepts)
            if settings.intercept is not None:
                learners.set_intercepts(measured[1].intercepts)
        return measured[1]

    def report(progress: Progress) -> None:
        nonlocal seen
        advance(learners.steps - seen)
        seen = learners.steps

    rows = Memory(data, seed, budget.total(data.size), independent=budget.gradient == "sag")
    straight = budget.polish and start is not None and budget.passes is None and budget.steps is None
    if not straight:
        try:
            learn_passes(
                learners,
                rows,
                Progress(),
                passes=rows.turns,
                stop=stop,
                report=report,
                satisfied=lambda: budget.tol is not None and rows.left > 0 and bool((measure().gap <= limits).all()),
            )
        except FloatingPointError:
            if not budget.polish:
                raise
            learners = ParallelLearners(settings, n_jobs=n_jobs)  # the polish finds its way from the origin too
    steps = -(-learners.steps // data.size)
    if not budget.polish:
        return Fit(learners, measure(), steps, limits, units, not stop())
    goals = limits if budget.tol is not None else np.maximum(POLISH_TOL * units, 0.0)
    polished = polish(
        settings, data, learners.coefs, learners.intercepts, goals, n_jobs=n_jobs, stop=stop,
        note=note,
    )  # fmt: skip
    # As many steps as the default of an unpolished fit count as done: rows that come later move it no more than that.
    t0 = max(learners.t0 + learners.steps, LEAST_PASSES * data.size)
    ended = ParallelLearners(settings, n_jobs=n_jobs, start=Start(polished.coefs, polished.evaluation.intercepts, t0))
    return Fit(ended, polished.evaluation, steps + polished.rounds, limits, units, not stop())
