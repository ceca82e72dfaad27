"""The reference of `loop.py`: Algorithm 2 for the dense logistic loss over an l1 ball, written by hand in numba.

Explicit loops, fastmath, everything in place: what a programmer would write for this one problem and no other.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(fastmath=True, cache=True)
def one_sfw_logistic_l1(
    rows: np.ndarray, labels: np.ndarray, order: np.ndarray, radius: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """(x_{T+1}, d_T) after `steps` steps with ρ = 1/(t−1), η = 1/t, from x_1 = 0, on the rows in `order`."""
    size = rows.shape[1]
    x, previous, d = np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32)
    one, bound = np.float32(1), np.float32(radius)
    for t in range(1, steps + 1):
        row, label = rows[order[t - 1]], labels[order[t - 1]]
        now, before = np.float32(0), np.float32(0)
        for j in range(size):
            now += row[j] * x[j]
            before += row[j] * previous[j]
        rho = one if t < 3 else one / np.float32(t - 1)
        eta = one / np.float32(t)
        slope = -label / (one + np.exp(label * now))
        old_slope = -label / (one + np.exp(label * before))
        factor = slope - (one - rho) * old_slope
        for j in range(size):
            d[j] = (one - rho) * d[j] + factor * row[j]
        largest, place = np.float32(-1), 0
        for j in range(size):
            magnitude = abs(d[j])
            if magnitude > largest:
                largest, place = magnitude, j
        for j in range(size):
            previous[j] = x[j]
            x[j] -= eta * x[j]
        x[place] += eta * (-bound if d[place] > 0 else bound)
    return x, d
