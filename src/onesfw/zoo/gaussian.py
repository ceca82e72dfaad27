"""F(x) = E_{z~N(x, s²I)}[½‖x − a‖² + ½‖z − b‖²]: the samples depend on x, and so does the integrand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.objectives import NonOblivious
from onesfw.sets import Simplex
from onesfw.trees import Array, Floats
from onesfw.zoo.base import Optimum, Problem
from onesfw.zoo.optima import convex_optimum, project_to_simplex, simplex_gap

SCALE = 0.5
DIMENSION = 10


def gaussian(name: str, summary: str) -> Problem:
    """E[½‖x − a‖² + ½‖z − b‖²], z ~ N(x, s²I), over {x ≥ 0, Σx = 1}: d = 10, s = 0.5, no seed.

    a = e_1 and b = e_2, the first two corners. F(x) = ½‖x − a‖² + ½‖x − b‖² + ds²/2 = ‖x − (a + b)/2‖² + constant: the
    optimum is (e_1 + e_2)/2, half way. Half of ∇F comes from the integrand, half from the score ∇log p = (z − x)/s²; a
    method that drops the score is drawn to a alone. Nothing is rescaled.
    """
    d, s = DIMENSION, SCALE
    a, b = np.eye(d)[0], np.eye(d)[1]

    def sample(key: Array, x: Array) -> Array:
        return x + s * jax.random.normal(key, (d,), x.dtype)

    def log_prob(z: Array, x: Array) -> Array:
        return -jnp.sum((z - x) ** 2) / (2 * s**2)  # up to a constant, which no weight and no score sees

    def integrand(x: Array, z: Array) -> Array:
        near, far = jnp.asarray(a, x.dtype), jnp.asarray(b, x.dtype)
        return jnp.sum((x - near) ** 2) / 2 + jnp.sum((z - far) ** 2) / 2

    def value(x: Floats) -> Floats:
        found: Floats = np.sum((x - a) ** 2 + (x - b) ** 2, -1) / 2 + d * s**2 / 2
        return found

    def gradient(x: Floats) -> Floats:
        found: Floats = 2 * x - a - b
        return found

    def solve() -> Optimum:
        return convex_optimum(value, gradient, project_to_simplex, simplex_gap, 2.0, np.full(d, 1 / d))

    return Problem(
        name=name,
        summary=summary,
        objective=NonOblivious(integrand, sample, log_prob),
        constraint=Simplex(shape=d),
        value=value,
        gradient=gradient,
        solve=solve,
    )
