"""Recipes: an estimator, a step and schedules, joined under a paper's name."""

from __future__ import annotations

from collections.abc import Callable

from onesfw.algorithms.base import (
    CONVEX,
    DR_SUBMODULAR,
    KNOWN_SETTINGS,
    MAXIMISED,
    NONCONVEX,
    NONMONOTONE_DR,
    Algorithm,
)
from onesfw.algorithms.full_gradient import frank_wolfe
from onesfw.algorithms.momentum import MINIBATCH_SCHEDULES, MOMENTUM_SCHEDULES, minibatch_sfw, momentum_sfw
from onesfw.algorithms.one_sample import ADAPTIVE, PRESETS, correction_for, one_sfw
from onesfw.algorithms.one_sample import SCHEDULES as ONE_SFW_SCHEDULES
from onesfw.algorithms.path_integrated import SPIDER_SCHEDULES, spider_fw

ALGORITHMS: dict[str, Callable[..., Algorithm]] = {
    "one_sfw": one_sfw,
    "momentum_sfw": momentum_sfw,
    "minibatch_sfw": minibatch_sfw,
    "spider_fw": spider_fw,
    "frank_wolfe": frank_wolfe,
}
"""Recipes by name; each takes a setting first."""

SETTINGS: dict[str, tuple[str, ...]] = {
    "one_sfw": (CONVEX, NONCONVEX, DR_SUBMODULAR),
    "momentum_sfw": (CONVEX, DR_SUBMODULAR),
    "minibatch_sfw": (CONVEX, NONCONVEX),
    "spider_fw": (CONVEX, NONCONVEX),
    "frank_wolfe": (CONVEX, NONCONVEX, DR_SUBMODULAR),
}
"""The settings that each recipe serves."""

SCHEDULES: dict[str, tuple[str, ...]] = {
    "one_sfw": tuple(ONE_SFW_SCHEDULES),
    "momentum_sfw": tuple(MOMENTUM_SCHEDULES),
    "minibatch_sfw": tuple(MINIBATCH_SCHEDULES),
    "spider_fw": tuple(SPIDER_SCHEDULES),
}
"""The names that `schedule=` takes, for recipes that have it: the step rules of the convex setting."""

__all__ = [
    "ADAPTIVE",
    "ALGORITHMS",
    "CONVEX",
    "DR_SUBMODULAR",
    "KNOWN_SETTINGS",
    "MAXIMISED",
    "NONCONVEX",
    "NONMONOTONE_DR",
    "PRESETS",
    "SCHEDULES",
    "SETTINGS",
    "Algorithm",
    "correction_for",
    "frank_wolfe",
    "minibatch_sfw",
    "momentum_sfw",
    "one_sfw",
    "spider_fw",
]
