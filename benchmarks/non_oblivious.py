"""Samples that depend on x: a policy for gymnasium's FrozenLake, one trajectory a step.

    python benchmarks/non_oblivious.py [--steps 300000] [--seeds 16] [--methods importance hessian …]

F(x) is the chance to reach the goal of the slippery 4 × 4 lake within gymnasium's 100 moves, x a distribution over the
four moves in each of 16 places, each move with a chance of at least 5 %. F* is the value of dynamic programming over
the same set, with a policy that may change from move to move: an upper bound of what any x can reach. Every method gets
the same number of trajectories. The step rules of the competitors are the best of those listed here, chosen on four
other seeds; 1-SFW runs with its defaults, and as "pace a" with η = a/(t+a).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

import onesfw as fw

matplotlib.use("Agg")
EXAMPLE = Path(__file__).parent.parent / "gallery" / "plot_policy_gradient.py"
TUNING_KEY, REPORT_KEY = 1_000, 0


def pace(a: float) -> Callable[[int], float]:
    """η_t = a/(t + a)."""
    return lambda t: a / (t + a)


def fading(e: float) -> Callable[[int], float]:
    """η_t = e/√t."""
    return lambda t: e / np.sqrt(t)


RULES: dict[str, dict[str, fw.Algorithm]] = {
    "importance": {"default": fw.one_sfw("nonconvex", correction="importance")},
    "hessian": {"default": fw.one_sfw("nonconvex", correction="hessian")},
    **{
        f"pace {a:g}": {f"{a:g}/(t+{a:g})": fw.one_sfw("nonconvex", correction="importance", eta=pace(a))}
        for a in (1.0, 2.0, 4.0, 8.0)
    },
    "momentum": {f"{a:g}/(t+{a:g})": fw.momentum_sfw(eta=pace(a)) for a in (1.0, 4.0, 16.0)},
    "reinforce": {
        **{f"{e:g}": fw.projected_sgd(eta=e) for e in (0.0003, 0.001)},
        **{f"{e:g}/sqrt(t)": fw.projected_sgd(eta=fading(e)) for e in (0.1, 0.3)},
    },
}


def the_lake(number: int | None) -> dict[str, Any]:
    """The objective, the set and F: the example of the gallery, as far as its methods; on a random map by number."""
    found: dict[str, Any] = {}
    text = EXAMPLE.read_text(encoding="utf-8").split("# %%\n# The methods")[0]
    if number is not None:
        ground = generate_random_map(size=4, p=0.75, seed=number)
        text = text.replace('make("FrozenLake-v1")', f'make("FrozenLake-v1", desc={ground})')
    exec(text, found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--methods", nargs="*", default=list(RULES), choices=list(RULES))
    parser.add_argument("--map", type=int, help="a lake drawn by gymnasium, of 3/4 ice, in place of the usual one")
    options = parser.parse_args()
    lake = the_lake(options.map)
    exact, best = lake["chance_of_goal"], lake["chance_of_goal"]()

    def shares(algorithm: fw.Algorithm, key: int, seeds: int) -> np.ndarray:
        """F(x)/F* of each seed, of the output and of the last iterate, in rows."""
        run = fw.maximize(
            lake["objective"],
            lake["K"],
            steps=options.steps,
            key=key,
            replicates=seeds,
            algorithm=algorithm,
            evaluate=False,
        )
        return np.array([[exact(x.astype(float)) / best for x in points] for points in (run.x, run.x_last)])

    print(f"F* = {best:.4f}; {options.steps:,} trajectories, {options.seeds} seeds")
    for method in options.methods:
        begun = time.process_time()
        rules = RULES[method]
        tried = {}
        if len(rules) > 1:
            tried = {rule: shares(algorithm, TUNING_KEY, 4).mean(1).max() for rule, algorithm in rules.items()}
            print(f"  {method}, on the seeds for the choice: {', '.join(f'{k} {v:.3f}' for k, v in tried.items())}")
        rule = max(tried, key=lambda name: tried[name]) if tried else next(iter(rules))
        found = shares(rules[rule], REPORT_KEY, options.seeds)
        found = found[found.mean(1).argmax()]
        stderr = found.std(ddof=1) / np.sqrt(len(found))
        print(
            f"{method} ({rule}): F/F* = {found.mean():.4f} ± {stderr:.4f}, worst seed {found.min():.3f}; "
            f"{time.process_time() - begun:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
