"""The picture of a result: value and gap against samples, with bands over replicates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onesfw.results.pictures import BLUE, DECADE, VERMILION, picture_ending, save_figure, styled
from onesfw.results.report import Measure, suboptimality
from onesfw.trees import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from onesfw.results.result import Result

BAND = (0.1, 0.9)  # quantiles over replicates
EARLY = 0.1  # a change that is half over in this share of the samples is seen on a log axis only


class Panel(NamedTuple):
    """What one pair of axes shows."""

    title: str
    label: str
    values: Floats
    errors: Floats
    final: Measure
    positive: bool
    """Whether the true values are positive, so that a log axis means something."""


class Curve(NamedTuple):
    """Samples, the middle line, and the band below and above it."""

    samples: Floats
    middle: Floats
    low: Floats
    high: Floats


@styled()
def plot(
    result: Result,
    path: str | Path | None = None,
    optimum: float | None = None,
    ax: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Value (or its distance to the optimum) and gap against samples; see `Result.plot`."""
    if path is not None:
        picture_ending(path)  # before any work
    panels = [value_panel(result, result.optimum if optimum is None else optimum), gap_panel(result)]
    drawn = [panel for panel in panels if curve(result, panel).samples.size]
    if path is not None and not drawn:
        raise ValueError(
            f"{path}: nothing was evaluated, and the picture would be empty; leave evaluate=None, and every='log' "
            "gives a curve"
        )
    figure, places = axes_for(ax, drawn or panels)
    if ax is None:
        count = "" if result.replicates is None else f", {result.replicates} replicates"
        name = f"{result.problem}: " if result.problem else ""
        figure.suptitle(f"{name}{result.algorithm}{count}")
    for axes, panel in zip(places, drawn or panels, strict=False):
        draw(axes, result, panel)
    if path is not None:
        save_figure(figure, path)
    return figure


def axes_for(ax: Axes | Sequence[Axes] | None, panels: Sequence[Panel]) -> tuple[Figure, list[Axes]]:
    """The caller's axes, or new ones side by side."""
    if ax is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.8 * len(panels), 3.8), layout="constrained")
        return figure, list(np.atleast_1d(figure.subplots(1, len(panels))))
    places = list(ax) if isinstance(ax, Sequence | np.ndarray) else [ax]
    figure_of = getattr(places[0], "figure", None) if places else None
    if figure_of is None:
        raise TypeError(f"ax must be axes of matplotlib, or a pair of them, got {ax!r}")
    return figure_of, places


def value_panel(result: Result, optimum: float | None) -> Panel:
    """F(x_t), or its distance to F*."""
    trace = result.trace
    if optimum is None:
        return Panel("value", "F(x)", trace.value, trace.value_stderr, result.value, positive=False)
    distance = suboptimality(trace.value, optimum, result.sense)
    assert distance is not None
    label = "F(x) − F*" if result.sense == "minimize" else "F* − F(x)"
    final = suboptimality(result.value, optimum, result.sense)
    title = f"distance to the optimum F* = {optimum:.6g}"
    return Panel(title, label, distance, trace.value_stderr, final, positive=True)


def gap_panel(result: Result) -> Panel:
    """The Frank-Wolfe gap of x_t."""
    side = "x − v" if result.sense == "minimize" else "v − x"
    label = f"max ⟨∇F(x), {side}⟩ over v in K"
    return Panel("Frank-Wolfe gap", label, result.trace.gap, result.trace.gap_stderr, result.gap, positive=True)


