"""A grid of radii over the same passes: the user picks the radius from the validation loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse

from onesfw.arguments import choose, number, whole_number
from onesfw.data.sources import check_indices
from onesfw.engine import jobs
from onesfw.engine.interrupts import catch_interrupt
from onesfw.files import Tensors
from onesfw.linear.constraints import constraint_name
from onesfw.linear.convergence import remedy, too_large, unsolved, warn_unconverged
from onesfw.linear.defaults import ANYWHERE, default_radius
from onesfw.linear.examples import Examples, examples
from onesfw.linear.learner import Evaluation, Settings, Start, evaluate
from onesfw.linear.losses import LOSSES
from onesfw.linear.parallel_learners import ParallelLearners, some
from onesfw.linear.pass_rows import Memory, Progress
from onesfw.linear.profile import loss_units
from onesfw.linear.radius_chunks import solve_in_chunks
from onesfw.linear.scaling import check_scale, chosen_scales, divided
from onesfw.linear.training import Budget, fit_in_memory, learn_passes
from onesfw.progress import ProgressBar
from onesfw.results.pictures import BLUE, GREY, VERMILION, log_radii
from onesfw.results.show import FileKind, Sheet, Shown, axes_of
from onesfw.trees import HostArray, Json, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADS = ("radius", "train loss", "gap", "validation loss", "nonzeros", "")
ARRAYS = ("radii", "train_loss", "gap", "validation_loss", "validation_stderr", "nonzeros", "intercepts", "unsolved")
REMEDY = "leave polish on; without it, raise passes, or lower the radii"
MORE_PASSES = 3  # times as many again, for radii that were not solved
SMALLEST, LARGEST, GRID = 1 / 30, 10.0, 12  # of the default radius, and how many between
START_WEIGHT = 0.1  # t0 after the warm-up pass, in passes: larger values hold on to a start that is too small


@dataclass(frozen=True)
class RadiusPath(Shown):
    """Models for rising radii, and what they lose on the rows they learnt and on the others.

    Args:
        settings: all but the radius.
        radii: of the models, rising.
        train_loss: the mean loss on the rows that were learnt.
        gap: the Frank-Wolfe gap on the training rows: an upper bound of how far the model is from the best of its ball.
        validation_loss: the mean loss on the other rows.
        validation_stderr: its standard error.
        nonzeros: of the coefficients.
        intercepts: one a radius.
        coefs: one row a radius, for the columns as they came.
        unsolved: which radii were not solved: their gap is over a tenth of the loss, with a polish over its limit, or a
            smaller ball has a smaller training loss. None of them is called the best.

    Example:
        >>> import numpy as np, scipy.sparse
        >>> from onesfw.linear import RadiusPath, Settings
        >>> losses, errors, zeros = np.array([0.4, 0.2, 0.21]), np.full(3, 0.02), np.zeros(3)
        >>> coefs = scipy.sparse.csr_array(np.diag([0.1, 1.0, 10.0]))
        >>> ones, none = np.ones(3, int), np.zeros(3, bool)
        >>> path = RadiusPath(Settings(3), coefs.data, losses, zeros, losses, errors, ones, zeros, coefs, none)
        >>> path.best_radius
        1.0
    """

    file_kind = FileKind("onesfw.path", 1, "path of radii")

    settings: Settings
    radii: HostArray
    train_loss: HostArray
    gap: HostArray
    validation_loss: HostArray
    validation_stderr: HostArray
    nonzeros: HostArray
    intercepts: HostArray
    coefs: scipy.sparse.csr_array
    unsolved: HostArray

    @property
    def best(self) -> int:
        """The place of the smallest validation loss of a radius that was solved.

        Raises:
            ValueError: where none was.
        """
        if self.unsolved.all():
            raise ValueError(f"no radius was solved, so that none can be called the best; {REMEDY}")
        return int(np.argmin(np.where(self.unsolved, np.inf, self.validation_loss)))

    @property
    def best_radius(self) -> float:
        """The radius with the smallest validation loss, of those that were solved."""
        return float(self.radii[self.best])

    @property
    def simplest(self) -> int:
        """The place of the smallest radius that was solved and lies within one standard error of the best."""
        limit = self.validation_loss[self.best] + self.validation_stderr[self.best]
        return int(np.argmax(~self.unsolved & (self.validation_loss <= limit)))

    def sheet(self) -> Sheet:
        """The table that is printed, and shown in a notebook."""
        return Sheet(self.title, HEADS, self.lines(), words=0)

    @property
    def title(self) -> str:
        """What was trained, in one line."""
        found = "no radius was solved" if self.unsolved.all() else f"best radius {self.best_radius:.4g}"
        return f"{LOSSES[self.settings.loss].title}, {self.settings.constraint}: {found}"

    def lines(self) -> list[tuple[str, ...]]:
        """The cells of the table, a line a radius."""
        marks = dict.fromkeys(map(int, np.flatnonzero(self.unsolved)), "not solved")
        if not self.unsolved.all():
            marks |= {self.simplest: "within one standard error", self.best: "best"}
        columns = (self.radii, self.train_loss, self.gap, self.validation_loss, self.validation_stderr, self.nonzeros)
        return [
            (f"{r:.4g}", f"{t:.5f}", f"{g:.1e}", f"{v:.5f} ± {e:.5f}", f"{k:,}", marks.get(i, ""))
            for i, (r, t, g, v, e, k) in enumerate(zip(*columns, strict=True))
        ]

    def draw(self, ax: Axes | None = None) -> Figure:
        """Train and validation loss, with a band of one standard error, and the nonzeros, against the radius."""
        figure, axes = axes_of(ax, (7.0, 4.2))
        low, high = (self.validation_loss + side * self.validation_stderr for side in (-1, 1))
        axes.fill_between(self.radii, low, high, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(self.radii, self.validation_loss, "o-", color=BLUE, label="validation, ± 1 standard error")
        axes.plot(self.radii, self.train_loss, "s--", color=VERMILION, label="training")
        if not self.unsolved.all():
            axes.axvline(self.best_radius, color=BLUE, linewidth=1, linestyle=":")
        log_radii(axes)
        axes.set_xlabel("radius of the set")
        axes.set_ylabel(f"mean {LOSSES[self.settings.loss].title}")
        axes.set_title(self.title)
        counts = axes.twinx()
        counts.plot(self.radii, self.nonzeros, "^-", color=GREY, linewidth=1, markersize=4, label="nonzeros (right)")
        counts.grid(False)
        counts.set_ylabel("nonzero coefficients")
        handles = [*axes.get_legend_handles_labels()[0], *counts.get_legend_handles_labels()[0]]
        if ax is None:
            figure.legend(handles=handles, loc="outside lower center", ncols=3)
        else:
            axes.legend(handles=handles)
        return figure

    def pack(self) -> tuple[dict[str, Json], Tensors]:
        """What the file holds: the models' coefficients as a sparse matrix."""
        tensors = {name: np.asarray(getattr(self, name)) for name in ARRAYS}
        tensors |= {f"coefs.{name}": getattr(self.coefs, name) for name in ("data", "indices", "indptr")}
        content = {"settings": asdict(self.settings), "shape": list(self.coefs.shape)}
        return content, tensors

    @classmethod
    def unpack(cls, content: dict[str, Json], tensors: Tensors) -> Self:
        """The path that a file holds, whose arrays must fit one another."""
        coefs = scipy.sparse.csr_array(
            tuple(tensors[f"coefs.{name}"] for name in ("data", "indices", "indptr")), shape=tuple(content["shape"])
        )
        check_indices(coefs, "coefs")
        arrays, settings = {name: tensors[name] for name in ARRAYS}, Settings(**content["settings"])
        lengths = {len(array) for array in arrays.values()} | {coefs.shape[0]}
        if len(lengths) > 1 or not np.isfinite(coefs.data).all() or coefs.shape[1] != settings.n_features:
            raise ValueError("arrays")
        return cls(settings, **arrays, coefs=coefs)


