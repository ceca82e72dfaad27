"""Speed of the compiled loop against a hand-written numba loop that does the same steps on the same rows.

    python benchmarks/loop.py

Prints time ratios (medians of 7 interleaved runs), what the first call costs more than later ones, how many programs
were compiled, and what 32 replicates cost in units of one run. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import jax
import numba
import numpy as np
from dense_logistic import logistic, ours, problem
from reference_loop import one_sfw_logistic_l1
from rich.console import Console
from rich.table import Table

import onesfw as fw
from onesfw.engine.programs import compilations

RUNS = 7
SIZES = ((20, 5_000, 1_000_000, 13.0), (1_000, 5_000, 200_000, 4.2), (20_000, 1_000, 20_000, 2.0))


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def main() -> None:
    console = Console()
    console.print(
        f"onesfw {fw.__version__}, jax {jax.__version__}, numba {numba.__version__}, "
        f"Python {platform.python_version()}, {jax.default_backend()}"
    )
    compiled: list[int] = []
    table = Table(
        "d", "steps", "numba µs/step", "onesfw µs/step", "ratio", "limit", "first − later, s", "difference at 200 steps"
    )
    for d, n, steps, limit in SIZES:
        rows, labels = problem(d, n, 0)
        order = np.random.default_rng(1).integers(0, n, steps)
        objective, replay = logistic(rows, labels), logistic(rows, labels, order)
        before = compilations()
        first = timed(lambda: ours(objective, 5.0, steps))  # noqa: B023
        x_reference, _ = one_sfw_logistic_l1(rows, labels, order, 5.0, 200)
        difference = np.abs(np.asarray(ours(replay, 5.0, 200).x) - x_reference).max()
        times, reference = [], []
        for run in range(RUNS):
            reference.append(timed(lambda: one_sfw_logistic_l1(rows, labels, order, 5.0, steps)))  # noqa: B023
            times.append(timed(lambda: ours(objective, 5.0 + run, steps, key=run)))  # noqa: B023
        ratio = np.median(times) / np.median(reference)
        table.add_row(
            f"{d:,}",
            f"{steps:,}",
            f"{np.median(reference) / steps * 1e6:.3f}",
            f"{np.median(times) / steps * 1e6:.3f}",
            f"{ratio:.2f}",
            f"{limit}",
            f"{first - np.median(times):.2f}",
            f"{difference:.1e}",
        )
        compiled.append(compilations() - before)
    console.print(table)
    console.print("The reference is handed its row indices; onesfw draws its own, and the time includes it.")

    console.print(f"programs compiled per size: {compiled} (one with random rows, one that replays given rows)")

    objective = logistic(*problem(1_000, 5_000, 0))
    ours(objective, 5.0, 1_000)
    before = compilations()
    ours(logistic(*problem(1_000, 5_000, 7)), 9.0, 12_345, key=3)
    console.print(f"compilations for new data, radius, key, steps and lambda: {compilations() - before} (limit 0)")

    steps = 100_000
    single = np.median([timed(lambda: ours(objective, 5.0, steps)) for _ in range(5)])
    ours(objective, 5.0, steps, replicates=2)
    many = timed(lambda: ours(objective, 5.0, steps, replicates=32))
    console.print(f"32 replicates at d = 1,000 cost {many / single:.1f} times one run (limit 20)")


if __name__ == "__main__":
    main()
