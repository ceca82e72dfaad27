"""What tests of the loop share: logistic loss over five columns, and an expectation that is no finite sum."""

import jax
import jax.numpy as jnp
import numpy as np

import onesfw as fw
from onesfw.engine import devices, programs

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((60, 5)).astype(np.float32)
LABELS = np.where(ROWS @ np.arange(5) + RNG.standard_normal(60) > 0, 1, -1).astype(np.float32)
BALL = fw.sets.L1Ball(2.0, shape=5)


def logistic(**options):
    return fw.FiniteSum(lambda x, row: jnp.logaddexp(0.0, -row[1] * (row[0] @ x)), (ROWS, LABELS), **options)


def noisy():
    """An oblivious expectation that is not a finite sum."""
    mu = jnp.array([0.5, 0.2, 0.1, 0.1, 0.1])
    return fw.Expectation(lambda x, z: jnp.sum((x - mu) ** 2) + z @ x, lambda key: 0.3 * jax.random.normal(key, (5,)))


def under_vmap(monkeypatch):
    """Replicates that go together are vectorised, as on an accelerator; a CPU would take one after the other."""
    for module in (devices, programs):
        monkeypatch.setattr(module, "in_turn", lambda: False)
