"""Matroids: the axioms, the greedy base against brute force, and what is refused."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matroid_checks import MATROIDS, N, bases, check_axioms, independent_sets, indicator

import onesfw as fw
from onesfw import submodular as sm


@pytest.mark.parametrize("name", MATROIDS)
def test_axioms(name):
    check_axioms(MATROIDS[name])


def test_known_independent_sets():
    count = {name: len(independent_sets(matroid)) for name, matroid in MATROIDS.items()}
    assert count["uniform"] == 1 + 6 + 15 + 20
    assert count["whole"] == 64
    assert count["partition"] == 7 * 3 * 2
    assert count["oracle"] == 27
    assert count["truncated"] == 1 + 5 + 10
    graph = MATROIDS["graphic"]
    assert not graph.independent([0, 1, 2])
    assert not graph.independent([4])
    assert graph.rank == 3
    assert not MATROIDS["linear"].independent([0, 3])
    assert MATROIDS["linear"].independent([0, 1, 5])
    assert MATROIDS["laminar"].rank == 3


def subset():
    return st.sets(st.integers(0, N - 1), min_size=1).map(sorted)


def drawn_matroid(draw, kind):
    """A matroid of that kind over N elements."""
    if kind == "uniform":
        return sm.UniformMatroid(N, draw(st.integers(1, N)))
    if kind == "partition":
        groups = draw(st.lists(st.integers(0, 2), min_size=N, max_size=N))
        return sm.PartitionMatroid(groups, draw(st.integers(1, 3)))
    if kind == "graphic":
        return sm.GraphicMatroid(draw(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=N, max_size=N)))
    if kind == "transversal":
        return sm.TransversalMatroid(N, draw(st.lists(subset(), min_size=1, max_size=4)))
    if kind == "linear":
        entries = draw(st.lists(st.integers(-1, 1), min_size=3 * N, max_size=3 * N))
        return sm.LinearMatroid(np.reshape(entries, (3, N)))
    inner = draw(st.sets(st.integers(0, 3), min_size=1))
    family = [inner, range(4), [4, 5], range(N)]
    return sm.LaminarMatroid(N, family, draw(st.lists(st.integers(0, 4), min_size=4, max_size=4)))


KINDS = ("uniform", "partition", "graphic", "transversal", "linear", "laminar")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(data=st.data())
def test_axioms_of_random_matroids(kind, data):
    check_axioms(drawn_matroid(data.draw, kind))


@settings(max_examples=20)
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_axioms_of_truncations_and_oracles(kind, data):
    inner = drawn_matroid(data.draw, kind)
    truncated = sm.TruncatedMatroid(inner, data.draw(st.integers(1, 3)))
    check_axioms(truncated)
    kept = {s for s in independent_sets(inner) if len(s) <= truncated.k}
    assert set(independent_sets(truncated)) == kept
    asked = sm.OracleMatroid(N, inner.independent)
    check_axioms(asked)
    assert independent_sets(asked) == independent_sets(inner)


@example([[0, 1], [0, 2], [0, 3]], range(N))  # 0 moves twice
@given(st.lists(subset(), min_size=1, max_size=5), st.permutations(range(N)))
def test_transversals_are_matchings(family, order):
    """Against every assignment of elements to different sets; what a builder refused leaves no trace."""
    matroid = sm.TransversalMatroid(N, family)
    matched = set()
    for choice in itertools.product(*[[None, *members] for members in family]):
        chosen = [i for i in choice if i is not None]
        if len(set(chosen)) == len(chosen):
            matched.add(tuple(sorted(chosen)))
    assert set(independent_sets(matroid)) == matched
    for elements in (range(N), order):
        builder = matroid.builder()
        taken = [i for i in elements if builder.add(i)]
        assert len(taken) == matroid.rank == max(map(len, matched))


def test_long_chains_of_a_transversal_matroid():
    """Adding the last element moves all the others."""
    n = 1_100
    matroid = sm.TransversalMatroid(n, [[i, i + 1] for i in range(n - 1)])
    assert matroid.rank == n - 1
    assert matroid.independent([*range(1, n - 1), 0])
    assert not matroid.independent(range(n))


@pytest.mark.parametrize("name", MATROIDS)
def test_only_elements_are_asked_about(name):
    matroid = MATROIDS[name]
    for wrong in ([-1], [N], np.array([0, N])):
        with pytest.raises(ValueError, match=f"elements 0..{N - 1} cannot hold"):
            matroid.independent(wrong)
    for wrong in ([0.0], ["a"], [None], np.zeros(N, bool)):
        with pytest.raises(TypeError, match=f"list of indices in 0..{N - 1}, got"):
            matroid.independent(wrong)
    base = matroid.base(np.zeros(N))
    assert matroid.independent(base)
    assert matroid.independent(np.int32(base))
    assert not matroid.independent([*base, base[0]])


@pytest.mark.parametrize(
    "labels", [["b", "a", "b"], [2, 1, 2], [0.5, 0.1, 0.5], np.array(["b", "a", "b"], object), [True, False, True]]
)
def test_labels_of_one_kind(labels):
    low, high = sorted(set(labels))
    matroid = sm.PartitionMatroid(labels, {low: 1, high: 2})
    assert matroid.labels.tolist() == [low, high]
    assert matroid.capacities.tolist() == [1, 2]
    assert sm.PartitionMatroid(labels, [1, 2]).capacities.tolist() == [1, 2]


@pytest.mark.parametrize("name", MATROIDS)
def test_a_matroid_serves_float64_and_then_float32(name):
    weights = np.linspace(1, 0, N)
    with jax.enable_x64(True):
        wide = jax.jit(MATROIDS[name].traced_base)(weights)
    np.testing.assert_array_equal(jax.jit(MATROIDS[name].traced_base)(jnp.float32(weights)), wide)


@pytest.mark.parametrize("name", MATROIDS)
def test_the_greedy_base_is_heaviest(name):
    matroid = MATROIDS[name]
    all_bases = bases(matroid)
    rng = np.random.default_rng(0)
    traced = jax.jit(matroid.traced_base)
    for trial in range(25):
        weights = np.round(rng.normal(size=N), 1) if trial % 2 else np.float32(rng.normal(size=N))
        base = matroid.base(weights)
        assert tuple(base.tolist()) in all_bases
        assert weights[base].sum() == pytest.approx(max(weights[list(b)].sum() for b in all_bases))
        np.testing.assert_array_equal(np.asarray(traced(jnp.float32(weights))), indicator(base))
        chosen = [int(i) for i in base[:-1]]
        for i in range(N):
            grown = i not in chosen and matroid.independent([*chosen, i])
            assert matroid.extends(chosen, i) is grown
        whole = {int(i) for i in base}
        for i in whole:
            for j in set(range(N)) - whole:
                assert matroid.exchanges(whole, i, j) is matroid.independent([*(whole - {i}), j])
    assert matroid.rank == len(all_bases[0])
    assert matroid.base(np.zeros(N)).tolist() == list(min(all_bases))  # ties go to the lowest index


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sm.UniformMatroid(3, 4), "k = 4 elements cannot be chosen out of n = 3"),
        (lambda: sm.UniformMatroid(3, 0), "k must be"),
        (lambda: sm.PartitionMatroid([0, 1], [1]), "2 groups and 1 numbers"),
        (lambda: sm.PartitionMatroid(["a", "b"], {"a": 1}), "no entry for group 'b'"),
        (lambda: sm.PartitionMatroid([0, 1], 0), "all 0"),
        (lambda: sm.PartitionMatroid([], 1), "one group per element"),
        (lambda: sm.PartitionMatroid(["a", 1, None], 1), "one kind, all numbers or all strings"),
        (lambda: sm.PartitionMatroid(["a", 1], {"a": 1, 1: 1}), "one kind, all numbers or all strings"),
        (lambda: sm.PartitionMatroid([1, None], 1), "one kind, all numbers or all strings"),
        (lambda: sm.LaminarMatroid(4, [[0, 1], [1, 2]], [1, 1]), "sets 0 and 1 of the family overlap"),
        (lambda: sm.LaminarMatroid(4, [[0, 1]], [1, 1]), "one capacity per set"),
        (lambda: sm.LaminarMatroid(4, [[0, 4]], [1]), "family must be at most 3"),
        (lambda: sm.GraphicMatroid([0, 1]), "pairs of nodes"),
        (lambda: sm.LinearMatroid([1.0]), "2-D"),
        (lambda: sm.LinearMatroid([[np.nan]]), "NaN"),
        (lambda: sm.TruncatedMatroid("matroid", 1), "must be a matroid"),
        (lambda: sm.OracleMatroid(3, lambda s: False), "empty set"),
        (lambda: sm.OracleMatroid(3, [0]), "must be a function"),
        (lambda: fw.sets.MatroidPolytope(3), r"UniformMatroid\(n, k\)"),
        (lambda: fw.sets.MatroidPolytope(sm.GraphicMatroid([[0, 0]])), "rank 0"),
    ],
)
def test_mistakes_are_sentences(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
