"""one_sfw(oracle="lazy") on sets whose oracle is dear: calls and error beside those of the oracle at every step.

    python benchmarks/lazy_oracle.py [Birkhoff] [Polytope] [NuclearBall] [SpectralBall] [--steps 4000] [--seeds 2]
        [--schedules tuned,auto]

F(x) = ½‖x − y‖² with noise in its gradient: (1 + w/2)(x − y) + σz entry by entry, w signs and z normal. Birkhoff:
50 × 50, the optimum a mean of five permutations. Polytope: 500 variables between −2 and 2 under 60 inequalities, 30 of
them active at the optimum. The balls hold 30 × 40 matrices; the optimum has rank 5, or 10 singular values at the
bound. All optima are known by construction. Limits for the first two: a fifth of the calls, 1.3 times the error.
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import onesfw as fw

KEY = 77


def noisy(target: np.ndarray, sigma: float) -> fw.Expectation:
    """½‖x − y‖² with noise in the curvature and in the slope."""
    goal = target.astype(np.float32)

    def sample(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        signs, normals = jax.random.split(key)
        return jax.random.rademacher(signs, goal.shape, jnp.float32), jax.random.normal(normals, goal.shape)

    def value(x: jax.Array, z: tuple[jax.Array, jax.Array]) -> jax.Array:
        away = x - jnp.asarray(goal)
        return jnp.sum((1 + z[0] / 2) * away**2) / 2 + sigma * jnp.sum(z[1] * x)

    return fw.Expectation(value, sample)


def birkhoff(rng: np.random.Generator) -> tuple[fw.sets.ConvexSet, np.ndarray, np.ndarray, float]:
    """The set, y, the optimum and σ."""
    n = 50
    shares = rng.dirichlet(np.ones(5))
    p = sum(share * np.eye(n)[rng.permutation(n)] for share in shares)
    return fw.sets.Birkhoff(n), p - np.where(p > 0, 0.0, rng.uniform(0.02, 0.1, (n, n))), p, 0.2


def polytope(rng: np.random.Generator) -> tuple[fw.sets.ConvexSet, np.ndarray, np.ndarray, float]:
    """The set, y, the optimum and σ."""
    d, rows, active = 500, 60, 30
    normals = rng.standard_normal((rows, d))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    p = np.linalg.pinv(normals[:active]) @ np.ones(active)
    assert (normals[active:] @ p).max() < 1
    assert np.abs(p).max() < 2
    pull = normals[:active].T @ rng.uniform(0.2, 1.0, active)
    return fw.sets.Polytope(normals, np.ones(rows), bounds=(-2, 2)), p + pull, p, 0.2


def bases(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal u and v, in columns: 30 of each."""
    return np.linalg.qr(rng.standard_normal((30, 30)))[0], np.linalg.qr(rng.standard_normal((40, 30)))[0]


def nuclear(rng: np.random.Generator) -> tuple[fw.sets.ConvexSet, np.ndarray, np.ndarray, float]:
    """The set, y, the optimum and σ."""
    u, v = bases(rng)
    p = (u[:, :5] * 3.0 * rng.dirichlet(np.full(5, 5.0))) @ v[:, :5].T
    pull = np.where(np.arange(30) < 5, 0.5, rng.uniform(0.0, 0.4, 30))
    return fw.sets.NuclearBall(3.0, shape=(30, 40)), p + (u * pull) @ v.T, p, 0.05


def spectral(rng: np.random.Generator) -> tuple[fw.sets.ConvexSet, np.ndarray, np.ndarray, float]:
    """The set, y, the optimum and σ."""
    u, v = bases(rng)
    p = (u * np.where(np.arange(30) < 10, 1.0, rng.uniform(0.0, 0.8, 30))) @ v.T
    pull = np.where(np.arange(30) < 10, rng.uniform(0.2, 1.0, 30), 0.0)
    return fw.sets.SpectralBall(1.0, shape=(30, 40)), p + (u * pull) @ v.T, p, 0.2


PROBLEMS = {"Birkhoff": birkhoff, "Polytope": polytope, "NuclearBall": nuclear, "SpectralBall": spectral}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--schedules", default="tuned,auto")
    asked = parser.parse_args()
    for name in asked.sets:
        constraint, target, p, sigma = PROBLEMS[name](np.random.default_rng(1))
        objective, best = noisy(target, sigma), np.sum((p - target) ** 2) / 2
        for schedule in asked.schedules.split(","):
            errors, calls = {}, {}
            for oracle in ("exact", "lazy"):
                begun = time.process_time()
                runs = fw.minimize(
                    objective, constraint, steps=asked.steps, replicates=asked.seeds, key=KEY, evaluate=False,
                    algorithm=fw.one_sfw(schedule=schedule, oracle=oracle),
                )  # fmt: skip
                x = np.asarray(runs.x, float).reshape(asked.seeds, *target.shape)
                found = np.sum((x - target) ** 2, tuple(range(1, x.ndim))) / 2 - best
                errors[oracle], calls[oracle] = found.mean(), runs.lmo_calls.mean()
                print(
                    f"{name}, {schedule}, {oracle}: F − F* {found.mean():.3e}, {calls[oracle]:,.0f} calls, "
                    f"{time.process_time() - begun:.1f} s of CPU",
                    flush=True,
                )
            print(
                f"{name}, {schedule}: {calls['exact'] / calls['lazy']:.1f} times fewer calls at "
                f"{errors['lazy'] / errors['exact']:.2f} times the error",
                flush=True,
            )


if __name__ == "__main__":
    main()
