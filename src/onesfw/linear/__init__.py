"""Linear models under a norm constraint: each step costs the row's nonzeros, whatever the number of columns.

`train` and `predict` work on files, pipes and streams of blocks; `radius_path` helps to choose the radius; the
estimators of `onesfw.sklearn` are made of the same parts.
"""

from onesfw.data.data_warning import DataWarning
from onesfw.linear.column_selection import select_columns
from onesfw.linear.constraints import CONSTRAINTS
from onesfw.linear.examples import Examples, examples
from onesfw.linear.learner import DEFAULT_SCHEDULE, SCHEDULES, Evaluation, Learner, Settings, Start, evaluate
from onesfw.linear.losses import LOSSES, Loss
from onesfw.linear.model import LinearModel, Training
from onesfw.linear.path import RadiusPath, radius_path
from onesfw.linear.prediction import Predictions, predict
from onesfw.linear.scores import Scores
from onesfw.linear.stability import Stability, stability_selection
from onesfw.linear.streaming import train

__all__ = [
    "CONSTRAINTS",
    "DEFAULT_SCHEDULE",
    "LOSSES",
    "SCHEDULES",
    "DataWarning",
    "Evaluation",
    "Examples",
    "Learner",
    "LinearModel",
    "Loss",
    "Predictions",
    "RadiusPath",
    "Scores",
    "Settings",
    "Stability",
    "Start",
    "Training",
    "evaluate",
    "examples",
    "predict",
    "radius_path",
    "select_columns",
    "stability_selection",
    "train",
]
