"""A grid of radii over the same passes: the user picks the radius from the validation loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from onesfw.arguments import choose, number, whole_number
from onesfw.data.sources import check_indices
from onesfw.files import read_tensors, write_tensors
from onesfw.linear.constraints import constraint_name
from onesfw.linear.defaults import ANYWHERE, default_radius
from onesfw.linear.examples import Examples, examples
from onesfw.linear.learner import Settings, Start, evaluate
from onesfw.linear.losses import LOSSES
from onesfw.linear.training import Memory, Progress, Team, learn_passes, some
from onesfw.progress import ProgressBar
from onesfw.results.pictures import save_figure
from onesfw.results.show import Sheet, Shown, axes_of
from onesfw.trees import HostArray, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMAT, VERSION = "onesfw.path", 1
HEADS = ("radius", "train loss", "gap", "validation loss", "nonzeros", "")
ARRAYS = ("radii", "train_loss", "gap", "validation_loss", "validation_stderr", "nonzeros", "intercepts")
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
        coefs: one row a radius.

    Example:
        >>> import numpy as np, scipy.sparse
        >>> from onesfw.linear import RadiusPath, Settings
        >>> losses, errors, zeros = np.array([0.4, 0.2, 0.21]), np.full(3, 0.02), np.zeros(3)
        >>> coefs = scipy.sparse.csr_array(np.diag([0.1, 1.0, 10.0]))
        >>> path = RadiusPath(Settings(3), coefs.data, losses, zeros, losses, errors, np.ones(3, int), zeros, coefs)
        >>> path.best_radius
        1.0
    """

    settings: Settings
    radii: HostArray
    train_loss: HostArray
    gap: HostArray
    validation_loss: HostArray
    validation_stderr: HostArray
    nonzeros: HostArray
    intercepts: HostArray
    coefs: scipy.sparse.csr_array

    @property
    def best(self) -> int:
        """The place of the smallest validation loss."""
        return int(np.argmin(self.validation_loss))

    @property
    def best_radius(self) -> float:
        """The radius with the smallest validation loss."""
        return float(self.radii[self.best])

    @property
    def simplest(self) -> int:
        """The place of the smallest radius within one standard error of the best."""
        limit = self.validation_loss[self.best] + self.validation_stderr[self.best]
        return int(np.argmax(self.validation_loss <= limit))

    def sheet(self) -> Sheet:
        """The table that is printed, and shown in a notebook."""
        return Sheet(self.title, HEADS, self.lines(), words=0)

    @property
    def title(self) -> str:
        """What was trained, in one line."""
        return f"{LOSSES[self.settings.loss].title}, {self.settings.constraint}: best radius {self.best_radius:.4g}"

    def lines(self) -> list[tuple[str, ...]]:
        """The cells of the table, a line a radius."""
        marks = {self.simplest: "within one standard error", self.best: "best"}
        columns = (self.radii, self.train_loss, self.gap, self.validation_loss, self.validation_stderr, self.nonzeros)
        return [
            (f"{r:.4g}", f"{t:.5f}", f"{g:.1e}", f"{v:.5f} ± {e:.5f}", f"{k:,}", marks.get(i, ""))
            for i, (r, t, g, v, e, k) in enumerate(zip(*columns, strict=True))
        ]

    def plot(self, path: str | Path | None = None, *, ax: Axes | None = None) -> Figure:
        """Train and validation loss, with a band of one standard error, and the nonzeros, against the radius.

        Args:
            path: where to save the picture (PNG, PDF or SVG by its ending); None draws without saving.
            ax: axes to draw into; None makes a figure.

        Returns:
            The figure.
        """
        figure, axes = axes_of(ax, (7.0, 4.2))
        low, high = (self.validation_loss + side * self.validation_stderr for side in (-1, 1))
        axes.fill_between(self.radii, low, high, color="#0072B2", alpha=0.2, linewidth=0)
        axes.plot(self.radii, self.validation_loss, "o-", color="#0072B2", label="validation, ± 1 standard error")
        axes.plot(self.radii, self.train_loss, "s--", color="#D55E00", label="training")
        axes.axvline(self.best_radius, color="#0072B2", linewidth=1, linestyle=":")
        axes.set_xscale("log")
        axes.set_xlabel("radius of the set")
        axes.set_ylabel(f"mean {LOSSES[self.settings.loss].title}")
        axes.set_title(self.title)
        axes.grid(alpha=0.3)
        counts = axes.twinx()
        counts.plot(
            self.radii, self.nonzeros, "^-", color="#999999", linewidth=1, markersize=4, label="nonzeros (right)"
        )
        counts.set_ylabel("nonzero coefficients")
        handles = [*axes.get_legend_handles_labels()[0], *counts.get_legend_handles_labels()[0]]
        if ax is None:
            figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
        else:
            axes.legend(handles=handles, fontsize=8, frameon=False)
        if path is not None:
            save_figure(figure, path)
        return figure

    def save(self, path: str | Path) -> None:
        """Write the path of models to a safetensors file, whole or not at all; `RadiusPath.load` reads it back."""
        tensors = {name: np.asarray(getattr(self, name)) for name in ARRAYS}
        tensors |= {f"coefs.{name}": getattr(self.coefs, name) for name in ("data", "indices", "indptr")}
        content = {"settings": asdict(self.settings), "shape": list(self.coefs.shape)}
        write_tensors(path, FORMAT, VERSION, content, tensors)

    @classmethod
    def load(cls, path: str | Path) -> RadiusPath:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError, IsADirectoryError: where there is no such file.
            ValueError: for a damaged or foreign file.
        """
        content, tensors = read_tensors(path, FORMAT, VERSION, "path of radii")
        try:
            coefs = scipy.sparse.csr_array(
                tuple(tensors[f"coefs.{name}"] for name in ("data", "indices", "indptr")), shape=tuple(content["shape"])
            )
            return cls(Settings(**content["settings"]), **{name: tensors[name] for name in ARRAYS}, coefs=coefs)
        except (KeyError, ValueError, TypeError) as error:
            raise ValueError(f"{path} is not a path of this version of onesfw: its fields do not fit") from error


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
    passes: int = 5,
    key: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> RadiusPath:
    """Train one model a radius over the same shuffled passes, side by side, and measure each on other rows.

    The first pass is learnt by the smallest radius alone. Its model lies in every larger ball, and the others start
    there: the larger radii gain about a pass by it.

    Args:
        X: rows, dense or CSR.
        y: targets; any two labels for a loss that classifies.
        radii: of the models; None for 12 from 1/30 to 10 times the default radius of the estimators.
        validation: the share of the rows to measure on, or a pair (X, y) of other rows.
        loss: "logistic", "squared_hinge", "squared", "huber" or "poisson".
        constraint: "l1", "l2", "linf", "simplex" or "nonnegative_l1".
        schedule: of η and ρ, a name of `onesfw.schedules.PRESETS`; None for "adaptive".
        intercept: learn an intercept, which is not part of the norm.
        delta: where the Huber loss turns linear.
        passes: over the training rows.
        key: the seed of the shuffling.
        n_jobs: threads among which the radii are divided; None for one, −1 for all cores.
        progress: show a bar.

    Returns:
        The models and their losses on the rows they learnt and on the others.

    Raises:
        ValueError, TypeError: for a wrong argument, or targets that the loss cannot take.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import radius_path
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 8))
        >>> path = radius_path(X, X[:, 0] > 0, [0.1, 1.0, 10.0], passes=10)
        >>> path.best_radius
        10.0
    """
    choose(loss, LOSSES, "loss")
    constraint = constraint_name(constraint)
    whole_number(passes, "passes", 1)
    rng = np.random.default_rng(whole_number(key, "key", 0))
    train, test = split(X, y, validation, loss, rng)
    base = Settings(train.n_features, loss, constraint, 1.0, schedule, delta=delta)
    grid = check_radii(radii, default_radius(train, base.loss_function, base.set))
    settings = replace(base, radius=tuple(grid), intercept=ANYWHERE if intercept else None)
    first_seed, seed = (int(s) for s in rng.integers(0, 2**63, 2))
    warm = passes > 1 and len(grid) > 1
    total = train.size * (1 + len(grid) * (passes - 1)) if warm else train.size * len(grid) * passes
    with ProgressBar(total, progress, "rows", "rows") as bar:
        start = None
        if warm:
            first = Team(some(settings, [0]))
            first.compile(train.values.dtype)
            bar.note("")
            if intercept:
                first.set_intercepts(evaluate(some(settings, [0]), train, first.coefs).intercepts)
            learn(first, train, first_seed, 1, bar)
            start = started_at(first, settings, max(1, int(START_WEIGHT * train.size)))
        team = Team(settings, n_jobs=n_jobs, start=start)
        if start is None and intercept:
            team.set_intercepts(evaluate(settings, train, team.coefs).intercepts)
        team.compile(train.values.dtype)
        bar.note("")
        learn(team, train, seed, passes - warm, bar)
    coefs = team.coefs
    value, gap, intercepts = evaluate(settings, train, coefs, team.intercepts)
    losses = [
        base.loss_function.value(test.matrix @ coef + intercept, test.targets, delta)
        for coef, intercept in zip(coefs, intercepts, strict=True)
    ]
    return RadiusPath(
        base,
        np.array(grid),
        value,
        gap,
        np.array([loss.mean() for loss in losses]),
        np.array([loss.std(ddof=1) / len(loss) ** 0.5 for loss in losses]),
        np.count_nonzero(coefs, axis=1),
        intercepts,
        scipy.sparse.csr_array(coefs),
    )


def learn(team: Team, data: Examples, seed: int, passes: int, bar: ProgressBar) -> None:
    """So many shuffled passes."""
    rows = Memory(data, seed, passes * data.size)
    before = 0

    def report(progress: Progress) -> None:
        nonlocal before
        bar.advance((team.steps - before) * team.settings.models)
        before = team.steps

    learn_passes(team, rows, Progress(), passes=rows.turns, report=report)


def check_radii(radii: Sequence[float] | None, around: float) -> list[float]:
    """Rising positive numbers."""
    if radii is None:
        return [float(r) for r in np.geomspace(around * SMALLEST, around * LARGEST, GRID)]
    grid = sorted({number(radius, "radii", 0.0, strict=True) for radius in radii})
    if not grid:
        raise ValueError("radii must hold at least one radius, or be None")
    return grid


def started_at(first: Team, settings: Settings, t0: int) -> Start:
    """All models at the first one's; on the simplex, whose members have another sum, scaled."""
    coefs = np.repeat(first.coefs, settings.models, 0)
    if settings.constraint == "simplex":
        coefs *= (settings.radii / settings.radii[0])[:, None]
    return Start(coefs, np.repeat(first.intercepts, settings.models), t0)


def split(X: Rows, y: Rows, validation: Rows, loss: str, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """(training rows, validation rows), with labels turned into −1 and +1."""
    function, y = LOSSES[loss], np.asarray(y)
    matrix = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
    if scipy.sparse.issparse(X):
        check_indices(matrix, "X")
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
