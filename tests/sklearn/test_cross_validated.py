"""`OneSFWClassifierCV` and `OneSFWRegressorCV`: conventions, the choice against a plain loop, rules, bits, refusals."""

import numpy as np
import pytest
import scipy.sparse
from matplotlib.collections import LineCollection
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from onesfw.sklearn import (
    OneSFWClassifier,
    OneSFWClassifierCV,
    OneSFWRegressor,
    OneSFWRegressorCV,
    StabilitySelector,
)

NOT_EQUIVALENT = {  # see test_estimators_sklearn.py; with weights and without, folds are others too
    f"check_sample_weight_equivalence_on_{kind}_data": "a weight is not a repeated or removed row of a random order"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [OneSFWClassifierCV(radii=3, cv=2), OneSFWRegressorCV("l2", radii=3, cv=2)],
    expected_failed_checks=lambda estimator: NOT_EQUIVALENT,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.slow  # every fit compiles a sweep
@parametrize_with_checks(
    [
        OneSFWClassifierCV(radii=3, cv=2, engine="sweep"),
        OneSFWRegressorCV("l2", radii=3, cv=2, engine="sweep"),
        StabilitySelector(n_pairs=3, engine="sweep"),
    ],
    expected_failed_checks=lambda estimator: NOT_EQUIVALENT if "CV" in type(estimator).__name__ else {},
)
@pytest.mark.filterwarnings("ignore:No features were selected")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_conventions_by_sweeps(estimator, check):
    """Steps of a sweep are too few for some of the checks' data, and a warning says so."""
    check(estimator)


def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_the_losses_are_those_of_single_fits():
    """Every cell of the path, and the model, against estimators with that radius on those rows."""
    X, y = scaled(load_diabetes)
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    radii = [20.0, 60.0, 150.0]
    model = OneSFWRegressorCV(radii=radii, cv=folds, random_state=0).fit(X, y)
    for r, radius in enumerate(radii):
        for f, (learnt, held) in enumerate(folds):
            single = OneSFWRegressor(radius=radius, random_state=0).fit(X[learnt], y[learnt])
            loss = np.mean((single.predict(X[held]) - y[held]) ** 2) / 2
            assert model.loss_path_[r, f] == pytest.approx(loss, rel=2e-3)
    mean = model.loss_path_.mean(axis=1)
    assert model.radius_ == model.best_radius_ == radii[int(mean.argmin())]
    results = model.cv_results_
    assert np.array_equal(results["mean_loss"], mean)
    assert np.allclose(results["stderr_loss"], model.loss_path_.std(axis=1, ddof=1) / np.sqrt(3))
    assert np.array_equal(results["split1_loss"], model.loss_path_[:, 1])
    again = OneSFWRegressor(radius=model.radius_, random_state=0).fit(X, y)
    assert np.allclose(model.coef_, again.coef_, atol=1e-2)
    assert model.gap_ <= 1e-6 * np.var(y)


def test_as_good_as_the_lasso():
    """On rows of its own, the chosen model predicts as LassoCV's does, whose penalty is chosen among 100."""
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(60) < 5, 1.0, 0.0)
    A, B = rng.normal(size=(150, 60)), rng.normal(size=(2000, 60))
    y, z = A @ truth + 2 * rng.normal(size=150), B @ truth
    ours, theirs = OneSFWRegressorCV(random_state=0).fit(A, y), LassoCV(cv=5).fit(A, y)
    errors = [np.mean((model.predict(B) - z) ** 2) for model in (ours, theirs)]
    assert errors[0] <= 1.1 * errors[1]


