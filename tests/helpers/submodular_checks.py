"""Small set functions with their exact values, and what tests of estimates have in common."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from onesfw import submodular

N = 7


def coverage(rng, n=N):
    return submodular.Coverage(rng.random((n, 9)) < 0.35, rng.random(9) + 0.1)


def facility(rng, n=N):
    return submodular.FacilityLocation(rng.random((6, n)), weights=rng.random(6))


def sparse_facility(rng, n=N):
    return submodular.FacilityLocation(sp.random(8, n, 0.5, format="csr", random_state=1, data_rvs=rng.random))


def featured(concave):
    return lambda rng, n=N: submodular.FeatureBased(rng.random((n, 5)) * (rng.random((n, 5)) < 0.6), concave)


def logdet(rng, n=N):
    points = rng.normal(size=(n, 4))
    return submodular.LogDet(points @ points.T)


def custom(rng, n=N):
    weights = jnp.asarray(rng.random((4, n)), jnp.float32)
    return submodular.SetFunction(lambda s: jnp.sum(jnp.log1p(weights @ s)), n)


FUNCTIONS = {
    "coverage": coverage,
    "facility": facility,
    "sparse facility": sparse_facility,
    "sqrt": featured("sqrt"),
    "log1p": featured("log1p"),
    "saturated": featured("saturated"),
    "logdet": logdet,
    "custom": custom,
}
CLOSED = ("coverage", "facility", "sparse facility")


def make(name, seed=0, n=N):
    return FUNCTIONS[name](np.random.default_rng(seed), n)


@dataclass
class Exact:
    """A set function known by its value on every set, as `enumerate_extension` asks for it."""

    n: int
    table: dict[tuple[int, ...], float]

    def value(self, mask):
        return self.table[tuple(np.flatnonzero(mask).tolist())]


def subsets(n):
    return [s for r in range(n + 1) for s in itertools.combinations(range(n), r)]


ARCS = [[0, 1], [1, 2], [0, 2], [2, 3], [4, 1]]
CHANCES = [0.3, 0.5, 0.2, 0.7, 0.6]


def exact_spread(arcs, chances, seeds, n):
    """E(nodes reached), over all 2^arcs graphs."""
    total = 0.0
    for state in itertools.product([0, 1], repeat=len(arcs)):
        weight = np.prod(np.where(state, chances, 1 - np.asarray(chances)))
        reached = set(seeds)
        for _ in range(n):
            reached |= {v for (u, v), o in zip(arcs, state, strict=True) if o and u in reached}
        total += weight * len(reached)
    return total


def influence():
    return submodular.Influence(ARCS, CHANCES, directed=True)


def exact_influence():
    return Exact(5, {s: exact_spread(ARCS, CHANCES, s, 5) for s in subsets(5)})


SCENARIOS = np.random.default_rng(8).random((3, 5))


def stochastic():
    """f_ω(S) = √(Σ_{i∈S} c_ωi), ω one of three scenarios with equal chances."""
    costs = jnp.asarray(SCENARIOS, jnp.float32)
    return submodular.SetFunction(
        lambda s, omega: jnp.sqrt(costs[omega] @ s), 5, lambda key: jax.random.randint(key, (), 0, 3)
    )


def exact_stochastic():
    return Exact(5, {s: float(np.mean(np.sqrt(SCENARIOS[:, list(s)].sum(1)))) for s in subsets(5)})


def estimated(name) -> tuple[Any, Any]:
    """A function and its exact values: the same thing where the function knows them."""
    if name == "influence":
        return influence(), exact_influence()
    if name == "stochastic":
        return stochastic(), exact_stochastic()
    function = make(name)
    return function, function


ESTIMATED = (*FUNCTIONS, "influence", "stochastic")


def points(rng, n=N):
    """Inside, on the boundary, and at both corners."""
    mixed = rng.random(n)
    mixed[0], mixed[1] = 0.0, 1.0
    return {"inside": rng.uniform(0.1, 0.9, n), "mixed": mixed, "zero": np.zeros(n), "one": np.ones(n)}


def assert_unbiased(samples, expected, scale, *, rare=False):
    """Within 5 standard errors entry by entry; entries without noise must agree up to rounding.

    Where everything is random, an entry without noise saw no event at all: of a mean m and sizes up to `scale` its
    variance is at most m · scale (`rare`).
    """
    samples = np.asarray(samples, np.float64)
    mean, variance = samples.mean(0), samples.var(0, ddof=1)
    if rare:
        variance = np.where(variance == 0, np.abs(expected) * scale, variance)
    error = np.sqrt(variance / len(samples))
    assert np.all(np.abs(mean - expected) <= 5 * error + 2e-5 * scale), (mean, expected, error)
