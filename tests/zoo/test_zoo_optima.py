"""The optima of the zoo: verified by their gaps, by other solvers and by searches, and reached by 1-SFW."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from zoo_checks import CONVEX, GLOBAL, MAXIMISED, dimension, hessian, members

import onesfw as fw
from onesfw import zoo
from onesfw.zoo import optima


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


def test_no_ascent_beats_the_optimum_of_coverage():
    """Projected gradients from 100 random members end at or below the best set of five, and some within 3 %."""
    problem = zoo.get("coverage")
    best = problem.optimum()
    assert (np.sort(best.x)[-5:] == 1).all()
    assert best.x.sum() == 5
    covers, weights = (jnp.asarray(np.asarray(leaf), jnp.float32) for leaf in problem.objective.data)

    @jax.jit
    def climb(x):
        ascent = jax.grad(lambda y: jnp.mean(weights * (1 - jnp.prod(1 - covers * y, -1))))
        return jax.lax.fori_loop(
            0, 300, lambda _, y: jax.vmap(problem.constraint.project)(y + 0.5 * jax.vmap(ascent)(y)), x
        )

    values = problem.value(np.asarray(climb(jnp.asarray(members(problem, 100), jnp.float32)), np.float64))
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