def test_the_smaller_radius_within_one_standard_error():
    X, y = scaled(load_breast_cancer)
    best = OneSFWClassifierCV(random_state=0).fit(X, y)
    simple = clone(best).set_params(rule="one_standard_error").fit(X, y)
    assert np.array_equal(best.loss_path_, simple.loss_path_)
    assert simple.best_radius_ == best.radius_ > simple.radius_
    mean, error, places = (simple.cv_results_[name] for name in ("mean_loss", "stderr_loss", "radius"))
    limit = mean.min() + error[mean.argmin()]
    assert mean[places == simple.radius_] <= limit
    assert (mean[places < simple.radius_] > limit).all()
    assert np.count_nonzero(simple.coef_) < np.count_nonzero(best.coef_)
    assert best.score(X, y) > 0.97
    assert np.abs(simple.coef_).sum() <= simple.radius_ * (1 + 1e-9)


def test_a_fold_whose_rows_weigh_nothing_is_named():
    X = np.random.default_rng(0).normal(size=(20, 3))
    folds = [(np.arange(10), np.arange(10, 20)), (np.arange(10, 20), np.arange(10))]
    for weights, words in ((np.arange(20) < 10, "fold 0 of cv measures on"), (np.arange(20) >= 10, "learns from")):
        with pytest.raises(ValueError, match=f"sample_weight: the rows that .*{words}.* weight 0.*leave rows of"):
            OneSFWRegressorCV(cv=folds, radii=3).fit(X, X[:, 0], sample_weight=weights.astype(float))


def test_several_classes_words_sparse_rows_and_weights():
    X, y = scaled(load_iris)
    model = OneSFWClassifierCV(random_state=0, radii=5, cv=3).fit(X, np.array(["a", "b", "c"])[y])
    assert model.coef_.shape == (3, 4)
    assert set(model.predict(X)) == {"a", "b", "c"}
    assert model.score(X, np.array(["a", "b", "c"])[y]) > 0.9
    sparse = clone(model).fit(scipy.sparse.csr_array(X), y)
    assert np.array_equal(sparse.coef_, model.coef_)
    heavy = clone(model).fit(X, y, sample_weight=np.where(y == 2, 5.0, 1.0))
    assert not np.array_equal(heavy.loss_path_, model.loss_path_)
    balanced = clone(model).set_params(class_weight="balanced").fit(X[:110], y[:110])
    assert balanced.radius_ > 0


def test_the_bits_do_not_depend_on_the_workers():
    """Threads; tests/engine/test_jobs.py has processes and a cluster."""
    X, y = scaled(load_breast_cancer)
    model = OneSFWClassifierCV(random_state=3, radii=4, cv=3)
    serial = model.fit(X, y)
    threads = clone(model).set_params(n_jobs=2).fit(X, y)
    assert np.array_equal(serial.loss_path_, threads.loss_path_)
    assert np.array_equal(serial.coef_, threads.coef_)


def test_a_picture(tmp_path):
    X, y = scaled(load_diabetes)
    model = OneSFWRegressorCV(random_state=0, radii=4, cv=2).fit(X, y)
    model.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert not hasattr(model, "partial_fit")
    alone = clone(model).set_params(radii=[5.0]).fit(X, y)
    low, high = (alone.cv_results_["mean_loss"] + sign * alone.cv_results_["stderr_loss"] for sign in (-1, 1))
    spans = [part for part in alone.plot().axes[0].collections if isinstance(part, LineCollection)]
    assert spans[0].get_segments()[0][:, 1] == pytest.approx([low[0], high[0]])


