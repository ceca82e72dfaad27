"""The zoo: names, gradients and samples of its problems, and what each problem's docstring says about it."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from zoo_checks import MAXIMISED, NAMES, QUADRATIC, SUMS, dimension, hessian, members

from onesfw import zoo
from onesfw.zoo import logistic


def test_names_and_summaries():
    assert zoo.names() == NAMES
    assert list(zoo.summaries()) == NAMES
    for name in NAMES:
        problem = zoo.get(name)
        assert (problem.name, problem.summary) == (name, zoo.summaries()[name])
        assert zoo.get(name) is problem
        assert problem.sense == ("maximize" if name in MAXIMISED else "minimize")


@pytest.mark.parametrize(
    ("wrong", "meant"), [("logistc", "logistic"), ("quadratic_face", "quadratic-face"), ("npq", "nqp")]
)
def test_an_unknown_name_suggests_the_nearest(wrong, meant):
    with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
        zoo.get(wrong)


def test_a_name_that_is_no_string_raises():
    with pytest.raises(TypeError, match="name must be one of"):
        zoo.get(3)


def test_listing_builds_nothing_and_imports_nothing_heavy():
    script = (
        "import sys; from onesfw import zoo; zoo.summaries(); assert zoo.build.cache_info().currsize == 0;"
        "print([m for m in ('numba', 'sklearn', 'matplotlib', 'orbax') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", NAMES)
def test_two_builds_agree(name):
    first, (summary, builder) = zoo.get(name), zoo.PROBLEMS[name]
    second = builder(name, summary)
    x = members(first, 5)
    np.testing.assert_array_equal(first.value(x), second.value(x))
    np.testing.assert_array_equal(first.gradient(x), second.gradient(x))


@pytest.mark.parametrize("name", NAMES)
def test_value_gradient_and_gap_take_points_in_rows(name):
    problem = zoo.get(name)
    x = members(problem, 4)
    np.testing.assert_allclose(problem.value(x), [problem.value(row) for row in x], rtol=1e-12)
    np.testing.assert_allclose(problem.gradient(x), [problem.gradient(row) for row in x], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(problem.gap(x), [problem.gap(row) for row in x], rtol=1e-10, atol=1e-14)
    assert np.all(problem.gap(x) > 0)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_agrees_with_differences_of_the_value(name):
    problem = zoo.get(name)
    (x,) = members(problem, 1)
    step = 1e-5
    moves = step * np.eye(x.size)
    slopes = (problem.value(x + moves) - problem.value(x - moves)) / (2 * step)
    np.testing.assert_allclose(problem.gradient(x), slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", SUMS)
def test_finite_sums_agree_with_the_mean_over_rows(name):
    problem = zoo.get(name)
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, problem.objective.data)

        def mean(x):
            return jnp.mean(jax.vmap(problem.objective.loss, (None, 0))(x, data))

        for x in members(problem, 3):
            value, gradient = jax.value_and_grad(mean)(jnp.asarray(x))
            np.testing.assert_allclose(problem.value(x), value, rtol=1e-12)
            np.testing.assert_allclose(problem.gradient(x), gradient, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("name", [*QUADRATIC, "gaussian"])
def test_samples_average_to_the_value_and_the_gradient(name):
    problem, samples = zoo.get(name), 40_000
    (x,) = members(problem, 1)
    with jax.enable_x64(True):
        point, zero = jnp.asarray(x), jnp.zeros(())

        def one(number):
            h = problem.objective.at(problem.objective.draw(jax.random.key(1), number), point, zero)
            return h.integrand(point), h.gradient(point)

        values, gradients = map(np.asarray, jax.jit(jax.vmap(one))(jnp.arange(samples)))
    for drawn, exact in ((values[:, None], problem.value(x)), (gradients, problem.gradient(x))):
        stderr = drawn.std(0, ddof=1) / samples**0.5
        assert np.all(stderr > 0)
        assert np.all(np.abs(drawn.mean(0) - exact) <= 5 * stderr)


@pytest.mark.parametrize("name", QUADRATIC)
def test_the_written_gradient_of_a_sample_is_jaxs(name):
    objective = zoo.get(name).objective

    @jax.jit
    def both(x, number):
        draw = objective.draw(jax.random.key(2), number)
        return objective.grad(x, draw), jax.grad(objective.value)(x, draw)

    with jax.enable_x64(True):
        for number, x in enumerate(members(zoo.get(name), 5)):
            np.testing.assert_allclose(*both(jnp.asarray(x), number), rtol=1e-10)


@pytest.mark.parametrize("name", QUADRATIC)
def test_the_noise_of_the_gradient_depends_on_x(name):
    problem = zoo.get(name)
    x, y = members(problem, 2)

    def change(number):
        draw = problem.objective.draw(jax.random.key(3), number)
        return problem.objective.grad(x, draw) - problem.objective.grad(y, draw)

    with jax.enable_x64(True):
        assert np.std(jax.jit(jax.vmap(change))(jnp.arange(100)), 0).max() > 0.01


def test_logistic_is_standardised_and_its_constraint_is_active():
    rows, labels = (np.asarray(leaf) for leaf in zoo.get("logistic").objective.data)
    assert rows.shape == (569, 30)
    assert rows.dtype == np.float64
    np.testing.assert_allclose(rows.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(rows.std(0), 1, rtol=1e-12)
    assert set(labels) == {-1.0, 1.0}
    for name, radius in (("logistic", 5.0), ("logistic-generated", 3.0), ("logistic-wide", 50.0)):
        assert np.abs(zoo.get(name).optimum().x).sum() == pytest.approx(radius, rel=1e-9)


def test_generated_rows_have_the_stated_size():
    rows, labels = logistic.generated_rows(5_000, 20, 2020)
    assert rows.shape == (5_000, 20)
    np.testing.assert_array_equal(rows, zoo.get("logistic-generated").objective.data[0])
    np.testing.assert_array_equal(labels, zoo.get("logistic-generated").objective.data[1])


def test_quadratic_noisy_is_quadratic_face_with_twenty_times_the_noise():
    quiet, noisy = zoo.get("quadratic-face"), zoo.get("quadratic-noisy")
    x = members(quiet, 3)
    np.testing.assert_allclose(noisy.gradient(x), quiet.gradient(x), rtol=1e-12)
    (point,) = members(quiet, 1)

    def spread(problem):
        draws = jax.vmap(lambda i: problem.objective.draw(jax.random.key(5), i))(jnp.arange(4000))
        return np.asarray(jax.vmap(lambda z: problem.objective.grad(point, z))(draws)).std(0)

    with jax.enable_x64(True):
        np.testing.assert_allclose(spread(noisy) / spread(quiet), 20.0, rtol=0.2)


def test_indefinite_has_eigenvalues_of_both_signs_and_coordinates_inside():
    problem = zoo.get("indefinite")
    eigenvalues = np.linalg.eigvalsh(hessian(problem))
    assert eigenvalues[0] < -0.5
    assert eigenvalues[-1] > 0.5
    inside = np.abs(problem.optimum().x) < 0.9
    assert 0 < inside.sum() < inside.size


def test_nqp_is_monotone_and_has_diminishing_returns():
    """∇F ≥ 0 on the box around K, and x ≤ y implies ∇F(x) ≥ ∇F(y), for F and for every draw's curvature."""
    problem = zoo.get("nqp")
    d = dimension(problem)
    rng = np.random.default_rng(0)
    low, high = np.sort(rng.random((2, 1_000, d)), axis=0)
    assert np.all(problem.gradient(high) >= -1e-12)
    assert np.all(problem.gradient(low) >= problem.gradient(high) - 1e-12)
    assert problem.value(np.zeros(d)) == 0
    lower, upper = problem.constraint.bounds()
    assert np.all((np.asarray(lower) >= 0) & (np.asarray(upper) <= 1))
    assert problem.constraint.costs @ np.ones(d) > 1.5 * problem.constraint.budget  # the budget binds

    def curvature(number):
        draw = problem.objective.draw(jax.random.key(4), number)
        return jax.hessian(lambda x: problem.objective.value(x, draw))(jnp.zeros(d))

    with jax.enable_x64(True):
        assert np.all(np.asarray(jax.jit(jax.vmap(curvature))(jnp.arange(100))) <= 1e-12)


