"""onesfw: constrained stochastic optimisation from one sample per iteration, without projections."""

from onesfw import sets, theory, zoo
from onesfw.algorithms import Algorithm, frank_wolfe, one_sfw
from onesfw.objectives import Expectation, FiniteSum, NonOblivious
from onesfw.result import Result, Trace
from onesfw.solve import maximize, minimize
from onesfw.status import Status

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "Expectation",
    "FiniteSum",
    "NonOblivious",
    "Result",
    "Status",
    "Trace",
    "frank_wolfe",
    "maximize",
    "minimize",
    "one_sfw",
    "sets",
    "theory",
    "zoo",
]