def draw(axes: Axes, result: Result, panel: Panel) -> None:
    """One panel: the curve, its band, and the returned point where it is not the curve's last."""
    axes.set_title(panel.title)
    axes.set_xlabel("samples")
    axes.set_ylabel(panel.label)
    several = result.replicates is not None
    samples, middle, low, high = curve(result, panel)
    if samples.size == 0:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color="0.4")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    name = "median" if several else "$x_t$"
    band = "10–90 % of replicates" if several else "± 1 standard error"
    spread = bool(np.any(high > low))
    if samples.size == 1:
        reach = np.abs([middle - low, high - middle]) if spread else None
        axes.errorbar(
            samples, middle, yerr=reach, fmt="o", color=BLUE, capsize=4, label=name + (f", {band}" if spread else "")
        )
        remark(axes, "one evaluation: every='log' gives a curve")
    else:
        axes.plot(samples, middle, color=BLUE, lw=1.6, marker="o", ms=2.5, label=name)
    shown = middle
    returned = float(np.nanmedian(panel.final)) if panel.final is not None and np.isfinite(panel.final).any() else None
    if returned is not None and not several and not math.isclose(returned, float(middle[-1]), rel_tol=1e-6):
        axes.plot(samples[-1], returned, "*", color=VERMILION, ms=11, label="$x$ returned", zorder=3)
        shown = np.append(middle, returned)
    if log_helps(shown, panel.positive):
        positive = shown[shown > 0]
        floor = max(min(float(positive.min()), float(low.min())), float(positive.min()) / 3) / 1.4
        axes.set_yscale("log", nonpositive="mask")
        low = np.maximum(low, floor)
        axes.set_ylim(bottom=floor, top=max(float(shown.max()), float(high.max())) * 1.6)
        hidden = int((middle <= 0).sum())
        if hidden:
            remark(axes, f"{hidden} of {middle.size} evaluations at or below 0 not shown")
    if spread and samples.size > 1:
        axes.fill_between(samples, low, np.maximum(high, low), color=BLUE, alpha=0.2, lw=0, label=band)
    if changes_early(samples, middle):
        axes.set_xscale("log", nonpositive="mask")
    elif samples.size > 1:
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend()


def remark(axes: Axes, text: str) -> None:
    """A word at the foot of a panel."""
    axes.text(0.5, 0.03, text, transform=axes.transAxes, ha="center", color="0.4", fontsize="small")


def log_helps(shown: Floats, positive: bool) -> bool:
    """Whether values span more than a decade and are positive, or would be but for noise."""
    above = shown[shown > 0]
    if above.size == 0 or (not positive and above.size < shown.size):
        return False
    return bool(above.max() > DECADE * above.min())


def changes_early(samples: Floats, middle: Floats) -> bool:
    """Whether half of the change is over within the first tenth of the samples, where a linear axis shows a cliff.

    A run that changes all along, as continuous greedy does, would be a plateau and a cliff on a log axis.
    """
    if samples.size < 2 or samples[-1] <= DECADE * max(float(samples[0]), 1.0):
        return False
    change = np.abs(middle - middle[-1])
    early = samples <= EARLY * samples[-1]
    return bool(change[early][-1] <= 0.5 * change.max()) if early.any() else False


def curve(result: Result, panel: Panel) -> Curve:
    """The line and its band.

    Replicates that ended at different steps are read off between their own evaluations; a sample count that fewer than
    half of them reached is left out.
    """
    samples: Floats = np.asarray(result.trace.samples, np.float64)
    values = panel.values
    if result.replicates is None:
        use = np.isfinite(values)
        error = np.nan_to_num(panel.errors)[use]
        return Curve(samples[use], values[use], values[use] - error, values[use] + error)
    samples = np.broadcast_to(samples, values.shape)
    grid = np.unique(samples[np.isfinite(values)])
    table = np.full((values.shape[0], grid.size), np.nan)
    for line, counts, column in zip(table, samples, values, strict=True):
        use = np.isfinite(column)
        if use.any():
            line[:] = np.interp(grid, counts[use], column[use], left=np.nan, right=np.nan)
    enough = 2 * np.isfinite(table).sum(axis=0) >= values.shape[0]
    table = table[:, enough]
    if not enough.any():
        return Curve(grid[:0], grid[:0], grid[:0], grid[:0])
    low, middle, high = np.nanquantile(table, [BAND[0], 0.5, BAND[1]], axis=0)
    return Curve(grid[enough], middle, low, high)
