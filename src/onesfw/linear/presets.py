"""(η_t, ρ_t) for the sparse engine: the presets by name, as arrays over a range of steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Schedule:
    """η_t = numerator/(t + numerator − 1), ρ_t = min(1, c/(t − 1)); an adaptive ρ is computed in the loop."""

    name: str
    formula: str
    numerator: float
    c: float
    adaptive: bool = False

    def etas(self, first: int, steps: int) -> np.ndarray:
        """η at t = first, …, first + steps − 1."""
        t = np.arange(first, first + steps, dtype=np.float64)
        return self.numerator / (t + self.numerator - 1.0)

    def rhos(self, first: int, steps: int) -> np.ndarray:
        """ρ at t = first, …, first + steps − 1."""
        t = np.arange(first, first + steps, dtype=np.float64)
        return np.minimum(self.c / np.maximum(t - 1.0, 1.0), 1.0)


SCHEDULES: dict[str, Schedule] = {
    schedule.name: schedule
    for schedule in (
        Schedule("paper", "η = 1/t, ρ = 1/(t−1)", 1.0, 1.0),
        Schedule("c2", "η = 2/(t+1), ρ = 2/(t−1)", 2.0, 2.0),
        Schedule("c4", "η = 2/(t+1), ρ = 4/(t−1)", 2.0, 4.0),
        Schedule("adaptive", "η = 2/(t+1), ρ adaptive", 2.0, 1.0, adaptive=True),
    )
}
DEFAULT_SCHEDULE = "adaptive"  # ahead at every radius of benchmarks/sparse.py; the larger the radius, the further
