"""`onesfw select`: what it reads, prints, writes, and how it fails."""

from __future__ import annotations

import numpy as np
import pytest
from select_command_checks import answer, complaint, run


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
