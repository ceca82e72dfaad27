"""The passes of a step over blocks of entries, against NumPy."""

import numpy as np
import pytest

from onesfw.linear.losses import LOSSES, derivative
from onesfw.lowrank import observed
from onesfw.lowrank.entry_kernels import bend
from onesfw.lowrank.step_kernels import BLOCK, ROOM, block_room, forward, gradients, moments


def problem(loss, tiles, monkeypatch, count=12_000):
    """Entries of several blocks, of one row that is longer than a block too."""
    rng = np.random.default_rng(0)
    if tiles:
        monkeypatch.setattr(observed, "TILE", 2_000)
        monkeypatch.setattr(observed, "FEWEST_IN_TILE", 0)
    places = np.unique(np.concatenate([np.arange(BLOCK + 500), rng.integers(6_000, 40 * 6_000, count)]))
    i, j = np.divmod(places, 6_000)
    values = {"logistic": np.sign(rng.normal(size=len(i))), "poisson": rng.poisson(2.0, len(i)).astype(float)}
    given = observed.triplets(i, j, values.get(loss, rng.normal(size=len(i))), (40, 6_000), loss)
    return observed.observe(given, loss, delta=0.7, ridge=(1.0, 1.0), dtype=np.float64), rng


@pytest.mark.parametrize("kept", [False, True], ids=["anew", "kept"])
@pytest.mark.parametrize("tiles", [False, True], ids=["whole", "tiles"])
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "poisson"])
def test_gradients_and_moments(loss, tiles, kept, monkeypatch):
    data, rng = problem(loss, tiles, monkeypatch)
    m, n = data.shape
    assert (len(data.ptr) > m + 1) == tiles
    rows = np.repeat(np.arange(len(data.ptr) - 1) % m, np.diff(data.ptr))
    cols, y, number = data.cols, data.y, LOSSES[loss].code
    P, A = 0.5 * rng.normal(size=(2, m, 3))
    Q, B = 0.5 * rng.normal(size=(2, n, 3))
    (bu, cu), (bi, ci) = 0.5 * rng.normal(size=(2, m)), 0.5 * rng.normal(size=(2, n))
    GP, GQ, gu, gi = np.zeros_like(P), np.zeros_like(Q), np.zeros(m), np.zeros(n)
    X = np.empty((ROOM, data.n if kept else block_room(data.ptr)))
    along, bends = gradients(*data.head, P, Q, bu, bi, True, X, False, GP, GQ, gu, gi)

    x0 = np.einsum("kc,kc->k", P[rows], Q[cols])
    offset = data.head[5]  # y may be kept without a mean that predicts it
    margins = x0 + offset + bu[rows] + bi[cols]
    slope = np.array([derivative(number, 0.7, a, b) for a, b in zip(margins, y, strict=True)])
    weight = np.array([bend(number, 0.7, a, b) for a, b in zip(margins, y, strict=True)])
    assert (along, bends) == pytest.approx((slope @ x0, weight.sum()))
    expected_p, expected_q = np.zeros_like(P), np.zeros_like(Q)
    np.add.at(expected_p, rows, slope[:, None] * Q[cols])
    np.add.at(expected_q, cols, slope[:, None] * P[rows])
    assert np.allclose(GP, expected_p)
    assert np.allclose(GQ, expected_q)
    assert np.allclose(gu, np.bincount(rows, slope, m))
    assert np.allclose(gi, np.bincount(cols, slope, n))

    sums = moments(*data.head, P, Q, A, B, bu, bi, cu, ci, True, X)
    x1 = np.einsum("kc,kc->k", A[rows], Q[cols]) + np.einsum("kc,kc->k", P[rows], B[cols])
    x2, w = np.einsum("kc,kc->k", A[rows], B[cols]), cu[rows] + ci[cols]
    goal = x0 - slope / weight
    a, b, c, d = weight * x0, weight * x1, weight * x2, weight * w
    expected = [
        a @ x0, a @ x1, a @ x2, b @ x1, b @ x2, c @ x2, a @ goal, b @ goal, c @ goal, weight @ goal**2,
        d @ x0, d @ x1, d @ x2, d @ w, d @ goal,
    ]  # fmt: skip
    assert np.allclose(sums, expected)
    if kept:  # the next step knows where it is
        forward(X, 0.3, 0.9, True)
        assert np.allclose(X[0], 0.9 * (x0 + 0.3 * x1 + 0.09 * x2))
        assert np.allclose(X[3], margins - x0 + 0.3 * w)
