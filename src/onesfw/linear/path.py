"""A grid of radii over the same passes: the user picks the radius from the validation loss."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import scipy.sparse

from onesfw.arguments import choose, number, whole_number
from onesfw.linear.constraints import CONSTRAINTS
from onesfw.linear.defaults import default_interval, default_radius
from onesfw.linear.examples import Examples, examples
from onesfw.linear.gap import evaluate
from onesfw.linear.learner import Learner, Settings
from onesfw.linear.losses import LOSSES
from onesfw.progress import ProgressBar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALLEST, LARGEST, GRID = 1 / 30, 10.0, 12  # of the default radius, and how many between
START_WEIGHT = 0.1  # t0 after the warm-up pass, in passes: larger values hold on to a start that is too small


@dataclass(frozen=True)
class RadiusPath:
    """Models for rising radii, and what they lose on the rows they learnt and on the others."""

    settings: Settings
    """All but the radius."""
    radii: np.ndarray
    train_loss: np.ndarray
    gap: np.ndarray
    """The Frank-Wolfe gap on the training rows: an upper bound of how far the model is from the best of its ball."""
    validation_loss: np.ndarray
    validation_stderr: np.ndarray
    nonzeros: np.ndarray
    coefs: scipy.sparse.csr_array
    """One row a radius."""
    intercepts: np.ndarray

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

    def __str__(self) -> str:
        heads = ("radius", "train loss", "gap", "validation loss", "nonzeros", "")
        marks = {self.simplest: "within one standard error", self.best: "best"}
        lines = [
            (f"{r:.4g}", f"{t:.5f}", f"{g:.1e}", f"{v:.5f} ± {e:.5f}", f"{k:,}", marks.get(i, ""))
            for i, (r, t, g, v, e, k) in enumerate(
                zip(
                    self.radii, self.train_loss, self.gap, self.validation_loss, self.validation_stderr,
                    self.nonzeros, strict=True,
                )
            )
        ]  # fmt: skip
        widths = [max(len(row[place]) for row in [heads, *lines]) for place in range(len(heads))]
        return "\n".join("  ".join([*map(str.rjust, row[:-1], widths), row[-1]]).rstrip() for row in [heads, *lines])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Train and validation loss, with a band of one standard error, and the nonzeros, against the radius."""
        from matplotlib.figure import Figure

        from onesfw.results.pictures import save_figure

        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        low, high = (self.validation_loss + side * self.validation_stderr for side in (-1, 1))
        axes.fill_between(self.radii, low, high, color="#0072B2", alpha=0.2, linewidth=0)
        axes.plot(self.radii, self.validation_loss, "o-", color="#0072B2", label="validation, ± 1 standard error")
        axes.plot(self.radii, self.train_loss, "s--", color="#D55E00", label="training")
        axes.axvline(self.best_radius, color="#0072B2", linewidth=1, linestyle=":")
        axes.set_xscale("log")
        axes.set_xlabel("radius of the set")
        axes.set_ylabel(f"mean {self.settings.loss.replace('_', ' ')} loss")
        axes.set_title(f"{self.settings.constraint}: best radius {self.best_radius:.4g}")
        axes.grid(alpha=0.3)
        counts = axes.twinx()
        counts.plot(
            self.radii, self.nonzeros, "^-", color="#999999", linewidth=1, markersize=4, label="nonzeros (right)"
        )
        counts.set_ylabel("nonzero coefficients")
        handles = [*axes.get_legend_handles_labels()[0], *counts.get_legend_handles_labels()[0]]
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
        if path is not None:
            save_figure(figure, path)
        return figure


