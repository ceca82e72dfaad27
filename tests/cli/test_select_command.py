"""`onesfw select`: what it reads, prints, writes, and how it fails."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from onesfw import cli
from onesfw.submodular import from_files, selection

ROWS = 60


@pytest.fixture
def table(tmp_path):
    """A CSV file with numbers, a name and a group; three clusters."""
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [5, 5], [0, 9]])
    points = centres[np.arange(ROWS) % 3] + rng.normal(size=(ROWS, 2))
    lines = ["name,a,b,kind"] + [f"row{i},{x:.4f},{y:.4f},g{i % 3}" for i, (x, y) in enumerate(points)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def graph(tmp_path):
    """A text file of edges with a headline, comments and mixed separators: two stars."""
    lines = ["https://example.org/graph", "# a comment", "1 2"]
    lines += [f"1\t{i}" for i in range(3, 30)] + [f"100,{i}" for i in range(101, 120)]
    path = tmp_path / "graph.txt"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def never_selects(monkeypatch):
    """Fails where a run is begun."""

    def select(*arguments, **options):
        raise AssertionError("a run was begun")

    monkeypatch.setattr(from_files, "select", select)


def run(*arguments):
    return CliRunner().invoke(cli.app, ["select", *map(str, arguments)], env={"COLUMNS": "120"})


def answer(*arguments):
    outcome = run(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def complaint(*arguments):
    outcome = run(*arguments)
    assert outcome.exit_code == 2, outcome.output
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("onesfw: ")
    assert outcome.stderr.count("\n") == 1
    return outcome.stderr


def test_table_rows_and_map(table, tmp_path):
    out, plot = tmp_path / "new" / "rows.csv", tmp_path / "new" / "map.png"
    outcome = run(table, "--k", 3, "--steps", 500, "--out", out, "--plot", plot)
    assert outcome.exit_code == 0, outcome.output
    for word in ("certified ratio", "3 of 60 rows", "upper bound", "name (text), kind (text)", f"out: {out}"):
        assert word in outcome.stdout
    assert "500/500" in outcome.stderr
    lines = out.read_text().splitlines()
    assert lines[0] == "name,a,b,kind"
    assert {line.rsplit(",", 1)[1] for line in lines[1:]} == {"g0", "g1", "g2"}
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_json_groups_and_functions(table):
    found = answer(table, "--groups", "kind", "--per-group", 2, "--steps", 200, "--scale")
    assert np.bincount(np.array(found["chosen"]) % 3).tolist() == [2, 2, 2]
    assert 0.8 < found["ratio"] <= 1
    assert found["value"] <= found["upper_bound"]
    assert found["value_stderr"] == 0
    assert len(answer(table, "--k", 4, "--function", "log-determinant", "--steps", 100)["chosen"]) == 4


def test_k_and_groups_together(table):
    """At most two of each kind and k in all; k = 6 is what the groups add up to anyway."""
    both = answer(table, "--k", 4, "--groups", "kind", "--per-group", 2, "--steps", 200)["chosen"]
    assert len(both) == 4
    assert np.bincount(np.array(both) % 3).max() <= 2
    six = [answer(table, *more, "--groups", "kind", "--per-group", 2, "--steps", 100) for more in ((), ("--k", 6))]
    assert six[0]["chosen"] == six[1]["chosen"]


def test_parquet_and_npy(table, tmp_path):
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as pq

    parquet, matrix = tmp_path / "data.parquet", tmp_path / "data.npy"
    whole = arrow_csv.read_csv(table)
    pq.write_table(whole, parquet)
    features = np.column_stack([whole["a"], whole["b"]])
    np.save(matrix, features)
    same = [answer(path, "--k", 5, "--steps", 300)["chosen"] for path in (table, parquet, matrix)]
    assert same[0] == same[1] == same[2]
    for source, ending in ((parquet, "parquet"), (matrix, "npy")):
        assert run(source, "--k", 5, "--steps", 300, "--out", tmp_path / f"out.{ending}").exit_code == 0
    assert pq.read_table(tmp_path / "out.parquet").column_names == ["name", "a", "b", "kind"]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), features[same[0]])


def written(source, out):
    """The numbers of the chosen rows, after they were written to `out`."""
    return answer(source, "--k", 4, "--steps", 100, "--scale", "--out", out)["chosen"]


def test_rows_of_a_csv_are_written_to_the_letter(tmp_path):
    lines = [f'00{i},{i * i % 17}.50,"a, {i}",caf\xe9 {i},True' for i in range(20)]
    source, out = tmp_path / "data.csv", tmp_path / "rows.csv"
    source.write_bytes("\n".join(["code,x,words,place,kept", *lines, ""]).encode("latin-1"))
    chosen = written(source, out)
    assert out.read_bytes().decode("latin-1").split("\n") == ["code,x,words,place,kept"] + [
        lines[i] for i in chosen
    ] + [""]


@pytest.mark.parametrize("dtype", ["int16", "float32", "bool", ">i4", "uint64"])
def test_rows_of_a_matrix_are_written_in_its_dtype(dtype, tmp_path):
    matrix = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, (20, 3)).astype(dtype)
    source, out = tmp_path / "data.npy", tmp_path / "rows.npy"
    np.save(source, matrix)
    chosen = written(source, out)
    kept = np.load(out)
    assert kept.dtype == matrix.dtype
    np.testing.assert_array_equal(kept, matrix[chosen])


def test_rows_of_parquet_are_written_in_their_types(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    whole = pa.table(
        {
            "small": rng.integers(-9, 9, 20).astype(np.int16),
            "name": [f"row {i}" for i in range(20)],
            "real": rng.normal(size=20).astype(np.float32),
            "when": pa.array(np.arange(20), pa.timestamp("s")),
            "words": [["a"] * i for i in range(20)],
        }
    )
    source, out = tmp_path / "data.parquet", tmp_path / "rows.parquet"
    pq.write_table(whole, source)
    chosen = written(source, out)
    assert pq.read_table(out).equals(pq.read_table(source).take(chosen))
    assert "cannot be written as .csv" in complaint(source, "--k", 2, "--out", tmp_path / "rows.csv")
    found = answer(source, "--k", 2, "--steps", 10)
    assert [other["column"] for other in found["left_out"]] == ["name", "when", "words"]


def test_a_matrix_is_written_only_where_no_column_is_lost(table, tmp_path, never_selects):
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = tmp_path / "rows.npy"
    out.write_bytes(b"precious")
    assert "column 'name' is of type string" in complaint(table, "--k", 2, "--out", out)
    large = tmp_path / "large.parquet"
    pq.write_table(pa.table({"id": [2**53 + 1, 1], "x": [0.5, 1.5]}), large)
    assert "whole numbers of column 'id'" in complaint(large, "--k", 1, "--out", out)
    assert out.read_bytes() == b"precious"


def test_numbers_of_a_csv_are_written_as_a_matrix(tmp_path):
    source, out = tmp_path / "data.csv", tmp_path / "rows.npy"
    numbers = np.column_stack([np.arange(20), np.random.default_rng(0).normal(size=20).round(3), np.arange(20) % 2])
    source.write_text("a,b,g\n" + "".join(f"{int(a)},{b},{int(g)}\n" for a, b, g in numbers))
    chosen = answer(source, "--groups", "g", "--per-group", 2, "--steps", 50, "--out", out)["chosen"]
    np.testing.assert_array_equal(np.load(out), numbers[chosen])


def test_what_is_not_compared_is_said_with_its_reason(tmp_path):
    source = tmp_path / "data.csv"
    source.write_text("a,b,c,kind\n" + "".join(f"{i * i},{'oops' if i == 7 else i},w{i},{i % 2}\n" for i in range(12)))
    found = answer(source, "--groups", "kind", "--per-group", 1, "--steps", 20)
    assert found["left_out"] == [
        {"column": "b", "reason": "row 7 holds 'oops', which is no number"},
        {"column": "c", "reason": "text"},
        {"column": "kind", "reason": "the groups"},
    ]
    shown = run(source, "--k", 1, "--steps", 20, "-q").stdout
    assert "not compared by" in shown
    assert "b (row 7 holds 'oops', which is no number)" in shown


def test_a_first_line_of_data_is_not_taken_for_names(tmp_path, never_selects):
    source = tmp_path / "data.csv"
    for text in ("1.5,2\n3,4\n", "1,2\n3,4\n", "1,1\n3,4\n", "row0,-0.25,3\nrow1,1.5,4\n"):
        source.write_text(text)
        assert "the first line looks like data, not names" in complaint(source, "--k", 1)


def test_years_and_running_numbers_are_names(tmp_path):
    source = tmp_path / "data.csv"
    source.write_text("0,1,2\n7,1,2\n8,3,4\n9,5,7\n")
    assert answer(source, "--k", 1, "--steps", 20)["n"] == 3
    source.write_text("country,2019,2020\na,1,2\nb,3,4\nc,5,7\n")
    assert answer(source, "--k", 1, "--steps", 20)["n"] == 3


def test_a_missing_group_is_refused_by_its_row(tmp_path, never_selects):
    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet, text = tmp_path / "data.parquet", tmp_path / "data.csv"
    for groups in (["x", None, "y"], [1, None, 2], [1.0, float("nan"), 2.0]):
        pq.write_table(pa.table({"a": [1.0, 2.0, 3.0], "g": groups}), parquet)
        assert "column 'g' has no value in row 1" in complaint(parquet, "--groups", "g", "--per-group", 1)
    for groups in ("x,,y", "1,,2"):
        text.write_text("a,g\n" + "".join(f"{i},{g}\n" for i, g in enumerate(groups.split(","))))
        assert "column 'g' has no value in row 1" in complaint(text, "--groups", "g", "--per-group", 1)


def test_arrow_reads_without_threads(table, monkeypatch):
    import pyarrow.csv as arrow_csv

    threads, read = [], arrow_csv.read_csv

    def reading(stream, read_options, **options):
        threads.append(read_options.use_threads)
        return read(stream, read_options=read_options, **options)

    monkeypatch.setattr(arrow_csv, "read_csv", reading)
    answer(table, "--k", 2, "--steps", 10)
    assert threads == [False]


def test_influence(graph, tmp_path):
    out, plot = tmp_path / "nodes.csv", tmp_path / "curve.svg"
    found = answer(graph, "--influence", "--k", 2, "--probability", 0.5, "--steps", 400, "--out", out, "--plot", plot)
    assert found["chosen"] == [1, 100]
    assert out.read_text() == "node\n1\n100\n"
    assert found["value_stderr"] > 0
    assert plot.read_text().startswith("<?xml")
    directed = answer(graph, "--influence", "--k", 1, "--directed", "--steps", 200, "--probability", 1)
    assert directed["chosen"] == [1]
    assert directed["value"] == pytest.approx(29, abs=1)


def test_nothing_is_written_where_the_input_is_bad(table, tmp_path):
    out = tmp_path / "rows.csv"
    out.write_text("precious")
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n3,\n")
    assert "column 'b': 1 values are missing" in complaint(bad, "--k", 1, "--out", out)
    bad.write_text("a,b\n1,2\n3\n")
    assert "line 3: it has 1 values, and there are 2 columns" in complaint(bad, "--k", 1, "--out", out)
    bad.write_text("a,b\n1,inf\n3,4\n")
    assert "NaN" in complaint(bad, "--k", 1, "--out", out)
    assert out.read_text() == "precious"
    before = table.read_text()
    assert "would overwrite what is read" in complaint(table, "--k", 1, "--out", table)
    assert table.read_text() == before


def test_mistakes_are_sentences(table, graph, tmp_path):
    for arguments, message in [
        ([table], "--k is missing"),
        ([table, "--k", 61], "--k is 61, more than there are to choose from, 60"),
        ([table, "--k", 0], "--k must be"),
        ([table, "--k", 2, "--function", "facility"], "did you mean 'facility-location'"),
        ([table, "--groups", "kind"], "go together"),
        ([table, "--groups", "sort", "--per-group", 1], "no column 'sort'"),
        ([table, "--groups", "kind", "--per-group", 1, "--k", 99], "--k is 99, more than 1 of each group add up to"),
        ([table, "--k", 2, "--out", tmp_path / "rows.txt"], "must end in .csv or .parquet or .npy"),
        ([table, "--k", 2, "--plot", tmp_path / "map.bmp"], "must end in"),
        ([tmp_path / "none.csv", "--k", 2], "none.csv"),
        ([graph, "--influence"], "--k is missing"),
        ([graph, "--influence", "--k", 2, "--probability", 2], "onesfw: --probability must lie in [0, 1], got 2"),
        ([graph, "--influence", "--k", 2, "--probability", "nan"], "--probability must lie in [0, 1], got nan"),
        ([graph, "--influence", "--k", 2, "--groups", "x", "--per-group", 1], "x cannot be read"),
        ([graph, "--influence", "--k", 2, "--per-group", 1], "--groups and --per-group go together"),
        ([graph, "--influence", "--k", 2, "--columns", "a"], "--columns is for tables"),
        ([graph, "--influence", "--k", 2, "--drop", "a"], "--drop is for tables"),
        ([graph, "--influence", "--k", 2, "--neighbors", 5], "--neighbors is for tables"),
        ([graph, "--influence", "--k", 2, "--items", "a"], "--items is for tables"),
        ([graph, "--influence", "--k", 2, "--no-header"], "--no-header is for tables"),
        ([table, "--k", 2, "--columns", "c"], "no column 'c'"),
        ([table, "--k", 2, "--columns", "a,kind"], "--columns: 'kind' of"),
        ([table, "--k", 2, "--drop", "a,b"], "no numeric column to compare rows by"),
        ([table, "--k", 2, "--items", "kind"], "--items goes with --function coverage"),
        ([table, "--k", 2, "--function", "coverage", "--neighbors", 3], "--neighbors goes with --function facility"),
        ([table, "--k", 2, "--neighbors", 0], "onesfw: --neighbors must be"),
        ([graph, "--influence", "--k", 2, "--function", "facility-location"], "--function is for tables"),
        ([graph, "--influence", "--k", 2, "--scale"], "--scale is for tables"),
        ([table, "--k", 2, "--probability", 0], "--probability is for graphs; it goes with --influence"),
        ([table, "--k", 2, "--directed"], "--directed is for graphs"),
        ([graph, "--influence", "--k", 2, "--out", tmp_path / "n.txt"], "must end in .csv"),
        ([table, "--influence", "--k", 2], "holds no edges"),
        ([table, "--k", 2, "--function", "feature-based"], "--function feature-based needs numbers"),
        ([table, "--k", 2, "--steps", 1], "onesfw: --steps must be"),
        ([table, "--k", 2, "--batch", 0], "onesfw: --batch must be"),
        ([table, "--k", 2, "--key", -1], "onesfw: --key must be"),
        ([table, "--k", 2, "--key", 2**32], "onesfw: --key must be a seed in 0..2^32"),
    ]:
        assert message in complaint(*arguments), arguments
    words = tmp_path / "words.csv"
    words.write_text("a,b\nx,y\n")
    assert "no numeric column" in complaint(words, "--k", 1)
    words.write_text("a,b\n1e200,2\n3,4\n")
    assert "column 'a' has numbers beyond 1e+100" in complaint(words, "--k", 1)


def test_bad_edges_are_sentences(tmp_path, never_selects):
    path = tmp_path / "edges.txt"
    for text, options, message in [
        ("1 2 1\n3 x y\n", ["--probability", "column"], "line 2: two node numbers and a probability were expected"),
        ("1 2\n3 x\n", [], "line 2: two node numbers were expected, got '3 x'"),
        ("1 x\n2 3\n", [], "line 1: two node numbers"),
        ("1\n2 3\n", [], "line 1: two node numbers"),
        (
            "# from to p\n1 2 0.5\n",
            [],
            "line 2: two node numbers were expected, got '1 2 0.5'; give --probability column",
        ),
        ("1 2\n", ["--probability", "column"], "line 1: two node numbers and a probability were expected, got '1 2'"),
        ("1 2 0.5 7\n", ["--probability", "column"], "line 1: two node numbers and a probability"),
        ("1,2,5\n", ["--probability", "column"], "line 1: a probability lies in [0, 1], got 5"),
        ("1,2,nan\n", ["--probability", "column"], "line 1: a probability lies in [0, 1], got nan"),
        ("1 2 .5\n1 2 .7\n", ["--probability", "column"], "has the edge 1 2 twice, with different probabilities"),
        ("1 1\n2 2\n", [], "no edge between different nodes"),
        (f"{10**20} 1\n", [], "more than 64 bits"),
    ]:
        path.write_text(text)
        assert message in complaint(path, "--influence", "--k", 1, *options), text


def test_the_third_column_as_probabilities(tmp_path):
    """Node 9 has the most neighbours, but only node 1's arcs are ever open: 1 reaches 2, 3 and itself."""
    path = tmp_path / "edges.csv"
    path.write_text("\ufefffrom,to,p\n1,2,1\n1,3,1.0\n1,2,1\n" + "".join(f"9,{i},0\n" for i in range(20, 40)))
    found = answer(path, "--influence", "--k", 1, "--probability", "column", "--directed", "--steps", 300)
    assert found["chosen"] == [1]
    assert found["value"] == pytest.approx(3, abs=4 * found["value_stderr"])
    assert found["function"] == "influence, probability by the third column"


