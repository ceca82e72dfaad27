"""A result for the eye: the printed table, the command line's table, and the picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from onesfw.results.pictures import picture_ending, save_figure
from onesfw.results.status import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

    from onesfw.results.result import Result

MISSING = "not measured"
WIDTH = 78
BAND = (0.1, 0.9)  # quantiles over replicates
Format = Callable[[float], str]


def text(result: Result) -> str:
    """The table that `print(result)` shows."""
    body = rows(result)
    if result.replicates is None:
        lines = [f"  {name:<{widest(body, 0)}}  {cells[0]}" for name, cells in body]
    else:
        heads = ("", "median", "lowest", "highest")
        grid = [heads, *((name, *cells) for name, cells in body)]
        widths = [max(len(row[place]) for row in grid if place < len(row)) for place in range(len(heads))]
        lines = [
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
            for row in grid
        ]
    count = "" if result.replicates is None else f", {result.replicates} replicates"
    return "\n".join([f"{result.sense} by {result.algorithm}{count}", *status_lines(result), "", *lines])


def table(result: Result, optimum: float | None = None, title: str | None = None) -> Table:
    """The same as a Rich table.

    Args:
        result: what a run returned.
        optimum: the optimal value, if known: adds how far the value is from it.
        title: the first line; the algorithm's summary is always below it.
    """
    from rich.table import Table
    from rich.text import Text

    heads = [result.algorithm] if title is None else [title, result.algorithm]
    feet = status_lines(result)
    grid = Table(
        title=Text("\n".join(heads)),
        title_justify="left",
        caption=Text("\n".join(feet)),
        caption_justify="left",
        min_width=min(WIDTH, max(len(line) for line in heads + feet)),  # Rich wraps them at the table's width
    )
    grid.add_column(result.sense, no_wrap=True)
    several = result.replicates is not None
    for column in ("median", "lowest", "highest") if several else ("result",):
        grid.add_column(column, overflow="fold")
    for name, cells in rows(result, optimum):
        grid.add_row(Text(name), *(Text(cell) for cell in cells))
    if several:
        grid.add_row(Text("replicates"), Text(str(result.replicates)))
    return grid


def rows(result: Result, optimum: float | None = None) -> list[tuple[str, list[str]]]:
    """Names and cells: one cell for a single run; the median, the lowest and the highest for replicates."""
    measured = [("value", result.value, result.value_stderr, digits), ("gap", result.gap, result.gap_stderr, digits)]
    if optimum is not None:
        distance = suboptimality(result.value, optimum, result.sense)
        name = "above optimum" if result.sense == "minimize" else "below optimum"
        measured.insert(1, (name, distance, result.value_stderr, digits))
    counts = [
        ("steps", result.steps),
        ("samples", result.samples),
        ("gradients", result.gradients),
        ("HVPs", result.hvps),
        ("LMO calls", result.lmo_calls),
    ]
    table = [(name, cells(value, error, show)) for name, value, error, show in measured]
    table += [(name, cells(value, None, whole)) for name, value in counts]
    table.append(("seconds", cells(result.seconds, None, seconds)))
    table.append(("  compiling", [seconds(result.compile_seconds)]))
    table.append(("  evaluating", cells(result.evaluation_seconds, None, seconds)))
    nonzero, size = nonzeros(result)
    table.append(("nonzeros of x", [f"{cell} of {size:,}" for cell in cells(nonzero, None, whole)]))
    return table


def cells(value: Any, error: Any, show: Format) -> list[str]:
    """A number with its standard error (± 0 after a full pass), or replicates' median, lowest and highest."""
    if value is None:
        return [MISSING]
    if np.ndim(value) == 0:
        if error == 0:
            return [f"{show(float(value))} ± 0"]
        if error is None or not math.isfinite(error) or error <= 0 or not math.isfinite(value):
            return [show(float(value))]
        places = max(0, 1 - math.floor(math.log10(error)))  # two digits of the error, and the value to match
        if places > 9:
            return [f"{show(float(value))} ± {error:.2g}"]
        return [f"{value:,.{places}f} ± {error:,.{places}f}"]
    finite = np.asarray(value, np.float64)
    finite = finite[np.isfinite(finite)]
    if finite.size == 0:
        return [MISSING]
    shown = [show(float(number)) for number in (np.median(finite), finite.min(), finite.max())]
    each = 0.0 if error is None else float(np.nanmedian(np.where(np.isfinite(error), error, 0.0)))
    return [shown[0] + (f" (each ± {each:.2g})" if each > 0 else ""), *shown[1:]]


def digits(number: float) -> str:
    """Six significant digits."""
    return f"{number:.6g}"


def whole(number: float) -> str:
    """A count; a median between two counts keeps its half."""
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


def seconds(number: float) -> str:
    """Seconds to the millisecond below ten, to a tenth above."""
    return f"{number:,.3f}" if number < 10 else f"{number:,.1f}"


def widest(body: list[tuple[str, list[str]]], least: int) -> int:
    """The length of the longest name."""
    return max(least, *(len(name) for name, _ in body))


def status_lines(result: Result) -> list[str]:
    """Why the run ended, in sentences; with replicates each sentence once, with its count."""
    if isinstance(result.status, Status):
        failed = f" (step {result.failed_step:,})" if result.failed_step is not None else ""
        return [f"{result.status}{failed}"]
    kinds = dict.fromkeys(result.status)
    return [f"{sum(s is kind for s in result.status)} of {len(result.status)}: {kind}" for kind in kinds]


