"""`onesfw select`: what it reads, prints, writes, and how it fails."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from onesfw import cli

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
    for word in ("certified ratio", "3 of 60 rows", "upper bound", "not compared by name, kind", f"out: {out}"):
        assert word in outcome.stdout
    assert "500/500" in outcome.stderr
    lines = out.read_text().splitlines()
    assert lines[0].replace('"', "") == "name,a,b,kind"
    assert {line.replace('"', "").rsplit(",", 1)[1] for line in lines[1:]} == {"g0", "g1", "g2"}
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_json_groups_and_functions(table):
    found = answer(table, "--groups", "kind", "--per-group", 2, "--steps", 200, "--scale")
    assert np.bincount(np.array(found["chosen"]) % 3).tolist() == [2, 2, 2]
    assert 0.8 < found["ratio"] <= 1
    assert found["value"] <= found["upper_bound"]
    assert found["value_stderr"] == 0
    assert len(answer(table, "--k", 4, "--function", "log-determinant", "--steps", 100)["chosen"]) == 4


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
    assert "could not be read as a table" in complaint(bad, "--k", 1, "--out", out)
    bad.write_text("a,b\n1,inf\n3,4\n")
    assert "NaN" in complaint(bad, "--k", 1, "--out", out)
    assert out.read_text() == "precious"
    before = table.read_text()
    assert "would overwrite what is read" in complaint(table, "--k", 1, "--out", table)
    assert table.read_text() == before


def test_mistakes_are_sentences(table, graph, tmp_path):
    for arguments, message in [
        ([table], "--k is missing"),
        ([table, "--k", 61], "--k 61 is more than there are to choose from, 60"),
        ([table, "--k", 0], "--k must be"),
        ([table, "--k", 2, "--function", "facility"], "did you mean 'facility-location'"),
        ([table, "--groups", "kind"], "go together"),
        ([table, "--groups", "sort", "--per-group", 1], "no column 'sort'"),
        ([table, "--groups", "kind", "--per-group", 1, "--k", 2], "--k goes without --groups"),
        ([table, "--k", 2, "--out", tmp_path / "rows.txt"], "must end in .csv or .parquet or .npy"),
        ([table, "--k", 2, "--plot", tmp_path / "map.bmp"], "must end in"),
        ([tmp_path / "none.csv", "--k", 2], "none.csv"),
        ([graph, "--influence"], "--k is missing"),
        ([graph, "--influence", "--k", 2, "--probability", 2], r"lie in [0, 1]"),
        ([graph, "--influence", "--k", 2, "--groups", "x", "--per-group", 1], "is for tables"),
        ([graph, "--influence", "--k", 2, "--out", tmp_path / "n.npy"], "must end in .csv"),
        ([table, "--influence", "--k", 2], "holds no edges"),
        ([table, "--k", 2, "--steps", 1], "steps must be"),
    ]:
        assert message in complaint(*arguments), arguments
    wrong = tmp_path / "edges.txt"
    wrong.write_text("1 2\n3 x\n")
    assert "line 2: two node numbers" in complaint(wrong, "--influence", "--k", 1)
    words = tmp_path / "words.csv"
    words.write_text("a,b\nx,y\n")
    assert "no numeric column" in complaint(words, "--k", 1)
