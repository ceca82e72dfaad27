"""Sparse matrices whose indices lie outside them: compiled code, SciPy's too, would read and write there."""

import warnings

import numpy as np
import pytest
import scipy.sparse

import onesfw as fw
from onesfw import sklearn as estimators
from onesfw.linear import LinearModel, select_columns

X = np.random.default_rng(0).normal(size=(40, 5))
LABELS = (X[:, 0] > 0).astype(int)

MADE = {
    "OneSFWClassifier": {"radius": 1.0},
    "OneSFWClassifierCV": {"cv": 2},
    "OneSFWRegressor": {"radius": 1.0},
    "OneSFWRegressorCV": {"cv": 2},
    "StabilitySelector": {"n_pairs": 2, "expected_false": None},
    "SubmodularSelector": {"n_features_to_select": 2, "steps": 10},
    "MatrixCompletion": {"radius": 1.0},
}
METHODS = ("fit", "partial_fit", "predict", "predict_proba", "decision_function", "transform", "score")


def broken(how, kind):
    """A matrix in CSR or CSC that points outside itself."""
    matrix = scipy.sparse.csr_matrix(X).asformat(kind)
    if how in ("below", "beyond"):
        matrix.indices[7] = -3 if how == "below" else 10**9
    elif how == "pointer":
        matrix.indptr[3] = 10**6
    else:
        matrix.indptr[-1] += 1000
    return matrix


every = pytest.mark.parametrize("how", ["below", "beyond", "pointer", "end"])
kinds = pytest.mark.parametrize("kind", ["csr", "csc"])


def test_every_estimator_has_a_case():
    """`RowSelector` takes dense rows only."""
    assert set(estimators.__all__) == {*MADE, "RowSelector"}


@pytest.fixture(scope="module")
def fitted():
    models = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, options in MADE.items():
            given = (scipy.sparse.csr_matrix(X),) if name == "MatrixCompletion" else (X, LABELS)
            models[name] = getattr(estimators, name)(**options).fit(*given)
    return models


@every
@kinds
@pytest.mark.parametrize("name", MADE)
def test_estimators_refuse_them(name, how, kind, fitted):
    tried = 0
    for method in METHODS:
        call = getattr(fitted[name], method, None)
        if call is None or (name, method) == ("SubmodularSelector", "fit"):  # which takes dense columns only
            continue
        labels = () if name == "MatrixCompletion" else (LABELS,)
        with pytest.raises(ValueError, match="the sparse matrix is broken"):
            call(broken(how, kind), *(labels if method in ("fit", "partial_fit", "score") else ()))
        tried += 1
    assert tried


@every
@kinds
def test_functions_refuse_them(how, kind):
    model = LinearModel(np.ones(5), 0.0, "squared", "l1", 5.0)
    matrix = fw.lowrank.complete(scipy.sparse.csr_matrix(X), radius=1.0)
    for call in (
        lambda: fw.radius_path(broken(how, kind), LABELS, [1.0]),
        lambda: fw.linear.train((broken(how, kind), LABELS), radius=1.0),
        lambda: select_columns((broken(how, kind), LABELS), pairs=2, expected_false=None),
        lambda: model.predict(broken(how, kind)),
        lambda: fw.lowrank.complete(broken(how, kind), radius=1.0),
        lambda: matrix.evaluate(broken(how, kind)),
    ):
        with pytest.raises(ValueError, match="the sparse matrix is broken"):
            call()
