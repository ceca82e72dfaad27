"""What an objective is to the library: draws of randomness, and what one draw says about F near a point."""

from __future__ import annotations

import abc
from collections.abc import Set
from typing import ClassVar

import equinox as eqx

from onesfw.objectives.surrogates import Surrogate
from onesfw.trees import Array, Tree


class Objective(eqx.Module):
    """F(x) = E_{z~p(z;x)}[F̃(x; z)]: what a new kind of objective subclasses.

    Example:
        >>> import jax.numpy as jnp
        >>> from onesfw.objectives import Expectation, Objective
        >>> objective = Expectation(lambda x, z: jnp.sum((x - z) ** 2), lambda key: jnp.zeros(2))
        >>> isinstance(objective, Objective), sorted(objective.offers)[0]
        (True, 'samples whose distribution does not depend on x')
    """

    domain: ClassVar[tuple[float, float] | None] = None
    """Between which two numbers every entry of x must lie, where F has no meaning elsewhere."""

    @property
    @abc.abstractmethod
    def offers(self) -> Set[str]:
        """Which of the names in `capabilities` this objective has."""

    @abc.abstractmethod
    def draw(self, key: Array, number: Array) -> Tree:
        """The part of sample `number` (0, 1, 2, …) that does not depend on x: a pure function of both arguments."""

    @abc.abstractmethod
    def at(self, draw: Tree, point: Tree, baseline: Array) -> Surrogate:
        """The surrogate h that `draw` gives when sampled at `point`."""

    def present(self, x: Tree, constraint: object) -> Tree:
        """x as a result shows it, where that is something else than the loop's."""
        return x

    @abc.abstractmethod
    def check(self, like: Tree, samples: int) -> None:
        """Raise ValueError where the functions do not fit x's shapes, or `samples` draws are more than there are."""
