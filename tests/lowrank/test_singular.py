"""Leading singular triples of a sparse matrix against a dense decomposition."""

import numpy as np
import pytest
import scipy.sparse

from onesfw.lowrank import singular
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
        assert np.allclose(found.left * found.values, dense @ found.right)
    assert operator.is_narrow(4) == (dense.shape[1] == 40)
    assert not operator.is_narrow(0)


@pytest.mark.usefixtures("by_steps")
@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_they_are_those_of_the_dense_matrix(sparse, dtype, close):
    operator, dense = sparse
    found = leading(operator, 4, np.random.default_rng(1), accuracy=1e-9, dtype=dtype)
    values = np.linalg.svd(dense, compute_uv=False)
    assert found.values[0] == pytest.approx(values[0], rel=close)
    assert (found.values <= values[:4] * (1 + close)).all()  # only the first is converged
    u, v = found.left[:, 0], found.right[:, 0]
    assert u @ dense @ v == pytest.approx(values[0], rel=close)
    assert np.allclose(found.left.T @ found.left, np.eye(4), atol=1e3 * close)


@pytest.mark.usefixtures("by_steps")
def test_a_matrix_of_zeros_and_one_of_rank_one():
    ptr, cols, ones = np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32), np.ones(4)
    zero = leading(Scaled(ptr, cols, 0 * ones, np.ones(2), np.ones(2)), 2, np.random.default_rng(0), accuracy=1e-6)
    assert zero.values[0] == 0
    one = leading(Scaled(ptr, cols, ones, np.ones(2), np.ones(2)), 2, np.random.default_rng(0), accuracy=1e-6)
    assert one.values[0] == pytest.approx(2.0)


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
