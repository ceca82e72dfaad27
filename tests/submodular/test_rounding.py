"""Rounding: always independent; swap and pipage keep the marginals and E f(S) ≥ F(x); contention keeps its balance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onesfw as fw
from onesfw import submodular as sm
from onesfw.submodular.contention import balance, fit
from onesfw.submodular.rounding import SwapRounding, decompose, grouped

N = 8
GRAPH = [[0, 1], [1, 2], [2, 0], [2, 3], [3, 0], [3, 4], [4, 0], [1, 4]]
MATROIDS = {
    "uniform": sm.UniformMatroid(N, 3),
    "partition": sm.PartitionMatroid([0, 1, 0, 1, 2, 0, 2, 1], [2, 1, 1]),
    "laminar": sm.LaminarMatroid(N, [[0, 1, 2], [0, 1], [3, 4, 5]], [2, 1, 2]),
    "graphic": sm.GraphicMatroid(GRAPH),
    "oracle": sm.OracleMatroid(N, lambda s: len(s) <= 3 and not {6, 7} <= set(s)),
    "transversal": sm.TransversalMatroid(N, [[0, 1, 2, 3], [2, 3, 4], [5, 6], [0, 6, 7]]),
    "linear": sm.LinearMatroid(np.random.default_rng(9).integers(-1, 2, (3, N))),
    "truncated": sm.TruncatedMatroid(sm.GraphicMatroid(GRAPH), 3),
}
FUNCTION = sm.Coverage(np.random.default_rng(0).random((N, 12)) < 0.3, np.random.default_rng(1).random(12))
PIPAGE = ("uniform", "partition", "laminar")


def mixture(matroid, rng, count=5):
    """A random mixture of bases, the bases, and the weights."""
    bases = [matroid.base(rng.normal(size=N)) for _ in range(count)]
    weights = rng.dirichlet(np.ones(count))
    x = np.zeros(N)
    for base, weight in zip(bases, weights, strict=True):
        x[base] += weight
    return x, bases, weights


def streamed(matroid, bases, weights, seed):
    rounding, total = SwapRounding(matroid, seed), 0.0
    for base, weight in zip(bases, weights, strict=True):
        total += weight
        rounding.merge(grouped(matroid, base), weight / total)
    return rounding.result()


def check_lossless(matroid, x, sets):
    """Independent bases; marginals and the mean value within 5 standard errors."""
    for s in sets:
        assert matroid.independent(s)
        assert s.size == matroid.rank
    indicators = np.array([np.isin(np.arange(N), s) for s in sets])
    error = np.sqrt(x * (1 - x) / len(sets))
    assert np.all(np.abs(indicators.mean(0) - x) <= 5 * error + 1e-6)
    table = {s: FUNCTION.value(list(s)) for s in {tuple(s.tolist()) for s in sets}}
    values = np.array([table[tuple(s.tolist())] for s in sets])
    assert values.mean() >= FUNCTION.extension(x)[0] - 5 * values.std() / np.sqrt(len(sets))


@pytest.mark.parametrize("name", MATROIDS)
def test_streamed_swap_rounding_is_lossless(name):
    matroid = MATROIDS[name]
    x, bases, weights = mixture(matroid, np.random.default_rng(2))
    check_lossless(matroid, x, [streamed(matroid, bases, weights, seed) for seed in range(1_200)])


@pytest.mark.parametrize("name", MATROIDS)
def test_swap_rounding_of_a_point_is_lossless(name):
    matroid = MATROIDS[name]
    x, *_ = mixture(matroid, np.random.default_rng(3))
    bases, weights = decompose(x, matroid)
    again = np.zeros(N)
    for base, weight in zip(bases, weights, strict=True):
        assert matroid.independent(base)
        again[base] += weight
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(again, x, atol=2e-6)
    count = 800 if name in ("uniform", "partition") else 250
    check_lossless(matroid, x, [sm.swap_round(x, matroid, key) for key in range(count)])


@pytest.mark.parametrize("name", PIPAGE)
def test_pipage_is_lossless(name):
    matroid = MATROIDS[name]
    x, *_ = mixture(matroid, np.random.default_rng(4))
    check_lossless(matroid, x, [sm.pipage(x, matroid, key) for key in range(1_000)])


@pytest.mark.parametrize("name", PIPAGE)
def test_deterministic_pipage_never_loses(name):
    matroid = MATROIDS[name]
    for seed in range(8):
        x, *_ = mixture(matroid, np.random.default_rng(seed))
        chosen = sm.deterministic_pipage(x, matroid, FUNCTION)
        assert matroid.independent(chosen)
        assert chosen.size == matroid.rank
        assert FUNCTION.value(chosen) >= FUNCTION.extension(x)[0] - 1e-9


@given(st.sampled_from(sorted(MATROIDS)), st.integers(0, 10**6))
def test_every_rounding_is_independent(name, seed):
    matroid = MATROIDS[name]
    rng = np.random.default_rng(seed)
    x, bases, weights = mixture(matroid, rng, int(rng.integers(1, 7)))
    results = [streamed(matroid, bases, weights, seed), sm.swap_round(x, matroid, seed)]
    if name in PIPAGE:
        results.append(sm.pipage(x, matroid, seed))
    for chosen in results:
        assert matroid.independent(chosen)
        assert chosen.size == matroid.rank
        assert np.all(x[chosen] > 0)


def test_a_base_rounds_to_itself():
    for name, matroid in MATROIDS.items():
        base = matroid.base(np.random.default_rng(5).normal(size=N))
        x = np.isin(np.arange(N), base).astype(float)
        np.testing.assert_array_equal(sm.swap_round(x, matroid), base, name)
        if name in PIPAGE:
            np.testing.assert_array_equal(sm.pipage(np.float32(x), matroid), base)


@given(st.booleans(), st.integers(0, 10**6))
def test_float32_points_of_many_vertices_are_rounded(grouped_too, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    matroid = sm.PartitionMatroid(np.arange(n) % 4, [0, 2, 3, 1]) if grouped_too else sm.UniformMatroid(n, n // 2)
    x, weights = np.zeros(n, np.float32), rng.normal(size=n)
    for _ in range(30):
        x[matroid.base(weights + 0.5 * rng.normal(size=n))] += np.float32(1 / 30)
    for chosen in (sm.swap_round(x, matroid, seed), sm.pipage(x, matroid, seed)):
        assert matroid.independent(chosen)
        assert chosen.size == matroid.rank


def test_phases_of_a_run_keep_their_marginals():
    """Continuous greedy's mean of t vertices, then steps x ← x + η(v − x): what `select` merges as it goes."""
    matroid, rng = MATROIDS["partition"], np.random.default_rng(6)
    bases = [matroid.base(rng.normal(size=N)) for _ in range(7)]
    shares = [1 / (t + 1) for t in range(4)] + [0.3, 0.3, 0.3]
    x = np.zeros(N)
    for base, share in zip(bases, shares, strict=True):
        x = (1 - share) * x + share * np.isin(np.arange(N), base)
    found = []
    for seed in range(1_500):
        rounding = SwapRounding(matroid, seed)
        for base, share in zip(bases, shares, strict=True):
            rounding.merge(grouped(matroid, base), share)
        found.append(rounding.result())
    check_lossless(matroid, x, found)


