"""The pieces of a pass, and how far a run has come with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from onesfw.data.batch import START, Position
from onesfw.linear.examples import Examples
from onesfw.trees import HostArray


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
