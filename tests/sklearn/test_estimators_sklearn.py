"""The scikit-learn estimators: the conventions, the constraint, streams, weights and warm starts."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from onesfw.linear import CONSTRAINTS, LOSSES, Settings, evaluate, examples
from onesfw.linear.defaults import ANYWHERE, default_radius
from onesfw.linear.training import Budget, fit_in_memory
from onesfw.sklearn import OneSFWClassifier, OneSFWRegressor

# scikit-learn expects SGDClassifier and SGDRegressor to fail these two: a weight scales a row's gradient, it does not
# repeat the row in the random order.
NOT_EQUIVALENT = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a weight is not a repeated or removed row of a random order"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [
        OneSFWClassifier(),
        OneSFWRegressor(),
        OneSFWClassifier("l2", gradient="sag"),
        OneSFWRegressor("linf", loss="huber"),
    ],
    expected_failed_checks=lambda estimator: NOT_EQUIVALENT,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("gradient", ["one_sample", "sag"])
def test_the_constrained_optimum_is_reached(gradient):
    """The l1 model of liblinear at penalty C solves the constrained problem with the radius of its own norm."""
    X, y = scaled(load_breast_cancer)
    reference = LogisticRegression(l1_ratio=1.0, C=0.05, solver="liblinear", fit_intercept=False, tol=1e-8).fit(X, y)
    radius = np.abs(reference.coef_).sum()
    model = OneSFWClassifier(
        "l1", radius=radius, gradient=gradient, fit_intercept=False, tol=None, steps=400_000, random_state=0
    ).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    loss = lambda coef: np.logaddexp(0, -signs * (X @ coef.ravel())).mean()  # noqa: E731
    assert np.abs(model.coef_).sum() <= radius * (1 + 1e-9)
    assert model.objective_ == pytest.approx(loss(model.coef_), rel=1e-10)
    assert loss(model.coef_) - loss(reference.coef_) <= min(model.gap_, 1e-3) + 1e-6
    assert model.gap_ >= loss(model.coef_) - loss(reference.coef_) - 1e-6


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_classifiers_obey_their_constraint_and_learn(constraint, loss):
    X, y = scaled(load_breast_cancer)
    y = 1 - y  # most features speak for a tumour that is malignant, so that non-negative coefficients do
    model = OneSFWClassifier(constraint, loss=loss, random_state=0, steps=50_000, tol=None).fit(X, y)
    assert CONSTRAINTS[constraint].norm(model.coef_) <= model.radius_ * (1 + 1e-9)
    assert CONSTRAINTS[constraint].signed or model.coef_.min() >= 0
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_regressors_learn(loss):
    X, y = scaled(load_diabetes)
    model = OneSFWRegressor("l1", loss=loss, epsilon=50.0, random_state=0, steps=200_000).fit(X, y)
    assert model.score(X, y) > 0.5  # least squares has 0.518


def test_poisson_regression_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 5))
    y = rng.poisson(np.exp(X @ [0.3, -0.2, 0.0, 0.1, 0.0] + 0.5))
    reference = PoissonRegressor(alpha=0.0).fit(X, y)
    model = OneSFWRegressor("l2", radius=1.0, loss="poisson", gradient="sag", steps=400_000, tol=None, random_state=0)
    model.fit(X, y)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), rtol=0.03)


def test_several_classes_one_against_the_rest():
    X, y = scaled(load_iris)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = OneSFWClassifier(random_state=0, n_jobs=2).fit(X, names)
    assert model.coef_.shape == (3, 4)
    assert model.gap_.shape == model.objective_.shape == (3,)
    assert model.score(X, names) > 0.9
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))
    single = OneSFWClassifier(random_state=0, n_jobs=1).fit(X, names)
    np.testing.assert_array_equal(single.coef_, model.coef_)


def test_the_same_model_from_dense_and_sparse_rows():
    X, y = load_digits(return_X_y=True)
    options = {"random_state": 0, "max_iter": 2, "radius": 3.0}
    dense = OneSFWClassifier(**options).fit(X, y)
    sparse = OneSFWClassifier(**options).fit(scipy.sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(dense.coef_, sparse.coef_)
    np.testing.assert_array_equal(dense.sparse_coef_.toarray(), dense.coef_)
    single = OneSFWClassifier(**options).fit(X.astype(np.float32), y)  # digits are whole numbers: exact in float32
    np.testing.assert_allclose(single.coef_, dense.coef_, rtol=1e-12)


@pytest.mark.parametrize("cuts", [[1], [100, 101, 250], list(range(1, 300))])
def test_a_stream_gives_the_same_model_however_it_is_cut(cuts):
    X, y = make_classification(300, 20, n_classes=3, n_informative=5, random_state=0)
    whole = OneSFWClassifier().partial_fit(X, y, classes=[0, 1, 2])
    model = OneSFWClassifier()
    for rows in np.split(np.arange(300), cuts):
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    np.testing.assert_array_equal(model.intercept_, whole.intercept_)


def test_a_stream_goes_on_after_pickling_and_after_fit():
    X, y = make_classification(400, 20, random_state=0)
    for first in (
        OneSFWClassifier().partial_fit(X[:200], y[:200], classes=[0, 1]),
        OneSFWClassifier(random_state=0).fit(X[:200], y[:200]),
        OneSFWClassifier(random_state=0, gradient="sag").fit(X[:200], y[:200]),
    ):
        copy = pickle.loads(pickle.dumps(first))
        np.testing.assert_array_equal(
            first.partial_fit(X[200:], y[200:]).coef_, copy.partial_fit(X[200:], y[200:]).coef_
        )
        assert first.score(X, y) > 0.75


def test_regressor_streams_are_cut_anywhere():
    X, y = scaled(load_diabetes)
    whole = OneSFWRegressor(radius=100.0).partial_fit(X, y)
    model = OneSFWRegressor(radius=100.0)
    for i in range(0, len(y), 13):
        model.partial_fit(X[i : i + 13], y[i : i + 13])
    np.testing.assert_array_equal(model.coef_, whole.coef_)


def far_out(seed, loss, rows=3_000):
    """Columns of unlike scales and heavy tails, as no radius that is chosen blindly suits them."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_t(3, size=(rows, 12))
    signal = np.tanh(Z[:, :4]) @ rng.normal(size=4)
    y = rng.poisson(np.exp(signal)) if loss == "poisson" else 50 * signal + 20 * rng.standard_t(2, size=rows)
    largest = 3 if loss == "poisson" else 1_000  # beyond it predictions overflow for rows that have not come yet
    return Z * np.geomspace(0.01, largest, 12), y.astype(float)


