"""Greedy baselines, `select` from samples to a certified set, and its certificates."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw
from onesfw import submodular as sm
from onesfw.submodular import certificates, judges
from onesfw.submodular.sources import source_of

N = 9
RNG = np.random.default_rng(0)
MATROIDS = {
    "uniform": sm.UniformMatroid(N, 3),
    "partition": sm.PartitionMatroid([0, 1, 2] * 3, 1),
    "laminar": sm.LaminarMatroid(N, [[0, 1, 2, 3], [0, 1], [5, 6]], [2, 1, 1]),
    "graphic": sm.GraphicMatroid([[0, 1], [1, 2], [2, 0], [2, 3], [3, 0], [1, 3], [0, 2], [3, 1], [3, 4]]),
}
GRAPH = RNG.integers(0, N, (16, 2))
FUNCTIONS = {
    "coverage": sm.Coverage(RNG.random((N, 14)) < 0.25, RNG.random(14)),
    "facility": sm.FacilityLocation(RNG.random((12, N)) ** 3),
    "features": sm.FeatureBased(RNG.random((N, 5)) ** 4),
    "logdet": sm.LogDet(np.cov(RNG.normal(size=(N, 4)))),
    "own": sm.SetFunction(lambda s: jnp.log1p(jnp.sum(s * jnp.arange(1.0, N + 1))), N),
    "influence": sm.Influence(np.vstack([GRAPH, np.stack([np.arange(N - 1), np.arange(1, N)], 1)]), 0.3),
}


@pytest.fixture(autouse=True)
def _smaller_samples(monkeypatch):
    monkeypatch.setattr(judges, "SETS", 30_000)


def optimum(function, matroid):
    """The best value over all bases."""
    rank = matroid.rank
    sets = (s for s in itertools.combinations(range(function.n), rank) if matroid.independent(s))
    return max(function.value(list(s)) for s in sets)


def misleading(m=50, delta=0.05):
    """The family that misleads greedy: OPT = 2m, greedy m(1 + δ)."""
    incidence, groups = np.zeros((3 * m, 3 * m)), np.zeros(3 * m, int)
    for q in range(m):
        x, y, z = 3 * q, 3 * q + 1, 3 * q + 2
        incidence[x, 3 * q] = incidence[z, 3 * q] = incidence[x, 3 * q + 1] = incidence[y, 3 * q + 2] = 1
        groups[x] = groups[y] = 2 * q
        groups[z] = 2 * q + 1
    return sm.Coverage(incidence, np.tile([1, delta, 1], m)), sm.PartitionMatroid(groups, 1)


@pytest.mark.parametrize("matroid", MATROIDS)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "influence"])
def test_lazy_greedy_is_greedy(name, matroid):
    function, limit = FUNCTIONS[name], MATROIDS[matroid]
    plain, lazy = (sm.greedy(function, limit, method) for method in ("plain", "lazy"))
    assert plain.indices.tolist() == lazy.indices.tolist()
    assert lazy.value == pytest.approx(function.value(lazy.indices))
    assert lazy.gains.sum() + function.value([]) == pytest.approx(lazy.value)
    assert limit.independent(lazy.indices)
    assert lazy.value >= 0.5 * optimum(function, limit) - 1e-9
    some = sm.greedy(function, limit, "stochastic", epsilon=0.5)
    assert limit.independent(some.indices)
    assert some.indices.size == limit.rank
    assert sm.greedy(function, limit, "stochastic", epsilon=1e-9).value == pytest.approx(plain.value)


def test_lazy_greedy_saves_evaluations():
    rng = np.random.default_rng(1)
    function = sm.FacilityLocation(features=rng.normal(size=(200, 3)))
    plain, lazy = (sm.greedy(function, sm.UniformMatroid(200, 10), method) for method in ("plain", "lazy"))
    assert lazy.indices.tolist() == plain.indices.tolist()[:10]
    assert lazy.evaluations < plain.evaluations / 3


def test_greedy_on_reverse_reachable_sets():
    function = FUNCTIONS["influence"]
    found = sm.greedy(function, MATROIDS["uniform"], sets=20_000)
    best = max((function.spread(list(s), 2_000).value, s) for s in itertools.combinations(range(function.n), 3))
    assert function.spread(found.indices, 20_000).value >= 0.97 * best[0]


PAIRS = [(name, matroid) for name in FUNCTIONS for matroid in MATROIDS]


@pytest.mark.parametrize(
    ("name", "matroid"), [p for p in PAIRS if p[0] != "influence" or p[1] in ("uniform", "graphic")]
)
def test_select_is_good_and_its_certificate_true(name, matroid):
    function, limit = FUNCTIONS[name], MATROIDS[matroid]
    result = fw.select(function, limit, steps=300, polish=True, key=1)
    assert limit.independent(result.indices)
    assert result.indices.size == limit.rank
    best = optimum(function, limit)
    measured = function.spread(result.indices, 20_000).value if name == "influence" else function.value(result.indices)
    slack = 5 * result.value_stderr + (0.15 if name == "influence" else 1e-9)
    assert result.value == pytest.approx(measured, abs=slack)
    assert measured >= 0.9 * best
    assert result.upper_bound >= best - slack
    assert result.ratio <= measured / best + slack
    assert 0.5 < result.ratio <= 1
    fractional = result.fractional_value + 5 * result.fractional_stderr
    assert measured >= 0.8 * fractional
    assert (result.value_stderr > 0) is (name == "influence")
    assert bool(fw.sets.MatroidPolytope(limit).contains(jnp.float32(result.x), 1e-5))
    assert result.trace.step[-1] == 300
    assert np.all(np.diff(result.trace.step) > 0)
    assert "certified ratio" in str(result)


def test_select_is_reproducible_and_keys_differ():
    function, limit = FUNCTIONS["coverage"], MATROIDS["uniform"]
    runs = [fw.select(function, limit, steps=60, key=key) for key in (3, 3, 4, jax.random.key(3))]
    assert runs[0].indices.tolist() == runs[1].indices.tolist()
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    assert not np.array_equal(runs[0].x, runs[2].x)
    assert runs[3].indices.size == 3


def test_select_beats_greedy_where_greedy_is_misled():
    function, limit = misleading()
    greedy = sm.greedy(function, limit)
    assert greedy.value == pytest.approx(50 * 1.05)
    result = fw.select(function, limit, steps=10_000)
    assert result.value >= 0.93 * 100
    assert result.ratio >= 0.93
    first = fw.maximize(
        fw.MultilinearExtension(function), fw.sets.MatroidPolytope(limit), steps=200,
        algorithm=fw.frank_wolfe("dr_submodular"),
    )  # fmt: skip
    assert first.value == pytest.approx(50 * (2 - 0.05 + 0.05**2), rel=0.02)


@pytest.mark.parametrize("rounding", ["pipage", "deterministic"])
def test_other_roundings(rounding):
    function, limit = misleading(5)
    result = fw.select(function, limit, steps=2_000, rounding=rounding)
    assert limit.independent(result.indices)
    assert result.value >= 0.9 * 10
    if rounding == "deterministic":
        assert result.value >= result.fractional_value - 1e-9


@pytest.mark.parametrize("matroid", ["partition", "graphic"])
def test_a_recipe_runs_the_first_phase(matroid):
    function, limit = FUNCTIONS["coverage"], MATROIDS[matroid]
    recipes = {"partition": fw.frank_wolfe("dr_submodular"), "graphic": fw.one_sfw("dr_submodular", batch=2)}
    result = fw.select(function, limit, steps=200, algorithm=recipes[matroid])
    assert limit.independent(result.indices)
    assert result.value >= 0.9 * optimum(function, limit)
    assert recipes[matroid].name in result.method


@pytest.mark.parametrize("recipe", [fw.momentum_sfw, fw.scg_plus_plus])
def test_other_methods_maximise_the_same_objective(recipe):
    function, polytope = FUNCTIONS["coverage"], fw.sets.MatroidPolytope(MATROIDS["partition"])
    algorithm = recipe("dr_submodular")
    result = fw.maximize(fw.MultilinearExtension(function), polytope, steps=80, algorithm=algorithm)
    assert bool(polytope.contains(result.x, 1e-5))
    assert result.value >= (1 - 1 / np.e) * optimum(function, MATROIDS["partition"])


def test_nan_marginals_are_refused():
    own = sm.SetFunction(lambda s: jnp.where(jnp.sum(s) > 2, jnp.nan, jnp.sum(s)), N)
    with pytest.raises(ValueError, match="NaN or infinite marginals"):
        fw.select(own, MATROIDS["uniform"], steps=50)


def test_batches_count_samples():
    result = fw.select(FUNCTIONS["coverage"], MATROIDS["uniform"], steps=40, batch=5)
    assert (result.samples, result.lmo_calls) == (200, 40)
    assert (result.trace.samples[-1], result.trace.gradients[-1], result.trace.hvps[-1]) == (200, 395, 0)
    drawn = fw.select(FUNCTIONS["features"], MATROIDS["uniform"], steps=10, batch=5).trace
    assert (drawn.samples[-1], drawn.gradients[-1], drawn.hvps[-1]) == (50, 50, 45)


def test_the_kernels_follow_the_estimator():
    """One step of the kernels is one step of Algorithm 2 on the same row, for both functions with kernels."""
    rng = np.random.default_rng(3)
    for name in ("coverage", "facility"):
        function = FUNCTIONS[name]
        d, x, previous = rng.normal(size=N), rng.random(N), rng.random(N)
        x[0], x[1] = 0.0, 1.0
        for rho in (1.0, 0.3):
            moved = d.copy()
            function.stepper()(moved, x, previous, rho, np.array([2, 5]))
            objective = fw.MultilinearExtension(function)
            with jax.enable_x64(True):
                slope = jax.jit(lambda p, r, o=objective: o.at(r, p, 0.0).gradient(p))
                grads = [[np.asarray(slope(p, r)) for r in (2, 5)] for p in (x, previous)]
            now, before = np.mean(grads, axis=1)
            np.testing.assert_allclose(moved, (1 - rho) * (d + now - before) + rho * now, atol=1e-12)


def test_the_host_follows_the_estimator():
    """The mean of d over many seeds is (1 − ρ)(d + ∇F(x) − ∇F(x_{t−1})) + ρ ∇F(x̄), x̄ uniform on the segment."""
    function, rng = sm.LogDet(np.cov(RNG.normal(size=(5, 4)))), np.random.default_rng(3)
    d, x, previous, rho = rng.normal(size=5), rng.random(5), rng.random(5), 0.4
    x[0] = previous[1] = 0.0
    x[2] = 1.0
    made = []
    for seed in range(3_000):
        moved = d.copy()
        source_of(function, 1, None, seed).update(moved, x, previous, rho, 2)
        made.append(moved)
    places = np.linspace(0, 1, 41)
    along = np.mean([sm.enumerate_extension(function, a * x + (1 - a) * previous)[1] for a in places], axis=0)
    step = sm.enumerate_extension(function, x)[1] - sm.enumerate_extension(function, previous)[1]
    expected = (1 - rho) * (d + step) + rho * along
    error = np.std(made, axis=0) / np.sqrt(len(made))
    assert np.all(np.abs(np.mean(made, axis=0) - expected) <= 5 * error + 1e-3)


@pytest.mark.parametrize("name", ["features", "logdet", "own"])
@pytest.mark.parametrize("matroid", MATROIDS)
def test_the_chain_of_sets_bounds_the_optimum(name, matroid):
    function, limit = FUNCTIONS[name], MATROIDS[matroid]
    assert certificates.chain_bound(function, limit).value >= optimum(function, limit) - 1e-9


@pytest.mark.parametrize("name", ["coverage", "facility"])
@pytest.mark.parametrize("matroid", MATROIDS)
def test_both_certificates_bound_the_optimum(name, matroid):
    function, limit = FUNCTIONS[name], MATROIDS[matroid]
    best = optimum(function, limit)
    rng = np.random.default_rng(4)
    for _ in range(10):
        x = rng.random(N) ** 3
        assert certificates.row_gradient_bound(function, x, limit).value >= best - 1e-9
        tau = rng.random(function.omegas) * (1 if name == "coverage" else 0.7)
        assert certificates.threshold_bound(function, tau, limit)[0] >= best - 1e-9
    relaxed, points = certificates.relaxation(function, limit)
    assert best - 1e-9 <= relaxed.value <= 1.3 * best
    anew = certificates.relaxation_anew(function, points, limit)
    assert anew.value >= best - 1e-9
    assert anew.terms.mean() == pytest.approx(anew.value)


@pytest.mark.parametrize("kind", ["facility", "coverage"])
def test_the_second_certificate_is_tight(kind):
    """Within 4 % of greedy's value where the first one is off by more than 8 %."""
    rng = np.random.default_rng(5)
    limit = sm.UniformMatroid(150, 10)
    function = (
        sm.FacilityLocation(features=rng.normal(size=(150, 2)))
        if kind == "facility"
        else sm.Coverage((rng.random((150, 400)) < 0.03) * (rng.random((150, 1)) < 0.5))
    )
    greedy = sm.greedy(function, limit)
    relaxed, points = certificates.relaxation(function, limit)
    assert greedy.value <= relaxed.value <= 1.04 * greedy.value
    assert certificates.relaxation_anew(function, points, limit).value <= 1.06 * greedy.value
    assert certificates.set_bound(function, greedy.indices, limit).value >= 1.08 * greedy.value


