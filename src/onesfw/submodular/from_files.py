"""`select` on files: rows that represent a table, nodes that reach most of a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from onesfw.arguments import choose, named, whole_number
from onesfw.data.edges import COLUMN, read_edges
from onesfw.data.table_rows import (
    IDENTIFIER,
    Compared,
    LeftOut,
    PathLike,
    Rows,
    from_matrix,
    read_rows,
    row_ending,
)
from onesfw.data.tables import is_number
from onesfw.engine.keys import Key, seed_of
from onesfw.submodular.base import Function
from onesfw.submodular.coverage import Coverage
from onesfw.submodular.facility import FacilityLocation, default_neighbors, similarities
from onesfw.submodular.features import FeatureBased
from onesfw.submodular.influence import WEIGHTED_CASCADE, Influence
from onesfw.submodular.logdet import LogDet
from onesfw.submodular.matroids import LaminarMatroid, Matroid, PartitionMatroid, UniformMatroid
from onesfw.submodular.select import select
from onesfw.submodular.selection import Selection
from onesfw.trees import HostArray

FUNCTIONS = ("facility-location", "log-determinant", "feature-based", "coverage")
MOST_ROWS = 15_000  # similarities of all pairs: 14 bytes each at the peak, 3 GB


def select_rows(
    source: PathLike | HostArray,
    k: int | None = None,
    *,
    function: str = "facility-location",
    groups: str | None = None,
    per_group: int | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    scale: bool = False,
    neighbors: int | None = None,
    items: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    steps: int = 10_000,
    batch: int = 1,
    polish: bool = True,
    key: Key = 0,
    progress: bool = False,
    out: PathLike | None = None,
) -> Selection:
    """Choose the rows that represent a table best, and certify how good the choice is.

    Rows are compared by the numeric columns; those that hold words, or look like an identifier (whole numbers that
    count up, or are all different under a name such as id), are carried along. `Selection.columns` and
    `Selection.left_out` say which; `Selection.write` writes the chosen rows, `Selection.plot` draws their map.

    Args:
        source: a file, CSV (.csv, .tsv, compressed or not), Parquet or .npy, or a matrix. A table is kept in memory:
            at most 256 MB, unpacked, and 5,000,000 rows.
        k: how many rows to choose; with `groups`, how many in all.
        function: "facility-location", each row is served by its most similar chosen one; "log-determinant", the chosen
            rows carry much information together; "feature-based", Σ over columns of the square root of the chosen
            rows' sum; "coverage", a row covers the columns that are not 0 in it, or what `items` lists.
        groups: a column; at most `per_group` rows of each of its values are chosen.
        per_group: the limit within a group.
        columns: the columns to compare rows by, an identifier too if it is named; all numeric ones where left out.
        drop: columns not to compare rows by.
        scale: whether columns are standardised before rows are compared.
        neighbors: for facility location: compare each row with so many nearest ones and take the others for entirely
            dissimilar; None for all of them up to 15,000 rows, 100 of them beyond.
        items: with "coverage": the column that lists what a row covers, separated by | or ; or , or blanks.
        delimiter: what separates the values of a text; a comma, or a tab where the name says .tsv.
        header: whether the first line of a text holds names; the columns are called 1, 2, … otherwise.
        steps: of the run, half of them for each phase.
        batch: samples averaged in each step.
        polish: one sweep of improving exchanges at the end.
        key: an integer seed or a JAX key.
        progress: show a progress bar.
        out: a path that the rows are to be written to later: whether they fit its format is checked before the run.

    Returns:
        The choice with its certificate, the chosen rows and their map.

    Raises:
        OSError: where the file cannot be read.
        TypeError: where an argument is not of its kind.
        ValueError: where an argument, a column or a value is wrong.

    Example:
        >>> import numpy as np
        >>> from onesfw import submodular as sm
        >>> points = np.repeat([[0.0, 0.0], [5.0, 1.0], [0.0, 9.0]], 20, axis=0)
        >>> chosen = sm.select_rows(points, 3, steps=100)
        >>> (chosen.indices // 20).tolist(), chosen.columns
        ([0, 1, 2], ('c0', 'c1'))
    """
    choose(function, FUNCTIONS, "function")
    if (groups is None) != (per_group is None):
        raise ValueError(f"{named('groups')} and {named('per_group')} go together: give both, or neither")
    if groups is None and k is None:
        raise ValueError(f"{named('k')} is missing: how many rows to choose")
    if items is not None and function != "coverage":
        raise ValueError(
            f"{named('items')} goes with {named('function')} coverage: it names the column that lists what a row covers"
        )
    if neighbors is not None and function != "facility-location":
        raise ValueError(f"{named('neighbors')} goes with {named('function')} facility-location")
    ending = None if out is None else row_ending(out)
    check_run(steps, batch, key)
    rows = read_rows(source, delimiter=delimiter, header=header)
    n = rows.table.num_rows
    matroid = limit(n, k) if groups is None else by_group(rows.words(groups, "a group"), per_group, k)
    if ending is not None:
        rows.check(ending)
    if items is None:
        compared = rows.compared(names(columns, "columns"), names(drop, "drop") or (), groups)
    else:
        others = [LeftOut(name, "not asked for") for name in rows.table.column_names if name != items]
        compared = Compared(np.zeros((n, 0)), (items,), tuple(others))
    count = default_neighbors(n, neighbors) if function == "facility-location" else None
    made = row_function(rows, compared, function, scale, count, items)
    what = function + ("" if items is None else f" of {items}")
    what += "" if count is None else f", {count} nearest neighbours"
    title = f"{Path(rows.name).name}: {what}"
    if groups is not None:
        title += f", at most {per_group} for each {groups}" + ("" if k is None else f" and {k} in all")
    chosen = select(made, matroid, steps=steps, batch=batch, polish=polish, key=key, progress=progress)
    return replace(
        chosen,
        title=title,
        noun="rows",
        columns=compared.columns,
        left_out=compared.left_out,
        notes=tuple(notes(compared, n, count if neighbors is None else None)),
        rows=rows.take(chosen.indices),
        points=standardised(compared.features) if scale else compared.features if items is None else None,
    )


def select_nodes(
    source: PathLike | HostArray,
    k: int | None = None,
    *,
    probability: float | str = WEIGHTED_CASCADE,
    directed: bool = False,
    groups: PathLike | Mapping[int, str | int] | None = None,
    per_group: int | None = None,
    steps: int = 10_000,
    batch: int = 1,
    polish: bool = True,
    key: Key = 0,
    progress: bool = False,
) -> Selection:
    """Choose the nodes of a network from which a cascade reaches most others, and certify how good the choice is.

    Args:
        source: a text file with two node numbers a line, compressed or not, or pairs of node numbers.
        k: how many nodes to choose; with `groups`, how many in all.
        probability: that influence passes an edge: a number; "weighted-cascade", one over the number of a node's
            neighbours; or "column", the third column of the file.
        directed: whether influence runs only from the first node of a line to the second.
        groups: each node's group, by a dict or by a file: a table whose first column holds nodes and whose second their
            groups; at most `per_group` nodes of each group are chosen.
        per_group: the limit within a group.
        steps: of the run, half of them for each phase.
        batch: samples averaged in each step.
        polish: one sweep of improving exchanges at the end.
        key: an integer seed or a JAX key.
        progress: show a progress bar.

    Returns:
        The choice with its certificate at 95 % confidence; `labels` are the nodes' numbers in the file.

    Raises:
        OSError: where a file cannot be read.
        TypeError: where an argument is not of its kind.
        ValueError: where an argument or a line is wrong, or a node has no group.

    Example:
        >>> import numpy as np
        >>> from onesfw import submodular as sm
        >>> star = np.array([[7, leaf] for leaf in range(20, 40)])
        >>> sm.select_nodes(star, 1, probability=0.5, steps=100).labels.tolist()
        [7]
    """
    if (groups is None) != (per_group is None):
        raise ValueError(f"{named('groups')} and {named('per_group')} go together: give both, or neither")
    if groups is None and k is None:
        raise ValueError(f"{named('k')} is missing: how many nodes to choose")
    if isinstance(probability, float | int) and not 0 <= probability <= 1:
        raise ValueError(f"{named('probability')} must lie in [0, 1], got {probability:g}")
    check_run(steps, batch, key)
    name = "the edges" if isinstance(source, np.ndarray) else Path(source).name
    if isinstance(source, np.ndarray):
        pairs, chances = source, None
    else:
        pairs, chances = read_edges(source, probability == COLUMN)
    function = Influence(pairs, probability if chances is None else chances, directed=directed)
    matroid = limit(function.n, k) if groups is None else by_group(groups_of(function.nodes, groups), per_group, k)
    how = f"{probability}" if chances is None else "by the third column"
    title = f"{name}: influence, probability {how}"
    if groups is not None:
        title += f", at most {per_group} for each group" + ("" if k is None else f" and {k} in all")
    chosen = select(function, matroid, steps=steps, batch=batch, polish=polish, key=key, progress=progress)
    labels = function.nodes[chosen.indices]
    nodes = from_matrix("the nodes", labels[:, None])
    lines = [str(label).encode() for label in labels.tolist()]
    listed = replace(nodes, table=nodes.table.rename_columns(["node"]), lines=lines, headline=b"node")
    return replace(chosen, title=title, noun="nodes", labels=labels, rows=listed)


def check_run(steps: int, batch: int, key: Key) -> None:
    """Raise an error about the run before a file is read for it."""
    whole_number(steps, "steps", 2)
    whole_number(batch, "batch", 1)
    seed_of(key)


def names(given: Sequence[str] | None, argument: str) -> tuple[str, ...] | None:
    """Column names as a tuple; one word is one name."""
    if given is None:
        return None
    listed = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in listed):
        raise TypeError(f"{named(argument)} must hold names of columns, got {given!r:.200}")
    return listed


def limit(n: int, k: int | None) -> UniformMatroid:
    """At most k of n, or an error about k."""
    wanted = whole_number(k, "k", 1)
    if wanted > n:
        raise ValueError(f"{named('k')} is {wanted:,}, more than there are to choose from, {n:,}")
    return UniformMatroid(n, wanted)


def by_group(labels: Sequence[str], per_group: int | None, k: int | None) -> Matroid:
    """At most `per_group` of each group, and at most k in all where k is given."""
    each = whole_number(per_group, "per_group", 1)
    matroid = PartitionMatroid(labels, each)
    if k is None or whole_number(k, "k", 1) == matroid.rank:
        return matroid
    if k > matroid.rank:
        raise ValueError(f"{named('k')} is {k:,}, more than {each} of each group add up to, {matroid.rank:,}; lower it")
    return LaminarMatroid(matroid.n, [*matroid.family.members, range(matroid.n)], [*matroid.capacities, k])


def groups_of(nodes: HostArray, groups: PathLike | Mapping[int, str | int]) -> list[str]:
    """Each node's group, or an error about a node that has none."""
    if isinstance(groups, Mapping):
        name, known = "the dict", {int(node): str(group) for node, group in groups.items()}
    else:
        name, known = str(groups), group_table(groups)
    missing = next((node for node in nodes.tolist() if node not in known), None)
    if missing is not None:
        raise ValueError(f"{named('groups')}: node {missing} has no group in {name}; every node needs one")
    return [known[node] for node in nodes.tolist()]


def group_table(path: PathLike) -> dict[int, str]:
    """Nodes and groups from the first two columns of a table; a headline is one whose first word is no number."""
    rows = read_rows(path, header=False)
    if rows.table.num_columns < 2:
        raise ValueError(f"{named('groups')}: {rows.name} must have two columns, nodes and their groups")
    first, second = rows.table.column_names[:2]
    nodes, labels = rows.words(first, "a node"), rows.words(second, "a group")
    if not is_number(nodes[0]):
        nodes, labels = nodes[1:], labels[1:]
    known: dict[int, str] = {}
    for node, label in zip(nodes, labels, strict=True):
        try:
            number = int(node)
        except ValueError:
            raise ValueError(
                f"{named('groups')}: {rows.name} has {node[:40]!r} for a node; nodes are whole numbers"
            ) from None
        if known.setdefault(number, label) != label:
            raise ValueError(
                f"{named('groups')}: {rows.name} has node {number} in two groups, {known[number]} and {label}"
            )
    return known


def standardised(features: HostArray) -> HostArray:
    """Columns of mean 0 and variance 1; a constant one becomes 0."""
    spread = features.std(0)
    return (features - features.mean(0)) / np.where(spread > 0, spread, 1.0)


def row_function(
    rows: Rows, compared: Compared, name: str, scale: bool, neighbors: int | None, items: str | None
) -> Function:
    """The set function of that name over the rows."""
    features, n = compared.features, rows.table.num_rows
    if items is not None:
        return Coverage(incidence(rows.items(items)))
    if name == "coverage":
        return Coverage(features != 0)
    if name == "feature-based":
        if scale or features.min() < 0:
            raise ValueError(
                f"{named('function')} feature-based needs numbers that are not negative: leave {named('scale')} out "
                "and shift the columns, or choose another function"
            )
        return FeatureBased(features)
    if scale:
        features = standardised(features)
    if name == "facility-location":
        return FacilityLocation(features=features, neighbors=neighbors)
    if n > MOST_ROWS:
        raise ValueError(
            f"{named('function')} log-determinant compares all pairs, which at most {MOST_ROWS:,} rows allow, and "
            f"{rows.name} has {n:,}: thin it, or choose facility-location"
        )
    return LogDet(similarities(features, "rbf"))


def notes(compared: Compared, n: int, neighbors: int | None) -> Iterator[str]:
    """What was decided without being asked for."""
    for other in compared.left_out:
        if other.reason == IDENTIFIER:
            yield f"column {other.column} looks like an identifier and was left out; {named('columns')} takes it"
    if neighbors is not None:
        yield (
            f"{n:,} rows: each was compared with its {neighbors} nearest, and the certificate is about that; "
            f"{named('neighbors')} chooses another number"
        )


def incidence(lists: list[list[str]]) -> sp.csr_matrix:
    """Rows × items, 1 where a row lists an item."""
    numbers: dict[str, int] = {}
    entries = [(row, numbers.setdefault(item, len(numbers))) for row, items in enumerate(lists) for item in items]
    places = np.array(entries).T
    return sp.csr_matrix((np.ones(len(entries)), places), (len(lists), len(numbers)))
