"""onesfw: constrained stochastic optimisation from one sample per iteration, without projections."""

from importlib import import_module
from typing import Any

from onesfw import sets, submodular, theory, zoo
from onesfw.algorithms import (
    Algorithm,
    frank_wolfe,
    minibatch_sfw,
    momentum_sfw,
    normalized_fw,
    one_sfw,
    online_fw,
    projected_sgd,
    saga_fw,
    scg_plus_plus,
    spider_fw,
    storc,
    storm,
    svfw,
    svrf,
)
from onesfw.objectives import Expectation, FiniteSum, NonOblivious
from onesfw.result import Result, Trace
from onesfw.solve import maximize, minimize
from onesfw.status import Status
from onesfw.submodular.extension import MultilinearExtension
from onesfw.submodular.select import Selection, select

__version__ = "0.1.0"

LAZY = {"radius_path": "onesfw.sparse.path"}  # what needs numba loads it when it is asked for


def __getattr__(name: str) -> Any:
    """The public names that are imported late."""
    if name not in LAZY:
        raise AttributeError(f"module 'onesfw' has no attribute {name!r}")
    return getattr(import_module(LAZY[name]), name)


__all__ = [
    "Algorithm",
    "Expectation",
    "FiniteSum",
    "MultilinearExtension",
    "NonOblivious",
    "Result",
    "Selection",
    "Status",
    "Trace",
    "frank_wolfe",
    "maximize",
    "minibatch_sfw",
    "minimize",
    "momentum_sfw",
    "normalized_fw",
    "one_sfw",
    "online_fw",
    "projected_sgd",
    "radius_path",
    "saga_fw",
    "scg_plus_plus",
    "select",
    "sets",
    "spider_fw",
    "storc",
    "storm",
    "submodular",
    "svfw",
    "svrf",
    "theory",
    "zoo",
]