def radius_path(
    X: Rows,
    y: Rows,
    radii: Sequence[float] | None = None,
    *,
    validation: float | tuple[Rows, Rows] = 0.2,
    loss: str = "logistic",
    constraint: str = "l1",
    schedule: str | None = None,
    intercept: bool = True,
    delta: float = 1.0,
    passes: int | None = None,
    scale: bool | str = "auto",
    polish: bool = True,
    tol: float = 1e-6,
    key: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> RadiusPath:
    """Train one model a radius on the same rows, and measure each on others.

    Four chunks of radii, or more of 50, begin at rough solutions, found one after the other; in a chunk, each radius is
    solved from the solution of the one before, which lies in every larger ball. Without `polish`, the radii learn the
    same shuffled passes side by side, from where the smallest has come in a first pass. A radius that is not solved
    then (`RadiusPath.unsolved`) is trained on for a while, and never called the best.

    Args:
        X: rows, dense or CSR.
        y: targets; any two labels for a loss that classifies.
        radii: of the models; None for 12 from 1/30 to 10 times the one at which a row of average size can reach a
            margin of 10 (10 standard deviations of y in a regression).
        validation: the share of the rows to measure on, or a pair (X, y) of other rows.
        loss: "logistic", "squared_hinge", "squared", "huber" or "poisson".
        constraint: "l1", "l2", "linf", "simplex" or "nonnegative_l1".
        schedule: of η and ρ, a name of `onesfw.linear.SCHEDULES`; None for "auto".
        intercept: learn an intercept, which is not part of the norm.
        delta: where the Huber loss turns linear.
        passes: over the training rows, one row a step; None for half a one before the polish, and 5 without it.
        scale: divide columns by their scales: "auto" where they differ by more than 100, True or False. The radius is
            then one of the scaled coefficients; `coefs` are for the columns as they came.
        polish: solve each radius to a Frank-Wolfe gap of `tol`, by Newton's method.
        tol: the gap, as a share of the loss of the best constant.
        key: the seed of the shuffling.
        n_jobs: chunks of radii that are solved at a time, in threads or on the backend of `joblib.parallel_config`;
            None for one, −1 for all cores. Without polish, the tasks among which the radii are divided. The models are
            the same bit for bit.
        progress: show a bar.

    Returns:
        The models and their losses on the rows they learnt and on the others. After Ctrl-C, those of the radii that
        were solved by then.

    Raises:
        ValueError, TypeError: for a wrong argument, or targets that the loss cannot take.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import radius_path
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 8))
        >>> path = radius_path(X, X[:, 0] > 0, [0.1, 1.0, 10.0])
        >>> path.best_radius
        10.0
    """
    choose(loss, LOSSES, "loss")
    constraint = constraint_name(constraint)
    if passes is not None:
        whole_number(passes, "passes", 1)
    number(tol, "tol", 0.0, strict=True)
    check_scale(scale)
    jobs.workers(n_jobs)  # raises where it is none
    rng = np.random.default_rng(whole_number(key, "key", 0))
    train, test = split(X, y, validation, loss, rng)
    scales = chosen_scales(train, scale)
    train, test = divided(train, scales), divided(test, scales)
    base = Settings(train.n_features, loss, constraint, 1.0, schedule, delta=delta)
    grid = check_radii(radii, train, base)
    settings = replace(base, radius=tuple(grid), intercept=ANYWHERE if intercept else None)
    seeds = [int(s) for s in rng.integers(0, 2**63, 2)]
    if polish:
        places, coefs, found = polished(settings, train, passes, tol, seeds, n_jobs, progress)
        grid = [grid[place] for place in places]
    else:
        coefs, found = side_by_side(settings, train, passes or 5, seeds, n_jobs, progress)
    units = loss_units(some(settings, [0]), train)
    marks = not_best(constraint, found, units, tol * units if polish else np.full(1, np.inf))
    if marks.any():
        warn_unconverged(
            f"{marks.sum()} of {len(grid)} radii were not solved, the first of them {grid[int(np.argmax(marks))]:.4g}: "
            f"none of them is called the best; {remedy(train, polish, ['raise passes'])}"
        )
    margins = np.asarray((test.matrix @ coefs.T).todense()).T + found.intercepts[:, None]
    losses = np.array([base.loss_function.value(row, test.targets, delta) for row in margins])
    return RadiusPath(
        base,
        np.array(grid),
        found.value,
        found.gap,
        losses.mean(axis=1),
        losses.std(axis=1, ddof=1) / losses.shape[1] ** 0.5,
        np.diff(coefs.indptr),
        found.intercepts,
        coefs if scales is None else coefs.multiply(1 / scales).tocsr(),
        marks,
    )


def not_best(constraint: str, found: Evaluation, units: HostArray, limits: HostArray) -> HostArray:
    """Which models are not near the best of their sets: by their gap, or because a smaller set has a smaller loss."""
    marks = unsolved(found, limits, units) | too_large(found.gap, found.value, units)
    if constraint == "simplex":  # whose members have another sum: a larger one does not hold the smaller
        return marks
    before = np.minimum.accumulate(np.concatenate([[np.inf], found.value[:-1]]))
    return marks | (found.value > before + 1e-6 * np.abs(units) + 1e-9 * np.abs(found.value))


def polished(
    settings: Settings, data: Examples, passes: int | None, tol: float, seeds: list[int], n_jobs: int | None, show: bool
) -> tuple[HostArray, scipy.sparse.csr_array, Evaluation]:
    """(places of the radii, their models, what is known of them): all radii, or after Ctrl-C those solved by then."""
    first = some(settings, [0])
    with ProgressBar(settings.models, show, "radii", "radii") as bar, catch_interrupt() as interrupted:
        start = fit_in_memory(
            first, data, Budget(passes=passes, steps=None if passes else -(-data.size // 2)), seeds[0]
        )  # fmt: skip
        bar.note("")
        chunks = solve_in_chunks(
            first, data, [float(r) for r in settings.radii], tol,
            Start(start.learners.coefs, start.evaluation.intercepts), n_jobs=n_jobs, stop=interrupted.is_set,
            note=bar.note, advance=bar.advance,
        )  # fmt: skip
    if not chunks:
        raise KeyboardInterrupt("interrupted before the first radius was solved")
    places, coefs, found = zip(*chunks, strict=True)
    evaluation = Evaluation(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return np.concatenate(places), scipy.sparse.vstack(coefs, format="csr"), evaluation


def side_by_side(
    settings: Settings, data: Examples, passes: int, seeds: list[int], n_jobs: int | None, show: bool
) -> tuple[scipy.sparse.csr_array, Evaluation]:
    """All radii over the same passes; those that are not solved then learn more of them."""
    warm = passes > 1 and settings.models > 1
    total = data.size * (1 + settings.models * (passes - 1)) if warm else data.size * settings.models * passes
    with ProgressBar(total, show, "rows", "rows") as bar:
        start = None
        if warm:
            first = ParallelLearners(some(settings, [0]))
            first.compile(data.values.dtype)
            bar.note("")
            if settings.intercept is not None:
                first.set_intercepts(evaluate(some(settings, [0]), data, first.coefs).intercepts)
            learn(first, data, seeds[0], 1, bar)
            start = started_at(first, settings, max(1, int(START_WEIGHT * data.size)))
        learners = ParallelLearners(settings, n_jobs=n_jobs, start=start)
        if start is None and settings.intercept is not None:
            learners.set_intercepts(evaluate(settings, data, learners.coefs).intercepts)
        learners.compile(data.values.dtype)
        bar.note("")
        learn(learners, data, seeds[1], passes - warm, bar)
        coefs, found, steps = (
            learners.coefs,
            evaluate(settings, data, learners.coefs, learners.intercepts),
            learners.steps,
        )
        units = loss_units(some(settings, [0]), data)
        marked = np.flatnonzero(not_best(settings.constraint, found, units, np.full(1, np.inf)))
        if len(marked):
            bar.note(f"{len(marked)} radii are trained on")
            more = ParallelLearners(
                some(settings, marked), n_jobs=n_jobs, start=Start(coefs[marked], found.intercepts[marked], steps)
            )  # fmt: skip
            learn(more, data, seeds[1] + 1, MORE_PASSES * passes, bar)
            coefs[marked] = more.coefs
            shifts = found.intercepts.copy()
            shifts[marked] = more.intercepts
            found = evaluate(settings, data, coefs, shifts)
    return scipy.sparse.csr_array(coefs), found


def learn(learners: ParallelLearners, data: Examples, seed: int, passes: int, bar: ProgressBar) -> None:
    """So many shuffled passes."""
    rows = Memory(data, seed, passes * data.size)
    before = 0

    def report(progress: Progress) -> None:
        nonlocal before
        bar.advance((learners.steps - before) * learners.settings.models)
        before = learners.steps

    learn_passes(learners, rows, Progress(), passes=rows.turns, report=report)


def check_radii(radii: Sequence[float] | None, data: Examples, settings: Settings) -> list[float]:
    """Rising positive numbers; where none are given, some around the default radius."""
    if radii is None:
        around = default_radius(data, settings)
        return [float(r) for r in np.geomspace(around * SMALLEST, around * LARGEST, GRID)]
    grid = sorted({number(radius, "radii", 0.0, strict=True) for radius in radii})
    if not grid:
        raise ValueError("radii must hold at least one radius, or be None")
    return grid


def started_at(first: ParallelLearners, settings: Settings, t0: int) -> Start:
    """All models at the first one's; on the simplex, whose members have another sum, scaled."""
    coefs = np.repeat(first.coefs, settings.models, 0)
    if settings.constraint == "simplex":
        coefs *= (settings.radii / settings.radii[0])[:, None]
    return Start(coefs, np.repeat(first.intercepts, settings.models), t0)


def split(X: Rows, y: Rows, validation: Rows, loss: str, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """(training rows, validation rows), with labels turned into −1 and +1."""
    function, y = LOSSES[loss], np.asarray(y)
    check_indices(X, "X")
    matrix = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
    if matrix.ndim != 2 or y.ndim != 1 or matrix.shape[0] != len(y):
        raise ValueError(
            f"X must be a matrix with one row for each of the {y.size:,} targets, got shape {matrix.shape}"
        )
    if isinstance(validation, tuple):
        others, targets = validation
        parts = [(matrix, y), (others, np.asarray(targets))]
    else:
        share = number(validation, "validation", 0.0, strict=True)
        held = round(share * len(y))
        if not 2 <= held < len(y):
            raise ValueError(f"validation={share:g} of {len(y):,} rows leaves too few to train on or to measure on")
        shuffled = rng.permutation(len(y))
        parts = [(matrix[shuffled[held:]], y[shuffled[held:]]), (matrix[shuffled[:held]], y[shuffled[:held]])]
    if function.classifies:
        labels = np.unique(y)
        if len(labels) != 2:
            raise ValueError(f"y must hold two labels for loss={loss!r}, got {len(labels)}")
        unknown = np.setdiff1d(parts[1][1], labels)
        if unknown.size:
            raise ValueError(f"validation holds the label {unknown[0]!r}, which is not in y")
        parts = [(rows, np.where(targets == labels[1], 1.0, -1.0)) for rows, targets in parts]
    train, test = (examples(rows, targets, None, matrix.shape[1], function) for rows, targets in parts)
    return train, test
