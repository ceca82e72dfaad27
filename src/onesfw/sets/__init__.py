"""Compact convex sets K, each known through `lmo(d)` = argmin over v in K of ⟨d, v⟩."""

from onesfw.sets.balls import L1Ball, L2Ball, LInfBall, LpBall
from onesfw.sets.base import ConvexSet, VectorSet
from onesfw.sets.boxes import Box, Knapsack
from onesfw.sets.combinators import Power, Product, Scaled, Shifted
from onesfw.sets.matrices import MatrixSet, NuclearBall, Spectrahedron, SpectralBall
from onesfw.sets.matroid_polytope import MatroidPolytope
from onesfw.sets.permutations import Birkhoff, Permutahedron
from onesfw.sets.polytopes import Polytope, VertexHull
from onesfw.sets.simplices import Simplex, SubSimplex
from onesfw.sets.sparsity import GroupBall, KSparse

__all__ = [
    "Birkhoff",
    "Box",
    "ConvexSet",
    "GroupBall",
    "KSparse",
    "Knapsack",
    "L1Ball",
    "L2Ball",
    "LInfBall",
    "LpBall",
    "MatrixSet",
    "MatroidPolytope",
    "NuclearBall",
    "Permutahedron",
    "Polytope",
    "Power",
    "Product",
    "Scaled",
    "Shifted",
    "Simplex",
    "Spectrahedron",
    "SpectralBall",
    "SubSimplex",
    "VectorSet",
    "VertexHull",
]
