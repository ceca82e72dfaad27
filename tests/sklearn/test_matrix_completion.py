"""`MatrixCompletion`: labels, unseen ones, sparse matrices, grids, streams."""

import numpy as np
import pytest
import scipy.sparse
from lowrank_checks import as_values, planted
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from onesfw.sklearn import MatrixCompletion, completion_estimator


@pytest.fixture(scope="module")
def labelled():
    rows, cols, values = planted((30, 20), rank=2, share=0.6, noise=0.2, seed=1)
    users = np.array([f"user {i}" for i in range(30)], object)[rows]
    items = np.array([(j, "tuple") if j % 2 else j for j in range(20)] + [None], object)[:-1][cols]
    X = np.empty((len(rows), 2), object)
    X[:, 0], X[:, 1] = users, items
    return X, values, (rows, cols)


def test_any_hashable_labels(labelled):
    X, y, (rows, cols) = labelled
    model = MatrixCompletion(radius=1.0).fit(X, y)
    numbers = MatrixCompletion(radius=1.0).fit(np.column_stack([rows, cols]), y)
    assert np.allclose(model.predict(X), numbers.predict(np.column_stack([rows, cols])), atol=1e-4)
    assert model.score(X, y) > 0.6
    assert set(model.users_) == set(X[:, 0])


def test_unseen_labels_get_the_biases(labelled):
    X, y, _ = labelled
    model = MatrixCompletion(radius=1.0).fit(X, y)
    inner = model.model_
    first = X[0]
    row, col = list(model.users_).index(first[0]), list(model.items_).index(first[1])
    strange = np.empty((3, 2), object)
    strange[0], strange[1], strange[2] = (first[0], "new"), ("new", first[1]), ("new", "newer")
    expected = [inner.mean + inner.row_bias[row], inner.mean + inner.col_bias[col], inner.mean]
    assert np.allclose(model.predict(strange), expected)
    assert len(model.recommend("new", 3)) == 3


def test_a_sparse_matrix_needs_no_y():
    rows, cols, values = planted()
    matrix = scipy.sparse.coo_array((values, (rows, cols)), shape=(14, 11))
    model = MatrixCompletion(radius=0.5).fit(matrix)
    assert np.allclose(model.predict(matrix), model.predict(np.column_stack([rows, cols])))
    assert model.score(matrix) == pytest.approx(model.score(np.column_stack([rows, cols]), values))
    with pytest.raises(ValueError, match="y goes without a sparse X"):
        model.fit(matrix, values)


