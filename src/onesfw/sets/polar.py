"""The polar factor UVᵀ of a matrix UΣVᵀ, by matrix products that stop on a bound of the error."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from onesfw.sets.lanczos import largest_eigenvector
from onesfw.trees import Array

LANCZOS_ACCURACY, MARGIN = 1e-3, 1.05  # of σ₁: the iteration needs singular values below 1, and turns those above it
MOST_ITERATIONS = 80  # never reached: 1e-30 needs 75


def product(a: Array, b: Array) -> Array:
    """ab in the full precision of its dtype; accelerators otherwise keep ten bits of float32, an error of 1e-2 here."""
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def polar_factor(d: Array, start: Array, accuracy: Array) -> tuple[Array, Array]:
    """(X, v): X with σ₁(X) ≤ 1 and ⟨d, X⟩ ≥ (1 − accuracy) Σσ_i(d); v the leading right singular vector, for `start`.

    d is not 0 and has no more columns than rows. Cubic Newton-Schulz iterations X ← αX(3 − α²XᵀX)/2 with
    α² = 3/(1 + l + l²), which map singular values from [l, 1] into [l', 1], l' as large as a cubic can have it (Chen
    and Chow 2014). Those that start below l stay between 0 and 1. They are worth at most n l σ₁ of the nuclear norm,
    which is at least ‖d‖_F²/σ₁: l = accuracy · ‖d‖_F²/(2nσ₁²) makes that half of the error allowed.
    """
    right = largest_eigenvector(lambda v: (d @ v) @ d, start, jnp.asarray(2 * LANCZOS_ACCURACY, d.dtype))
    largest = jnp.linalg.norm(d @ right)
    scale = MARGIN * largest
    error = jnp.maximum(accuracy, 16 * jnp.finfo(d.dtype).eps) / 2
    spread = jnp.sum((d / scale) ** 2) / d.shape[1]
    least = jnp.clip(error * spread, jnp.finfo(d.dtype).tiny, 1.0)

    def iterate(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, least, count = state
        alpha = jnp.sqrt(3 / (1 + least + least * least))
        x = alpha / 2 * (3 * x - alpha * alpha * product(x, product(x.T, x)))
        return x, alpha * least * (3 - (alpha * least) ** 2) / 2, count + 1

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        return (state[1] < 1 - error) & (state[2] < MOST_ITERATIONS)

    return lax.while_loop(unfinished, iterate, (d / scale, least, jnp.asarray(0)))[0], right
