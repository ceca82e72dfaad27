"""Set functions: values, marginals and states against one another, and what is refused."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matroid_checks
import numpy as np
import pytest
import select_checks
from hypothesis import given, settings
from hypothesis import strategies as st
from submodular_checks import ARCS, CHANCES, ESTIMATED, FUNCTIONS, N, estimated, exact_spread, influence, make

import onesfw as fw
from onesfw import submodular
from onesfw.submodular.base import Function, State, as_mask
from onesfw.submodular.certificates import ByMarginals
from onesfw.submodular.extension import TracedSource
from onesfw.submodular.facility import median_of_pairs, similarities


def assert_monotone_and_submodular(function, rng):
    """Three random S ⊂ T and i outside T."""
    for _ in range(3):
        assert_diminishing(function, rng)
    assert function.value([]) == pytest.approx(0, abs=1e-12)


def assert_diminishing(function, rng):
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


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "custom"])
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_built_in_functions_are_monotone_and_submodular(name, seed):
    assert_monotone_and_submodular(make(name, seed), np.random.default_rng(seed))


@settings(max_examples=8)  # each one is compiled
@given(seed=st.integers(0, 10**6), sampled=st.booleans())
def test_functions_of_ones_own_are_what_they_say(seed, sampled):
    rng = np.random.default_rng(seed)
    if not sampled:
        return assert_monotone_and_submodular(make("custom", seed), rng)
    weights = jnp.asarray(rng.random((3, N)), jnp.float32)
    function = submodular.SetFunction(
        lambda s, z: jnp.max(s * (z @ weights)), N, lambda key: jax.random.uniform(key, (3,))
    )
    return assert_monotone_and_submodular(function, rng)


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


@pytest.mark.parametrize("seeds", [[0], [2], [0, 3]])
def test_influence_is_the_expected_spread(seeds):
    function = influence()
    expected = exact_spread(ARCS, CHANCES, seeds, 5)
    forward = function.spread(seeds, 40_000)
    assert forward.value == pytest.approx(expected, abs=5 * forward.stderr)
    sets = function.sample(40_000, seed=3)
    assert sets.value(seeds) == pytest.approx(expected, abs=5 * 5 / np.sqrt(4 * 40_000))
    assert function.value(seeds) == pytest.approx(expected, abs=5 * 5 / np.sqrt(4 * 10_000))


@given(seed=st.integers(0, 10**6))
def test_influence_is_monotone_and_submodular(seed):
    rng = np.random.default_rng(seed)
    function = submodular.Influence(np.vstack([rng.integers(0, N, (12, 2)), [[0, 1]]]), 0.4).sample(100, seed)
    submodular.check_submodular(function, trials=5, key=seed)


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
    with pytest.raises(ValueError, match="negative on the empty set, -10"):
        submodular.SetFunction(lambda s: -10 + jnp.sqrt(jnp.sum(s)), 6, check=True)
    with pytest.raises(ValueError, match="negative on the empty set"):
        submodular.SetFunction(lambda s: jnp.sum(s) - 1.0, 1, check=True)
    with pytest.raises(ValueError, match=r"not monotone: f\(S\) = 1 for S = \[\], but f\(S \+ 0\) = 0"):
        submodular.SetFunction(lambda s: 1.0 - jnp.sum(s), 1, check=True)
    noisy = submodular.SetFunction(lambda s, z: jnp.sum(s) ** 2 + z, 6, lambda key: jax.random.normal(key, ()))
    with pytest.raises(ValueError, match="not submodular"):
        submodular.check_submodular(noisy)
    submodular.check_submodular(make("facility"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: submodular.Coverage(np.zeros((3, 2))), "no element covers"),
        (lambda: submodular.Coverage([1, 2]), "must be a matrix"),
        (lambda: submodular.Coverage([[1.0, np.nan]]), "NaN"),
        (lambda: submodular.Coverage([[1.0, 1.0]], [1.0]), "one number per item, 2 in all"),
        (lambda: submodular.Coverage([[1.0, 1.0]], [1.0, -1.0]), r"weights must lie in \[0, 1e\+30\]"),
        (lambda: submodular.Coverage([[1.0]], [1e300]), r"weights must lie in \[0, 1e\+30\]"),
        (lambda: submodular.FacilityLocation([[1e300]]), "at most 1e\\+30"),
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
        (lambda: make("coverage").value([0, 0]), "twice"),
        (lambda: make("coverage").value([N]), f"cannot hold {N}"),
        (lambda: make("coverage").value([0.5] * N), "0 or 1"),
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


@pytest.mark.parametrize("shift", [0.0, 1e8, 1.7e9])
@pytest.mark.parametrize("factor", [1.0, 1e200, 1e-200])
def test_similarities_do_not_depend_on_where_features_lie(shift, factor):
    features = np.arange(6.0)[:, None]
    squares = (features - features.T) ** 2
    expected = np.exp(-squares / np.median(squares))[:, 0].sum()
    assert submodular.FacilityLocation(features=(features + shift) * factor).value([0]) == pytest.approx(expected)
    angles = submodular.FacilityLocation(features=features[1:] * [[1.0, 2.0]] * factor, kernel="cosine")
    assert angles.value([0]) == pytest.approx(5)


def test_an_outlier_leaves_the_others_similarities_alone():
    """Two groups far apart, most pairs within one of them: |a|² + |b|² − 2ab would round all of it away."""
    features = np.concatenate([np.arange(6.0), 1e9 + np.arange(2.0)])[:, None]
    squares = (features - features.T) ** 2
    expected = np.exp(-squares / np.median(squares)).sum(0)
    function = submodular.FacilityLocation(features=features)
    for i in range(8):
        assert function.value([i]) == pytest.approx(expected[i])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 10])
def test_the_median_of_pairs(n):
    points = np.random.default_rng(n).normal(size=(n, 2))
    squares = ((points[:, None] - points[None]) ** 2).sum(2)
    assert median_of_pairs(squares) == np.median(squares)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_similarities_of_every_width_and_many_rows(dtype):
    """More rows than are sorted at once; the caller's matrix stays as it is."""
    rng = np.random.default_rng(0)
    similarity = rng.uniform(0.1, 1, (600, 5)).astype(dtype)
    before = similarity.copy()
    function = submodular.FacilityLocation(similarity)
    np.testing.assert_array_equal(similarity, before)
    assert function.value([1, 3]) == pytest.approx(float(similarity[:, [1, 3]].max(1).astype(float).sum()))
    rows = function.values.reshape(600, 5)
    assert np.all(np.diff(rows, axis=1) <= 0)
    np.testing.assert_array_equal(
        np.take_along_axis(similarity, function.indices.reshape(600, 5), axis=1).astype(float), rows
    )


