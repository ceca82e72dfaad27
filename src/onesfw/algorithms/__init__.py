"""Recipes: an estimator, a step and schedules, joined under a paper's name."""

from __future__ import annotations

from onesfw.algorithms.base import Algorithm
from onesfw.algorithms.exact import frank_wolfe
from onesfw.algorithms.momentum import (
    MINIBATCH_SCHEDULES,
    MOMENTUM_SCHEDULES,
    MOMENTUM_STEPS,
    minibatch_sfw,
    momentum_sfw,
)
from onesfw.algorithms.online import ONLINE_SCHEDULES, online_fw
from onesfw.algorithms.path_integrated import PATH_ETAS, SPIDER_SCHEDULES, normalized_fw, scg_plus_plus, spider_fw
from onesfw.algorithms.projected import projected_sgd, storm
from onesfw.algorithms.settings import CONVEX, DR_SUBMODULAR, KNOWN_SETTINGS, MAXIMISED, NONCONVEX, NONMONOTONE_DR
from onesfw.algorithms.single_sample import PRESETS, one_sfw
from onesfw.algorithms.single_sample import SCHEDULES as ONE_SFW_SCHEDULES
from onesfw.algorithms.snapshots import SVRF_SCHEDULES, saga_fw, storc, svfw, svrf
from onesfw.trees import Function

ALGORITHMS: dict[str, Function] = {
    "one_sfw": one_sfw,
    "momentum_sfw": momentum_sfw,
    "minibatch_sfw": minibatch_sfw,
    "online_fw": online_fw,
    "spider_fw": spider_fw,
    "scg_plus_plus": scg_plus_plus,
    "normalized_fw": normalized_fw,
    "svrf": svrf,
    "storc": storc,
    "svfw": svfw,
    "saga_fw": saga_fw,
    "projected_sgd": projected_sgd,
    "storm": storm,
    "frank_wolfe": frank_wolfe,
}
"""Recipes by name; each takes a setting first."""

SETTINGS: dict[str, tuple[str, ...]] = {
    "one_sfw": tuple(PRESETS),
    "momentum_sfw": tuple(MOMENTUM_STEPS),
    "minibatch_sfw": (CONVEX, NONCONVEX),
    "online_fw": (CONVEX,),
    "spider_fw": (CONVEX, NONCONVEX),
    "scg_plus_plus": tuple(PATH_ETAS),
    "normalized_fw": (NONCONVEX,),
    "svrf": (CONVEX,),
    "storc": (CONVEX,),
    "svfw": (NONCONVEX,),
    "saga_fw": (NONCONVEX,),
    "projected_sgd": (CONVEX, DR_SUBMODULAR),
    "storm": (NONCONVEX,),
    "frank_wolfe": tuple(PRESETS),
}
"""The settings that each recipe serves."""

SCHEDULES: dict[str, tuple[str, ...]] = {
    "one_sfw": tuple(ONE_SFW_SCHEDULES),
    "momentum_sfw": tuple(MOMENTUM_SCHEDULES),
    "minibatch_sfw": tuple(MINIBATCH_SCHEDULES),
    "spider_fw": tuple(SPIDER_SCHEDULES),
    "online_fw": tuple(ONLINE_SCHEDULES),
    "svrf": tuple(SVRF_SCHEDULES),
}
"""The names that `schedule=` takes, for recipes that have it: the step rules of the convex setting."""

__all__ = [
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
    "frank_wolfe",
    "minibatch_sfw",
    "momentum_sfw",
    "normalized_fw",
    "one_sfw",
    "online_fw",
    "projected_sgd",
    "saga_fw",
    "scg_plus_plus",
    "spider_fw",
    "storc",
    "storm",
    "svfw",
    "svrf",
]
