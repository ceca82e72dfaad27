"""1-SFW on a stream of entries: with all entries in every batch it is Frank-Wolfe with steps of 1/t."""

import numpy as np
import pytest
from lowrank_checks import as_values, dense_optimum, planted

from onesfw.lowrank import complete
from onesfw.lowrank.entry_stream import EntryStream, latest_sums, slopes_of
from onesfw.lowrank.observed import Triplets

SHAPE = (14, 11)


def started(loss):
    rows, cols, values = planted()
    given = Triplets(rows.astype(np.int32), cols.astype(np.int32), as_values(values, loss), SHAPE)
    model = complete(rows, cols, given.values, SHAPE, radius=0.5, loss=loss, biases=False, gap_tol=0.3, delta=0.5)
    return given, model


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_whole_batches_approach_the_optimum(loss):
    given, model = started(loss)
    stream = EntryStream.after(model, given)
    for _ in range(400):
        stream = stream.step(given, 10_000, 0)
        order = np.lexsort((stream.d.cols, stream.d.rows))
        exact = slopes_of(stream.before, given)[np.lexsort((given.cols, given.rows))] / len(given)
        assert np.allclose(stream.d.values[order], exact, atol=1e-9)  # d is the gradient where it was asked
    best = dense_optimum(
        given.rows, given.cols, given.values, SHAPE, radius=0.5, loss=loss, mean=0.0, ridge=(0.0, 0.0), delta=0.5
    )
    assert best - 1e-6 <= stream.model.value <= best + 0.02 * abs(best)
    assert stream.model.norm <= 0.5 * (1 + 1e-6)


def test_small_batches_approach_it_too():
    given, model = started("squared")
    rng, stream = np.random.default_rng(0), EntryStream.after(model, given)
    for _ in range(1500):
        stream = stream.step(given.take(rng.integers(0, len(given), 10)), 10_000, 0)
    best = dense_optimum(
        given.rows, given.cols, given.values, SHAPE, radius=0.5, loss="squared", mean=0.0, ridge=(0.0, 0.0)
    )
    errors = stream.model.margins(given.rows, given.cols) - given.values
    assert np.mean(errors**2) / 2 <= 1.05 * best


def test_the_latest_entries_are_kept_and_summed():
    before = Triplets(np.array([0, 1, 2]), np.array([0, 1, 2]), np.array([1.0, 2.0, 3.0]), (3, 3))
    new = Triplets(np.array([1, 0]), np.array([1, 2]), np.array([10.0, 20.0]), (3, 3))
    found = latest_sums(before, new, 3)
    assert {(i, j): v for i, j, v in zip(found.rows, found.cols, found.values, strict=True)} == {
        (2, 2): 3.0,
        (0, 2): 20.0,
        (1, 1): 12.0,
    }
