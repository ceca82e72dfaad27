"""Bounds on the largest singular value and the triples above a level, against dense decompositions."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from onesfw.lowrank import norm_bound
from onesfw.lowrank.norm_bound import CHANCE, bounded
from onesfw.lowrank.singular import Scaled


def whole(dense, a=None, b=None):
    """A dense matrix as an operator on all of its entries."""
    m, n = dense.shape
    ptr, cols = np.arange(0, m * n + 1, n), np.tile(np.arange(n, dtype=np.int32), m)
    return Scaled(ptr, cols, dense.ravel(), np.ones(m) if a is None else a, np.ones(n) if b is None else b)


def with_values(values, rng, shape=(90, 90)):
    """A dense matrix with those singular values."""
    left, right = (scipy.linalg.qr(rng.normal(size=(n, n)))[0][:, : len(values)] for n in shape)
    return left * values @ right.T


@pytest.mark.parametrize("spread", [1e-2, 1e-4, 1e-7])
def test_a_bound_however_close_to_the_level(spread):
    rng = np.random.default_rng(0)
    values = np.append(1 - spread * np.arange(10) / 10, 0.9 * rng.random(80))
    for trial in range(20):
        operator = whole(with_values(values, rng))
        found, bound = bounded(operator, 4, 1 - spread, np.random.default_rng(trial), enough=0.0, known=True)
        assert bound >= 1 - 1e-12
        assert found.values[0] <= 1 + 1e-12
        assert bound - found.values[0] <= 0.25 * (bound - (1 - spread)) + 1e-10
        _, early = bounded(operator, 4, 1 - spread, np.random.default_rng(trial), enough=1.5, known=False)
        assert 1 - 1e-12 <= early <= 1.5


@pytest.mark.parametrize("shape", [(300, 80), (80, 300)], ids=["tall", "wide"])
@pytest.mark.parametrize("unit", [1.0, 1e60, 1e-60])
def test_what_lies_above_the_level_is_found(shape, unit):
    rng = np.random.default_rng(1)
    values = np.concatenate([[3.0, 2.5, 2.4], 2 * rng.random(60)])
    dense = unit * with_values(values, rng, shape)
    a, b = rng.uniform(0.5, 2, shape[0]), rng.uniform(0.5, 2, shape[1])
    operator = whole(dense / np.outer(a, b), a, b)
    found, bound = bounded(operator, 4, 2 * unit, np.random.default_rng(0), enough=0.0, known=False)
    assert found.left.shape == (shape[0], 3)
    assert found.right.shape == (shape[1], 3)
    assert found.values[:3] == pytest.approx([3 * unit, 2.5 * unit, 2.4 * unit], rel=2e-2)
    assert (found.values <= unit * np.sort(values)[::-1][: len(found.values)] * (1 + 1e-6)).all()
    assert 3 * unit * (1 - 1e-9) <= bound <= 3.4 * unit
    u, v = found.left[:, 0].astype(float), found.right[:, 0].astype(float)
    assert np.linalg.norm(u) == pytest.approx(1, abs=1e-5)
    assert u @ dense @ v == pytest.approx(found.values[0], rel=1e-4)


def test_where_the_value_is_larger_the_steps_are_those_of_the_triples():
    rng = np.random.default_rng(2)
    dense = with_values(np.append([3.0, 2.9], rng.random(80)), rng)
    hasty, sharp = (
        bounded(whole(dense), count, 1.0, np.random.default_rng(0), enough=1.01, known=known)
        for count, known in ((2, False), (20, False))
    )
    assert (len(hasty[0].values), len(sharp[0].values)) == (16, 60)  # where the looks are
    assert hasty[0].values[0] == pytest.approx(3, rel=0.05)
    assert hasty[1] >= sharp[1] >= 3 - 1e-9


def test_a_matrix_of_zeros_and_one_of_rank_one():
    none, bound = bounded(whole(np.zeros((4, 6))), 4, 0.0, np.random.default_rng(0), enough=0.0, known=True)
    assert bound == 0
    assert none.values[0] == 0
    assert np.isfinite(none.left).all()
    one, bound = bounded(whole(np.ones((9, 4))), 4, 0.0, np.random.default_rng(0), enough=0.0, known=True)
    assert one.values[0] == pytest.approx(6)
    assert 6 - 1e-9 <= bound <= 6 / 0.7
    assert np.isfinite(one.left).all()


def test_a_sparse_matrix_in_tiles_of_columns():
    """Entries by tiles: ptr holds each tile's rows in turn."""
    rng = np.random.default_rng(3)
    dense = scipy.sparse.random_array((50, 40), density=0.3, rng=rng).toarray()
    tiles = [scipy.sparse.csr_array(dense * (np.arange(40) // 20 == part)) for part in range(2)]
    ptr = np.concatenate([tiles[0].indptr[:-1], tiles[0].nnz + tiles[1].indptr])
    cols = np.concatenate([tile.indices for tile in tiles]).astype(np.int32)
    g = np.concatenate([tile.data for tile in tiles])
    largest = np.linalg.norm(dense, 2)
    operator = Scaled(ptr, cols, g, np.ones(50), np.ones(40))
    found, bound = bounded(operator, 4, 0.5 * largest, np.random.default_rng(0), enough=0.0, known=True)
    assert found.values[0] == pytest.approx(largest, rel=0.05)
    assert largest * (1 - 1e-9) <= bound <= 1.3 * largest


def test_the_bound_fails_as_often_as_it_says(monkeypatch):
    """With a chance of a fifth, and one value far above the others, for which the bound is nearly sharp."""
    monkeypatch.setattr(norm_bound, "FIRST_LOOK", 4)
    operator, failures = whole(np.diag(np.append(2.0, np.linspace(0.02, 1, 99)))), 0
    for seed in range(400):
        _, bound = bounded(operator, 1, 0.0, np.random.default_rng(seed), enough=0.0, known=False, chance=0.2)
        failures += bound < 2 * (1 - 1e-9)
    assert failures == pytest.approx(400 * 0.2, abs=3 * 8)  # three standard errors
    assert CHANCE == 1e-6


def diagonal(values):
    """As an operator."""
    n = len(values)
    return Scaled(np.arange(n + 1), np.arange(n, dtype=np.int32), values, np.ones(n), np.ones(n))


@pytest.mark.parametrize(
    "values",
    [np.append(10.0, np.linspace(0, 1, 127)), 10 ** (-0.05 * np.arange(128)), 1 / np.arange(1, 129) ** 3.0],
    ids=["one far above", "geometric", "cubes"],
)
def test_vectors_stay_orthogonal_where_values_converge_fast(values):
    """With two of every eight vectors made orthogonal Ritz values rose to 1e6 and more times the largest."""
    for seed in range(20):
        found, bound = bounded(diagonal(values), 28, 0.0, np.random.default_rng(seed), enough=0.0, known=False)
        assert found.values[0] == pytest.approx(values[0], rel=1e-9)
        assert found.values[0] <= values[0] * (1 + 1e-13)
        assert values[0] * (1 - 1e-13) <= bound <= 1.01 * values[0]


def test_a_space_that_seems_exhausted_proves_nothing():
    """A value 1e-10 above equal ones: the second coefficient is rounding, and a Ritz value as a bound failed."""
    values = np.append(1 + 1e-10, np.ones(999))
    for seed in range(100):
        _, bound = bounded(diagonal(values), 4, 1.0, np.random.default_rng(seed), enough=0.0, known=True)
        assert bound >= values[0]


def test_below_what_is_enough_it_goes_on_to_the_proof():
    """However few triples are asked for."""
    values = np.linspace(0.5, 1.0, 400)
    _, bound = bounded(diagonal(values), 1, 0.99, np.random.default_rng(0), enough=1.001, known=False)
    assert 1.0 <= bound <= 1.001


def test_a_goal_below_zero_is_no_goal():
    operator = diagonal(np.linspace(0, 1, 400))
    found, bound = bounded(operator, 4, 0.99, np.random.default_rng(0), enough=-1.15, known=True)
    assert bound - found.values[0] <= 0.25 * (bound - 0.99)


def test_the_basis_grows(monkeypatch):
    """To the same bits."""
    values = np.append(1.0001, np.linspace(0, 1, 399))
    whole_room = bounded(diagonal(values), 4, 0.9999, np.random.default_rng(0), enough=0.0, known=True)
    monkeypatch.setattr(norm_bound, "FEWEST", 17)
    monkeypatch.setattr(norm_bound, "ROOM", 1)
    grown = bounded(diagonal(values), 4, 0.9999, np.random.default_rng(0), enough=0.0, known=True)
    assert len(grown[0].values) > 4 * 17
    assert grown[1] == whole_room[1]
    assert np.array_equal(grown[0].left, whole_room[0].left)


def test_the_vectors_fill_a_gigabyte_at_most(monkeypatch):
    """A bound all the same, and the triples that were asked for."""
    values = np.append(1.0001, np.linspace(0, 1, 399))
    monkeypatch.setattr(norm_bound, "MOST_NUMBERS", 1)
    found, bound = bounded(diagonal(values), 30, 0.9999, np.random.default_rng(0), enough=0.0, known=True)
    assert len(found.values) == 3 * 30
    assert bound >= 1.0001
    few, _ = bounded(diagonal(values), 4, 0.9999, np.random.default_rng(0), enough=0.0, known=True)
    assert len(few.values) == norm_bound.FEWEST
