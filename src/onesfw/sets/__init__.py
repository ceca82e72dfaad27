"""Compact convex sets K, each known through `lmo(d)` = argmin over v in K of ⟨d, v⟩."""

from onesfw.sets.balls import L1Ball, L2Ball, LInfBall
from onesfw.sets.base import ConvexSet, VectorSet
from onesfw.sets.boxes import Box, Knapsack
from onesfw.sets.combinators import Product, Scaled, Shifted
from onesfw.sets.simplices import Simplex, SubSimplex

__all__ = [
    "Box",
    "ConvexSet",
    "Knapsack",
    "L1Ball",
    "L2Ball",
    "LInfBall",
    "Product",
    "Scaled",
    "Shifted",
    "Simplex",
    "SubSimplex",
    "VectorSet",
]
