"""The default of the DR-submodular setting against the theorem's steps, on instances drawn anew.

    python benchmarks/two_phases.py [--seeds 8] [--first 100]

Three families: the share of customers that a budget reaches (concave along every direction that matters, so that means
of many vertices are best), weighted coverage (whose best points are vertices), and DR-submodular quadratics. The rule
was chosen on the instances 11 to 17 of the same families; --first names the first of those reported on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

import onesfw as fw
from onesfw.sets import ConvexSet

Instance = tuple[str, fw.FiniteSum, ConvexSet]


def instances(first: int) -> Iterator[Instance]:
    """Two of each family."""
    for number, (d, n, total) in enumerate([(30, 500, 8.0), (80, 600, 4.0)]):
        rng = np.random.default_rng(first + number)
        reach = (0.4 * rng.uniform(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.2)).astype(np.float32)
        shares = fw.FiniteSum(lambda x, p: 1.0 - jnp.exp(jnp.sum(x * jnp.log1p(-p))), reach)
        yield f"reach, {d} channels, budget {total:g}", shares, fw.sets.SubSimplex(total, shape=d)
    for number, (d, n, k, chance) in enumerate([(20, 200, 5, 0.15), (40, 500, 8, 0.06)]):
        rng = np.random.default_rng(first + 10 + number)
        covers, weights = rng.random((n, d)) < chance, rng.exponential(size=n)
        rows = (covers.astype(np.float32), (n * weights / weights.sum()).astype(np.float32))
        covered = fw.FiniteSum(lambda x, row: row[1] * (1 - jnp.prod(1 - row[0] * x)), rows)
        yield f"coverage, {k} of {d}", covered, fw.sets.Knapsack(np.ones(d), float(k))
    for number, d in enumerate([20, 40]):
        rng = np.random.default_rng(first + 20 + number)
        form = -rng.uniform(size=(d, d))
        matrix = jnp.asarray((form + form.T) / 2, jnp.float32)
        noise = rng.normal(size=(4_000, d)).astype(np.float32)

        def quadratic(x, z, matrix=matrix):
            return x @ matrix @ x / 2 - jnp.sum(matrix @ x) + z @ x

        costs = rng.uniform(0.5, 1.5, d)
        yield f"quadratic, d = {d}", fw.FiniteSum(quadratic, noise), fw.sets.Knapsack(costs, d / 4)


def main() -> None:
    """Print a table of mean values, with standard errors over the seeds."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--seeds", type=int, default=8)
    options.add_argument("--first", type=int, default=100)
    given = options.parse_args()
    print("| instance | samples | default | theorem's steps | difference, % |\n|---|---|---|---|---|")
    for name, objective, constraint in instances(given.first):
        for steps in (1_000, 10_000):
            found = []
            for schedule in ("auto", "paper"):
                method = fw.one_sfw("dr_submodular", schedule=schedule)
                run = fw.maximize(objective, constraint, steps=steps, algorithm=method, replicates=given.seeds)
                found.append((np.mean(run.value), np.std(run.value, ddof=1) / np.sqrt(given.seeds)))
            (ours, error), (theirs, other) = found
            shown = f"{ours:.5g} ± {error:.1g} | {theirs:.5g} ± {other:.1g} | {100 * (ours / theirs - 1):+.2f}"
            print(f"| {name} | {steps:,} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
