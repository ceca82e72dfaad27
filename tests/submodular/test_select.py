"""Greedy baselines, and `select` from samples to a certified set."""

from __future__ import annotations

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from select_checks import FUNCTIONS, MATROIDS, RNG, N, optimum

import onesfw as fw
from onesfw import submodular as sm
from onesfw.submodular import influence
from onesfw.submodular.base import Source
from onesfw.submodular.select import TwoPhases


@pytest.fixture(autouse=True)
def _smaller_samples(monkeypatch):
    monkeypatch.setattr(influence, "SETS", 30_000)


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


class Script(Source):
    """A source that sets d to given directions and keeps what it was handed."""

    closed = True

    def __init__(self, directions):
        self.directions, self.seen = directions, []

    def update(self, d, x, previous, rho, t):
        self.seen.append((d.copy(), x.copy(), previous.copy(), rho))
        d[:] = self.directions[t - 1]


def test_both_phases_follow_the_listing():
    """d goes over from one phase to the next, ρ_t = 1/(t − 1) throughout, x by steps of 1/T₁ and then 5/T₂."""
    directions = np.random.default_rng(6).normal(size=(20, N))
    source, limit = Script(directions), MATROIDS["partition"]
    run = TwoPhases(limit, 20, seed=0)
    run.run(source, 20, lambda t: None, [])
    x = previous = np.zeros(N)
    for t in range(1, 21):
        d, here, before, rho = source.seen[t - 1]
        np.testing.assert_array_equal(d, directions[t - 2] if t > 1 else 0)
        np.testing.assert_allclose((here, before), (x, previous), atol=1e-15)
        assert rho == 1 / max(t - 1, 1)
        vertex = np.zeros(N)
        vertex[limit.base(directions[t - 1])] = 1
        previous, x = x, x + vertex / 10 if t <= 10 else x + 0.5 * (vertex - x)
    np.testing.assert_allclose(run.x, x, atol=1e-12)


@pytest.mark.parametrize("matroid", MATROIDS)
def test_the_base_follows_x_through_both_phases(matroid):
    """Over many seeds of the merging, on the same vertices: E 1_B = x after either phase, within 5 standard errors."""
    directions = np.random.default_rng(8).normal(size=(24, N))
    limit, count = MATROIDS[matroid], 1_500
    held, points = np.zeros((2, N)), None
    for seed in range(count):
        run = TwoPhases(limit, 24, seed)
        ends = []
        for until in (12, 24):
            run.run(Script(directions), until, lambda t: None, [])
            ends.append(run.point(""))
        points = [end.x for end in ends]
        for row, end in enumerate(ends):
            assert limit.independent(end.base)
            held[row, end.base] += 1
    for x, share in zip(points, held / count, strict=True):
        assert np.all(np.abs(share - x) <= 5 * np.sqrt(x * (1 - x) / count) + 1e-9)


def test_polishing_makes_exchanges_that_pay():
    rng = np.random.default_rng(2)
    function = sm.FacilityLocation(features=rng.normal(size=(60, 2)))
    for limit in (sm.UniformMatroid(60, 6), sm.PartitionMatroid(np.arange(60) % 3, 2)):
        rough = fw.select(function, limit, steps=4, polish=False)
        polished = fw.select(function, limit, steps=4)
        assert rough.exchanges == 0 < polished.exchanges
        assert polished.value > rough.value
        assert limit.independent(polished.indices)


def test_reverse_reachable_sets_are_used_once(monkeypatch):
    """Block follows block without a gap or a repetition."""
    monkeypatch.setattr(influence, "BLOCK", 10)
    source = FUNCTIONS["influence"].source(4, 5)
    asked, draw = [], source.sets.draw
    monkeypatch.setattr(source.sets, "draw", lambda first, *rest: asked.append(first) or draw(first, *rest))
    for t in range(1, 8):
        source.update(np.zeros(N), np.full(N, 0.3), np.full(N, 0.3), 1.0, t)
    assert asked == [0, 8, 16, 24]  # two steps of four sets from each block of ten


def test_a_function_below_zero_is_refused():
    with pytest.raises(ValueError, match="negative on the empty set, -10; add a constant"):
        fw.select(sm.SetFunction(lambda s: -10 + jnp.sqrt(jnp.sum(s)), N), MATROIDS["uniform"], steps=4)


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
            function.stepper(float(function.omegas))(moved, x, previous, rho, np.array([2, 5]))
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
        function.source(1, seed).update(moved, x, previous, rho, 2)
        made.append(moved)
    places = np.linspace(0, 1, 41)
    along = np.mean([sm.enumerate_extension(function, a * x + (1 - a) * previous)[1] for a in places], axis=0)
    step = sm.enumerate_extension(function, x)[1] - sm.enumerate_extension(function, previous)[1]
    expected = (1 - rho) * (d + step) + rho * along
    error = np.std(made, axis=0) / np.sqrt(len(made))
    assert np.all(np.abs(np.mean(made, axis=0) - expected) <= 5 * error + 1e-3)


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
    assert re.search(r"[\d,]+ steps/s", err)  # on one line


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
