"""Continuous greedy, then Frank-Wolfe with the same d: x becomes nearly integral, and a base follows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onesfw.submodular.matroids import Matroid
from onesfw.submodular.rounding import Grouped, SwapRounding, grouped
from onesfw.submodular.sources import Source

SPEED = 5.0  # the second phase's step is SPEED/T₂: what the first phase left fades to e^(−5)


@dataclass(frozen=True)
class Point:
    """Where a phase ended: x in the polytope, and a base with E 1_B = x."""

    name: str
    x: np.ndarray
    base: np.ndarray


class TwoPhases:
    """The state of a run over T = T₁ + T₂ steps: x, x_{t−1}, d, and the base merged so far.

    Phase 1, t ≤ T₁: x_{t+1} = x_t + v_t/T₁ from 0, kept as integer counts. Phase 2: x_{t+1} = x_t + (5/T₂)(v_t − x_t).
    Both with ρ_t = 1/(t − 1), ρ_1 = 1, and v_t the base of the largest ⟨d_t, v⟩.
    """

    def __init__(self, matroid: Matroid, steps: int, seed: int) -> None:
        self.matroid, self.steps = matroid, steps
        self.first = max(1, steps // 2)
        self.second = steps - self.first
        self.t = 0
        n = matroid.n
        self.d, self.x, self.previous = np.zeros(n), np.zeros(n), np.zeros(n)
        self.counts = np.zeros(n, np.int64)
        self.rounding = SwapRounding(matroid, seed)
        self.starts = self.rounding.layout
        self.buffer = np.empty(0, np.int64) if self.starts is None else np.empty(self.starts[-1], np.int64)

    def resume(self, x: np.ndarray, previous: np.ndarray, d: np.ndarray, base: np.ndarray) -> Point:
        """Take over where another method ended the first phase."""
        self.x, self.previous, self.d = (np.array(v, np.float64) for v in (x, previous, d))
        self.rounding.merge(grouped(self.matroid, base), 1.0)
        self.t = self.first
        return self.point("continuous greedy")

    def vertex(self) -> np.ndarray:
        """The base of the largest total d."""
        if isinstance(self.matroid, Grouped) and self.starts is not None:
            from onesfw.submodular.group_kernels import top_by_group

            top_by_group(self.d, self.matroid.groups, self.starts, self.buffer)
            return self.buffer
        return self.matroid.base(self.d)

    def run(self, source: Source, until: int, watch: Callable[[int], None], pauses: list[int]) -> None:
        """Steps up to number `until`; `watch` is called after those in `pauses`."""
        waiting = [t for t in pauses if self.t < t <= until][::-1]
        while self.t < until:
            self.step(source)
            if waiting and waiting[-1] == self.t:
                waiting.pop()
                watch(self.t)

    def step(self, source: Source) -> None:
        """One step."""
        self.t = t = self.t + 1
        source.update(self.d, self.x, self.previous, 1.0 / max(t - 1, 1), t)
        vertex = self.vertex()
        self.previous[:] = self.x
        if t <= self.first:
            self.counts[vertex] += 1
            self.x[vertex] = self.counts[vertex] / self.first
            self.rounding.merge(vertex, 1.0 / t)
        else:
            share = min(1.0, SPEED / self.second)
            self.x *= 1.0 - share
            self.x[vertex] += share
            self.rounding.merge(vertex, share)

    def point(self, name: str) -> Point:
        """x and the base as they are now."""
        return Point(name, np.clip(self.x, 0.0, 1.0), self.rounding.result())