def test_a_grid_search(labelled):
    X, y, _ = labelled
    search = GridSearchCV(MatrixCompletion(), {"radius": [0.05, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"radius": 1.0}
    assert clone(search.best_estimator_).get_params()["radius"] == 1.0


def test_more_entries_help_and_new_labels_come(labelled):
    X, y, _ = labelled
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    held, first = slice(0, 60), slice(60, 140)
    model = MatrixCompletion(radius=1.0).partial_fit(X[first], y[first])
    before, users = model.score(X[held], y[held]), len(model.users_)
    for begin in range(140, len(y), 60):
        model.partial_fit(X[begin : begin + 60], y[begin : begin + 60])
    assert model.score(X[held], y[held]) > before + 0.05
    assert len(model.users_) >= users
    assert model.model_.norm <= 1.0 + 1e-6
    whole = MatrixCompletion(radius=1.0).fit(X[60:], y[60:])
    assert model.objective_ == pytest.approx(whole.objective_, rel=0.05)


def test_memory_is_bounded(labelled):
    X, y, _ = labelled
    model = MatrixCompletion(radius=1.0, memory=50).partial_fit(X[:100], y[:100]).partial_fit(X[100:200], y[100:200])
    assert model.model_.entries == 50


def test_a_stream_by_one_sfw(labelled):
    """New labels come, no entry is kept, and the model gets better, though less than with corrected factors."""
    X, y, _ = labelled
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    held, first = slice(0, 60), slice(60, 140)
    model = MatrixCompletion(radius=1.0, stream="one_sfw", memory=100, random_state=0).partial_fit(X[first], y[first])
    before = model.score(X[held], y[held])
    for begin in range(140, len(y), 20):
        model.partial_fit(X[begin : begin + 20], y[begin : begin + 20])
        assert model.model_.norm <= 1.0 + 1e-6
        assert len(model._kept) <= 100
    assert model.score(X[held], y[held]) > before
    assert model.gap_ is None
    assert model.model_.entries == len(y) - 60
    assert len(model.recommend(X[-1, 0], 3)) == 3
    with pytest.raises(ValueError, match="keeps no entries; call fit"):
        model.set_params(stream="corrected").partial_fit(X[:5], y[:5])
    assert model.fit(X, y).partial_fit(X[:5], y[:5]).gap_ is not None


def test_signs_are_scored_by_their_share():
    rows, cols, values = planted()
    X, y = np.column_stack([rows, cols]), as_values(values, "logistic")
    model = MatrixCompletion(radius=2.0, loss="logistic").fit(X, y)
    assert model.score(X, y) == ((model.predict(X) > 0.5) == (y > 0)).mean()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1, 2, 3]], [1.0], "pair"),
        (np.ones((3, 3)), np.ones(3), "two columns"),
        ([[1, 2]], None, "y is needed"),
        ([[1, 2]], [1.0, 2.0], "one value for each"),
        ([[1, 2]], [np.nan], "y holds NaN"),
        ([[None, 2]], [1.0], "X: a label is missing"),
        ([[np.nan, 2.0]], [1.0], "X: a label is missing"),
        ([[[], 2]], [1.0], r"X: the label \[\] is unhashable; make it a word"),
        ([], [], "no entry"),
    ],
)
def test_mistakes(X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MatrixCompletion(radius=1.0).fit(X, y)


def test_messages_say_y_and_tol():
    with pytest.raises(ValueError, match="y: 2 entries are too few to choose a radius"):
        MatrixCompletion().fit([[0, 0], [1, 1]], [1.0, 2.0])
    with pytest.raises(ValueError, match="y must be −1 or \\+1 for loss='logistic'"):
        MatrixCompletion(loss="logistic").fit([[0, 0], [1, 1]], [0, 1])


def test_columns_keep_their_names():
    """Users and items the wrong way round were all unknown, and predicted by the mean without a word."""
    frame = pytest.importorskip("pandas").DataFrame({"user": [1, 2, 1, 3], "item": [1, 1, 2, 2]})
    model = MatrixCompletion(radius=1.0).fit(frame, [1.0, 2.0, 3.0, 4.0])
    assert model.feature_names_in_.tolist() == ["user", "item"]
    assert np.array_equal(model.predict(frame), model.predict(frame.to_numpy()))
    for call in (model.predict, lambda X: model.partial_fit(X, [1.0, 2.0, 3.0, 4.0])):
        with pytest.raises(ValueError, match=r"X has the columns \['item', 'user'\], and fit had \['user', 'item'\]"):
            call(frame[["item", "user"]])
    assert not hasattr(model.fit(frame.to_numpy(), [1.0, 2.0, 3.0, 4.0]), "feature_names_in_")


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="radius"):
        MatrixCompletion(radius="best").fit([[0, 0]], [1.0])
    with pytest.raises(NotFittedError):
        MatrixCompletion().predict([[0, 0]])


@pytest.mark.parametrize("stream", ["corrected", "one_sfw"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, FloatingPointError])
def test_a_step_that_fails_leaves_all_as_it_was(monkeypatch, stream, error):
    """Labels without rows of the factors were read beyond their end."""
    X = np.column_stack([np.arange(40) % 8, np.arange(40) // 8])
    model = MatrixCompletion(radius=1.0, stream=stream, random_state=0).fit(X, np.arange(40.0) % 7)
    before = model.predict([[3, 2], [1, 1]])

    def failing(*given, **more):
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(completion_estimator, "refined", failing)
        broken.setattr(completion_estimator.EntryStream, "step", failing)
        with pytest.raises(error):
            model.partial_fit([[1000, 2000], [1, 2]], [1.0, 2.0])
    assert np.array_equal(model.predict([[3, 2], [1, 1]]), before)
    assert model.predict([[1000, 2000]])[0] == model.predict([["a", "b"]])[0]
    assert len(model.users_) == model.model_.shape[0]
    assert 1000 in model.partial_fit([[1000, 2000]], [1.0]).users_


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_a_number_of_recommendations_is_checked(k):
    model = MatrixCompletion(radius=1.0).fit([(1, 2), (2, 3)], [1.0, 2.0])
    with pytest.raises(ValueError, match="k must be"):
        model.recommend(1, k=k)


def test_tables_that_are_no_pandas_frames():
    """They iterate over columns, and were told to hold pairs."""
    table = pytest.importorskip("pyarrow").table({"user": ["ann", "bob", "ann"], "item": [3, 3, 4]})
    model = MatrixCompletion(radius=1.0).fit(table, [1.0, 2.0, 4.0])
    assert model.users_.tolist() == ["ann", "bob"]
    assert model.items_.tolist() == [3, 4]
    assert np.array_equal(model.predict(table), model.predict([("ann", 3), ("bob", 3), ("ann", 4)]))
