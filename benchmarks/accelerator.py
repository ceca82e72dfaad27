"""Speed on an accelerator: one run, and many replicates of it under `vmap`.

    python benchmarks/accelerator.py [--replicates 16384]

Dense logistic loss over an l1 ball, float32, d = 1,000. Prints microseconds a step for one run, one-sample iterations
a second for all replicates together, and whether their mean suboptimality agrees with that of single runs.
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from dense_logistic import logistic, ours, problem

import onesfw as fw


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the loop on an accelerator.")
    parser.add_argument("--replicates", type=int, default=16_384)
    parser.add_argument("--steps", type=int, default=2_000)
    options = parser.parse_args()
    print(f"onesfw {fw.__version__}, jax {jax.__version__}, {jax.devices()[0].device_kind}")
    rows, labels = problem(1_000, 5_000, 0)
    objective = logistic(rows, labels)

    ours(objective, 5.0, 1_000)
    begun = time.perf_counter()
    ours(objective, 5.0, 20_000)
    print(f"one run: {(time.perf_counter() - begun) / 20_000 * 1e6:.1f} µs a step")

    ours(objective, 5.0, 10, replicates=options.replicates)
    begun = time.perf_counter()
    many = ours(objective, 5.0, options.steps, replicates=options.replicates)
    seconds = time.perf_counter() - begun
    rate = options.replicates * options.steps / seconds
    print(f"{options.replicates:,} replicates: {rate / 1e6:.1f} million one-sample iterations a second")

    def values(points: np.ndarray) -> np.ndarray:
        margins = np.asarray(points, np.float64) @ np.asarray(rows, np.float64).T
        return np.logaddexp(0.0, -labels * margins).mean(1)

    alone = values(np.stack([np.asarray(ours(objective, 5.0, options.steps, key=r).x) for r in range(8)]))
    together = values(many.x[:2_000])
    error = (alone.std() ** 2 / 8 + together.std() ** 2 / len(together)) ** 0.5
    print(f"mean value of single runs {alone.mean():.5f}, of replicates {together.mean():.5f} (± {error:.5f})")
    violation = float(np.max(np.abs(many.x).sum(1)) - 5.0)
    print(f"largest violation of the l1 norm: {violation:.1e}; all finite: {bool(jnp.all(jnp.isfinite(many.x)))}")


if __name__ == "__main__":
    main()
