"""The oracles of the nuclear and the spectral ball against a full SVD: time per call, ratio, and accuracy attained.

    python benchmarks/nuclear.py [size]

Gaussian matrices (their leading singular values nearly touch: the hard case), float32, warm-up outside; the best of
interleaved calls per matrix (a shared machine slows the SVD's threads most), averaged over the matrices. "cold" starts
from the fixed vector; "warm" follows a direction that drifts by 1 % a step, as a Frank-Wolfe run does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.sets import NuclearBall, SpectralBall


def seconds(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - begun


def main(size: int = 1_000, matrices: int = 5, repeats: int = 7) -> None:
    rng = np.random.default_rng(0)
    ball = NuclearBall(1.0)
    cold = jax.jit(lambda d: ball.lmo(d))
    warm = jax.jit(lambda d, memory: ball.lmo_from(d, memory))
    polar = jax.jit(lambda d: SpectralBall(1.0).lmo(d))
    full = jax.jit(lambda d: jnp.linalg.svd(d, full_matrices=False))
    times: dict[str, list[float]] = {"lmo, cold": [], "lmo, warm": [], "spectral": [], "numpy SVD": [], "jax SVD": []}
    errors: dict[str, float] = {"lmo, cold": 0.0, "lmo, warm": 0.0, "spectral": 0.0}

    for _ in range(matrices):
        host = rng.standard_normal((size, size), dtype=np.float32)
        d = jnp.asarray(host)
        drifted = d + 0.01 * jnp.asarray(rng.standard_normal((size, size), dtype=np.float32))
        _, memory = warm(d, ball.lmo_memory(d))
        vertices = {
            "lmo, cold": (cold(d), d, 2),
            "lmo, warm": (warm(drifted, memory)[0], drifted, 2),
            "spectral": (polar(d), d, "nuc"),
        }
        for name, (vertex, direction, norm) in vertices.items():
            exact = np.linalg.norm(np.asarray(direction, np.float64), norm)
            attained = -np.sum(np.asarray(vertex, np.float64) * np.asarray(direction, np.float64))
            errors[name] = max(errors[name], 1 - attained / exact)
        jax.block_until_ready(full(d))
        calls: dict[str, Callable[[], Any]] = {
            "lmo, cold": lambda d=d: cold(d),
            "lmo, warm": lambda d=drifted, m=memory: warm(d, m),
            "spectral": lambda d=d: polar(d),
            "numpy SVD": lambda a=host: np.linalg.svd(a, full_matrices=False),
            "jax SVD": lambda d=d: full(d),
        }
        turns = [{name: seconds(call) for name, call in calls.items()} for _ in range(repeats)]
        for name in times:
            times[name].append(min(turn[name] for turn in turns))

    means = {name: float(np.mean(values)) for name, values in times.items()}
    reference = min(means["numpy SVD"], means["jax SVD"])
    print(f"{size} x {size}, float32, jax {jax.__version__} on {jax.default_backend()}, numpy {np.__version__}")
    for name, mean in means.items():
        accuracy = f", relative error at most {errors[name]:.1e}" if name in errors else ""
        print(f"{name:10} {1e3 * mean:8.2f} ms, {reference / mean:6.1f} times the faster SVD's speed{accuracy}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