def test_sampled_bounds_hold_with_their_confidence():
    """On fresh samples the bound at 95 % lies above the true optimum; the terms of both kinds add up to it."""
    function, limit = FUNCTIONS["influence"], MATROIDS["uniform"]
    truth = function.sample(200_000, seed=99)
    best = optimum(truth, limit)
    x = np.full(N, 3 / N)
    below = 0
    for seed in range(40):
        first, second = function.sample(400, seed), function.sample(400, seed + 1_000)
        _, points = certificates.relaxation(first, limit)
        for bound in (
            certificates.relaxation_anew(second, points, limit),
            certificates.sampled_gradient_bound(second, x, limit),
        ):
            assert bound.terms.mean() == pytest.approx(bound.value)
            assert bound.stderr > 0
            below += bound.upper < best
    assert below <= 10  # 80 bounds that may fail in 5 % of the cases, 4 on average


def test_a_stochastic_function_of_ones_own():
    function = sm.SetFunction(lambda s, z: jnp.max(s * z), N, lambda key: jax.random.uniform(key, (N,)))
    result = fw.select(function, MATROIDS["uniform"], steps=100)
    assert result.value == pytest.approx(0.75, abs=5 * result.value_stderr + 0.01)
    assert result.value_stderr > 0
    assert result.upper_bound >= 0.75
    assert result.ratio <= 1


