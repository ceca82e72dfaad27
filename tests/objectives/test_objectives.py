"""Objectives: derivatives against eq. (6) term by term, draws as pure functions, row orders that are permutations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from objective_cases import bernoulli, categorical, gaussian

import onesfw as fw
from onesfw.objectives.indices import shuffled_index, uniform_index

ZERO = jnp.zeros(())


@pytest.mark.parametrize("make", [gaussian, bernoulli, categorical])
def test_surrogate_is_equation_six_term_by_term(make):
    with jax.enable_x64(True):
        objective = make()
        x = jnp.array([0.2, 0.35, 0.15, 0.3])
        u = jnp.array([0.1, -0.2, 0.3, -0.15])
        key = jax.random.key(3)
        z = objective.sample(key, x)
        value, slope = jax.value_and_grad(objective.value)(x, z)
        score = jax.grad(lambda y: objective.log_prob(z, y))(x)
        hessian = jax.hessian(objective.value)(x, z)
        curvature = jax.hessian(lambda y: objective.log_prob(z, y))(x)
        for b in (0.0, 1.3):
            h = objective.at(key, x, jnp.asarray(b))
            gradient, product = h.hvp(x, u)
            centred = value - b
            expected = (
                centred * jnp.outer(score, score)
                + hessian
                + jnp.outer(slope, score)
                + centred * curvature
                + jnp.outer(score, slope)
            ) @ u
            np.testing.assert_allclose(gradient, slope + centred * score, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(h.gradient(x), gradient, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(product, expected, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(h.value(x), value, rtol=1e-12)


def test_users_derivatives_are_used_and_agree_with_autodiff():
    calls = []

    def grad(x, z):
        calls.append("grad")
        return 2 * (x - z)

    def hvp(x, z, u):
        calls.append("hvp")
        return 2 * u

    automatic = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2), lambda key: jax.random.normal(key, (3,)))
    own = fw.Expectation(automatic.value, automatic.sample, grad=grad, hvp=hvp)
    x, u = jnp.array([0.1, 0.2, 0.3]), jnp.array([1.0, -1.0, 0.5])
    draw = automatic.draw(jax.random.key(0), 5)
    a, b = automatic.at(draw, x, ZERO), own.at(draw, x, ZERO)
    np.testing.assert_allclose(a.gradient(x), b.gradient(x), rtol=1e-6)
    for mine, theirs in zip(a.hvp(x, u), b.hvp(x, u), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert {"grad", "hvp"} <= set(calls)
    runs = [
        fw.minimize(f, fw.sets.L2Ball(1.0, shape=3), steps=50, algorithm=fw.one_sfw(correction="hessian")).x
        for f in (automatic, own)
    ]
    np.testing.assert_allclose(*runs, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 64, 65, 1000])
def test_shuffled_rows_are_a_permutation_in_every_pass(n):
    order = jax.jit(jax.vmap(lambda key, s: shuffled_index(key, s, n), (None, 0)))
    for seed, epoch in ((0, 0), (1, 0), (0, 1), (7, 123_456)):
        numbers = np.arange(n * epoch, n * (epoch + 1))
        rows = np.asarray(order(jax.random.key(seed), numbers))
        assert sorted(rows.tolist()) == list(range(n))


def test_shuffled_rows_are_uniform_at_every_place():
    n, passes = 7, 4000
    rows = np.asarray(jax.vmap(lambda s: shuffled_index(jax.random.key(1), s, n))(np.arange(n * passes)))
    rows = rows.reshape(passes, n)
    for place in (0, 3, 6):
        counts = np.bincount(rows[:, place], minlength=n)
        chi_squared = np.sum((counts - passes / n) ** 2) / (passes / n)
        assert chi_squared < 22.5  # 99.9 % of χ² with 6 degrees of freedom
    pairs = np.bincount(rows[:, 0] * n + rows[:, 1], minlength=n * n).reshape(n, n)
    assert np.trace(pairs) == 0
    off = pairs[~np.eye(n, dtype=bool)]
    expected = passes / (n * (n - 1))
    assert np.sum((off - expected) ** 2) / expected < 75.0  # 99.9 % with 41 degrees of freedom


@pytest.mark.parametrize("n", [1, 3, 1000, 2**16, 2**16 + 1, 2**31 - 1])
def test_uniform_rows_match_exact_integer_arithmetic(n):
    keys = jax.random.key(5)
    numbers = np.arange(2000)
    rows = np.asarray(jax.vmap(lambda s: uniform_index(keys, s, n))(numbers))
    words = np.asarray(jax.vmap(lambda s: jax.random.key_data(jax.random.fold_in(keys, s)))(numbers))
    exact = [((int(h) << 32 | int(low)) * n) >> 64 for h, low in words]
    np.testing.assert_array_equal(rows, exact)


def test_uniform_rows_are_uniform():
    n, draws = 10, 50_000
    rows = jax.vmap(lambda s: uniform_index(jax.random.key(2), s, n))(np.arange(draws))
    counts = np.bincount(np.asarray(rows), minlength=n)
    assert np.sum((counts - draws / n) ** 2) / (draws / n) < 27.9  # 99.9 % with 9 degrees of freedom


@pytest.mark.parametrize("n", [1, 5, 4097, 30_011])
def test_full_pass_equals_the_mean_over_all_rows(n, monkeypatch):
    monkeypatch.setattr("onesfw.objectives.finite_sum.SLICE_BYTES", 1 << 14)
    rng = np.random.default_rng(0)
    rows, x = rng.standard_normal((n, 3)), rng.standard_normal(3)
    with jax.enable_x64(True):
        objective = fw.FiniteSum(lambda x, row: jnp.sum(jnp.sin(row * x)), rows)
        value, gradient = jax.jit(lambda y: objective.full_value_and_gradient(y))(jnp.asarray(x))
    np.testing.assert_allclose(value, np.sin(rows * x).sum(1).mean(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gradient, (np.cos(rows * x) * rows).mean(0), rtol=1e-10, atol=1e-12)


def test_fixed_order_is_followed():
    rows = np.arange(6.0, dtype=np.float32)
    objective = fw.FiniteSum(lambda x, row: jnp.sum(x * row), rows, indices=[5, 0, 3])
    assert [int(objective.draw(jax.random.key(0), s)) for s in range(3)] == [5, 0, 3]
    with pytest.raises(ValueError, match="indices holds 3 rows but the run draws 4 samples"):
        fw.minimize(objective, fw.sets.L2Ball(1.0, shape=1), steps=4)


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: fw.Expectation(3, lambda k: k), TypeError, "Expectation: value must be a function"),
        (lambda: fw.Expectation(lambda x, z: x, "no"), TypeError, "Expectation: sample must be a function"),
        (lambda: fw.Expectation(lambda x, z: x, lambda k: k, grad=1), TypeError, "grad must be a function"),
        (lambda: fw.NonOblivious(lambda x, z: x, lambda k, x: x, None), TypeError, "log_prob must be a function"),
        (lambda: fw.NonOblivious(lambda x, z: x, lambda k, x: x), TypeError, "no gradient has its score.*Expectation"),
        (lambda: fw.FiniteSum(None, np.ones(3)), TypeError, "loss must be a function"),
        (lambda: fw.FiniteSum(len, []), ValueError, "data holds no array"),
        (lambda: fw.FiniteSum(len, np.ones((0, 3))), ValueError, "at least one row"),
        (lambda: fw.FiniteSum(len, np.float64(3.0)), ValueError, "leading axis"),
        (lambda: fw.FiniteSum(len, {"a": np.ones(3), "b": np.ones(4)}), ValueError, "same number of rows"),
        (lambda: fw.FiniteSum(len, np.array([1.0, np.nan])), ValueError, "NaN or infinite.*remove or impute"),
        (lambda: fw.FiniteSum(len, jnp.array([1.0, jnp.inf])), ValueError, "NaN or infinite"),
        (lambda: fw.FiniteSum(len, np.array(["a"])), TypeError, "must hold numbers"),
        (lambda: fw.FiniteSum(len, np.ones(3), indices=[0, 3]), ValueError, r"indices must lie in 0..2"),
        (lambda: fw.FiniteSum(len, np.ones(3), indices=[0.5]), TypeError, "vector of integers"),
    ],
)
def test_bad_objectives_are_refused(build, kind, message):
    with pytest.raises(kind, match=message):
        build()


ROWS, TARGETS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1, 0, 1]


@pytest.mark.parametrize(
    ("data", "shapes"),
    [
        (ROWS, (3, 2)),
        (TARGETS, (3,)),
        ([(1.0, 2.0), (3.0, 4.0)], (2, 2)),
        ((ROWS, TARGETS), ((3, 2), (3,))),
        ([ROWS, TARGETS], [(3, 2), (3,)]),
        ({"a": ROWS, "b": np.ones((3, 4))}, {"a": (3, 2), "b": (3, 4)}),
        ([np.ones((3, 2)), np.zeros((3, 2))], [(3, 2), (3, 2)]),
    ],
)
def test_lists_of_numbers_are_arrays(data, shapes):
    objective = fw.FiniteSum(lambda x, row: x @ x, data)
    assert jax.tree.map(np.shape, objective.data) == shapes


def test_nested_lists_give_the_answer_of_arrays():
    def loss(x, row):
        return (x @ row[0] - row[1]) ** 2

    ball = fw.sets.L1Ball(1.0, shape=2)
    lists = fw.minimize(fw.FiniteSum(loss, (ROWS, TARGETS)), ball, steps=50)
    arrays = fw.minimize(fw.FiniteSum(loss, (np.array(ROWS), np.array(TARGETS))), ball, steps=50)
    np.testing.assert_array_equal(lists.x, arrays.x)


def test_lists_that_are_no_arrays_are_named():
    with pytest.raises(ValueError, match=r"same number of rows; data\[1\] has 1, the first leaf 2"):
        fw.FiniteSum(lambda x, row: x @ x, [[1.0, 2.0], [3.0]])
    with pytest.raises(TypeError, match=r"data\[0\] must hold numbers"):
        fw.FiniteSum(lambda x, row: x @ x, ["a", "b"])
    with pytest.raises(ValueError, match="NaN or infinite"):
        fw.FiniteSum(lambda x, row: x @ x, [[1.0], [float("nan")]])
