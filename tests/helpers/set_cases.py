"""The table of sets: each with the shapes of its members and its least value in a direction by other means.

Every set that `onesfw.sets` exports has a case here; `tests/test_completeness.py` fails when one has none.
"""

from __future__ import annotations

import itertools

import numpy as np
from matroid_checks import MATROIDS, N, bases, indicator
from set_checks import Case, over_lp, over_vertices

from onesfw import sets
from onesfw import submodular as sm

rng = np.random.default_rng(7)
LOWER, UPPER = -rng.random(6), rng.random(6)
COSTS = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 1.0])
CAPS = np.array([1.0, 0.5, 2.0, 1.0, 1.0, 0.0])
OFFSET = rng.normal(size=6)
signs = np.array(list(itertools.product([-1.0, 1.0], repeat=6)))
eye = np.eye(6)
knapsack = over_lp(A_ub=[COSTS], b_ub=[2.2], bounds=list(zip(np.zeros(6), CAPS, strict=True)))
nested = sets.Product({"a": sets.Simplex(2.0, 3), "b": [sets.L2Ball(1.5, (2, 2)), sets.Box(-1.0, 2.0, ())]})


def rows_least(n, least):
    """The sum over the n rows of d of min ⟨d_i, v⟩ over K."""
    return lambda d: sum(least(row) for row in d.reshape(n, -1))


def nested_least(d):
    return 2 * d[:3].min() - 1.5 * np.linalg.norm(d[3:7]) + min(-d[7], 2 * d[7])


other = np.random.default_rng(11)
GROUPS = np.array([0, 3, 0, 3, 3, 6, 0])  # groups 1, 2, 4 and 5 are empty
WEIGHTS = np.array([3.0, -1.0, 0.5, 0.5, 2.0])
POINTS = other.normal(size=(9, 4))
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
    Case("Power", sets.Power(sets.L1Ball(0.5, 3), 2), (2, 3), rows_least(2, lambda d: -0.5 * np.abs(d).max())),
    Case(
        "Power floor",
        sets.Power(sets.Shifted(sets.Simplex(0.4, 3), 0.2), 4),
        (4, 3),
        rows_least(4, lambda d: 0.4 * d.min() + 0.2 * d.sum()),
        exact_radius=False,
        nonnegative=True,
    ),
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
POLYTOPES = [
    Case(
        name,
        sets.MatroidPolytope(matroid),
        (N,),
        over_vertices([indicator(b) for b in bases(matroid)]),
        exact_diameter=name in ("uniform", "whole", "oracle"),
        projects=isinstance(matroid, sm.UniformMatroid | sm.PartitionMatroid),
        nonnegative=True,
    )
    for name, matroid in MATROIDS.items()
]
CASES = [*SMALL, *LARGE, *POLYTOPES]
