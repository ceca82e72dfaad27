"""`onesfw fit` and `onesfw predict`: the model they promise, whatever the way the rows come, and whatever happens."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import json
import lzma
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from onesfw import cli, storage
from onesfw.cli import training
from onesfw.data import blocks
from onesfw.model import LinearModel
from onesfw.sparse import LOSSES, Learner, Settings

N, D = 600, 30
SMALL = ((0, 0), "", 2000)  # blocks of a few lines


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", SMALL)


def make(seed: int, n=N) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = scipy.sparse.random(n, D, 0.3, format="csr", random_state=rng)
    rows.data = rng.normal(size=rows.nnz).round(4)
    truth = np.where(np.arange(D) < 5, 3.0, 0.0)
    labels = np.where(rows @ truth + rng.normal(size=n) > 0, 1.0, -1.0)
    labels[:2] = -1, 1
    return scipy.sparse.csr_array(rows), labels


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name, seed in (("train.svm", 0), ("test.svm", 1)):
        dump_svmlight_file(*make(seed), str(folder / name), zero_based=False)
    return folder


def onesfw(*arguments, stdin: bytes | None = None):
    return CliRunner().invoke(cli.app, [str(word) for word in arguments], env={"COLUMNS": "120"}, input=stdin)


def fit(*arguments, stdin: bytes | None = None) -> dict:
    """The JSON answer of a run that must succeed."""
    outcome = onesfw("fit", *arguments, "--json", stdin=stdin)
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.count("\n") == 1
    return json.loads(outcome.stdout)


def complaint(*arguments, stdin: bytes | None = None) -> str:
    """The sentence of a call that must fail."""
    outcome = onesfw(*arguments, stdin=stdin)
    assert outcome.exit_code == 2, outcome.output
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("onesfw: ")
    assert outcome.stderr.count("\n") == 1
    return outcome.stderr


def coef(path) -> np.ndarray:
    model = LinearModel.load(path)
    return np.append(model.coef, model.intercept)


BASIC = ("--radius", 5, "--passes", 3, "--buffer", 100)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("constraint", ["l1", "l2", "simplex"])
def test_the_model_is_that_of_the_learner_on_the_same_rows(loss, constraint, files, tmp_path):
    answer = fit(
        files / "train.svm", files / "test.svm", "--loss", loss, "--set", constraint, "--radius", 5, "--passes", 2,
        "--buffer", 1, "--float64", "--model", tmp_path / "m",
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
    outcome = onesfw("fit", files / "train.svm", files / "test.svm", *BASIC, "--model", tmp_path / "new" / "m")
    assert outcome.exit_code == 0, outcome.output
    for row in ("rows", "passes", "progressive loss", "test loss", "accuracy", "AUC", "nonzeros", "norm", "seconds"):
        assert f"│ {row} " in outcome.stdout
    assert f"model: {tmp_path / 'new' / 'm'}" in outcome.stdout
    assert "rows/s" in outcome.stderr
    assert "pass 3/3" in outcome.stderr
    quiet = onesfw("fit", files / "train.svm", *BASIC, "--quiet")
    assert quiet.stderr == ""
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["m"]


@pytest.fixture(scope="module")
def reference(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("reference") / "m"
    before = blocks.Input.blocks.__defaults__
    blocks.Input.blocks.__defaults__ = SMALL
    fit(files / "train.svm", *BASIC, "--model", path)
    blocks.Input.blocks.__defaults__ = before
    return coef(path)


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
    for options in (("--seed", 1), ("--buffer", 1), ("--buffer", 1, "--seed", 1)):
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
    assert "skipped line 302: its label is 7, and the two labels are -1 and 1" in outcome.stderr
    again = fit(*arguments[1:], "--skip-bad", "--cache", tmp_path / "rows")
    assert again["skipped"] == 3
    assert LinearModel.load(tmp_path / "m").training["skipped"] == 3


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
    np.testing.assert_allclose(found[:, 1], rows @ model.coef, rtol=1e-12)
    assert found[:, 0].tolist() == np.where(found[:, 1] > 0, 1.0, -1.0).tolist()
    np.testing.assert_allclose(found[:, 2], 1 / (1 + np.exp(-found[:, 1])), rtol=1e-12)
    piped = onesfw("predict", tmp_path / "m", "-", "--quiet", stdin=(files / "test.svm").read_bytes())
    assert piped.stderr == ""
    assert [line.split(",")[0] for line in piped.stdout.splitlines()[1:]] == [
        "1" if m > 0 else "-1" for m in found[:, 1]
    ]
    unknown = b"0 1:1 500:3\n0 2:1\n"  # labels that stand for `not known`, a feature that was never seen
    piped = onesfw("predict", tmp_path / "m", "-", stdin=unknown)
    assert piped.stdout.splitlines()[1].endswith(f",{float(model.coef[0])!r}")
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
    assert "no probabilities" in complaint("predict", tmp_path / "m", files / "test.svm", "--probabilities")
    outcome = onesfw("predict", tmp_path / "m", files / "test.svm")
    assert "test loss" in outcome.stderr
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
        (["{train}", "--radius", 1, "--loss", "squared", "--intercept"], "needs --intercept-bound"),
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
    (tmp_path / "a.svm").write_text("".join(f"{i % 3} 1:{i % 5}e30\n" for i in range(100)))
    outcome = onesfw("fit", tmp_path / "a.svm", "--loss", "poisson", "--radius", 100, "--model", tmp_path / "m")
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
    assert "could not be written: No space left on device; the run goes on" in outcome.stderr
    assert not (tmp_path / "n").exists()


# Runs that are interrupted, killed and taken up again.


def test_a_checkpoint_belongs_to_one_run(files, tmp_path):
    train = tmp_path / "train.svm"
    train.write_bytes((files / "train.svm").read_bytes())
    arguments = (train, *BASIC, "--checkpoint", tmp_path / "run")
    fit(*arguments)
    for options, words in (
        (("--radius", 6), "another --radius (saved: 5.0, now: 6.0)"),
        (("--seed", 6), "another --seed (saved: 0, now: 6)"),
        (("--buffer", 7), "another --buffer (saved: 100, now: 7)"),
        (("--normalize",), "another --normalize (saved: False, now: True)"),
    ):
        assert words in complaint("fit", *arguments, *options)
    state = tmp_path / "run" / training.STATE
    whole = state.read_bytes()
    state.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "is damaged; choose another path, or delete it" in complaint("fit", *arguments)
    state.write_bytes(whole)
    train.write_bytes((files / "train.svm").read_bytes()[:-200] + b"\n")
    assert "belongs to a run with another file (saved: " in complaint("fit", *arguments)


def test_a_finished_run_can_be_prolonged(files, tmp_path, reference):
    short = ("--radius", 5, "--buffer", 100, "--checkpoint", tmp_path / "run", "--model", tmp_path / "m")
    for passes in (1, 2, 3):
        answer = fit(files / "train.svm", *short, "--passes", passes)
        assert (answer["passes"], answer["steps"]) == (passes, passes * N)
    assert np.array_equal(coef(tmp_path / "m"), reference)
    assert "the run has 3 passes behind it" in complaint("fit", files / "train.svm", *short, "--passes", 2)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("stop_at", [1, 3, 8])
def test_a_run_that_stopped_goes_on_bit_for_bit(cached, stop_at, files, tmp_path, reference, monkeypatch):
    """Stopped as by Ctrl-C after some chunks; the model so far is kept, and the same command goes on."""
    monkeypatch.setattr(training, "INTERVAL", 0.0)
    monkeypatch.setattr(training, "SHARE", 0.0)
    monkeypatch.setattr("onesfw.data.passes.KEPT", 0)
    arguments = ["fit", files / "train.svm", *BASIC, "--checkpoint", tmp_path / "run", "--model", tmp_path / "m"]
    arguments += ["--cache", tmp_path / "rows"] if cached else []
    learn, count = Learner.learn, [0]

    def interrupting(self, *given, **named):
        count[0] += 1
        if count[0] == stop_at:
            os.kill(os.getpid(), signal.SIGINT)
        return learn(self, *given, **named)

    monkeypatch.setattr(Learner, "learn", interrupting)
    outcome = onesfw(*arguments)
    assert outcome.exit_code == 130, outcome.output
    assert ", then interrupted" in outcome.stdout
    steps = LinearModel.load(tmp_path / "m").training["steps"]
    assert 0 < steps < 3 * N
    assert not np.array_equal(coef(tmp_path / "m"), reference)
    answer = fit(*arguments[1:])
    assert answer["steps"] == 3 * N
    assert np.array_equal(coef(tmp_path / "m"), reference)


def test_a_stream_goes_on_where_it_stopped(files, tmp_path, monkeypatch):
    data = (files / "train.svm").read_bytes()
    arguments = ("-", "--features", D, "--radius", 5, "--buffer", 100, "--checkpoint", tmp_path / "run")
    fit(*arguments[:-2], "--model", tmp_path / "whole", stdin=data)
    monkeypatch.setattr(training, "INTERVAL", 0.0)
    monkeypatch.setattr(training, "SHARE", 0.0)
    save, count = training.Saves.save, [0]

    def failing(self, *given):
        save(self, *given)
        count[0] += 1
        if count[0] == 2:
            raise RuntimeError("the power is gone")

    monkeypatch.setattr(training.Saves, "save", failing)
    assert "the power is gone" in onesfw("fit", *arguments, "--quiet", stdin=data).stderr
    assert "does not begin as it did" in complaint("fit", *arguments, "--quiet", stdin=b"1 1:1\n" + data)
    fit(*arguments, "--model", tmp_path / "m", stdin=data)
    assert np.array_equal(coef(tmp_path / "m"), coef(tmp_path / "whole"))


# Imports once, then makes a fresh process for each run: only the run itself is killed.
SERVER = """
import os, sys, json, time
import onesfw.cli, onesfw.cli.fitting, onesfw.cli.training, onesfw.data.passes, onesfw.data.libsvm, sklearn.datasets
from onesfw.data import blocks
from onesfw.sparse import Learner, Settings
blocks.Input.blocks.__defaults__ = ((0, 0), "", 2000)
onesfw.cli.training.INTERVAL = onesfw.cli.training.SHARE = 0.0
onesfw.data.passes.KEPT = 0
save = onesfw.cli.training.Saves.save
def slowly(self, *given):  # so that a run takes longer than it is let live
    save(self, *given)
    time.sleep(0.01)
