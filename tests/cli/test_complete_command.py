"""`onesfw complete`: tables, errors with their standard errors, recommendations, bad lines."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lowrank_checks import planted
from typer.testing import CliRunner

from onesfw.cli import app
from onesfw.lowrank import LowRank

COLUMNS = ["--user", "user", "--item", "item", "--rating", "stars"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ratings")
    rows, cols, values = planted((30, 20), rank=2, share=0.6, noise=0.2, seed=1)
    lines = [f"u{i:03d},film {j},{v:.3f}" for i, j, v in zip(rows, cols, values, strict=True)]
    (folder / "train.csv").write_text("user,item,stars\n" + "\n".join(lines[:-40]) + "\n")
    (folder / "test.csv").write_text("user,item,stars\n" + "\n".join(lines[-40:]) + "\nu999,film 1,0.5\n")
    tabs = [line.replace(",", "\t") for line in ["user,item,stars", *lines[:-40]]]
    (folder / "train.tsv").write_text("\n".join(tabs) + "\n")
    table = {"user": [f"u{i:03d}" for i in rows[:-40]], "item": [f"film {j}" for j in cols[:-40]]}
    pq.write_table(pa.table(table | {"stars": np.round(values[:-40], 3)}), folder / "train.parquet")
    (folder / "users.csv").write_text("user\nu003\nu007\nnobody\n")
    return folder


def call(*arguments):
    return CliRunner().invoke(app, ["complete", *map(str, arguments)])


def figures(*arguments):
    done = call(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_table_of_errors(files, tmp_path):
    done = call(
        files / "train.csv", *COLUMNS, "--test", files / "test.csv", "--radius", "1", "--quiet",
        "--model", tmp_path / "m.safetensors", "--plot", tmp_path / "m.png",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    for word in ("RMSE", "±", "MAE", "rank", "the gap fell below --gap-tol"):
        assert word in done.stdout
    model = LowRank.load(tmp_path / "m.safetensors")
    assert model.test.entries == 41
    assert model.row_labels[0].startswith("u0")
    assert (tmp_path / "m.png").exists()


def test_every_format_means_the_same(files):
    found = [figures(files / f"train.{ending}", *COLUMNS, "--radius", "1") for ending in ("csv", "tsv", "parquet")]
    assert found[0]["value"] == found[1]["value"] == found[2]["value"]
    assert found[0]["path"] is None


def test_recommendations(files, tmp_path):
    out = tmp_path / "best.csv"
    found = figures(
        files / "train.csv", *COLUMNS, "--radius", "1", "--recommend", files / "users.csv", "--k", "2", "--out", out
    )
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["user"] for row in rows] == ["u003", "u003", "u007", "u007", "nobody", "nobody"]
    assert found["unknown_users"] == 1
    seen = {line.split(",")[1] for line in (files / "train.csv").read_text().splitlines() if line.startswith("u003")}
    assert not seen & {row["item"] for row in rows[:2]}
    assert float(rows[0]["prediction"]) >= float(rows[1]["prediction"])


def test_what_a_file_holds_is_told(tmp_path):
    """Names of its own, a line that comes twice, users and items that were never seen."""
    lines = [f"anna {i},{j},{1 + (i * j) % 5}" for i in range(9) for j in range(7) if (i, j) != (3, 2)]
    (tmp_path / "r.csv").write_text("Kunde,Titel,Sterne\n" + "\n".join([*lines, "anna 1,2,5"]) + "\n")
    (tmp_path / "t.csv").write_text("Kunde,Titel,Sterne\nanna 3,2,2\nnobody,2,3\nanna 3,99,3\n")
    (tmp_path / "u.csv").write_text("Kunde\nanna 3\n")
    names = ["--user", "Kunde", "--item", "Titel", "--rating", "Sterne", "--radius", "1", "--quiet"]
    out = tmp_path / "best.csv"
    done = call(
        tmp_path / "r.csv", *names, "--test", tmp_path / "t.csv", "--recommend", tmp_path / "u.csv", "--out", out
    )
    assert done.exit_code == 0, done.output
    assert "1; the mean counts" in done.stdout
    assert "3, 2 of unknown rows or columns" in done.stdout
    assert out.read_text().splitlines()[0] == "Kunde,Titel,place,prediction"
    assert out.read_text().splitlines()[1].startswith("anna 3,2,1,")
    late = call(tmp_path / "r.csv", *names, "--recommend", tmp_path / "none.csv", "--model", tmp_path / "m.safetensors")
    assert late.exit_code == 2
    assert "none.csv cannot be read" in late.stderr
    assert not (tmp_path / "m.safetensors").exists(), "a missing file is found before any work"


def test_the_default_is_a_path(files):
    found = figures(files / "train.csv", *COLUMNS)
    assert found["radius"] == found["path"]["best"]
    assert found["path"]["larger_may_be_better"] is False
    assert len(found["path"]["radii"]) >= 4


def test_files_as_movielens_has_them(files, tmp_path):
    """Without names, with tabs under another ending, or with two colons."""
    lines = (files / "train.tsv").read_text().splitlines()[1:]
    (tmp_path / "u.data").write_text("\n".join(lines) + "\n")
    (tmp_path / "ratings.dat").write_text("\n".join(lines).replace("\t", "::") + "\n")
    names = ["--no-header", "--user", "1", "--item", "2", "--rating", "3", "--radius", "1"]
    known = figures(files / "train.tsv", *COLUMNS, "--radius", "1")["value"]
    refused = call(tmp_path / "u.data", *names)
    assert refused.exit_code == 2
    assert r"give --delimiter='\t'" in refused.stderr
    assert figures(tmp_path / "u.data", *names, "--delimiter", r"\t")["value"] == known
    assert "give --delimiter=':'" in call(tmp_path / "ratings.dat", *names).stderr
    names[4], names[6] = "3", "5"
    assert figures(tmp_path / "ratings.dat", *names, "--delimiter", ":")["value"] == known


def test_two_ridges(files):
    one, two = (figures(files / "train.csv", *COLUMNS, "--radius", "1", "--ridge", r)["value"] for r in ("4,4", "4"))
    assert one == two != figures(files / "train.csv", *COLUMNS, "--radius", "1", "--ridge", "1,9")["value"]


def test_bad_lines_are_named_or_skipped(files, tmp_path):
    text = (files / "train.csv").read_text().splitlines()
    text[3], text[5], text[7] = "u1,film 3,many", "u1,film 3", ",film 2,1.0"
    (tmp_path / "bad.csv").write_text("\n".join(text) + "\n")
    refused = call(tmp_path / "bad.csv", *COLUMNS, "--radius", "1")
    assert refused.exit_code == 2
    assert "line 4" in refused.stderr
    assert "--skip-bad" in refused.stderr
    found = figures(tmp_path / "bad.csv", *COLUMNS, "--radius", "1", "--skip-bad")
    assert found["skipped"] == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--rating", "star"], "--rating: .* has no column 'star'; did you mean 'stars'"),
        (["--radius", "pth"], "--radius='pth' is not known"),
        (["--radius", "-1"], "--radius must be a finite number above 0"),
        (["--loss", "logistic"], "line 2.*−1 or \\+1"),
        (["--user", "item"], "different columns"),
        (["--plot", "m.txt"], "must end in"),
        (["--k", "0"], "--k is for recommendations; give --recommend"),
        (["--delimiter", ";"], "--user: .* its only column is '.*': give --delimiter=','"),
        (["--out", "best.csv"], "--out is for recommendations; give --recommend"),
        (["--recommend", "all", "--k", "0"], "--k must be a finite number of at least 1"),
        (["--recommend", "all", "--out", "best.parquet"], "--out best.parquet must end in .csv or .txt"),
        (["--format", "libsvm"], "--format='libsvm' is not known; choose one of 'csv', 'parquet'"),
        (["--no-biases", "--ridge", "2"], "--ridge shrinks biases, and .*drop one"),
        (["--max-rank", "0"], "--max-rank"),
        (["--ridge", "1,2,3"], "--ridge must be one number, or two for rows and columns"),
        (["--delimiter", "::"], "--delimiter must be one character, got '::'; give ':', and count the empty columns"),
        (["--delimiter", ";|"], "--delimiter must be one character, got ';|'; replace it by one first"),
    ],
)
def test_mistakes_name_the_option(files, change, message):
    import re

    done = call(files / "train.csv", *COLUMNS, "--radius", "1", *change)
    assert done.exit_code == 2
    assert re.search(message, " ".join(done.stderr.split())), done.stderr


def test_outputs_overwrite_no_input(files):
    done = call(files / "train.csv", *COLUMNS, "--model", files / "train.csv")
    assert done.exit_code == 2
    assert "would overwrite the data" in done.stderr


def test_what_does_not_fit_in_memory_is_refused(files, monkeypatch):
    """A small file may expand to ratings without end."""
    monkeypatch.setattr("onesfw.data.ratings.memory", lambda: 64 * 100)
    done = call(files / "train.csv", *COLUMNS, "--radius", "1")
    assert done.exit_code == 2
    assert "train.csv holds more than" in done.stderr


def test_a_stray_carriage_return_is_a_bad_line(files, tmp_path):
    lines = (files / "train.csv").read_text().splitlines()
    lines.insert(5, "u00\r1,film 1,1")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", newline="")
    done = call(tmp_path / "a.csv", *COLUMNS, "--radius", "1", "--quiet")
    assert done.exit_code == 2
    assert "line 6" in done.stderr
    assert figures(tmp_path / "a.csv", *COLUMNS, "--radius", "1", "--skip-bad")["skipped"] == 1
