"""Which of a competitor's published step rules is its default: chosen on some problems, reported on others.

    python benchmarks/step_rules.py [--samples 2e4] [--seeds 8] [method ...]

Both sets of problems are drawn anew, neither is the zoo's. On each of them a rule's error is divided by that of the
method's best rule there; the rule with the least geometric mean over the first set is the choice. For it and for the
theorem's rule the second set then says how far they are from the best in hindsight. Constants that theory takes to be
known (`noise=`, `constant=`, `smoothness=`) are chosen with the rule.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product

import numpy as np

from onesfw.algorithms import ALGORITHMS, CONVEX, SCHEDULES, Algorithm
from onesfw.experiments.runs import steps_for
from onesfw.zoo.base import Problem
from onesfw.zoo.least_squares import fitted_by
from onesfw.zoo.logistic import generated_rows, logistic_problem
from onesfw.zoo.quadratics import definite, over_simplex

NOISES = (0.25, 0.5, 1.0, 2.0)
CONSTANTS: dict[str, dict[str, tuple[float, ...]]] = {
    "momentum_sfw": {},
    "minibatch_sfw": {"noise": NOISES},
    "spider_fw": {"noise": NOISES},
    "online_fw": {},
    "scg_plus_plus": {"noise": NOISES},
    "svrf": {"constant": (1.0, 4.0, 16.0)},
    "storc": {"smoothness": (0.01, 0.1, 1.0)},
    "projected_sgd": {"smoothness": (0.1, 1.0, 10.0), "noise": (0.1, 1.0, 10.0)},
}


def drawn(seed: int) -> list[Problem]:
    """Five problems like the zoo's convex ones: two logistic, one interpolated, two quadratics over the simplex."""
    rng = np.random.default_rng(seed)
    narrow, wide = generated_rows(2_000, 25, seed + 1), generated_rows(1_000, 25, seed + 2)
    inside, corner = rng.dirichlet(np.full(20, 5.0)), np.zeros(20)
    corner[:5] = rng.dirichlet(np.ones(5))
    slope = np.where(corner > 0, 0.0, rng.uniform(0.2, 1.0, 20))
    first, second = definite(rng, 20, 1.0, 4.0), definite(rng, 20, 0.5, 3.0)
    weights = np.where(np.arange(25) < 4, rng.uniform(-0.7, 0.7, 25), 0.0)
    return [
        logistic_problem("logistic, r = 3", "", *narrow, 3.0),
        logistic_problem("logistic, r = 30", "", *wide, 30.0),
        fitted_by("interpolation", "", rng.standard_normal((1_000, 25)), weights, 3.0),
        over_simplex("quadratic, inside", "", first, -first @ inside, tau=1.0, sigma=1.0),
        over_simplex("quadratic, face", "", second, slope - second @ corner, tau=1.0, sigma=2.0),
    ]


def rules_of(name: str) -> Iterator[tuple[str, Algorithm]]:
    """Every published rule with every constant, by how it prints."""
    grid = {**({"schedule": SCHEDULES[name]} if name in SCHEDULES else {}), **CONSTANTS[name]}
    for values in product(*grid.values()):
        options = dict(zip(grid, values, strict=True))
        yield ", ".join(f"{key}={value}" for key, value in options.items()), ALGORITHMS[name](CONVEX, **options)


def error(problem: Problem, algorithm: Algorithm, samples: int, seeds: int, key: int) -> float:
    """The mean of F(x) − F* over the seeds, after so many samples."""
    steps = steps_for(algorithm, problem.objective, samples)
    result = problem.run(steps=steps, algorithm=algorithm, key=key, replicates=seeds, evaluate=False)
    values = problem.values_at(np.asarray(result.x, np.float64))
    return float(values.mean() - problem.optimum().value)


def ratios(name: str, problems: list[Problem], samples: int, seeds: int, key: int) -> dict[str, np.ndarray]:
    """Of each rule the error on each problem over that of the best rule there; problems it does not serve left out."""
    rules = dict(rules_of(name))
    table = []
    for problem in problems:
        try:
            table.append([error(problem, rule, samples, seeds, key) for rule in rules.values()])
        except TypeError:  # needs a finite sum
            continue
    errors = np.asarray(table)
    return dict(zip(rules, (errors / errors.min(1, keepdims=True)).T, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="Choose each competitor's step rule.")
    parser.add_argument("methods", nargs="*", default=list(CONSTANTS))
    parser.add_argument("--samples", type=float, default=2e4)
    parser.add_argument("--seeds", type=int, default=8)
    given = parser.parse_args()
    for name in given.methods:
        found = ratios(name, drawn(1_000), int(given.samples), given.seeds, key=11)
        means = {rule: float(np.exp(np.log(values).mean())) for rule, values in found.items()}
        best = min(means, key=means.__getitem__)
        print(f"{name}: {best!r}, {means[best]:.2f} times the best rule in hindsight over {len(found[best])} problems")
        for rule, mean in sorted(means.items(), key=lambda item: item[1]):
            print(f"    {rule:40} {mean:8.2f}   {np.array2string(found[rule], precision=2, suppress_small=True)}")
        report = ratios(name, drawn(2_000), int(given.samples), given.seeds, key=12)
        for rule in dict.fromkeys([best, *(r for r in report if r.startswith("schedule=paper"))]):
            mean, worst = float(np.exp(np.log(report[rule]).mean())), report[rule].max()
            print(
                f"  on fresh problems: {rule!r} {mean:.2f} times the best in hindsight, {worst:.2f} at worst",
                flush=True,
            )


if __name__ == "__main__":
    main()
