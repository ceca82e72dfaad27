"""Set functions, their multilinear extension, matroids, rounding and greedy baselines: pick k of n things."""

from onesfw.submodular.base import Estimate, Function, enumerate_extension
from onesfw.submodular.coverage import Coverage
from onesfw.submodular.custom import SetFunction, check_submodular
from onesfw.submodular.extension import MultilinearExtension
from onesfw.submodular.facility import FacilityLocation
from onesfw.submodular.features import FeatureBased
from onesfw.submodular.influence import Influence
from onesfw.submodular.logdet import LogDet

__all__ = [
    "Coverage",
    "Estimate",
    "FacilityLocation",
    "FeatureBased",
    "Function",
    "Influence",
    "LogDet",
    "MultilinearExtension",
    "SetFunction",
    "check_submodular",
    "enumerate_extension",
]
