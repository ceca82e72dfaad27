"""Columns that lie far from 0, and radii that must be larger than a first guess: answers of the defaults."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import onesfw as fw
from onesfw.linear import LOSSES, Settings, examples
from onesfw.linear.defaults import ANYWHERE, default_radius
from onesfw.linear.shifts import offsets, shifted
from onesfw.sklearn import OneSFWClassifier, OneSFWClassifierCV, OneSFWRegressor


def rows(seed, size=1_500):
    """Four columns that decide and a year, which does not; labels, and targets that a fifth column decides too."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=(size, 4)), rng.integers(2_000, 2_021, size)]
    score = X[:, :4] @ [1, -1, 0.5, 0.5] + 0.3 * rng.normal(size=size)
    return X, score > 0, score + 0.2 * (X[:, 4] - 2_010)


@pytest.mark.parametrize("seed", range(3))
def test_a_column_far_from_zero_does_not_decide_the_radius(seed):
    X, labels, targets = rows(seed)
    assert OneSFWClassifier(random_state=0).fit(X[:1_000], labels[:1_000]).score(X[1_000:], labels[1_000:]) > 0.9
    assert OneSFWRegressor(random_state=0).fit(X[:1_000], targets[:1_000]).score(X[1_000:], targets[1_000:]) > 0.9
    if not seed:
        model = OneSFWClassifierCV(cv=3, radii=6, random_state=0).fit(X[:1_000], labels[:1_000])
        assert model.score(X[1_000:], labels[1_000:]) > 0.9


@pytest.mark.parametrize("far", [100, 1e4])
def test_larger_radii_are_tried_while_they_win(far):
    """A difference of two columns that are nearly the same: the smaller it is, the larger the coefficients."""
    rng = np.random.default_rng(0)
    common, apart = rng.normal(size=(2, 2_000))
    X, y = np.c_[common, common + apart / far], apart + 0.01 * rng.normal(size=2_000)
    base = default_radius(examples(X, y, None, 2, LOSSES["squared"]), Settings(2, "squared", intercept=ANYWHERE))
    if far == 100:
        model = OneSFWRegressor(random_state=0).fit(X, y)
        assert 10 * base < model.radius_ < 100 * base
        assert model.score(X, y) > 0.99
    else:
        with pytest.warns(ConvergenceWarning, match="largest radius that was tried.*give radius, a larger one"):
            OneSFWRegressor(random_state=0).fit(X, y)


def test_means_are_taken_off_full_columns_alone():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=50), 7 + rng.normal(size=50), np.where(rng.random(50) < 0.5, 9.0, 0), np.full(50, 3.0)]
    free, bound = (Settings(4, "squared", intercept=interval) for interval in (ANYWHERE, (-1.0, 1.0)))
    data = examples(scipy.sparse.csr_array(X), np.zeros(50), None, 4, LOSSES["squared"])
    means = offsets(data, free)
    np.testing.assert_allclose(means, [0, X[:, 1].mean(), 0, 3.0])
    assert offsets(data, bound) is None
    other = X.copy()
    other[:5, 1], other[3, 0] = 0.0, 0.0  # entries that a sparse matrix does not hold
    later = examples(scipy.sparse.csr_array(other), np.zeros(50), None, 4, LOSSES["squared"])
    np.testing.assert_allclose(shifted(later, means).matrix.toarray(), other - means)


def test_a_stream_far_from_zero_is_learnt_as_one_around_it():
    X, _, targets = rows(0, 4_000)
    X[:, 4] -= 2_010

    def blocks(X):
        return ((X[i : i + 100], targets[i : i + 100]) for i in range(0, 3_000, 100))

    found = {}
    for name, far in (("near", 0.0), ("far", np.array([100, -50, 30, 0, 1_000]))):
        with pytest.warns(ConvergenceWarning):
            model = fw.linear.train(blocks(X + far), loss="squared")
        found[name] = np.mean((model.predict(X[3_000:] + far) - targets[3_000:]) ** 2) / targets.var()
    assert found["near"] < 0.15
    assert found["far"] < 0.15


def test_means_are_kept_in_a_checkpoint(tmp_path):
    X, _, targets = rows(1, 400)
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.c_[X, targets], delimiter=",", header="a,b,c,d,year,y", comments="", fmt="%.6f")
    options = {"target": "y", "loss": "squared", "radius": 3.0, "polish": False, "buffer": 100}
    with pytest.warns(ConvergenceWarning):
        whole = fw.linear.train(path, passes=3, **options)
    with pytest.warns(ConvergenceWarning):
        fw.linear.train(path, passes=1, checkpoint=tmp_path / "run", **options)
    with pytest.warns(ConvergenceWarning):
        resumed = fw.linear.train(path, passes=3, checkpoint=tmp_path / "run", **options)
    np.testing.assert_array_equal(resumed.coef, whole.coef)
    assert resumed.intercept == whole.intercept
    assert abs(whole.coef[4]) > 0.05
