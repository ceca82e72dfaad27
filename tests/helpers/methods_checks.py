"""What the tests of methods in the loop share: a finite sum, an expectation, and samples that depend on x."""

import jax
import jax.numpy as jnp
import numpy as np

import onesfw as fw

RNG = np.random.default_rng(0)
N, D = 60, 5
ROWS = RNG.standard_normal((N, D)).astype(np.float32)
LABELS = np.where(ROWS @ np.arange(D) + RNG.standard_normal(N) > 0, 1, -1).astype(np.float32)
BALL = fw.sets.L1Ball(2.0, shape=D)


def logistic(**options):
    return fw.FiniteSum(lambda x, row: jnp.logaddexp(0.0, -row[1] * (row[0] @ x)), (ROWS, LABELS), **options)


def noisy():
    """An oblivious expectation that is not a finite sum."""
    mu = jnp.array([0.5, 0.2, 0.1, 0.1, 0.1])
    return fw.Expectation(lambda x, z: jnp.sum((x - mu) ** 2) + z @ x, lambda key: 0.3 * jax.random.normal(key, (D,)))


def moving():
    """Samples that depend on x."""
    return fw.NonOblivious(
        lambda x, z: jnp.sum((z - 0.3) ** 2),
        lambda key, x: x + 0.5 * jax.random.normal(key, x.shape),
        lambda z, x: -2 * jnp.sum((z - x) ** 2),
    )
