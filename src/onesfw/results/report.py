"""A result in words: the table that is printed, and shown in a notebook."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import numpy as np

from onesfw import trees
from onesfw.results.show import Sheet
from onesfw.results.status import Status
from onesfw.trees import Counts, Floats, Tree

if TYPE_CHECKING:
    from onesfw.results.result import Result

MISSING = "not measured"
ENTRIES = 5  # of x that are shown
LARGEST_RANK = 1000  # the smaller side of a matrix whose singular values are still worth their time
Format = Callable[[float], str]
Row = tuple[str, list[str]]
Measure = float | Floats | None


def sheet(result: Result) -> Sheet:
    """Title, table and the reason why the run ended."""
    several = result.replicates is not None
    count = f", {result.replicates} replicates" if several else ""
    name = f"{result.problem}: " if result.problem else ""
    return Sheet(
        title=f"{name}{result.sense} by {result.algorithm}{count}",
        columns=("", "median", "lowest", "highest") if several else ("", ""),
        rows=[(label, *entries) for label, entries in rows(result)],
        note="\n".join(status_lines(result)),
        words=1 if several else 2,
    )


def rows(result: Result) -> list[Row]:
    """Names and cells: one cell for a single run; the median, the lowest and the highest for replicates."""
    table = measured_rows(result)
    counts = [
        ("steps", result.steps),
        ("samples", result.samples),
        ("gradients", result.gradients),
        ("HVPs", result.hvps),
        ("LMO calls", result.lmo_calls),
    ]
    table += [(name, cells(value, None, whole)) for name, value in counts]
    table.append(("seconds", cells(result.seconds, None, seconds)))
    table.append(("  compiling", [seconds(result.compile_seconds)]))
    table.append(("  evaluating", cells(result.evaluation_seconds, None, seconds)))
    nonzero, size = nonzeros(result)
    table.append(("nonzeros of x", [f"{cell} of {size:,}" for cell in cells(nonzero, None, whole)]))
    table += [(name, [f"{cell} of {most:,}" for cell in cells(r, None, whole)]) for name, r, most in ranks(result)]
    if result.replicates is None:
        table.append(("x", [largest_entries(result.x)]))
    return table


def measured_rows(result: Result) -> list[Row]:
    """Value, distance to the optimum and gap; those of the last iterate below, where the output is another one."""
    table: list[Row] = []
    last_value, last_value_error = last(result, "value", result.value)
    last_gap, last_gap_error = last(result, "gap", result.gap)
    below = "above optimum" if result.sense == "minimize" else "below optimum"
    table.append(("value", cells(result.value, result.value_stderr, digits)))
    if last_value is not None:
        table.append(("  last iterate", cells(last_value, last_value_error, digits)))
    if result.optimum is not None:
        for name, value, error in (
            (below, result.value, result.value_stderr),
            ("  last iterate", last_value, last_value_error),
        ):
            if value is not None or name == below:
                table.append((name, cells(suboptimality(value, result.optimum, result.sense), error, digits)))
    table.append(("gap", cells(result.gap, result.gap_stderr, digits)))
    if last_gap is not None:
        table.append(("  last iterate", cells(last_gap, last_gap_error, digits)))
    return table


def last(result: Result, name: str, returned: Measure) -> tuple[Measure, Measure]:
    """A measure of x_{T+1} and its error; None where x is that point itself, or nothing was measured.

    The trace follows the iterates, so that its end is the last one's; in the non-convex setting x is another.
    """
    column: Floats = getattr(result.trace, name)
    errors: Floats = getattr(result.trace, f"{name}_stderr")
    if returned is None or len(result.trace) == 0:
        return None, None
    if result.replicates is None:
        apart = np.isfinite(column[-1]) and not math.isclose(float(column[-1]), float(returned), rel_tol=1e-12)
        return (float(column[-1]), float(errors[-1])) if apart else (None, None)
    ends = np.maximum(np.isfinite(column).sum(1) - 1, 0)[:, None]  # replicates may end apart
    at_end = np.take_along_axis(column, ends, 1)[:, 0]
    if np.allclose(at_end, returned, rtol=1e-12, atol=0.0, equal_nan=True):
        return None, None
    return at_end, np.take_along_axis(errors, ends, 1)[:, 0]


def cells(value: float | Floats | Counts | None, error: Measure, show: Format) -> list[str]:
    """A number with its standard error where it has one, or replicates' median, lowest and highest."""
    if value is None:
        return [MISSING]
    if np.ndim(value) == 0:
        number, spread = float(value), 0.0 if error is None else float(error)
        if not math.isfinite(spread) or spread <= 0 or not math.isfinite(number):
            return [show(number)]
        places = max(0, 1 - math.floor(math.log10(spread)))  # two digits of the error, and the value to match
        if places > 9:
            return [f"{show(number)} ± {spread:.2g}"]
        return [f"{number:,.{places}f} ± {spread:,.{places}f}"]
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