def nonzeros(result: Result) -> tuple[Any, int]:
    """How many entries of x are not zero, per replicate where there are several, and how many there are."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(result.x)]
    if result.replicates is None:
        return sum(int(np.count_nonzero(leaf)) for leaf in leaves), sum(leaf.size for leaf in leaves)
    flat = [leaf.reshape(result.replicates, -1) for leaf in leaves]
    return sum(np.count_nonzero(leaf, axis=1) for leaf in flat), sum(leaf.shape[1] for leaf in flat)


def suboptimality(value: Any, optimum: float, sense: str) -> Any:
    """F(x) − F* when minimising, F* − F(x) when maximising."""
    if value is None:
        return None
    distance = np.asarray(value, np.float64) - optimum
    return distance if sense == "minimize" else -distance


def plot(result: Result, path: str | Path | None = None, optimum: float | None = None) -> Figure:
    """Value (or its distance to `optimum`) and gap against samples, log-log where positive; see `Result.plot`."""
    from matplotlib.figure import Figure

    if path is not None:
        picture_ending(path)  # before any work
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    count = "" if result.replicates is None else f", {result.replicates} replicates"
    figure.suptitle(f"{result.algorithm}{count}", fontsize=11)
    value, gap = result.trace.value, result.trace.gap
    if optimum is None:
        draw(left, result, value, result.trace.value_stderr, result.value, "F(x)", always_log=False)
        left.set_title("value", fontsize=10)
    else:
        distance = suboptimality(value, optimum, result.sense)
        final = suboptimality(result.value, optimum, result.sense)
        label = "F(x) − F*" if result.sense == "minimize" else "F* − F(x)"
        draw(left, result, distance, result.trace.value_stderr, final, label)
        left.set_title(f"distance to the optimum F* = {optimum:.6g}", fontsize=10)
    label = "max ⟨∇F(x), x − v⟩ over v in K" if result.sense == "minimize" else "max ⟨∇F(x), v − x⟩ over v in K"
    draw(right, result, gap, result.trace.gap_stderr, result.gap, label)
    right.set_title("Frank-Wolfe gap", fontsize=10)
    if path is not None:
        save_figure(figure, path)
    return figure


def draw(axes: Axes, result: Result, values: Any, errors: Any, final: Any, label: str, always_log: bool = True) -> None:
    """One panel: the curve, its band, and the returned point where it is not the curve's last."""
    axes.set_xlabel("samples")
    axes.set_ylabel(label)
    several = result.replicates is not None
    samples, middle, low, high = curve(result, values, errors)
    if samples.size == 0:
        why = "not measured" if np.isnan(values).all() else "nothing to draw"
        axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color="0.4")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    name = "median" if several else "$x_t$"
    band = "10–90 % of replicates" if several else "± 1 standard error"
    spread = bool(np.any(high > low))
    if samples.size == 1:
        reach = np.abs([middle - low, high - middle]) if spread else None
        axes.errorbar(
            samples, middle, yerr=reach, fmt="o", color="C0", capsize=4, label=name + (f", {band}" if spread else "")
        )
        note = "one evaluation: every='log' gives a curve"
        axes.text(0.5, 0.03, note, transform=axes.transAxes, ha="center", color="0.4", fontsize=9)
    else:
        axes.plot(samples, middle, color="C0", lw=1.6, marker="o", ms=2.5, label=name)
    returned = np.nanmedian(final) if final is not None and np.isfinite(final).any() else None
    apart = returned is not None and not math.isclose(returned, middle[-1], rel_tol=1e-6) and not several
    if apart and returned is not None:
        axes.plot(samples[-1], returned, "*", color="C3", ms=11, label="$x$ returned", zorder=3)
    shown = np.append(middle, returned) if apart and returned is not None else middle
    log = (shown > 0).any() and (always_log or ((shown > 0).all() and shown.max() > 10 * shown.min()))
    if log:
        floor = max(min(shown[shown > 0].min(), low.min()), shown[shown > 0].min() / 3) / 1.4
        axes.set_yscale("log", nonpositive="mask")
        low = np.maximum(low, floor)
        axes.set_ylim(bottom=floor, top=max(shown.max(), high.max()) * 1.6)
        hidden = int((middle <= 0).sum())
        if hidden:
            note = f"{hidden} of {middle.size} evaluations at or below 0 not shown"
            axes.text(0.5, 0.03, note, transform=axes.transAxes, ha="center", color="0.4", fontsize=9)
    if spread and samples.size > 1:
        axes.fill_between(samples, low, np.maximum(high, low), color="C0", alpha=0.2, lw=0, label=band)
    if samples.size > 1 and samples[-1] > 10 * max(samples[0], 1):
        axes.set_xscale("log", nonpositive="mask")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=9, frameon=False)


def curve(result: Result, values: Any, errors: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Samples, the middle line, and the band below and above it.

    Replicates that ended at different steps are read off between their own evaluations; a sample count that fewer than
    half of them reached is left out.
    """
    samples, values = np.asarray(result.trace.samples, np.float64), np.asarray(values, np.float64)
    if result.replicates is None:
        use = np.isfinite(values)
        error = np.nan_to_num(np.asarray(errors, np.float64))[use]
        return samples[use], values[use], values[use] - error, values[use] + error
    samples = np.broadcast_to(samples, values.shape)
    grid = np.unique(samples[np.isfinite(values)])
    lines = np.full((values.shape[0], grid.size), np.nan)
    for line, counts, column in zip(lines, samples, values, strict=True):
        use = np.isfinite(column)
        if use.any():
            line[:] = np.interp(grid, counts[use], column[use], left=np.nan, right=np.nan)
    enough = 2 * np.isfinite(lines).sum(axis=0) >= values.shape[0]
    lines = lines[:, enough]
    if not enough.any():
        return (grid[:0],) * 4
    low, middle, high = np.nanquantile(lines, [BAND[0], 0.5, BAND[1]], axis=0)
    return grid[enough], middle, low, high
