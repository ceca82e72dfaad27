"""Leading singular triples of a sparse matrix against a dense decomposition."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from onesfw.lowrank import singular
from onesfw.lowrank.norm_bound import upper_bound
from onesfw.lowrank.singular import Scaled, leading


@pytest.fixture(params=[(60, 40), (40, 60)], ids=["tall", "wide"])
def sparse(request):
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random_array(request.param, density=0.3, rng=rng, format="csr")
    a, b = rng.uniform(0.5, 2, request.param[0]), rng.uniform(0.5, 2, request.param[1])
    operator = Scaled(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, a, b)
    return operator, a[:, None] * matrix.toarray() * b


@pytest.fixture
def by_steps(monkeypatch):
    """No matrix is narrow enough for products of its columns."""
    monkeypatch.setattr(singular, "MOST_COLUMNS", 0)


def test_products_of_columns_are_exact(sparse):
    operator, dense = sparse
    found = leading(operator, 4, np.random.default_rng(1), accuracy=1e-2)
    if operator.is_narrow(4):
        assert np.allclose(found.values, np.linalg.svd(dense, compute_uv=False)[:4], rtol=1e-12)
        assert found.error <= 1e-11 * found.values[0]
        assert np.allclose(found.left * found.values, dense @ found.right)
    assert operator.is_narrow(4) == (dense.shape[1] == 40)
    assert not operator.is_narrow(0)


@pytest.mark.usefixtures("by_steps")
@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_they_are_those_of_the_dense_matrix(sparse, dtype, close):
    operator, dense = sparse
    found = leading(operator, 4, np.random.default_rng(1), accuracy=1e-9, dtype=dtype)
    values = np.linalg.svd(dense, compute_uv=False)
    assert found.proven
    assert np.allclose(found.values[:2], values[:2], rtol=close)
    u, v = found.left[:, 0], found.right[:, 0]
    assert u @ dense @ v == pytest.approx(values[0], rel=close)
    assert np.allclose(found.left.T @ found.left, np.eye(4), atol=1e3 * close)


@pytest.mark.usefixtures("by_steps")
def test_it_ends_early_where_the_value_is_large_enough(sparse):
    operator, dense = sparse
    largest = np.linalg.norm(dense, 2)
    early = leading(operator, 2, np.random.default_rng(1), accuracy=1e-9, enough=0.5 * largest)
    steps = operator.products
    assert not early.proven
    assert 0.5 * largest < early.values[0] <= largest * (1 + 1e-12)
    assert leading(operator, 2, np.random.default_rng(1), accuracy=1e-9, enough=2 * largest).proven
    assert operator.products - steps > steps


@pytest.mark.usefixtures("by_steps")
def test_a_matrix_of_zeros_and_one_of_rank_one():
    ptr, cols, ones = np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32), np.ones(4)
    zero = leading(Scaled(ptr, cols, 0 * ones, np.ones(2), np.ones(2)), 2, np.random.default_rng(0), accuracy=1e-6)
    assert zero.values[0] == 0
    one = leading(Scaled(ptr, cols, ones, np.ones(2), np.ones(2)), 2, np.random.default_rng(0), accuracy=1e-6)
    assert one.values[0] == pytest.approx(2.0)
    assert one.error == 0
    assert one.proven


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_space_that_is_exhausted_ends_the_search(dtype):
    """One or two entries a row: more vectors are asked for than the matrix reaches from any start."""
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.coo_array((rng.normal(size=450), rng.integers(0, 400, (2, 450))), shape=(400, 400)).tocsr()
    ptr, cols, a = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), np.full(400, 20.0)
    largest = 400 * np.linalg.norm(matrix.toarray(), 2)
    for seed in range(5):
        operator = Scaled(ptr, cols, matrix.data.astype(dtype), a, a)
        found = leading(operator, 120, np.random.default_rng(seed), accuracy=1e-9, dtype=dtype)
        assert found.values[0] == pytest.approx(largest, rel=1e-5)
        assert np.isfinite(found.left).all()
        assert found.error < 1e-4 * largest


@pytest.mark.usefixtures("by_steps")
@pytest.mark.parametrize("accuracy", [1e-2, 1e-6])
def test_the_bound_lies_above_values_that_lie_close_together(accuracy):
    """Ten values within 1e-4 of the largest: a Ritz value seems to have converged before it is there."""
    rng = np.random.default_rng(0)
    for trial in range(20):
        dense = scipy.linalg.qr(rng.normal(size=(90, 90)))[0] * np.append(1 - 1e-4 * np.arange(10) / 10, rng.random(80))
        ptr, cols = np.arange(0, 8101, 90), np.tile(np.arange(90, dtype=np.int32), 90)
        operator = Scaled(ptr, cols, dense.ravel(), np.ones(90), np.ones(90))
        bound = upper_bound(operator, np.random.default_rng(trial), accuracy=accuracy)
        assert 1 - 1e-12 <= bound <= 1 + 1.1 * accuracy
    early = upper_bound(operator, np.random.default_rng(0), accuracy=1e-6, enough=1.5)
    assert 1 <= early <= 1.5
    none = Scaled(ptr, cols, 0 * dense.ravel(), np.ones(90), np.ones(90))
    assert upper_bound(none, np.random.default_rng(0), accuracy=1e-6) == pytest.approx(0, abs=1e-290)


def test_a_bound_from_products_of_columns(sparse):
    operator, dense = sparse
    assert upper_bound(operator, np.random.default_rng(1), accuracy=1e-6) == pytest.approx(np.linalg.norm(dense, 2))
