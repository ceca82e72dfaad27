"""A long run: memory stays flat and x stays in the simplex.

    python benchmarks/soak.py [--steps 1e9]

One-sample steps on the zoo's `quadratic-face` in float32. Resident memory is read at every evaluation. A billion steps
take 20 to 30 minutes on one core.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import onesfw as fw

GROWTH = 20.0  # megabytes that memory may grow after the first twentieth of the run
VIOLATION = 1e-6


def resident_megabytes() -> float:
    """Memory of this process that is in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description="A long run on quadratic-face: memory and feasibility.")
    parser.add_argument("--steps", type=float, default=1e9)
    steps = int(parser.parse_args().steps)
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


if __name__ == "__main__":
    main()
