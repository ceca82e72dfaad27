"""one_sfw(oracle="lazy"): vertices met before, taken while they are good enough."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw

N, STEPS = 8, 2_000
RNG = np.random.default_rng(0)
GOAL = sum(share * np.eye(N)[RNG.permutation(N)] for share in (0.5, 0.3, 0.2)).astype(np.float32)
OBJECTIVE = fw.Expectation(
    lambda x, z: jnp.sum((x - jnp.asarray(GOAL)) ** 2) / 2 + 0.2 * jnp.sum(z * x),
    lambda key: jax.random.normal(key, (N, N)),
)


def test_fewer_calls_at_about_the_same_error():
    runs = {
        oracle: fw.minimize(
            OBJECTIVE, fw.sets.Birkhoff(N), steps=STEPS, replicates=2, evaluate=False,
            algorithm=fw.one_sfw(schedule="tuned", oracle=oracle),
        )
        for oracle in ("exact", "lazy")
    }  # fmt: skip
    errors = {oracle: np.sum((run.x - GOAL) ** 2, (1, 2)).mean() for oracle, run in runs.items()}
    assert runs["exact"].lmo_calls.tolist() == [STEPS, STEPS]
    assert np.all(runs["lazy"].lmo_calls < STEPS / 5)
    assert errors["lazy"] < 1.5 * errors["exact"]
    np.testing.assert_allclose(runs["lazy"].x.sum(1), 1, atol=1e-5)
    assert np.all(runs["lazy"].x >= 0)


def test_what_is_lazy_and_what_is_not():
    with pytest.raises(ValueError, match="oracle='lazy' is for Frank-Wolfe steps"):
        fw.one_sfw("dr_submodular", oracle="lazy")
    with pytest.raises(ValueError, match="oracle='slow' is not known"):
        fw.one_sfw(oracle="slow")


@pytest.mark.parametrize(("setting", "output"), [("convex", None), ("convex", "last"), ("nonconvex", "last")])
def test_atoms_of_x(setting, output):
    method = fw.one_sfw(setting, oracle="lazy", output=output)
    run = fw.minimize(OBJECTIVE, fw.sets.Birkhoff(N), steps=STEPS, evaluate=False, algorithm=method)
    vertices, weights = run.atoms
    assert np.all(weights > 0)
    assert abs(weights.sum() - 1) < 1e-12
    assert len(weights) <= (N - 1) ** 2 + 1
    np.testing.assert_allclose(np.tensordot(weights, vertices, 1), run.x, atol=1e-5)
    permutations = vertices if setting == "convex" else vertices[[v.max() == 1 for v in vertices]]  # and x_1
    assert len(permutations) >= len(vertices) - 1
    assert set(np.unique(permutations)) == {0, 1}


def test_atoms_of_replicates_of_trees_and_of_none():
    objective = fw.Expectation(
        lambda x, z: jnp.sum((x["a"] - z[:2]) ** 2) + jnp.sum((x["b"] - z[2]) ** 2),
        lambda key: 0.1 + 0.1 * jax.random.normal(key, (3,)),
    )
    start = {"a": np.zeros(2, np.float32), "b": np.zeros((2, 3), np.float32)}
    runs = {
        oracle: fw.minimize(
            objective, fw.sets.L1Ball(1.0), start, steps=STEPS, replicates=2, evaluate=False,
            algorithm=fw.one_sfw(oracle=oracle),
        )
        for oracle in ("exact", "lazy")
    }  # fmt: skip
    assert runs["exact"].atoms is None
    for r, (vertices, weights) in enumerate(runs["lazy"].atoms):
        for name in start:
            np.testing.assert_allclose(np.tensordot(weights, vertices[name], 1), runs["lazy"].x[name][r], atol=1e-5)
