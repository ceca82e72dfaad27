"""`onesfw fit` and `onesfw predict`: the model they promise, whatever the way the rows come, and mistakes in words."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fit_checks import BASIC, SMALL, D, N, coef, complaint, fit, make, onesfw, reference_coef, write_files
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score

from onesfw.data import blocks
from onesfw.linear import LOSSES, Learner, Settings
from onesfw.linear.model import LinearModel


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", SMALL)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def reference(files, tmp_path_factory):
    return reference_coef(files, tmp_path_factory.mktemp("reference") / "m")


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("constraint", ["l1", "l2", "simplex"])
def test_the_model_is_that_of_the_learner_on_the_same_rows(loss, constraint, files, tmp_path):
    answer = fit(
        files / "train.svm", files / "test.svm", "--loss", loss, "--set", constraint, "--radius", 5, "--passes", 2,
        "--buffer", 1, "--float64", "--no-intercept", "--no-polish", "--model", tmp_path / "m",
    )  # fmt: skip
    rows, labels = make(0)
    learner = Learner(Settings(D, loss, constraint, 5.0))
    first = learner.learn(rows, labels)
    learner.learn(rows, labels)
    model = LinearModel.load(tmp_path / "m")
    assert np.array_equal(model.coef, learner.coef)
    assert answer["progressive_loss"] == pytest.approx(first / N, rel=1e-12)
    assert (answer["rows"], answer["passes"], answer["steps"], answer["features"]) == (N, 2, 2 * N, D)
    assert len(answer["pass_seconds"]) == 2
    assert 0 < sum(answer["pass_seconds"]) <= answer["seconds"] + 1e-9
    test_rows, test_labels = make(1)
    margins = test_rows @ learner.coef
    assert answer["test_loss"] == pytest.approx(LOSSES[loss].value(margins, test_labels).mean(), rel=1e-12)
    assert answer["nonzeros"] == np.count_nonzero(learner.coef)
    assert answer["norm"] <= 5 * (1 + 1e-9)
    if loss == "squared":
        assert answer["accuracy"] is answer["auc"] is answer["labels"] is None
    else:
        assert answer["accuracy"] == np.mean((margins > 0) == (test_labels > 0)) > 0.7
        assert answer["auc"] == pytest.approx(roc_auc_score(test_labels, margins), rel=1e-12)
        assert answer["labels"] == [-1, 1]


def test_the_table(files, tmp_path):
    polished = ("--radius", 5, "--passes", 3)
    outcome = onesfw("fit", files / "train.svm", files / "test.svm", *polished, "--model", tmp_path / "new" / "m")
    assert outcome.exit_code == 0, outcome.output
    for row in (
        "rows",
        "passes",
        "polish",
        "training gap",
        "progressive loss",
        "test loss",
        "accuracy",
        "AUC",
        "nonzeros",
        "norm",
        "seconds",
    ):
        assert f"│ {row} " in outcome.stdout
    assert f"model: {tmp_path / 'new' / 'm'}" in outcome.stdout
    assert "rows/s" in outcome.stderr
    assert "pass 3/3" in outcome.stderr
    quiet = onesfw("fit", files / "train.svm", *polished, "--quiet")
    assert quiet.stderr == ""
    unpolished = onesfw("fit", files / "train.svm", "--radius", 500, "--no-polish", "--quiet")
    assert "leave --polish on, raise --passes, or lower --radius" in unpolished.stderr.replace("\n", " ")
    assert ", too large" in unpolished.stdout
    answer = fit(files / "train.svm")  # with a radius of its own
    assert answer["converged"] is True
    assert answer["radius"] > 0
    assert answer["norm"] <= answer["radius"] * (1 + 1e-9)
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["m"]


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_compressed_files_and_streams_give_the_same_model(compress, files, tmp_path, reference):
    data = compress((files / "train.svm").read_bytes())
    (tmp_path / "packed").write_bytes(data)
    fit(tmp_path / "packed", *BASIC, "--model", tmp_path / "m")
    assert np.array_equal(coef(tmp_path / "m"), reference)
    if compress is bytes:
        os.mkfifo(tmp_path / "pipe")
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
        writer.start()
        fit(tmp_path / "pipe", *BASIC, "--features", D, "--cache", tmp_path / "r", "--model", tmp_path / "p")
        writer.join()
        assert np.array_equal(coef(tmp_path / "p"), reference)
    fit("-", *BASIC, "--features", D, "--cache", tmp_path / "rows", "--model", tmp_path / "s", stdin=data)
    assert np.array_equal(coef(tmp_path / "s"), reference)


def test_the_cache_changes_nothing_but_speed(files, tmp_path, reference, monkeypatch):
    rows = tmp_path / "rows"
    monkeypatch.setattr("onesfw.data.passes.KEPT", 0)
    for options in ((), ("--cache", rows), ("--cache", rows)):
        fit(files / "train.svm", *BASIC, *options, "--model", tmp_path / "m")
        assert np.array_equal(coef(tmp_path / "m"), reference)
    monkeypatch.setattr("onesfw.data.passes.reopen", None)
    monkeypatch.setattr("onesfw.data.passes.prepare", None)  # nothing is read but the cache
    fit(files / "train.svm", *BASIC, "--cache", rows, "--model", tmp_path / "m")
    assert np.array_equal(coef(tmp_path / "m"), reference)


def test_a_stale_cache_is_noticed(files, tmp_path, reference):
    rows, train = tmp_path / "rows", tmp_path / "train.svm"
    dump_svmlight_file(*make(5), str(train), zero_based=False)
    fit(train, *BASIC, "--cache", rows)
    train.write_bytes((files / "train.svm").read_bytes())
    outcome = onesfw("fit", train, *BASIC, "--cache", rows, "--model", tmp_path / "m")
    assert "was written with another file, and is written anew" in outcome.stderr
    assert np.array_equal(coef(tmp_path / "m"), reference)


def test_the_seed_shuffles_and_a_buffer_of_one_does_not(files, tmp_path, reference):
    models = []
    for options in (("--key", 1), ("--buffer", 1), ("--buffer", 1, "--key", 1)):
        fit(files / "train.svm", *BASIC, *options, "--model", tmp_path / "m")
        models.append(coef(tmp_path / "m"))
    assert not np.array_equal(models[0], reference)
    assert np.array_equal(models[1], models[2])


def test_intercept_and_normalisation(files, tmp_path):
    text = (files / "train.svm").read_bytes()
    (tmp_path / "a.svm").write_bytes(
        b"\n".join(b"1" + line[line.index(b" ") :] if i % 4 else line for i, line in enumerate(text.split(b"\n")[:-1]))
    )
    answer = fit(tmp_path / "a.svm", *BASIC, "--intercept", "--normalize", "--model", tmp_path / "m")
    model = LinearModel.load(tmp_path / "m")
    assert 0.5 < answer["intercept"] < 10
    assert model.encoding.normalize
    out = tmp_path / "p.csv"
    assert onesfw("predict", tmp_path / "m", tmp_path / "a.svm", "--out", out).exit_code == 0
    rows, _ = make(0)
    norms = np.sqrt(rows.multiply(rows).sum(axis=1))
    margins = (rows @ model.coef) / np.where(norms > 0, norms, 1) + model.intercept
    np.testing.assert_allclose(
        [float(row["margin"]) for row in csv.DictReader(io.StringIO(out.read_text()))], margins, rtol=1e-5, atol=1e-6
    )
    bound = fit(tmp_path / "a.svm", *BASIC, "--intercept-bound", 0.25)
    assert abs(bound["intercept"]) <= 0.25


def test_bad_lines_are_named_or_counted(files, tmp_path, reference):
    lines = (files / "train.svm").read_bytes().split(b"\n")
    for place, line in ((500, b"1 5:x"), (300, b"7 1:1"), (10, b"oops")):
        lines.insert(place, line)
    (tmp_path / "bad.svm").write_bytes(b"\n".join(lines))
    arguments = ("fit", tmp_path / "bad.svm", *BASIC, "--labels=-1,1")
    text = complaint(*arguments, "--quiet")
    assert f"{tmp_path / 'bad.svm'}, line 11: the label 'oops' is not a finite number" in text
    outcome = onesfw(*arguments, "--skip-bad", "--model", tmp_path / "m", "--cache", tmp_path / "rows")
    assert outcome.exit_code == 0, outcome.stderr
    assert "skipped" in outcome.stdout
    assert "bad.svm: 3 rows were skipped: line 11: the label 'oops'" in outcome.stderr
    assert "line 302: its label is 7, and the labels are -1 and 1" in outcome.stderr
    again = fit(*arguments[1:], "--skip-bad", "--cache", tmp_path / "rows")
    assert again["skipped"] == 3
    assert LinearModel.load(tmp_path / "m").training.skipped == 3


def test_a_table_with_words(tmp_path):
    rng = np.random.default_rng(0)
    color, size = rng.choice(["red", "green", "blue"], 500), rng.normal(size=500).round(3)
    likes = np.where((color == "red") | (size > 1), "yes", "no, never")
    table = pa.table({"color": color, "size": size, "likes": likes})
    pq.write_table(table, tmp_path / "a.parquet")
    with open(tmp_path / "a.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([table.column_names, *zip(color, size, likes, strict=True)])
    models = []
    for name in ("a.csv", "a.parquet"):
        path = tmp_path / name
        answer = fit(path, path, "--target", "likes", "--strings", "onehot", "--radius", 20, "--passes", 10,
                     "--buffer", 10**6, "--intercept", "--float64", "--model", tmp_path / "m")  # fmt: skip
        assert answer["labels"] == ["no, never", "yes"]
        assert answer["accuracy"] > 0.9
        models.append(coef(tmp_path / "m"))
    assert np.array_equal(*models)
    outcome = onesfw("predict", tmp_path / "m", tmp_path / "a.csv", "--probabilities")
    found = list(csv.DictReader(io.StringIO(outcome.stdout)))
    assert np.mean([row["prediction"] == like for row, like in zip(found, likes, strict=True)]) == answer["accuracy"]
    assert "accuracy" in outcome.stderr
    (tmp_path / "new.csv").write_text(
        "size,color\n0.5,red\n-1,blue\n0.5,mauve\n"
    )  # no target, another order, a new word
    outcome = onesfw("predict", tmp_path / "m", tmp_path / "new.csv")
    found = list(csv.DictReader(io.StringIO(outcome.stdout)))
    assert [row["prediction"] for row in found[:2]] == ["yes", "no, never"]
    model = LinearModel.load(tmp_path / "m")
    assert float(found[2]["margin"]) == pytest.approx(0.5 * model.coef[0] + model.intercept)  # size is the only number
    assert outcome.stderr == ""


def test_predictions(files, tmp_path):
    fit(files / "train.svm", *BASIC, "--float64", "--model", tmp_path / "m")
    model, (rows, _) = LinearModel.load(tmp_path / "m"), make(1)
    out = tmp_path / "folder" / "p.csv"
    outcome = onesfw("predict", tmp_path / "m", files / "test.svm", "--out", out, "--probabilities")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout == ""
    assert "AUC" in outcome.stderr
    found = np.asarray([list(map(float, line)) for line in list(csv.reader(io.StringIO(out.read_text())))[1:]])
    np.testing.assert_allclose(found[:, 1], rows @ model.coef + model.intercept, rtol=1e-12)
    assert found[:, 0].tolist() == np.where(found[:, 1] > 0, 1.0, -1.0).tolist()
    np.testing.assert_allclose(found[:, 2], 1 / (1 + np.exp(-found[:, 1])), rtol=1e-12)
    piped = onesfw("predict", tmp_path / "m", "-", "--quiet", stdin=(files / "test.svm").read_bytes())
    assert piped.stderr == ""
    assert [line.split(",")[0] for line in piped.stdout.splitlines()[1:]] == [
        "1" if m > 0 else "-1" for m in found[:, 1]
    ]
    unknown = b"0 1:1 500:3\n0 2:1\n"  # labels that stand for `not known`, a feature that was never seen
    piped = onesfw("predict", tmp_path / "m", "-", stdin=unknown)
    assert piped.stdout.splitlines()[1].endswith(f",{float(model.coef[0] + model.intercept)!r}")
    assert piped.stderr == ""


def test_predictions_are_whole_or_not_there(files, tmp_path):
    fit(files / "train.svm", *BASIC, "--model", tmp_path / "m")
    (tmp_path / "bad.svm").write_bytes((files / "test.svm").read_bytes() + b"oops\n")
    (tmp_path / "p.csv").write_text("old")
    text = complaint("predict", tmp_path / "m", tmp_path / "bad.svm", "--out", tmp_path / "p.csv")
    assert f"line {N + 1}: the label 'oops'" in text
    assert (tmp_path / "p.csv").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 3
    assert "would overwrite" in complaint("predict", tmp_path / "m", files / "test.svm", "--out", tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(data[:-3] + b"abc")
    assert "is damaged" in complaint("predict", tmp_path / "m", files / "test.svm")
    (tmp_path / "m").write_bytes(data[:100])
    assert "is not a saved model, or it is damaged" in complaint("predict", tmp_path / "m", files / "test.svm")
    assert "there is no file" in complaint("predict", tmp_path / "none", files / "test.svm")


def test_regression_has_no_probabilities(files, tmp_path):
    fit(files / "train.svm", *BASIC, "--loss", "huber", "--model", tmp_path / "m")
    text = complaint("predict", tmp_path / "m", files / "test.svm", "--probabilities")
    assert "--probabilities: a model of the huber loss has none" in text
    outcome = onesfw("predict", tmp_path / "m", files / "test.svm")
    assert "RMSE" in outcome.stderr
    assert "accuracy" not in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.svm", "--radius", 1], "missing.svm cannot be read: No such file"),
        (["{train}", "missing.svm", "--radius", 1], "missing.svm cannot be read"),
        (["{train}", "--radius", -1], "--radius must be a finite number above 0"),
        (["{train}", "--radius", 1, "--loss", "logstic"], "did you mean 'logistic'"),
        (["{train}", "--radius", 1, "--set", "l3"], "--set='l3' is not known"),
        (["{train}", "--radius", 1, "--schedule", "papier"], "did you mean 'paper'"),
        (["{train}", "--radius", 1, "--passes", 0], "--passes must be a finite number of at least 1"),
        (["{train}", "--radius", 1, "--model", "{train}"], "--model .* would overwrite the data"),
        (["{train}", "--radius", 1, "--cache", "{train}"], "--cache .* would overwrite the data"),
        (["{train}", "--radius", 1, "--features", 5], "line [0-9]+: feature .* is beyond the last one, 5"),
        (["{train}", "--radius", 1, "--format", "csv"], "--target is needed|holds no rows"),
        (["{train}", "--radius", 1, "--no-intercept", "--intercept-bound", 1], "--intercept-bound needs an intercept"),
        (["{train}", "--radius", 1, "--target", "y"], "--target names a column .* give --format csv"),
        (["{train}", "--radius", 1, "--loss", "poisson"], "the Poisson loss needs counts"),
        (["-", "--radius", 1], "--features is needed"),
        (["-", "-", "--radius", 1, "--features", 30], "cannot be both the training and the test file"),
        (["-", "--radius", 1, "--features", 30, "--passes", 2], "can be read only once; give --cache"),
    ],
)  # fmt: skip
def test_mistakes_are_sentences(arguments, words, files):
    words_of_call = [str(word).replace("{train}", str(files / "train.svm")) for word in arguments]
    text = complaint("fit", *words_of_call, "--quiet", stdin=b"1 1:1\n")
    assert re.search(words, text), text


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path):
    (tmp_path / "a.svm").write_text("".join(f"{i % 3} 1:{i % 5}e90\n" for i in range(100)))
    outcome = onesfw(
        "fit", tmp_path / "a.svm", "--loss", "squared", "--radius", 1e99, "--float64", "--model", tmp_path / "m"
    )
    assert outcome.exit_code == 1
    assert "the loss is not finite" in outcome.stderr
    assert not (tmp_path / "m").exists()


def test_a_model_that_cannot_be_written_is_known_before_the_run(files, tmp_path):
    (tmp_path / "file").write_text("")
    assert "something on the way to it is a file" in complaint(
        "fit", files / "train.svm", *BASIC, "--model", tmp_path / "file" / "m"
    )


def test_what_goes_wrong_after_the_training_does_not_cost_the_figures(files, tmp_path, monkeypatch):
    (tmp_path / "bad.svm").write_bytes(b"oops\n")
    outcome = onesfw("fit", files / "train.svm", tmp_path / "bad.svm", *BASIC, "-q", "--model", tmp_path / "m")
    assert outcome.exit_code == 2
    assert "bad.svm, line 1: the label 'oops'" in outcome.stderr
    assert "progressive loss" in outcome.stdout
    assert (tmp_path / "m").exists()
    (tmp_path / "empty.svm").write_bytes(b"")
    outcome = onesfw("fit", files / "train.svm", tmp_path / "empty.svm", *BASIC, "-q")
    assert "empty.svm holds no rows to test on" in outcome.stderr

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    arguments = ("fit", files / "train.svm", "--radius", 5, "-q", "--checkpoint", tmp_path / "run")
    assert onesfw(*arguments).exit_code == 0
    monkeypatch.setattr(os, "fsync", full)
    outcome = onesfw(*arguments, "--passes", 2, "--model", tmp_path / "n")
    assert outcome.exit_code == 2
    assert "progressive loss" in outcome.stdout
    assert "could not be saved (" in outcome.stderr
    assert "No space left on device); the run goes on" in outcome.stderr
    assert not (tmp_path / "n").exists()
