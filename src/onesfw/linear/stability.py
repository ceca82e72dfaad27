"""Stability selection: the columns that models of most half-samples select, and how many of them are mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from onesfw.arguments import choose, named, number, whole_number
from onesfw.engine import jobs, rows
from onesfw.engine.interrupts import catch_interrupt
from onesfw.files import Tensors
from onesfw.linear.constraints import CONSTRAINTS
from onesfw.linear.convergence import unsolved, warn_of_unsolved
from onesfw.linear.defaults import default_radius
from onesfw.linear.examples import Examples
from onesfw.linear.false_selections import ASSUMPTIONS, false_selections, most_selected
from onesfw.linear.learner import Settings
from onesfw.linear.polish import pools
from onesfw.linear.profile import loss_units
from onesfw.linear.radii import is_last, part
from onesfw.linear.swept import Engine, models_of
from onesfw.progress import ProgressBar
from onesfw.results.pictures import GREY, log_radii
from onesfw.results.show import FileKind, Sheet, Shown, axes_of
from onesfw.trees import HostArray, Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIELDS = ("threshold", "pairs", "columns", "selected", "most_selected", "assumption")
SETS = tuple(name for name, constraint in CONSTRAINTS.items() if constraint.one_hot)  # whose models have zeros
SMALLEST, LARGEST, GRID = 1 / 300, 10.0, 30  # of the default radius, and how many between
SWEEP_STEPS = 20_000  # of each radius and half-sample, where they are runs of a sweep
MOST_SHOWN = 20  # columns of a table, and names in a picture


@dataclass(frozen=True)
class Stability(Shown):
    """Which share of the half-samples selects each column, at each radius.

    Args:
        radii: of the sets, rising.
        probabilities: radii × columns, the share of half-samples whose model has the column.
        threshold: a column is stable where its largest share, over the radii, is at least this.
        pairs: of half-samples.
        columns: how many count: constant ones do not.
        selected: how many columns a half-sample selected over all radii together, on average.
        most_selected: how many it could at most; None where there was no limit.
        assumption: what the bound rests on, a name of `onesfw.linear.false_selections.ASSUMPTIONS`.
        names: of the columns; None for their numbers.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import Stability
        >>> found = Stability(np.array([1.0, 2.0]), np.array([[0.9, 0.0], [1.0, 0.1]]), 0.75, 50, 2, 1.1, None, "none")
        >>> found.stable.tolist(), found.scores.tolist(), round(found.bound(), 2)
        ([0], [1.0, 0.1], 1.21)
    """

    file_kind = FileKind("onesfw.stability", 1, "stability selection")

    radii: HostArray
    probabilities: HostArray
    threshold: float
    pairs: int
    columns: int
    selected: float
    most_selected: int | None
    assumption: str
    names: tuple[str, ...] | None = None

    @property
    def scores(self) -> HostArray:
        """The largest share of each column, over the radii."""
        return self.probabilities.max(axis=0)

    @property
    def stable(self) -> HostArray:
        """The numbers of the stable columns, rising."""
        return np.flatnonzero(self.scores >= self.threshold - 1e-9)

    def bound(self, assumption: str | None = None) -> float:
        """At most so many stable columns are of low selection probability, in expectation.

        Args:
            assumption: "none" or "r_concave"; None for the one that was asked for.
        """
        selected = self.selected if self.most_selected is None else self.most_selected
        return false_selections(self.columns, selected, self.threshold, self.pairs, assumption or self.assumption)

    def name(self, column: int) -> str:
        """What a column is called."""
        return str(column) if self.names is None else self.names[column]

    @property
    def ranked(self) -> HostArray:
        """The columns that were ever selected, the stablest first; among equals, by their share over all radii."""
        scores, means = self.scores, self.probabilities.mean(axis=0)
        order = np.lexsort((-means, -scores))
        return order[scores[order] > 0]

    def sheet(self) -> Sheet:
        """The table that is printed, and shown in a notebook."""
        stable, shown = set(self.stable.tolist()), self.ranked[: max(MOST_SHOWN, len(self.stable))]
        scores, best = self.scores, self.probabilities.argmax(axis=0)
        lines = [
            (self.name(j), f"{scores[j]:.2f}", f"{self.radii[best[j]]:.4g}", "stable" if j in stable else "")
            for j in shown.tolist()
        ]
        left = len(self.ranked) - len(shown)
        more = f"{left:,} more were selected now and then\n" if left else ""
        return Sheet(self.title, ("column", "selected", "at radius", ""), lines, more + self.promise)

    @property
    def title(self) -> str:
        """What was found, in one line."""
        count, share, halves = len(self.stable), f"{self.threshold:.0%}", 2 * self.pairs
        return f"{count:,} of {self.columns:,} columns: in {share} of {halves} half-samples or more"

    @property
    def promise(self) -> str:
        """The bounds in words."""
        q = "on average" if self.most_selected is None else "at most"
        size = self.selected if self.most_selected is None else self.most_selected
        noun = "column" if size == 1 else "columns"
        return (
            f"Expected false selections: at most {self.bound('none'):.3g}; {self.bound('r_concave'):.3g} where "
            f"selection shares are r-concave.\nA half-sample selects {size:.4g} {noun} {q}."
        )

    def draw(self, ax: Axes | None = None) -> Figure:
        """The paths: each column's share of half-samples against the radius, those of stable columns in colour."""
        figure, axes = axes_of(ax, (7.0, 4.2))
        stable = [j for j in self.ranked.tolist() if self.scores[j] >= self.threshold - 1e-9]
        others = [j for j in self.ranked.tolist() if j not in set(stable)]
        marker = "o" if len(self.radii) == 1 else ""  # a line of one point would not be seen
        if others:
            shares = self.probabilities[:, others]
            axes.plot(self.radii, shares, marker=marker, color=GREY, alpha=0.5, linewidth=0.6, zorder=1)
        if not others and not stable:
            axes.text(0.5, 0.5, "no column was ever selected", transform=axes.transAxes, ha="center", color=GREY)
        for place, j in enumerate(stable):
            label = self.name(j) if place < MOST_SHOWN else None
            style = ("-", "--", ":", "-.")[place // 5 % 4]  # more columns than the style has colours
            shares = self.probabilities[:, j]
            axes.plot(self.radii, shares, style, marker=marker, color=f"C{place % 5}", linewidth=1.6, label=label)
        axes.axhline(self.threshold, color=GREY, linewidth=1, linestyle="--")
        moved = np.flatnonzero((self.probabilities[1:] != self.probabilities[:-1]).any(axis=1))
        last = min(int(moved[-1]) + 2, len(self.radii) - 1) if len(moved) else len(self.radii) - 1
        axes.set_xlim(self.radii[0] * 0.98, self.radii[last] * 1.02)  # half-samples that have selected enough stop
        if len(self.radii) > 1:
            log_radii(axes)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("radius of the set")
        axes.set_ylabel("share of half-samples")
        axes.set_title(self.title if len(stable) != 1 else f"{self.title}\n{self.name(stable[0])}")
        if len(stable) > 1 and ax is None:
            figure.legend(loc="outside right upper")
        elif len(stable) > 1:
            axes.legend()
        return figure

    def pack(self) -> tuple[dict[str, Json], Tensors]:
        """What the file holds."""
        content = {name: getattr(self, name) for name in FIELDS}
        content["names"] = None if self.names is None else list(self.names)
        tensors = {name: np.ascontiguousarray(getattr(self, name), np.float64) for name in ("radii", "probabilities")}
        return content, tensors

    def check(self) -> None:
        """Raise ValueError or TypeError where the fields of a file make no sense."""
        super().check()
        rows, width = self.probabilities.shape
        sound = rows == len(rising(self.radii.tolist(), 1.0)) and self.probabilities.min() >= 0
        if not sound or not self.probabilities.max() <= 1 or len(self.names or range(width)) != width:
            raise ValueError("shapes or shares")
        whole_number(self.pairs, "pairs", 1)
        whole_number(self.columns, "columns", 1)
        choose(self.assumption, ASSUMPTIONS, "assumption")
        number(self.threshold, "threshold", 0.5, strict=True)
        number(self.selected, "selected", 0.0)
        if self.most_selected is not None:
            whole_number(self.most_selected, "most_selected", 1)

    @classmethod
    def unpack(cls, content: dict[str, Json], tensors: Tensors) -> Self:
        """The selection that a file holds, whose fields must make sense."""
        names = content.pop("names")
        return cls(tensors["radii"], tensors["probabilities"], **content, names=names and tuple(names))


def stability_selection(
    settings: Settings,
    data: Examples,
    radii: Sequence[float] | None = None,
    *,
    pairs: int = 50,
    threshold: float = 0.75,
    expected_false: float | None = 1.0,
    assumption: str = "r_concave",
    engine: str = "linear",
    steps: int | None = None,
    tol: float = 1e-4,
    key: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Stability:
    """Select the columns that models of most half-samples have (Meinshausen and Bühlmann 2010).

    Half-samples come in complementary pairs (Shah and Samworth 2013), with their share of every class. Each goes up the
    radii, every radius solved from the one before, until as many columns as `expected_false` allows were selected; of
    those that would be too many at a radius, the largest coefficients count.

    Args:
        settings: what is learnt; its radius does not count. The set must be one whose models have zeros.
        data: the rows, of columns that are scaled alike.
        radii: rising; None for 30 from 1/300 to 10 times the one at which a row of average size can reach a margin of
            10 (10 standard deviations of y in a regression).
        pairs: of half-samples.
        threshold: a column is stable that so large a share of the half-samples selects, at one radius at least.
        expected_false: the bound of the expected number of false selections that is to hold; None: every half-sample
            goes up all radii, and the bound is what follows.
        assumption: of that bound: "none", or "r_concave", under which more columns may be looked at.
        engine: "linear", which solves each radius from the one before. "sweep": each radius and half-sample is a run of
            one-sample steps, and all of them are one `fw.sweep`, for dense rows on an accelerator; a column is selected
            whose coefficient exceeds 1 % of the radius.
        steps: of each run of a sweep; None for 20,000.
        tol: the Frank-Wolfe gap to which each radius is solved, as a share of the loss of the best constant; a sweep
            is content with a tenth.
        key: the seed of the half-samples, and of a sweep.
        n_jobs: half-samples at a time, as joblib counts them; the result is the same bit for bit.
        progress: show a bar.

    Returns:
        The shares of all columns at all radii, and the bound.

    Raises:
        ValueError, TypeError: for a wrong argument, a label with one row, or a bound that cannot be kept.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import LOSSES, Settings, examples, stability_selection
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 30))
        >>> y = X[:, 4] - X[:, 7] + rng.normal(size=200)
        >>> data = examples(X, y, None, 30, LOSSES["squared"])
        >>> found = stability_selection(Settings(30, "squared"), data, expected_false=0.2)
        >>> found.stable.tolist()
        [4, 7]
    """
    way = checked_engine(
        settings.constraint, radii, pairs=pairs, threshold=threshold, expected_false=expected_false,
        assumption=assumption, engine=engine, steps=steps, tol=tol, key=key, n_jobs=n_jobs,
    )  # fmt: skip
    pairs = int(pairs)
    if data.size < 4:
        raise ValueError(f"stability selection needs at least 4 rows, for it halves them, got {data.size}")
    columns, limit = max(1, varying(data)), None
    if expected_false is not None:
        limit = allowed(columns, expected_false, threshold, pairs, assumption)
    grid = rising(radii, default_radius(data, settings))
    labels = data.targets if settings.loss_function.classifies else None
    halves = rows.halves(data.size, 2 * pairs, labels=labels, key=int(key))
    counts = np.zeros((len(grid), settings.n_features), np.int64)
    total, missed = 0, 0
    paths = way.paths(settings, data, halves, grid, key, progress)
    with ProgressBar(len(halves), progress, "half-samples", "half-samples") as bar, catch_interrupt() as interrupted:
        stop: Callable[[], bool] = jobs.never if jobs.away() else interrupted.is_set
        tasks = [(settings, data, half, grid, limit, way, path, stop) for half, path in zip(halves, paths, strict=True)]
        bar.note("")
        with pools().limit(limits=1):  # here, for threads would undo one another's limits
            for sets, solved in jobs.in_order(selected_by, tasks, n_jobs=n_jobs):
                if interrupted.is_set():
                    raise KeyboardInterrupt("interrupted; nothing was selected")
                for place in range(len(grid)):
                    counts[place, sets[min(place, len(sets) - 1)]] += 1
                total += len(np.unique(np.concatenate(sets)))
                missed += not solved
                bar.advance(1)
    if missed:
        warn_of_unsolved(
            f"{missed} of {len(halves)} half-samples have radii that were not solved to {named('tol')}: the shares of "
            "their columns may be wrong", data, way.remedy,
        )  # fmt: skip
    shares, mean = counts / len(halves), total / len(halves)
    return Stability(np.array(grid), shares, float(threshold), pairs, columns, mean, limit, assumption)


def checked_engine(
    constraint: str,
    radii: Sequence[float] | None,
    *,
    pairs: int,
    threshold: float,
    expected_false: float | None,
    assumption: str,
    engine: str,
    steps: int | None,
    key: int,
    n_jobs: int | None,
    tol: float = 1e-4,
) -> Engine:
    """The engine; raises where an argument of `stability_selection` is wrong whatever the rows are."""
    choose(constraint, SETS, "constraint")
    rising(radii, 1.0)
    whole_number(pairs, "pairs", 1)
    if not 0.5 < number(threshold, "threshold", 0.5, strict=True) <= 1:
        raise ValueError(f"{named('threshold')} must be over 0.5 and at most 1, got {threshold:g}")
    if expected_false is not None:
        number(expected_false, "expected_false", 0.0, strict=True)
    choose(assumption, ASSUMPTIONS, "assumption")
    whole_number(key, "key", 0)
    jobs.workers(n_jobs)
    return Engine.of(engine, number(tol, "tol", 0.0, strict=True), steps, SWEEP_STEPS)


def varying(data: Examples) -> int:
    """How many columns are not constant: to count the others would make the bounds smaller than they are."""
    matrix = data.matrix
    low, high = (np.asarray(getattr(matrix, end)(axis=0).todense()).ravel() for end in ("min", "max"))
    return int(np.sum(low < high))


def allowed(columns: int, expected_false: float, threshold: float, pairs: int, assumption: str) -> int:
    """How many columns a half-sample may select so that the bound holds."""
    wanted = number(expected_false, "expected_false", 0.0, strict=True)
    limit = most_selected(columns, wanted, threshold, pairs, assumption)
    if not limit:
        least = false_selections(columns, 1, threshold, pairs, assumption)
        raise ValueError(
            f"{named('expected_false')}={wanted:g} cannot be promised for {columns:,} columns: with one column a "
            f"half-sample the bound is {least:.3g}; raise it, or raise {named('threshold')}"
        )
    return limit


def rising(radii: Sequence[float] | None, around: float) -> list[float]:
    """The radii as given, or a grid around one."""
    if radii is None:
        return [float(r) for r in np.geomspace(around * SMALLEST, around * LARGEST, GRID)]
    grid = [number(radius, "radii", 0.0, strict=True) for radius in radii]
    if not grid:
        raise ValueError(f"{named('radii')} must hold at least one radius, or be left out")
    if any(second <= first for first, second in pairwise(grid)):
        raise ValueError(f"{named('radii')} must rise, each larger than the one before; sort them")
    return grid


def selected_by(
    settings: Settings,
    data: Examples,
    half: HostArray,
    radii: list[float],
    limit: int | None,
    engine: Engine,
    path: HostArray | None,
    stop: Callable[[], bool],
) -> tuple[list[HostArray], bool]:
    """The columns that a half-sample selects at each radius; after the last of the list they stay as they are.

    And whether each of these radii was solved.
    """
    train, solved = part(data, half), True
    units = loss_units(replace(settings, radius=1.0), train)
    limits = engine.allowed * units
    seen = np.zeros(settings.n_features, bool)
    found: list[HostArray] = []
    for radius, (coefs, at) in zip(radii, models_of(settings, train, radii, limits, path, stop), strict=True):
        solved &= not unsolved(at, limits, units).any()
        sizes = np.abs(coefs).max(axis=0)
        chosen = sizes > engine.least * radius
        new = np.flatnonzero(chosen & ~seen)
        full = limit is not None and seen.sum() + len(new) >= limit
        if full:
            room = limit - int(seen.sum())  # type: ignore[operator]
            chosen[new[np.argsort(-sizes[new], kind="stable")[room:]]] = False
        seen |= chosen
        found.append(np.flatnonzero(chosen))
        if full or is_last(settings, coefs, at.gap, radius, radii[-1], limits) or stop():
            break
    return found, solved
