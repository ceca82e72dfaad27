"""One model from shards: the averages, the correction, the same bits wherever rounds are done, sorted rows refused."""

import os
import pickle
import shutil
import signal
import threading
import time
import tracemalloc
from dataclasses import replace

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from cluster_checks import dask_cluster
from sklearn.exceptions import ConvergenceWarning

from onesfw.linear import LOSSES, Learner, Settings, evaluate, examples, rounds, shards, train
from onesfw.linear.examples import Examples
from onesfw.schedules import constant

LOGISTIC = LOSSES["logistic"]
pytestmark = pytest.mark.filterwarnings("ignore:the Frank-Wolfe gap over all shards")  # short runs, on purpose


def data(seed=0, rows=2_000, columns=12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, np.where(X @ rng.normal(size=columns) + rng.normal(size=rows) > 0, 1.0, -1.0)


def dealt(X, y, parts) -> list[shards.RowShard]:
    return [
        shards.RowShard(number, examples(X[part], y[part], None, X.shape[1], LOGISTIC), 0)
        for number, part in enumerate(parts)
    ]


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf", "simplex", "nonnegative_l1"])
def test_a_learner_goes_on_from_its_averaged_state(constraint):
    X, y = data(rows=400)
    settings = Settings(12, "logistic", constraint, 3.0, intercept=(-np.inf, np.inf))
    rows = examples(X, y, None, 12, LOGISTIC)
    learner = Learner(settings)
    learner.learn_examples(rows, np.arange(200))
    again = shards.learner_at(settings, shards.state_of(learner))
    np.testing.assert_allclose(again.coef, learner.coef, atol=1e-12)
    np.testing.assert_allclose(again.gradient, learner.gradient, atol=1e-12)
    learner.scalars["eta"], learner.scalars["intercept_before"] = 0.0, learner.intercepts  # x_{t−1} = x_t
    for one in (learner, again):
        one.learn_examples(rows, np.arange(200, 400))
    np.testing.assert_allclose(again.coef, learner.coef, atol=1e-9)
    assert again.settings.set.norm(again.coef) <= 3.0 + 1e-9


@pytest.mark.parametrize("schedule", ["c2", "auto"])
def test_one_round_is_the_formula(schedule):
    X, y = data(rows=300)
    settings = Settings(12, "logistic", "l2", 2.0, schedule)
    parts = dealt(X, y, np.array_split(np.arange(300), 3))
    start = shards.State.start(settings)
    for place in range(2):
        start, _ = shards.do_round(settings, start, parts, place, 50)
    state, _ = shards.do_round(settings, start, parts, 2, 50)
    assert state.step == 150
    xs = []
    for part in parts:
        learner = shards.learner_at(settings, start)
        learner.schedule = replace(shards.fixed(learner.schedule), rho=constant(0.0))
        ((rows, order),) = part.round(2, 50, settings)
        learner.learn_examples(rows, order)
        xs.append(learner.coef)
    mean = np.mean(xs, axis=0)
    means = []  # of g over all rows of the round, at x̄⁺ and at x̄
    for x in (mean, start.coefs[0]):
        found = []
        for part in parts:
            ((rows, order),) = part.round(2, 50, settings)
            A, b = rows.matrix.toarray()[order], rows.targets[order]
            found.append(A.T @ (-b / (1 + np.exp(b * (A @ x)))) / 50)
        means.append(np.mean(found, axis=0))
    rho = 1 - np.prod([1 - 2 / t for t in range(100, 150)])
    if schedule == "auto":
        c = (1 + np.sqrt(1 + 4 * start.running["change"][0] / start.running["noise"][0])) / 2
        rho = 50 * c / (100 + 50 * c)
        assert c > 1
    np.testing.assert_allclose(state.coefs[0], mean, rtol=1e-10, atol=1e-12)
    expected = means[0] + (1 - rho) * (start.gradients[0] - means[1])
    np.testing.assert_allclose(state.gradients[0], expected, rtol=1e-9, atol=1e-12)


def test_the_running_means_are_of_change_and_noise():
    X, y = data(rows=400)
    settings = Settings(12, "logistic", "l1", 2.0, intercept=(-np.inf, np.inf))
    (part,) = dealt(X, y, [np.arange(400)])
    first, _ = shards.do_round(settings, shards.State.start(settings), [part], 0, 100)
    second, _ = shards.do_round(settings, first, [part], 1, 100)
    ((rows, order),) = part.round(1, 100, settings)
    A, b = np.c_[rows.matrix.toarray(), np.ones(400)][order], rows.targets[order]
    new, old = (A * (-b / (1 + np.exp(b * (A @ np.r_[at.coefs[0], at.intercepts]))))[:, None] for at in (second, first))
    np.testing.assert_allclose(second.running["change"], np.sum((new - old) ** 2, axis=1).mean(), rtol=1e-9)
    np.testing.assert_allclose(second.running["noise"], np.var(old, axis=0).sum(), rtol=1e-9)


def suboptimality(settings: Settings, rows: Examples, coef: np.ndarray, best: float) -> float:
    return float(evaluate(settings, rows, coef).value[0]) - best


def test_skewed_shards_do_not_stop_at_a_floor():
    X, y = data(1, rows=3_000)
    settings = Settings(12, "logistic", "l1", 2.0)
    rows = examples(X, y, None, 12, LOGISTIC)
    rng = np.random.default_rng(0)
    score = np.where(rng.random(len(y)) < 0.2, -y, y)
    parts = dealt(X, y, np.array_split(np.argsort(score, kind="stable"), 4))
    learner = Learner(settings)
    for _ in range(400):
        learner.learn_examples(rows, rng.permutation(len(y)))
    best = float(evaluate(settings, rows, learner.coef).value[0] - evaluate(settings, rows, learner.coef).gap[0])
    alone = Learner(settings)
    for _ in range(20):
        alone.learn_examples(rows, rng.permutation(len(y)))
    done = rounds.learn_shards(settings, parts, rounds.Split(4, 250), 20)
    assert done.finished
    assert done.rows == 60_000
    ours = suboptimality(settings, rows, done.state.coefs[0], best)
    assert ours < 10 * suboptimality(settings, rows, alone.coef, best) + 1e-4


def test_rows_sorted_by_label_are_refused():
    X, y = data()
    parts = dealt(X, y, np.array_split(np.argsort(y, kind="stable"), 4))
    with pytest.raises(ValueError, match=r"shard \d has no row of a label among its first 100.*sorted by label"):
        rounds.learn_shards(Settings(12, "logistic", "l1", 2.0), parts, rounds.Split(4, 100), 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight files of two row groups each, three labels."""
    place = tmp_path_factory.mktemp("parts")
    for number in range(8):
        X, _ = data(number, rows=120, columns=4)
        labels = np.array(["red", "green", "blue"])[(X[:, :3] + 0.2).argmax(axis=1)]
        table = pa.table({"label": labels, **{f"x{j}": X[:, j] for j in range(4)}})
        pq.write_table(table, place / f"{number}.parquet", row_group_size=60)
    return place


OPTIONS = {"target": "label", "radius": 5.0, "passes": 5, "shards": 2, "round_rows": 100, "buffer": 100}


def test_shards_of_files_learn_and_resume(folder, tmp_path):
    model = train(folder, **OPTIONS, test=folder)
    assert model.coef.shape == (3, 4)
    assert model.training.rows == 960
    assert model.training.steps == 5 * 960
    assert 0 <= model.training.gap < 0.3
    assert model.test.accuracy > 0.75
    train(folder, **{**OPTIONS, "passes": 3}, checkpoint=tmp_path / "run")
    again = train(folder, **OPTIONS, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(again.coef, model.coef)
    with pytest.raises(ValueError, match="another shards"):
        train(folder, **{**OPTIONS, "shards": 4}, checkpoint=tmp_path / "run")


def test_a_gap_that_is_left_is_said(folder):
    with pytest.warns(
        ConvergenceWarning, match="the Frank-Wolfe gap over all shards is .* give more passes, or fewer shards"
    ):
        train(folder, **{**OPTIONS, "passes": 1})


def test_shards_of_rows_in_memory():
    X, y = data(2, rows=600)
    model = train((X, y), radius=3.0, passes=5, shards=3, round_rows=100)
    assert np.mean(model.predict(X.astype(np.float32)) == y) > 0.75
    for wrong, words in (
        ({"shards": 0}, "shards must be"),
        ({"shards": 601}, "more than there are rows, 600"),
        ({"shards": 2, "skip_bad": True}, "exclude each other"),
        ({"shards": 2, "cache": "somewhere"}, "exclude each other"),
        ({"shards": 2, "round_rows": 0}, "round_rows must be"),
    ):
        with pytest.raises(ValueError, match=words):
            train((X, y), radius=3.0, **wrong)


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_dask_workers_that_are_killed_change_nothing(folder, monkeypatch, kills):
    options = {**OPTIONS, "passes": 2 * kills, "round_rows": 200}
    expected = train(folder, **options)
    do_round, victims = rounds.do_round, []
    with dask_cluster() as local, joblib.parallel_config(backend="dask"):

        def killing(settings, state, parts, place, count):
            if place % 4 == 1 and len(victims) < kills:  # in the middle of a round
                while len(local.scheduler.workers) < 2:  # the last one has not come back
                    time.sleep(0.05)
                victims.append(local.workers[len(victims) % 2].pid)
                threading.Timer(0.01, os.kill, (victims[-1], signal.SIGKILL)).start()
            return do_round(settings, state, parts, place, count)

        monkeypatch.setattr(rounds, "do_round", killing)
        found = train(folder, **options)
        assert not {nanny.pid for nanny in local.workers.values()} & set(victims)
    assert len(victims) == kills
    np.testing.assert_array_equal(found.coef, expected.coef)


@pytest.mark.parametrize(("constraint", "labels"), [("l1", None), ("linf", None), ("l1", (0, 1))])
def test_a_worker_needs_at_most_80_bytes_a_feature_and_model(constraint, labels):
    rng = np.random.default_rng(0)
    X = scipy.sparse.csr_array(
        (rng.normal(size=250), rng.integers(20_000, size=250), np.arange(0, 251, 5)), (50, 20_000)
    )
    y = np.where(rng.random(50) < 0.5, 1.0, -1.0)
    targets = y if labels is None else (y > 0).astype(float)
    settings = Settings(20_000, "logistic", constraint, 3.0, intercept=(-np.inf, np.inf), labels=labels)
    part = shards.RowShard(0, examples(X, targets, None, 20_000, LOGISTIC, labels), 0)
    state, _ = shards.do_round(settings, shards.State.start(settings), [part], 0, 10)
    before, rho = shards.Point(state.coefs, state.intercepts), shards.weight_of(settings, state, 10)
    for task in (
        (shards.learn_round, settings, state, part, 1, 10),
        (shards.track, settings, before, before, rho, part, 1, 10),
    ):
        message = len(pickle.dumps(task)) - len(pickle.dumps(part))
        tracemalloc.start()
        task[0](*task[1:])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 2 * message + peak <= 80 * 20_000 * settings.models  # as it comes, and as it is read


def test_rows_kept_from_one_run_are_not_taken_for_those_of_another(tmp_path):
    """A process keeps decoded chunks: of the same files, read in another way, they are other rows."""
    rng = np.random.default_rng(0)
    for number in range(2):
        X = rng.normal(size=(200, 2))
        columns = {"y": X[:, 0] > 0, "z": X[:, 1] > 0, "a": X[:, 0], "b": X[:, 1]}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    options = {"radius": 3.0, "passes": 5, "shards": 2, "round_rows": 50}
    first = train(tmp_path, target="y", drop=["z"], **options)
    second = train(tmp_path, target="z", drop=["y"], **options)
    assert np.argmax(first.coef) == 0
    assert np.argmax(second.coef) == 1
    shards._kept.clear()
    np.testing.assert_array_equal(train(tmp_path, target="z", drop=["y"], **options).coef, second.coef)


@pytest.mark.parametrize("source", ["rows", "files"])
def test_columns_of_unlike_scales_are_divided_by_them(tmp_path, source):
    X, y = data(3, rows=800, columns=3)
    unit = np.array([1.0, 1e-3, 1e3])
    for number, part in enumerate(np.array_split(np.arange(800), 4)):
        columns = {"y": y[part], **{f"x{j}": X[part, j] * unit[j] for j in range(3)}}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    rows = (X * unit, y) if source == "rows" else tmp_path
    options = {"radius": 3.0, "passes": 20, "shards": 2, "round_rows": 100} | (
        {} if source == "rows" else {"target": "y"}
    )
    model = train(rows, **options)
    assert model.scale is not None
    assert np.abs(model.coef * model.scale).sum() <= 3.0 + 1e-9
    assert train(rows, **{**options, "passes": 1}, scale=False).scale is None
    accuracy = np.mean(model.predict((X * unit).astype(np.float32)) == y)
    even = train((X, y), radius=3.0, passes=20, shards=2, round_rows=100)
    assert accuracy > np.mean(even.predict(X.astype(np.float32)) == y) - 0.02


@pytest.mark.parametrize("how", ["has changed", "is gone", "was added"])
def test_files_of_shards_that_are_not_as_they_were_are_refused_by_name(folder, tmp_path, monkeypatch, how):
    place = shutil.copytree(folder, tmp_path / "parts")
    do_round = rounds.do_round

    def spoiling(settings, state, parts, number, count):
        if number == 3:
            if how == "has changed":
                shutil.copy(place / "0.parquet", place / "5.parquet")
            elif how == "is gone":
                (place / "5.parquet").unlink()
            else:
                shutil.copy(place / "0.parquet", place / "9.parquet")
        return do_round(settings, state, parts, number, count)

    monkeypatch.setattr(rounds, "do_round", spoiling)
    name = "9" if how == "was added" else "5"
    words = rf"{name}\.parquet"  # gone, it may be missed before the pass ends
    with pytest.raises(
        (ValueError, OSError), match=words if how == "is gone" else f"{words} {how} since the pass before"
    ):
        train(place, **OPTIONS)
