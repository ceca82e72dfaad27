"""The generic loop over matrices that are never dense: the same steps as over dense ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lowrank_checks import planted
from sklearn.exceptions import ConvergenceWarning

import onesfw as fw
from onesfw.lowrank import Entries

SHAPE = (14, 11)


@pytest.fixture(scope="module")
def known():
    rows, cols, values = planted()
    return rows, cols, values.astype(np.float64)


@pytest.mark.parametrize("recipe", [fw.frank_wolfe, fw.momentum_sfw, fw.one_sfw])
def test_the_steps_are_those_of_a_dense_matrix(known, recipe):
    dense = fw.FiniteSum(lambda x, row: (x[row[0], row[1]] - row[2]) ** 2 / 2, known)
    arguments = {"steps": 12, "algorithm": recipe(), "key": 3}
    apart = fw.minimize(
        dense, fw.sets.NuclearBall(10.0, SHAPE, accuracy=1e-6), np.zeros(SHAPE, np.float32), **arguments
    )
    ball = fw.sets.NuclearBall(10.0, SHAPE, accuracy=1e-6, factored=True)
    seen = fw.minimize(Entries("squared", known), ball, **arguments)
    assert seen.value == pytest.approx(float(apart.value), rel=1e-3)
    assert seen.gap == pytest.approx(float(apart.gap), rel=1e-2)
    U, s, Vt = seen.x.factors
    assert np.allclose((U * s) @ Vt, apart.x, atol=1e-3 * np.abs(apart.x).max() + 1e-3)
    assert seen.x.norm <= 10.0 * (1 + 1e-6)
    assert seen.x.value == pytest.approx(seen.value, rel=1e-3)
    assert "rank of x.P" in str(seen)
    assert "seconds" not in str(seen.x)  # they are the result's


def test_a_loss_of_ones_own_on_pairs(known):
    """Of two columns of a row, the one with the larger value should be ahead."""
    truth = np.outer(np.linspace(-1, 1, 14), np.linspace(1, 2, 11))
    rng = np.random.default_rng(0)
    i, j = np.repeat(rng.integers(0, 14, (300, 1)), 2, axis=1), rng.integers(0, 11, (300, 2))
    ahead = np.sign(truth[i[:, 0], j[:, 0]] - truth[i[:, 1], j[:, 1]])

    def loss(predictions, row):
        return jnp.logaddexp(0.0, -row * (predictions[0] - predictions[1]))

    ball = fw.sets.NuclearBall(30.0, SHAPE, factored=True)
    result = fw.minimize(Entries(loss, (i, j, ahead)), ball, steps=60, algorithm=fw.frank_wolfe())
    apart = result.x.margins(i[:, 0], j[:, 0]) - result.x.margins(i[:, 1], j[:, 1])
    assert (np.sign(apart) == ahead)[ahead != 0].mean() > 0.8
    assert result.x.loss == "own"


def test_a_narrow_sketch_keeps_the_leading_part(known):
    ball = fw.sets.NuclearBall(10.0, SHAPE, factored=True, sketch=4)
    with pytest.warns(ConvergenceWarning, match="rank above 4.*a larger sketch=, now 4"):
        result = fw.minimize(Entries("squared", known), ball, steps=12, algorithm=fw.frank_wolfe())
    assert result.x.rank <= 4
    assert result.x.value == pytest.approx(result.value, rel=0.3)


def test_a_matrix_of_more_entries_than_can_be_numbered():
    """2 · 10¹⁰ entries, of which 5,000 are known: a ball of dense matrices refuses that shape."""
    rng = np.random.default_rng(0)
    shape = (200_000, 100_000)
    left, right = rng.normal(size=shape[0]), rng.normal(size=shape[1])
    i, j = np.append(rng.integers(0, 50, 5_000), shape[0] - 1), np.append(rng.integers(0, 40, 5_000), shape[1] - 1)
    ball = fw.sets.NuclearBall(60.0, shape, factored=True, sketch=4)
    result = fw.minimize(Entries("squared", (i, j, left[i] * right[j])), ball, steps=5, algorithm=fw.frank_wolfe())
    assert result.x.shape == shape
    assert result.x.value == pytest.approx(result.value, rel=1e-3)
    assert result.value < 0.05
    with pytest.raises(ValueError, match="at most 2,147,483,647 entries"):
        fw.sets.NuclearBall(60.0, shape)


def test_mistakes(known):
    rows, cols, values = known
    factored = fw.sets.NuclearBall(1.0, SHAPE, factored=True)
    with pytest.raises(TypeError, match="factored=True"):
        fw.minimize(Entries("squared", known), fw.sets.NuclearBall(1.0, SHAPE), steps=1)
    with pytest.raises(TypeError, match=r"lowrank\.Entries"):
        fw.minimize(fw.FiniteSum(lambda x, row: row, [1.0]), factored, steps=1)
    with pytest.raises(TypeError, match="factored must be True or False"):
        fw.sets.NuclearBall(1.0, SHAPE, factored="yes")
    with pytest.raises(ValueError, match="shape is needed"):
        fw.sets.NuclearBall(1.0, factored=True)
    with pytest.raises(ValueError, match="numbers count from 0"):
        fw.minimize(Entries("squared", known), fw.sets.NuclearBall(1.0, (3, 3), factored=True), steps=1)
    with pytest.raises(ValueError, match="has no projection"):
        fw.minimize(Entries("squared", known), factored, steps=1, algorithm=fw.projected_sgd())
    with pytest.raises(ValueError, match="not known"):
        Entries("hinge", known)
    with pytest.raises(ValueError, match="one shape"):
        Entries("squared", (rows[1:], cols, values))


def test_a_result_says_where_its_factors_are_saved(known, tmp_path):
    ball = fw.sets.NuclearBall(1.0, SHAPE, factored=True)
    result = fw.minimize(Entries("squared", known), ball, steps=3, algorithm=fw.frank_wolfe())
    with pytest.raises(TypeError, match=r"LowRank has a file of its own: result.x.save\(path\)"):
        result.save(tmp_path / "result.safetensors")
    result.x.save(tmp_path / "x.safetensors")
    assert fw.lowrank.LowRank.load(tmp_path / "x.safetensors").rank == result.x.rank


def test_a_sweep_over_several_balls(known):
    balls = [fw.sets.NuclearBall(radius, SHAPE, factored=True) for radius in (1.0, 5.0)]
    found = fw.sweep(Entries("squared", known), balls, steps=12, validation=False)
    for place, ball in enumerate(balls):
        key = jax.random.fold_in(jax.random.key(0), place)
        assert found.value[place, 0, 0] == fw.minimize(Entries("squared", known), ball, steps=12, key=key).value