LARGE = {
    "coverage": lambda c: submodular.Coverage(np.eye(4), np.full(4, c)),
    "facility": lambda c: submodular.FacilityLocation(c * (np.eye(4) + 0.1)),
    "weights": lambda c: submodular.FacilityLocation(1e6 * np.eye(4), weights=np.full(4, c / 1e6)),
    "featured": lambda c: submodular.FeatureBased(c * np.eye(4), "saturated", saturation=1.0),
    "logdet": lambda c: submodular.LogDet(c * np.eye(4)),
}


@pytest.mark.parametrize("name", LARGE)
def test_values_that_float32_cannot_hold_are_refused(name):
    """What is not refused gives finite values in float32; both ends are tried."""
    for size in (1e31, 1e40, 1e300):
        with pytest.raises(ValueError, match=r"1e\+30.*float32|at most 1e\+30"):
            LARGE[name](size)
    function = LARGE[name](2e29)
    polytope = fw.sets.MatroidPolytope(submodular.UniformMatroid(4, 2))
    result = fw.maximize(
        fw.MultilinearExtension(function), polytope, steps=3, evaluate=None if function.closed_form else False
    )
    assert np.all(np.isfinite(result.state.estimate.d))
    assert np.any(result.state.estimate.d > 0)
    if function.closed_form:
        assert 0 < result.value < np.inf


def test_seeds_are_numbers_of_64_bits_or_keys():
    function = influence()
    key = jax.random.key(3)
    assert function.spread([0], 100, seed=key) == function.spread([0], 100, seed=jax.random.key_data(key))
    assert function.spread([0], 100, seed=key) != function.spread([0], 100, seed=jax.random.key(4))
    assert function.spread([0], 100, seed=2**64 - 1).stderr > 0
    np.testing.assert_array_equal(function.sample(50, key).indices, function.sample(50, jax.random.key(3)).indices)
    for call in (lambda seed: function.spread([0], 100, seed), lambda seed: function.sample(50, seed)):
        for seed in (-1, 2**64):
            with pytest.raises(ValueError, match="seed must lie in"):
                call(seed)
        for seed in ("a", 0.5, None, True):
            with pytest.raises(TypeError, match="seed must be a whole number or one JAX key"):
                call(seed)


# ---- nearest neighbours


@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
def test_nearest_neighbours_keep_the_largest_similarities(kernel):
    """Each row's entries are the largest ones of the full matrix, up to the scale that comes from a sample."""
    points = np.random.default_rng(0).normal(size=(60, 5))
    near = submodular.FacilityLocation(features=points, kernel=kernel, neighbors=7)
    full = similarities(points, kernel)
    assert near.neighbors == 7
    rows, values = near.indices.reshape(60, 7), near.values.reshape(60, 7)
    assert np.all(np.diff(values, axis=1) <= 0)
    for row in range(60):
        best = np.sort(full[row])[::-1][:7]
        np.testing.assert_allclose(full[row, rows[row]], best, atol=1e-9)
        np.testing.assert_allclose(values[row], best, atol=1e-9)
        assert row in rows[row]
    below = submodular.FacilityLocation(full)
    for chosen in ([3], [1, 20, 40], list(range(60))):
        assert near.value(chosen) <= below.value(chosen) + 1e-9
    assert near.value(range(60)) == pytest.approx(below.value(range(60)))


