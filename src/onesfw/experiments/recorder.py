"""The iterates that a comparison looks at: a callback that keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import jax
import numpy as np

from onesfw.trees import Floats, Tree


@dataclass
class Recorder:
    """Keeps x after the steps at which a run pauses: seeds × pauses × d."""

    steps: Sequence[int]
    seeds: int
    points: dict[int, Floats] = field(default_factory=dict)

    def __call__(self, row: Mapping[str, Tree], x: Tree) -> None:
        """The callback; on an accelerator the replicates come together."""
        place = row["step"]
        if "replicate" in row:
            point = flat(x)
            store = self.points.setdefault(place, np.full((self.seeds, point.size), np.nan))
            store[row["replicate"]] = point
        else:
            leaves = [np.asarray(leaf).reshape(self.seeds, -1) for leaf in jax.tree.leaves(x)]
            self.points[place] = np.concatenate(leaves, 1)

    def array(self) -> Floats:
        """The points in the order of the steps."""
        return np.stack([self.points[step] for step in self.steps], 1)


def flat(x: Tree) -> Floats:
    """A point as one vector."""
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(x)])
