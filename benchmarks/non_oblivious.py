"""Samples that depend on x: a policy for gymnasium's FrozenLake, one trajectory a step.

    python benchmarks/non_oblivious.py [--steps 300000] [--seeds 16] [--methods importance hessian …] [--plot FILE.png]

F(x) is the chance to reach the goal of the slippery 4 × 4 lake within gymnasium's 100 moves, x a distribution over the
four moves in each of 16 places, each move with a chance of at least 5 %. F* is the value of dynamic programming over
the same set, with a policy that may change from move to move: an upper bound of what any x can reach. Every method gets
the same number of trajectories. The step rules of the competitors are the best of those listed here, chosen on four
other seeds; 1-SFW runs with its defaults, and as "pace a" with η = a/(t+a).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

import onesfw as fw

matplotlib.use("Agg")
ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "gallery" / "plot_policy_gradient.py"
TUNING_KEY, REPORT_KEY = 1_000, 0
LOOKS = (1_000, 3_000, 10_000, 20_000, 50_000, 100_000, 200_000)


def pace(a: float) -> Callable[[int], float]:
    """η_t = a/(t + a)."""
    return lambda t: a / (t + a)


def fading(e: float) -> Callable[[int], float]:
    """η_t = e/√t."""
    return lambda t: e / np.sqrt(t)


def last(algorithm: fw.Algorithm) -> fw.Algorithm:
    """With the last iterate for its output, which is better here than the mean of the theorem."""
    return replace(algorithm, output="last")


RULES: dict[str, dict[str, fw.Algorithm]] = {
    "importance": {"default": fw.one_sfw("nonconvex", correction="importance")},
    "hessian": {"default": fw.one_sfw("nonconvex", correction="hessian")},
    "momentum": {
        f"{schedule}, {a:g}/(t+{a:g})": fw.momentum_sfw(schedule=schedule, eta=pace(a))
        for schedule in ("unit", "paper")
        for a in (1.0, 4.0, 16.0)
    },
    "reinforce": {
        **{f"{e:g}": last(fw.projected_sgd(eta=e)) for e in (0.0001, 0.0003, 0.001)},
        **{f"{e:g}/sqrt(t)": last(fw.projected_sgd(eta=fading(e))) for e in (0.03, 0.1, 0.3)},
    },
    **{
        f"pace {a:g}": {f"{a:g}/(t+{a:g})": fw.one_sfw("nonconvex", correction="importance", eta=pace(a))}
        for a in (1.0, 2.0, 4.0, 8.0)
    },
}
SHOWN = {
    "importance": ("1-SFW, importance", "C0"),
    "hessian": ("1-SFW, hessian", "C3"),
    "momentum": ("momentum", "C1"),
    "reinforce": ("projected REINFORCE", "C2"),
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


def draw(curves: dict[str, np.ndarray], looks: list[int], path: Path) -> None:
    """The share of F* reached against trajectories: means over the seeds, from the worst one to the best."""
    sys.path.insert(0, str(ROOT / "docs" / "site"))
    import matplotlib.pyplot as plt
    import pictures

    plt.style.use("onesfw.pictures")
    figure, axes = plt.subplots(figsize=(5.4, 4.0))
    for method in sorted(curves, key=lambda name: -curves[name][:, -1].mean()):
        name, colour = SHOWN.get(method, (method, "C4"))
        share = 100 * curves[method]
        axes.fill_between(looks, share.min(0), share.max(0), color=colour, alpha=0.15)
        axes.plot(looks, share.mean(0), "o-", color=colour, label=f"{name}: {share[:, -1].mean():.1f} %")
    axes.axhline(95, 0.6, color="C5", linestyle="--", label="the limit, 95 %")
    axes.set(xscale="log", xlabel="trajectories", ylabel="$F(x)/F^*$, %", ylim=(0, 102))
    axes.set_title(f"Lines: means of {len(share)} seeds; bands: all of them")
    axes.legend(title=f"after {looks[-1]:,}", loc="upper left")
    pictures.save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--methods", nargs="*", default=list(SHOWN), choices=list(RULES))
    parser.add_argument("--map", type=int, help="a lake drawn by gymnasium, of 3/4 ice, in place of the usual one")
    parser.add_argument("--plot", type=Path, help="where to draw the shares against trajectories, light and dark")
    options = parser.parse_args()
    lake = the_lake(options.map)
    exact, best = lake["chance_of_goal"], lake["chance_of_goal"]()
    looks = [look for look in LOOKS if look < options.steps] + [options.steps]

    def shares(algorithm: fw.Algorithm, key: int, seeds: int) -> np.ndarray:
        """F/F*, seeds × looks; at the last look that of the method's own output."""
        run = fw.maximize(
            lake["objective"],
            lake["K"],
            steps=options.steps,
            key=key,
            replicates=seeds,
            algorithm=algorithm,
            every=looks,
            evaluate=lambda x: exact(np.asarray(x, float)),
        )
        output = np.array([[exact(x.astype(float))] for x in run.x])
        return np.concatenate([run.trace.value[:, : len(looks) - 1], output], 1) / best

    print(f"F* = {best:.4f}; {options.steps:,} trajectories, {options.seeds} seeds", flush=True)
    curves = {}
    for method in options.methods:
        begun = time.process_time()
        rules = RULES[method]
        tried = {}
        if len(rules) > 1:
            tried = {rule: shares(algorithm, TUNING_KEY, 4)[:, -1].mean() for rule, algorithm in rules.items()}
            print(f"  {method}, on the seeds for the choice: {', '.join(f'{k} {v:.3f}' for k, v in tried.items())}")
        rule = max(tried, key=lambda name: tried[name]) if tried else next(iter(rules))
        curves[method] = shares(rules[rule], REPORT_KEY, options.seeds)
        found = curves[method][:, -1]
        stderr = found.std(ddof=1) / np.sqrt(len(found))
        course = ", ".join(f"{t:,}: {v:.3f}" for t, v in zip(looks, curves[method].mean(0), strict=True))
        print(
            f"{method} ({rule}): F/F* = {found.mean():.4f} ± {stderr:.4f}, worst seed {found.min():.3f}; "
            f"{time.process_time() - begun:.0f} s\n  {course}",
            flush=True,
        )
    if options.plot is not None:
        draw(curves, looks, options.plot)


if __name__ == "__main__":
    main()