def test_neighbours_are_taken_where_pairs_are_too_many(monkeypatch):
    from onesfw.submodular import facility as room

    points = np.random.default_rng(0).normal(size=(40, 3))
    assert submodular.FacilityLocation(features=points).neighbors is None
    monkeypatch.setattr(room, "MOST_PAIRED", 30)
    monkeypatch.setattr(room, "NEIGHBORS", 9)
    few = submodular.FacilityLocation(features=points)
    assert (few.neighbors, few.indices.size) == (9, 360)
    assert submodular.FacilityLocation(features=points, neighbors=40).neighbors is None
    result = fw.select(few, submodular.UniformMatroid(40, 4), steps=100)
    best = submodular.greedy(few, submodular.UniformMatroid(40, 4)).value
    assert best - 1e-9 <= result.upper_bound
    assert result.value >= 0.95 * best


def test_mistakes_about_neighbours():
    points = np.ones((5, 2))
    with pytest.raises(ValueError, match="neighbors must be"):
        submodular.FacilityLocation(features=points, neighbors=0)
    with pytest.raises(ValueError, match="neighbors goes with kernel='rbf' or 'cosine'"):
        submodular.FacilityLocation(features=points, kernel="linear", neighbors=2)
    with pytest.raises(TypeError, match="neighbors goes with features"):
        submodular.FacilityLocation(np.ones((3, 5)), neighbors=2)


@pytest.mark.slow
def test_a_hundred_thousand_elements_fit_into_two_gigabytes():
    script = (
        "import numpy as np, onesfw as fw\n"
        "from onesfw import submodular as sm\n"
        "f = sm.FacilityLocation(features=np.random.default_rng(0).normal(size=(100_000, 20)))\n"
        "fw.select(f, sm.UniformMatroid(100_000, 50), steps=10_000)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )  # not ru_maxrss, which a child takes over from the process that began it
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2_000_000


# ---- a set function of a new kind needs nothing but itself


class Matching(Function):
    """f(S) = |{i // 2 : i ∈ S}|, the pairs that S meets: any subclass with the abstract methods will do."""

    n: int = eqx.field(static=True)

    @property
    def omegas(self):
        return 1

    def value(self, chosen):
        return float(np.unique(np.flatnonzero(as_mask(chosen, self.n)) // 2).size)

    def marginals(self, chosen):
        mask = as_mask(chosen, self.n)
        flips = mask[None] ^ np.eye(self.n, dtype=bool)
        return np.array([(1 if not mask[i] else -1) * (self.value(flips[i]) - self.value(mask)) for i in range(self.n)])

    def state(self):
        return Pairs(self)

    def draw(self, key, number):
        return jnp.zeros((), jnp.int32)

    def value_at(self, s, omega):
        return jnp.sum(jnp.max(s.reshape(-1, 2), axis=1))

    def source(self, batch, key):
        return TracedSource(self, batch, key)

    def judge(self, matroid, seed, other):
        return ByMarginals(self, matroid, seed)


class Pairs(State):
    def __init__(self, function):
        self.function, self.value, self.chosen = function, 0.0, []

    def gains(self, candidates):
        return np.array([self.function.value([*self.chosen, int(i)]) - self.value for i in candidates])

    def add(self, i):
        self.chosen.append(i)
        self.value = self.function.value(self.chosen)


def test_a_new_kind_of_function_is_selected_from_like_any_other():
    function, limit = Matching(10), submodular.UniformMatroid(10, 5)
    result = fw.select(function, limit, steps=200)
    assert (result.value, result.upper_bound, result.exact) == (5.0, 5.0, True)
    assert submodular.greedy(function, limit).value == 5.0
    submodular.check_submodular(function)


def test_nobody_tests_for_a_kind_of_function_or_matroid():
    """Only the base classes may be asked for: a function or a matroid brings what it needs."""
    kinds = {name for name in submodular.__all__ if isinstance(getattr(submodular, name), type)}
    kinds -= {"Function", "Matroid"}
    for path in sorted(Path(submodular.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                assert not asked & kinds, (path.name, node.lineno)


def test_every_exported_function_and_matroid_has_a_case():
    """The tables of cases that the tests of this folder run over know each of them."""
    exported = [getattr(submodular, name) for name in submodular.__all__]
    functions = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, Function)} - {Function}
    assert functions == {type(estimated(name)[0]) for name in ESTIMATED}
    assert functions == {type(function) for function in select_checks.FUNCTIONS.values()}
    matroids = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, submodular.Matroid)}
    assert matroids - {submodular.Matroid} == {type(matroid) for matroid in matroid_checks.MATROIDS.values()}
