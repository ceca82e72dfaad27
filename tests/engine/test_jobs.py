"""Independent work on threads, on loky's processes and on a Dask cluster: the bits of the serial run under all."""

import contextlib
import logging
import os
import sys
import unittest.mock

import jax
import jax.numpy as jnp
import joblib
import numpy as np
import pytest
from cluster_checks import dask_cluster
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

import onesfw as fw
from onesfw.engine import jobs
from onesfw.experiments import compare, studies
from onesfw.experiments.paper_tables import Size, plan_rates, run_rates
from onesfw.linear import LOSSES, Settings, examples
from onesfw.linear.stability import stability_selection
from onesfw.sklearn import OneSFWClassifier, OneSFWClassifierCV

PAPER = fw.one_sfw(schedule="paper")
BACKENDS = ("threading", "loky", "dask")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short runs, on purpose


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory):
    """Programs that one process compiled are read by the others."""
    place, patch = str(tmp_path_factory.mktemp("programs")), pytest.MonkeyPatch()
    options = {"compilation_cache_dir": place, "persistent_cache_min_compile_time_secs": 0.0}
    before = {name: getattr(jax.config, f"jax_{name}") for name in options}
    for name, value in options.items():
        patch.setenv(f"JAX_{name.upper()}", str(value))
        jax.config.update(f"jax_{name}", value)
    yield
    patch.undo()
    for name, value in before.items():
        jax.config.update(f"jax_{name}", value)


@pytest.fixture(scope="module")
def cluster():
    with dask_cluster() as local:
        yield local


@pytest.fixture(params=BACKENDS)
def backend(request):
    """A joblib backend with two workers, chosen as a user would."""
    if request.param == "dask":
        request.getfixturevalue("cluster")
    options = {} if request.param == "dask" else {"n_jobs": 2}
    with joblib.parallel_config(backend=request.param, **options):
        yield request.param


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300]


def linear_work(X, y, show=False):
    """What the linear models offer: a stream, classes, a search, a path of radii, half-samples and folds."""
    classes = np.unique(y)
    streamed = OneSFWClassifier(radius=20.0, n_jobs=2).partial_fit(X, y, classes=classes)
    streamed.partial_fit(X, y)
    fitted = OneSFWClassifier(radius=20.0, max_iter=4, tol=0.3, random_state=0, n_jobs=2).fit(X, y)
    summed = OneSFWClassifier(radius=20.0, gradient="sag", steps=900, tol=None, random_state=0, n_jobs=2).fit(X, y)
    search = GridSearchCV(
        OneSFWClassifier(steps=600, tol=None, random_state=0), {"radius": [1.0, 10.0]}, cv=2, refit=False
    ).fit(X, y)
    few = examples(X[:80, 10:30], np.where(y[:80] == 3, 1.0, -1.0), None, 20, LOSSES["logistic"])
    stable = stability_selection(Settings(20), few, [0.5, 2.0], pairs=2, tol=0.01, n_jobs=2, progress=show)
    radii = {"radii": [1.0, 2.0, 3.0, 5.0, 7.0, 10.0], "passes": 2, "n_jobs": 2, "progress": show}
    path = fw.radius_path(X, y == 3, **radii)
    divided = fw.radius_path(X, y == 3, **radii, polish=False)  # a share of the radii for each worker
    chosen = OneSFWClassifierCV(radii=[1.0, 5.0], cv=2, random_state=0, n_jobs=2, verbose=show).fit(X, y < 5)
    return [
        streamed.coef_, fitted.coef_, fitted.intercept_, summed.coef_, search.cv_results_["mean_test_score"],
        path.coefs.toarray(), path.gap, divided.coefs.toarray(), divided.gap, stable.probabilities,
        chosen.loss_path_, chosen.coef_,
    ]  # fmt: skip


