"""Every set of the table: its oracle, projection, sizes and bounds, each against other means; what it refuses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from set_cases import LARGE, POINTS, SMALL, nested
from set_checks import (
    DTYPES,
    check_bounds,
    check_lmo,
    check_optimal_against_members,
    check_outside,
    check_project,
    check_sizes,
    precision,
    vector,
)

from onesfw import sets
from onesfw.submodular import GraphicMatroid

table = pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
both = pytest.mark.parametrize("case", SMALL + LARGE, ids=lambda case: case.name)
in_dtypes = pytest.mark.parametrize("dtype", DTYPES)


@both
@in_dtypes
def test_lmo_attains_the_minimum(case, dtype):
    check_lmo(case, dtype)


@table
@in_dtypes
def test_no_member_beats_the_vertex(case, dtype):
    check_optimal_against_members(case, dtype)


@table
@in_dtypes
def test_projection(case, dtype):
    if case.projects:
        check_project(case, dtype)
    else:
        with pytest.raises(NotImplementedError, match="has no projection; choose an algorithm that only needs `lmo`"):
            case.constraint.project(case.like("float32"))


@table
def test_diameter_and_radius(case):
    check_sizes(case)


@table
@in_dtypes
def test_outside_is_rejected(case, dtype):
    check_outside(case, dtype)


@table
def test_bounds_in_closed_form(case):
    check_bounds(case)


@pytest.mark.parametrize(
    ("constraint", "d", "vertex"),
    [
        (sets.L1Ball(3.0), [1.0, -2.0, 2.0, -2.0], [0, 3, 0, 0]),
        (sets.Simplex(), [1.0, -2.0, 2.0, -2.0], [0, 1, 0, 0]),
        (sets.SubSimplex(), [1.0, -2.0, 2.0, -2.0], [0, 1, 0, 0]),
        (sets.Knapsack(np.ones(4), 1), [1.0, -2.0, 2.0, -2.0], [0, 1, 0, 0]),
        (sets.KSparse(2, 1.0), [1.0, -1.0, 1.0, 0.5], [-1, 1, 0, 0]),
        (sets.GroupBall([1, 1, 0, 0], 1.0, "linf"), [1.0, -1.0, -1.0, 1.0], [0, 0, 1, -1]),
        (sets.Permutahedron([1.0, 3.0, 2.0]), [0.0, -1.0, 0.0], [2, 3, 1]),
        (sets.VertexHull([[0.0, 1.0], [1.0, 0.0]]), [1.0, 1.0], [0, 1]),
    ],
)
def test_ties_go_to_the_lowest_index(constraint, d, vertex):
    assert vector(constraint.lmo(jnp.asarray(d))).tolist() == vertex


@pytest.mark.parametrize(
    ("constraint", "vertex"),
    [
        (sets.L1Ball(2.0), [2, 0, 0]),
        (sets.L2Ball(2.0), [-2, 0, 0]),
        (sets.LInfBall(2.0), [2, 2, 2]),
        (sets.Simplex(2.0), [2, 0, 0]),
        (sets.SubSimplex(2.0), [0, 0, 0]),
        (sets.Box(-1, 2), [2, 2, 2]),
        (sets.Knapsack(np.ones(3), 1), [0, 0, 0]),
    ],
)
def test_zero_direction_gives_a_member(constraint, vertex):
    assert vector(constraint.lmo(jnp.zeros(3))).tolist() == vertex


def test_free_items_are_taken_whole():
    constraint = sets.Knapsack([0.0, 1.0, 0.0], 0.5, upper=[3.0, 1.0, 2.0])
    assert vector(constraint.lmo(jnp.array([-1e-6, -1.0, 1.0]))).tolist() == [3.0, 0.5, 0.0]


def test_large_dimension_stays_feasible_in_float32():
    d = jnp.asarray(np.random.default_rng(0).normal(size=200_000), jnp.float32)
    for constraint in (sets.Simplex(), sets.SubSimplex(), sets.L1Ball(1.0), sets.Knapsack(np.full(200_000, 1e-3), 20)):
        for x in (constraint.lmo(d), constraint.start(d), constraint.project(d)):
            assert constraint.contains(x, 1e-5)


def test_shape_is_needed_for_some_sizes_only():
    assert sets.L1Ball(2.0).diameter == 4.0
    assert sets.Simplex().diameter == pytest.approx(2**0.5)
    for unknown in (sets.LInfBall(1.0), sets.Box(0, 1), sets.Shifted(sets.Simplex(), 1.0)):
        with pytest.raises(TypeError, match="does not know its shape: pass shape= to the set, or x0= to the solver"):
            _ = unknown.radius
    assert sets.Shifted(sets.Simplex(), np.zeros(4)).template() == (4,)
    assert nested.template() == {"a": (3,), "b": [(2, 2), ()]}


def test_knapsack_sizes_are_exact_for_unit_costs():
    constraint = sets.Knapsack(np.ones(10), 3)
    assert constraint.radius == pytest.approx(3**0.5)
    assert constraint.diameter == pytest.approx(6**0.5)


@in_dtypes
def test_extreme_exponents_and_scales(dtype):
    with precision(dtype):
        d = jnp.asarray([3e30, -1e30, 0.0, 1e-30], dtype)
        for p in (1.0001, 1.5, 2.0, 7.0, 1e6):
            constraint = sets.LpBall(p, 2.0)
            vertex = constraint.lmo(d)
            assert np.all(np.isfinite(vector(vertex)))
            assert constraint.contains(vertex, 1e-5)
            assert vector(vertex)[0] < 0
            assert constraint.contains(constraint.lmo(jnp.zeros(4, dtype)), 1e-5)
            assert not constraint.contains(1.01 * vertex)


@pytest.mark.parametrize(
    "constraint", [sets.Birkhoff(3), sets.Polytope(np.vstack([np.eye(3), -np.eye(3)]), np.ones(6))]
)
def test_host_oracles_survive_loops_batches_and_nan(constraint):
    shape = constraint.template()
    d = jnp.asarray(np.random.default_rng(0).normal(size=(6, *shape)), jnp.float32)
    singly = np.stack([np.asarray(constraint.lmo(row)) for row in d])
    np.testing.assert_allclose(jax.jit(jax.vmap(constraint.lmo))(d), singly)
    looped = jax.jit(lambda d: jax.lax.map(constraint.lmo, d))(d)
    np.testing.assert_allclose(looped, singly)
    assert constraint.lmo(jnp.full(shape, jnp.nan)).shape == shape


def test_polytope_follows_linprog_except_for_the_default_bounds():
    free = sets.Polytope(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
    assert vector(free.lmo(jnp.ones(2))).tolist() == [-1, -1]
    boxed = sets.Polytope(bounds=[(0, 1), (-2, 3)])
    assert vector(boxed.lmo(jnp.array([1.0, -1.0]))).tolist() == [0, 3]
    assert boxed.radius == pytest.approx(10**0.5)
    assert boxed.diameter == pytest.approx(26**0.5)
    triangle = sets.Polytope([[1.0, 1.0]], [1.0], bounds=(0, None))
    assert vector(triangle.lmo(jnp.array([-1.0, -2.0]))).tolist() == [0, 1]


PROJECTING = [
    lambda r: sets.L1Ball(r),
    lambda r: sets.L2Ball(r),
    lambda r: sets.LInfBall(r),
    lambda r: sets.Simplex(r),
    lambda r: sets.SubSimplex(r),
    lambda r: sets.Box(-r, r),
    lambda r: sets.Knapsack(np.ones(3), r, r),
    lambda r: sets.Product([sets.Scaled(sets.L1Ball(r), r)]),
    lambda r: sets.Shifted(sets.L1Ball(r), r),
]
OTHERS = [
    lambda r: sets.LpBall(1 + r, r),
    lambda r: sets.KSparse(2, r),
    lambda r: sets.GroupBall([0, 1, 0], r),
    lambda r: sets.Permutahedron([r, 0.0, 1.0]),
    lambda r: sets.VertexHull([[r, 0.0, 1.0], [0.0, r, 1.0]]),
    lambda r: sets.Polytope(bounds=[(0, r)] * 3),
    lambda r: sets.NuclearBall(r),
    lambda r: sets.SpectralBall(r),
    lambda r: sets.Spectrahedron(r),
]


@pytest.mark.parametrize(("make", "projects"), [*((m, True) for m in PROJECTING), *((m, False) for m in OTHERS)])
def test_a_new_radius_does_not_recompile(make, projects):
    traces = 0

    @jax.jit
    def through(constraint, d):
        nonlocal traces
        traces += 1
        found = constraint.lmo(d), constraint.contains(d), constraint.start(d)
        return (*found, constraint.project(d)) if projects else found

    d = -jnp.arange(1.0, 4.0)
    d = jnp.diag(d) if isinstance(make(1.0), sets.MatrixSet) else d
    d = [d] if isinstance(make(1.0), sets.Product) else d
    results = [vector(through(make(r), d)[0]) for r in (1.0, 2.0, 3.5)]
    assert traces == 1
    assert not np.array_equal(results[0], results[1])


@pytest.mark.parametrize(
    "constraint",
    [sets.VertexHull(POINTS), sets.MatroidPolytope(GraphicMatroid([[0, 1], [1, 2], [2, 0], [2, 3]]))],
    ids=["VertexHull", "MatroidPolytope"],
)
def test_membership_by_the_oracle_compiles_once(constraint):
    inside = np.asarray(constraint.start(jnp.zeros(4)), np.float64)  # float64 outside x64 is no cause for a warning
    assert bool(constraint.contains(inside))
    constraint.bounds(inside)
    heard = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, _, **given: heard.append(event))
    assert not bool(constraint.contains(inside + 9.0, 1e-5))
    constraint.bounds(inside)
    assert not [event for event in heard if "compile" in event]
    jax.jit(lambda x: x + len(heard))(1.0)
    assert [event for event in heard if "compile" in event]  # it would have been heard
