"""onesfw: constrained stochastic optimisation from one sample per iteration, without projections."""

from onesfw import sets, submodular, theory, zoo
from onesfw.algorithms import Algorithm, frank_wolfe, minibatch_sfw, momentum_sfw, one_sfw, spider_fw
from onesfw.objectives import Expectation, FiniteSum, NonOblivious
from onesfw.result import Result, Trace
from onesfw.solve import maximize, minimize
from onesfw.status import Status
from onesfw.submodular.extension import MultilinearExtension

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "Expectation",
    "FiniteSum",
    "MultilinearExtension",
    "NonOblivious",
    "Result",
    "Status",
    "Trace",
    "frank_wolfe",
    "maximize",
    "minibatch_sfw",
    "minimize",
    "momentum_sfw",
    "one_sfw",
    "sets",
    "spider_fw",
    "submodular",
    "theory",
    "zoo",
]
