"""one_sfw(oracle="lazy"): vertices met before, taken between calls of the oracle."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_cases import under_vmap

import onesfw as fw
from onesfw.engine import solve
from onesfw.steps import FrankWolfeStep, LazyStep

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
    assert runs["exact"].atoms is None
    assert np.all(runs["lazy"].lmo_calls < STEPS / 5)
    assert errors["lazy"] < 1.5 * errors["exact"]
    np.testing.assert_allclose(runs["lazy"].x.sum(1), 1, atol=1e-5)
    assert np.all(runs["lazy"].x >= 0)


def test_the_oracle_is_asked_at_steps_that_grow():
    method = fw.one_sfw(schedule="tuned", oracle="lazy")
    for steps in (50, 400, 3_000):
        run = fw.minimize(OBJECTIVE, fw.sets.Birkhoff(N), steps=steps, evaluate=False, algorithm=method)
        asked, calls = 0, 0
        for t in range(1, steps + 1):
            if t - asked >= asked / 80:
                asked, calls = t, calls + 1
        assert run.lmo_calls == calls


def test_vertices_at_hand_are_as_many_as_a_product_bears():
    lazy = fw.one_sfw(oracle="lazy").step
    for entries, capacity in ((4, 400), (2_500, 104), (10**6, 1)):
        assert lazy.fit(fw.sets.L1Ball(1.0), jnp.zeros(entries)).capacity == capacity


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


@pytest.mark.parametrize("together", [False, True])
def test_atoms_of_replicates_of_trees(monkeypatch, together):
    monkeypatch.setattr(solve, "carry_out", partial(solve.carry_out, vectorised=together))
    under_vmap(monkeypatch)
    objective = fw.Expectation(
        lambda x, z: jnp.sum((x["a"] - z[:2]) ** 2) + jnp.sum((x["b"] - z[2]) ** 2),
        lambda key: 0.1 + 0.1 * jax.random.normal(key, (3,)),
    )
    start = {"a": np.zeros(2, np.float32), "b": np.zeros((2, 3), np.float32)}
    runs = fw.minimize(
        objective, fw.sets.L1Ball(1.0), start, steps=500, replicates=2, evaluate=False,
        algorithm=fw.one_sfw(oracle="lazy"),
    )  # fmt: skip
    for r, (vertices, weights) in enumerate(runs.atoms):
        for name in start:
            np.testing.assert_allclose(np.tensordot(weights, vertices[name], 1), runs.x[name][r], atol=1e-5)


def test_lazy_by_default_where_the_oracle_is_dear():
    square = fw.sets.Birkhoff(N)
    like = jnp.zeros((N, N))
    for dear in (square, fw.sets.Shifted(square, like), fw.sets.Scaled(square, 2.0)):
        assert isinstance(fw.one_sfw().step.fit(dear, like), LazyStep)
        assert isinstance(fw.one_sfw("nonconvex").step.fit(dear, like), LazyStep)
        for other in (fw.one_sfw(oracle="exact"), fw.one_sfw(schedule="paper"), fw.frank_wolfe()):
            assert type(other.step.fit(dear, like)) is FrankWolfeStep
    pair = fw.sets.Product((square, fw.sets.Box(0.0, 1.0, shape=2)))
    assert isinstance(fw.one_sfw().step.fit(pair, (like, jnp.zeros(2))), LazyStep)
    assert type(fw.one_sfw().step.fit(fw.sets.L1Ball(1.0), like)) is FrankWolfeStep
    triangle = fw.sets.Polytope(np.ones((1, 2)), np.ones(1), bounds=(0, 1))
    assert isinstance(fw.one_sfw().step.fit(triangle, jnp.zeros(2)), LazyStep)
    large = jax.ShapeDtypeStruct((10**4, 10**4), np.float32)  # 40 GB of vertices are not kept unless asked for
    assert type(fw.one_sfw().step.fit(square, large)) is FrankWolfeStep
    assert isinstance(fw.one_sfw(oracle="lazy").step.fit(square, large), LazyStep)


def test_more_vertices_than_are_at_hand():
    """The cube's 2^6 vertices, of which 4 are at hand: x stays in the hull of those recorded."""
    cube = fw.sets.Box(-1.0, 1.0, shape=6)
    objective = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2) / 2, lambda key: jax.random.normal(key, (6,)))
    method = replace(fw.one_sfw(oracle="lazy", output="last"), step=LazyStep(capacity=4))
    run = fw.minimize(objective, cube, steps=500, evaluate=False, algorithm=method)
    assert int(run.state.step.met) > 4
    vertices, weights = run.atoms
    np.testing.assert_allclose(weights @ vertices, run.x, atol=1e-5)
