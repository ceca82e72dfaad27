"""Long runs: memory stays flat, x stays in the simplex, and float32 keeps up with float64.

    python benchmarks/soak.py [--steps 1e9]
    python benchmarks/soak.py --precision [--steps 1e8] [--schedule paper]

The first makes one-sample steps on the zoo's `quadratic-face` in float32 and reads resident memory at every evaluation;
a billion steps take 20 to 30 minutes on one core. The second solves `logistic` in both precisions, as `onesfw solve
logistic` does, and compares F − F* at 1e6, 1e7, … steps; a hundred million steps take 2 minutes each on one idle core.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import onesfw as fw

GROWTH = 20.0  # megabytes that memory may grow after the first twentieth of the run
VIOLATION = 1e-6
PRECISION = 3.0  # times float64's error, at most


def resident_megabytes() -> float:
    """Memory of this process that is in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def flat_memory(steps: int) -> None:
    """A long run on quadratic-face: memory and feasibility."""
    problem = fw.zoo.get("quadratic-face")
    best = problem.optimum().value
    begun = time.perf_counter()
    memory: list[tuple[int, float]] = []
    print(
        f"{'steps':>13}  {'seconds':>8}  {'RSS, MB':>8}  {'F - F*':>9}  {'|sum x - 1|':>11}  {'steps/s':>9}", flush=True
    )

    def watch(row: dict[str, Any], x: Any) -> None:
        point = np.asarray(x, np.float64)
        seconds = time.perf_counter() - begun
        memory.append((row["step"], resident_megabytes()))
        print(
            f"{row['step']:>13,}  {seconds:>8.0f}  {memory[-1][1]:>8.1f}  {problem.value(point) - best:>9.2e}  "
            f"{abs(point.sum() - 1):>11.1e}  {row['step'] / row['seconds']:>9,.0f}",
            flush=True,
        )

    grid = max(1, steps // 40)
    result = fw.minimize(
        problem.objective, problem.constraint, steps=steps, evaluate=False, every=grid, callbacks=[watch]
    )
    x = np.asarray(result.x, np.float64)
    settled = [megabytes for step, megabytes in memory if step >= steps / 20]
    growth = max(settled) - settled[0]
    violation = max(abs(x.sum() - 1), -x.min(), 0.0)
    print(f"{result.steps:,} steps in {time.perf_counter() - begun:.0f} s; constraint violated by {violation:.1e}")
    print(f"memory grew by {growth:.1f} MB after the first 5 % of the run")
    assert growth < GROWTH, f"memory grew by {growth:.1f} MB"
    assert violation <= VIOLATION, f"x left the simplex by {violation:.1e}"


def errors_along(marks: Sequence[int], float64: bool, schedule: str) -> np.ndarray:
    """F − F* on `logistic` after so many steps, on the way of one run."""
    problem = fw.zoo.get("logistic")
    best, found = problem.optimum().value, []

    def watch(row: dict[str, Any], x: Any) -> None:
        found.append(float(problem.value(np.asarray(x, np.float64)) - best))
        print(f"{'float64' if float64 else 'float32'}  {row['step']:>13,}  F - F* = {found[-1]:.2e}", flush=True)

    problem.run(
        steps=marks[-1], algorithm=fw.one_sfw(schedule=schedule), float64=float64, evaluate=False, every=list(marks),
        callbacks=[watch],
    )  # fmt: skip
    return np.asarray(found)


def precision(steps: int, schedule: str) -> None:
    """Both precisions side by side."""
    marks = [mark for mark in (10**6, 10**7, 10**8, 10**9) if mark < steps] + [steps]
    single, double = errors_along(marks, False, schedule), errors_along(marks, True, schedule)
    for mark, ratio in zip(marks, single / double, strict=True):
        print(f"{mark:>13,} steps: float32 over float64 {ratio:.2f} (limit {PRECISION:g})")
    assert np.all(single <= PRECISION * double), "float32 falls behind"


def main() -> None:
    parser = argparse.ArgumentParser(description="Long runs: memory and feasibility, or float32 against float64.")
    parser.add_argument("--precision", action="store_true", help="compare float32 with float64 on logistic")
    parser.add_argument("--schedule", default="auto", help="of one_sfw, with --precision")
    parser.add_argument("--steps", type=float)
    arguments = parser.parse_args()
    if arguments.precision:
        precision(int(arguments.steps or 1e8), arguments.schedule)
    else:
        flat_memory(int(arguments.steps or 1e9))


if __name__ == "__main__":
    main()
