"""Tables of measurements: one `Grid`, shown by Rich, as Markdown, or on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onesfw.experiments.budgets import BY_GRADIENTS
from onesfw.experiments.compare import Comparison, rise
from onesfw.experiments.runs import LABELS, Curve
from onesfw.experiments.slopes import Slope, standard_error

if TYPE_CHECKING:
    from rich.table import Table

MISSING = "–"
SMALL = 0.01  # smaller numbers are shown with a power of ten
SHORT = {"gap": "gap"}
ENOUGH = 0.8  # of the budget: a method that used less is named


@dataclass(frozen=True)
class Grid:
    """A table of words: what is numeric was formatted where it was made."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]] = ()
    note: str = ""
    words: int = 1
    """How many of the first columns hold words, not numbers."""


def comparison_grid(comparison: Comparison) -> Grid:
    """A row for each method, the least error first; what is maximised has its largest value beside it."""
    upwards = comparison.subject.sense == "maximize"
    curves = sorted(comparison.curves, key=lambda c: -final_of(c) if upwards and c.primary == "value" else final_of(c))
    further = [name for name in LABELS if any(name in curve.measures for curve in curves)][1:]
    if curves and curves[0].primary == "suboptimality":
        further.remove("value")  # F* is in the note
    second_order = any(curve.counts["hvps"][-1] > 0 for curve in curves)
    primary = curves[0].primary if curves else "value"
    columns = [
        "method", SHORT.get(primary, LABELS[primary]), "slope in samples", "slope in LMO calls",
        *(SHORT.get(name, LABELS[name]) for name in further), "samples", "gradients",
        *(["HVPs"] if second_order else []), "LMO calls", "seconds",
    ]  # fmt: skip
    rows = [
        (
            curve.name,
            mean_text(curve.final),
            slope_text(rise(curve, "samples")),
            slope_text(rise(curve, "lmo_calls")),
            *(mean_text(curve.measures[name][:, -1]) if name in curve.measures else MISSING for name in further),
            count_text(curve.counts["samples"][-1]),
            count_text(curve.counts["gradients"][-1]),
            *([count_text(curve.counts["hvps"][-1])] if second_order else []),
            count_text(curve.counts["lmo_calls"][-1]),
            f"{curve.seconds[:, -1].mean():.3g}",
        )
        for curve in curves
    ]
    return Grid(comparison.subject.name, tuple(columns), rows, note_of(comparison))


def note_of(comparison: Comparison) -> str:
    """What the numbers are."""
    best = comparison.optimum
    known = "" if best is None else f" F* = {best:.8g}."
    short = [
        f"{curve.name} ends at {count_text(curve.counts['samples'][-1])}: its next step takes more than are left."
        for curve in comparison.curves
        if curve.name not in BY_GRADIENTS and curve.counts["samples"][-1] < ENOUGH * comparison.budget
    ]
    about = (
        f"{comparison.subject.summary}.{known} Means over {comparison.seeds} seeds at {comparison.budget:,} samples, "
        "± one standard error; slopes over the last two decades with 95 % intervals; seconds for one seed."
    )
    return " ".join([about, *short])


def mean_text(values: np.ndarray) -> str:
    """The mean over seeds ± its standard error, to the error's first digit."""
    mean, error = float(np.mean(values)), standard_error(values)
    if not math.isfinite(mean):
        return MISSING
    if not math.isfinite(error) or error <= abs(mean) * 1e-9:
        return number_text(mean, 3)
    place = -math.floor(math.log10(error))  # of the error's first digit
    if abs(mean) >= SMALL or mean == 0:
        return f"{mean:.{max(place, 0)}f} ± {error:.{max(place, 0)}f}"
    digits = math.floor(math.log10(abs(mean))) + place + 1
    return f"{number_text(mean, min(max(digits, 2), 7))} ± {number_text(error, 1)}"


def number_text(number: float, digits: int) -> str:
    """So many significant digits; a power of ten below 0.01, with a short exponent."""
    if number != 0 and not SMALL <= abs(number) < 1e6:
        mantissa, _, exponent = f"{number:.{digits - 1}e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{number:.{digits}g}"


def slope_text(slope: Slope) -> str:
    """A slope and its interval."""
    if not math.isfinite(slope.value):
        return MISSING
    interval = "" if not math.isfinite(slope.low) else f" [{signed(slope.low)}, {signed(slope.high)}]"
    return signed(slope.value) + interval


def ratio_text(found: Slope, digits: int = 2) -> str:
    """A ratio and its interval."""
    ends = [number_text(end, digits) for end in (found.low, found.high) if math.isfinite(end)]
    return number_text(found.value, digits) + (f" [{', '.join(ends)}]" if ends else "")


def signed(number: float) -> str:
    """Two decimals with a proper minus sign."""
    return f"{number:.2f}".replace("-", "−")


def count_text(count: float) -> str:
    """A count with commas."""
    return f"{int(count):,}"


def rich_table(grid: Grid) -> Table:
    """The grid for a terminal; the first column stays whole."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(grid.title), title_justify="left", caption=Text(grid.note) if grid.note else None,
        caption_justify="left",
    )  # fmt: skip
    for place, column in enumerate(grid.columns):
        table.add_column(Text(column), justify="left" if place == 0 else "right", no_wrap=place == 0)
    for row in grid.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def markdown(grid: Grid, heading: str = "###") -> str:
    """The grid as Markdown, under its title."""
    lines = [f"{heading} {grid.title}", ""] if grid.title else []
    lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in grid.columns) + " |")
    lines.append("|" + "---|" * len(grid.columns))
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in grid.rows]
    if grid.note:
        lines += ["", grid.note]
    return "\n".join(lines) + "\n"


def final_of(curve: Curve | None) -> float:
    """The mean final error, NaN without a curve."""
    return float("nan") if curve is None else float(np.mean(curve.final))
