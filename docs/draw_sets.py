"""Draws docs/sets/*.png from the code itself: the boundary of P(K) is traced by P lmo(Pᵀu) over unit vectors u.

    python docs/draw_sets.py [set …]

P maps x to the plane. A set of three or more dimensions is first mapped to space; where the oracle then answers with a
few vertices only, the edges of their hull are drawn as well. The dot is lmo(d), the arrow points along −d.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from scipy.spatial import ConvexHull

from onesfw import sets, trees
from onesfw.submodular import UniformMatroid

mpl.use("Agg")
import matplotlib.pyplot as plt

# The colours of src/onesfw/pictures.mplstyle on a transparent ground: readable on light and on dark pages.
FILL, LINE, MARK, FAINT = ("#2A7FC9", 0.2), "#2A7FC9", "#D1603D", "#767C85"
PLANE = np.eye(2)
# Space seen from above and the right: rows are the picture's axes, columns the images of e_1, e_2, e_3.
VIEW = np.array([[-0.80, 0.92, 0.10], [-0.42, -0.28, 0.95]])
SYMMETRIC = np.array([[1, 0, 0, -1], [0, 1, 1, 0]]) / 2**0.5  # (X11 − X22, X12 + X21)/√2
CORNER = np.array([[1, 0, 0, 0], [0, 0.5**0.5, 0.5**0.5, 0]])  # (X11, (X12 + X21)/√2)
angles = 2 * np.pi * np.arange(3) / 3
CIRCULANT = np.stack([np.cos(angles), np.sin(angles)]) @ np.kron([1.0, 0.35, -0.2], np.eye(3))

PICTURES: dict[str, tuple[sets.ConvexSet, Any, np.ndarray, np.ndarray | None]] = {
    "L1Ball": (sets.L1Ball(1.0), (2,), PLANE, None),
    "L2Ball": (sets.L2Ball(1.0), (2,), PLANE, None),
    "LInfBall": (sets.LInfBall(0.9), (2,), PLANE, None),
    "LpBall": (sets.LpBall(3.0, 1.0), (2,), PLANE, None),
    "KSparse": (sets.KSparse(2, 1.0), (3,), VIEW, np.eye(3)),
    "GroupBall": (sets.GroupBall([0, 0, 1], 1.2), (3,), VIEW, np.eye(3)),
    "Simplex": (sets.Simplex(), (3,), VIEW, np.eye(3)),
    "SubSimplex": (sets.SubSimplex(), (3,), VIEW, np.eye(3)),
    "Box": (sets.Box([-0.9, -0.4], [0.7, 0.8]), (2,), PLANE, None),
    "Knapsack": (sets.Knapsack([1.0, 2.0, 1.5], 2.2), (3,), VIEW, np.eye(3)),
    "NuclearBall": (sets.NuclearBall(1.0), (2, 2), CORNER, None),
    "SpectralBall": (sets.SpectralBall(0.8), (2, 2), CORNER, None),
    "Spectrahedron": (sets.Spectrahedron(), (2, 2), SYMMETRIC, None),
    "Birkhoff": (sets.Birkhoff(3), (3, 3), CIRCULANT, None),
    "Permutahedron": (
        sets.Permutahedron([0.0, 1.0, 2.0, 3.0]),
        (4,),
        VIEW,
        np.array([[1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2,
    ),
    "MatroidPolytope": (
        sets.MatroidPolytope(UniformMatroid(4, 2)),
        (4,),
        VIEW,
        np.array([[1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2,
    ),
    "Polytope": (sets.Polytope([[1, 1], [-1, 2], [1, -3], [-2, -1]], [1, 1.4, 1.6, 1.5]), (2,), PLANE, None),
    "VertexHull": (sets.VertexHull([[-1, 0.1], [-0.4, 0.9], [0.6, 0.7], [1, -0.3], [0.1, -0.9]]), (2,), PLANE, None),
    "Product": (sets.Product([sets.L2Ball(0.8), sets.Box(-0.7, 0.7)]), [(2,), (1,)], VIEW, np.eye(3)),
    "Power": (sets.Power(sets.Box([-0.9], [0.6]), 3), (3, 1), VIEW, np.eye(3)),
    "Shifted": (sets.Shifted(sets.L1Ball(0.8), [0.7, 0.4]), (2,), PLANE, None),
    "Scaled": (sets.Scaled(sets.Knapsack([1.0, 2.0], 1.0, [0.7, 0.4]), 1.6), (2,), PLANE, None),
}
BEHIND = {"Shifted": sets.L1Ball(0.8), "Scaled": sets.Knapsack([1.0, 2.0], 1.0, [0.7, 0.4])}
oracle = eqx.filter_jit(lambda constraint, d: constraint.lmo(d))


def vertices(constraint: sets.ConvexSet, shapes: Any, directions: np.ndarray) -> np.ndarray:
    """lmo(d) for every row of directions, as rows."""
    zeros = [jnp.zeros(s) for s in shapes] if isinstance(shapes, list) else jnp.zeros(shapes)
    unravel = trees.ravel(zeros)[1]
    return np.stack([trees.ravel(oracle(constraint, unravel(jnp.asarray(d, jnp.float32))))[0] for d in directions])


def outline(constraint: sets.ConvexSet, shapes: Any, to_plane: np.ndarray) -> np.ndarray:
    """The boundary of the set's image, in the order of the angle."""
    turn = np.linspace(0, 2 * np.pi, 181)
    return vertices(constraint, shapes, np.stack([np.cos(turn), np.sin(turn)], 1) @ to_plane) @ to_plane.T