def engine_work(show=False):
    """Replicates, a sweep, a comparison, and what the tables of rates are made of beside comparisons."""
    rows = np.random.default_rng(0).normal(0.2, 1.0, (60, 4)).astype(np.float32)
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2) / 2, rows)
    runs = fw.minimize(
        objective, fw.sets.L1Ball(1.0, shape=4), steps=300, replicates=2, key=5, algorithm=PAPER, progress=show
    )
    sets = [fw.sets.L1Ball(radius, shape=4) for radius in (0.5, 1.0)]
    swept = fw.sweep(objective, sets, steps=100, key=5, algorithm=PAPER, validation=False, progress=show)
    (comparison,) = compare("nqp", algorithms=["momentum_sfw"], samples=100, seeds=2, progress=show)
    size = Size(seeds=2, budgets={"convex": 60}, problems=(), tuned_on=("interpolation",), tuning_budget=60)
    two = dict(list(studies.rules().items())[:2])
    with unittest.mock.patch.object(studies, "rules", return_value=two):
        studied = run_rates(plan_rates(size)).study.errors["interpolation"]
    return [
        runs.x, runs.value, runs.trace.gap, swept.x, swept.gap, *(curve.final for curve in comparison.curves),
        *studied.values(),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def alone(digits):
    """What the serial run comes to."""
    return linear_work(*digits), engine_work()


def test_every_backend_gives_the_bits_of_the_serial_run(alone, digits, backend, capsys):
    found = linear_work(*digits, show=True)
    bars = capsys.readouterr().err
    for done in ("half-samples", "4/4", "radii", "6/6", "rows"):  # of the selection, of both paths
        assert done in bars
    found += engine_work(show=True)
    bars = capsys.readouterr().err
    for done in ("600/600", "200/200", "1/1"):  # steps of the replicates and of the sweep, methods compared
        assert done in bars
    for expected, one in zip(alone[0] + alone[1], found, strict=True):
        np.testing.assert_array_equal(one, expected)
        assert np.abs(expected).max() > 0


def test_independent_work_goes_where_the_user_says_and_the_log_names_the_worker(backend, caplog):
    elsewhere = backend != "threading"
    assert jobs.away() is elsewhere
    with caplog.at_level(logging.INFO, "onesfw.jobs"):
        processes = jobs.together(os.getpid, [()] * 2, shared=False)
        if elsewhere:
            processes += jobs.in_order(os.getpid, [()] * 2)
    assert (os.getpid() not in processes) is elsewhere
    lines = [record.getMessage() for record in caplog.records if record.name == "onesfw.jobs"]  # Dask has its own
    for place, (process, line) in enumerate(zip(processes, lines, strict=True)):
        who = "tcp://127.0.0.1:" if backend == "dask" else f"process {process} on "
        assert line.startswith(f"getpid {place % 2 + 1} of 2: {who}")


def test_a_path_half_samples_and_folds_are_tasks_of_the_users_backend(backend, digits, caplog):
    X, y = digits
    few = examples(X[:80, 10:30], np.where(y[:80] == 3, 1.0, -1.0), None, 20, LOSSES["logistic"])
    with caplog.at_level(logging.INFO, "onesfw.jobs"):
        fw.radius_path(X, y == 3, list(np.geomspace(1.0, 10.0, 6)), n_jobs=2)
        stability_selection(Settings(20), few, [0.5, 2.0], pairs=2, tol=0.01, n_jobs=2)
        OneSFWClassifierCV(radii=[1.0, 5.0], cv=3, random_state=0, n_jobs=2).fit(X, y < 5)
    for task, count in (("solve_chunk", 4), ("selected_by", 4), ("losses_of", 3)):
        lines = [line for line in caplog.messages if line.startswith(f"{task} ")]
        assert len(lines) == count
        assert not [line for line in lines if f"process {os.getpid()} " in line] or backend == "threading"


def test_jobs_are_counted_as_scikit_learn_does(backend):
    assert jobs.workers(None) == 2  # as `parallel_config` says, or all workers of the cluster
    assert jobs.workers(3) == (2 if backend == "dask" else 3)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert jobs.workers(-1) == (2 if backend == "dask" else cores)
    assert jobs.together(jobs.workers, [(None,), (None,)], shared=False) == [1, 1]  # inside a task
    with pytest.raises(ValueError, match="n_jobs"):
        fw.radius_path(np.eye(8), np.arange(8) % 2, [1.0], n_jobs=0)


def test_without_a_backend_there_is_one_worker_in_this_process():
    assert jobs.workers(None) == 1
    assert not jobs.away()


@contextlib.contextmanager
def elsewhere(name):
    """Ray or Spark on this machine, with two workers."""
    if name == "ray":
        ray = pytest.importorskip("ray")
        from ray.util.joblib import register_ray

        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        register_ray()
        yield
        ray.shutdown()
        return
    register = pytest.importorskip("joblibspark").register_spark
    from pyspark.sql import SparkSession

    local = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # which workers are started with; `python3` may be another
    session = (
        local.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    register()
    yield
    session.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ray", "spark"])
@pytest.mark.filterwarnings("ignore")
def test_ray_and_spark_give_the_bits_of_the_serial_run(alone, digits, name):
    with elsewhere(name), joblib.parallel_config(backend=name, n_jobs=2):
        found = linear_work(*digits) + engine_work()
    for expected, one in zip(alone[0] + alone[1], found, strict=True):
        np.testing.assert_array_equal(one, expected)
