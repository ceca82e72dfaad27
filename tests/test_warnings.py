"""A warning names the line that called the library, however deep in it the reason was found."""

import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import onesfw as fw
from onesfw import theory
from onesfw.sklearn import OneSFWClassifier, OneSFWClassifierCV

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 4))
CLASSES = ROWS[:, 0] + 0.5 * RNG.normal(size=60) > 0


def unfinished(**options):
    return OneSFWClassifier(radius=5.0, polish=False, max_iter=1, **options).fit(ROWS, CLASSES)


def frozen():
    objective = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2), lambda key: jnp.ones(3))
    return fw.minimize(objective, fw.sets.L2Ball(1.0, shape=3), steps=2, evaluate=False)


def unsolved_folds():
    return OneSFWClassifierCV(engine="sweep", steps=2, radii=[0.1, 50.0], cv=2).fit(ROWS, CLASSES)


def estimated():
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), ROWS.astype(np.float32))
    return theory.estimate(objective, fw.sets.L2Ball(1.0, shape=4), samples=5, points=2)


@pytest.mark.parametrize("call", [unfinished, frozen, unsolved_folds, estimated])
def test_a_warning_names_the_users_line(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {Path(entry.filename).name for entry in caught} == {Path(__file__).name}


def test_what_others_call_names_their_line():
    """The library does not look for the user behind another one: scikit-learn's own line called it here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GridSearchCV(OneSFWClassifier(polish=False, max_iter=1), {"radius": [5.0]}, cv=2).fit(ROWS, CLASSES)
    assert caught
    assert not any("onesfw" in Path(entry.filename).parts for entry in caught)
