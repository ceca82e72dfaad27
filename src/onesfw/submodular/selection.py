"""What `select` returns: the chosen elements, how good they are, what they cost; printed, drawn, written and kept."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Self

import numpy as np

from onesfw.data.table_rows import LeftOut, Rows, pack_rows, row_ending, unpack_rows
from onesfw.files import Tensors, whole_file
from onesfw.results.pictures import BLUE, GREY, VERMILION
from onesfw.results.result_file import decode, decode_trace, encode, encode_trace
from onesfw.results.show import FileKind, Sheet, Shown, axes_of
from onesfw.results.trace import Trace
from onesfw.trees import HostArray, Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

SHOWN = 10  # labels of chosen elements that are printed
WIDTH = 70  # of a printed cell


@dataclass(frozen=True)
class Selection(Shown):
    """What `select` chose and how good it is.

    `value` and the bound are exact for functions with finitely many ω, the log-determinant and one's own deterministic
    functions; otherwise they come from samples that had no part in the choice, with standard errors. The confidence
    rests on their means being nearly normal: an ω of a probability below 1/1,000 that carries much of f is seldom seen,
    and the bound is then too low.

    What `select_rows` and `select_nodes` return also knows the file's name, labels and columns, draws its map and
    writes the chosen rows.

    Args:
        indices: the chosen elements, in increasing order.
        value: f(S) of the chosen set.
        value_stderr: its standard error; 0 where it is exact.
        fractional_value: F(x) at the fractional point that was rounded.
        fractional_stderr: its standard error.
        upper_bound: no set of the matroid has a larger f: for certain if `exact`, at 95 % confidence otherwise.
        certificate: which bound was the tighter one: "thresholds", "gradient" or "marginals".
        ratio: f(S)/OPT is at least this: for certain if `exact`, at 95 % confidence otherwise.
        ratio_stderr: the standard error of f(S) over the bound.
        exact: whether `value`, `upper_bound` and `ratio` are certain rather than measured on samples.
        phase: the phase whose set was better: "continuous greedy" or "Frank-Wolfe".
        exchanges: improving exchanges that `polish` made.
        x: the fractional point that was rounded.
        trace: F(x) on the way.
        samples: draws of ω.
        lmo_calls: calls of the matroid's linear oracle.
        sampling_seconds: drawing samples and taking steps; compiling is part of it.
        judging_seconds: measuring F(x) for the trace, choosing between the two sets, polishing.
        certificate_seconds: the report: f(S), F(x) and the upper bound.
        method: what chose, in words.
        title: what was asked for: a file's name and a function's.
        noun: what the elements are: "elements", "rows" or "nodes".
        labels: what the chosen elements are called, where that is not their number: a graph's nodes.
        columns: the columns of a table that rows were compared by.
        left_out: the columns of a table that rows were not compared by, each with the reason.
        notes: what was decided without being asked for, and the argument that asks for something else.
        rows: the chosen rows with all their columns, in the order of the file.
        points: what the map is drawn from: the compared numbers of every row; from a saved selection, the map itself.

    Example:
        >>> import onesfw as fw
        >>> f = fw.submodular.Coverage([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
        >>> chosen = fw.select(f, fw.submodular.UniformMatroid(3, 2), steps=20)
        >>> chosen.value, chosen.upper_bound, chosen.ratio
        (3.0, 3.0, 1.0)
    """

    file_kind = FileKind("onesfw.selection", 1, "selection")

    indices: HostArray
    value: float
    value_stderr: float
    fractional_value: float
    fractional_stderr: float
    upper_bound: float
    certificate: str
    ratio: float
    ratio_stderr: float
    exact: bool
    phase: str
    exchanges: int
    x: HostArray
    trace: Trace
    samples: int
    lmo_calls: int
    sampling_seconds: float
    judging_seconds: float
    certificate_seconds: float
    method: str = "one_sfw, two phases"
    title: str = ""
    noun: str = "elements"
    labels: HostArray | None = None
    columns: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    rows: Rows | None = field(default=None, repr=False, compare=False)
    points: HostArray | None = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float:
        """Wall time in all: sampling, judging and the certificate."""
        return self.sampling_seconds + self.judging_seconds + self.certificate_seconds

    @property
    def names(self) -> HostArray:
        """What the chosen elements are called."""
        return self.indices if self.labels is None else self.labels

    def sheet(self) -> Sheet:
        """The table that is printed, and shown in a notebook."""
        return Sheet(heading(self), ("", ""), lines(self), words=2)

    def draw(self, ax: Axes | None = None) -> Figure:
        """A map of all rows with the chosen ones marked; where there are no rows, F(x) against samples."""
        figure, axes = axes_of(ax, (7.0, 5.5))
        draw_curve(axes, self) if self.points is None else draw_map(axes, self, self.points)
        return figure

    def write(self, path: str | Path) -> None:
        """Write the chosen rows, or nodes, with all their columns: whole or not at all.

        Args:
            path: a file that ends in .csv, .parquet or .npy: the ending is the format. It is replaced.

        Raises:
            ValueError: where the selection has no rows, or they do not fit into that format.
        """
        if self.rows is None:
            raise ValueError("this selection has no rows to write: those of select_rows and select_nodes have")
        ending = row_ending(path)
        self.rows.check(ending)
        with whole_file(path) as file:
            self.rows.write(ending, file)

    def pack(self) -> tuple[dict[str, Json], Tensors]:
        """What the file holds: of `points` the map, two numbers a row."""
        tensors: Tensors = {}
        content: dict[str, Json] = {}
        for entry in fields(self):
            name, value = entry.name, getattr(self, entry.name)
            if name == "trace":
                content[name] = encode_trace(value, tensors)
            elif name in ("columns", "notes"):
                content[name] = list(value)
            elif name == "left_out":
                content[name] = [[other.column, other.reason] for other in value]
            elif name == "rows":
                content[name] = None if value is None else pack_rows(value, tensors)
            elif name == "points":
                content[name] = encode(None if value is None else principal(value), name, tensors)
            else:
                content[name] = encode(value, name, tensors)
        return content, tensors

    @classmethod
    def unpack(cls, content: dict[str, Json], tensors: Tensors) -> Self:
        """The selection that a file holds, ready to print, draw and write."""
        return cls(**decoded(content, tensors))


def decoded(content: dict[str, Json], tensors: Tensors) -> dict[str, Json]:
    """A `Selection`'s fields from the metadata's JSON and the tensors."""
    values: dict[str, Json] = {}
    for name, node in content.items():
        if name == "trace":
            values[name] = decode_trace(node, tensors)
        elif name in ("columns", "notes"):
            values[name] = tuple(node)
        elif name == "left_out":
            values[name] = tuple(LeftOut(column, reason) for column, reason in node)
        elif name == "rows":
            values[name] = None if node is None else unpack_rows(node, tensors)
        else:
            values[name] = decode(node, tensors)
    return values


def heading(selection: Selection) -> str:
    """The line above a table."""
    return selection.title or f"selection by {selection.method}"


def lines(selection: Selection) -> list[tuple[str, str]]:
    """Names and figures for the eye; long cells in several lines."""
    s = selection
    sure = "" if s.exact else " at 95 % confidence"
    names = ", ".join(str(name) for name in s.names[:SHOWN]) + (", …" if s.indices.size > SHOWN else "")
    table = [
        ("chosen", f"{s.indices.size} of {s.x.size:,} {s.noun}: {names}"),
        ("value", f"{s.value:.6g}" + ("" if s.exact else f" ± {s.value_stderr:.2g}")),
        ("fractional value", f"{s.fractional_value:.6g}"),
        ("upper bound on the best", f"{s.upper_bound:.6g}{sure} (by {s.certificate})"),
        ("certified ratio", f"{s.ratio:.4f}{sure}"),
        ("the better set came from", s.phase),
    ]
    if s.columns:
        table.append(("compared by", ", ".join(s.columns)))
    if s.left_out:
        table.append(("not compared by", ", ".join(f"{other.column} ({other.reason})" for other in s.left_out)))
    table += [
        ("samples", f"{s.samples:,}"),
        ("LMO calls", f"{s.lmo_calls:,}"),
        ("seconds", f"{s.seconds:.3g}"),
        ("  sampling", f"{s.sampling_seconds:.3g}"),
        ("  judging", f"{s.judging_seconds:.3g}"),
        ("  certificate", f"{s.certificate_seconds:.3g}"),
    ]
    return [(name, fill(cell, WIDTH)) for name, cell in table]


def selection_table(selection: Selection) -> Table:
    """The same as a Rich table with lines, for the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(heading(selection)), title_justify="left")
    table.add_column("selection", no_wrap=True)
    table.add_column("result", overflow="fold")
    for name, cell in lines(selection):
        table.add_row(Text(name), Text(" ".join(cell.split("\n"))))
    return table


def draw_map(axes: Axes, selection: Selection, points: HostArray) -> None:
    """All rows on their first two principal components, the chosen ones marked."""
    places = principal(points)
    chosen = places[selection.indices]
    alpha = min(1.0, max(0.15, 2_000 / len(places)))
    every = f"{len(places):,} {selection.noun}"
    axes.scatter(places[:, 0], places[:, 1], s=6, color=GREY, linewidths=0, alpha=alpha, label=every)
    axes.scatter(chosen[:, 0], chosen[:, 1], s=42, color=VERMILION, edgecolors="white", label=f"{len(chosen)} chosen")
    axes.set_xlabel("first principal component")
    axes.set_ylabel("second principal component")
    axes.set_title(f"{heading(selection)}\ncertified ratio {selection.ratio:.3f}")
    axes.legend()


def draw_curve(axes: Axes, selection: Selection) -> None:
    """F(x) against the samples drawn, the value of the set and the upper bound."""
    trace = selection.trace
    axes.errorbar(trace.samples, trace.value, trace.value_stderr, color=BLUE, capsize=2, label="F(x)")
    axes.axhline(selection.value, color=VERMILION, label="the set")
    axes.axhline(selection.upper_bound, color=GREY, ls="--", label="upper bound on the best")
    axes.set_xscale("log")
    axes.set_xlabel("samples")
    axes.set_ylabel("f")
    axes.set_title(f"{heading(selection)}\ncertified ratio {selection.ratio:.3f}")
    axes.legend()


def principal(points: HostArray) -> HostArray:
    """The first two principal components of the rows; each one's largest entry is positive, so that they do not flip.

    From the eigenvectors of the smaller of the two products: a map needs no digits that this loses.
    """
    centred = points - points.mean(0)
    wide = centred.shape[0] < centred.shape[1]
    sizes, vectors = np.linalg.eigh(centred @ centred.T if wide else centred.T @ centred)
    top = vectors[:, ::-1][:, :2]
    places = top * np.sqrt(np.maximum(sizes[::-1][:2], 0.0)) if wide else centred @ top
    if places.shape[1] < 2:
        places = np.column_stack([places, np.zeros(len(places))])
    largest = places[np.argmax(np.abs(places), axis=0), np.arange(2)]
    return places * np.where(largest < 0, -1.0, 1.0)
