"""Rows like those of RCV1: 70 distinct columns a row from a power law, unit length, labels from a linear model."""

from __future__ import annotations

import io
import lzma
import os
from pathlib import Path

import numpy as np
import scipy.sparse

NONZEROS = 70


def power_law_columns(rng: np.random.Generator, rows: int, columns: int, nonzeros: int) -> np.ndarray:
    """Distinct columns, column j with a probability in proportion to 1/(j + 1), sorted within each row."""
    shares = np.cumsum(1 / np.arange(1, columns + 1))
    shares /= shares[-1]
    out = np.empty((rows, nonzeros), np.int32)
    todo = np.arange(rows)
    draws = 4 * nonzeros
    while len(todo):
        drawn = np.sort(np.searchsorted(shares, rng.random((len(todo), draws))), axis=1)
        new = np.ones(drawn.shape, bool)
        new[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
        enough = new.sum(axis=1) >= nonzeros
        order = np.argsort(np.where(new, rng.random(new.shape), 2.0), axis=1)[enough, :nonzeros]
        out[todo[enough]] = np.sort(np.take_along_axis(drawn[enough], order, axis=1), axis=1)
        todo, draws = todo[~enough], 2 * draws
    return out


def generated(
    rows: int, columns: int, seed: int = 0, nonzeros: int = NONZEROS
) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """(rows of unit length, labels −1 and +1)."""
    rng = np.random.default_rng(seed)
    indices = np.concatenate(
        [power_law_columns(rng, min(5_000, rows - done), columns, nonzeros) for done in range(0, rows, 5_000)]
    )
    values = rng.random(indices.shape) + 0.1
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    indptr = np.arange(0, indices.size + 1, nonzeros, dtype=np.int32)
    matrix = scipy.sparse.csr_matrix((values.ravel(), indices.ravel(), indptr), (rows, columns))
    signal = matrix @ (10 * rng.normal(size=columns))
    return matrix, np.where(signal + 0.3 * rng.normal(size=rows) > 0, 1.0, -1.0)


def real(name: str) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """A LIBSVM file of the folder ONESFW_DATA, rows scaled to unit length; class 1 against the rest."""
    from sklearn.preprocessing import normalize

    matrix, labels = text_set(name)
    return normalize(matrix), np.where(labels == 1, 1.0, -1.0)


def text_set(name: str) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """A LIBSVM file of the folder ONESFW_DATA as it is."""
    from sklearn.datasets import load_svmlight_file

    folder = os.environ.get("ONESFW_DATA")
    if folder is None:
        raise FileNotFoundError("set ONESFW_DATA to the folder with the real data sets")
    path = Path(folder) / f"{name}.xz"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there")
    return load_svmlight_file(io.BytesIO(lzma.decompress(path.read_bytes())))