def radius_path(
    X: Any,
    y: Any,
    radii: Sequence[float] | None = None,
    *,
    validation: float | tuple[Any, Any] = 0.2,
    loss: str = "logistic",
    constraint: str = "l1",
    schedule: str | None = None,
    fit_intercept: bool = False,
    passes: int = 5,
    key: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> RadiusPath:
    """Train one model a radius over the same shuffled passes, in parallel threads, and measure each on other rows.

    The first pass is learnt by the smallest radius alone. Its model lies in every larger ball, and the others start
    there: the larger radii gain about a pass by it.

    Args:
        X: rows, dense or CSR.
        y: targets; any two labels for a loss that classifies.
        radii: of the models; None for 12 from 1/30 to 10 times the default radius of the estimators.
        validation: the share of the rows to measure on, or a pair (X, y) of other rows.
        loss, constraint, schedule: as in `onesfw.linear.Settings`.
        fit_intercept: learn an intercept, in the interval that holds the best one.
        passes: over the training rows.
        key: the seed of the shuffling.
        n_jobs: threads; None for one a core.
        progress: show a bar.
    """
    choose(loss, LOSSES, "loss")
    choose(constraint, CONSTRAINTS, "constraint")
    whole_number(passes, "passes", 1)
    rng = np.random.default_rng(whole_number(key, "key", 0))
    train, test = split(X, y, validation, loss, rng)
    base = Settings(train.n_features, loss, constraint, 1.0, schedule)
    grid = check_radii(radii, default_radius(train, base.loss_function, base.set))
    settings = [with_radius(base, radius, train, fit_intercept) for radius in grid]
    workers = joblib.cpu_count() if n_jobs is None else whole_number(n_jobs, "n_jobs", 1)
    total = train.size * (1 + len(grid) * (passes - 1)) if passes > 1 else train.size * len(grid)
    with ProgressBar(total, progress, "rows", "rows") as bar, ThreadPoolExecutor(workers) as pool:
        first = Learner(settings[0])
        first.compile(train.values.dtype)
        bar.note("")
        if passes > 1:
            first.learn_examples(train, rng.permutation(train.size))
            bar.advance(train.size)
            t0 = max(1, int(START_WEIGHT * train.size))
            learners = [first, *(started_at(first, setting, t0) for setting in settings[1:])]
        else:
            learners = [Learner(setting) for setting in settings]
        for _ in range(max(passes - 1, 1)):
            order = rng.permutation(train.size)
            for _done in pool.map(lambda learner, order=order: learner.learn_examples(train, order), learners):
                bar.advance(train.size)
        rows = list(pool.map(lambda learner: measure(learner, train, test), learners))
    value, gap, validation_loss, stderr, nonzeros = (np.array(column) for column in zip(*rows, strict=True))
    coefs = scipy.sparse.csr_array(np.stack([learner.coef for learner in learners]))
    intercepts = np.array([learner.intercept for learner in learners])
    return RadiusPath(base, np.array(grid), value, gap, validation_loss, stderr, nonzeros, coefs, intercepts)


def check_radii(radii: Sequence[float] | None, around: float) -> list[float]:
    """Rising positive numbers."""
    if radii is None:
        return [float(r) for r in np.geomspace(around * SMALLEST, around * LARGEST, GRID)]
    grid = sorted({number(radius, "radii", 0.0, strict=True) for radius in radii})
    if not grid:
        raise ValueError("radii must hold at least one radius, or be None")
    return grid


def with_radius(base: Settings, radius: float, data: Examples, fit_intercept: bool) -> Settings:
    """The settings of one model."""
    interval = default_interval(data, base.loss_function, base.set, radius, base.huber) if fit_intercept else None
    return replace(base, radius=radius, intercept=interval)


def started_at(first: Learner, settings: Settings, t0: int) -> Learner:
    """A learner that starts at another one's model; on the simplex, whose members have another sum, scaled."""
    coef = first.coef
    if settings.constraint == "simplex":
        coef = coef * (settings.radius / first.settings.radius)
    return Learner(settings, start=(coef, first.intercept), t0=t0)


def measure(learner: Learner, train: Examples, test: Examples) -> tuple[float, float, float, float, int]:
    """(training loss, gap, validation loss, its standard error, nonzeros)."""
    settings, coef = learner.settings, learner.coef
    value, gap = evaluate(settings, train, coef, learner.intercept)
    losses = settings.loss_function.value(test.matrix @ coef + learner.intercept, test.targets)
    return value, gap, float(losses.mean()), float(losses.std(ddof=1) / len(losses) ** 0.5), int(np.count_nonzero(coef))


def split(X: Any, y: Any, validation: Any, loss: str, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """(training rows, validation rows), with labels turned into −1 and +1."""
    function, y = LOSSES[loss], np.asarray(y)
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
