"""Objectives whose samples depend on x, one of each kind of z."""

import jax
import jax.numpy as jnp

import onesfw as fw


def gaussian(d=4, s=0.7):
    """z ~ N(x, s²I) with a value that depends on x and z."""
    return fw.NonOblivious(
        lambda x, z: jnp.sum(jnp.cos(z) * x**2) + z @ z,
        lambda key, x: x + s * jax.random.normal(key, x.shape),
        lambda z, x: -jnp.sum((z - x) ** 2) / (2 * s**2),
    )


def bernoulli(d=4):
    """z_i ~ Bernoulli(x_i)."""
    w = jnp.linspace(1.0, 2.0, d)
    return fw.NonOblivious(
        lambda x, z: (1 - jnp.prod(1 - 0.7 * z)) + w @ (z * x),
        lambda key, x: jax.random.bernoulli(key, x).astype(x.dtype),
        lambda z, x: jnp.sum(z * jnp.log(x) + (1 - z) * jnp.log1p(-x)),
    )


def categorical(d=4):
    """z ~ categorical(x) on d values, x normalised by its sum."""
    w = jnp.linspace(-1.0, 2.0, d)
    return fw.NonOblivious(
        lambda x, z: w[z] * (1 + x[z] ** 2),
        lambda key, x: jax.random.categorical(key, jnp.log(x)),
        lambda z, x: jnp.log(x[z]) - jnp.log(jnp.sum(x)),
    )
