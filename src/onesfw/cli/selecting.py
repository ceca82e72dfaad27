"""What `onesfw select` reads and writes: tables of rows, and graphs."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onesfw.arguments import choose, whole_number
from onesfw.pictures import save_figure
from onesfw.storage import whole_file
from onesfw.submodular import FacilityLocation, FeatureBased, Influence, LogDet, PartitionMatroid, UniformMatroid
from onesfw.submodular.base import Function
from onesfw.submodular.facility import similarities
from onesfw.submodular.matroids import Matroid

if TYPE_CHECKING:
    from onesfw.submodular.select import Selection

FUNCTIONS = ("facility-location", "log-determinant", "feature-based")
MOST_ROWS = 15_000  # similarities of all pairs: 12 bytes each
TABLES, GRAPHS = (".csv", ".parquet", ".npy"), (".csv",)


class Choice(ABC):
    """A problem to select in, and how its answer is kept."""

    name: str
    title: str
    noun: str
    note: str
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

    def __init__(self, table: Any, features: np.ndarray, **fields: Any) -> None:
        self.table, self.features = table, features
        for field, value in fields.items():
            setattr(self, field, value)

    def save(self, result: Selection, path: Path) -> None:
        """The chosen rows with all their columns, in the order of the file."""
        with whole_file(path) as file:
            if path.suffix == ".npy":
                np.save(file, self.features[result.indices])
            elif path.suffix == ".parquet":
                import pyarrow.parquet as pq

                pq.write_table(self.table.take(result.indices), file)
            else:
                import pyarrow.csv as arrow_csv

                arrow_csv.write_csv(self.table.take(result.indices), file)

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

    noun, note = "nodes", ""

    def __init__(self, name: str, function: Influence, matroid: Matroid, title: str) -> None:
        self.name, self.function, self.matroid, self.title = name, function, matroid, title
        self.labels = function.nodes

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
    endings = GRAPHS if graph else TABLES
    if path.suffix not in endings:
        raise ValueError(f"--out {path} must end in {' or '.join(endings)}: the ending is the format")


def graph_choice(path: Path, k: int | None, chance: float | str, directed: bool) -> GraphChoice:
    """A graph from a text file of edges."""
    if k is None:
        raise ValueError("--k is missing: how many nodes to choose")
    function = Influence(read_edges(path), chance, directed=directed)
    return GraphChoice(path.name, function, limit(function.n, k), f"influence, probability {chance}")


def read_edges(path: Path) -> np.ndarray:
    """Pairs of node numbers, one a line, separated by blanks, tabs or commas; # begins a comment."""
    from onesfw.data.blocks import Input

    pairs: list[tuple[int, int]] = []
    with Input(str(path)).open() as stream:
        for number, line in enumerate(stream, 1):
            text = line.decode("utf-8", "replace").partition("#")[0].replace(",", " ").split()
            if not text:
                continue
            try:
                pairs.append((int(text[0]), int(text[1])))
            except (ValueError, IndexError):
                if len(pairs) == 0:  # a headline, or the address the file came from
                    continue
                raise ValueError(
                    f"{path}, line {number}: two node numbers were expected, got {line.strip()[:60]!r}"
                ) from None
    if not pairs:
        raise ValueError(f"{path} holds no edges: give text with two node numbers a line, or leave --influence out")
    return np.array(pairs)


def table_choice(
    path: Path, k: int | None, function: str, groups: str | None, per_group: int | None, scale: bool
) -> TableChoice:
    """A table's rows, compared by its numeric columns."""
    choose(function, FUNCTIONS, "--function")
    if (groups is None) != (per_group is None):
        raise ValueError("--groups and --per-group go together: give both, or neither")
    if groups is not None and k is not None:
        raise ValueError("--k goes without --groups, where --per-group says how many to choose")
    if groups is None and k is None:
        raise ValueError("--k is missing: how many rows to choose")
    table = read_table(path)
    if table.num_rows > MOST_ROWS and function != "feature-based":
        raise ValueError(
            f"{path} has {table.num_rows:,} rows; all pairs are compared, which at most {MOST_ROWS:,} rows allow: thin "
            "the file, or use onesfw.select with a sparse similarity"
        )
    if groups is not None and groups not in table.column_names:
        raise ValueError(f"{path} has no column {groups!r}; it has {', '.join(table.column_names[:20])}")
    features, left_out = numeric(table, groups, path)
    if scale:
        spread = features.std(0)
        features = (features - features.mean(0)) / np.where(spread > 0, spread, 1.0)
    matroid: Matroid
    if groups is None:
        matroid = limit(table.num_rows, whole_number(k, "--k", 1))
    else:
        labels = np.array([str(value) for value in table[groups].to_pylist()])
        matroid = PartitionMatroid(labels, whole_number(per_group, "--per-group", 1))
    return TableChoice(
        table,
        features,
        name=path.name,
        title=function if groups is None else f"{function}, at most {per_group} for each {groups}",
        note=f"not compared by {', '.join(left_out)}" if left_out else "",
        function=function_of(function, features),
        matroid=matroid,
        labels=np.arange(table.num_rows),
    )


def limit(n: int, k: int) -> UniformMatroid:
    """At most k of n, or a sentence about --k."""
    if whole_number(k, "--k", 1) > n:
        raise ValueError(f"--k {k} is more than there are to choose from, {n:,}")
    return UniformMatroid(n, k)


def function_of(name: str, features: np.ndarray) -> Function:
    """The set function of that name over the rows."""
    if name == "feature-based":
        return FeatureBased(features)
    kernel = similarities(features, "rbf")
    return FacilityLocation(kernel) if name == "facility-location" else LogDet(kernel)


def read_table(path: Path) -> Any:
    """A table from CSV, Parquet or .npy; a .npy matrix has the columns 0, 1, 2, …."""
    import pyarrow as pa

    from onesfw.data.blocks import Input

    source = Input(str(path))
    if path.suffix == ".npy":
        try:
            matrix = np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} is no .npy file of numbers: {error}") from None
        if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
            raise ValueError(f"{path} must hold a matrix of numbers, a row each, got {matrix.dtype} of {matrix.shape}")
        return pa.table({str(c): matrix[:, c] for c in range(matrix.shape[1])})
    try:
        if source.is_parquet():
            import pyarrow.parquet as pq

            table = pq.read_table(path)
        else:
            import pyarrow.csv as arrow_csv

            with source.open() as stream:
                table = arrow_csv.read_csv(stream)
    except pa.ArrowException as error:
        raise ValueError(f"{path} could not be read as a table: {str(error).splitlines()[0]}") from None
    if table.num_rows == 0:
        raise ValueError(f"{path} holds no rows")
    if len(set(table.column_names)) < table.num_columns:
        raise ValueError(f"{path} has two columns of the same name; rename one")
    return table


def numeric(table: Any, groups: str | None, path: Path) -> tuple[np.ndarray, list[str]]:
    """The numeric columns as a matrix, and the names of the others; a sentence where a number is missing."""
    import pyarrow as pa

    columns, others = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if name == groups or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            others.append(name)
            continue
        if column.null_count:
            raise ValueError(f"{path}, column {name!r}: {column.null_count:,} values are missing; fill them in first")
        values = np.asarray(column.to_numpy(), np.float64)
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{path}, column {name!r} has NaN or infinite values; remove or impute them first")
        columns.append(values)
    if not columns:
        raise ValueError(f"{path} has no numeric column to compare rows by; its columns are {', '.join(others[:20])}")
    return np.column_stack(columns), others
