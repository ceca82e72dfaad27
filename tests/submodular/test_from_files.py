"""`select_rows` and `select_nodes`: what they read, choose and say; mistakes name the argument."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onesfw import submodular as sm
from onesfw.data import table_rows
from onesfw.data.blocks import Input
from onesfw.data.prepare import ReadOptions, prepare
from onesfw.submodular import facility
from onesfw.submodular.from_files import incidence

ROWS = 60


def clusters(rows=ROWS):
    rng = np.random.default_rng(0)
    return np.array([[0, 0], [5, 5], [0, 9]])[np.arange(rows) % 3] + rng.normal(size=(rows, 2))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    lines = [f"row{i},{x:.4f},{y:.4f},g{i % 3}" for i, (x, y) in enumerate(clusters())]
    path.write_text("\n".join(["name,a,b,kind", *lines]) + "\n")
    return path


@pytest.fixture
def never_selects(monkeypatch):
    def select(*arguments, **options):
        raise AssertionError("a run was begun")

    monkeypatch.setattr("onesfw.submodular.from_files.select", select)


# ---- rows


def test_rows_of_a_file_and_of_a_matrix(table, tmp_path):
    chosen = sm.select_rows(table, 3, steps=300)
    assert sorted(chosen.indices % 3) == [0, 1, 2]
    assert chosen.columns == ("a", "b")
    assert [(other.column, other.reason) for other in chosen.left_out] == [("name", "text"), ("kind", "text")]
    assert chosen.title == "data.csv: facility-location"
    assert chosen.notes == ()
    chosen.write(tmp_path / "rows.csv")
    lines = table.read_text().splitlines()
    assert (tmp_path / "rows.csv").read_text().splitlines() == [lines[0], *(lines[i + 1] for i in chosen.indices)]
    matrix = np.array([[float(cell) for cell in line.split(",")[1:3]] for line in lines[1:]])
    again = sm.select_rows(matrix, 3, steps=300)
    assert again.indices.tolist() == chosen.indices.tolist()
    assert again.columns == ("c0", "c1")


def test_groups_limit_rows_and_nodes(table, tmp_path):
    by_kind = sm.select_rows(table, groups="kind", per_group=2, steps=100)
    assert np.bincount(by_kind.indices % 3).tolist() == [2, 2, 2]
    edges = np.array([[hub, leaf] for hub in (1, 2, 3) for leaf in range(10 * hub, 10 * hub + 9)])
    nodes = np.unique(edges)
    where = {int(node): "left" if node in (1, 2) else "right" for node in nodes}
    free = sm.select_nodes(edges, 2, probability=0.9, steps=200)
    bound = sm.select_nodes(edges, probability=0.9, groups=where, per_group=1, steps=200)
    assert bound.labels.size == 2
    assert {where[int(node)] for node in bound.labels} == {"left", "right"}
    assert bound.value <= free.value + 5 * free.value_stderr
    for headline in ("", "node,group\n"):
        path = tmp_path / "groups.csv"
        path.write_text(headline + "".join(f"{node},{group}\n" for node, group in where.items()))
        same = sm.select_nodes(edges, probability=0.9, groups=path, per_group=1, steps=200)
        assert same.labels.tolist() == bound.labels.tolist()
    path.write_text("1,left\n2,right\n1,right\n")
    with pytest.raises(ValueError, match=r"groups: .* has node 1 in two groups, left and right"):
        sm.select_nodes(edges, groups=path, per_group=1)
    path.write_text("1,left\nx,right\n")
    with pytest.raises(ValueError, match=r"groups: .* has 'x' for a node"):
        sm.select_nodes(edges, groups=path, per_group=1)
    with pytest.raises(ValueError, match="groups: node 2 has no group"):
        sm.select_nodes(edges, groups={1: "a"}, per_group=1)


def test_an_identifier_does_not_decide(tmp_path):
    """An id of 3,000 would swamp two columns of clusters; it is left out, said, and taken where it is named."""
    points, path = clusters(120), tmp_path / "data.csv"
    for ids, name in ((range(5000, 5120), "key"), (np.random.default_rng(1).permutation(120) * 7, "id")):
        path.write_text(f"{name},a,b\n" + "".join(f"{i},{x},{y}\n" for i, (x, y) in zip(ids, points, strict=True)))
        chosen = sm.select_rows(path, 3, steps=300)
        assert chosen.columns == ("a", "b")
        assert [(other.column, other.reason) for other in chosen.left_out] == [(name, "looks like an identifier")]
        assert chosen.notes == (f"column {name} looks like an identifier and was left out; columns takes it",)
        assert sorted(chosen.indices % 3) == [0, 1, 2]
        named = sm.select_rows(path, 3, columns=[name, "a", "b"], steps=300)
        assert named.columns == (name, "a", "b")
        assert named.notes == ()
        assert named.value != pytest.approx(chosen.value)


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("x", range(10), True),
        ("x", range(100, 200, 5), True),
        ("x", [float(i) for i in range(12)], True),
        ("x", range(9), False),  # few rows count up by chance
        ("x", range(20, 0, -1), False),
        ("x", [1, 2, 4, 7, 11, 16, 22, 29, 37, 46], False),
        ("x", np.arange(10) / 2, False),
        ("x", [3] * 10, False),
        ("id", [4, 1, 9], True),
        ("Customer_ID", [4, 1, 9], True),
        ("Unnamed: 0", [4, 1, 9], True),
        ("id", [4, 1, 4], False),
        ("id", [0.5, 1, 9], False),
        ("width", [4, 1, 9], False),
        ("paid", [4, 1, 9], False),
    ],
)
def test_what_looks_like_an_identifier(name, values, found):
    assert table_rows.is_identifier(name, np.asarray(values, float)) is found


def test_columns_and_drop(table):
    one = sm.select_rows(table, 3, columns=["b"], steps=100)
    assert one.columns == ("b",)
    assert ("a", "not asked for") in [(other.column, other.reason) for other in one.left_out]
    dropped = sm.select_rows(table, 3, drop=["a"], steps=100)
    assert dropped.columns == ("b",)
    assert dropped.indices.tolist() == one.indices.tolist()
    assert ("a", "dropped") in [(other.column, other.reason) for other in dropped.left_out]


def test_coverage_of_columns_and_of_lists(tmp_path):
    path = tmp_path / "films.csv"
    genres = ["Action|Drama", "Science Fiction", "Drama", "Action|Drama|Comedy", ""]
    path.write_text("title,genres\n" + "".join(f"film {i},{some}\n" for i, some in enumerate(genres)))
    chosen = sm.select_rows(path, 2, function="coverage", items="genres", steps=50)
    assert chosen.indices.tolist() == [1, 3]
    assert (chosen.value, chosen.upper_bound, chosen.columns) == (4.0, 4.0, ("genres",))
    assert chosen.title == "films.csv: coverage of genres"
    assert chosen.points is None
    wide = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [1, 1, 0, 2]])
    again = sm.select_rows(wide, 2, function="coverage", steps=50)
    assert (again.indices.tolist(), again.value) == ([1, 3], 4.0)
    rows = table_rows.Rows("a table", pa.table({"x": ["a b", "b;c d", None]}))
    assert rows.items("x") == [["a b"], ["b", "c d"], []]
    np.testing.assert_array_equal(incidence([["a", "b"], ["b"], []]).toarray(), [[1, 1], [0, 1], [0, 0]])


def test_many_rows_are_compared_with_their_nearest(monkeypatch):
    monkeypatch.setattr(facility, "MOST_PAIRED", 100)
    monkeypatch.setattr(facility, "NEIGHBORS", 30)
    points = clusters(150)
    chosen = sm.select_rows(points, 3, steps=300)
    assert chosen.title == "the matrix: facility-location, 30 nearest neighbours"
    assert "150 rows: each was compared with its 30 nearest" in chosen.notes[0]
    assert sorted(chosen.indices % 3) == [0, 1, 2]
    asked = sm.select_rows(points, 3, neighbors=30, steps=300)
    assert (asked.notes, asked.value) == ((), chosen.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "^k is missing: how many rows"),
        ({"k": 61}, "^k is 61, more than there are to choose from, 60"),
        ({"k": 0}, "^k must be"),
        ({"k": 2, "function": "facility"}, "^function='facility' is not known.*did you mean 'facility-location'"),
        ({"groups": "kind"}, "^groups and per_group go together"),
        ({"groups": "sort", "per_group": 1}, "groups: .* has no column 'sort'"),
        ({"groups": "kind", "per_group": 1, "k": 99}, "^k is 99, more than 1 of each group add up to"),
        ({"k": 2, "columns": ["c"]}, "columns: .* has no column 'c'"),
        ({"k": 2, "columns": ["kind"]}, "^columns: 'kind' of .* holds no numbers"),
        ({"k": 2, "drop": ["a", "b"]}, "no numeric column to compare rows by"),
        ({"k": 2, "columns": [3]}, "^columns must hold names"),
        ({"k": 2, "items": "kind"}, "^items goes with function coverage"),
        ({"k": 2, "function": "coverage", "neighbors": 3}, "^neighbors goes with function facility-location"),
        ({"k": 2, "function": "feature-based"}, "^function feature-based needs numbers"),
        ({"k": 2, "neighbors": 0}, "^neighbors must be"),
        ({"k": 2, "steps": 1}, "^steps must be"),
        ({"k": 2, "batch": 0}, "^batch must be"),
        ({"k": 2, "key": -1}, "^key must be"),
        ({"k": 2, "out": "rows.npy"}, "holds numbers, and column 'name'"),
        ({"k": 2, "out": "rows.txt"}, "must end in .csv"),
    ],
)
def test_mistakes_name_the_argument(options, message, table, never_selects):
    with pytest.raises((ValueError, TypeError), match=message):
        sm.select_rows(table, **options)


def test_many_rows_are_too_many_for_a_log_determinant(monkeypatch, never_selects):
    monkeypatch.setattr("onesfw.submodular.from_files.MOST_ROWS", 50)
    with pytest.raises(ValueError, match=r"^function log-determinant compares all pairs"):
        sm.select_rows(clusters(), 2, function="log-determinant")


def test_mistakes_about_nodes(tmp_path, never_selects):
    edges = tmp_path / "edges.txt"
    edges.write_text("1 2\n2 3\n")
    for options, message in [
        ({}, "^k is missing: how many nodes"),
        ({"k": 9}, "^k is 9, more than there are"),
        ({"k": 1, "probability": 2}, "^probability must lie in"),
        ({"k": 1, "per_group": 1}, "^groups and per_group go together"),
        ({"k": 1, "probability": "column"}, "a probability were expected"),
    ]:
        with pytest.raises(ValueError, match=message):
            sm.select_nodes(edges, **options)
    edges.write_text("1 2 3\n")
    with pytest.raises(ValueError, match="give probability column if"):
        sm.select_nodes(edges, 1)


# ---- one reader for fit, predict and select

TEXTS = {
    "commas": ("a.csv", b"x,y,t\n1,2,0\n3,5,1\n4,4,0\n", {}),
    "tabs": ("a.tsv", b"x\ty\tt\n1\t2\t0\n3\t5\t1\n4\t4\t0\n", {}),
    "semicolons": ("a.csv", b"x;y;t\n1;2;0\n3;5;1\n4;4;0\n", {"delimiter": ";"}),
    "a mark, blank lines, carriage returns": ("a.csv", b"\xef\xbb\xbfx,y,t\r\n1,2,0\r\n\r\n3,5,1\r\n4,4,0\r\n", {}),
    "compressed": ("a.csv.gz", gzip.compress(b"x,y,t\n1,2,0\n3,5,1\n4,4,0\n"), {}),
    "compressed under another name": ("a.csv", gzip.compress(b"x,y,t\n1,2,0\n3,5,1\n4,4,0\n"), {}),
    "quotes": ("a.csv", b'"x",y,"t"\n"1",2,0\n3,"5",1\n4,4,0\n', {}),
}


def fitted(path, **options):
    """The rows that `fit` reads."""
    read = ReadOptions(format="csv", classify=False, float64=True, **options)
    return np.vstack([batch.rows.toarray() for batch in prepare(Input(str(path)), read)[1].batches()])


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_file_means_the_same_rows(name, tmp_path):
    file, data, options = TEXTS[name]
    path = tmp_path / file
    path.write_bytes(data)
    rows = table_rows.read_rows(path, **options)
    selected = rows.compared(["x", "y"], (), None).features
    np.testing.assert_array_equal(selected, fitted(path, target="t", **options))
    np.testing.assert_array_equal(selected, [[1, 2], [3, 5], [4, 4]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xef\xbb\xbf", "holds no rows"),
        (b"", "holds no rows"),
        (b"x,t\n", "holds no rows"),
        (b"\nx,t\n1,2\n", "the first line is empty"),
        (b"1.5,2\n3,4\n", "the first line looks like data, not names"),
        (b"x,x\n1,2\n", "two columns 'x'"),
        (b"x,t\n1,2\n3\n", "line 3: it has 1 values, and there are 2 columns"),
        (b'w,t\n"a\nb",1\n3,4\n', "line 2: a value holds a line break"),
        (b"x,t\n1,2\n3\r,4\n", "line 3: it cannot be split into values: a carriage return stands inside it"),
        (b"x\ra,t\n1,2\n", "line 1: it cannot be split into values"),
        (gzip.compress(b"x,t\n1,2\n" * 5000, mtime=0)[:-20], "is damaged after line"),
    ],
)
def test_what_is_refused_is_refused_alike(data, message, tmp_path, never_selects):
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        sm.select_rows(path, 1)
    with pytest.raises(ValueError, match=message):
        fitted(path, target="t")


def test_without_a_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1.5,2\n3,4\n5,9\n")
    chosen = sm.select_rows(path, 2, header=False, steps=20)
    assert chosen.columns == ("1", "2")
    chosen.write(tmp_path / "rows.csv")
    lines = path.read_text().splitlines()
    assert (tmp_path / "rows.csv").read_text().splitlines() == [lines[i] for i in chosen.indices]


def test_a_table_of_tabs_is_written_with_commas(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("x\tw\n1.5\ta, b\n3\tc\n")
    chosen = sm.select_rows(path, 2, steps=20)
    chosen.write(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text() == 'x,w\n1.5,"a, b"\n3,c\n'


def test_kinds_are_decided_by_all_rows(tmp_path, monkeypatch):
    """Whole numbers in the first block, broken ones in a later one."""
    monkeypatch.setattr(Input.blocks, "__defaults__", ((0, 0), "", 100))
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{i * i if i < 100 else i + 0.5},{i % 7}\n" for i in range(200)))
    rows = table_rows.read_rows(path)
    assert rows.table.num_rows == 200
    assert str(rows.table["x"].type) == "double"
    with open(path, "a") as file:
        file.write("1\n")
    with pytest.raises(ValueError, match="line 202: it has 1 values"):
        table_rows.read_rows(path)


def test_decimal_columns_are_numbers(tmp_path):
    from decimal import Decimal

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [Decimal("1.5"), Decimal("2.5"), Decimal("9.0")], "w": list("abc")}), path)
    assert sm.select_rows(path, 2, steps=10).columns == ("x",)


# ---- what is too large, damaged, or claims to be


def measured(script, limit):
    """Run a script in a process of its own and return its peak in MB, and what it printed."""
    # Not `getrusage`: the peak it tells is that of the process which started this one, where that was larger.
    tail = "\nprint(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    done = subprocess.run(
        [sys.executable, "-c", script + tail], capture_output=True, text=True, check=True, timeout=limit
    )
    *said, peak = done.stdout.splitlines()
    return int(peak) // 1024, said


def test_a_small_file_that_expands_is_refused_in_bounded_memory(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b\n")
        line = b"1.0000000000,2.0000000000\n" * 40_000
        for _ in range(450):  # 470 MB
            file.write(line)
    script = (
        "from onesfw.data.table_rows import read_rows\n"
        f"try: read_rows({str(path)!r})\nexcept ValueError as error: print(error)"
    )
    peak, said = measured(script, 300)
    assert "holds more than 256 MB or 5,000,000 rows" in said[0]
    assert peak < 1_500


def test_limits_hold_for_every_format(tmp_path, monkeypatch, never_selects):
    monkeypatch.setattr(table_rows, "MOST_ROWS", 50)
    np.save(tmp_path / "a.npy", np.zeros((60, 2)))
    pq.write_table(pa.table({"x": np.arange(60.0)}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 60)
    for ending in ("npy", "parquet", "csv"):
        with pytest.raises(ValueError, match="all rows are kept in memory"):
            sm.select_rows(tmp_path / f"a.{ending}", 2)
    monkeypatch.setattr("onesfw.data.edges.MOST_EDGES", 3)
    (tmp_path / "edges.txt").write_text("1 2\n" * 4)
    with pytest.raises(ValueError, match="holds more than 3 edges"):
        sm.select_nodes(tmp_path / "edges.txt", 1)


def npy(header: bytes, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 3000000), }\n"),
            "tells of 24,000,000,000,000",
        ),
        (npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n", b"\0" * 31), "is damaged"),
        (npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), \n"), "is no .npy file of numbers"),
        (npy(b"((((((('"), "is no .npy file of numbers"),
        (npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", b"x"), "Python objects"),
        (b"\x93NUMPY", "is no .npy file of numbers"),
        (b"", "is no .npy file of numbers"),
    ],
)
def test_a_damaged_matrix_is_a_sentence(data, message, tmp_path, never_selects):
    path = tmp_path / "a.npy"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        sm.select_rows(path, 1)
