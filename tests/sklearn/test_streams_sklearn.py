"""What `partial_fit` makes of columns of unlike scales, of a radius that knows no units, and of large exponentials."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_classification
from sklearn.exceptions import ConvergenceWarning

from onesfw.sklearn import OneSFWClassifier, OneSFWRegressor


def counts(largest, rows=1_500):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 5)) * [largest, 1.0, 1.0, 1.0, 1.0]
    return X, rng.poisson(np.exp(0.3 + 0.4 * X[:, 1])).astype(float)


def mean_loss(model, X, y):
    margins = X @ model.coef_ + model.intercept_
    return np.mean(np.exp(margins) - y * margins)


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf"])
@pytest.mark.parametrize("largest", [30.0, 100.0, 1e4])
def test_counts_never_end_a_stream(largest, constraint):
    X, y = counts(largest)
    model = OneSFWRegressor(constraint, loss="poisson", scale=False)
    for i in range(0, 100, 50):
        model.partial_fit(X[i : i + 50], y[i : i + 50])
    with pytest.warns(ConvergenceWarning, match="a constant loses less .* Scale the columns, give a radius below 10"):
        assert np.isfinite(model.coef_).all()
    model.partial_fit(X[100:], y[100:])
    assert mean_loss(model, X, y) <= y.mean() * (1 - np.log(y.mean())) + 1e-6  # silent: once is enough


def test_a_simplex_has_no_constant_to_fall_back_to():
    X, y = counts(30.0)
    model = OneSFWRegressor("simplex", loss="poisson").partial_fit(X, y)
    with pytest.warns(ConvergenceWarning, match="none lies in the simplex. Scale the columns"):
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("cuts", [[1], [15, 40, 999], [1_000], list(range(1, 1_300, 7))])
def test_columns_of_unlike_scales_are_divided_however_a_stream_is_cut(cuts):
    X, y = make_classification(1_500, 6, random_state=0)
    X = X * np.geomspace(1e3, 1e-3, 6)
    whole = OneSFWClassifier(radius=5.0).partial_fit(X, y, classes=[0, 1])
    model = OneSFWClassifier(radius=5.0)
    for rows in np.split(np.arange(1_500), cuts):
        block = X[rows]
        model.partial_fit(block, y[rows], classes=[0, 1])
        block[:] = 0.0  # the owner may use the memory for other rows
    assert model.coef_.shape == (1, 6)
    assert np.array_equal(model.coef_, whole.coef_)
    assert np.array_equal(model.scale_, whole.scale_)
    assert np.abs(whole.coef_ * whole.scale_).sum() <= 5.0 * (1 + 1e-9)
    assert whole.score(X, y) > 0.85


def test_a_few_rows_have_a_model_too():
    X, y = make_classification(1_200, 6, random_state=0)
    X = X * np.geomspace(1e3, 1e-3, 6)
    model = OneSFWClassifier(radius=5.0).partial_fit(X[:10], y[:10], classes=[0, 1])
    assert model.scale_ is None
    assert np.isfinite(model.coef_).all()
    model.partial_fit(X[10:300], y[10:300])
    assert model.scale_.shape == (6,)
    assert model.score(X, y) > 0.8
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.partial_fit(X[300:], y[300:]).coef_, model.partial_fit(X[300:], y[300:]).coef_)
    whole = OneSFWClassifier(radius=5.0).partial_fit(X, y, classes=[0, 1])
    assert np.array_equal(model.coef_, whole.coef_)
    assert not hasattr(clone(model), "scale_")
    early = OneSFWClassifier(radius=5.0, warm_start=True).partial_fit(X[:300], y[:300], classes=[0, 1])
    assert early.fit(X, y).score(X, y) > 0.85


def test_a_default_radius_that_holds_a_stream_back_is_told_of_once():
    X, y = load_diabetes(return_X_y=True)
    model = OneSFWRegressor().partial_fit(X[:50], y[:50])
    assert model.coef_.shape == (10,)  # silent: so early little may be explained
    model.partial_fit(X[50:], y[50:])
    with pytest.warns(ConvergenceWarning, match=r"explains 0\.\d+ % .* default radius, 10, .* give radius, or use fw"):
        assert model.score(X, y) < 0.05
    assert model.partial_fit(X, y).score(X, y) < 0.05
    assert OneSFWRegressor(radius=1.0).partial_fit(X, y).score(X, y) < 0.05  # of a radius that was given on purpose


@pytest.mark.filterwarnings("ignore:after 1,500 rows of the stream a constant loses less")
def test_noise_is_no_matter_of_the_radius():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1_500, 8)), rng.normal(size=1_500)
    assert OneSFWRegressor().partial_fit(X, y).score(X, y) < 0.05


@pytest.mark.parametrize("gradient", ["one_sample", "sag"])
def test_passes_without_polish_are_no_worse_than_a_constant(gradient):
    X, y = counts(1e4)
    model = OneSFWRegressor(loss="poisson", radius=10.0, scale=False, polish=False, gradient=gradient, random_state=0)
    with pytest.warns(ConvergenceWarning, match="a constant loses less than the model after its passes"):
        model.fit(X, y)
    assert model.objective_ == pytest.approx(mean_loss(model, X, y))
    assert model.objective_ <= y.mean() * (1 - np.log(y.mean())) + 1e-9
    assert np.isfinite(model.partial_fit(X[:10], y[:10]).coef_).all()
