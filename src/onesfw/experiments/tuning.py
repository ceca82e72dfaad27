"""1-SFW's schedules side by side: the theorem's, and others over radius, noise and interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from onesfw import schedules
from onesfw.algorithms import CONVEX, Algorithm, one_sfw
from onesfw.experiments.compare import Announce
from onesfw.experiments.grids import Grid, mean_text, ratio_text
from onesfw.experiments.runs import measure
from onesfw.experiments.slopes import Slope, ratio
from onesfw.experiments.subject import Subject

PAPER = "paper: 1/(t−1), 1/t"
PROBLEMS = (
    "logistic", "logistic-generated", "logistic-wide", "interpolation", "quadratic-interior", "quadratic-face",
    "quadratic-noisy", "gaussian",
)  # fmt: skip
NO_WORSE, BETTER = 1.3, 3.0  # what a rule must show to be offered: within 1.3 times everywhere, 3 times better once


def rules() -> dict[str, Algorithm]:
    """The schedules (ρ, η) that are tried, by name; the theorem's first."""
    double = schedules.harmonic(2.0, 2.0)
    return {
        PAPER: one_sfw(CONVEX),
        "2/t, 2/(t+2)": one_sfw(CONVEX, rho=schedules.harmonic(2.0, 0.0), eta=double),
        "(t−1)^(−2/3), 1/t": one_sfw(CONVEX, rho=schedules.power(2 / 3)),
        "(t−1)^(−0.8), 1/t": one_sfw(CONVEX, rho=schedules.power(0.8)),
        "(t−1)^(−0.9), 1/t": one_sfw(CONVEX, rho=schedules.power(0.9)),
        "adaptive, 1/t": one_sfw(CONVEX, rho="adaptive"),
        "adaptive, 2/(t+2)": one_sfw(CONVEX, rho="adaptive", eta=double),
    }


@dataclass
class Study:
    """Final errors of each rule on each problem, one for each seed."""

    budget: int
    seeds: int
    errors: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    """problem → rule → errors."""

    def ratio(self, problem: str, rule: str) -> Slope:
        """The rule's error over the theorem's schedule's, with its interval; below 1 the rule is better."""
        return ratio(self.errors[problem][rule], self.errors[problem][PAPER])

    def qualifies(self, rule: str) -> bool:
        """At most 1.3 times the theorem's error on every problem, and less than a third of it on some."""
        ratios = [self.ratio(problem, rule).value for problem in self.errors]
        return max(ratios) <= NO_WORSE and min(ratios) < 1 / BETTER

    def offered(self) -> list[str]:
        """The rules that qualify, the one with the least mean log-ratio first."""
        found = [rule for rule in rules() if rule != PAPER and self.qualifies(rule)]
        return sorted(found, key=lambda r: float(np.mean([np.log(self.ratio(p, r).value) for p in self.errors])))


def study(
    subjects: Sequence[Subject], budget: int, seeds: int, key: int = 0, announce: Announce | None = None
) -> Study:
    """Run every rule on every subject."""
    done = Study(budget, seeds)
    for subject in subjects:
        errors = {}
        for rule, algorithm in rules().items():
            if announce is not None:
                announce(subject.name, rule)
            errors[rule] = measure(subject, algorithm, budget, seeds, key).final
        done.errors[subject.name] = errors
    return done


def study_grid(done: Study) -> Grid:
    """A row for each problem: the theorem's error, then how many times as large each rule's is."""
    names = [rule for rule in rules() if rule != PAPER]
    rows = []
    for problem, errors in done.errors.items():
        ratios = [done.ratio(problem, rule) for rule in names]
        rows.append((problem, mean_text(errors[PAPER]), *(ratio_text(r) for r in ratios)))
    note = (
        f"F(x) − F* of one_sfw at {done.budget:,} samples, {done.seeds} seeds; the other columns are ratios to the "
        "theorem's schedule (below 1: better), with 95 % intervals. Columns name ρ and η."
    )
    return Grid("One-sample schedules", ("problem", PAPER, *names), rows, note)


def verdict(done: Study) -> str:
    """Whether a rule is good enough to be offered, in a sentence."""
    offered = done.offered()
    bar = f"at most {NO_WORSE} times the theorem's error on every problem and less than 1/{BETTER:g} of it on some"
    if offered:
        return f"Rules with {bar}: " + "; ".join(f"`{rule}`" for rule in offered) + "."
    best = min((r for r in rules() if r != PAPER), key=lambda r: max(done.ratio(p, r).value for p in done.errors))
    worst = max(done.errors, key=lambda p: done.ratio(p, best).value)
    return (
        f"No rule has {bar}. The one that loses least is `{best}`, with {ratio_text(done.ratio(worst, best))} times "
        f"the theorem's error on `{worst}`."
    )