def mean_loss(model, X, y, weights=None):
    margins = X @ model.coef_ + model.intercept_
    return np.average(LOSSES[model.loss].value(margins, y), weights=weights)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", ["auto", False])
@pytest.mark.parametrize("loss", ["poisson", "huber", "squared"])
def test_a_stream_is_no_worse_than_a_constant_however_it_is_cut(loss, scale):
    acted = 0
    for seed in range(4):
        X, y = far_out(seed, loss)
        weights = np.random.default_rng(seed).uniform(0.1, 2.0, len(y))
        whole, pieces = (OneSFWRegressor(radius=3.0, loss=loss, scale=scale) for _ in range(2))
        whole.partial_fit(X, y, weights)
        rows, targets, heavy = X.copy(), y.copy(), weights.copy()
        for place in np.array_split(np.arange(len(y)), [1, 3, 700, 1_650, 2_000, 2_001]):
            pieces.partial_fit(rows[place], targets[place], heavy[place])
            rows[place], targets[place], heavy[place] = 0.0, 0.0, 0.0  # the owner may use the memory for other rows
            assert np.isfinite(pieces.predict(X[:3])).all()  # to ask changes nothing
        assert np.array_equal(whole.coef_, pieces.coef_)
        assert np.array_equal(whole.intercept_, pieces.intercept_)
        settings = Settings(12, loss, radius=3.0, intercept=ANYWHERE)
        data = examples(X, y, weights, 12, LOSSES[loss])
        constant = evaluate(settings, data, np.zeros(12)).value[0]
        assert mean_loss(whole, X, y, weights) <= constant + 1e-6 * abs(constant)  # what the intercepts' search leaves
        assert (whole.scale_ is not None) == bool(scale)
        scales = np.ones(12) if whole.scale_ is None else whole.scale_
        assert np.abs(whole.coef_ * scales).sum() <= 3.0 * (1 + 1e-9)
        acted += not np.array_equal(whole.coef_, whole._learners.coefs[0] / scales)
    assert acted or scale


def test_a_stream_that_a_constant_beats_is_told_of():
    X, y = far_out(0, "squared")
    model = OneSFWRegressor(radius=3.0, scale=False).partial_fit(X[:500], y[:500])
    assert model.coef_.shape == (12,)  # silent: so early a constant may well be ahead
    model.partial_fit(X[500:], y[500:])
    with pytest.warns(ConvergenceWarning, match="3,000 rows .* a constant loses less .* Scale the columns"):
        assert model.predict(X[:2]).shape == (2,)
    model.predict(X[:2])  # once is enough


