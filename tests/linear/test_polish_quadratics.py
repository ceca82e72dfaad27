"""The quadratics inside the polish: many correlated columns, curvatures of unlike sizes, exponentials far away."""

import numpy as np
import pytest

from onesfw.linear import LOSSES, Settings, examples
from onesfw.linear import curvature as curvatures
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.polish import Rounds, polish
from onesfw.linear.radii import first_start
from onesfw.linear.simplex_quadratics import one_by_one


def solved(settings, data, limit):
    start = first_start(settings)
    return polish(settings, data, start.coefs, start.intercepts, np.full(settings.models, limit))


@pytest.mark.parametrize("rows", [260, 130, 30])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_correlated_columns_take_no_more_memory_than_the_rows(rows, loss, monkeypatch):
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 200)) + 3 * rng.normal(size=(rows, 1))
    y = (X @ rng.normal(size=200) + 0.1 * rng.normal(size=rows)) / 30
    data = examples(X, y if loss == "squared" else np.where(y > 0, 1.0, -1.0), None, 200, LOSSES[loss])
    settings = Settings(200, loss, "l1", 4.0, intercept=ANYWHERE)
    dense = solved(settings, data, 1e-6)
    monkeypatch.setattr(curvatures, "MOST_COLUMNS", 0)
    monkeypatch.setattr(curvatures, "LEAST_ROOM", 0)
    taken, plain = [0], curvatures.Products.factorised

    def watched(self, *given):
        factor = plain(self, *given)
        taken.append(factor.triangle.nbytes)
        return factor

    monkeypatch.setattr(curvatures.Products, "factorised", watched)
    found = solved(settings, data, 1e-6)
    assert max(dense.evaluation.gap[0], found.evaluation.gap[0]) <= 1e-6
    assert found.evaluation.value[0] == pytest.approx(dense.evaluation.value[0], abs=1e-6)
    assert max(taken) <= data.indptr.nbytes + data.indices.nbytes + data.values.nbytes
    assert len(taken) > 1 or rows < 260 or loss != "squared"


@pytest.mark.parametrize("thick", [True, False])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("room", "dtype"), [(8, np.float64), (4, np.float32), (0, None)])
def test_products_solve_what_the_matrix_solves(thick, centred, room, dtype):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 150)) + 2 * rng.normal(size=(300, 1))
    X[np.abs(X) < (0 if thick else 2)] = 0
    X[:, 7] *= 1e-12
    data = examples(X, np.zeros(300), None, 150, LOSSES["squared"])
    columns = curvatures.Columns(data.indptr, data.indices, data.values, 150)
    given = columns, rng.uniform(0.5, 1, 300), centred, 1e-9
    exact, products, made = curvatures.Matrix(*given), curvatures.Products(*given, room * 150**2), []
    for free in (np.arange(150), np.arange(2, 150), np.arange(0, 150, 2)):  # the last is another set altogether
        right = products.diagonal[free, None] * rng.normal(size=(len(free), 2))
        found, wanted = products.solve(free, right), exact.solve(free, right)
        left = np.zeros((150, 2))
        left[free] = found - wanted
        assert np.linalg.norm(exact.H @ left) <= 1e-5 * np.linalg.norm(right)
        made.append(None if products.factor is None else products.factor.triangle.dtype)
    assert made[0] == dtype


@pytest.mark.parametrize("filled", [False, True])
def test_one_coordinate_at_a_time_ends_at_the_same_minimum(filled):
    rng = np.random.default_rng(6)
    for _ in range(20):
        rows, size, radius = int(rng.integers(3, 40)), 25, float(10 ** rng.uniform(-1, 1))
        X = rng.normal(size=(rows, size)) * 10 ** rng.uniform(-1, 1, size)
        data = examples(X, np.zeros(rows), None, size, LOSSES["squared"])
        columns = curvatures.Columns(data.indptr, data.indices, data.values, size)
        H = curvatures.Matrix(columns, np.full(rows, 1 / rows), False, 1e-9)
        z = rng.dirichlet(np.ones(size)) * radius * (1.0 if filled else rng.random())
        c = rng.normal(size=size)
        v = one_by_one(H, c, z, radius, filled)
        assert v.min() >= 0
        assert v.sum() <= radius * (1 + 1e-9)
        slope = c + H.times(v)
        least = slope.min() if filled else min(slope.min(), 0.0)
        assert slope @ v - radius * least <= 1e-6 * radius * np.abs(c).max()


@pytest.mark.parametrize("constraint", ["l1", "linf"])
def test_counts_with_more_columns_than_rows(constraint):
    """Exponentials whose curvatures differ by orders of magnitude: block pivoting goes in circles."""
    for seed in range(6):
        rng = np.random.default_rng([8, seed])
        X = rng.normal(size=(20, 150)) * 10 ** rng.uniform(-1, 1, 150)
        data = examples(X, rng.poisson(1.0, 20).astype(float), None, 150, LOSSES["poisson"])
        radius = 8.0 if constraint == "l1" else 0.5
        found = solved(Settings(150, "poisson", constraint, radius), data, 1e-5)
        assert found.evaluation.gap[0] <= 1e-5


def test_exponentials_that_have_far_to_fall():
    rng = np.random.default_rng(9)
    data = examples(10 * np.abs(rng.normal(size=(40, 5))) + 30, np.ones(40), None, 5, LOSSES["poisson"])
    settings = Settings(5, "poisson", "l1", 10.0)
    start = np.array([[2.0, 2.0, 2.0, 2.0, 2.0]])
    far = Rounds(settings, data, 0, start[0], 0.0, 1e-6)
    far.at = far.place(start[0], far.rows.times(start[0]))  # a step divides F by e
    assert 1e155 < far.at.there.value < 1e300
    assert far.run()[3] <= 1e-6