PARTS = sm.PartitionMatroid([0, 0, 0, 1, 1, 2, 2, 2], 1)
COSTS = np.array([0.2, 0.7, 0.3, 0.1, 0.4, 0.6, 0.25, 0.15])
KNAPSACK = fw.sets.Knapsack(COSTS, 1.0)
X = np.array([0.3, 0.2, 0.4, 0.5, 0.4, 0.1, 0.6, 0.3])


THIN = sm.UniformMatroid(N, 1)
DEAR = fw.sets.Knapsack(np.append(COSTS[:-1], 2.0), 1.0)  # nobody can afford the last element


@pytest.mark.parametrize(
    ("limits", "b", "x"),
    [
        ([PARTS], 1.0, X),
        ([KNAPSACK], 0.25, X),
        ([KNAPSACK], 0.45, X),
        ([PARTS, KNAPSACK], 0.3, X),
        ([PARTS, THIN], 0.3, X / X.sum()),
        ([DEAR], 0.25, X * (np.arange(N) < N - 1)),
    ],
    ids=["parts", "knapsack", "larger share", "both", "two matroids", "dear"],
)
def test_contention_resolution_keeps_its_guarantee(limits, b, x):
    """P(i ∈ S) ≥ c b x_i and E f(S) ≥ c F(b x), within 5 standard errors; S always obeys."""
    count = 6_000
    kept, values = np.zeros(N), np.empty(count)
    table = {}
    for key in range(count):
        chosen = sm.contention_resolution(x, limits, key, b=b)
        for limit in limits:
            knapsack = isinstance(limit, fw.sets.Knapsack)
            assert limit.costs[chosen].sum() <= 1 + 1e-12 if knapsack else limit.independent(chosen)
        kept[chosen] += 1
        which = tuple(chosen.tolist())
        if which not in table:
            table[which] = FUNCTION.value(chosen)
        values[key] = table[which]
    c = balance(x, limits, b=b)
    promised = c * b * x
    assert np.all(kept / count >= promised - 5 * np.sqrt(promised / count))
    promise = c * FUNCTION.extension(b * x)[0]
    assert values.mean() >= promise - 5 * values.std(ddof=1) / np.sqrt(count)
    assert promise > 0


