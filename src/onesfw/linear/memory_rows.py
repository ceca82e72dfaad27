"""Rows in memory as the loop over passes wants them."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from onesfw.linear.examples import Examples
from onesfw.linear.pieces import Piece, Progress
from onesfw.trees import HostArray

STEPS_PER_CHECK = 10_000  # where a pass is shorter, several are made between two looks at the gap


class Memory:
    """Rows in memory: each pass shuffled; several passes a piece where they are short."""

    def __init__(self, data: Examples, seed: int, steps: int, *, independent: bool = False) -> None:
        self.data, self.left, self.independent = data, steps, independent
        self.rng = np.random.default_rng(seed)
        self.passes_per_piece = -(-STEPS_PER_CHECK // data.size)
        self.turns = -(-steps // (self.passes_per_piece * data.size))

    def pieces(self, progress: Progress, stop: Callable[[], bool]) -> Generator[Piece, None, None]:
        """One piece."""
        independent = self.independent and progress.sweep > 0
        order = draw_order(self.rng, self.data.size, self.passes_per_piece, independent)[: self.left]
        self.left -= len(order)
        yield Piece(self.data, order)

    def skipped(self) -> int:
        """None."""
        return 0


def draw_order(rng: np.random.Generator, rows: int, passes: int, independent: bool) -> HostArray:
    """The rows of some passes: each pass a permutation, or independent draws.

    SAG needs each row once to fill its table and independent rows after that: with a new permutation for every pass it
    oscillates. The one-sample gradient does better with permutations throughout.
    """
    if independent:
        return rng.integers(0, rows, rows * passes)
    if passes == 1:
        return rng.permutation(rows)
    return rng.permuted(np.tile(np.arange(rows), (passes, 1)), axis=1).ravel()
