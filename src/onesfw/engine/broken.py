"""Runs of one program that broke down: each stays at its last finite state, while the others go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.trees import Array, HostArray, Tree

SEARCHES = 8  # bad steps that are looked for one by one; then a run goes back to where its chunk began


@dataclass(frozen=True)
class Broken:
    """Which runs became NaN or infinite, after how many steps, and where they were then."""

    which: HostArray
    """of all runs; a single value where there is one without an axis"""
    steps: HostArray
    x: Tree

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Self:
        """So many runs, all of them finite."""
        return cls(np.zeros(shape, bool), np.zeros(shape, np.int64), ())

    @property
    def some(self) -> bool:
        """Whether there are any."""
        return bool(self.which.any())

    @property
    def all(self) -> bool:
        """Whether no run is left."""
        return bool(self.which.all())

    @property
    def searched(self) -> bool:
        """Whether enough bad steps have been looked for."""
        return len(np.unique(self.steps[self.which])) >= SEARCHES

    @property
    def failed(self) -> list[int | None]:
        """Of each run the step at which it broke."""
        runs = zip(np.atleast_1d(self.which), np.atleast_1d(self.steps), strict=True)
        return [int(steps) + 1 if broke else None for broke, steps in runs]

    def joined(self, which: HostArray, steps: int, x: Tree) -> Broken:
        """With other runs, which broke after so many steps; x is where all are."""
        return Broken(self.which | which, np.where(which, steps, self.steps), x)

    def kept(self, old: Tree, new: Tree) -> Tree:
        """What is new of the runs that go on, and old of the others."""
        if not self.some:
            return new

        def either(before: Array, after: Array) -> Array:
            which = self.which.reshape(self.which.shape + (1,) * (jnp.ndim(after) - self.which.ndim))
            return jnp.where(which, jax.device_put(before, after.sharding), after)

        return jax.tree.map(either, old, new)
