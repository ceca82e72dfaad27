"""Set functions, their multilinear extension, matroids, rounding and greedy baselines: pick k of n things."""

from onesfw.submodular.base import Estimate, Function, enumerate_extension
from onesfw.submodular.contention import contention_resolution
from onesfw.submodular.coverage import Coverage
from onesfw.submodular.custom import SetFunction, check_submodular
from onesfw.submodular.extension import MultilinearExtension
from onesfw.submodular.facility import FacilityLocation
from onesfw.submodular.features import FeatureBased
from onesfw.submodular.from_files import select_nodes, select_rows
from onesfw.submodular.greedy import GreedyResult, greedy
from onesfw.submodular.influence import Influence
from onesfw.submodular.logdet import LogDet
from onesfw.submodular.matroids import LaminarMatroid, Matroid, PartitionMatroid, UniformMatroid
from onesfw.submodular.oracle_matroids import (
    GraphicMatroid,
    LinearMatroid,
    OracleMatroid,
    TransversalMatroid,
    TruncatedMatroid,
)
from onesfw.submodular.rounding import SwapRounding, decompose, deterministic_pipage, pipage, swap_round
from onesfw.submodular.selection import Selection

__all__ = [
    "Coverage",
    "Estimate",
    "FacilityLocation",
    "FeatureBased",
    "Function",
    "GraphicMatroid",
    "GreedyResult",
    "Influence",
    "LaminarMatroid",
    "LinearMatroid",
    "LogDet",
    "Matroid",
    "MultilinearExtension",
    "OracleMatroid",
    "PartitionMatroid",
    "Selection",
    "SetFunction",
    "SwapRounding",
    "TransversalMatroid",
    "TruncatedMatroid",
    "UniformMatroid",
    "check_submodular",
    "contention_resolution",
    "decompose",
    "deterministic_pipage",
    "enumerate_extension",
    "greedy",
    "pipage",
    "select_nodes",
    "select_rows",
    "swap_round",
]
