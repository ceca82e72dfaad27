"""The multilinear extension: closed forms and unbiased estimates, against enumeration of all sets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from submodular_checks import (
    CLOSED,
    ESTIMATED,
    Exact,
    N,
    assert_unbiased,
    coverage,
    estimated,
    influence,
    make,
    points,
)

import onesfw as fw
from onesfw import submodular
from onesfw.estimators import Hessian, SameSample
from onesfw.submodular import enumerate_extension


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("n", [5, 12])
def test_closed_forms_equal_enumeration(name, n):
    rng = np.random.default_rng(3)
    function = make(name, n=n)
    objective = fw.MultilinearExtension(function)

    @jax.jit
    def traced(x):
        h = objective.at(jnp.int32(2), x, 0.0)
        return *objective.full_value_and_gradient(x), h.gradient(x), jax.grad(h.value)(x)

    places = points(rng, n)
    for x in places.values() if n < 12 else [places["mixed"]]:
        value, gradient = enumerate_extension(function, x)
        exact, slope = function.extension(x)
        assert exact == pytest.approx(value, abs=1e-9)
        np.testing.assert_allclose(slope, gradient, atol=1e-9)
        with jax.enable_x64(True):
            again, climb, one, derived = traced(jnp.asarray(x))
        assert float(again) == pytest.approx(value, abs=1e-9)
        np.testing.assert_allclose(climb, gradient, atol=1e-9)
        np.testing.assert_allclose(one, derived, atol=1e-9)


def test_facility_location_needs_what_comes_after_a_chosen_element():
    """At x_1 = 1 the product of all factors is 0, but ∂_1 = m_1 − E(the best of the others)."""
    function = submodular.FacilityLocation([[3.0, 2.0, 1.0]])
    _, gradient = function.extension([1.0, 0.5, 0.5])
    assert gradient == pytest.approx([3 - (0.5 * 2 + 0.5 * 0.5 * 1), 0.0, 0.0])


@pytest.mark.parametrize("name", ESTIMATED)
def test_sampled_estimates_are_unbiased(name):
    """g(S) for ∇F(x̄) and the sampled coordinate for ∇F(x) − ∇F(x_{t−1}), also at 0 and 1, u of both signs."""
    rng = np.random.default_rng(4)
    function, exact = estimated(name)
    objective = fw.MultilinearExtension(function, sampled=True)
    count = {"logdet": 600, "influence": 1_500}.get(name, 6_000)

    def one(number, x, previous):
        a = jax.random.uniform(jax.random.fold_in(jax.random.key(9), number))
        draw = objective.draw(jax.random.key(1), number)
        increment = Hessian()(objective, draw, a, x, previous, jnp.float32(0))
        still = objective.at(draw, x, jnp.float32(0))
        return increment.change, still.gradient(x), still.integrand(x)

    @jax.jit
    def many(x, previous):
        return jax.lax.map(lambda number: one(number, x, previous), jnp.arange(count), batch_size=500)

    scale = exact.value(np.ones(exact.n)) * (function.omegas or 1)
    for x in points(rng, exact.n).values():
        previous = np.clip(x + rng.uniform(-0.4, 0.4, exact.n) * (rng.random(exact.n) < 0.7), 0, 1)
        change, gradient, value = many(jnp.float32(x), jnp.float32(previous))
        expected, slope = enumerate_extension(exact, x)
        assert_unbiased(gradient, slope, scale, rare=name == "influence")
        assert_unbiased(value, expected, scale)
        assert_unbiased(change, slope - enumerate_extension(exact, previous)[1], scale, rare=name == "influence")


@pytest.mark.parametrize("name", [*CLOSED, "influence"])
def test_closed_form_estimates_are_unbiased(name):
    rng = np.random.default_rng(5)
    function, exact = estimated(name)
    objective = fw.MultilinearExtension(function)
    count = 1_500 if name == "influence" else 4_000
    assert ("a full gradient" in objective.offers) is (name != "influence")

    def one(number, x, previous):
        draw = objective.draw(jax.random.key(2), number)
        increment = SameSample()(objective, draw, 0.0, x, previous, jnp.float32(0))
        return objective.at(draw, x, 0.0).value(x), increment.gradient, increment.change

    @jax.jit
    def many(x, previous):
        return jax.lax.map(lambda number: one(number, x, previous), jnp.arange(count), batch_size=500)

    scale = exact.value(np.ones(exact.n)) * (function.omegas or 1)
    for x in points(rng, exact.n).values():
        previous = rng.random(exact.n)
        value, gradient, change = many(jnp.float32(x), jnp.float32(previous))
        expected, slope = enumerate_extension(exact, x)
        assert_unbiased(value, expected, scale)
        assert_unbiased(gradient, slope, scale, rare=name == "influence")
        assert_unbiased(change, slope - enumerate_extension(exact, previous)[1], scale, rare=name == "influence")


def test_influence_has_a_closed_form_for_every_reverse_set():
    """F_ω(x) and its gradient for a drawn ω, against all 2⁵ sets; derivatives agree too."""
    function = influence()
    masks = (np.arange(2**5)[:, None] >> np.arange(5)) & 1

    @jax.jit
    def traced(x, number):
        omega = function.draw(jax.random.key(6), number)
        values = jax.vmap(lambda s: function.value_at(s, omega))(jnp.asarray(masks, x.dtype))
        derived = jax.jacobian(lambda y: function.extension_at(y, omega))(x)
        return omega, values, function.extension_at(x, omega), function.extension_gradient_at(x, omega), derived

    sizes = set()
    with jax.enable_x64(True):
        for number, x in enumerate([*points(np.random.default_rng(7), 5).values()] * 3):
            omega, values, value, gradient, derived = traced(jnp.asarray(x), jnp.int32(number))
            table = Exact(5, {tuple(np.flatnonzero(m).tolist()): float(v) for m, v in zip(masks, values, strict=True)})
            expected, slope = enumerate_extension(table, x)
            assert float(value) == pytest.approx(expected, abs=1e-9)
            np.testing.assert_allclose(gradient, slope, atol=1e-9)
            np.testing.assert_allclose(derived, slope, atol=1e-9)
            sizes.add(int(np.sum(omega)))
    assert len(sizes) > 1


def test_the_sampled_correction_is_small_where_the_step_is():
    """E‖Δ̃ − Δ‖² = O(‖u‖₁²): shared uniforms would give O(‖u‖₁), sixteen times more for a step a quarter as long."""
    function = make("coverage")
    objective = fw.MultilinearExtension(function, sampled=True)
    rng = np.random.default_rng(6)
    x, v = rng.uniform(0.2, 0.6, N), rng.uniform(0.1, 0.4, N)

    def spread(eta):
        def one(number):
            draw = objective.draw(jax.random.key(1), number)
            point = jnp.float32(x + eta * v)
            return Hessian()(objective, draw, 0.5, point, jnp.float32(x), jnp.float32(0)).change

        samples = np.asarray(jax.jit(jax.vmap(one))(jnp.arange(20_000)), np.float64)
        return np.sum(samples.var(0))

    assert spread(0.5) / spread(0.125) == pytest.approx(16, rel=0.2)


def test_no_step_no_change():
    objective = fw.MultilinearExtension(make("coverage"), sampled=True)
    x = jnp.zeros(N)
    increment = jax.jit(lambda: Hessian()(objective, objective.draw(jax.random.key(0), 0), 0.5, x, x, jnp.float32(0)))()
    assert not np.any(increment.change)


def slope_of_error(sampled):
    """The slope of log E‖d_T − ∇F(x_T)‖² over T = 100, 1,000 and 10,000, n = 12."""
    rng = np.random.default_rng(0)
    function = coverage(rng, 12)
    objective = fw.MultilinearExtension(function, sampled=sampled)
    errors = []
    horizons = [100, 1_000, 10_000]
    for steps, seeds in zip(horizons, (24, 12, 8), strict=True):
        result = fw.maximize(
            objective, fw.sets.Knapsack(np.ones(12), 4.0), steps=steps, replicates=seeds, evaluate=False
        )
        squares = []
        for state in result.state:
            gradient = function.extension(np.asarray(state.previous))[1]
            squares.append(np.sum((np.asarray(state.estimate.d) - gradient) ** 2))
        errors.append(np.mean(squares))
    return np.polyfit(np.log(horizons), np.log(errors), 1)[0]


@pytest.mark.parametrize("sampled", [False, True], ids=["closed form", "sampled"])
def test_the_gradient_error_falls_like_one_over_t(sampled):
    assert slope_of_error(sampled) <= -0.9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fw.MultilinearExtension(lambda s: 0.0), r"SetFunction\(value, n\)"),
        (lambda: make("coverage").extension([0.5]), f"{N} entries"),
        (lambda: make("coverage").extension([2.0] * N), r"\[0, 1\]"),
        (lambda: enumerate_extension(coverage(np.random.default_rng(0), 21), np.zeros(21)), "at most n = 20"),
        (
            lambda: fw.maximize(fw.MultilinearExtension(make("coverage")), fw.sets.SubSimplex(2.0, shape=3), steps=5),
            f"one vector of {N} entries",
        ),
        (
            lambda: fw.maximize(
                fw.MultilinearExtension(make("logdet")),
                fw.sets.Knapsack(np.ones(N), 2.0),
                steps=5,
                algorithm=fw.one_sfw("dr_submodular", correction="importance"),
            ),
            "log-density",
        ),
        (
            lambda: fw.maximize(
                fw.MultilinearExtension(make("logdet")),
                fw.sets.Knapsack(np.ones(N), 2.0),
                steps=5,
                algorithm=fw.frank_wolfe("dr_submodular"),
            ),
            "for a set function take one with a closed form, Coverage or FacilityLocation, or a method that samples",
        ),
    ],
)
def test_mistakes_are_sentences(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize("constraint", [fw.sets.SubSimplex(2.0, shape=5), fw.sets.Box(-0.1, 1.0, shape=5)])
def test_probabilities_stay_between_0_and_1(constraint):
    """Multilinear extensions mean nothing outside the cube: a set that leaves it is refused before the first step."""
    objective = fw.MultilinearExtension(fw.submodular.Coverage(np.eye(5)))
    with pytest.raises(ValueError, match=r"MultilinearExtension is defined for entries between 0 and 1 only, and \w+ "):
        fw.maximize(objective, constraint, steps=5, algorithm=fw.projected_sgd("dr_submodular"))