def test_the_knapsacks_scheme():
    """Below 1/2: kept where the rest is at most 1/2. Above: kept where it is the only such one, and alone."""
    sizes = np.array([0.4, 0.45, 0.15, 0.7, 0.6])

    def kept(*drawn):
        return np.flatnonzero(fit(sizes, np.isin(np.arange(5), drawn))).tolist()

    assert kept(0, 1) == [0, 1]
    assert kept(0, 1, 2) == []
    assert kept(0, 2) == [0, 2]
    assert kept(0, 3) == [3]
    assert kept(3, 4) == []


def test_the_fair_scheme_is_exact():
    """P(i ∈ S) = x_i (1 − ∏(1 − x))/Σx, the same share for every element of a part."""
    x = np.array([0.3, 0.2, 0.4])
    part = sm.UniformMatroid(3, 1)
    c = balance(x, part, b=1.0)
    assert c == pytest.approx((1 - 0.7 * 0.8 * 0.6) / 0.9)
    assert c >= 1 - 1 / np.e
    chosen = [sm.contention_resolution(x, part, key, b=1.0) for key in range(8_000)]
    share = np.array([sum(i in s for s in chosen) for i in range(3)]) / len(chosen)
    np.testing.assert_allclose(share, c * x, atol=5 * np.sqrt(0.25 / len(chosen)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sm.swap_round(np.full(N, 0.5), MATROIDS["uniform"]), "add up to the matroid's rank, 3"),
        (lambda: sm.swap_round([0.5], MATROIDS["uniform"]), f"{N} entries"),
        (lambda: sm.pipage([1, 0, 1, 0, 0, 1, 1, 0], MATROIDS["partition"]), "exceeds a capacity"),
        (lambda: sm.swap_round([1, 1, 1, 0, 0, 0, 0, 1], MATROIDS["graphic"]), "no mixture of bases"),
        (lambda: sm.pipage(mixture(MATROIDS["graphic"], np.random.default_rng(0))[0], MATROIDS["graphic"]), "swap"),
        (
            lambda: sm.deterministic_pipage(np.eye(N)[:3].sum(0), MATROIDS["uniform"], sm.LogDet(np.eye(N))),
            "needs the exact F, which LogDet has not",
        ),
        (lambda: sm.contention_resolution(X, KNAPSACK, b=0.5), "below 1/2"),
        (lambda: sm.contention_resolution(X, PARTS, b=0.0), "b must be a finite number above 0"),
        (lambda: sm.contention_resolution(X, PARTS, b=1.5), "b must lie in"),
        (lambda: sm.contention_resolution(X, KNAPSACK, b="x"), "b must be a number above 0"),
        (lambda: sm.contention_resolution(X, DEAR), "x must be 0 for element 7: its cost, 2, exceeds the budget of 1"),
        (lambda: balance(X, DEAR), "x must be 0 for element 7"),
        (lambda: sm.contention_resolution(np.ones(N), KNAPSACK), "breaks the Knapsack's"),
        (lambda: sm.contention_resolution(2 * X[:2], fw.sets.Knapsack([0.1, 0.1], 1.0, 0.5)), "breaks the Knapsack's"),
        (lambda: sm.contention_resolution(np.ones(N), PARTS), "breaks the PartitionMatroid's"),
        (lambda: sm.contention_resolution(X, THIN), "breaks the UniformMatroid's"),
        (lambda: sm.contention_resolution(X, [KNAPSACK, sm.UniformMatroid(3, 1)]), "same elements, got 8 and 3"),
        (lambda: sm.contention_resolution(X, MATROIDS["graphic"]), "swap_round or pipage"),
        (lambda: sm.contention_resolution(X, []), "empty"),
        (lambda: sm.contention_resolution(X, ["knapsack"]), "must hold Knapsack sets"),
        (lambda: SwapRounding(MATROIDS["uniform"], 0).result(), "nothing was merged"),
    ],
)
def test_mistakes_are_sentences(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_an_oracle_that_is_no_matroid_is_caught():
    wrong = sm.OracleMatroid(4, lambda s: set(s) <= {0, 1} or set(s) <= {2, 3})
    rounding = SwapRounding(wrong, 0)
    rounding.merge(np.array([0, 1]), 1.0)
    with pytest.raises(ValueError, match="not a matroid's"):
        rounding.merge(np.array([2, 3]), 0.5)
