"""Lp, sparse, group, matrix, permutation and polytope sets."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from set_checks import (
    DTYPES,
    Case,
    check_bounds,
    check_lmo,
    check_optimal_against_members,
    check_outside,
    check_project,
    check_sizes,
    lmo,
    over_lp,
    over_vertices,
    precision,
    vector,
)

from onesfw import sets
from onesfw.submodular import GraphicMatroid

rng = np.random.default_rng(11)
GROUPS = np.array([0, 3, 0, 3, 3, 6, 0])  # groups 1, 2, 4 and 5 are empty
WEIGHTS = np.array([3.0, -1.0, 0.5, 0.5, 2.0])
POINTS = rng.normal(size=(9, 4))
CROSS = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))  # CROSS @ x ≤ 1 is the l1 ball
ROWS, COLUMNS = np.kron(np.eye(2), np.ones(3)), np.tile(np.eye(3), 2)
TRANSPORT = {"A_eq": ROWS, "b_eq": [1.0, 2.0], "A_ub": COLUMNS, "b_ub": [1.0, 1.5, 2.0]}


def dual_norm(p, radius):
    q = p / (p - 1)
    return lambda d: -radius * float(np.sum(np.abs(d) ** q) ** (1 / q))


def top(k, bound):
    return lambda d: -bound * float(np.sort(np.abs(d))[-k:].sum())


def group(radius, order):
    return lambda d: -radius * max(np.linalg.norm(d[g == GROUPS], order) for g in set(GROUPS.tolist()))


def nuclear(radius, shape):
    return lambda d: -radius * np.linalg.svd(d.reshape(shape), compute_uv=False)[0]


def spectral(radius, shape):
    return lambda d: -radius * np.linalg.svd(d.reshape(shape), compute_uv=False).sum()


def least_eigenvalue(total, n):
    return lambda d: total * np.linalg.eigvalsh((d.reshape(n, n) + d.reshape(n, n).T) / 2)[0]


def permutation_matrices(n):
    return [np.eye(n)[list(order)].ravel() for order in itertools.permutations(range(n))]


SMALL = [
    Case("LpBall 1.5", sets.LpBall(1.5, 2.0, 6), (6,), dual_norm(1.5, 2.0), projects=False),
    Case("LpBall 3", sets.LpBall(3, 0.7, (2, 3)), (2, 3), dual_norm(3, 0.7), projects=False),
    Case("LpBall 1.02", sets.LpBall(1.02, 1.0, 6), (6,), dual_norm(1.02, 1.0), projects=False),
    Case("KSparse", sets.KSparse(2, 1.5, 6), (6,), top(2, 1.5)),
    Case("KSparse box", sets.KSparse(9, 1.5, 6), (6,), top(6, 1.5)),
    Case("KSparse tree", sets.KSparse(3, 1.0, 6), {"a": (2,), "b": (2, 2)}, top(3, 1.0)),
    Case("GroupBall l2", sets.GroupBall(GROUPS, 2.0), (7,), group(2.0, 2)),
    Case("GroupBall linf", sets.GroupBall(GROUPS, 2.0, "linf"), (7,), group(2.0, 1)),
    Case("NuclearBall wide", sets.NuclearBall(2.0, (3, 4)), (3, 4), nuclear(2.0, (3, 4))),
    Case("NuclearBall tall", sets.NuclearBall(0.5, (4, 2)), (4, 2), nuclear(0.5, (4, 2))),
    Case("NuclearBall row", sets.NuclearBall(0.5, (1, 5)), (1, 5), nuclear(0.5, (1, 5))),
    Case("SpectralBall", sets.SpectralBall(2.0, (3, 4)), (3, 4), spectral(2.0, (3, 4)), accuracy=3e-4),
    Case("SpectralBall row", sets.SpectralBall(2.0, (1, 4)), (1, 4), spectral(2.0, (1, 4)), accuracy=1e-4),
    Case("Spectrahedron", sets.Spectrahedron(2.0, 4), (4, 4), least_eigenvalue(2.0, 4)),
    Case("Spectrahedron point", sets.Spectrahedron(2.0, 1), (1, 1), least_eigenvalue(2.0, 1), nonnegative=True),
    Case(
        "Birkhoff", sets.Birkhoff(4), (4, 4), over_vertices(permutation_matrices(4)), projects=False, nonnegative=True
    ),
    Case("Permutahedron", sets.Permutahedron(WEIGHTS), (5,), over_vertices(list(itertools.permutations(WEIGHTS)))),
    Case(
        "Polytope cross",
        sets.Polytope(CROSS, np.ones(16)),
        (4,),
        over_vertices(np.vstack([np.eye(4), -np.eye(4)])),
        projects=False,
        exact_diameter=False,
        exact_radius=False,
    ),
    Case(
        "Polytope transport",
        sets.Polytope(**TRANSPORT, bounds=(0, None)),
        (6,),
        over_lp(**TRANSPORT),
        projects=False,
        exact_diameter=False,
        exact_radius=False,
        nonnegative=True,
    ),
    Case("VertexHull", sets.VertexHull(POINTS), (4,), over_vertices(POINTS), projects=False),
    Case(
        "VertexHull tree",
        sets.VertexHull({"a": POINTS[:, :1], "b": np.abs(POINTS[:, 1:]).reshape(9, 1, 3)}),
        {"a": (1,), "b": (1, 3)},
        over_vertices(np.hstack([POINTS[:, :1], np.abs(POINTS[:, 1:])])),
        projects=False,
    ),
    Case(
        "VertexHull point",
        sets.VertexHull([[1.0, 2.0]]),
        (2,),
        over_vertices([[1, 2]]),
        projects=False,
        nonnegative=True,
    ),
]
# Beyond 48 rows and columns the matrix sets iterate.
LARGE = [
    Case("NuclearBall 60 x 80", sets.NuclearBall(3.0, (60, 80)), (60, 80), nuclear(3.0, (60, 80)), accuracy=1e-4),
    Case("NuclearBall 90 x 55", sets.NuclearBall(3.0, (90, 55)), (90, 55), nuclear(3.0, (90, 55)), accuracy=1e-4),
    Case("SpectralBall 60 x 80", sets.SpectralBall(3.0, (60, 80)), (60, 80), spectral(3.0, (60, 80)), accuracy=1e-4),
    Case("Spectrahedron 64", sets.Spectrahedron(1.0, 64), (64, 64), least_eigenvalue(1.0, 64), accuracy=2e-4),
]
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
        (sets.KSparse(2, 1.0), [1.0, -1.0, 1.0, 0.5], [-1, 1, 0, 0]),
        (sets.GroupBall([1, 1, 0, 0], 1.0, "linf"), [1.0, -1.0, -1.0, 1.0], [0, 0, 1, -1]),
        (sets.Permutahedron([1.0, 3.0, 2.0]), [0.0, -1.0, 0.0], [2, 3, 1]),
        (sets.VertexHull([[0.0, 1.0], [1.0, 0.0]]), [1.0, 1.0], [0, 1]),
    ],
)
def test_ties_go_to_the_lowest_index(constraint, d, vertex):
    assert vector(constraint.lmo(jnp.asarray(d))).tolist() == vertex


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


def spectrum(values, shape, seed=0):
    random = np.random.default_rng(seed)
    left = np.linalg.qr(random.normal(size=(shape[0], shape[0])))[0]
    right = np.linalg.qr(random.normal(size=(shape[1], shape[1])))[0]
    return left[:, : len(values)] * values @ right[: len(values)]


DEGENERATE = {
    "orthogonal": spectrum(np.ones(60), (60, 70)),
    "pair": spectrum(np.r_[2.0, 2.0, np.ones(58)], (60, 70)),
    "near pair": spectrum(np.r_[1.001, 1.0, np.linspace(0.5, 0, 58)], (70, 60)),
    "rank one": spectrum(np.ones(1), (60, 70)),
    "linear": spectrum(np.linspace(1, 0, 60), (60, 60)),
    "diagonal": np.diag(np.r_[np.zeros(59), 1.0]),
    "flat": spectrum(np.linspace(1, 0.95, 60), (60, 60)),
    "one entry": np.eye(60, 70)[::-1] * (np.arange(60)[:, None] == 7),
}


@pytest.mark.parametrize("name", DEGENERATE)
@in_dtypes
def test_nuclear_ball_on_degenerate_matrices(name, dtype):
    with precision(dtype):
        d = DEGENERATE[name]
        constraint = sets.NuclearBall(1.0)
        vertex = np.asarray(lmo(constraint, jnp.asarray(d, dtype)), np.float64)
        largest = np.linalg.norm(d, 2)
        assert np.sum(vertex * d) <= -(1 - 2e-4) * largest
        assert constraint.contains(jnp.asarray(vertex, dtype), 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spectrum", ["equal", "rank one", "graded", "one large", "random"])
def test_the_polar_factor_is_as_accurate_as_it_says(spectrum, dtype):
    """⟨D, V⟩ within 1e-4 of −Σσ_i, σ₁(V) ≤ 1, whatever the singular values."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(n, 70)))[0] for n in (90, 70))
    values = {
        "equal": np.ones(70),
        "rank one": np.eye(1, 70)[0],
        "graded": 10.0 ** -np.linspace(0, 6, 70),
        "one large": np.r_[1.0, np.full(69, 1e-3)],
        "random": rng.random(70),
    }[spectrum]
    with jax.enable_x64(dtype == "float64"):
        vertex = np.asarray(lmo(sets.SpectralBall(1.0), jnp.asarray((left * values) @ right.T, dtype)), np.float64)
    assert np.linalg.norm(vertex, 2) <= 1 + 1e-5
    assert np.sum(vertex * ((left * values) @ right.T)) <= -(1 - 1.1e-4) * values.sum()


