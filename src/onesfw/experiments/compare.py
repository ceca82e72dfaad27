"""Methods side by side on one subject, at equal budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from onesfw.algorithms import Algorithm
from onesfw.experiments import methods
from onesfw.experiments.runs import Curve, NotFinite, measure
from onesfw.experiments.slopes import NO_SLOPE, Slope, slope
from onesfw.experiments.subject import Subject

Announce = Callable[[str, str], None]
"""Called with (subject, method) before each run."""


@dataclass
class Comparison:
    """The curves of all methods on one subject, and why the others are missing."""

    subject: Subject
    budget: int
    seeds: int
    key: int = 0
    curves: list[Curve] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    rules: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    """Of each method with several step rules: the final errors of every rule, one for each seed."""

    @property
    def optimum(self) -> float | None:
        """F*, where it is known."""
        return self.subject.optimum()

    def curve(self, name: str) -> Curve | None:
        """The curve of a method."""
        return next((curve for curve in self.curves if curve.name == name), None)


def rise(curve: Curve, against: str, measure: str | None = None) -> Slope:
    """The slope of a curve's error against one of its counts; a value has none."""
    name = measure or curve.primary
    return NO_SLOPE if name == "value" else slope(curve.counts[against], curve.measures[name])


@dataclass(frozen=True)
class Plan:
    """A comparison that has been checked and not yet run."""

    comparison: Comparison
    work: dict[str, dict[str, Algorithm]]
    """The step rules of each method, by name."""

    @property
    def runs(self) -> int:
        """How many curves will be measured."""
        return sum(len(rules) for rules in self.work.values())


def prepare(
    subject: Subject,
    budget: int,
    seeds: int,
    key: int = 0,
    names: Iterable[str] | None = None,
    step_rules: bool = False,
) -> Plan:
    """Which methods run with which step rules; 1-SFW always with its theorem's."""
    able, unable = methods.applicable(subject, methods.known_names(names), budget)
    work = {
        name: methods.step_rules(name, algorithm) if step_rules else {methods.PRESET: algorithm}
        for name, algorithm in able.items()
    }
    return Plan(Comparison(subject, budget, seeds, key, skipped=unable), work)


def carry_out(plan: Plan, announce: Announce | None = None) -> Comparison:
    """Run what was planned; Ctrl-C goes on as KeyboardInterrupt, and `plan.comparison` holds the methods done."""
    comparison = plan.comparison
    subject = comparison.subject
    for name, rules in plan.work.items():
        found: dict[str, Curve] = {}
        for rule, algorithm in rules.items():
            if announce is not None:
                announce(subject.name, name)
            try:
                curve = measure(subject, algorithm, comparison.budget, comparison.seeds, comparison.key)
                found[rule] = replace(curve, name=name)
            except NotFinite as error:
                comparison.skipped[name] = str(error)
        if found:
            best = min(found, key=lambda rule: final_error(found[rule]))
            comparison.skipped.pop(name, None)
            comparison.curves.append(found[best])
            if len(rules) > 1:
                comparison.rules[name] = {rule: curve.final for rule, curve in found.items()}
    return comparison


def final_error(curve: Curve) -> float:
    """The mean over seeds of the first measure at the full budget."""
    return float(np.mean(curve.final))