def test_a_first_line_behind_a_byte_order_mark_is_an_edge(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("\ufeff1 5\n2 3\n")
    assert answer(path, "--influence", "--k", 1, "--steps", 20)["n"] == 4


def test_files_are_replaced_once_the_choice_is_made(table, tmp_path):
    out, plot = tmp_path / "rows.csv", tmp_path / "map.svg"
    out.write_text("old")
    plot.write_text("old")
    assert run(table, "--k", 1, "--steps", 1, "--out", out, "--plot", plot).exit_code == 2
    assert out.read_text() == plot.read_text() == "old"
    assert run(table, "--k", 1, "--steps", 10, "--out", out, "--plot", plot).exit_code == 0
    assert out.read_text().startswith("name,a,b,kind\nrow")
    assert plot.read_text().startswith("<?xml")
    link = tmp_path / "link.svg"
    link.symlink_to(out)
    assert "--plot" in (message := complaint(table, "--k", 1, "--out", out, "--plot", link))
    assert "would overwrite --out" in message


def test_every_option_of_the_run_has_its_effect(table):
    plain = answer(table, "--k", 5, "--steps", 40, "--no-polish")
    again = answer(table, "--k", 5, "--steps", 40, "--no-polish", "--key", 0)
    parts = ("sampling_seconds", "judging_seconds", "certificate_seconds")
    assert plain["seconds"] == pytest.approx(sum(plain[part] for part in parts))
    untimed = dict.fromkeys(("seconds", *parts), 0)
    assert again | untimed == plain | untimed
    assert plain["samples"] == 40
    assert plain["exchanges"] == 0
    polished = answer(table, "--k", 5, "--steps", 40)
    assert polished["exchanges"] > 0
    assert polished["value"] > plain["value"]
    other = answer(table, "--k", 5, "--steps", 40, "--no-polish", "--key", 1)
    assert other["fractional_value"] != plain["fractional_value"]
    batched = answer(table, "--k", 5, "--steps", 40, "--no-polish", "--batch", 3)
    assert batched["samples"] == 120
    assert batched["fractional_value"] != plain["fractional_value"]


def test_scale_makes_columns_count_alike(tmp_path):
    """Clusters in a column of small numbers, beside a column of large ones that says nothing."""
    rng = np.random.default_rng(0)
    kinds = np.arange(30) % 3
    small, large = kinds + 0.01 * rng.normal(size=30), 1e6 * rng.normal(size=30)
    matrix, scaled = tmp_path / "data.npy", tmp_path / "scaled.npy"
    data = np.column_stack([small, large])
    np.save(matrix, data)
    np.save(scaled, (data - data.mean(0)) / data.std(0))
    value, by_scale, by_hand = (
        answer(path, "--k", 3, "--steps", 200, *options)["value"]
        for path, options in ((matrix, []), (matrix, ["--scale"]), (scaled, []))
    )
    assert by_scale == pytest.approx(by_hand, rel=1e-9)
    assert abs(value - by_hand) > 0.1


def test_the_map_marks_the_chosen_rows(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(selection, "save_figure", lambda figure, path: figures.append(figure))
    source = tmp_path / "data.npy"
    points = np.random.default_rng(0).normal(size=(40, 2)) * [5, 1]  # in the plane: a map keeps all distances
    np.save(source, points)
    chosen = answer(source, "--k", 4, "--steps", 100, "--plot", tmp_path / "map.png")["chosen"]
    every, marked = (collection.get_offsets() for collection in figures[0].axes[0].collections)
    assert len(every) == 40
    np.testing.assert_array_equal(marked, every[chosen])
    centred = points - points.mean(0)
    np.testing.assert_allclose(np.linalg.norm(every, axis=1), np.linalg.norm(centred, axis=1))
    assert np.var(every[:, 0]) > np.var(every[:, 1])


# ---- columns, identifiers, lists, groups of nodes, neighbours


def test_columns_used_are_printed_and_identifiers_left_out(tmp_path):
    rng, source = np.random.default_rng(0), tmp_path / "data.csv"
    source.write_text(
        "id,a,b\n" + "".join(f"{i},{x:.3f},{y:.3f}\n" for i, (x, y) in enumerate(rng.normal(size=(30, 2))))
    )
    outcome = run(source, "--k", 3, "--steps", 50)
    assert outcome.exit_code == 0
    shown = " ".join(outcome.stdout.split())
    assert "compared by │ a, b" in shown
    assert "id (looks like an identifier)" in shown
    assert "onesfw: column id looks like an identifier and was left out; --columns takes it" in outcome.stderr
    assert "identifier" not in run(source, "--k", 3, "--steps", 50, "-q").stderr
    found = answer(source, "--k", 3, "--steps", 50, "--columns", "id,a")
    assert found["columns"] == ["id", "a"]
    assert found["notes"] == []
    assert answer(source, "--k", 3, "--steps", 50, "--drop", "a")["columns"] == ["b"]


def test_coverage_from_a_table_of_sets(tmp_path):
    source = tmp_path / "films: all.csv"
    source.write_text("film,genres\na,x|y\nb,y\nc,z\nd,x|y|w\n")
    found = answer(source, "--function", "coverage", "--items", "genres", "--k", 2, "--steps", 50)
    assert (found["chosen"], found["value"], found["function"]) == ([2, 3], 4.0, "coverage of genres")


def test_groups_of_nodes_from_a_second_file(graph, tmp_path):
    groups, out = tmp_path / "groups.csv", tmp_path / "nodes.npy"
    nodes = [*range(1, 30), *range(100, 120)]
    groups.write_text("node,side\n" + "".join(f"{node},{'a' if node in (1, 100) else 'b'}\n" for node in nodes))
    options = ["--influence", "--probability", 0.5, "--groups", groups, "--per-group", 1, "--steps", 200]
    found = answer(graph, *options, "--out", out)["chosen"]
    assert found[0] == 1
    assert 100 not in found
    assert np.load(out).ravel().tolist() == found
    assert "--out" in complaint(graph, *options, "--out", groups)
    groups.write_text("1,a\n")
    assert "onesfw: --groups: node 2 has no group" in complaint(graph, *options)


def test_neighbours_are_said(tmp_path, monkeypatch):
    from onesfw.submodular import facility

    monkeypatch.setattr(facility, "MOST_PAIRED", 20)
    source = tmp_path / "data.npy"
    np.save(source, np.random.default_rng(0).normal(size=(30, 2)))
    monkeypatch.setattr(facility, "NEIGHBORS", 9)
    outcome = run(source, "--k", 2, "--steps", 20)
    assert "30 rows: each was compared with its 9 nearest" in outcome.stderr
    assert "--neighbors chooses another number" in outcome.stderr
    assert "facility-location, 9 nearest neighbours" in outcome.stdout
    assert answer(source, "--k", 2, "--steps", 20, "--neighbors", 5)["function"].endswith("5 nearest neighbours")


def test_a_text_without_a_header(tmp_path, never_selects):
    source = tmp_path / "data.csv"
    source.write_text("1.5;2\n3;4\n")
    assert "or give --no-header" in complaint(source, "--k", 1, "--delimiter", ";")
    assert "--delimiter must be one character" in complaint(source, "--k", 1, "--delimiter", ";;")


@pytest.mark.parametrize("width", [60, 80])
def test_nothing_is_cut_in_a_narrow_terminal(table, width):
    outcome = CliRunner().invoke(
        cli.app, ["select", str(table), "--k", "3", "--steps", "50", "-q"], env={"COLUMNS": str(width)}
    )
    assert "…" not in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= width
    for word in ("upper bound on the best", "the better set came from", "name (text)"):
        assert word in outcome.stdout