@pytest.mark.parametrize("make", [sets.NuclearBall, sets.SpectralBall])
def test_no_unlucky_start_spoils_the_accuracy(make):
    """A start nearly orthogonal to the leading vector makes the second converge first: once 1 in 75 failed."""
    rng = np.random.default_rng(1)
    oracle = jax.jit(lambda d: make(1.0).lmo(d))
    for i in range(300):
        d = rng.normal(size=(60, 60)) * (10.0 ** rng.uniform(-4, 0, size=60) if i % 2 else 1.0)
        vertex = np.asarray(oracle(jnp.asarray(d, jnp.float32)), np.float64)
        exact = np.linalg.norm(d, 2 if make is sets.NuclearBall else "nuc")
        assert np.sum(vertex * d) <= -(1 - 1.5e-4) * exact, i


@pytest.mark.parametrize("size", [1, 5, 60])
@pytest.mark.parametrize("make", [sets.NuclearBall, sets.SpectralBall, sets.Spectrahedron])
def test_zero_matrices_give_a_member(make, size):
    constraint = make(2.0)
    vertex = lmo(constraint, jnp.zeros((size, size)))
    assert constraint.contains(vertex, 1e-5)
    assert np.linalg.norm(vector(vertex)) > 1.9


def test_a_shifted_spectrum_is_no_harder():
    """All eigenvalues negative, all positive, one only."""
    random = np.random.default_rng(0)
    noise = random.normal(size=(80, 80))
    for shift in (-40.0, 0.0, 40.0):
        d = (noise + noise.T) / 2 + shift * np.eye(80)
        v = np.asarray(lmo(sets.Spectrahedron(), jnp.asarray(d, jnp.float32)), np.float64)
        values = np.linalg.eigvalsh(d)
        assert np.sum(v * d) <= values[0] + 1e-4 * max(abs(values[0]), values[-1] - values[0]) + 1e-4
    v = lmo(sets.Spectrahedron(), -3 * jnp.eye(80))
    assert np.trace(np.asarray(v)) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "constraint", [sets.NuclearBall(1.0), sets.Spectrahedron()], ids=["NuclearBall", "Spectrahedron"]
)
def test_memory_helps_and_does_not_blind(constraint):
    """After a run on one direction the oracle still finds a leading vector orthogonal to the remembered one."""
    step = jax.jit(lambda d, memory: constraint.lmo_from(d, memory))
    first = np.zeros((64, 64), np.float32)
    second = first.copy()
    first[0, 0], second[5, 5] = -1.0, -1.0
    memory = constraint.lmo_memory(first)
    vertex, memory = step(first, memory)
    assert abs(np.asarray(vertex)[0, 0]) == pytest.approx(1, abs=1e-4)
    assert abs(np.asarray(memory)[0]) == pytest.approx(1, abs=1e-3)
    vertex, _ = step(second, jnp.eye(64)[0])
    assert abs(np.asarray(vertex)[5, 5]) == pytest.approx(1, abs=1e-3)
    # an orbit of nearby directions stays accurate
    random = np.random.default_rng(0)
    d = random.normal(size=(64, 64)).astype(np.float32)
    d = d + d.T
    for _ in range(5):
        d = d + 0.05 * random.normal(size=d.shape).astype(np.float32)
        vertex, memory = step(d, memory)
        symmetric = np.linalg.eigvalsh((d + d.T) / 2)
        exact = symmetric[0] if isinstance(constraint, sets.Spectrahedron) else -np.linalg.norm(d, 2)
        assert np.sum(np.asarray(vertex) * d) <= exact + 4e-4 * abs(exact)


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


