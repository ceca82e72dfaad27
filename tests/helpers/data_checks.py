"""What the tests of rows from files share: a LIBSVM file and what it holds, short blocks, and a standard input."""

from __future__ import annotations

import io
import sys

import numpy as np
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from onesfw.data.blocks import Input

SMALL = ((0, 0), "", 1000)  # blocks of a few lines


def random_rows(n=300, d=40, seed=0):
    rng = np.random.default_rng(seed)
    rows = scipy.sparse.random(n, d, 0.2, format="csr", random_state=rng)
    rows.data = rng.normal(size=rows.nnz).round(6)
    labels = rng.choice([-1.0, 1.0], n)
    labels[:2] = -1, 1
    return rows, labels


def svm_file(folder):
    """A LIBSVM file of 300 rows, and what it holds."""
    rows, labels = random_rows()
    path = folder / "train.svm"
    dump_svmlight_file(rows, labels, str(path), zero_based=False)
    return path, rows, labels


def stdin_of(data: bytes, monkeypatch) -> Input:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return Input("-")
