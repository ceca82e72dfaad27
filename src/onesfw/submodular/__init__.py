"""Set functions, their multilinear extension, matroids, rounding and greedy baselines: pick k of n things."""

from onesfw.submodular.base import Estimate, Function, enumerate_extension
from onesfw.submodular.coverage import Coverage
from onesfw.submodular.custom import SetFunction, check_submodular
from onesfw.submodular.extension import MultilinearExtension
from onesfw.submodular.facility import FacilityLocation
from onesfw.submodular.features import FeatureBased
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

__all__ = [
    "Coverage",
    "Estimate",
    "FacilityLocation",
    "FeatureBased",
    "Function",
    "GraphicMatroid",
    "Influence",
    "LaminarMatroid",
    "LinearMatroid",
    "LogDet",
    "Matroid",
    "MultilinearExtension",
    "OracleMatroid",
    "PartitionMatroid",
    "SetFunction",
    "TransversalMatroid",
    "TruncatedMatroid",
    "UniformMatroid",
    "check_submodular",
    "enumerate_extension",
]
