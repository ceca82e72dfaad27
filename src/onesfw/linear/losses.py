"""ℓ(m, y): losses of a margin m = ⟨a, x⟩ + intercept and a target y, with their derivative in m."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log1p

import numpy as np
from numba import njit

LOGISTIC, SQUARED_HINGE, SQUARED, HUBER, POISSON = range(5)


@njit(cache=True, nogil=True)
def value(loss: int, parameter: float, m: float, y: float) -> float:
    """ℓ(m, y). A number names the loss, so that one compiled kernel serves all of them."""
    if loss == LOGISTIC:
        z = y * m
        return log1p(exp(-abs(z))) + max(-z, 0.0)
    if loss == SQUARED_HINGE:
        return max(1.0 - y * m, 0.0) ** 2
    if loss == SQUARED:
        return 0.5 * (m - y) ** 2
    if loss == HUBER:
        r = abs(m - y)
        return 0.5 * r * r if r <= parameter else parameter * (r - 0.5 * parameter)
    return exp(m) - y * m


@njit(cache=True, nogil=True)
def derivative(loss: int, parameter: float, m: float, y: float) -> float:
    """∂ℓ/∂m."""
    if loss == LOGISTIC:
        z = y * m
        if z > 0:  # the exponential of a negative number cannot overflow
            e = exp(-z)
            return -y * e / (1.0 + e)
        return -y / (1.0 + exp(z))
    if loss == SQUARED_HINGE:
        return -2.0 * y * max(1.0 - y * m, 0.0)
    if loss == SQUARED:
        return m - y
    if loss == HUBER:
        return min(max(m - y, -parameter), parameter)
    return exp(m) - y


@njit(cache=True, nogil=True)
def all_values(loss: int, parameter: float, margins: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """ℓ, entry by entry."""
    out = np.empty(margins.shape[0])
    for i in range(out.shape[0]):
        out[i] = value(loss, parameter, margins[i], targets[i])
    return out


@njit(cache=True, nogil=True)
def all_derivatives(loss: int, parameter: float, margins: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """∂ℓ/∂m, entry by entry."""
    out = np.empty(margins.shape[0])
    for i in range(out.shape[0]):
        out[i] = derivative(loss, parameter, margins[i], targets[i])
    return out


@dataclass(frozen=True)
class Loss:
    """A loss by its name."""

    name: str
    title: str
    """As tables call it."""
    code: int
    formula: str
    classifies: bool = False
    """Whether y is a label, −1 or +1."""
    least_target: float = -inf

    def value(self, margins: np.ndarray, targets: np.ndarray, delta: float = 1.0) -> np.ndarray:
        """ℓ(m, y) for arrays of margins and targets; `delta` is the Huber loss's δ."""
        return all_values(self.code, float(delta), *as_floats(margins, targets))

    def derivative(self, margins: np.ndarray, targets: np.ndarray, delta: float = 1.0) -> np.ndarray:
        """∂ℓ/∂m for arrays of margins and targets."""
        return all_derivatives(self.code, float(delta), *as_floats(margins, targets))


def as_floats(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """float64 vectors, so that one compiled function serves every call."""
    return tuple(np.ascontiguousarray(a, np.float64) for a in arrays)


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("logistic", "logistic loss", LOGISTIC, "log(1 + exp(−y m))", classifies=True),
        Loss("squared_hinge", "squared hinge loss", SQUARED_HINGE, "max(0, 1 − y m)²", classifies=True),
        Loss("squared", "squared loss", SQUARED, "(m − y)²/2"),
        Loss("huber", "Huber loss", HUBER, "r²/2 for r = |m − y| ≤ δ, δ (r − δ/2) beyond"),
        Loss("poisson", "Poisson loss", POISSON, "exp(m) − y m", least_target=0.0),
    )
}
