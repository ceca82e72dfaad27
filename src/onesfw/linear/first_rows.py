"""The first rows of a stream that comes in calls: they wait until there are enough to take the columns' scales from."""

from __future__ import annotations

from copy import deepcopy

from onesfw.linear.examples import Examples
from onesfw.linear.scaling import Scale, chosen_scales
from onesfw.linear.stream_sample import Sample
from onesfw.trees import HostArray

ENOUGH = 1_000  # rows, from which scales are taken for good: however the stream was cut, they are the same ones
FEWEST = 20  # rows, below which nothing is said of scales


class FirstRows:
    """Rows that wait for others.

    Args:
        scale: whether columns are divided: "auto" where their scales differ by more than 100, or True.
    """

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.pieces: list[Examples] = []

    @property
    def complete(self) -> bool:
        """Whether there are enough."""
        return sum(piece.size for piece in self.pieces) >= ENOUGH

    def add(self, data: Examples) -> None:
        """Take in the next rows, as copies where they have to wait: their owner may change them."""
        self.pieces.append(data)
        if not self.complete:
            self.pieces[-1] = deepcopy(data)

    def gathered(self, sample: Sample) -> tuple[Examples, HostArray | None]:
        """All of them, and what their columns are divided by."""
        rows = self.pieces[0] if len(self.pieces) == 1 else sample.gathered(self.pieces)
        first = sample.as_examples(rows.matrix[:ENOUGH], rows.targets[:ENOUGH], rows.weights[:ENOUGH])
        return rows, chosen_scales(first, self.scale) if rows.size >= FEWEST else None
