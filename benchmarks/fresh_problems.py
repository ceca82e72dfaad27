"""Five quadratics over sets that the zoo's convex problems do not have, each with an optimum known by construction.

F(x) = ½ x'Qx + c'x with the zoo's noise in Q and c. A point p of K and an m with ⟨m, v − p⟩ ≥ 0 for all v in K are
chosen; c = m − Qp makes ∇F(p) = m, and p the optimum. All are drawn anew from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import fixed_rules as fixed
import jax.numpy as jnp
import numpy as np

import onesfw as fw
from onesfw.zoo.quadratics import definite, noisy_quadratic

Floats = np.ndarray


@dataclass(frozen=True)
class Fresh:
    """What the library is given, and what the numba loop is."""

    objective: fw.Expectation
    constraint: fw.sets.ConvexSet
    value: Callable[[Floats], Floats]
    best: float
    arguments: tuple[object, ...]


def quadratic(
    rng: np.random.Generator, constraint: fw.sets.ConvexSet, p: Floats, m: Floats, start: Floats, *kernel: object
) -> Fresh:
    """The quadratic whose optimum over K is p with the gradient m there."""
    d, tau, sigma = p.size, 1.0, 1.0
    matrix = definite(rng, d, 1.0, 4.0)
    linear = m - matrix @ p
    flat = noisy_quadratic(matrix, linear, tau, sigma)
    shape = constraint.template()

    def as_vector(x: object) -> jnp.ndarray:
        return jnp.concatenate([jnp.ravel(leaf) for leaf in x]) if isinstance(x, tuple) else jnp.ravel(x)

    whole = isinstance(shape, tuple) and all(isinstance(n, int) for n in shape)
    objective = flat if whole and len(shape) == 1 else fw.Expectation(
        lambda x, z: flat.value(as_vector(x), z), flat.sample
    )  # fmt: skip

    def value(x: Floats) -> Floats:
        return np.sum(x * (x @ matrix / 2 + linear), -1)

    arguments = (fixed.QUADRATIC, matrix, linear, matrix - np.diag(np.diag(matrix)), tau, sigma, *kernel, start)
    return Fresh(objective, constraint, value, float(value(p)), arguments)


NONE = np.zeros((1, 1))


def l2_ball(rng: np.random.Generator) -> Fresh:
    """d = 20, r = 1, on the sphere."""
    p = rng.standard_normal(20)
    p /= np.linalg.norm(p)
    return quadratic(rng, fw.sets.L2Ball(1.0, shape=20), p, -0.5 * p, np.zeros(20), fixed.L2, 1.0, NONE, 0)


def box(rng: np.random.Generator) -> Fresh:
    """[−1, 1]^20, half of the entries at a bound."""
    p = rng.uniform(-0.8, 0.8, 20)
    p[:10] = np.sign(p[:10])
    m = np.where(np.arange(20) < 10, -np.sign(p) * rng.uniform(0.2, 1.0, 20), 0.0)
    return quadratic(rng, fw.sets.Box(-1.0, 1.0, shape=20), p, m, np.zeros(20), fixed.BOX, 1.0, NONE, 0)


def birkhoff(rng: np.random.Generator) -> Fresh:
    """5 × 5, a mean of three permutations."""
    every = np.array([np.eye(5)[list(order)].ravel() for order in permutations(range(5))])
    p = rng.dirichlet(np.ones(3)) @ every[rng.choice(len(every), 3, replace=False)]
    m = np.where(p > 0, 0.0, rng.uniform(0.2, 1.0, 25))
    return quadratic(rng, fw.sets.Birkhoff(5), p, m, np.full(25, 0.2), fixed.VERTICES, 1.0, every, 0)


def nuclear_ball(rng: np.random.Generator) -> Fresh:
    """5 × 6, r = 2, rank 2."""
    u, v = np.linalg.qr(rng.standard_normal((5, 5)))[0], np.linalg.qr(rng.standard_normal((6, 6)))[0]
    p = (u[:, :2] * [1.3, 0.7]) @ v[:, :2].T
    m = -0.5 * (u * [1.0, 1.0, 0.5, 0.3, 0.0]) @ v[:, :5].T
    return quadratic(
        rng, fw.sets.NuclearBall(2.0, shape=(5, 6)), p.ravel(), m.ravel(), np.zeros(30), fixed.NUCLEAR, 2.0, NONE, 5
    )


def product(rng: np.random.Generator) -> Fresh:
    """An l1 ball of r = 2 in 12 coordinates times a simplex in 8."""
    p = np.zeros(20)
    p[:4] = 2.0 * rng.dirichlet(np.ones(4)) * np.array([1, -1, 1, -1])
    p[12:15] = rng.dirichlet(np.ones(3))
    m = np.where(p != 0, -0.5 * np.sign(p), rng.uniform(-0.4, 0.4, 20))
    m[12:] = np.where(p[12:] > 0, 0.0, rng.uniform(0.2, 1.0, 8))
    sets = fw.sets.Product((fw.sets.L1Ball(2.0, shape=12), fw.sets.Simplex(1.0, shape=8)))
    start = np.concatenate([np.zeros(12), np.full(8, 1 / 8)])
    return quadratic(rng, sets, p, m, start, fixed.PRODUCT, 2.0, NONE, 12)


MAKERS = {"L2Ball": l2_ball, "Box": box, "Birkhoff": birkhoff, "NuclearBall": nuclear_ball, "Product": product}


def make(name: str, seed: int) -> Fresh:
    """A problem by the name of its set."""
    return MAKERS[name](np.random.default_rng([seed, list(MAKERS).index(name)]))
