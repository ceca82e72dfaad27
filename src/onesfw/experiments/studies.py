"""Two studies of 1-SFW: its lead over momentum as the noise grows, and its schedules side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from onesfw import schedules
from onesfw.algorithms import CONVEX, Algorithm, one_sfw
from onesfw.engine import jobs
from onesfw.experiments.comparison import REFERENCE, Announce, Comparison, Plan, prepare
from onesfw.experiments.curves import Curve, Slope, mean_text, number_text, ratio, ratio_text
from onesfw.experiments.runs import measure
from onesfw.results.show import Sheet
from onesfw.trees import Array, Floats
from onesfw.zoo import quadratics
from onesfw.zoo.base import Problem

RIVAL = "momentum_sfw"
DRAWS = 50_000  # that the covariance of a gradient is taken from
PAPER = "paper: 1/(t−1), 1/t"
PROBLEMS = (
    "logistic", "logistic-generated", "logistic-wide", "interpolation", "quadratic-interior", "quadratic-face",
    "quadratic-noisy", "gaussian",
)  # fmt: skip
NO_WORSE, BETTER = 1.3, 3.0  # what a rule must show to be offered: within 1.3 times everywhere, 3 times better once


def plan_noise(sigmas: Sequence[float], budget: int, seeds: int, key: int = 0) -> dict[float, Plan]:
    """Both methods at every σ, momentum with each of its step rules."""
    problems = {s: quadratics.interior(f"quadratic-interior, σ = {s:g}", "optimum inside", s) for s in sigmas}
    return {
        sigma: prepare(problem, budget, seeds, key, [REFERENCE, RIVAL], step_rules=True)
        for sigma, problem in problems.items()
    }


def sample_average_error(problem: Problem, samples: int) -> float:
    """½ tr(H⁺ Σ)/N, to first order in 1/N the expected error of the sample average's minimiser: F is quadratic, its
    optimum inside the simplex, H its Hessian along the simplex, Σ the covariance of one sample's gradient there."""
    assert problem.gradient is not None
    x = problem.optimum().x
    d = x.size

    def gradient(number: Array) -> Array:
        objective = problem.objective
        found: Array = objective.at(objective.draw(jax.random.key(0), number), x, jnp.zeros(())).gradient(x)
        return found

    with jax.enable_x64(True):
        gradients = jax.jit(jax.vmap(gradient))(np.arange(DRAWS))
    along = np.eye(d) - 1 / d
    hessian = problem.gradient(np.eye(d)) - problem.gradient(np.zeros(d))
    inverse = np.linalg.pinv(along @ hessian @ along, hermitian=True)
    return float(np.sum(inverse * np.cov(np.asarray(gradients), rowvar=False)) / 2 / samples)


def noise_sheet(levels: dict[float, Comparison]) -> Sheet:
    """A row for each σ."""
    rows = []
    for sigma, comparison in levels.items():
        ours, theirs = comparison.curve(REFERENCE), comparison.curve(RIVAL)
        problem = comparison.problem
        if ours is None or theirs is None:
            continue
        finals = comparison.rules[RIVAL]
        rule = min(finals, key=lambda name: float(finals[name].mean()))
        rows.append(
            (
                f"{sigma:g}", mean_text(ours.final),
                number_text(sample_average_error(problem, comparison.budget), 2),
                f"{mean_text(theirs.final)} ({rule})", ratio_text(ratio(theirs.final, ours.final)),
            )
        )  # fmt: skip
    first = next(iter(levels.values()))
    note = (
        f"F(x) − F* at {first.budget:,} samples, {first.seeds} seeds; momentum with the best of its step rules. Sample "
        "average: ½ tr(H⁺Σ)/N, what minimising the mean of as many samples is expected to leave."
    )
    columns = ("σ", "1-SFW", "sample average", "momentum", "momentum over 1-SFW")
    return Sheet("Noise", columns, rows, note)


def rules() -> dict[str, Algorithm]:
    """The schedules (ρ, η) that are tried, by name; the theorem's first."""
    double = schedules.harmonic(2.0, 2.0)
    return {
        PAPER: one_sfw(CONVEX, schedule="paper"),
        "2/t, 2/(t+2)": one_sfw(CONVEX, rho=schedules.harmonic(2.0, 0.0), eta=double),
        "(t−1)^(−2/3), 1/t": one_sfw(CONVEX, eta=schedules.harmonic(), rho=schedules.power(2 / 3)),
        "(t−1)^(−0.8), 1/t": one_sfw(CONVEX, eta=schedules.harmonic(), rho=schedules.power(0.8)),
        "(t−1)^(−0.9), 1/t": one_sfw(CONVEX, eta=schedules.harmonic(), rho=schedules.power(0.9)),
        "adaptive, 1/t": one_sfw(CONVEX, schedule="tuned"),
        "adaptive, 2/(t+2)": one_sfw(CONVEX, rho="adaptive", eta=double),
    }


@dataclass
class Study:
    """Final errors of each rule on each problem, one for each seed."""

    budget: int
    seeds: int
    errors: dict[str, dict[str, Floats]] = field(default_factory=dict)
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
    problems: Sequence[Problem], budget: int, seeds: int, key: int = 0, announce: Announce | None = None
) -> Study:
    """Run every rule on every subject."""
    done = Study(budget, seeds)
    work = [(problem, rule, algorithm) for problem in problems for rule, algorithm in rules().items()]

    def begin(place: int) -> None:
        if announce is not None:
            announce(work[place][0].name, work[place][1])

    tasks = [(problem, algorithm, budget, seeds, key) for problem, _, algorithm in work]

    def here() -> Iterator[Curve]:
        for place, task in enumerate(tasks):
            begin(place)
            yield measure(*task)

    curves = jobs.in_order(measure, tasks, begin) if jobs.away() else here()
    for (problem, rule, _), curve in zip(work, curves, strict=True):
        done.errors.setdefault(problem.name, {})[rule] = curve.final
    return done


def study_sheet(done: Study) -> Sheet:
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
    return Sheet("One-sample schedules", ("problem", PAPER, *names), rows, note)


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
