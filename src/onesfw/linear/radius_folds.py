"""Cross-validation over radii: on each fold, every radius solved from the one before; all folds at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from onesfw.arguments import named
from onesfw.engine import jobs
from onesfw.linear.convergence import unsolved, warn_of_unsolved
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Settings
from onesfw.linear.polish import pools
from onesfw.linear.profile import loss_units
from onesfw.linear.radii import is_last, part, validation_losses
from onesfw.linear.swept import Engine, models_of
from onesfw.trees import HostArray

SMALLEST, LARGEST, GRID = 1 / 100, 10.0, 20  # of the default radius, and how many between
FOLD_TOL = 1e-4  # of the loss of the best constant: the gap to which a fold's models are solved
FOLD_STEPS = 100_000  # of each radius and fold, where they are runs of a sweep
RULES = ("best", "one_standard_error")

Fold = tuple[HostArray, HostArray]
"""The rows to learn from, and those to measure on."""


@dataclass(frozen=True)
class FoldLosses:
    """What models of each fold lose on the rows that they did not learn.

    Args:
        radii: rising.
        losses: radii × folds, the mean loss; infinite where a margin left the range of numbers.
        nonzeros: radii × folds, of the coefficients, over all classes.
        unsolved: radii × folds, whether the gap was not reached; no such radius is chosen.
    """

    radii: HostArray
    losses: HostArray
    nonzeros: HostArray
    unsolved: HostArray

    @property
    def mean(self) -> HostArray:
        """The mean over the folds."""
        return self.losses.mean(axis=1)

    @property
    def std(self) -> HostArray:
        """The standard deviation over the folds."""
        with np.errstate(invalid="ignore"):
            return self.losses.std(axis=1, ddof=1)

    @property
    def stderr(self) -> HostArray:
        """The standard error of the mean."""
        return self.std / np.sqrt(self.losses.shape[1])

    def chosen(self, rule: str = "best") -> int:
        """The place of the radius with the least mean; or of the smallest one within a standard error of it.

        Raises:
            FloatingPointError: where no radius could be solved on every fold.
        """
        mean = np.where(self.unsolved.any(axis=1), np.inf, self.mean)
        best = int(np.argmin(mean))
        if not np.isfinite(mean[best]):
            raise FloatingPointError(
                "at no radius every fold was solved, or its loss is not finite: scale rows and targets, lower radii, "
                f"or raise {named('steps')} where {named('engine')} is 'sweep'"
            )
        if rule == "best":
            return best
        return int(np.argmax(mean <= mean[best] + self.stderr[best]))


def cross_validate(
    settings: Settings,
    data: Examples,
    folds: Sequence[Fold],
    radii: Sequence[float],
    *,
    engine: Engine | None = None,
    key: int = 0,
    n_jobs: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda text: None,
) -> FoldLosses:
    """The losses of all radii on all folds.

    Args:
        settings: what is learnt; its radius does not count.
        data: the rows.
        folds: the rows to learn from and to measure on, by their numbers.
        radii: rising.
        engine: what finds the models, and how near; None for the linear one, to a gap of 1e-4.
        key: the seed of a sweep.
        n_jobs: folds at a time; the losses are the same bit for bit.
        stop: asked now and then.
        note: hears how many folds are done.

    Returns:
        The losses.

    Raises:
        KeyboardInterrupt: where `stop` said so.
    """
    engine = engine or Engine("linear", FOLD_TOL, FOLD_STEPS)
    jobs.workers(n_jobs)  # raises before any work
    heard: Callable[[], bool] = jobs.never if jobs.away() else stop
    if engine.name == "sweep":
        note(f"{len(folds)} folds × {len(radii)} radii")
    paths = engine.paths(settings, data, [learnt for learnt, _ in folds], radii, key)
    tasks = [
        (settings, data, learnt, held, list(radii), engine, path, heard)
        for (learnt, held), path in zip(folds, paths, strict=True)
    ]
    found: list[tuple[HostArray, HostArray, HostArray]] = []
    with pools().limit(limits=1):  # here, for threads would undo one another's limits
        for one in jobs.in_order(losses_of, tasks, n_jobs=n_jobs):
            if stop():
                raise KeyboardInterrupt("interrupted while the radius was chosen")
            found.append(one)
            note(f"{len(found)} of {len(folds)} folds")
    losses, nonzeros, marks = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    if marks.any():
        first = radii[int(np.argmax(marks.any(axis=1)))]
        warn_of_unsolved(
            f"{marks.any(axis=1).sum()} of {len(radii)} radii were not solved on every fold, the first of them "
            f"{first:.4g}: none of them is chosen", data, engine.remedy,
        )  # fmt: skip
    return FoldLosses(np.asarray(radii, np.float64), losses, nonzeros, marks)


def losses_of(
    settings: Settings,
    data: Examples,
    learnt: HostArray,
    held: HostArray,
    radii: list[float],
    engine: Engine,
    path: HostArray | None,
    stop: Callable[[], bool],
) -> tuple[HostArray, HostArray, HostArray]:
    """The mean loss of each radius on the rows held out, the nonzeros, and whether it was not solved."""
    train, test = part(data, learnt), part(data, held)
    losses, nonzeros = np.full(len(radii), np.inf), np.zeros(len(radii), np.int64)
    marks, units = np.zeros(len(radii), bool), loss_units(settings, train)
    limits = np.maximum(engine.allowed * units, 1e-12)
    done = 0
    try:
        for radius, (coefs, found) in zip(
            radii, models_of(settings, train, radii, limits, path, stop), strict=True
        ):  # fmt: skip
            rows = validation_losses(settings, test, coefs, found.intercepts)
            losses[done:] = np.average(rows, weights=test.weights)
            nonzeros[done:] = np.count_nonzero(abs(coefs) > engine.least * radius)
            marks[done:] = unsolved(found, limits, units).any()
            done += 1
            if is_last(settings, coefs, found.gap, radius, radii[-1], limits) or stop():
                break
    except FloatingPointError:  # a margin beyond the numbers: the radii before it stand
        losses[done:] = np.inf
    return losses, nonzeros, marks
