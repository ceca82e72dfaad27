"""What the tests of `onesfw fit` share: two files, calls that succeed or fail, and a model to compare with."""

from __future__ import annotations

import json

import numpy as np
import scipy.sparse
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from onesfw import cli
from onesfw.data import blocks
from onesfw.linear.model import LinearModel

N, D = 600, 30
SMALL = ((0, 0), "", 2000)  # blocks of a few lines
BASIC = ("--radius", 5, "--passes", 3, "--buffer", 100, "--no-polish")  # a stream and a file are then the same


def make(seed: int, n=N) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = scipy.sparse.random(n, D, 0.3, format="csr", random_state=rng)
    rows.data = rng.normal(size=rows.nnz).round(4)
    truth = np.where(np.arange(D) < 5, 3.0, 0.0)
    labels = np.where(rows @ truth + rng.normal(size=n) > 0, 1.0, -1.0)
    labels[:2] = -1, 1
    return scipy.sparse.csr_array(rows), labels


def write_files(folder):
    """A training and a test file; the folder."""
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


def reference_coef(files, path) -> np.ndarray:
    """What the training file gives with the basic options."""
    before = blocks.Input.blocks.__defaults__
    blocks.Input.blocks.__defaults__ = SMALL
    fit(files / "train.svm", *BASIC, "--model", path)
    blocks.Input.blocks.__defaults__ = before
    return coef(path)
