"""What the tests of `select` and of its certificates share: small functions and matroids, and their optimum."""

import itertools

import jax.numpy as jnp
import numpy as np

from onesfw import submodular as sm

N = 9
RNG = np.random.default_rng(0)
MATROIDS = {
    "uniform": sm.UniformMatroid(N, 3),
    "partition": sm.PartitionMatroid([0, 1, 2] * 3, 1),
    "laminar": sm.LaminarMatroid(N, [[0, 1, 2, 3], [0, 1], [5, 6]], [2, 1, 1]),
    "graphic": sm.GraphicMatroid([[0, 1], [1, 2], [2, 0], [2, 3], [3, 0], [1, 3], [0, 2], [3, 1], [3, 4]]),
}
GRAPH = RNG.integers(0, N, (16, 2))
FUNCTIONS = {
    "coverage": sm.Coverage(RNG.random((N, 14)) < 0.25, RNG.random(14)),
    "facility": sm.FacilityLocation(RNG.random((12, N)) ** 3),
    "features": sm.FeatureBased(RNG.random((N, 5)) ** 4),
    "logdet": sm.LogDet(np.cov(RNG.normal(size=(N, 4)))),
    "own": sm.SetFunction(lambda s: jnp.log1p(jnp.sum(s * jnp.arange(1.0, N + 1))), N),
    "influence": sm.Influence(np.vstack([GRAPH, np.stack([np.arange(N - 1), np.arange(1, N)], 1)]), 0.3),
}


def optimum(function, matroid):
    """The best value over all bases."""
    rank = matroid.rank
    sets = (s for s in itertools.combinations(range(function.n), rank) if matroid.independent(s))
    return max(function.value(list(s)) for s in sets)