def test_coverage_is_the_expected_weight_that_a_random_set_covers():
    """F(x) against all 2^d sets of a cut of the instance, and at the indicator of a set."""
    problem = zoo.get("coverage")
    covers, weights = (np.asarray(leaf) for leaf in problem.objective.data)
    weights = weights / len(weights)
    d = dimension(problem)
    x = np.where(np.arange(d) < 8, np.random.default_rng(0).random(d), 0.0)
    bits = (np.arange(2**8)[:, None] >> np.arange(8)) & 1
    chances = np.prod(np.where(bits == 1, x[:8], 1 - x[:8]), 1)
    weight = ((bits @ covers[:, :8].T) > 0) @ weights
    assert problem.value(x) == pytest.approx(chances @ weight, rel=1e-12)
    chosen = np.zeros(d)
    chosen[[2, 3, 11]] = 1.0
    assert problem.value(chosen) == pytest.approx((covers[:, [2, 3, 11]].any(1)) @ weights, rel=1e-12)
    assert weights.sum() == pytest.approx(1.0)


def test_coverage_is_monotone_and_has_diminishing_returns():
    problem = zoo.get("coverage")
    low, high = np.sort(np.random.default_rng(0).random((2, 300, dimension(problem))), axis=0)
    assert np.all(problem.gradient(high) >= 0)
    assert np.all(problem.gradient(low) >= problem.gradient(high) - 1e-12)
    assert problem.value(np.zeros(dimension(problem))) == 0
