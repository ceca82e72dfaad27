"""Balls, simplices, boxes, knapsacks and the sets made of sets."""

from __future__ import annotations

import itertools

import equinox as eqx
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
    over_lp,
    over_vertices,
    precision,
    vector,
)

from onesfw import sets

rng = np.random.default_rng(7)
LOWER, UPPER = -rng.random(6), rng.random(6)
COSTS = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 1.0])
CAPS = np.array([1.0, 0.5, 2.0, 1.0, 1.0, 0.0])
OFFSET = rng.normal(size=6)
signs = np.array(list(itertools.product([-1.0, 1.0], repeat=6)))
eye = np.eye(6)
knapsack = over_lp(A_ub=[COSTS], b_ub=[2.2], bounds=list(zip(np.zeros(6), CAPS, strict=True)))
two_of_six = over_lp(A_ub=[np.ones(6)], b_ub=[2], bounds=(0, 1))
nested = sets.Product({"a": sets.Simplex(2.0, 3), "b": [sets.L2Ball(1.5, (2, 2)), sets.Box(-1.0, 2.0, ())]})


def nested_least(d):
    return 2 * d[:3].min() - 1.5 * np.linalg.norm(d[3:7]) + min(-d[7], 2 * d[7])


CASES = [
    Case("L1Ball", sets.L1Ball(1.7, 6), (6,), over_vertices(1.7 * np.vstack([eye, -eye]))),
    Case("L2Ball", sets.L2Ball(1.7, 6), (6,), lambda d: -1.7 * np.linalg.norm(d)),
    Case("L2Ball matrix", sets.L2Ball(0.3, (2, 3)), (2, 3), lambda d: -0.3 * np.linalg.norm(d)),
    Case("LInfBall", sets.LInfBall(1.7, 6), (6,), over_vertices(1.7 * signs)),
    Case("Simplex", sets.Simplex(2.5, 6), (6,), over_vertices(2.5 * eye), nonnegative=True),
    Case("Simplex point", sets.Simplex(2.5, 1), (1,), over_vertices([[2.5]]), nonnegative=True),
    Case(
        "SubSimplex",
        sets.SubSimplex(0.5, 6),
        (6,),
        over_vertices(np.vstack([0.5 * eye, 0 * eye[:1]])),
        nonnegative=True,
    ),
    Case("SubSimplex segment", sets.SubSimplex(0.5, 1), (1,), over_vertices([[0.5], [0.0]]), nonnegative=True),
    Case("Box", sets.Box(LOWER, UPPER), (6,), over_lp(bounds=list(zip(LOWER, UPPER, strict=True)))),
    Case("Box positive", sets.Box(0.5, 2.0, (2, 3)), (2, 3), over_lp(bounds=(0.5, 2.0)), nonnegative=True),
    Case(
        "Box tree",
        sets.Box({"w": LOWER, "b": [-1.0, -1.0]}, {"w": UPPER, "b": 2.0}),
        {"w": (6,), "b": (2,)},
        over_lp(bounds=[(-1, 2)] * 2 + list(zip(LOWER, UPPER, strict=True))),
    ),
    Case(
        "Knapsack",
        sets.Knapsack(COSTS, 2.2, CAPS),
        (6,),
        knapsack,
        exact_diameter=False,
        exact_radius=False,
        nonnegative=True,
    ),
    Case(
        "Knapsack counts",
        sets.Knapsack(np.ones(6), 2),
        (6,),
        over_lp(A_ub=[np.ones(6)], b_ub=[2], bounds=(0, 1)),
        nonnegative=True,
    ),
    Case("Knapsack slack", sets.Knapsack(np.ones(6), 9), (6,), over_lp(bounds=(0, 1)), nonnegative=True),
    Case("Product", nested, {"a": (3,), "b": [(2, 2), ()]}, nested_least),
    Case(
        "Shifted",
        sets.Shifted(sets.Simplex(2.5, 6), OFFSET),
        (6,),
        over_vertices(2.5 * eye + OFFSET),
        exact_radius=False,
    ),
    Case("Shifted up", sets.Shifted(sets.LInfBall(1.0, 6), 1.5), (6,), over_lp(bounds=(0.5, 2.5)), nonnegative=True),
    Case("Scaled", sets.Scaled(sets.L1Ball(2.0, 6), 0.25), (6,), over_vertices(0.5 * np.vstack([eye, -eye]))),
    Case("Scaled simplex", sets.Scaled(sets.Simplex(1.0, 6), 300.0), (6,), over_vertices(300 * eye), nonnegative=True),
]
table = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
in_dtypes = pytest.mark.parametrize("dtype", DTYPES)


@table
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
    check_project(case, dtype)


@table
def test_diameter_and_radius(case):
    if case.constraint.template() is not None:
        check_sizes(case)


