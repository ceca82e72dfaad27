"""How many steps make a chunk: as many as take a quarter of a second."""

from __future__ import annotations

from dataclasses import dataclass

from onesfw.engine.compiled_loop import CHUNK

CHUNK_SECONDS = 0.25


@dataclass
class Pace:
    """What a step takes, as far as runs of the same program have shown."""

    seconds: float | None = None

    def steps(self, left: float) -> int:
        """How many make a chunk, and fit into the seconds that are left; one where nothing is known."""
        return 1 if self.seconds is None else max(1, min(int(min(CHUNK_SECONDS, left) / self.seconds), CHUNK))
