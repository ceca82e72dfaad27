"""Norm balls around the origin: {x : ‖x‖_p ≤ r}."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from onesfw.sets.base import CentredSet
from onesfw.sets.parameters import Parameter, Shape, as_shape, positive, within
from onesfw.sets.simplices import one_hot_at_max, project_simplex
from onesfw.trees import Array


def safe_norm(x: Array) -> Array:
    """‖x‖₂ without squares that under- or overflow."""
    largest = jnp.max(jnp.abs(x))
    scale = jnp.where(largest > 0, largest, 1.0)
    return scale * jnp.sqrt(jnp.sum((x / scale) ** 2))


class L1Ball(CentredSet):
    """{x : ‖x‖₁ ≤ radius}.

    lmo(d) = −radius · sign(d_i) e_i, i the first coordinate with the largest |d_i|. O(d).

    Args:
        radius: of the ball, positive.
        shape: of x, an integer for a vector; None takes it from x0.

    Raises:
        TypeError: where radius is no number.
        ValueError: where radius is not positive and finite, or shape holds no positive integers.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> ball = fw.sets.L1Ball(2.0, shape=3)
        >>> ball.lmo(jnp.array([0.5, -3.0, 1.0])).tolist()
        [0.0, 2.0, 0.0]
        >>> ball.diameter
        4.0
    """

    bound: Parameter
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, radius: float, shape: int | Shape | None = None) -> None:
        self.bound = positive(radius, "L1Ball", "radius")
        self.shape = as_shape(shape, "L1Ball")

    def lmo_vector(self, d: Array) -> Array:
        return one_hot_at_max(jnp.abs(d), jnp.where(d > 0, -self.bound, self.bound))

    def contains_vector(self, x: Array, tol: float) -> Array:
        return within(jnp.sum(jnp.abs(x)), self.bound, tol)

    def project_vector(self, y: Array) -> Array:
        size = jnp.abs(y)
        shrunk = jnp.sign(y) * project_simplex(size, self.bound)
        return jnp.where(jnp.sum(size) <= self.bound, y, shrunk)

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = radius."""
        return float(self.bound)


class L2Ball(CentredSet):
    """{x : ‖x‖₂ ≤ radius}.

    lmo(d) = −radius · d/‖d‖₂, and −radius · e_1 for d = 0. O(d).

    Args:
        radius: of the ball, positive.
        shape: of x, an integer for a vector; None takes it from x0.

    Raises:
        TypeError: where radius is no number.
        ValueError: where radius is not positive and finite, or shape holds no positive integers.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> ball = fw.sets.L2Ball(5.0)
        >>> ball.lmo(jnp.array([3.0, 4.0])).tolist()
        [-3.0, -4.0]
        >>> ball.project(jnp.array([30.0, 40.0])).tolist()
        [3.0, 4.0]
    """

    bound: Parameter
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, radius: float, shape: int | Shape | None = None) -> None:
        self.bound = positive(radius, "L2Ball", "radius")
        self.shape = as_shape(shape, "L2Ball")

    def lmo_vector(self, d: Array) -> Array:
        # Dividing by the largest entry first keeps the squares from under- and overflowing.
        largest = jnp.max(jnp.abs(d))
        first = (lax.iota(jnp.int32, d.size) == 0).astype(d.dtype)
        direction = jnp.where(largest > 0, d / jnp.where(largest > 0, largest, 1.0), first)
        return -self.bound * direction / jnp.sqrt(jnp.sum(direction * direction))

    def contains_vector(self, x: Array, tol: float) -> Array:
        return within(safe_norm(x), self.bound, tol)

    def project_vector(self, y: Array) -> Array:
        size = safe_norm(y)
        return y * jnp.where(size > self.bound, self.bound / size, 1.0)

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = radius."""
        return float(self.bound)


class LInfBall(CentredSet):
    """{x : |x_i| ≤ radius for every i}.

    lmo(d) = −radius · sign(d), +radius where d_i = 0. O(d).

    Args:
        radius: the largest |x_i|, positive.
        shape: of x, an integer for a vector; None takes it from x0.

    Raises:
        TypeError: where radius is no number.
        ValueError: where radius is not positive and finite, or shape holds no positive integers.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> fw.sets.LInfBall(1.0).lmo(jnp.array([0.5, -3.0])).tolist()
        [-1.0, 1.0]
    """

    bound: Parameter
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, radius: float, shape: int | Shape | None = None) -> None:
        self.bound = positive(radius, "LInfBall", "radius")
        self.shape = as_shape(shape, "LInfBall")

    def lmo_vector(self, d: Array) -> Array:
        return jnp.where(d > 0, -self.bound, self.bound)

    def contains_vector(self, x: Array, tol: float) -> Array:
        return within(jnp.max(jnp.abs(x)), self.bound, tol)

    def project_vector(self, y: Array) -> Array:
        return jnp.clip(y, -self.bound, self.bound)

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = radius · √d."""
        return float(self.bound) * self.dimension**0.5


class LpBall(CentredSet):
    """{x : ‖x‖_p ≤ radius}, 1 < p < ∞.

    lmo(d) = −radius · sign(d) |d|^(q−1) / ‖ |d|^(q−1) ‖_p with 1/p + 1/q = 1, equality in Hölder's inequality, and
    −radius · e_1 for d = 0. O(d).

    Args:
        p: above 1 and finite.
        radius: of the ball, positive.
        shape: of x, an integer for a vector; None takes it from x0.

    Raises:
        TypeError: where p or radius is no number.
        ValueError: where p is not above 1, radius not positive, or one of them not finite.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> ball = fw.sets.LpBall(3, 1.0, shape=2)
        >>> bool(ball.contains(jnp.array([0.7, 0.7]))), bool(ball.contains(jnp.array([0.9, 0.9])))
        (True, False)
    """

    p: Parameter
    exponent: Parameter
    bound: Parameter
    shape: Shape | None = eqx.field(static=True)

    def __init__(self, p: float, radius: float, shape: int | Shape | None = None) -> None:
        self.p = positive(p, "LpBall", "p")
        if self.p <= 1:
            raise ValueError(
                f"LpBall: p must be above 1 and finite, got {p!r}: use L1Ball for 1, LInfBall for infinity"
            )
        self.exponent = 1 / (self.p - 1)  # q − 1; in float64, for p − 1 may be small
        self.bound = positive(radius, "LpBall", "radius")
        self.shape = as_shape(shape, "LpBall")

    def lmo_vector(self, d: Array) -> Array:
        # With the largest entry at 1, powers can only underflow, to where they do not matter.
        largest = jnp.max(jnp.abs(d))
        first = (lax.iota(jnp.int32, d.size) == 0).astype(d.dtype)
        direction = jnp.where(largest > 0, d / jnp.where(largest > 0, largest, 1.0), first)
        power = jnp.abs(direction) ** self.exponent
        return -self.bound * jnp.sign(direction) * power / jnp.sum(power**self.p) ** (1 / self.p)

    def contains_vector(self, x: Array, tol: float) -> Array:
        largest = jnp.max(jnp.abs(x))
        size = jnp.abs(x) / jnp.where(largest > 0, largest, 1.0)
        return within(largest * jnp.sum(size**self.p) ** (1 / self.p), self.bound, tol)

    @property
    def radius(self) -> float:
        """max ‖x‖₂ = radius for p ≤ 2, radius · d^(1/2 − 1/p) beyond."""
        return float(self.bound) * (self.dimension ** (0.5 - 1 / float(self.p)) if self.p > 2 else 1.0)