@table
@in_dtypes
def test_outside_is_rejected(case, dtype):
    check_outside(case, dtype)


@table
def test_bounds_in_closed_form(case):
    check_bounds(case)


def test_ties_go_to_the_lowest_index():
    d = jnp.array([1.0, -2.0, 2.0, -2.0])
    assert vector(sets.L1Ball(3.0).lmo(d)).tolist() == [0, 3, 0, 0]
    assert vector(sets.Simplex().lmo(d)).tolist() == [0, 1, 0, 0]
    assert vector(sets.SubSimplex().lmo(d)).tolist() == [0, 1, 0, 0]
    assert vector(sets.Knapsack(np.ones(4), 1).lmo(d)).tolist() == [0, 1, 0, 0]


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


def test_product_over_a_prefix():
    """A part may own a whole subtree, as one vector."""
    constraint = sets.Product((sets.L1Ball(1.0), sets.Simplex()))
    d = ({"p": jnp.array([1.0, -3.0]), "q": jnp.array([2.0])}, jnp.array([0.0, -1.0]))
    vertex = constraint.lmo(d)
    assert vector(vertex).tolist() == [0, 1, 0, 0, 1]
    assert jax.tree.structure(vertex) == jax.tree.structure(d)
    assert constraint.template() is None
    with pytest.raises(ValueError, match="Product: x must have the tree of sets as a prefix"):
        constraint.lmo({"a": d[0], "b": d[1]})


def test_memory_is_forwarded():
    class Counting(sets.ConvexSet):
        def lmo(self, d):
            return jnp.zeros_like(d)

        def lmo_memory(self, like):
            return jnp.zeros((), jnp.int32)

        def lmo_from(self, d, memory):
            return self.lmo(d), memory + 1

    constraint = sets.Product([sets.Shifted(Counting(), 1.0), sets.Scaled(sets.L1Ball(1.0), 2.0)])
    d = [jnp.ones(2), jnp.ones(2)]
    memory = constraint.lmo_memory(d)
    for _ in range(3):
        vertex, memory = constraint.lmo_from(d, memory)
    assert [int(m) for m in jax.tree.leaves(memory)] == [3]
    assert vector(vertex).tolist() == [1, 1, -2, 0]


class Disc(sets.ConvexSet):
    """A user's own set: {x : ‖x − c‖₂ ≤ 1}, c = (3, 4); only the oracle is written."""

    size: int = eqx.field(static=True, default=2)

    def lmo(self, d):
        length = jnp.linalg.norm(d)
        return jnp.array([3.0, 4.0], d.dtype) - d / jnp.where(length > 0, length, 1.0)

    def template(self):
        return (self.size,)


class Cross(sets.ConvexSet):
    """Another: the l1 ball of radius 1, by its oracle alone and without a shape."""

    def lmo(self, d):
        place = jnp.argmax(jnp.abs(d))
        return jnp.zeros_like(d).at[place].set(-jnp.where(d[place] < 0, -1.0, 1.0))


def test_a_set_with_only_an_oracle():
    disc, like = Disc(), jnp.zeros(2)
    assert disc.diameter == pytest.approx(8**0.5)
    assert disc.radius == pytest.approx(np.hypot(4, 5))
    assert disc.nonnegative(like)
    assert vector(disc.bounds()[0]) == pytest.approx([2, 3])
    assert disc.contains(jnp.array([3.0, 4.0]))
    assert disc.contains(jnp.array([3.0, 4.99]), 1e-4)
    assert not disc.contains(jnp.array([3.0, 5.01]))
    assert not disc.contains(jnp.array([jnp.nan, 4.0]))
    with pytest.raises(NotImplementedError, match="Disc has no projection"):
        disc.project(like)


@in_dtypes
def test_membership_by_the_oracle(dtype):
    """Vertices, points inside, on an edge and on a large face are members; points beyond are not."""
    with precision(dtype):
        cross = Cross()
        contains = jax.jit(cross.contains)
        random = np.random.default_rng(5)
        weights = random.dirichlet(np.ones(20)) * random.choice([-1, 1], 20)
        edge = np.zeros(20)
        edge[[3, 11]] = 0.25, -0.75
        for x in (np.zeros(20), np.eye(20)[4], edge, 0.5 * weights, weights):
            assert contains(jnp.asarray(x, dtype))
        for x in (1.001 * np.eye(20)[4], 1.001 * edge, 1.001 * weights, np.ones(20)):
            assert not contains(jnp.asarray(x, dtype))
        assert not cross.nonnegative(jnp.zeros(20, dtype))
        with pytest.raises(TypeError, match="Cross does not know its shape"):
            _ = cross.diameter


