"""A small logistic regression over an l1 ball, its gradient and its oracle, in NumPy and JAX."""

import jax.numpy as jnp
import numpy as np


def logistic_rows(n=40, d=6, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    return rows, np.where(rows @ rng.standard_normal(d) > 0, 1.0, -1.0)


def loss(x, row):
    return jnp.logaddexp(0.0, -row[1] * (row[0] @ x))


def gradient(x, a, y):
    return -y / (1 + np.exp(y * (a @ x))) * a


def l1_vertex(d, radius):
    v = np.zeros_like(d)
    i = np.argmax(np.abs(d))
    v[i] = -radius if d[i] > 0 else radius
    return v
