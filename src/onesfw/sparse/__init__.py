"""Sparse linear models under a norm constraint: each step costs the row's nonzeros, whatever the number of columns."""

from onesfw.sparse.constraints import CONSTRAINTS
from onesfw.sparse.evaluation import Evaluation, evaluate
from onesfw.sparse.examples import Examples, examples
from onesfw.sparse.learner import Learner, Settings
from onesfw.sparse.losses import LOSSES
from onesfw.sparse.schedules import DEFAULT_SCHEDULE, SCHEDULES

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