@pytest.mark.parametrize(
    "make",
    [
        lambda r: sets.L1Ball(r),
        lambda r: sets.L2Ball(r),
        lambda r: sets.LInfBall(r),
        lambda r: sets.Simplex(r),
        lambda r: sets.SubSimplex(r),
        lambda r: sets.Box(-r, r),
        lambda r: sets.Knapsack(np.ones(3), r, r),
        lambda r: sets.Product([sets.Scaled(sets.L1Ball(r), r)]),
        lambda r: sets.Shifted(sets.L1Ball(r), r),
    ],
)
def test_a_new_radius_does_not_recompile(make):
    traces = 0

    @jax.jit
    def through(constraint, d):
        nonlocal traces
        traces += 1
        return constraint.lmo(d), constraint.contains(d), constraint.project(d), constraint.start(d)

    d = -jnp.arange(3.0)
    d = [d] if isinstance(make(1.0), sets.Product) else d
    results = [vector(through(make(r), d)[0]) for r in (1.0, 2.0, 3.5)]
    assert traces == 1
    assert not np.array_equal(results[0], results[1])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sets.L1Ball(-1), ValueError, "L1Ball: radius must be positive, got -1"),
        (lambda: sets.L2Ball(float("nan")), ValueError, "L2Ball: radius must be finite, without NaN or infinity"),
        (lambda: sets.LInfBall(float("inf")), ValueError, "LInfBall: radius must be finite"),
        (lambda: sets.L1Ball("3"), TypeError, "L1Ball: radius must hold real numbers, got '3'"),
        (lambda: sets.L1Ball(1j), TypeError, "L1Ball: radius must hold real numbers"),
        (lambda: sets.L1Ball([1, 2]), ValueError, "L1Ball: radius must be one number"),
        (lambda: sets.L1Ball(1, shape=0), ValueError, "L1Ball: shape must be a positive integer or a tuple"),
        (lambda: sets.L1Ball(1, shape=2.5), ValueError, "L1Ball: shape must be"),
        (lambda: sets.Simplex(0), ValueError, "Simplex: total must be positive"),
        (lambda: sets.SubSimplex(None), TypeError, "SubSimplex: total must hold real numbers"),
        (lambda: sets.Box(1, 0), ValueError, "Box: lower must not exceed upper"),
        (lambda: sets.Box([0, 0, 0], [1, 1]), ValueError, "Box: lower, upper and shape must match"),
        (lambda: sets.Box([0, 0], 1, shape=3), ValueError, "Box: lower, upper and shape must match"),
        (lambda: sets.Box({"a": 0}, {"b": 1}), ValueError, "Box: lower, upper and shape must match"),
        (lambda: sets.Box(0, np.inf), ValueError, "Box: upper must be finite"),
        (lambda: sets.Box("a", 1), TypeError, "Box: lower must hold real numbers"),
        (lambda: sets.Box([], []), ValueError, "Box: lower is empty"),
        (lambda: sets.Knapsack([-1, 1], 1), ValueError, "Knapsack: costs must not be negative"),
        (lambda: sets.Knapsack([1, 1], 0), ValueError, "Knapsack: budget must be positive"),
        (lambda: sets.Knapsack([1, 1], 1, [1, 2, 3]), ValueError, "Knapsack: upper must be a number or have the shape"),
        (lambda: sets.Knapsack(1, 1), ValueError, "Knapsack: costs must be an array"),
        (lambda: sets.Knapsack([1, np.nan], 1), ValueError, "Knapsack: costs must be finite"),
        (lambda: sets.Product([]), ValueError, "Product: the tree of sets is empty"),
        (lambda: sets.Product([1.0]), TypeError, "Product: every leaf of the tree must be a set, got 1.0"),
        (lambda: sets.Shifted(1.0, 1.0), TypeError, "Shifted: set must be a set"),
        (lambda: sets.Shifted(sets.Simplex(), "a"), TypeError, "Shifted: offset must hold real numbers"),
        (lambda: sets.Scaled(sets.Simplex(), -1), ValueError, "Scaled: factor must be positive"),
        (lambda: sets.L1Ball(1, 3).lmo(jnp.ones(4)), ValueError, r"L1Ball has shape \(3,\), got \(4,\)"),
        (lambda: sets.Knapsack(np.ones(3), 1).lmo(jnp.ones(4)), ValueError, r"Knapsack has shape \(3,\), got \(4,\)"),
        (lambda: sets.Box(np.zeros(3), 1).lmo(jnp.ones(4)), ValueError, r"Box: lower has shape \(3,\), x has \(4,\)"),
        (lambda: sets.Shifted(sets.Simplex(), np.ones(3)).lmo(jnp.ones(4)), ValueError, "Shifted: offset has shape"),
    ],
)
def test_bad_arguments_get_a_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
