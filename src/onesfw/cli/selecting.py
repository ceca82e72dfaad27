"""What `onesfw select` reads and writes: tables of rows, and graphs."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onesfw.arguments import choose, whole_number
from onesfw.data.edges import COLUMN, read_edges
from onesfw.data.table_rows import ENDINGS, LeftOut, Rows, read_rows
from onesfw.files import whole_file
from onesfw.results.pictures import save_figure
from onesfw.submodular import (
    FacilityLocation,
    FeatureBased,
    Influence,
    LaminarMatroid,
    LogDet,
    PartitionMatroid,
    UniformMatroid,
)
from onesfw.submodular.base import Function
from onesfw.submodular.matroids import Matroid
from onesfw.submodular.similarities import similarities

if TYPE_CHECKING:
    from onesfw.submodular.select import Selection

FUNCTIONS = ("facility-location", "log-determinant", "feature-based")
MOST_ROWS = 15_000  # similarities of all pairs: 14 bytes each at the peak, 3 GB


class Choice(ABC):
    """A problem to select in, and how its answer is kept."""

    name: str
    title: str
    noun: str
    left_out: list[LeftOut]
    """What the file holds beside what is compared."""
    function: Function
    matroid: Matroid
    labels: np.ndarray
    """What the elements are called."""

    @abstractmethod
    def save(self, result: Selection, path: Path) -> None:
        """Write what was chosen."""

    @abstractmethod
    def draw(self, result: Selection, path: Path) -> None:
        """Save a picture of it."""


class TableChoice(Choice):
    """Rows of a table."""

    noun = "rows"

    def __init__(
        self,
        rows: Rows,
        features: np.ndarray,
        function: Function,
        matroid: Matroid,
        title: str,
        left_out: list[LeftOut],
    ) -> None:
        self.rows, self.features = rows, features
        self.function, self.matroid, self.title, self.left_out = function, matroid, title, left_out
        self.name, self.labels = rows.path.name, np.arange(function.n)

    def save(self, result: Selection, path: Path) -> None:
        """The chosen rows with all their columns, in the order of the file."""
        with whole_file(path) as file:
            self.rows.write(result.indices, path.suffix, file)

    def draw(self, result: Selection, path: Path) -> None:
        """All rows on their first two principal components, the chosen ones marked."""
        from matplotlib.figure import Figure

        centred = self.features - self.features.mean(0)
        flat, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        places = flat[:, :2] * sizes[:2]
        if places.shape[1] < 2:
            places = np.column_stack([places, np.zeros(len(places))])
        figure = Figure(figsize=(7, 6), layout="constrained")
        axes = figure.add_subplot()
        axes.scatter(places[:, 0], places[:, 1], s=6, color="#9aa5b1", linewidths=0, label=f"{len(places):,} rows")
        chosen = places[result.indices]
        axes.scatter(
            chosen[:, 0], chosen[:, 1], s=42, color="#d1495b", edgecolors="white", label=f"{len(chosen)} chosen"
        )
        axes.set_xlabel("first principal component")
        axes.set_ylabel("second principal component")
        axes.set_title(f"{self.name}: certified ratio {result.ratio:.3f}")
        axes.legend()
        save_figure(figure, path)


class GraphChoice(Choice):
    """Nodes of a graph."""

    noun = "nodes"

    def __init__(self, name: str, function: Influence, matroid: Matroid, title: str) -> None:
        self.name, self.function, self.matroid, self.title = name, function, matroid, title
        self.labels, self.left_out = function.nodes, []

    def save(self, result: Selection, path: Path) -> None:
        """The chosen nodes, one a line."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["node"])
        writer.writerows([[int(label)] for label in self.labels[result.indices]])
        with whole_file(path) as file:
            file.write(text.getvalue().encode())

    def draw(self, result: Selection, path: Path) -> None:
        """F(x) against the samples drawn, and the value of the set."""
        from matplotlib.figure import Figure

        trace = result.trace
        figure = Figure(figsize=(7, 5), layout="constrained")
        axes = figure.add_subplot()
        axes.errorbar(trace.samples, trace.value, trace.value_stderr, color="#1f4e86", capsize=2, label="F(x)")
        axes.axhline(result.value, color="#d1495b", label="the set")
        axes.axhline(result.upper_bound, color="#9aa5b1", ls="--", label="upper bound on the best")
        axes.set_xscale("log")
        axes.set_xlabel("reverse-reachable sets")
        axes.set_ylabel("expected nodes reached")
        axes.set_title(f"{self.name}: certified ratio {result.ratio:.3f}")
        axes.legend()
        save_figure(figure, path)


