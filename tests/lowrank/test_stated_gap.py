"""The gap that is stated, against the one of a dense decomposition."""

import numpy as np
import pytest
from lowrank_checks import weights

from onesfw.lowrank import complete


def entries(seed=7):
    """600 × 300, of rank 4 and noise."""
    rng = np.random.default_rng(seed)
    i, j = np.divmod(np.unique(rng.integers(0, 180_000, 3_000)), 300)
    signal = np.einsum("kc,kc->k", rng.normal(size=(600, 4))[i], rng.normal(size=(300, 4))[j])
    return i, j, signal / 2 + 0.5 * rng.normal(size=len(i))


def true_gap(model, i, j, y):
    """max ⟨∇F, X − V⟩ and what the biases could gain, in double precision."""
    (m, n), N = model.shape, len(y)
    p, q = weights(model.shape, i, j, model.weighted)
    margins = model.margins(i, j)
    g = margins - y
    x = margins - model.mean - model.row_bias[i] - model.col_bias[j]
    G = np.zeros(model.shape)
    G[i, j] = g / N
    sigma = np.linalg.norm(G / np.sqrt(np.outer(p, q)), 2)
    gu = np.bincount(i, g, m) + model.ridge[0] * model.row_bias
    gi = np.bincount(j, g, n) + model.ridge[1] * model.col_bias
    return g @ x / N + model.radius * sigma + (gu @ gu / model.ridge[0] + gi @ gi / model.ridge[1]) / (2 * N)


@pytest.mark.parametrize(("seed", "gap_tol"), [(7, 1e-5), (7, 1e-3), (1, 2e-4)])
def test_the_gap_is_no_smaller_than_the_true_one(seed, gap_tol):
    """Ritz values that seemed to have converged stated −5.4e-6 for the first."""
    i, j, y = entries(seed)
    model = complete(i, j, y, (600, 300), radius=0.1, gap_tol=gap_tol)
    assert true_gap(model, i, j, y) - 1e-12 <= model.gap <= gap_tol * model.value
