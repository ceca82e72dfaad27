"""`onesfw stability`: the table, JSON, the picture and the file, kinds of columns, mistakes by the options' names."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from onesfw import cli
from onesfw.linear import Stability, select_columns


@pytest.fixture
def csv(tmp_path):
    """Numbers, words, an identifier and a target that two columns and one word decide."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 12))
    colour = rng.choice(["red", "green", "blue"], 160)
    y = np.where(X[:, 1] - X[:, 4] + 2 * (colour == "red") > 0.5, "yes", "no")
    lines = ["id,colour," + ",".join(f"x{j}" for j in range(12)) + ",y"]
    lines += [f"{1000 + i},{colour[i]}," + ",".join(f"{v:.4f}" for v in row) + f",{y[i]}" for i, row in enumerate(X)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def call(*arguments, code=0):
    result = CliRunner().invoke(cli.app, ["stability", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


QUICK = ("--pairs", 8)


def test_the_table_the_picture_and_the_file(csv, tmp_path):
    made = call(csv, "--target", "y", "--drop", "id", "--plot", tmp_path / "p.png", "--save", tmp_path / "s.st", *QUICK)
    assert "Expected false selections: at most" in made.stdout
    assert "colour=red" in made.stdout
    assert (tmp_path / "p.png").stat().st_size > 1000
    kept = Stability.load(tmp_path / "s.st")
    assert {"x1", "x4", "colour=red"} <= {kept.name(j) for j in kept.stable}
    assert kept.columns == 15  # twelve numbers and three words
    again = select_columns(str(csv), target="y", drop=["id"], pairs=8)
    assert np.array_equal(kept.probabilities, again.probabilities)
    assert "half-samples" in made.stderr  # the bar
    assert "half-samples" not in call(csv, "--target", "y", "--drop", "id", "-q", *QUICK).stderr


def test_json_and_a_choice_of_columns(csv):
    options = ("--target", "y", "--columns", "x0,x1", "--columns", "x4", *QUICK)
    found = json.loads(call(csv, *options, "--json", "--expected-false", "none").stdout)
    assert found["columns"] == 3
    assert {line["column"] for line in found["shares"]} <= {"x0", "x1", "x4"}
    assert found["most_selected_by_a_half"] is None
    assert found["expected_false"]["r_concave"] <= found["expected_false"]["none"]
    assert found["half_samples"] == 16
    assert len(found["shares"][0]["by_radius"]) == len(found["radii"])
    assert found == json.loads(call(csv, *options, "--json", "--expected-false", "none", "--jobs", 2).stdout)


def test_numbers_a_stream_of_libsvm_and_no_header(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 6))
    y = 2 * X[:, 2] + rng.normal(size=120)
    (tmp_path / "d.svm").write_text(
        "".join(
            f"{t:.4f} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(row)) + "\n"
            for t, row in zip(y, X, strict=True)
        )
    )
    found = json.loads(call(tmp_path / "d.svm", "--json", *QUICK).stdout)
    assert found["stable"] == ["3"]  # as the file counts
    (tmp_path / "d.csv").write_text(
        "".join(",".join(f"{v:.4f}" for v in (*row, t)) + "\n" for t, row in zip(y, X, strict=True))
    )
    table = json.loads(call(tmp_path / "d.csv", "--no-header", "--target", "7", "--json", *QUICK).stdout)
    assert table["stable"] == ["3"]
    assert table["shares"] == found["shares"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--target is needed"),
        (("--target", "z"), "--target: .*has no column 'z'"),
        (("--target", "y", "--drop", "x99"), "--drop: .*has no column 'x99'"),
        (("--target", "y", "--columns", "x99"), "--columns: .*has no column 'x99'"),
        (("--target", "y", "--columns", "y"), "--columns holds the target"),
        (("--target", "y", "--radii", "2,1"), "--radii must rise.*sort them"),
        (("--target", "y", "--threshold", "0.4"), "--threshold must be"),
        (("--target", "y", "--pairs", "0"), "--pairs must be"),
        (("--target", "y", "--expected-false", "0.0001"), "--expected-false=0.0001 cannot be promised"),
        (("--target", "y", "--assumption", "hope"), "--assumption"),
        (("--target", "y", "--set", "l2"), "--set"),
        (("--target", "y", "--loss", "squared"), "words, and --loss squared needs numbers"),
        (("--target", "y", "--plot", "paths.txt"), "paths.txt"),
        (("--target", "y", "--engine", "gpu"), "--engine='gpu' is not known; choose one of 'linear', 'sweep'"),
        (("--target", "y", "--steps", "9"), "--steps are those of --engine='sweep'"),
    ],
)
def test_mistakes_name_the_option(csv, options, words):
    made = call(csv, *options, code=2)
    assert re.search(words, made.stderr), made.stderr
    assert made.stderr.startswith("onesfw: ")
    assert not made.stdout


def test_wrong_options_are_told_before_rows_are_read(csv, monkeypatch):
    monkeypatch.setattr("onesfw.linear.column_selection.prepare", lambda *args: pytest.fail("rows were read"))
    for options in ("--engine gpu", "--steps 9", "--radii 2,1", "--threshold 0.4", "--pairs 0", "--assumption hope",
                    "--set l2", "--expected-false 0", "--key -1", "--jobs 0"):  # fmt: skip
        call(csv, "--target", "y", *options.split(), code=2)


def test_nothing_is_overwritten_and_bad_rows_have_lines(csv):
    assert "--save" in call(csv, "--target", "y", "--save", csv, code=2).stderr
    text = csv.read_text().splitlines()
    text[3] = text[3].replace(text[3].split(",")[3], "oops")
    csv.write_text("\n".join(text) + "\n")
    assert "line 4" in call(csv, "--target", "y", code=2).stderr
    made = call(csv, "--target", "y", "--drop", "id", "--skip-bad", *QUICK)
    assert "1 row was skipped" in made.stderr


def test_what_does_not_fit_in_memory_is_refused(csv, tmp_path, monkeypatch):
    """One wrong index of a LIBSVM text, or rows that would take all of it."""
    monkeypatch.setattr("onesfw.linear.streaming.memory", lambda: 8 << 30)
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2147483647:1\n-1 1:2\n1 2:1\n")
    assert "--features: a model of 2,147,483,647 features" in call(tmp_path / "a.svm", code=2).stderr
    monkeypatch.setattr("onesfw.linear.column_selection.memory", lambda: 1 << 14)
    assert "data.csv takes more than" in call(csv, "--target", "y", code=2).stderr


def test_remedies_are_things_that_the_command_has(csv, tmp_path):
    lines = csv.read_text().splitlines()
    one = tmp_path / "one.csv"
    one.write_text("\n".join([lines[0], *(line for line in lines[1:] if line.endswith("yes"))]))
    told = " ".join(call(one, "--target", "y", "--drop", "id", code=2).stderr.split())
    assert (
        "the only label is 'yes', and two are needed; give rows with another one too, or choose another --target"
        in told
    )
    few = tmp_path / "few.csv"
    few.write_text("a,y\n" + "\n".join(f"{i}.5,{i % 2}" for i in range(20)) + "\n3.5,2\n")
    told = " ".join(call(few, "--target", "y", code=2).stderr.split())
    assert "only 1 row has the label 2, " in told
    assert "or predict numbers with --loss squared" in told
    piped = CliRunner().invoke(cli.app, ["stability", "-", "--format", "csv", "--target", "y"], input=csv.read_text())
    assert piped.exit_code == 2
    told = " ".join(piped.stderr.split())
    assert "columns of words (colour) are read for their categories first" in told
    assert "save it to a file and give its path, or leave them out with --drop" in told


def test_dense_rows_through_a_sweep(csv):
    options = ("--target", "y", "--drop", "id,colour", "--radii", "0.5,1,2", "--pairs", 4, "--json")
    found = json.loads(call(csv, *options, "--engine", "sweep", "--steps", 5_000).stdout)
    assert {"x1", "x4"} <= set(found["stable"])
    assert found["shares"] != json.loads(call(csv, *options).stdout)["shares"]
    refused = call(csv, *options, "--engine", "sweeps", code=2)
    assert "--engine='sweeps' is not known" in " ".join(refused.stderr.split())