def test_a_stream_with_signal_is_left_alone():
    X, y = make_classification(6_500, 15, random_state=0)
    model = OneSFWClassifier(radius=5.0).partial_fit(StandardScaler().fit_transform(X), y, classes=[0, 1])
    assert np.array_equal(model.coef_, model._learners.coefs)
    assert np.array_equal(model.intercept_, model._learners.intercepts)


def test_weights_scale_the_loss():
    X, y = scaled(load_breast_cancer)
    weights = np.where(y == 1, 5.0, 1.0)
    options = {"radius": 2.0, "random_state": 0, "tol": None, "steps": 50_000}
    by_row = OneSFWClassifier(**options).fit(X, y, sample_weight=weights)
    by_class = OneSFWClassifier(**options, class_weight={0: 1.0, 1: 5.0}).fit(X, y)
    np.testing.assert_allclose(by_row.coef_, by_class.coef_, rtol=1e-12)
    plain = OneSFWClassifier(**options).fit(X, y)
    assert (by_row.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_balanced_weights_favour_the_rare_class():
    X, y = make_classification(2_000, 10, weights=[0.95], flip_y=0.1, random_state=0)
    plain = OneSFWClassifier(random_state=0).fit(X, y)
    balanced = OneSFWClassifier(random_state=0, class_weight="balanced").fit(X, y)
    assert (balanced.predict(X) == 1).sum() > 2 * (plain.predict(X) == 1).sum()
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        OneSFWClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])


@pytest.mark.filterwarnings("ignore:the Frank-Wolfe gap")
def test_a_warm_start_goes_on():
    X, y = scaled(load_breast_cancer)
    options = {"radius": 20.0, "random_state": 0, "tol": None, "max_iter": 20, "polish": False}
    warm = OneSFWClassifier(**options, warm_start=True).fit(X, y)
    before = warm.objective_
    first = warm.coef_.copy()
    warm.set_params(steps=1).fit(X, y)
    assert np.abs(warm.coef_ - first).max() <= 2 * 2 * 20.0 / (20 * len(y))  # one step of η = 2/(t + 1), not of 1
    warm.set_params(steps=None).fit(X, y)
    assert warm.objective_ < before
    warm.set_params(radius=1.0).fit(X, y)
    assert np.abs(warm.coef_).sum() <= 1.0 + 1e-9
    with pytest.raises(ValueError, match="warm_start"):
        warm.fit(X[:, :5], y)


@pytest.mark.parametrize("constraint", ["simplex", "nonnegative_l1", "l2"])
def test_a_warm_start_into_another_set_is_inside_it(constraint):
    X, y = scaled(load_breast_cancer)
    model = OneSFWClassifier("l1", radius=5.0, warm_start=True, steps=1_000, random_state=0).fit(X, y)
    model.set_params(constraint=constraint, radius=2.0, steps=1).fit(X, y)
    assert CONSTRAINTS[constraint].norm(model.coef_) <= 2.0 + 1e-9
    assert CONSTRAINTS[constraint].signed or model.coef_.min() >= 0


def test_tol_stops_on_the_true_gap():
    X, y = scaled(load_breast_cancer)
    model = OneSFWClassifier(radius=1.0, tol=0.05, random_state=0, fit_intercept=False).fit(X, y)
    assert model.n_iter_ < 100_000 // len(y)
    assert model.gap_ <= 0.05 * np.log(2)
    with pytest.warns(ConvergenceWarning, match="leave polish on, raise max_iter, set gradient='sag', or lower radius"):
        OneSFWClassifier(radius=100.0, tol=1e-9, max_iter=1, polish=False, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="over a tenth of it"):  # with the default max_iter too, and without tol
        OneSFWClassifier(radius=300.0, tol=None, polish=False, random_state=0).fit(X, y)


def test_the_intercept_stays_in_its_interval():
    X, y = scaled(load_diabetes)
    model = OneSFWRegressor(radius=10.0, intercept_bound=3.0, random_state=0, steps=5_000).fit(X, y)
    assert abs(model.intercept_[0]) <= 3.0
    assert OneSFWRegressor(fit_intercept=False, random_state=0, steps=5_000).fit(X, y).intercept_[0] == 0.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_after_a_fit_the_intercept_is_the_best_for_its_coefficients(loss, constraint):
    rng = np.random.default_rng(1)
    X = scipy.sparse.random_array((200, 10), density=0.4, rng=rng, format="csr")
    y = {True: np.where(rng.random(200) < 0.8, 1.0, -1.0), False: rng.poisson(3.0, 200).astype(float)}
    data = examples(X, y[LOSSES[loss].classifies], rng.uniform(0.5, 2, 200), 10, LOSSES[loss])
    fit = fit_in_memory(Settings(10, loss, constraint, 2.0, intercept=ANYWHERE), data, Budget(steps=2_000), 0)
    (x,), (b,) = fit.learners.coefs, fit.learners.intercepts

    def mean(b):
        return np.average(LOSSES[loss].value(X @ x + b, data.targets), weights=data.weights)

    assert fit.evaluation.value[0] == pytest.approx(mean(b), rel=1e-12)
    assert mean(b) <= min(mean(other) for other in b + np.linspace(-3, 3, 601)) + 1e-12


