"""The zoo: gradients, optima, and what each problem's docstring says about it."""

import subprocess
import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import onesfw as fw
from onesfw import zoo
from onesfw.zoo import logistic, optima

LOGISTIC = ["logistic", "logistic-generated", "logistic-wide"]
SIMPLEX = ["quadratic-interior", "quadratic-face", "quadratic-noisy"]
CONVEX = [*LOGISTIC, "interpolation", *SIMPLEX, "gaussian"]
NAMES = [*CONVEX[:-1], "sigmoid", "indefinite", "nqp", "coverage", "gaussian"]
SUMS = [*LOGISTIC, "interpolation", "sigmoid", "coverage"]
MAXIMISED = ["nqp", "coverage"]
QUADRATIC = [*SIMPLEX, "indefinite", "nqp"]
GLOBAL = ["indefinite", "nqp"]


def dimension(problem):
    (d,) = problem.constraint.template()
    return d


@cache
def two_hundred_members(problem):
    """Random members of K: means of three vertices, pulled towards the starting point."""
    d = dimension(problem)
    with jax.enable_x64(True):
        directions = jnp.asarray(np.random.default_rng(0).standard_normal((600, d)))
        vertices = np.asarray(jax.jit(jax.vmap(problem.constraint.lmo))(directions)).reshape(200, 3, d)
        start = np.asarray(problem.constraint.start(jnp.zeros(d)))
    return 0.7 * vertices.mean(1) + 0.3 * start


def members(problem, count):
    """Some of them."""
    return two_hundred_members(problem)[:count]


def hessian(problem):
    """Q of a quadratic, from its gradient."""
    d = dimension(problem)
    return problem.gradient(np.eye(d)) - problem.gradient(np.zeros(d))


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


@pytest.mark.parametrize("name", CONVEX)
def test_convex_optima_are_verified_by_their_gap(name):
    problem = zoo.get(name)
    best = problem.optimum()
    assert problem.optimum() is best
    assert 0 <= best.error <= 1e-9
    assert problem.gap(best.x) <= 1e-9
    assert problem.constraint.contains(best.x, 1e-6)
    assert np.all(problem.value(members(problem, 200)) >= best.value)


