"""`StabilitySelector`: scikit-learn's conventions, kinds of targets, names, what is refused."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from onesfw.sklearn import StabilitySelector


@pytest.mark.filterwarnings("ignore:No features were selected")  # of three columns that are nearly the same
@parametrize_with_checks([StabilitySelector(n_pairs=3)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_regression_classes_and_words():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    found = StabilitySelector(n_pairs=15, random_state=0).fit(X, y)
    assert found.loss_ == "squared"  # whole numbers, but 214 of them
    assert {"bmi", "s5"} <= set(found.get_feature_names_out())
    assert found.selection_probabilities_.shape == (len(found.radii_), 10)
    assert np.array_equal(found.scores_, found.selection_probabilities_.max(axis=0))
    assert np.array_equal(found.get_support(), found.scores_ >= 0.75 - 1e-9)
    assert found.false_selections_ == found.stability_.bound("r_concave") <= 1
    assert found.transform(X).shape == (442, found.get_support().sum())
    assert "bmi" in str(found.stability_)
    X, y = load_iris(return_X_y=True)
    free = {"n_pairs": 5, "expected_false": None, "radii": [0.5, 1.0, 2.0], "random_state": 0}
    flowers = StabilitySelector(**free).fit(X, np.array(["a", "b", "c"])[y])
    assert flowers.loss_ == "logistic"
    assert flowers.n_selected_ == flowers.stability_.selected
    assert np.array_equal(flowers.scores_, StabilitySelector(**free).fit(X, y).scores_)
    assert flowers.get_support()[2:].any()  # the petals


def test_columns_are_compared_in_their_own_units():
    """A column in other units is selected as often; without scaling it is not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 30))
    y = X[:, 0] + X[:, 1] + rng.normal(size=150)
    other = X.copy()
    other[:, 0] /= 16.0
    plain, moved, raw = (
        StabilitySelector(n_pairs=5, scale=scale, random_state=0).fit(rows, y)
        for rows, scale in ((X, True), (other, True), (other, False))
    )
    assert np.array_equal(plain.scores_, moved.scores_)
    assert raw.scores_[0] < plain.scores_[0]


def test_sparse_rows_radii_and_a_pipeline():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((300, 200), density=0.1, rng=rng, format="csr")
    y = np.where(X[:, [3]].toarray().ravel() + X[:, [5]].toarray().ravel() > rng.uniform(0, 0.3, 300), "yes", "no")
    found = StabilitySelector(radii=[1.0, 2.0, 4.0], n_pairs=10, random_state=0).fit(X, y)
    assert found.radii_.tolist() == [1.0, 2.0, 4.0]
    assert {3, 5} <= set(found.get_support(indices=True).tolist())
    dense = StabilitySelector(radii=[1.0, 2.0, 4.0], n_pairs=10, random_state=0, n_jobs=2).fit(X.toarray(), y)
    assert np.array_equal(found.scores_, dense.scores_)
    model = make_pipeline(StabilitySelector(n_pairs=5, random_state=0), LogisticRegression()).fit(X, y)
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize(
    ("options", "y", "words"),
    [
        ({}, [0] * 10, "at least two classes, got one class"),
        (
            {},
            ["a"] * 9 + ["b"],
            "only 1 row has the label 'b', .*; leave that row out, or join the label with another$",
        ),
        ({}, [3] * 4 + [7] * 5 + [8], "only 1 row has the label 8, .* or predict numbers with loss squared"),
        ({"radii": [2.0, 1.0]}, None, "radii must rise"),
        ({"constraint": "l2"}, None, "'constraint' parameter"),
        ({"threshold": 0.4}, None, "'threshold' parameter"),
        ({"expected_false": 1e-6}, None, "cannot be promised"),
        ({"loss": "squared"}, ["a", "b"] * 5, "y holds words, and loss='squared' needs numbers; leave loss out"),
        ({"loss": "poisson"}, [-1.0] + [2.0] * 9, "at least 0 for loss='poisson'"),
    ],
)
def test_what_is_refused(options, y, words):
    X = np.random.default_rng(0).normal(size=(10, 6))
    with pytest.raises(ValueError, match=words):
        StabilitySelector(**options).fit(X, X[:, 0] if y is None else y)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30])
@pytest.mark.filterwarnings("error")
def test_units_do_not_matter(scale):
    """Squares of such numbers are 0; those of numbers beyond 1e100 would be infinite, and are refused."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=80) > 0, "yes", "no")
    assert StabilitySelector(n_pairs=4, random_state=0).fit(scale * X, y).get_support().tolist() == [True, *[False] * 3]
    with pytest.raises(ValueError, match="rows must hold no numbers beyond 1e\\+100"):
        StabilitySelector(n_pairs=4).fit(1e300 * X, y)
    with pytest.raises(ValueError, match="targets must hold no numbers beyond 1e\\+100"):
        StabilitySelector("squared", n_pairs=4).fit(X, 1e300 * X[:, 0])
