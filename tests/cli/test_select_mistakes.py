"""`onesfw select`: what it refuses, what its options do, and what it says."""

from __future__ import annotations

import numpy as np
import pytest
from select_command_checks import answer, complaint, run
from typer.testing import CliRunner

from onesfw import cli
from onesfw.results import show


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
    assert "would overwrite the data" in complaint(table, "--k", 1, "--out", table)
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
    monkeypatch.setattr(show, "save_figure", lambda figure, path: figures.append(figure))
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
