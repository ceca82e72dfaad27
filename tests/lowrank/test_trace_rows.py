"""Trace-norm linear models from rows: the optimum of a dense solver, and classes."""

import numpy as np
import pytest
from lowrank_checks import onto_ball
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from onesfw.linear import LOSSES, examples
from onesfw.lowrank import train_rows
from onesfw.lowrank.trace_task import task
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
    model = train_rows(
        data, Y, radius=2.0, loss=loss, gradient=gradient, passes=100, tol=None, intercept=False, polish=False
    )
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


def certificate(model, X, y):
    """The loss, the gap and ∂F/∂b of an estimator's coefficients, computed here."""
    classes = np.unique(y)
    Y = (y[:, None] == classes) * 1.0
    W = model.coef_ if len(classes) > 2 else np.vstack([-model.coef_, model.coef_]) / 2
    b = model.intercept_ if len(classes) > 2 else np.array([-0.5, 0.5]) * model.intercept_
    scale = 1.0 if model.scale_ is None else model.scale_
    X, W = X / scale, W * scale
    m = X @ W.T + b
    rest = softmax(m, axis=1) - Y
    G = rest.T @ X / len(X)
    gap = (G * W).sum() + model.radius_ * np.linalg.svd(G, compute_uv=False)[0]
    return np.mean(logsumexp(m, axis=1) - (Y * m).sum(1)), gap, np.abs(rest.mean(0)).max()


def constant_loss(y):
    chances = np.unique(y, return_counts=True)[1] / len(y)
    return -(chances * np.log(chances)).sum()


def many_classes(factors=1.0, offset=0.0):
    X, y = make_classification(300, 30, n_informative=12, n_classes=8, n_clusters_per_class=1, random_state=1)
    return X * factors + offset, y


def rare_class():
    rng = np.random.default_rng(3)
    return rng.normal(size=(1000, 6)), (np.arange(1000) < 2).astype(int) + 2 * (rng.random(1000) < 0.3)


SETS = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "many classes": many_classes,
    "far from 0": lambda: many_classes(offset=1000.0),
    "scales": lambda: many_classes(factors=10.0 ** np.random.default_rng(0).uniform(-5, 5, 30)),
    "more columns than rows": lambda: make_classification(60, 400, n_informative=9, n_classes=3, random_state=0),
    "rare class": rare_class,
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("standardised", [False, True])
def test_intercepts_are_solved_for_with_the_rest(name, standardised):
    X, y = SETS[name]()
    X = (X - X.mean(0)) / X.std(0) if standardised else X
    losses = set()
    for seed in range(3):
        model = OneSFWClassifier("trace", tol=1e-5, random_state=seed).fit(X, y)
        value, gap, slope = certificate(model, X, y)
        assert gap <= 1.01e-5 * constant_loss(y)
        assert slope < 1e-8
        assert np.allclose([model.objective_, model.gap_], [value, gap], rtol=1e-3, atol=1e-8)
        losses.add(round(value, 3))
    assert len(losses) <= 2  # the same up to rounding


@pytest.mark.parametrize("factor", [1.0, 300.0])
def test_without_a_polish_a_constant_is_no_better_and_the_gap_is_told(factor):
    X, y = load_iris(return_X_y=True)
    radius = 6.0 * factor
    with pytest.warns(ConvergenceWarning, match="leave polish on, raise max_iter, or lower radius"):
        model = OneSFWClassifier("trace", radius=radius, polish=False, max_iter=5, random_state=0).fit(X, y)
    value, gap, _ = certificate(model, X, y)
    assert value <= np.log(3) + 1e-12
    assert model.gap_ == pytest.approx(gap)


def test_a_gap_that_stays_is_told_with_a_remedy():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="scales differ by a factor of .* leave scale at its default"):
        OneSFWClassifier("trace", radius=100.0, scale=False, polish=False, max_iter=2, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="over a tenth of it"):
        OneSFWClassifier("trace", radius=100.0, tol=None, polish=False, max_iter=2, random_state=0).fit(X, y)


def test_columns_are_divided_by_their_scales():
    X, y = load_wine(return_X_y=True)
    plain = OneSFWClassifier("trace", scale=False, random_state=0).fit(X, y)
    auto, always = (OneSFWClassifier("trace", scale=scale, random_state=0).fit(X, y) for scale in ("auto", True))
    assert plain.scale_ is None
    assert np.allclose(auto.scale_, X.std(0))
    assert np.allclose(auto.coef_, always.coef_)
    norm = np.linalg.svd(auto.coef_ * auto.scale_, compute_uv=False).sum()
    assert norm == pytest.approx(auto.radius_, rel=1e-6)
    assert auto.score(X, y) > 0.99 > plain.score(X, y)
    divided = OneSFWClassifier("trace", scale=False, radius=auto.radius_, random_state=0).fit(X / auto.scale_, y)
    assert np.allclose(divided.coef_, auto.coef_ * auto.scale_, atol=1e-8)


