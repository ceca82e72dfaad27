"""What sets refuse, in a sentence; sets of sets, and sets that a user writes with nothing but an oracle."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from set_checks import DTYPES, precision, vector

from onesfw import sets

in_dtypes = pytest.mark.parametrize("dtype", DTYPES)


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
