"""Sparse linear models under a norm constraint: each step costs the row's nonzeros, whatever the number of columns."""

from onesfw.linear.constraints import CONSTRAINTS
from onesfw.linear.examples import Examples, examples
from onesfw.linear.gap import Evaluation, evaluate
from onesfw.linear.learner import Learner, Settings
from onesfw.linear.losses import LOSSES
from onesfw.linear.presets import DEFAULT_SCHEDULE, SCHEDULES

__all__ = [
    "CONSTRAINTS",
    "DEFAULT_SCHEDULE",
    "LOSSES",
    "SCHEDULES",
    "Evaluation",
    "Examples",
    "Learner",
    "Settings",
    "evaluate",
    "examples",
]
