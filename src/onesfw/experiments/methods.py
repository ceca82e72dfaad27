"""Which methods apply to a subject, why others do not, and the step rules that are documented for each."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import jax

from onesfw import capabilities
from onesfw.algorithms import ALGORITHMS, CONVEX, SCHEDULES, SETTINGS, Algorithm
from onesfw.arguments import nearest
from onesfw.engine.checks import build_run, starting_point
from onesfw.experiments import budgets
from onesfw.experiments.subject import Subject

REFERENCE = "one_sfw"
PRESET = "preset"
NOISES = (0.25, 0.5, 2.0)


def recipe(name: str, setting: str, **options: Any) -> Algorithm:
    """The recipe of that name in a setting; a sentence where it does not serve it."""
    if setting not in SETTINGS[name]:
        raise ValueError(f"serves {' and '.join(SETTINGS[name])} problems only")
    return ALGORITHMS[name](setting, **options)


def known_names(names: Iterable[str] | None) -> list[str]:
    """The names asked for, all of them without a wish, or a sentence about the first that is no method."""
    chosen = list(ALGORITHMS) if names is None else list(dict.fromkeys(names))
    for name in chosen:
        if name not in ALGORITHMS:
            hint = nearest(name, ALGORITHMS) or f"; choose among {', '.join(ALGORITHMS)}"
            raise ValueError(f"there is no algorithm {name!r}{hint}")
    if not chosen:
        raise ValueError(f"name at least one algorithm of {', '.join(ALGORITHMS)}")
    return chosen


def applicable(subject: Subject, names: Iterable[str], budget: int) -> tuple[dict[str, Algorithm], dict[str, str]]:
    """The methods that can run, by name, and the reason of each that cannot."""
    able: dict[str, Algorithm] = {}
    unable: dict[str, str] = {}
    for name in names:
        try:
            algorithm = recipe(name, subject.setting)
            check(subject, algorithm, budget)
            able[name] = algorithm
        except (TypeError, ValueError) as error:
            unable[name] = str(error)
    return able, unable


def check(subject: Subject, algorithm: Algorithm, budget: int) -> None:
    """Every check that a run makes before it compiles, and that a step fits into the budget."""
    needs = algorithm.estimator(subject.objective).needs
    capabilities.check(needs, subject.objective.offers, algorithm.name, type(subject.objective).__name__)
    start = subject.start()
    with jax.enable_x64(True):
        build_run(
            subject.objective,
            subject.constraint,
            starting_point(start, subject.constraint),
            True,
            1 if subject.sense == "minimize" else -1,
            steps=budgets.steps_for(algorithm, subject.objective, budget),
            algorithm=algorithm,
            evaluate=False,
            every=None,
            gap_tol=None,
            time_limit=None,
            callbacks=(),
        )


def step_rules(name: str, algorithm: Algorithm) -> dict[str, Algorithm]:
    """A competitor's documented step rules in the convex setting, by their names; 1-SFW keeps its theorem's.

    Where a recipe has the constant `noise`, which its theorem takes to be known, each rule is tried with other values
    of it too.
    """
    if name == REFERENCE or algorithm.setting != CONVEX or name not in SCHEDULES:
        return {PRESET: algorithm}
    rules = {schedule: recipe(name, algorithm.setting, schedule=schedule) for schedule in SCHEDULES[name]}
    if "noise" in inspect.signature(ALGORITHMS[name]).parameters:
        for schedule in SCHEDULES[name]:
            for noise in NOISES:
                rules[f"{schedule}, noise={noise:g}"] = recipe(name, CONVEX, schedule=schedule, noise=noise)
    return rules