@pytest.mark.parametrize("name", ["iris", "wine", "cancer"])
def test_the_default_radius_predicts_new_rows(name):
    X, y = SETS[name]()
    model = OneSFWClassifier("trace", random_state=0)
    assert cross_val_score(model, X, y, cv=4).mean() > 0.95
    radius, moved, larger = (clone(model).fit(Z, y).radius_ for Z in (X, X + 10.0, 8.0 * X))
    assert moved == pytest.approx(radius, rel=1e-6)
    assert larger == pytest.approx(radius / (1.0 if model.fit(X, y).scale_ is not None else 8.0), rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_several_outputs_and_their_intercepts(rows, offset):
    X, Y = rows
    Y = Y + np.array([5.0, -3.0, 100.0])
    model = train_rows(
        examples(X + offset, Y[:, 0], None, 6, LOSSES["squared"]), Y, radius=2.0, loss="squared", tol=1e-7
    )
    best = optimum(X - X.mean(0), Y - Y.mean(0), 2.0, "squared")
    assert best - 1e-9 <= model.value <= best + model.gap
    assert model.gap <= model.limit
    assert np.allclose(model.intercept, (Y - (X + offset) @ model.coef.T).mean(0))


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e90])
def test_the_unit_of_all_columns_is_no_matter(unit):
    X, y = load_iris(return_X_y=True)
    model = OneSFWClassifier("trace", random_state=0).fit(unit * X, y)
    plain = OneSFWClassifier("trace", random_state=0).fit(X, y)
    assert model.radius_ * unit == pytest.approx(plain.radius_, rel=1e-6)
    assert model.objective_ == pytest.approx(plain.objective_, abs=1e-5)


def test_a_radius_beyond_the_numbers_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="radius=1e\\+101 allows margins beyond 1e\\+100: lower radius"):
        OneSFWClassifier("trace", radius=1e101).fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.eye(2)}, "data must be rows as linear.examples makes them, got ndarray"),
        ({"targets": np.ones((10, 3))}, r"targets must be a matrix of numbers, 200 rows × outputs.*\(10, 3\)"),
        ({"targets": np.ones(200)}, r"targets must be a matrix.*\(200,\)"),
        ({"targets": np.full((200, 3), np.nan)}, "targets holds NaN"),
        ({"loss": "softmax"}, "targets must be one-hot classes for loss='softmax'"),
        ({"loss": "hinge"}, "loss='hinge' is not known"),
        ({"radius": 0}, "radius must be a finite number above 0"),
        ({"tol": -1}, "tol must be a finite number of at least 0"),
        ({"polish": "yes"}, "polish must be True or False"),
        ({"intercept": 1}, "intercept must be True or False"),
        ({"key": "a"}, "key must be a number"),
    ],
)
def test_mistakes_name_the_argument(rows, change, message):
    X, Y = rows
    given = {"data": examples(X, Y[:, 0], None, 6, LOSSES["squared"]), "targets": Y, "radius": 2.0, "loss": "squared"}
    with pytest.raises((ValueError, TypeError), match=message):
        train_rows(**(given | change))


def test_what_it_cannot_serve_is_refused():
    X, y = load_digits(n_class=3, return_X_y=True)
    for name, value in {"class_weight": "balanced", "steps": 10, "schedule": "paper", "loss": "squared_hinge"}.items():
        with pytest.raises(ValueError, match=name):
            OneSFWClassifier("trace").set_params(**{name: value}).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight"):
        OneSFWClassifier("trace").fit(X, y, np.ones(len(y)))
    with pytest.raises(ValueError, match="partial_fit goes without"):
        OneSFWClassifier("trace").partial_fit(X, y, classes=[0, 1, 2])


@pytest.mark.parametrize("size", [1.0, 40.0, 1000.0, 1e6])
def test_the_best_intercepts_for_margins_where_all_chances_are_0_or_1(size):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), rng.integers(0, 3, 300)
    problem = task(examples(X, y, None, 1, LOSSES["squared"]), np.eye(3)[y], "softmax", 1.0, True)
    margins = size * rng.normal(size=(300, 3)) * np.array([1.0, 2.0, 0.1])
    for start in ([0.0, 0.0, 0.0], [30 * size, -30 * size, 0.0]):
        found = problem.settle(margins, np.array(start))
        assert np.abs(found.rest.mean(0)).max() < 1e-6
        assert found.value <= problem.settle(margins, np.zeros(3)).value + 1e-9 * size