def status_lines(result: Result) -> list[str]:
    """Why the run ended, in sentences; with replicates each sentence once, with its count."""
    if isinstance(result.status, Status):
        failed = f" (step {result.failed_step:,})" if isinstance(result.failed_step, int) else ""
        return [f"{result.status}{failed}"]
    kinds = dict.fromkeys(result.status)
    return [f"{sum(s is kind for s in result.status)} of {len(result.status)}: {kind}" for kind in kinds]


def nonzeros(result: Result) -> tuple[int | Counts, int]:
    """How many entries of x are not zero, per replicate where there are several, and how many there are."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(result.x)]
    if result.replicates is None:
        return sum(int(np.count_nonzero(leaf)) for leaf in leaves), sum(leaf.size for leaf in leaves)
    flat = [leaf.reshape(result.replicates, -1) for leaf in leaves]
    counts: Counts = np.asarray(sum(np.count_nonzero(leaf, axis=1) for leaf in flat), np.int64)
    return counts, sum(leaf.shape[1] for leaf in flat)


def ranks(result: Result) -> list[tuple[str, int | Counts, int]]:
    """Of each matrix in x: its name, its rank up to rounding (one for each replicate), and the most it could be."""
    found: list[tuple[str, int | Counts, int]] = []
    extra = 0 if result.replicates is None else 1
    leaves = named_leaves(result.x)
    rounding = float(np.finfo(trees.dtype_of(result.x)).eps) if leaves else 0.0  # x may be a tree without any
    for name, leaf in leaves:
        most = min(leaf.shape[-2:], default=0)
        if leaf.ndim == 2 + extra and 1 < most <= LARGEST_RANK and np.isfinite(leaf).all():
            rank = np.asarray(np.linalg.matrix_rank(leaf, rtol=max(leaf.shape[-2:]) * rounding), np.int64)
            found.append((f"rank of {name}", rank if extra else int(rank), most))
    return found


def named_leaves(x: Tree) -> list[tuple[str, Floats]]:
    """The arrays of x by the names that lead to them: `x`, or `x['weights']`."""
    leaves = jax.tree_util.tree_flatten_with_path(x)[0]
    return [(f"x{jax.tree_util.keystr(path)}", np.asarray(leaf, np.float64)) for path, leaf in leaves]


def largest_entries(x: Tree, count: int = ENTRIES) -> str:
    """`x[3] = 0.52, x[7] = -0.2, …`: the entries of largest size, in the order of their size."""
    found: list[tuple[float, str]] = []
    total = 0
    for name, leaf in named_leaves(x):
        flat = leaf.reshape(-1)
        total += int(np.count_nonzero(flat))
        size = np.abs(flat)
        top = np.argsort(-size, kind="stable")[:count]
        for place in top[size[top] > 0]:
            where = ", ".join(str(int(i)) for i in np.unravel_index(place, leaf.shape))
            found.append((float(flat[place]), f"{name}[{where}]" if leaf.ndim else name))
    found = sorted(found, key=lambda entry: -abs(entry[0]))[:count]
    text = ", ".join(f"{name} = {value:.4g}" for value, name in found)
    return (text or "0") + (", …" if total > len(found) else "")


def suboptimality(value: Measure, optimum: float, sense: str) -> Floats | None:
    """F(x) − F* when minimising, F* − F(x) when maximising."""
    if value is None:
        return None
    distance: Floats = np.asarray(value, np.float64) - optimum
    return distance if sense == "minimize" else -distance
