"""Set functions: values, marginals, closed forms and unbiased estimates, against enumeration of all sets."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import onesfw as fw
from onesfw import submodular
from onesfw.estimators import Hessian, SameSample
from onesfw.submodular import enumerate_extension

N = 7


def coverage(rng, n=N):
    return submodular.Coverage(rng.random((n, 9)) < 0.35, rng.random(9) + 0.1)


def facility(rng, n=N):
    return submodular.FacilityLocation(rng.random((6, n)), weights=rng.random(6))


def sparse_facility(rng, n=N):
    return submodular.FacilityLocation(sp.random(8, n, 0.5, format="csr", random_state=1, data_rvs=rng.random))


def featured(concave):
    return lambda rng, n=N: submodular.FeatureBased(rng.random((n, 5)) * (rng.random((n, 5)) < 0.6), concave)


def logdet(rng, n=N):
    points = rng.normal(size=(n, 4))
    return submodular.LogDet(points @ points.T)


def custom(rng, n=N):
    weights = jnp.asarray(rng.random((4, n)), jnp.float32)
    return submodular.SetFunction(lambda s: jnp.sum(jnp.log1p(weights @ s)), n)


FUNCTIONS = {
    "coverage": coverage,
    "facility": facility,
    "sparse facility": sparse_facility,
    "sqrt": featured("sqrt"),
    "log1p": featured("log1p"),
    "saturated": featured("saturated"),
    "logdet": logdet,
    "custom": custom,
}
CLOSED = ("coverage", "facility", "sparse facility")


def make(name, seed=0, n=N):
    return FUNCTIONS[name](np.random.default_rng(seed), n)


def points(rng, n=N):
    """Inside, on the boundary, and at both corners."""
    mixed = rng.random(n)
    mixed[0], mixed[1] = 0.0, 1.0
    return {"inside": rng.uniform(0.1, 0.9, n), "mixed": mixed, "zero": np.zeros(n), "one": np.ones(n)}


def mean_and_error(samples):
    return samples.mean(0), samples.std(0, ddof=1) / np.sqrt(len(samples))


def assert_unbiased(samples, expected, scale):
    """Within 5 standard errors entry by entry; entries without noise must agree up to rounding."""
    mean, error = mean_and_error(np.asarray(samples, np.float64))
    assert np.all(np.abs(mean - expected) <= 5 * error + 2e-5 * scale), (mean, expected, error)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_built_in_functions_are_monotone_and_submodular(name, seed):
    rng = np.random.default_rng(seed)
    function = make(name, 3 if name == "custom" else seed)
    larger = rng.random(N) < rng.random()
    smaller = larger & (rng.random(N) < rng.random())
    i = rng.integers(N)
    larger[i] = smaller[i] = False
    plus = np.arange(N) == i
    low, high = function.value(smaller), function.value(larger)
    gain, later = function.value(smaller | plus) - low, function.value(larger | plus) - high
    slack = 1e-9 * (1 + abs(high))
    assert gain >= later - slack
    assert later >= -slack
    assert high >= low - slack
    assert function.value([]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_marginals_and_states_are_differences_of_values(name):
    rng = np.random.default_rng(1)
    function = make(name)
    for _ in range(6):
        mask = rng.random(N) < 0.5
        chosen = np.flatnonzero(mask)
        expected = [
            function.value(np.union1d(chosen, [i])) - function.value(np.setdiff1d(chosen, [i])) for i in range(N)
        ]
        np.testing.assert_allclose(function.marginals(mask), expected, atol=1e-9)
        state = function.state()
        for i in rng.permutation(chosen):
            state.add(int(i))
        assert sorted(state.chosen) == chosen.tolist()
        assert state.value == pytest.approx(function.value(chosen), abs=1e-9)
        outside = np.flatnonzero(~mask)
        if outside.size:
            np.testing.assert_allclose(state.gains(outside), np.asarray(expected)[outside], atol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced_values_and_marginals_average_to_the_functions(name):
    rng = np.random.default_rng(2)
    function = make(name)

    @jax.jit
    def traced(s):
        rows = jnp.arange(function.omegas)
        return jax.lax.map(lambda r: (function.value_at(s, r), function.marginals_at(s, r)), rows)

    with jax.enable_x64(True):
        for _ in range(3):
            mask = rng.random(N) < 0.5
            s = jnp.asarray(mask, float)
            values, rises = traced(s)
            assert np.mean(values) == pytest.approx(function.value(mask), abs=1e-9)
            np.testing.assert_allclose(np.mean(rises, axis=0), function.marginals(mask), atol=1e-9)


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


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "sparse facility"])
def test_sampled_estimates_are_unbiased(name):
    """g(S) for ∇F(x̄) and the sampled coordinate for ∇F(x) − ∇F(x_{t−1}), also at 0 and 1, u of both signs."""
    rng = np.random.default_rng(4)
    function = make(name)
    objective = fw.MultilinearExtension(function, sampled=True)
    count = 600 if name == "logdet" else 6_000

    def one(number, x, previous):
        a = jax.random.uniform(jax.random.fold_in(jax.random.key(9), number))
        draw = objective.draw(jax.random.key(1), number)
        increment = Hessian()(objective, draw, a, x, previous, jnp.float32(0))
        still = objective.at(draw, x, jnp.float32(0))
        return increment.change, still.gradient(x), still.integrand(x)

    @jax.jit
    def many(x, previous):
        return jax.lax.map(lambda number: one(number, x, previous), jnp.arange(count), batch_size=500)

    scale = function.value(np.ones(N)) * (function.omegas or 1)
    for x in points(rng).values():
        previous = np.clip(x + rng.uniform(-0.4, 0.4, N) * (rng.random(N) < 0.7), 0, 1)
        change, gradient, value = many(jnp.float32(x), jnp.float32(previous))
        exact, slope = enumerate_extension(function, x)
        assert_unbiased(gradient, slope, scale)
        assert_unbiased(value, exact, scale)
        assert_unbiased(change, slope - enumerate_extension(function, previous)[1], scale)


@pytest.mark.parametrize("name", CLOSED)
def test_closed_form_estimates_are_unbiased(name):
    rng = np.random.default_rng(5)
    function = make(name)
    x, previous = points(rng)["mixed"], rng.random(N)
    objective = fw.MultilinearExtension(function)
    assert "a full gradient" in objective.offers

    def one(number):
        draw = objective.draw(jax.random.key(2), number)
        increment = SameSample()(objective, draw, 0.0, jnp.float32(x), jnp.float32(previous), jnp.float32(0))
        return increment.gradient, increment.change

    gradient, change = jax.jit(jax.vmap(one))(jnp.arange(5_000))
    slope = enumerate_extension(function, x)[1]
    scale = function.value(np.ones(N)) * function.omegas
    assert_unbiased(gradient, slope, scale)
    assert_unbiased(change, slope - enumerate_extension(function, previous)[1], scale)


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


TRIANGLE = np.array([[0, 1], [1, 2], [0, 2], [2, 3]])


def exact_spread(arcs, chances, seeds, n):
    """E(nodes reached), over all 2^arcs graphs."""
    total = 0.0
    for state in itertools.product([0, 1], repeat=len(arcs)):
        weight = np.prod(np.where(state, chances, 1 - np.asarray(chances)))
        reached = set(seeds)
        for _ in range(n):
            reached |= {v for (u, v), o in zip(arcs, state, strict=True) if o and u in reached}
        total += weight * len(reached)
    return total


@pytest.mark.parametrize("seeds", [[0], [2], [0, 3]])
def test_influence_is_the_expected_spread(seeds):
    chances = [0.3, 0.5, 0.2, 0.7]
    function = submodular.Influence(TRIANGLE, chances, directed=True)
    expected = exact_spread(TRIANGLE.tolist(), chances, seeds, 4)
    forward = function.spread(seeds, 40_000)
    assert forward.value == pytest.approx(expected, abs=5 * forward.stderr)
    sets = function.sample(40_000, seed=3)
    assert sets.value(seeds) == pytest.approx(expected, abs=5 * 4 / np.sqrt(4 * 40_000))
    assert function.value(seeds) == pytest.approx(expected, abs=5 * 4 / np.sqrt(4 * 10_000))


def test_influence_has_an_unbiased_extension():
    chances = [0.3, 0.5, 0.2, 0.7]
    function = submodular.Influence(TRIANGLE, chances, directed=True)
    sets = [list(s) for r in range(5) for s in itertools.combinations(range(4), r)]
    table = {tuple(s): exact_spread(TRIANGLE.tolist(), chances, s, 4) for s in sets}
    codes = jnp.asarray([table[tuple(i for i in range(4) if m >> i & 1)] for m in range(16)], jnp.float32)
    exact = submodular.SetFunction(lambda s: codes[jnp.int32(s @ jnp.array([1.0, 2.0, 4.0, 8.0]))], 4)
    x = np.array([0.2, 0.0, 0.6, 1.0])
    value, gradient = enumerate_extension(exact, x)
    objective = fw.MultilinearExtension(function)

    def one(number):
        h = objective.at(objective.draw(jax.random.key(4), number), jnp.float32(x), 0.0)
        return h.value(jnp.float32(x)), h.gradient(jnp.float32(x))

    values, gradients = jax.jit(lambda: jax.lax.map(one, jnp.arange(3_000)))()
    assert_unbiased(values, value, 4)
    assert_unbiased(gradients, gradient, 4)


@given(seed=st.integers(0, 10**6))
def test_influence_is_monotone_and_submodular(seed):
    rng = np.random.default_rng(seed)
    function = submodular.Influence(np.vstack([rng.integers(0, N, (12, 2)), [[0, 1]]]), 0.4).sample(100, seed)
    submodular.check_submodular(function, trials=5, seed=seed)


def test_reverse_sets_are_a_function_of_their_number():
    function = submodular.Influence(np.random.default_rng(0).integers(0, 30, (60, 2)), 0.3)
    whole, tail = function.sample(200, 7), function.sample(50, 7, first=150)
    last = whole.indices[whole.indptr[150] :]
    np.testing.assert_array_equal(last, tail.indices)
    short = function.sample(10_000, 7, entries=500)
    assert 500 < short.indices.size < 500 + 2 * function.n
    assert short.weights.sum() == pytest.approx(function.n)


def test_influence_of_labels_loops_and_repetitions():
    function = submodular.Influence([[10, 20], [20, 10], [10, 20], [30, 30], [20, 30]])
    assert function.nodes.tolist() == [10, 20, 30]
    assert function.inward[0].tolist() == [0, 1, 3, 4]
    assert function.inward[2].tolist() == [1.0, 0.5, 0.5, 1.0]


def test_a_stochastic_function_of_ones_own():
    function = submodular.SetFunction(
        lambda s, z: jnp.max(s * z), 5, lambda key: jax.random.uniform(key, (5,)), check=True
    )
    assert function.omegas is None
    terms = function.terms([0, 1, 2, 3, 4])
    assert terms.mean() == pytest.approx(5 / 6, abs=5 * terms.std() / np.sqrt(terms.size))
    other = function.resampled(1)
    assert other.value([0]) == pytest.approx(0.5, abs=5 / np.sqrt(12 * 1_000))
    assert other.value([0]) != function.value([0])
    assert function.value([2]) == pytest.approx(0.5, abs=5 / np.sqrt(12 * 1_000))
    assert function.marginals([0, 1])[2] == pytest.approx(1 / 12, abs=0.03)


def test_violations_are_shown():
    with pytest.raises(ValueError, match=r"not submodular: adding \d+ to S = \[.*\] gains .* larger T = \["):
        submodular.SetFunction(lambda s: jnp.sum(s) ** 2, 6, check=True)
    with pytest.raises(ValueError, match=r"not monotone: f\(S\) = .* but f\(S \+ \d+\) = "):
        submodular.SetFunction(lambda s: jnp.sum(s) * (4.0 - jnp.sum(s)), 6, check=True)
    with pytest.raises(ValueError, match="negative on the empty set"):
        submodular.SetFunction(lambda s: jnp.sum(s) - 1.0, 6, check=True)
    noisy = submodular.SetFunction(lambda s, z: jnp.sum(s) ** 2 + z, 6, lambda key: jax.random.normal(key, ()))
    with pytest.raises(ValueError, match="not submodular"):
        submodular.check_submodular(noisy)
    submodular.check_submodular(make("facility"))


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
        (lambda: submodular.Coverage(np.zeros((3, 2))), "no element covers"),
        (lambda: submodular.Coverage([1, 2]), "must be a matrix"),
        (lambda: submodular.Coverage([[1.0, np.nan]]), "NaN"),
        (lambda: submodular.Coverage([[1.0, 1.0]], [1.0]), "one number per item, 2 in all"),
        (lambda: submodular.Coverage([[1.0, 1.0]], [1.0, -1.0]), r"weights must lie in \[0, 1e\+100\]"),
        (lambda: submodular.Coverage([[1.0]], [1e300]), r"weights must lie in \[0, 1e\+100\]"),
        (lambda: submodular.FacilityLocation([[1e300]]), "at most 1e\\+100"),
        (lambda: submodular.FacilityLocation([[1.0, np.nan]]), "NaN"),
        (lambda: submodular.FacilityLocation([[1.0, -1.0]]), "must not be negative"),
        (lambda: submodular.FacilityLocation([[0.0, 0.0]]), "no positive entry"),
        (lambda: submodular.FacilityLocation(np.zeros((3, 0))), "must be a matrix"),
        (lambda: submodular.FacilityLocation(), "either similarity or features"),
        (lambda: submodular.FacilityLocation(features=[[1.0]], kernel="rbg"), "did you mean 'rbf'"),
        (lambda: submodular.FacilityLocation(features=[["a"]]), "must hold numbers"),
        (lambda: submodular.FacilityLocation(features=[[1.0], [2.0]], kernel=lambda a, b: a), "one number per pair"),
        (lambda: submodular.FeatureBased([[-1.0]]), "must not be negative"),
        (lambda: submodular.FeatureBased([[1.0]], "square"), "concave='square' is not known"),
        (lambda: submodular.FeatureBased([[1.0]], saturation=2.0), "saturation must lie in"),
        (lambda: submodular.LogDet([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (lambda: submodular.LogDet(-np.eye(2)), "positive semidefinite"),
        (lambda: submodular.LogDet(np.ones((2, 3))), "square matrix"),
        (lambda: submodular.Influence([[0.5, 1.0]]), "pairs of whole numbers"),
        (lambda: submodular.Influence([[1, 1]]), "no pair of different nodes"),
        (lambda: submodular.Influence([[0, 1]], 1.5), r"lie in \[0, 1\]"),
        (lambda: submodular.Influence([[0, 1]], "wc"), "weighted-cascade"),
        (lambda: submodular.SetFunction(3, 4), "must be a function"),
        (lambda: submodular.SetFunction(lambda s: s, 4), "must return one real number"),
        (lambda: submodular.SetFunction(lambda s: s[9].sum() @ s, 4), r"value\(s\) failed"),
        (lambda: submodular.SetFunction(lambda s: jnp.sum(s), 0), "n must be"),
        (lambda: fw.MultilinearExtension(lambda s: 0.0), r"SetFunction\(value, n\)"),
        (lambda: make("coverage").value([0, 0]), "twice"),
        (lambda: make("coverage").value([N]), f"cannot hold {N}"),
        (lambda: make("coverage").value([0.5] * N), "0 or 1"),
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
    ],
)
def test_mistakes_are_sentences(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_features_make_similarities():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(9, 3))
    squares = ((features[:, None] - features[None]) ** 2).sum(2)
    expected = np.exp(-squares / np.median(squares))
    made = submodular.FacilityLocation(features=features)
    given = submodular.FacilityLocation(expected)
    assert made.value([1, 4]) == pytest.approx(given.value([1, 4]))
    own = submodular.FacilityLocation(features=features, kernel=lambda a, b: np.abs(a @ b.T))
    assert own.value([2]) == pytest.approx(np.abs(features @ features[2]).sum())
    cosine = submodular.FacilityLocation(features=features, kernel="cosine")
    assert cosine.value(range(9)) == pytest.approx(9)


@pytest.mark.parametrize("constraint", [fw.sets.SubSimplex(2.0, shape=5), fw.sets.Box(-0.1, 1.0, shape=5)])
def test_probabilities_stay_between_0_and_1(constraint):
    """Multilinear extensions mean nothing outside the cube: a set that leaves it is refused before the first step."""
    objective = fw.MultilinearExtension(fw.submodular.Coverage(np.eye(5)))
    with pytest.raises(ValueError, match=r"MultilinearExtension is defined for entries between 0 and 1 only, and \w+ "):
        fw.maximize(objective, constraint, steps=5, algorithm=fw.projected_sgd("dr_submodular"))
