"""The gap that is stated, against the one of a dense decomposition."""

import numpy as np
import pytest
from lowrank_checks import weights

from onesfw.lowrank import complete, radius_path


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


@pytest.mark.parametrize("unit", [2.0**-36, 2.0**60, 2.0**250])
@pytest.mark.parametrize("gap_tol", [1e-3, 1e-5])
def test_the_gap_at_other_scales(unit, gap_tol):
    """Fourth powers of slopes are formed, and squares in single precision."""
    i, j, y = entries()
    model = complete(i, j, y * unit, (600, 300), radius=0.1 * unit, gap_tol=gap_tol)
    assert model.status == "gap"
    assert (true_gap(model, i, j, y * unit) - 1e-12 * unit**2) <= model.gap <= gap_tol * model.value


def test_values_too_small_are_refused():
    i, j, y = entries()
    with pytest.raises(ValueError, match="multiply them by some constant"):
        complete(i, j, y * 1e-30, (600, 300), radius=1e-31)
    assert complete(i, j, 0 * y, (600, 300), radius=1.0).value == 0


def test_atoms_are_let_in_although_the_gap_is_known_badly():
    """Noise of many values close to one another; it ended with rounding as its reason, four times above the goal."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 3_000, (2, 30_000))
    model = complete(i, j, rng.normal(size=30_000), (3_000, 3_000), radius=0.5, gap_tol=1e-4)
    assert model.status == "gap"
    assert model.rounds <= 12


@pytest.mark.parametrize(
    ("loss", "gap_tol"), [("squared", 1e-9), ("huber", 1e-7), ("logistic", 1e-6), ("poisson", 1e-6)]
)
@pytest.mark.parametrize("seed", range(4))
def test_small_gaps_are_reached(loss, gap_tol, seed):
    """New atoms took a millionth of X at least, and a gain that was small beside the goal passed for rounding."""
    rng = np.random.default_rng(seed)
    m, n = 30, 20
    i, j = np.nonzero(rng.random((m, n)) < 0.6)
    y = np.einsum("kc,kc->k", rng.normal(size=(m, 2))[i], rng.normal(size=(n, 2))[j]) + 0.3 * rng.normal(size=len(i))
    y = {"logistic": np.sign(y), "poisson": np.floor(np.exp(0.5 * y))}.get(loss, y)
    model = complete(i, j, y, (m, n), radius=0.6, loss=loss, gap_tol=gap_tol, key=seed)
    assert model.status == "gap"


@pytest.mark.parametrize(("loss", "value"), [("logistic", 1.0), ("logistic", -1.0), ("poisson", 0.0), ("poisson", 3.0)])
@pytest.mark.parametrize("biases", [True, False])
def test_values_that_are_all_alike_are_no_work(loss, value, biases):
    """Likes without dislikes: the loss falls for ever, by less than a mean can tell."""
    i, j, _ = entries()
    model = complete(i, j, np.full(len(i), value), (600, 300), loss=loss, radius=1.0, biases=biases)
    assert model.status == "gap"
    assert model.rounds <= 10


def test_radii_of_counts_without_biases():
    """Zeros alone: predictions of 1 bend the loss, however small the counts are."""
    i, j, _ = entries()
    path = radius_path(i, j, np.zeros(len(i)), (600, 300), loss="poisson", biases=False)
    assert 0.01 < path.radii[0] < 0.1
