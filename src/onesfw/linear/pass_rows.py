"""Rows as the loop over passes takes them: the pieces of a pass, how far a run has come with them, rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from onesfw.data.batch import START, Position
from onesfw.linear.examples import Examples
from onesfw.trees import HostArray

STEPS_PER_CHECK = 10_000  # where a pass is shorter, several are made between two looks at the gap


class Piece(NamedTuple):
    """Some rows of a pass, and the order in which they are learnt."""

    data: Examples
    order: HostArray
    end: Position = START
    """Where the source can be read on after it."""
    proof: str = ""
    """For a source that cannot be read again: a hash of all that came before `end`."""
    nbytes: int = 0
    """What the rows took when they were read."""


@dataclass
class Progress:
    """How far a run has come: whole passes, and in the present one pieces, the place they end at, rows and loss."""

    sweep: int = 0
    piece: int = 0
    position: Position = START
    proof: str = ""
    rows: int = 0
    loss: float = 0.0
    rows_of_pass: int = 0
    """Rows of the first pass, 0 until it is over."""
    first_rows: int = 0
    first_loss: float = 0.0
    first_bytes: int = 0
    skipped: int = 0
    seconds: float = 0.0
    pass_seconds: list[float] = field(default_factory=list)
    """Seconds of the passes that are over."""

    def learnt(self, piece: Piece, loss: float) -> None:
        """Count a piece."""
        self.piece += 1
        self.position, self.proof = piece.end, piece.proof
        self.rows += len(piece.order)
        self.loss += loss
        if self.sweep == 0:
            self.first_rows, self.first_loss = self.rows, self.loss
            self.first_bytes += piece.nbytes

    def turn(self) -> None:
        """Begin the next pass."""
        self.pass_seconds.append(self.seconds - sum(self.pass_seconds))
        self.rows_of_pass = self.rows
        self.sweep, self.piece, self.rows, self.loss = self.sweep + 1, 0, 0, 0.0
        self.position, self.proof = START, ""

    @property
    def sound(self) -> bool:
        """Whether every field is of its kind, as it need not be in a file."""
        counts = (
            self.sweep, self.piece, self.rows, self.rows_of_pass, self.first_rows, self.first_bytes, self.skipped,
            *self.position,
        )  # fmt: skip
        numbers = (self.loss, self.first_loss, self.seconds, *self.pass_seconds)
        return (
            all(type(count) is int and count >= 0 for count in counts)
            and all(type(value) in (int, float) for value in numbers)
            and isinstance(self.pass_seconds, list)
            and isinstance(self.proof, str)
            and len(self.position) >= 2
        )

    @property
    def progressive_loss(self) -> float | None:
        """The mean loss of each row before it was first learnt."""
        return self.first_loss / self.first_rows if self.first_rows else None

    @property
    def all_rows(self) -> int:
        """Rows learnt, those of earlier passes too."""
        return self.sweep * self.rows_of_pass + self.rows


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
