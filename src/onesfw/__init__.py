"""onesfw: constrained stochastic optimisation from one sample per iteration, without projections.

Importing the package loads nothing else: a name loads its room when it is first asked for, so that `onesfw --help`
need not wait for JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onesfw import experiments, linear, lowrank, sets, submodular, theory, zoo
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
    from onesfw.engine import rows
    from onesfw.engine.solve import maximize, minimize
    from onesfw.engine.sweeps import sweep
    from onesfw.linear.path import radius_path
    from onesfw.objectives import Expectation, FiniteSum, NonOblivious
    from onesfw.results.result import Result
    from onesfw.results.status import Status
    from onesfw.results.sweep import Sweep
    from onesfw.results.trace import Trace
    from onesfw.submodular.extension import MultilinearExtension
    from onesfw.submodular.select import select
    from onesfw.submodular.selection import Selection

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "Expectation",
    "FiniteSum",
    "MultilinearExtension",
    "NonOblivious",
    "Result",
    "Selection",
    "Status",
    "Sweep",
    "Trace",
    "experiments",
    "frank_wolfe",
    "linear",
    "lowrank",
    "maximize",
    "minibatch_sfw",
    "minimize",
    "momentum_sfw",
    "normalized_fw",
    "one_sfw",
    "online_fw",
    "projected_sgd",
    "radius_path",
    "rows",
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
    "sweep",
    "theory",
    "zoo",
]

_ROOMS = ("experiments", "linear", "lowrank", "sets", "submodular", "theory", "zoo")
_HOMES = {
    "Sweep": "results.sweep",
    "maximize": "engine.solve",
    "minimize": "engine.solve",
    "sweep": "engine.sweeps",
    "radius_path": "linear.path",
    "Expectation": "objectives",
    "FiniteSum": "objectives",
    "NonOblivious": "objectives",
    "Result": "results.result",
    "Status": "results.status",
    "Trace": "results.trace",
    "MultilinearExtension": "submodular.extension",
    "Selection": "submodular.selection",
    "select": "submodular.select",
}


def __getattr__(name: str) -> object:
    """A public name, from the room it lives in; the recipes live in `algorithms`."""
    if name not in __all__:
        raise AttributeError(f"module 'onesfw' has no attribute {name!r}")
    if name == "rows":
        return import_module("onesfw.engine.rows")
    if name in _ROOMS:
        return import_module(f"onesfw.{name}")
    value = getattr(import_module(f"onesfw.{_HOMES.get(name, 'algorithms')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
