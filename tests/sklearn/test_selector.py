"""SubmodularSelector and RowSelector follow scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from onesfw.sklearn.selector import RowSelector, SubmodularSelector, correlations


@parametrize_with_checks([SubmodularSelector(steps=20, random_state=0), RowSelector(steps=20, random_state=0)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_it_selects_columns_that_represent_the_others():
    data = load_breast_cancer()
    selector = SubmodularSelector(6, random_state=0).fit(data.data)
    assert selector.transform(data.data).shape == (569, 6)
    assert selector.get_support().sum() == 6
    likeness = np.abs(np.corrcoef(data.data.T))
    value = likeness[:, selector.get_support(indices=True)].max(1).sum()
    assert selector.selection_.value == pytest.approx(value)
    rng = np.random.default_rng(0)
    others = [likeness[:, rng.choice(30, 6, replace=False)].max(1).sum() for _ in range(300)]
    assert value > max(others)
    assert selector.selection_.ratio > 0.9


def test_names_survive_and_groups_bind():
    data = load_wine(as_frame=True)
    groups = [i % 3 for i in range(13)]
    selector = SubmodularSelector(function="log-determinant", groups=groups, per_group=2, random_state=1)
    chosen = selector.fit(data.data).get_support(indices=True)
    assert np.bincount(np.array(groups)[chosen]).max() == 2
    assert chosen.size == 6
    assert selector.get_feature_names_out().tolist() == [data.feature_names[i] for i in chosen]


def test_in_a_pipeline():
    data = load_wine()
    model = make_pipeline(StandardScaler(), SubmodularSelector(5, random_state=0), LogisticRegression())
    assert model.fit(data.data, data.target).score(data.data, data.target) > 0.9


def test_constant_columns_are_like_nothing_else():
    """The mean of 0.1 and of 0.3, ten times each, is off by rounding: those remainders would correlate perfectly."""
    X = np.column_stack([np.full(10, 0.1), np.full(10, 0.3), np.arange(10.0)])
    assert np.any(X.mean(0)[:2] != X[0, :2])
    np.testing.assert_array_equal(correlations(X), np.eye(3))


def test_a_constant_column_is_no_error():
    X = np.random.default_rng(0).normal(size=(20, 4))
    X[:, 2] = 3.0
    assert SubmodularSelector(2, random_state=0).fit(X).support_.sum() == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_features_to_select": 9}, "more than the 4 columns"),
        ({"n_features_to_select": 0}, "n_features_to_select"),
        ({"function": "coverage"}, "function"),
        ({"groups": [0, 0, 1, 1]}, "go together"),
        ({"groups": [0, 1], "per_group": 1}, "one group per column"),
        ({"groups": [0, 0, 1, 1], "per_group": 1, "n_features_to_select": 2}, "goes without groups"),
        ({"steps": 1}, "steps"),
    ],
)
def test_mistakes_are_sentences(parameters, message):
    with pytest.raises(ValueError, match=message):
        SubmodularSelector(**parameters).fit(np.random.default_rng(0).normal(size=(10, 4)))


# ---- rows


def test_it_selects_rows_and_says_how_many_each_stands_for():
    data = load_breast_cancer()
    X = StandardScaler().fit_transform(data.data)
    selector = RowSelector(25, random_state=0)
    chosen = selector.fit_transform(X)
    np.testing.assert_array_equal(chosen, X[selector.indices_])
    assert selector.sample_weight_.sum() == len(X)
    assert selector.sample_weight_.min() >= 1
    nearest = ((X[:, None] - chosen[None]) ** 2).sum(2).argmin(1)
    np.testing.assert_array_equal(selector.sample_weight_, np.bincount(nearest, minlength=25))
    assert selector.selection_.ratio > 0.9


def test_chosen_rows_train_nearly_as_well_as_all():
    data = load_breast_cancer()
    X = StandardScaler().fit_transform(data.data)
    selector = RowSelector(groups=data.target, per_group=30, random_state=0)
    few = selector.fit_transform(X)
    assert np.bincount(data.target[selector.indices_]).tolist() == [30, 30]
    labels = data.target[selector.indices_]
    model = LogisticRegression().fit(few, labels, sample_weight=selector.sample_weight_)
    assert model.score(X, data.target) > 0.93


def test_a_data_frame_stays_one():
    data = load_wine(as_frame=True).data
    selector = RowSelector(7, function="feature-based", random_state=0)
    chosen = selector.fit_transform(data)
    assert chosen.equals(data.iloc[selector.indices_])
    assert selector.feature_names_in_.tolist() == list(data.columns)


def test_twins_stand_for_themselves():
    selector = RowSelector(3, random_state=0).fit(np.ones((5, 2)))
    assert selector.sample_weight_.min() >= 1
    assert selector.sample_weight_.sum() == 5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_rows_to_select": 11}, "more than the 10 rows"),
        ({"function": "coverage"}, "function"),
        ({"groups": [0, 1], "per_group": 1}, "one group per row"),
        ({"function": "log-determinant", "neighbors": 3}, "neighbors goes with"),
        ({"neighbors": 0}, "neighbors"),
    ],
)
def test_mistakes_about_rows_are_sentences(parameters, message):
    with pytest.raises(ValueError, match=message):
        RowSelector(**parameters).fit(np.random.default_rng(0).normal(size=(10, 4)))