def edges(points: np.ndarray) -> list[tuple[int, int]]:
    """The edges of a polytope in space: sides shared by two faces that are not coplanar."""
    hull = ConvexHull(points)
    sides: dict[tuple[int, int], list[np.ndarray]] = {}
    for simplex, equation in zip(hull.simplices, hull.equations, strict=True):
        for i in range(3):
            pair = tuple(sorted((int(simplex[i]), int(simplex[i - 1]))))
            sides.setdefault((pair[0], pair[1]), []).append(equation[:3])
    return [pair for pair, normals in sides.items() if normals[0] @ normals[-1] < 1 - 1e-4]


def draw(name: str, folder: Path) -> None:
    constraint, shapes, view, to_space = PICTURES[name]
    to_plane = view if to_space is None else view @ to_space
    figure, axes = plt.subplots(figsize=(1.7, 1.7))
    boundary = outline(constraint, shapes, to_plane)
    centre, size = (boundary.max(0) + boundary.min(0)) / 2, 0.5 * np.ptp(boundary, axis=0).max()

    axes_ends = np.eye(2) if to_space is None else (view.T if to_space.shape[1] == 3 else np.zeros((0, 2)))
    for end in axes_ends:
        reach = 1.25 * size * end / max(1.0, np.abs(axes_ends).max())
        axes.plot([-reach[0], reach[0]], [-reach[1], reach[1]], color=FAINT, lw=0.5, zorder=0)
    if name in BEHIND:
        axes.plot(*outline(BEHIND[name], shapes, to_plane).T, color=FAINT, lw=1.0, ls=":", zorder=3)
    axes.fill(*boundary.T, facecolor=FILL, edgecolor=LINE, lw=1.3, zorder=1, joinstyle="round")
    if to_space is not None:
        sphere = np.random.default_rng(0).normal(size=(300, 3))
        found = vertices(constraint, shapes, sphere @ to_space) @ to_space.T
        corners = np.unique(found.round(4), axis=0)
        if 4 <= len(corners) <= 40:
            for i, j in edges(corners):
                axes.plot(*(corners[[i, j]] @ view.T).T, color=LINE, lw=0.7, zorder=2)

    towards = np.array([0.45, 0.9]) if to_space is None else np.array([0.85, 0.5])
    towards = towards / np.linalg.norm(towards)
    vertex = (vertices(constraint, shapes, [-towards @ to_plane]) @ to_plane.T)[0]
    arrow = {"arrowstyle": "-|>", "color": MARK, "lw": 0.9, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 7}
    axes.annotate("", centre + 0.5 * size * towards, centre, arrowprops=arrow, zorder=4)
    axes.plot(*vertex, "o", color=MARK, ms=4.5, zorder=5)
    axes.set_xlim(centre[0] - 1.2 * size, centre[0] + 1.2 * size)
    axes.set_ylim(centre[1] - 1.2 * size, centre[1] + 1.2 * size)
    axes.set_aspect("equal")
    axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    figure.savefig(folder / f"{name}.png", dpi=100, transparent=True, metadata={"Software": None})
    plt.close(figure)


def main(names: list[str]) -> None:
    for name in names or PICTURES:
        draw(name, Path(__file__).parent / "sets")


if __name__ == "__main__":
    main(sys.argv[1:])
