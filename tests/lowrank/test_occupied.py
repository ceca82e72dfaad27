"""Rows and columns without an entry: the same minimum, found without them."""

import time

import numpy as np
import pytest

import onesfw as fw
from onesfw.lowrank.corrective import Limits, fit
from onesfw.lowrank.observed import observe, triplets
from onesfw.lowrank.occupied import Occupied


@pytest.fixture(scope="module")
def entries():
    """Entries of 90 × 70, of which every third row and every fifth column have none."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(90, 2)) @ rng.normal(size=(2, 70))
    known = rng.random(truth.shape) < 0.3
    known[::3] = False
    known[:, ::5] = False
    i, j = np.nonzero(known)
    return i, j, truth[i, j] + 0.3 * rng.normal(size=len(i))


@pytest.mark.parametrize("weighted", [True, False])
def test_the_minimum_is_that_of_the_whole_matrix(entries, weighted):
    data = observe(triplets(*entries, (90, 70)), "squared", weighted=weighted, dtype=np.float64)
    whole, _ = fit(data, 0.8, Limits(1e-8), 0)
    model = fw.lowrank.complete(*entries, (90, 70), radius=0.8, weighted=weighted, gap_tol=1e-8)
    assert model.value == pytest.approx(whole.value, rel=1e-7)
    assert model.norm == pytest.approx(0.8, rel=1e-6)
    assert model.shape == (90, 70)
    assert np.array_equal(np.flatnonzero(~model.P.any(1)), np.arange(0, 90, 3))
    assert np.array_equal(np.flatnonzero(~model.Q.any(1)), np.arange(0, 70, 5))
    assert model.predict([0], [0]) == pytest.approx(model.mean)


def test_entries_come_back_where_they_were(entries):
    given = triplets(*entries, (90, 70))
    occupied = Occupied.of(given)
    alone = occupied.alone(given)
    assert alone.shape == (60, 56)
    assert alone.whole == (90, 70)
    np.testing.assert_array_equal(occupied.rows[alone.rows], given.rows)
    np.testing.assert_array_equal(occupied.cols[alone.cols], given.cols)


def test_a_full_matrix_is_left_alone():
    given = triplets([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0])
    assert Occupied.of(given).alone(given).rows is given.rows


def test_other_entries_may_lie_in_lines_that_have_none(entries):
    i, j, y = entries
    others = (np.array([0, 3, 1]), np.array([0, 1, 5]), np.array([0.1, 0.2, -0.1]))
    path = fw.lowrank.radius_path(i, j, y, (90, 70), radii=[0.3, 0.8], validation=others)
    assert path.held_out == 3
    assert np.isfinite(path.validation_loss).all()


def test_few_entries_of_a_huge_matrix_take_little_time():
    rng = np.random.default_rng(1)
    i, j, y = rng.integers(0, 10**6, 300), rng.integers(0, 10**5, 300), rng.normal(size=300)
    begun = time.process_time()
    model = fw.lowrank.complete(i, j, y, (10**6, 10**5))
    assert time.process_time() - begun < 5.0  # 0.2 s on an idle machine; rounds of 10 s each with all rows
    assert model.shape == (10**6, 10**5)
    assert model.gap <= 1e-3 * model.value
    assert model.predict([10**6 - 1], [7]).shape == (1,)