def check_ending(path: Path, graph: bool) -> None:
    """Raise a sentence where an ending names no format that can be written."""
    endings = (".csv",) if graph else ENDINGS
    if path.suffix not in endings:
        raise ValueError(f"--out {path} must end in {' or '.join(endings)}: the ending is the format")


def graph_choice(path: Path, k: int | None, chance: float | str, directed: bool) -> GraphChoice:
    """A graph from a text file of edges."""
    if k is None:
        raise ValueError("--k is missing: how many nodes to choose")
    if isinstance(chance, float) and not 0 <= chance <= 1:
        raise ValueError(f"--probability must lie in [0, 1], got {chance:g}")
    pairs, chances = read_edges(path, chance == COLUMN)
    function = Influence(pairs, chance if chances is None else chances, directed=directed)
    title = "influence, probability " + (str(chance) if chances is None else "by the third column")
    return GraphChoice(path.name, function, limit(function.n, k), title)


def table_choice(
    path: Path,
    k: int | None,
    function: str,
    groups: str | None,
    per_group: int | None,
    scale: bool,
    out: Path | None,
) -> TableChoice:
    """A table's rows, compared by its numeric columns; they must fit into the format of `out`."""
    choose(function, FUNCTIONS, "--function")
    if (groups is None) != (per_group is None):
        raise ValueError("--groups and --per-group go together: give both, or neither")
    if groups is None and k is None:
        raise ValueError("--k is missing: how many rows to choose")
    rows = read_rows(path)
    n = rows.table.num_rows
    if n > MOST_ROWS and function != "feature-based":
        raise ValueError(
            f"{path} has {n:,} rows; all pairs are compared, which at most {MOST_ROWS:,} rows allow: thin the file, or "
            "use onesfw.select with a sparse similarity"
        )
    matroid: Matroid
    if groups is None:
        matroid = limit(n, whole_number(k, "--k", 1))
    else:
        matroid = by_group(rows.groups(groups), whole_number(per_group, "--per-group", 1), k)
    features, left_out = rows.features(groups)
    if out is not None:
        rows.check(out.suffix)
    if function == "feature-based" and (scale or features.min() < 0):
        raise ValueError(
            "--function feature-based needs numbers that are not negative: leave --scale out and shift the columns, or "
            "choose another function"
        )
    if scale:
        spread = features.std(0)
        features = (features - features.mean(0)) / np.where(spread > 0, spread, 1.0)
    title = function if groups is None else f"{function}, at most {per_group} for each {groups}"
    title += "" if groups is None or k is None else f" and {k} in all"
    return TableChoice(rows, features, function_of(function, features), matroid, title, left_out)


def limit(n: int, k: int) -> UniformMatroid:
    """At most k of n, or a sentence about --k."""
    if whole_number(k, "--k", 1) > n:
        raise ValueError(f"--k {k} is more than there are to choose from, {n:,}")
    return UniformMatroid(n, k)


def by_group(labels: np.ndarray, per_group: int, k: int | None) -> Matroid:
    """At most `per_group` of each group, and at most k in all where k is given."""
    matroid = PartitionMatroid(labels, per_group)
    if k is None or whole_number(k, "--k", 1) == matroid.rank:
        return matroid
    if k > matroid.rank:
        raise ValueError(f"--k {k} is more than {per_group} of each group add up to, {matroid.rank:,}; lower --k")
    everything = [np.flatnonzero(matroid.groups == g) for g in range(matroid.capacities.size)]
    return LaminarMatroid(matroid.n, [*everything, range(matroid.n)], [*matroid.capacities, k])


def function_of(name: str, features: np.ndarray) -> Function:
    """The set function of that name over the rows."""
    if name == "feature-based":
        return FeatureBased(features)
    kernel = similarities(features, "rbf")
    return FacilityLocation(kernel) if name == "facility-location" else LogDet(kernel)