def test_scipy_finds_the_same_optimum_of_logistic():
    """min F(p − q) over p, q ≥ 0, Σp + Σq ≤ r, by sequential quadratic programming."""
    problem = zoo.get("logistic")
    d = dimension(problem)
    found = scipy_minimize(
        lambda u: problem.value(u[:d] - u[d:]),
        np.zeros(2 * d),
        jac=lambda u: np.concatenate([problem.gradient(u[:d] - u[d:]), -problem.gradient(u[:d] - u[d:])]),
        bounds=[(0, None)] * (2 * d),
        constraints={"type": "ineq", "fun": lambda u: 5 - u.sum(), "jac": lambda u: -np.ones(2 * d)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert found.success
    assert abs(found.fun - problem.optimum().value) <= 1e-8


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


def test_quadratics_have_their_optimum_where_their_names_say():
    inside, on_a_face = (zoo.get(f"quadratic-{kind}").optimum().x for kind in ("interior", "face"))
    assert inside.min() > 0.01
    np.testing.assert_allclose(zoo.get("quadratic-interior").gradient(inside), 0, atol=1e-9)
    corner = np.sqrt([7.0, 5.0, 3.0, 2.0] + [0.0] * 16)
    np.testing.assert_allclose(on_a_face, corner / corner.sum(), atol=1e-9)
    slopes = zoo.get("quadratic-face").gradient(on_a_face)
    assert slopes[4:].min() - slopes[:4].max() > 0.1  # strictly complementary


def test_interpolation_fits_every_row_at_its_optimum():
    problem = zoo.get("interpolation")
    rows, targets = (np.asarray(leaf) for leaf in problem.objective.data)
    best = problem.optimum()
    np.testing.assert_allclose(rows @ best.x, targets, atol=1e-9)
    assert 0 <= best.value <= 1e-18
    assert np.abs(best.x).sum() == pytest.approx(2.0)  # inside the ball of radius 3


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


def test_gaussian_has_the_stated_optimum():
    problem = zoo.get("gaussian")
    np.testing.assert_allclose(problem.optimum().x, [0.5, 0.5] + [0.0] * 8, atol=1e-9)
    with jax.enable_x64(True):
        z = jax.vmap(lambda key: problem.objective.sample(key, jnp.zeros(10)))(
            jax.random.split(jax.random.key(0), 4000)
        )
    assert np.asarray(z).std() == pytest.approx(0.5, rel=0.03)


def test_the_optimum_of_sigmoid_is_not_known():
    problem = zoo.get("sigmoid")
    assert problem.solve is None
    with pytest.raises(ValueError, match="not known; measure gap"):
        problem.optimum()
    points = members(problem, 200)  # not convex: some chord lies below the graph
    ends, others, middles = points[:100], points[100:], (points[:100] + points[100:]) / 2
    assert np.any(problem.value(middles) > (problem.value(ends) + problem.value(others)) / 2 + 1e-4)


@pytest.mark.parametrize("name", GLOBAL)
def test_global_optima_are_members_and_stationary(name):
    problem = zoo.get(name)
    best = problem.optimum()
    assert 0 <= best.error <= 1e-3
    assert problem.constraint.contains(best.x, 1e-6)
    assert best.value == pytest.approx(problem.value(best.x), rel=1e-12)
    assert abs(problem.gap(best.x)) <= 1e-4


@pytest.mark.parametrize("name", GLOBAL)
def test_no_local_search_beats_the_bound(name):
    """Projected gradients from 200 random members: none passes F* by more than the error, and the best gets there."""
    problem = zoo.get(name)
    best, sign = problem.optimum(), 1 if problem.sense == "minimize" else -1
    curvature = np.abs(np.linalg.eigvalsh(hessian(problem))).max()
    x = members(problem, 200)

    @jax.jit
    def descend(x):
        def step(_, x):
            return jax.vmap(problem.constraint.project)(x - sign * problem.gradient(x) / curvature)

        return jax.lax.fori_loop(0, 2_000, step, x)

    with jax.enable_x64(True):
        x = np.asarray(descend(jnp.asarray(x)))
    values = sign * problem.value(x)
    assert values.min() >= sign * best.value - best.error
    assert values.min() <= sign * best.value + best.error


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


def test_no_ascent_beats_the_optimum_of_coverage():
    """Projected gradients from 200 random members end at or below the best set of five, and some within 3 %."""
    problem = zoo.get("coverage")
    best = problem.optimum()
    assert (np.sort(best.x)[-5:] == 1).all()
    assert best.x.sum() == 5
    covers, weights = (jnp.asarray(np.asarray(leaf), jnp.float32) for leaf in problem.objective.data)

    @jax.jit
    def climb(x):
        ascent = jax.grad(lambda y: jnp.mean(weights * (1 - jnp.prod(1 - covers * y, -1))))
        return jax.lax.fori_loop(
            0, 500, lambda _, y: jax.vmap(problem.constraint.project)(y + 0.5 * jax.vmap(ascent)(y)), x
        )

    values = problem.value(np.asarray(climb(jnp.asarray(members(problem, 200), jnp.float32)), np.float64))
    assert values.max() <= best.value + 1e-5
    assert values.max() >= 0.97 * best.value


def brute_force(matrix, linear, lower, upper, costs, budget):
    """The least value over a fine grid of a small set, each grid point that violates the budget left out."""
    axes = [np.linspace(a, b, 41) for a, b in zip(lower, upper, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, linear.size)
    points = points if costs is None else points[points @ costs <= budget]
    return float(np.min(np.sum(points * (points @ matrix / 2 + linear), -1)))


@pytest.mark.parametrize("seed", range(6))
def test_quadratic_optimum_against_a_grid(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((3, 3))
    matrix, linear = matrix + matrix.T, rng.standard_normal(3)
    with_budget = seed % 2 == 1
    lower = np.zeros(3) if with_budget else -rng.random(3)
    upper = 0.5 + rng.random(3)
    costs, budget = (0.5 + rng.random(3), 0.8) if with_budget else (None, None)
    best = optima.quadratic_optimum(matrix, linear, lower, upper, costs, budget)
    grid = brute_force(matrix, linear, lower, upper, costs, budget)
    assert np.all((best.x >= lower) & (best.x <= upper))
    assert not with_budget or costs @ best.x <= budget + 1e-9
    assert best.value - best.error <= grid <= best.value + 0.2


@pytest.mark.parametrize("seed", range(5))
def test_numpy_projections_agree_with_the_sets(seed):
    y = 3 * np.random.default_rng(seed).standard_normal(8)
    with jax.enable_x64(True):
        simplex, ball = fw.sets.Simplex(1.0, shape=8), fw.sets.L1Ball(2.0, shape=8)
        np.testing.assert_allclose(optima.project_to_simplex(y), simplex.project(jnp.asarray(y)), atol=1e-12)
        np.testing.assert_allclose(optima.project_to_l1_ball(y, 2.0), ball.project(jnp.asarray(y)), atol=1e-12)
    np.testing.assert_array_equal(optima.project_to_l1_ball(0.01 * y, 2.0), 0.01 * y)


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        ("logistic", 5e-3),
        ("logistic-generated", 5e-3),
        ("logistic-wide", 0.5),  # a large diameter
        ("interpolation", 1e-2),
        ("quadratic-interior", 5e-3),
        ("quadratic-face", 2e-3),
        ("quadratic-noisy", 5e-2),
        ("gaussian", 1e-2),
    ],
)
def test_one_sfw_solves_the_convex_ones(name, accuracy):
    problem = zoo.get(name)
    result = fw.minimize(
        problem.objective, problem.constraint, steps=20_000, algorithm=problem.algorithm(), evaluate=False
    )
    assert -1e-6 <= problem.value(np.asarray(result.x, np.float64)) - problem.optimum().value <= accuracy


@pytest.mark.parametrize(("name", "accuracy"), [("sigmoid", 0.3), ("indefinite", 1.0)])
def test_one_sfw_finds_stationary_points(name, accuracy):
    problem = zoo.get(name)
    result = fw.minimize(
        problem.objective, problem.constraint, steps=20_000, algorithm=problem.algorithm(), evaluate=False
    )
    assert problem.gap(np.asarray(result.x_last)) <= accuracy


@pytest.mark.parametrize("name", MAXIMISED)
def test_one_sfw_passes_the_guarantee(name):
    problem = zoo.get(name)
    result = fw.maximize(problem.objective, problem.constraint, steps=20_000, evaluate=False)
    best = problem.optimum()
    value = problem.value(np.asarray(result.x, np.float64))
    assert (1 - 1 / np.e) * best.value <= value <= best.value + best.error
    assert problem.constraint.contains(result.x, 1e-5)