def test_progress_goes_to_the_error_stream(capfd):
    fw.select(FUNCTIONS["coverage"], MATROIDS["uniform"], steps=20, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "20/20" in err


def select(**changes):
    arguments = {"function": FUNCTIONS["coverage"], "matroid": MATROIDS["uniform"], "steps": 10, **changes}
    return fw.select(arguments.pop("function"), arguments.pop("matroid"), **arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: select(function=len), "such as FacilityLocation"),
        (lambda: select(matroid=5), r"such as UniformMatroid\(9, k\)"),
        (lambda: select(matroid=sm.UniformMatroid(5, 2)), "9 elements and matroid 5"),
        (lambda: select(steps=1), "steps must be"),
        (lambda: select(batch=0), "batch must be"),
        (lambda: select(rounding="pipages"), "did you mean 'pipage'"),
        (lambda: select(rounding="deterministic", function=FUNCTIONS["logdet"]), "needs the exact F"),
        (lambda: select(rounding="pipage", matroid=MATROIDS["graphic"]), "rounding='swap'"),
        (lambda: select(algorithm=fw.one_sfw()), "dr_submodular setting"),
        (lambda: select(algorithm="greedy"), "dr_submodular setting"),
        (lambda: select(key=-1), "key must be"),
        (lambda: sm.greedy(FUNCTIONS["coverage"], MATROIDS["uniform"], "eager"), "method='eager'"),
        (lambda: sm.greedy(FUNCTIONS["coverage"], MATROIDS["uniform"], "stochastic", epsilon=1.0), "epsilon"),
        (lambda: sm.greedy(3, MATROIDS["uniform"]), "set function"),
    ],
)
def test_mistakes_are_sentences(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