onesfw.cli.training.Saves.save = slowly
Learner(Settings(3)).compile("float32")
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        sys.argv = ["onesfw", *json.loads(line)]
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0); os.dup2(null, 1); os.dup2(null, 2)
        try:
            onesfw.cli.main()
        except SystemExit as end:
            os._exit(end.code)
    print(pid, flush=True)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


class Server:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, *arguments) -> int:
        self.process.stdin.write(json.dumps([str(word) for word in arguments]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def ended(self) -> int:
        """The exit code, or minus the number of the signal."""
        return os.waitstatus_to_exitcode(int(self.process.stdout.readline()))


@pytest.fixture(scope="module")
def server():
    started = Server()
    yield started
    started.process.communicate(timeout=30)


@pytest.mark.parametrize("cached", [False, True])
def test_sigkill_at_any_moment_changes_nothing(cached, server, files, tmp_path):
    arguments = ["fit", files / "train.svm", "--radius", 5, "--passes", 30, "--buffer", 100]
    server.start(*arguments, "--model", tmp_path / "whole")
    assert server.ended() == 0
    arguments += ["--checkpoint", tmp_path / "run", "--model", tmp_path / "m"]
    arguments += ["--cache", tmp_path / "rows"] if cached else []
    rng, killed = random.Random(0), 0
    for _ in range(10):
        pid = server.start(*arguments)
        time.sleep(rng.uniform(0.0, 0.3))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        ending = server.ended()
        killed += ending == -signal.SIGKILL
        assert ending in (0, -signal.SIGKILL)
        for path in (tmp_path / "run" / training.STATE, tmp_path / "m"):
            if path.exists():  # whole, whenever the kill came
                storage.load_tensors(path.read_bytes())
    assert killed >= 4
    (tmp_path / "run" / f".{training.STATE}.0123.tmp").write_bytes(b"what a kill in the middle of a save leaves")
    server.start(*arguments)
    assert server.ended() == 0
    assert np.array_equal(coef(tmp_path / "m"), coef(tmp_path / "whole"))
    assert len(list((tmp_path / "run").iterdir())) == 2


def test_ctrl_c_keeps_the_model_so_far(server, files, tmp_path):
    pid = server.start("fit", files / "train.svm", "--radius", 5, "--passes", 100_000, "--model", tmp_path / "m")
    time.sleep(1.0)
    os.kill(pid, signal.SIGINT)
    assert server.ended() == 130
    assert 0 < LinearModel.load(tmp_path / "m").training["steps"] < 100_000 * N
