"""The polytope of a matroid's bases: its oracle against all bases, its projection, and runs that end inside."""

from __future__ import annotations

import numpy as np
import pytest
from matroid_checks import MATROIDS, N, bases
from set_cases import POLYTOPES
from set_checks import (
    DTYPES,
    check_bounds,
    check_lmo,
    check_optimal_against_members,
    check_outside,
    check_project,
    check_sizes,
)

import onesfw as fw
from onesfw import submodular as sm

ids = [case.name for case in POLYTOPES]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", POLYTOPES, ids=ids)
def test_polytope_oracle(case, dtype):
    check_lmo(case, dtype)
    if dtype == "float64":
        check_outside(case, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", POLYTOPES, ids=ids)
def test_polytope_projection(case, dtype):
    if case.projects:
        check_project(case, dtype)
    else:
        with pytest.raises(NotImplementedError, match="for uniform and partition matroids only"):
            case.constraint.project(np.zeros(N))


@pytest.mark.parametrize("case", POLYTOPES, ids=ids)
def test_polytope_members_and_sizes(case):
    check_optimal_against_members(case, "float64", 10)
    check_sizes(case)
    check_bounds(case)


def test_compiled_programs_do_not_confuse_matroids():
    """Programs are found again by their text, which does not show what a callback is bound to."""
    function = sm.Coverage(np.random.default_rng(0).random((N, 8)) < 0.4)
    for allowed in ({0, 1, 2}, {3, 4, 5}):
        matroid = sm.OracleMatroid(N, lambda s, allowed=allowed: set(s) <= allowed)
        result = fw.maximize(
            fw.MultilinearExtension(function), fw.sets.MatroidPolytope(matroid), steps=5, evaluate=False
        )
        assert set(np.flatnonzero(result.x).tolist()) == allowed


@pytest.mark.parametrize("name", ["graphic"])
def test_maximisation_over_a_polytope_ends_inside(name):
    rng = np.random.default_rng(0)
    function = sm.Coverage(rng.random((N, 8)) < 0.4)
    constraint = fw.sets.MatroidPolytope(MATROIDS[name])
    result = fw.maximize(fw.MultilinearExtension(function), constraint, steps=400)
    assert bool(constraint.contains(result.x, 1e-5))
    exact = fw.maximize(
        fw.MultilinearExtension(function), constraint, steps=200, algorithm=fw.frank_wolfe("dr_submodular")
    )
    best = max(function.value(list(b)) for b in bases(MATROIDS[name]))
    assert exact.value >= (1 - 1 / np.e) * best
    assert result.value >= (1 - 1 / np.e) * best
    assert result.value == pytest.approx(function.extension(result.x)[0], rel=1e-5)
