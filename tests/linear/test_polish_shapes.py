"""The polish of every loss over every set on rows of many shapes: to its limit, from the defaults of an estimator."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_regression
from sklearn.exceptions import ConvergenceWarning

from onesfw.linear import CONSTRAINTS, LOSSES, Settings, curvature, evaluate, examples, polish, radius_path, train
from onesfw.linear.defaults import ANYWHERE, default_radius
from onesfw.linear.training import Budget, fit_in_memory
from onesfw.sklearn import OneSFWClassifier, OneSFWClassifierCV, OneSFWRegressor


def wide(rng):
    return rng.normal(size=(40, 90))


def tall(rng):
    return rng.normal(size=(300, 12))


def sparse(rng):
    return scipy.sparse.random_array((200, 60), density=0.05, rng=rng, format="csr")


def duplicated(rng):
    X = rng.normal(size=(120, 15))
    return np.column_stack([X, X[:, :7], -X[:, 7:10]])


def constant(rng):
    return np.column_stack([np.full(120, 3.0), rng.normal(size=(120, 10)), np.zeros(120)])


def collinear(rng):
    X = rng.normal(size=(100, 6))
    return np.column_stack([X, X @ rng.normal(size=(6, 6))])


def correlated(rng):
    return rng.normal(size=(150, 30)) + 3 * rng.normal(size=(150, 1))


SHAPES = (wide, tall, sparse, duplicated, constant, collinear, correlated)


def case(rng, shape, loss):
    X = shape(rng)
    signal = X @ (rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.4))
    signal = signal / max(signal.std(), 1e-9) + rng.normal(size=len(signal))
    if LOSSES[loss].classifies:
        y = np.where(signal > 0, 1.0, -1.0)
    else:
        y = rng.poisson(np.exp(signal.clip(-4, 4))).astype(float) if loss == "poisson" else 100 * signal + 7
    return examples(X, y, None, X.shape[1], LOSSES[loss])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_of_any_shape_are_solved(loss, constraint, shape):
    rng = np.random.default_rng([len(loss), len(constraint), SHAPES.index(shape)])
    data = case(rng, shape, loss)
    around = default_radius(data, Settings(data.n_features, loss, constraint, 1.0))
    for interval, factor in ((None, 0.03), (None, 1.0), (ANYWHERE, 0.03), (ANYWHERE, 1.0), ((-0.5, 0.5), 0.3)):
        if loss == "poisson" and constraint in ("simplex", "linf"):
            factor = 0.03  # of larger sets, these have members whose exponentials are beyond all counts
        settings = Settings(data.n_features, loss, constraint, around * factor, intercept=interval)
        fit = fit_in_memory(settings, data, Budget(tol=1e-6, polish=True), 0)
        again = evaluate(settings, data, fit.learners.coefs, fit.learners.intercepts)
        assert fit.converged
        assert again.gap[0] <= 1.001 * fit.limits[0] + 1e-12 * abs(again.value[0])
        assert settings.set.norm(fit.learners.coefs[0]) <= settings.radius * (1 + 1e-9)


def test_a_delta_far_below_the_residuals():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(146, 120)) * np.exp(rng.uniform(-4, 4, 120))
    y = 1e3 * (X[:, 0] / X[:, 0].std() + rng.standard_t(2, size=146))
    data = examples(X, y, None, 120, LOSSES["huber"])
    fit = fit_in_memory(Settings(120, "huber", "l1", 400.0), data, Budget(tol=1e-6, polish=True), 0)
    assert fit.converged


def test_a_start_beyond_the_range_of_numbers():
    rng = np.random.default_rng(4)
    X = 30 * rng.normal(size=(200, 5))
    data = examples(X, rng.poisson(2.0, 200).astype(float), None, 5, LOSSES["poisson"])
    settings = Settings(5, "poisson", "l1", 100.0, intercept=ANYWHERE)
    assert np.isfinite(fit_in_memory(settings, data, Budget(passes=1), 0).learners.coefs).all()
    assert fit_in_memory(settings, data, Budget(tol=1e-6, polish=True), 0).converged


def test_the_next_radius_begins_at_the_minimiser_of_the_last_quadratic(monkeypatch):
    rng = np.random.default_rng(0)
    data = case(rng, tall, "logistic")
    made, plain = [], curvature.Matrix.__init__
    monkeypatch.setattr(curvature.Matrix, "__init__", lambda self, *given: made.append(1) or plain(self, *given))
    y = data.targets
    path = radius_path(data.matrix, y, np.geomspace(0.5, 5.0, 40), validation=(data.matrix, y), scale=False)
    assert not path.unsolved.any()
    assert len(made) <= 60  # little more than one Newton step a radius


def test_radii_that_are_not_solved_are_neither_chosen_nor_passed_over_in_silence(monkeypatch):
    rng = np.random.default_rng(0)
    data = case(rng, wide, "logistic")
    X, y = data.matrix, data.targets
    monkeypatch.setattr(polish, "MOST_ROUNDS", 2)
    monkeypatch.setattr(polish, "MOST_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"radii were not solved, the first of them"):
        path = radius_path(X, y, [1e-8, 0.5, 3.0])
    assert path.unsolved[-1]
    with pytest.warns(ConvergenceWarning, match=r"radii were not solved on every fold, .* none of them is chosen"):
        model = OneSFWClassifierCV(radii=[1e-8, 5.0, 100.0], random_state=0).fit(X, y)
    assert not model.cv_results_["unsolved"][0]
    assert model.cv_results_["unsolved"].any()
    assert not model.cv_results_["unsolved"][list(model.radii_).index(model.radius_)]


@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("radius", [None, 2.0])
def test_columns_of_zeros_leave_the_constant(radius, kind):
    X, y = kind(np.zeros((50, 3))), np.arange(50) % 3 == 0
    classifier = OneSFWClassifier(radius=radius).fit(X, y)
    assert not classifier.coef_.any()
    assert classifier.intercept_[0] == pytest.approx(np.log(17 / 33), abs=1e-6)
    for loss in ("squared", "huber", "poisson"):
        regressor = OneSFWRegressor(loss=loss, radius=radius).fit(X, y.astype(float))
        assert not regressor.coef_.any()
        assert loss == "huber" or regressor.predict(X[:1])[0] == pytest.approx(0.34, abs=1e-6)
    model = train((X, y.astype(int)), radius=radius)
    assert not model.coef.any()
    assert model.intercept == pytest.approx(np.log(17 / 33), abs=1e-6)
    assert not radius_path(X, y).coefs.nnz


def test_a_huber_loss_with_a_tiny_epsilon_is_silent():
    X, y = make_regression(2_000, 50, n_informative=10, noise=1.0, random_state=0)
    assert OneSFWRegressor(loss="huber", epsilon=1e-6, random_state=0).fit(X, y).score(X, y) > 0.99
