"""Limited-memory BFGS for a smooth function without constraints, down to where only its gradient can still tell.

Nocedal's two loops (1980), with the line search's approximate Wolfe conditions (Hager and Zhang 2005): near the optimum
the values differ by rounding alone, the slopes do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy

from onesfw.trees import HostArray

ARMIJO, WOLFE = 1e-4, 0.9
TRIALS = 40  # of a line search
LONGER = 4.0
FIRST = 0.1  # length of the first step, in units of ‖u‖
SMALL, MEMORY, FEWER = 100_000, 20, 6  # pairs that are kept, of vectors up to a size and of larger ones

Function = Callable[[HostArray], tuple[float, HostArray]]


class Place(NamedTuple):
    """u, F(u) and ∇F(u)."""

    u: HostArray
    value: float
    gradient: HostArray


def descend(function: Function, u: HostArray, noise: float, stepped: Callable[[], bool], rounds: int) -> None:
    """Steps from u on; `stepped` hears of each and says when to end.

    Args:
        function: F and its gradient at u; called last at the place of the step that `stepped` hears of.
        u: where to start.
        noise: what rounding may add to F.
        stepped: asked after each step; True ends the descent.
        rounds: steps at most.
    """
    pairs: deque[tuple[HostArray, HostArray, float]] = deque(maxlen=MEMORY if u.size <= SMALL else FEWER)
    here = Place(u, *function(u))
    for _ in range(rounds):
        direction = along(here.gradient, pairs)
        length = 1.0 if pairs else FIRST * float(np.linalg.norm(here.u) / np.linalg.norm(direction))
        there = line_search(function, here, direction, length, noise)
        if there is None:
            if not pairs:
                return
            pairs.clear()  # once more, down the gradient
            continue
        s, y = there.u - here.u, there.gradient - here.gradient
        curvature = float(s @ y)
        if curvature > 0:
            pairs.append((s, y, curvature))
        here = there
        if stepped() or not here.gradient.any():
            return


def along(gradient: HostArray, pairs: deque[tuple[HostArray, HostArray, float]]) -> HostArray:
    """−H ∇F with what the pairs tell of the inverse curvature H."""
    q = -gradient
    shares = []
    for s, y, curvature in reversed(pairs):
        share = float(s @ q) / curvature
        daxpy(y, q, a=-share)
        shares.append(share)
    if pairs:
        _, y, curvature = pairs[-1]
        q *= curvature / float(y @ y)
    for (s, y, curvature), share in zip(pairs, reversed(shares), strict=True):
        daxpy(s, q, a=share - float(y @ q) / curvature)
    return q


def line_search(function: Function, here: Place, direction: HostArray, length: float, noise: float) -> Place | None:
    """A place along the direction where F fell and its slope flattened; None where there is none."""
    slope = float(here.gradient @ direction)
    if not slope < 0:
        return None
    low, value, tangent, high = 0.0, here.value, slope, np.inf
    for _ in range(TRIALS):
        u = here.u + length * direction
        there = Place(u, *function(u))
        turned = float(there.gradient @ direction)
        fell = there.value <= here.value + ARMIJO * length * slope
        fell = fell or (there.value <= here.value + noise and turned <= (2 * ARMIJO - 1) * slope)
        if fell and turned >= WOLFE * slope:
            return there
        if fell:
            low, value, tangent = length, there.value, turned
            length = LONGER * length if high == np.inf else (low + high) / 2
            continue
        high, width = length, length - low
        bend = there.value - value - tangent * width
        best = -tangent * width / (2 * bend) if bend > 0 and np.isfinite(bend) else 0.1
        length = low + width * min(max(best, 0.1), 0.9)
    return None
