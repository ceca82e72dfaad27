"""d_t: how a gradient estimate is kept from one step to the next."""

from onesfw.estimators.base import Estimator, OracleCounts, StepInputs
from onesfw.estimators.batched import Batched
from onesfw.estimators.corrections import (
    AsPrinted,
    Correction,
    Difference,
    Hessian,
    Importance,
    NoChange,
    NoChangeWithScore,
    SameSample,
)
from onesfw.estimators.full_gradient import FullGradient
from onesfw.estimators.one_sample import OneSample
from onesfw.estimators.running_average import RunningAverage
from onesfw.estimators.saga import Saga
from onesfw.estimators.snapshot import Snapshot
from onesfw.estimators.storm import Storm

__all__ = [
    "AsPrinted",
    "Batched",
    "Correction",
    "Difference",
    "Estimator",
    "FullGradient",
    "Hessian",
    "Importance",
    "NoChange",
    "NoChangeWithScore",
    "OneSample",
    "OracleCounts",
    "RunningAverage",
    "Saga",
    "SameSample",
    "Snapshot",
    "StepInputs",
    "Storm",
]