def test_a_gap_with_an_intercept_bounds_the_distance_to_the_optimum():
    X, y = scaled(load_breast_cancer)
    options = {"radius": 5.0, "random_state": 0, "tol": None}
    rough = OneSFWClassifier("l1", steps=50_000, polish=False, **options).fit(X, y)
    fine = OneSFWClassifier("l1", **options).fit(X, y)
    assert 0 < rough.objective_ - fine.objective_ <= rough.gap_
    assert fine.gap_ < 1e-8


def test_several_classes_need_no_hand_on_the_intercept():
    """Standardised digits: an intercept that is thrown about costs five points of accuracy."""
    X, y = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    scaler = StandardScaler().fit(train)
    model = OneSFWClassifier("l1", radius=10.0, random_state=0).fit(scaler.transform(train), train_y)
    assert model.score(scaler.transform(test), test_y) >= 0.955
    assert model.gap_.max() <= 1e-5
    streamed = OneSFWClassifier("l1", radius=10.0, random_state=0, polish=False, tol=None)
    with pytest.warns(ConvergenceWarning):
        streamed.fit(scaler.transform(train), train_y)
    assert streamed.score(scaler.transform(test), test_y) >= 0.955
    assert streamed.gap_.max() <= 0.05
    assert model.coef_.shape == (10, 64)


@pytest.mark.parametrize("jobs", [2, -1])
def test_threads_over_classes_do_not_change_the_model(jobs):
    X, y = load_digits(return_X_y=True)
    options = {"radius": 20.0, "random_state": 0, "steps": 3_000}
    one, other = (OneSFWClassifier(**options, n_jobs=n).fit(X / 16, y) for n in (None, jobs))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


def test_the_default_radius_reaches_a_margin_of_ten():
    X, y = scaled(load_breast_cancer)
    data = examples(X, np.where(y == 1, 1.0, -1.0), None, 30, LOSSES["logistic"])
    for name, norm in (("l1", np.inf), ("l2", 2), ("linf", 1)):
        radius = default_radius(data, Settings(30, "logistic", name, 1.0))
        assert radius * np.linalg.norm(X, norm, axis=1).mean() == pytest.approx(10.0)


def test_pipelines_searches_and_clones():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), OneSFWClassifier(random_state=0, steps=5_000, tol=None))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.93
    search = GridSearchCV(pipeline, {"onesfwclassifier__radius": [0.01, 10.0]}, cv=3).fit(X, y)
    assert search.best_params_["onesfwclassifier__radius"] == 10.0
    copy = clone(OneSFWClassifier("l2", radius=3.0))
    assert (copy.constraint, copy.radius) == ("l2", 3.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": "l3"}, "constraint"),
        ({"radius": -1.0}, "radius"),
        ({"loss": "squared"}, "loss"),
        ({"gradient": "sgd"}, "gradient"),
        ({"steps": 0}, "steps"),
        ({"tol": -1.0}, "tol"),
        ({"schedule": "fast"}, "schedule"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        OneSFWClassifier(**options).fit(np.eye(4), [0, 1, 0, 1])


def test_bad_streams_are_named():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match="classes must be given"):
        OneSFWClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="not among the classes"):
        OneSFWClassifier().partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match="at least two"):
        OneSFWClassifier().partial_fit(X, np.zeros(4), classes=[0])
    with pytest.raises(ValueError, match="differs from the classes before"):
        OneSFWClassifier().partial_fit(X, y, classes=[0, 1]).partial_fit(X, y, classes=[0, 1, 2])
    assert not hasattr(OneSFWClassifier(loss="squared_hinge"), "predict_proba")


def test_verbose_shows_a_bar(capsys):
    X, y = scaled(load_breast_cancer)
    OneSFWClassifier(verbose=True, steps=1_000, random_state=0).fit(X, y)
    assert "rows" in capsys.readouterr().err