@pytest.mark.parametrize(
    ("options", "y", "words"),
    [
        ({"cv": 5}, ["a"] * 17 + ["b"] * 3, "cv=5: the class 'b' has 3 rows, and every fold needs one; take cv=3"),
        ({"cv": 2}, ["a"] * 19 + ["b"], "the class 'b' has 1 row, and every fold needs one; leave that class out"),
        ({"cv": 1}, None, "'cv' parameter"),
        ({"cv": 21}, None, "cv=21: every fold needs a row, and there are n_samples=20; take fewer folds"),
        ({"radii": [1.0, 0.5]}, None, "radii must rise, each larger than the one before; sort them"),
        ({"radii": [1.0, 1.0]}, None, "radii must rise"),
        ({"radii": 0}, None, "'radii' parameter"),
        ({"rule": "smallest"}, None, "'rule' parameter"),
        ({"cv": [([], range(20)), (range(10), range(10, 20))]}, None, "cv: fold 0 has no row to learn from"),
        ({"cv": [(range(10), range(10, 20)), (range(10, 20), range(10))]}, ["a"] * 10 + ["b"] * 10, "cv: the rows that "
         "fold 0 learns from lack a class; take fewer folds"),
        ({"cv": [(range(10), range(10, 20))]}, None, "cv must make at least two folds, got 1"),
        ({"cv": [(range(10), [25]), (range(10), [3])]}, None, "cv names rows that are not there"),
        ({"cv": [(range(10), [-2]), (range(10), [3])]}, None, "cv names rows that are not there: .* counted from 0"),
        ({"cv": [(np.arange(10.0), range(10)), (range(10), [3])]}, None, r"whole numbers.*float64\(10,\)"),
        ({"cv": [(["a"], ["b"])]}, None, "cv: the rows of a fold must be whole numbers"),
        ({"cv": [([True] * 5, [False] * 5)]}, None, r"or a mask of all 20 rows, got bool\(5,\)"),
        ({"cv": [[[1], [2], [3]]]}, None, r"cv: fold 0 must be a pair, the rows to learn from .*, got \[\[1\], "),
        ({"cv": [range(9), np.arange(900)]}, None, r"cv: fold 0 must be a pair, .*, got range\(0, 9\)$"),
        ({"n_jobs": 0}, None, "n_jobs: 0 has no meaning"),
        ({"cv": [7, 8]}, None, "cv: fold 0 must be a pair, .*, got 7"),
        ({"steps": 100}, None, "steps are those of engine='sweep'"),
        ({}, ["a"] * 20, "two classes"),
    ],
)  # fmt: skip
def test_what_is_refused(options, y, words):
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = OneSFWRegressorCV(**options) if y is None else OneSFWClassifierCV(**options)
    with pytest.raises(ValueError, match=words):
        model.fit(X, X[:, 0] if y is None else y)


def test_every_row_its_own_fold():
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = OneSFWRegressorCV(radii=2, cv=LeaveOneOut()).fit(X, X[:, 0])
    assert model.loss_path_.shape == (2, 12)
    assert isinstance(OneSFWClassifierCV(), OneSFWClassifier)


class ByTarget:
    """Folds with their share of low and high targets, on both sides of the first column's middle."""

    def split(self, rows, y):
        places = 2 * (np.asarray(rows)[:, 0] > 0) + (np.asarray(y) > np.median(y))
        yield from StratifiedKFold(3).split(rows, places)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 3


def test_a_splitter_is_given_what_fit_was_given():
    X, y = scaled(load_diabetes)
    model = OneSFWRegressorCV(radii=[20.0, 60.0], cv=ByTarget(), random_state=0).fit(X, y)
    folds = list(ByTarget().split(X, y))
    assert np.array_equal(model.loss_path_, clone(model).set_params(cv=folds).fit(X, y).loss_path_)
    X, y = scaled(load_breast_cancer)
    words = np.array(["no", "yes"])[y]

    class ByWord(KFold):
        def split(self, X, y=None, groups=None):
            assert set(y) == {"no", "yes"}
            return super().split(X, y, groups)

    OneSFWClassifierCV(radii=2, cv=ByWord(2, shuffle=True, random_state=0)).fit(X, words)


def test_groups_stay_together():
    X, y = scaled(load_diabetes)
    groups = np.arange(len(X)) // 50
    model = OneSFWRegressorCV(radii=[20.0, 60.0], cv=GroupKFold(3), random_state=0).fit(X, y, groups=groups)
    folds = list(GroupKFold(3).split(X, y, groups))
    assert np.array_equal(model.loss_path_, clone(model).set_params(cv=folds).fit(X, y).loss_path_)
    with pytest.raises(ValueError, match=r"groups are for a splitter that reads them; let cv be one, as GroupKFold"):
        OneSFWRegressorCV(cv=3).fit(X, y, groups=groups)
