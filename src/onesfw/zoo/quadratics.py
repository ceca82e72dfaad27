"""F(x) = ½ x'Qx + c'x, of which each sample shows a Q and a c with noise in them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.algorithms import NONCONVEX
from onesfw.objectives import Expectation
from onesfw.sets import Box, Simplex
from onesfw.trees import Array, Floats
from onesfw.zoo.base import Optimum, Problem
from onesfw.zoo.optima import convex_optimum, project_to_simplex, quadratic_optimum, simplex_gap


def noisy_quadratic(matrix: Floats, linear: Floats, tau: float, sigma: float) -> Expectation:
    """F̃(x; w, z) = ½ x'Q(w)x + (c + σz)'x with Q(w)_ij = Q_ij (1 + τ w_i w_j) off the diagonal, Q(w)_ii = Q_ii.

    w holds independent signs, z is N(0, I): E Q(w) = Q, and the noise of the gradient, τ times the off-diagonal part
    of (ww' ∘ Q)x plus σz, depends on x. Only an estimator that evaluates one sample at two points removes that part
    from ∇F(x_t) − ∇F(x_{t−1}). For τ ≤ 1 every Q(w) has the signs of Q.
    """
    d = linear.size
    assert d <= 32, "the signs are the bits of one word"
    off_diagonal = matrix - np.diag(np.diag(matrix))

    def sample(key: Array) -> tuple[Array, Array]:
        for_signs, for_normals = jax.random.split(key)
        bits = jax.random.bits(for_signs, (), jnp.uint32) >> jnp.arange(d, dtype=jnp.uint32)  # one hash, not d
        return (bits & 1).astype(bool), jax.random.normal(for_normals, (d,))

    def value(x: Array, draw: tuple[Array, Array]) -> Array:
        q, q_off, c = (jnp.asarray(a, x.dtype) for a in (matrix, off_diagonal, linear))
        flipped = jnp.where(draw[0], x, -x)
        return x @ q @ x / 2 + tau / 2 * (flipped @ q_off @ flipped) + (c + sigma * draw[1].astype(x.dtype)) @ x

    def grad(x: Array, draw: tuple[Array, Array]) -> Array:
        q, q_off, c = (jnp.asarray(a, x.dtype) for a in (matrix, off_diagonal, linear))
        pull = q_off @ jnp.where(draw[0], x, -x)
        return q @ x + tau * jnp.where(draw[0], pull, -pull) + c + sigma * draw[1].astype(x.dtype)

    return Expectation(value, sample, grad=grad)


def exact(matrix: Floats, linear: Floats) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """F and ∇F in NumPy, for a point or for points in rows; Q is symmetric."""

    def value(x: Floats) -> Floats:
        found: Floats = np.sum(x * (x @ matrix / 2 + linear), -1)
        return found

    return value, lambda x: x @ matrix + linear


def interior(name: str, summary: str, sigma: float = 1.0) -> Problem:
    """½ x'Qx + c'x over {x ≥ 0, Σx = 1}: d = 20, `numpy.random.default_rng(31)`, τ = 1, σ = 1, optimum inside.

    Q = U diag(λ) U', λ from 1 to 4 in equal steps, U the orthogonal factor of a Gaussian matrix; c = −Qp with
    p = (0.5 + e)/Σ(0.5 + e), e uniform on [0, 1]: p has positive entries that add up to 1 and ∇F(p) = 0, so p is the
    optimum. Noise as in `noisy_quadratic`: in the off-diagonal of Q and in c. Nothing is rescaled.
    """
    rng = np.random.default_rng(31)
    matrix = definite(rng, 20, 1.0, 4.0)
    centre = 0.5 + rng.random(20)
    return over_simplex(name, summary, matrix, -matrix @ (centre / centre.sum()), tau=1.0, sigma=sigma)


def face(name: str, summary: str) -> Problem:
    """½ x'Qx + c'x over {x ≥ 0, Σx = 1}: d = 20, `numpy.random.default_rng(32)`, τ = 1, σ = 1, optimum on a face.

    Q = U diag(λ) U', λ from 1 to 4 in equal steps, U the orthogonal factor of a Gaussian matrix; c = m − Qp, where
    p ∝ (√7, √5, √3, √2, 0, …, 0) and m_i = 0 where p_i > 0, m_i uniform on [0.2, 1] elsewhere: then ∇F(p) = m, and p is
    the optimum by complementarity, with four entries that are not 0. They are irrational: with η = 1/t the iterates are
    means of vertices, and 40 steps can hit (0.4, 0.3, 0.2, 0.1) exactly. Noise as in `noisy_quadratic`: in the
    off-diagonal of Q and in c. Nothing is rescaled.
    """
    rng = np.random.default_rng(32)
    matrix = definite(rng, 20, 1.0, 4.0)
    corner = np.zeros(20)
    corner[:4] = np.sqrt([7.0, 5.0, 3.0, 2.0])
    corner /= corner.sum()
    slope = np.where(corner > 0, 0.0, rng.uniform(0.2, 1.0, 20))
    return over_simplex(name, summary, matrix, slope - matrix @ corner, tau=1.0, sigma=1.0)


def noisy(name: str, summary: str) -> Problem:
    """The quadratic of `quadratic-face` with twenty times its noise in c: τ = 1, σ = 20, the same optimum.

    The gradients at K differ by less than 10 and one sample's is off by about 20 in every coordinate: nearly all of the
    error is noise that has to be averaged away, hardly any of it drift.
    """
    quiet = face(name, summary)
    assert quiet.gradient is not None
    linear = quiet.gradient(np.zeros(20))
    return over_simplex(name, summary, quiet.gradient(np.eye(20)) - linear, linear, tau=1.0, sigma=20.0)


def definite(rng: np.random.Generator, d: int, least: float, most: float) -> Floats:
    """U diag(λ) U' with λ from `least` to `most` in equal steps and U the orthogonal factor of a Gaussian matrix."""
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    matrix = (basis * np.linspace(least, most, d)) @ basis.T
    found: Floats = (matrix + matrix.T) / 2
    return found


def over_simplex(name: str, summary: str, matrix: Floats, linear: Floats, tau: float, sigma: float) -> Problem:
    """A convex quadratic over the unit simplex."""
    d = linear.size
    value, gradient = exact(matrix, linear)

    def solve() -> Optimum:
        smoothness = float(np.linalg.eigvalsh(matrix)[-1])
        return convex_optimum(value, gradient, project_to_simplex, simplex_gap, smoothness, np.full(d, 1 / d))

    return Problem(
        name=name,
        summary=summary,
        objective=noisy_quadratic(matrix, linear, tau, sigma),
        constraint=Simplex(shape=d),
        value=value,
        gradient=gradient,
        solve=solve,
    )


def indefinite(name: str, summary: str) -> Problem:
    """½ x'Qx + c'x over the box [−1, 1]^d: d = 15, `numpy.random.default_rng(33)`, τ = 1, σ = 1, not convex.

    Q = (G + G')/√(2d) + I/2 with G standard Gaussian: eigenvalues of both signs; c = 0.5·N(0, I). Noise as in
    `noisy_quadratic`: in the off-diagonal of Q and in c. Nothing is rescaled. The optimum is the global one, proven by
    a mixed-integer program; some of its coordinates lie inside the box. one_sfw promises a stationary point only.
    """
    rng = np.random.default_rng(33)
    d = 15
    gaussian = rng.standard_normal((d, d))
    matrix, linear = (gaussian + gaussian.T) / (2 * d) ** 0.5 + np.eye(d) / 2, 0.5 * rng.standard_normal(d)
    value, gradient = exact(matrix, linear)
    return Problem(
        name=name,
        summary=summary,
        objective=noisy_quadratic(matrix, linear, tau=1.0, sigma=1.0),
        constraint=Box(-1.0, 1.0, shape=d),
        setting=NONCONVEX,
        value=value,
        gradient=gradient,
        solve=lambda: quadratic_optimum(matrix, linear, np.full(d, -1.0), np.ones(d)),
    )
