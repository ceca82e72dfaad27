"""Speed on an accelerator: one run, many replicates, and a sweep, by the persistent kernel and by XLA's loop.

    python benchmarks/accelerator.py [many one sweep agreement] [--runs 16384] [--quick]

Dense logistic loss over an l1 ball, float32, n = 5,000 rows. Prints one-sample iterations a second for many runs
together and microseconds a step for one, for both loops; whether the mean values of both agree; and the seconds of a
sweep of 100 radii × 10 folds × 16 seeds with its evaluation. `agreement` runs every set, loss, recipe and size that the
tests lower in both loops on the device and prints by how much x and the mean values differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import jax
import numpy as np
from dense_logistic import logistic, problem

import onesfw as fw
from onesfw.engine.programs import KERNEL_VARIABLE

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from kernel_cases import LOSSES, RECIPES, SETS
from kernel_cases import problem as case

RADIUS = 5.0
PARTS = ("many", "one", "sweep", "agreement")


def values(points: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """F of each point, in float64."""
    margins = np.asarray(points, np.float64) @ np.asarray(rows, np.float64).T
    return np.logaddexp(0.0, -labels * margins).mean(1)


def many(d: int, runs: int, steps: dict[str, int], schedule: str) -> None:
    """Iterations a second, and the agreement of both loops."""
    rows, labels = problem(d, 5_000, 0)
    objective, ball = logistic(rows, labels), fw.sets.L1Ball(RADIUS, shape=d)
    found = {}
    for kernel in ("persistent", "xla"):
        os.environ[KERNEL_VARIABLE] = kernel

        def go(count: int) -> fw.Result:
            return fw.minimize(
                objective, ball, steps=count, algorithm=fw.one_sfw(schedule=schedule), evaluate=False, replicates=runs
            )

        go(steps[kernel])
        begun = time.perf_counter()
        result = go(steps[kernel])
        wall = time.perf_counter() - begun
        work = runs * steps[kernel] / 1e6
        excess = float(np.abs(result.x).astype(np.float64).sum(1).max()) / RADIUS - 1
        print(
            f"d = {d:>5,}, {runs:,} runs, {schedule}, {result.kernel:>10}: {work / float(np.max(result.seconds)):8.1f} "
            f"million iterations a second in the loop, {work / wall:8.1f} with everything; norm + {excess:.0e}",
            flush=True,
        )
        found[kernel] = values(go(min(steps.values())).x[:2_000], rows, labels)
    error = np.sqrt(sum(part.var(ddof=1) / len(part) for part in found.values()))
    means = [part.mean() for part in found.values()]
    print(f"    mean values {means[0]:.6f} and {means[1]:.6f}: {abs(means[0] - means[1]) / error:.1f} standard errors")


def one(d: int, steps: int) -> None:
    """Microseconds a step of one run."""
    objective, ball = logistic(*problem(d, 5_000, 0)), fw.sets.L1Ball(RADIUS, shape=d)
    for kernel, count in (("persistent", steps), ("xla", steps // 5)):
        os.environ[KERNEL_VARIABLE] = kernel
        algorithm = fw.one_sfw(schedule="paper")
        fw.minimize(objective, ball, steps=1_000, algorithm=algorithm, evaluate=False)
        begun = time.perf_counter()
        result = fw.minimize(objective, ball, steps=count, algorithm=algorithm, evaluate=False)
        seconds = time.perf_counter() - begun
        print(f"d = {d:>5,}, one run, {result.kernel:>10}: {seconds / count * 1e6:.2f} µs a step", flush=True)


def swept(radii: int, folds: int, seeds: int, steps: int, schedule: str) -> None:
    """Seconds of a sweep with everything: checks, compilation, runs, evaluation and validation."""
    os.environ.pop(KERNEL_VARIABLE, None)
    rows, labels = problem(1_000, 5_000, 0)
    sets = [fw.sets.L1Ball(r, shape=1_000) for r in np.geomspace(0.5, 50, radii)]
    begun = time.perf_counter()
    found = fw.sweep(
        logistic(rows, labels), sets, steps=steps, rows=fw.rows.folds(5_000, folds), replicates=seeds,
        algorithm=fw.one_sfw(schedule=schedule),
    )  # fmt: skip
    seconds = time.perf_counter() - begun
    excess = float((np.abs(found.x).astype(np.float64).sum(-1).max((1, 2)) / found.at).max()) - 1
    print(
        f"sweep of {radii} radii × {folds} folds × {seeds} seeds, {steps:,} steps each, {schedule}, {found.kernel}: "
        f"{seconds:.1f} s; best radius {found.best().at:.3g}; norm exceeded by {excess:.0e}",
        flush=True,
    )


def agree(name: str, objective: fw.FiniteSum, constraint: fw.sets.ConvexSet, algorithm: object, sense: str) -> None:
    """One line: which loop ran, how far x is after 30 steps, and the mean values of 512 runs of other seeds."""
    go = getattr(fw, sense)
    found = {}
    for key, kernel in enumerate(("xla", "persistent")):
        os.environ[KERNEL_VARIABLE] = kernel
        one = go(objective, constraint, steps=30, algorithm=algorithm, evaluate=False)
        found[kernel] = one, go(objective, constraint, steps=200, algorithm=algorithm, replicates=512, key=key)
    (plain, runs), (ours, others) = found["xla"], found["persistent"]
    apart = float(np.max(np.abs(np.asarray(plain.x) - np.asarray(ours.x)))) / max(1e-9, float(np.abs(plain.x).max()))
    error = np.sqrt((runs.value.var(ddof=1) + others.value.var(ddof=1)) / 512)
    sigmas = abs(runs.value.mean() - others.value.mean()) / max(error, 1e-12)
    kernels = ours.kernel if ours.kernel == others.kernel else f"{ours.kernel}, {others.kernel}"
    print(f"{name:<34} {kernels:<12} x apart {apart:.0e}, means {sigmas:.1f} standard errors", flush=True)


def agreement() -> None:
    """Everything that the tests lower, on the device."""
    paper = fw.one_sfw(schedule="paper")
    for d in (1, 2, 3, 8, 33, 300, 1_000, 4_000):
        agree(f"d = {d:,}", *case(d, "logistic", "L1Ball", n=200), paper, "minimize")
    for loss in LOSSES:
        agree(loss, *case(60, loss, "Simplex", n=200), paper, "minimize")
    for name in SETS:
        agree(name, *case(60, "logistic", name, n=200), paper, "minimize")
    for name, (algorithm, sense) in RECIPES.items():
        agree(name, *case(60, "squared", "SubSimplex", n=200), algorithm, sense)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the loop on an accelerator.")
    parser.add_argument("parts", nargs="*", choices=PARTS, help="all but agreement unless named")
    parser.add_argument("--runs", type=int, default=16_384)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the steps, to see that all of it runs")
    options = parser.parse_args()
    print(f"onesfw {fw.__version__}, jax {jax.__version__}, {jax.devices()[0].device_kind}")
    part, parts = 100 if options.quick else 1, options.parts or PARTS[:3]
    if "many" in parts:
        for d, steps in ((100, 50_000), (1_000, 20_000), (4_000, 4_000)):
            many(d, options.runs, {"persistent": steps // part, "xla": steps // 20 // part}, "paper")
        many(1_000, options.runs, {"persistent": 20_000 // part, "xla": 1_000 // part}, "auto")
    if "one" in parts:
        one(1_000, 500_000 // part)
    if "sweep" in parts:
        for schedule in ("paper", "auto"):
            swept(100, 10, 16, 100_000 // part, schedule)
    if "agreement" in parts:
        agreement()


if __name__ == "__main__":
    main()
