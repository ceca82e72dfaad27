"""How far the biases of rows and of columns are shrunk towards 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onesfw.lowrank.entry_kernels import bias_sweep

if TYPE_CHECKING:
    from onesfw.lowrank.observed import Observed

Ridge = tuple[float, float]
FIRST = 3.0
LEAST, MOST = 0.1, 1e4
ESTIMATES, SETTLED = 30, 0.02  # at most so many, until neither changes by more


def estimated_ridge(data: Observed) -> Ridge:
    """The variance of the noise over that of the biases, of rows and of columns, by the evidence (MacKay 1992).

    A bias with curvature c is determined by its entries to the share g = c/(c + ridge); with noise s² and b the biases,
    ridge = s² Σg/Σb² for each kind, and s² is what is left over the entries that are not used up. Losses that are
    likelihoods themselves, the logistic and that of counts, have s² = 1.
    """
    bu, bi = np.zeros(data.shape[0]), np.zeros(data.shape[1])
    ridge = (FIRST, FIRST)
    for _ in range(ESTIMATES):
        rows, columns, total = bias_sweep(*data.head, ridge, bu, bi)
        used = [float((1 - r / c).sum()) for r, c in zip(ridge, (rows, columns), strict=True)]
        noise = 2 * total / max(data.n - sum(used), 0.01 * data.n) if data.loss.name in ("squared", "huber") else 1.0
        before = ridge
        new = [
            float(np.clip(noise * g / max(float(b @ b), 1e-300), LEAST, MOST)) if noise * g > 0 else old
            for g, b, old in zip(used, (bu, bi), ridge, strict=True)
        ]
        ridge = (new[0], new[1])
        if all(abs(r - b) <= SETTLED * b for r, b in zip(ridge, before, strict=True)):
            break
    return ridge