@pytest.mark.parametrize(
    "make",
    [
        lambda r: sets.LpBall(1 + r, r),
        lambda r: sets.KSparse(2, r),
        lambda r: sets.GroupBall([0, 1, 0], r),
        lambda r: sets.Permutahedron([r, 0.0, 1.0]),
        lambda r: sets.VertexHull([[r, 0.0, 1.0], [0.0, r, 1.0]]),
        lambda r: sets.Polytope(bounds=[(0, r)] * 3),
        lambda r: sets.NuclearBall(r),
        lambda r: sets.SpectralBall(r),
        lambda r: sets.Spectrahedron(r),
    ],
)
def test_a_new_radius_does_not_recompile(make):
    traces = 0

    @jax.jit
    def through(constraint, d):
        nonlocal traces
        traces += 1
        return constraint.lmo(d), constraint.contains(d), constraint.start(d)

    d = -jnp.arange(1.0, 4.0)
    d = jnp.diag(d) if isinstance(make(1.0), sets.MatrixSet) else d
    results = [vector(through(make(r), d)[0]) for r in (1.0, 2.0, 3.5)]
    assert traces == 1
    assert not np.array_equal(results[0], results[1])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sets.LpBall(1, 1), ValueError, "LpBall: p must be above 1 and finite, got 1: use L1Ball for 1"),
        (lambda: sets.LpBall(np.inf, 1), ValueError, "LpBall: p must be finite"),
        (lambda: sets.LpBall(2, -1), ValueError, "LpBall: radius must be positive"),
        (lambda: sets.LpBall(3, 1).radius, TypeError, "LpBall does not know its shape"),
        (lambda: sets.KSparse(0, 1), ValueError, "KSparse: k must be at least 1"),
        (lambda: sets.KSparse(1.5, 1), TypeError, "KSparse: k must be a whole number"),
        (lambda: sets.KSparse(1, np.nan), ValueError, "KSparse: bound must be finite"),
        (lambda: sets.GroupBall([0.5, 1], 1), TypeError, "GroupBall: groups must hold whole numbers"),
        (lambda: sets.GroupBall([-1, 1], 1), ValueError, "GroupBall: groups must be an array of numbers from 0 on"),
        (lambda: sets.GroupBall([0, 1], 1, "l1"), ValueError, "GroupBall: norm must be 'l2' or 'linf', got 'l1'"),
        (lambda: sets.GroupBall([0, 1], 1, shape=3), ValueError, "GroupBall: groups have shape"),
        (lambda: sets.NuclearBall(0), ValueError, "NuclearBall: radius must be positive"),
        (lambda: sets.NuclearBall(1, accuracy=0), ValueError, "NuclearBall: accuracy must be positive"),
        (lambda: sets.NuclearBall(1, (2, 3, 4)), ValueError, "NuclearBall: shape must be a matrix's"),
        (lambda: sets.NuclearBall(1).lmo(jnp.ones(3)), ValueError, "NuclearBall needs x to be one matrix"),
        (lambda: sets.SpectralBall(1).lmo([jnp.eye(2)] * 2), ValueError, "SpectralBall needs x to be one matrix"),
        (lambda: sets.NuclearBall(1, (2, 2)).lmo(jnp.ones((2, 3))), ValueError, r"NuclearBall has shape \(2, 2\)"),
        (lambda: sets.SpectralBall(1).radius, TypeError, "SpectralBall does not know its shape"),
        (lambda: sets.Spectrahedron(1, (2, 3)), ValueError, "Spectrahedron: shape must be a square matrix's"),
        (lambda: sets.Spectrahedron().lmo(jnp.ones((2, 3))), ValueError, "Spectrahedron needs x to be a square matrix"),
        (lambda: sets.Birkhoff(0), ValueError, "Birkhoff: n must be a positive integer"),
        (lambda: sets.Birkhoff(2).lmo(jnp.eye(3)), ValueError, r"Birkhoff has shape \(2, 2\), got \(3, 3\)"),
        (lambda: sets.Permutahedron(1.0), ValueError, "Permutahedron: weights must be an array"),
        (lambda: sets.Permutahedron(["a"]), TypeError, "Permutahedron: weights must hold real numbers"),
        (lambda: sets.Polytope(), ValueError, "Polytope: give A_ub, A_eq, or one pair of bounds per coordinate"),
        (lambda: sets.Polytope(np.eye(2)), ValueError, "Polytope: A_ub and b_ub go together"),
        (lambda: sets.Polytope([1, 1], 1), ValueError, "Polytope: A_ub must have 2 columns"),
        (
            lambda: sets.Polytope(np.eye(2), [1]),
            ValueError,
            "Polytope: A_ub must have 2 columns and b_ub one entry per",
        ),
        (lambda: sets.Polytope(np.eye(2), [1, np.nan]), ValueError, "Polytope: b_ub must be finite"),
        (lambda: sets.Polytope(np.eye(2), [1, 1], bounds=(2, 1)), ValueError, "Polytope: every pair of bounds"),
        (
            lambda: sets.Polytope(np.eye(2), [1, 1], bounds=[(0, 1)] * 3),
            ValueError,
            "Polytope: bounds must be one pair",
        ),
        (lambda: sets.Polytope(np.eye(2), [1, 1], bounds=(2, 3)), ValueError, "Polytope: no point satisfies all"),
        (
            lambda: sets.Polytope(np.eye(2), [1, 1]),
            ValueError,
            "Polytope: the constraints leave a direction without end",
        ),
        (lambda: sets.Polytope([[1, 1], [-1, -1]], [1, 1]), ValueError, "leave a direction without end; add bounds="),
        (lambda: sets.VertexHull(3.0), ValueError, "VertexHull: vertices must be arrays with one row per vertex"),
        (lambda: sets.VertexHull({"a": np.eye(2), "b": np.eye(3)}), ValueError, "VertexHull: vertices must be arrays"),
        (lambda: sets.VertexHull(np.eye(2)).lmo(jnp.ones(3)), ValueError, "VertexHull: x has shape"),
    ],
)
def test_bad_arguments_get_a_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()


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
