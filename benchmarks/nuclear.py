"""The nuclear ball's oracle against a full SVD: time per call, ratio, and the accuracy attained.

    python benchmarks/nuclear.py [size]

Gaussian matrices (their leading singular values nearly touch: the hard case), float32, warm-up outside, medians of
interleaved calls. "cold" starts from the fixed vector; "warm" follows a direction that drifts by 1 % a step, as a
Frank-Wolfe run does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.sets import NuclearBall


def seconds(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - begun


def main(size: int = 1_000, matrices: int = 5, repeats: int = 9) -> None:
    rng = np.random.default_rng(0)
    ball = NuclearBall(1.0)
    cold = jax.jit(lambda d: ball.lmo(d))
    warm = jax.jit(lambda d, memory: ball.lmo_from(d, memory))
    full = jax.jit(lambda d: jnp.linalg.svd(d, full_matrices=False))
    times: dict[str, list[float]] = {"lmo, cold": [], "lmo, warm": [], "numpy SVD": [], "jax SVD": []}
    errors: dict[str, float] = {"lmo, cold": 0.0, "lmo, warm": 0.0}

    for _ in range(matrices):
        host = rng.standard_normal((size, size), dtype=np.float32)
        d = jnp.asarray(host)
        drifted = d + 0.01 * jnp.asarray(rng.standard_normal((size, size), dtype=np.float32))
        _, memory = warm(d, ball.lmo_memory(d))
        vertices = {"lmo, cold": (cold(d), d), "lmo, warm": (warm(drifted, memory)[0], drifted)}
        for name, (vertex, direction) in vertices.items():
            exact = np.linalg.norm(np.asarray(direction, np.float64), 2)
            attained = -np.sum(np.asarray(vertex, np.float64) * np.asarray(direction, np.float64))
            errors[name] = max(errors[name], 1 - attained / exact)
        jax.block_until_ready(full(d))
        for turn in range(repeats):
            times["lmo, cold"].append(seconds(lambda d=d: cold(d)))
            times["lmo, warm"].append(seconds(lambda d=drifted, m=memory: warm(d, m)))
            if turn % 3 == 0:
                times["numpy SVD"].append(seconds(lambda a=host: np.linalg.svd(a, full_matrices=False)))
                times["jax SVD"].append(seconds(lambda d=d: full(d)))

    medians = {name: float(np.median(values)) for name, values in times.items()}
    reference = min(medians["numpy SVD"], medians["jax SVD"])
    print(f"{size} x {size}, float32, jax {jax.__version__} on {jax.default_backend()}, numpy {np.__version__}")
    for name, median in medians.items():
        accuracy = f", relative error at most {errors[name]:.1e}" if name in errors else ""
        print(f"{name:10} {1e3 * median:8.2f} ms, {reference / median:6.1f} times the faster SVD's speed{accuracy}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
