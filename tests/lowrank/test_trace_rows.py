"""Trace-norm linear models from rows: the optimum of a dense solver, and classes."""

import numpy as np
import pytest
from lowrank_checks import onto_ball
from scipy.special import softmax
from sklearn.datasets import load_digits

from onesfw.linear import LOSSES, examples
from onesfw.lowrank import train_rows
from onesfw.sklearn import OneSFWClassifier


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * (rng.random((200, 6)) < 0.7)
    W = np.outer(rng.normal(size=6), rng.normal(size=3))
    return X, X @ W + 0.3 * rng.normal(size=(200, 3))


def optimum(X, Y, radius, loss):
    """Projected gradients with an exact SVD, no intercepts."""
    W = np.zeros((X.shape[1], Y.shape[1]))
    step = len(X) / np.linalg.norm(X, 2) ** 2

    def value(W):
        m = X @ W
        if loss == "squared":
            return ((m - Y) ** 2).sum() / 2 / len(X)
        return np.mean(np.log(np.exp(m).sum(1)) - (Y * m).sum(1))

    for _ in range(3000):
        m = X @ W
        rest = m - Y if loss == "squared" else softmax(m, axis=1) - Y
        W = onto_ball(W - step * X.T @ rest / len(X), radius)
    return value(W)


@pytest.mark.parametrize("loss", ["squared", "softmax"])
@pytest.mark.parametrize("gradient", ["sag", "one_sample"])
def test_the_optimum_is_approached_and_the_gap_is_a_bound(rows, loss, gradient):
    X, Y = rows
    Y = Y if loss == "squared" else np.eye(3)[Y.argmax(1)]
    data = examples(X, Y[:, 0], None, 6, LOSSES["squared"])
    model = train_rows(data, Y, radius=2.0, loss=loss, gradient=gradient, passes=100, tol=None, intercept=False)
    best = optimum(X, Y, 2.0, loss)
    assert best - 1e-9 <= model.value <= best + (0.01 if gradient == "sag" else 0.05)
    assert model.gap >= model.value - best - 1e-9
    assert np.linalg.svd(model.coef, compute_uv=False).sum() <= 2.0 * (1 + 1e-9)


def test_classes_in_one_matrix():
    X, y = load_digits(return_X_y=True)
    model = OneSFWClassifier("trace", radius=3.0, max_iter=10, tol=None, random_state=0).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.85
    assert np.linalg.svd(model.coef_, compute_uv=False).sum() <= 3.0 * (1 + 1e-9)
    assert np.allclose(model.predict_proba(X[:3]).sum(1), 1.0)
    assert (model.predict_proba(X[:50]).argmax(1) == model.predict(X[:50])).all()


def test_two_classes_have_one_row():
    X, y = load_digits(n_class=2, return_X_y=True)
    model = OneSFWClassifier("trace", radius=1.0, max_iter=5, tol=None, random_state=0).fit(X, y)
    assert model.coef_.shape == (1, 64)
    assert model.score(X, y) > 0.98
    assert model.predict_proba(X).shape == (len(y), 2)


def test_what_it_cannot_serve_is_refused():
    X, y = load_digits(n_class=3, return_X_y=True)
    for name, value in {"class_weight": "balanced", "steps": 10, "loss": "squared_hinge"}.items():
        with pytest.raises(ValueError, match=name):
            OneSFWClassifier("trace").set_params(**{name: value}).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight"):
        OneSFWClassifier("trace").fit(X, y, np.ones(len(y)))
    with pytest.raises(ValueError, match="partial_fit goes without"):
        OneSFWClassifier("trace").partial_fit(X, y, classes=[0, 1, 2])
