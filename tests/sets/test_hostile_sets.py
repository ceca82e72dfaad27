"""Sets, whatever comes in: a sentence that names it, or a finite answer inside the set."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import BALL, JUNK, anything, documented, few, finite, minimize, sound
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from onesfw import sets
from onesfw.engine.programs import compilations
from onesfw.sets.base import known

MATRIX = np.ones((2, 3))
CONSTRUCTORS = {
    **{
        f"{name} {what}": (name, build)
        for name in ("L1Ball", "L2Ball", "LInfBall", "Simplex", "SubSimplex", "NuclearBall", "SpectralBall",
                     "Spectrahedron")
        for what, build in (
            ("size", lambda v, name=name: getattr(sets, name)(v, shape=2)),
            ("shape", lambda v, name=name: getattr(sets, name)(1.0, shape=v)),
        )
    },
    "LpBall p": ("LpBall", lambda v: sets.LpBall(v, 1.0, shape=2)),
    "LpBall radius": ("LpBall", lambda v: sets.LpBall(3, v, shape=2)),
    "KSparse k": ("KSparse", lambda v: sets.KSparse(v, 1.0, shape=2)),
    "KSparse bound": ("KSparse", lambda v: sets.KSparse(1, v, shape=2)),
    "GroupBall groups": ("GroupBall", lambda v: sets.GroupBall(v, 1.0)),
    "GroupBall radius": ("GroupBall", lambda v: sets.GroupBall([0, 1], v)),
    "GroupBall norm": ("GroupBall", lambda v: sets.GroupBall([0, 1], 1.0, v)),
    "GroupBall shape": ("GroupBall", lambda v: sets.GroupBall([0, 1], 1.0, shape=v)),
    "Box lower": ("Box", lambda v: sets.Box(v, 1.0)),
    "Box upper": ("Box", lambda v: sets.Box(0, v)),
    "Box shape": ("Box", lambda v: sets.Box(0, 1, v)),
    "Box tree": ("Box", lambda v: sets.Box({"a": 0.0, "b": np.zeros(2)}, v)),
    "Box tree shape": ("Box", lambda v: sets.Box({"a": 0.0, "b": np.zeros(2)}, 1.0, shape=v)),
    "Knapsack costs": ("Knapsack", lambda v: sets.Knapsack(v, 1.0)),
    "Knapsack budget": ("Knapsack", lambda v: sets.Knapsack([1.0, 2.0], v)),
    "Knapsack upper": ("Knapsack", lambda v: sets.Knapsack([1.0, 2.0], 1.0, v)),
    "Birkhoff": ("Birkhoff", lambda v: sets.Birkhoff(v)),
    "Permutahedron": ("Permutahedron", lambda v: sets.Permutahedron(v)),
    "VertexHull": ("VertexHull", lambda v: sets.VertexHull(v)),
    "Polytope A_ub": ("Polytope", lambda v: sets.Polytope(v, [1.0, 1.0], bounds=(0, 1))),
    "Polytope b_ub": ("Polytope", lambda v: sets.Polytope(MATRIX, v, bounds=(0, 1))),
    "Polytope A_eq": ("Polytope", lambda v: sets.Polytope(A_eq=v, b_eq=[1.0, 1.0], bounds=(0, 1))),
    "Polytope b_eq": ("Polytope", lambda v: sets.Polytope(A_eq=MATRIX, b_eq=v, bounds=(0, 1))),
    "Polytope bounds": ("Polytope", lambda v: sets.Polytope(MATRIX, [1.0, 1.0], bounds=v)),
    "Polytope bounds alone": ("Polytope", lambda v: sets.Polytope(bounds=v)),
    "Product": ("Product", lambda v: sets.Product(v)),
    "Product part": ("Product", lambda v: sets.Product({"a": BALL, "b": v})),
    "Power set": ("Power", lambda v: sets.Power(v, 2)),
    "Power n": ("Power", lambda v: sets.Power(BALL, v)),
    "Shifted set": ("Shifted", lambda v: sets.Shifted(v, 1.0)),
    "Shifted offset": ("Shifted", lambda v: sets.Shifted(BALL, v)),
    "Scaled set": ("Scaled", lambda v: sets.Scaled(v, 1.0)),
    "Scaled factor": ("Scaled", lambda v: sets.Scaled(BALL, v)),
    "NuclearBall accuracy": ("NuclearBall", lambda v: sets.NuclearBall(1.0, 2, v)),
}  # fmt: skip


@few
@given(name=st.sampled_from(sorted(CONSTRUCTORS)), value=anything)
def test_constructors_of_sets_at_random(name, value):
    owner, build = CONSTRUCTORS[name]
    documented(lambda: build(value), owner)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructors_of_sets(name):
    owner, build = CONSTRUCTORS[name]
    for value in JUNK:
        documented(lambda value=value: build(value), owner)


def every_set(r):
    """Each set with a size of r; x has three coordinates, or is a matrix."""
    return {
        "L1Ball": sets.L1Ball(r, 3),
        "L2Ball": sets.L2Ball(r, 3),
        "LInfBall": sets.LInfBall(r, 3),
        "LpBall": sets.LpBall(3, r, 3),
        "LpBall, p near 1": sets.LpBall(1.0001, r, 3),
        "LpBall, large p": sets.LpBall(1e30, r, 3),
        "Simplex": sets.Simplex(r, 3),
        "SubSimplex": sets.SubSimplex(r, 3),
        "Box": sets.Box(-r, r, 3),
        "Box off the origin": sets.Box([r, -r, 0.0], [2 * r, r, r]),
        "Knapsack": sets.Knapsack([1.0, 2.0, 0.0], r, upper=r),
        "KSparse": sets.KSparse(10**30, r, 3),
        "GroupBall": sets.GroupBall([0, 0, 10**12], r),
        "GroupBall, linf": sets.GroupBall([7, 7, 1], r, "linf"),
        "Permutahedron": sets.Permutahedron([r, 2 * r, 0.0]),
        "VertexHull": sets.VertexHull(np.array([[r, 0, 0], [0, r, 0], [0, 0, -r]])),
        "Power": sets.Power(sets.Simplex(r, 3), 2),
        "Shifted": sets.Shifted(sets.L2Ball(1.0, 3), r),
        "Scaled": sets.Scaled(sets.Simplex(1.0, 3), r),
        "NuclearBall": sets.NuclearBall(r, (3, 2)),
        "SpectralBall": sets.SpectralBall(r, (3, 2)),
        "Spectrahedron": sets.Spectrahedron(r, 3),
    }


SIZES = (1e-300, 1e-45, 1e-30, 1.0, 1e18, 1e30)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", every_set(1.0))
def test_oracles_in_every_size(name, dtype):
    """Tiny and huge sets and directions: the start and every vertex are finite and inside."""
    with jax.enable_x64(dtype == np.float64):
        slow = name == "VertexHull"  # membership by a loop that is compiled at every call
        for size in (1e30,) if slow else SIZES:
            constraint = every_set(size)[name]
            (leaf,) = jax.tree.leaves(known(constraint, None))
            like = jax.ShapeDtypeStruct(leaf.shape, dtype)
            assert bool(constraint.contains(constraint.start(like), 1e-5)), (size, "start")
            pattern = np.resize([1.0, -1.0, 0.25, 0.0], leaf.shape)
            for slope in (1e37,) if slow else (0.0, 1e-45, 1e-30, 1.0, 1e37):
                vertex = constraint.lmo(jnp.asarray(slope * pattern, dtype))
                assert finite(vertex), (size, slope)
                assert slow or bool(constraint.contains(vertex, 1e-5)), (size, slope)


def test_a_norm_does_not_overflow():
    ball, far = sets.L2Ball(1e30, 3), jnp.asarray([3e30, 0.0, 4e30], jnp.float32)
    assert bool(ball.contains(jnp.full(3, 5e29)))
    assert not bool(ball.contains(far))
    np.testing.assert_allclose(ball.project(far), [0.6e30, 0.0, 0.8e30], rtol=1e-6)
    np.testing.assert_array_equal(sets.L2Ball(1e-300, 3).project(jnp.zeros(3)), np.zeros(3))


def test_group_numbers_are_names():
    """Large numbers of groups cost nothing, and gaps between them mean nothing."""
    d = jnp.asarray([1.0, -2.0, 0.5, 3.0])
    np.testing.assert_array_equal(
        sets.GroupBall([5, 5, 2**40, 2**40], 1.0).lmo(d), sets.GroupBall([0, 0, 1, 1], 1.0).lmo(d)
    )


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: sets.L2Ball(1.0, shape=2**40), "L2Ball: shape must have at most"),
        (lambda: sets.Birkhoff(10**6), "Birkhoff: n must be at most"),
        (lambda: sets.Polytope(bounds=[(0, 1e25)]), "Polytope: bounds must stay below 1e"),
        (lambda: sets.Polytope([[1.0]], [1e25], bounds=(0, 1)), "Polytope: b_ub must stay below 1e"),
        (lambda: sets.Permutahedron(np.ma.array([1.0, 2.0], mask=[0, 1])), "weights has masked entries"),
        (lambda: sets.Box({"a": 0.0}, 1.0, shape=3), "Box: shape goes with bounds that are numbers"),
    ],
)
def test_sets_refuse(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_oracles_on_the_host_compute_in_float64():
    """A callback may come from a thread in which 64-bit numbers are off: nothing may be rounded there."""
    polytope = sets.Polytope([[1.0, 1.0, 1.0]], [1.0 + 1e-12], bounds=(0, 1))
    birkhoff = sets.Birkhoff(3)
    near = np.full((3, 3), 1.0) - 1e-10 * np.eye(3)[[1, 2, 0]]  # in float32 all permutations cost the same
    with jax.enable_x64(True):
        vertex = eqx.filter_jit(polytope.lmo)(jnp.asarray([-1.0, -1.0, -1.0]))
        assert float(jnp.sum(vertex)) == pytest.approx(1.0 + 1e-12, abs=1e-15)
        for _ in range(5):
            np.testing.assert_array_equal(eqx.filter_jit(birkhoff.lmo)(jnp.asarray(near)), np.eye(3)[[1, 2, 0]])
    for trial in range(4):
        result = minimize(constraint=polytope, x0=np.zeros(3), steps=20, key=trial)
        sound(result, polytope)
        assert result.x.dtype == np.float64
    before = compilations()
    minimize(constraint=sets.Polytope([[1.0, 2.0, 1.0]], [2.0], bounds=(0, 1)), x0=np.zeros(3), steps=7)
    assert compilations() == before


def test_what_goes_to_the_host_travels_in_small_pieces():
    """JAX hands larger copies to a thread of its pool; on one core it is the one that runs the callback."""
    rng = np.random.default_rng(0)
    normals, d = rng.standard_normal((90, 300)), rng.standard_normal(300)
    assert normals.nbytes > 2 * 10**5
    polytope = sets.Polytope(normals, np.ones(90), bounds=(-1, 1))
    for wide in (False, True):
        with jax.enable_x64(wide):
            traced = jax.make_jaxpr(polytope.lmo)(jnp.asarray(d))
            (call,) = (eqn for eqn in traced.eqns if eqn.primitive.name == "pure_callback")
            assert max(v.aval.size * v.aval.dtype.itemsize for v in call.invars) <= 10**5
            found = polytope.lmo(jnp.asarray(d))
        best = linprog(d, normals, np.ones(90), bounds=(-1, 1)).fun
        assert float(np.asarray(found, float) @ d) == pytest.approx(best, rel=1e-9 if wide else 1e-4)
