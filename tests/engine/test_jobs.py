"""Independent work on threads, on loky's processes and on a Dask cluster: the bits of the serial run under all."""

import contextlib
import os

import jax.numpy as jnp
import joblib
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

import onesfw as fw
from onesfw.engine import jobs
from onesfw.experiments import compare
from onesfw.sklearn import OneSFWClassifier, OneSFWClassifierCV, StabilitySelector

BACKENDS = ("threading", "loky", "dask")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short runs, on purpose


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two processes on this machine's loopback."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", worker_dashboard_address=None
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


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


def linear_work(X, y):
    """What the linear models offer: a stream, classes, a search, a path of radii, half-samples and folds."""
    classes = np.unique(y)
    streamed = OneSFWClassifier(radius=20.0, n_jobs=2).partial_fit(X, y, classes=classes)
    streamed.partial_fit(X, y)
    fitted = OneSFWClassifier(radius=20.0, max_iter=4, tol=0.3, random_state=0, n_jobs=2).fit(X, y)
    summed = OneSFWClassifier(radius=20.0, gradient="sag", steps=900, tol=None, random_state=0, n_jobs=2).fit(X, y)
    search = GridSearchCV(
        OneSFWClassifier(steps=600, tol=None, random_state=0), {"radius": [1.0, 10.0]}, cv=2, refit=False
    ).fit(X, y)
    path = fw.radius_path(X, y == 3, [1.0, 5.0, 10.0], passes=2, n_jobs=2)
    stable = StabilitySelector(radii=[0.5, 1.0, 2.0], n_pairs=2, random_state=0, n_jobs=2).fit(X, y < 5)
    chosen = OneSFWClassifierCV(radii=[1.0, 5.0], cv=2, random_state=0, n_jobs=2).fit(X, y < 5)
    return [
        streamed.coef_, fitted.coef_, fitted.intercept_, summed.coef_, search.cv_results_["mean_test_score"],
        path.coefs.toarray(), path.gap, stable.selection_probabilities_, chosen.loss_path_, chosen.coef_,
    ]  # fmt: skip


def engine_work():
    """Replicates, a sweep and a comparison."""
    rows = np.random.default_rng(0).normal(0.2, 1.0, (60, 4)).astype(np.float32)
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2) / 2, rows)
    runs = fw.minimize(objective, fw.sets.L1Ball(1.0, shape=4), steps=300, replicates=3, key=5)
    balls = [fw.sets.L1Ball(r, shape=4) for r in (0.1, 1.0)]
    swept = fw.sweep(objective, balls, steps=200, rows=fw.rows.folds(60, 2), key=5)
    (comparison,) = compare("nqp", algorithms=["one_sfw", "momentum_sfw"], samples=100, seeds=2)
    swept_arrays = [swept.x, swept.value, swept.validation, swept.gap]
    return [runs.x, runs.value, runs.trace.gap, *swept_arrays, *(curve.final for curve in comparison.curves)]


@pytest.fixture(scope="module")
def alone(digits):
    """What the serial run comes to."""
    return linear_work(*digits), engine_work()


def test_every_backend_gives_the_bits_of_the_serial_run(alone, digits, backend):
    for expected, found in zip(alone[0] + alone[1], linear_work(*digits) + engine_work(), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert np.abs(expected).max() > 0


def test_independent_work_goes_where_the_user_says(backend):
    elsewhere = backend != "threading"
    assert jobs.away() is elsewhere
    if elsewhere:
        assert os.getpid() not in list(jobs.in_order(os.getpid, [()] * 4))
    assert jobs.workers(None) == jobs.workers(-1) if backend == "dask" else jobs.workers(None) == 2


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
