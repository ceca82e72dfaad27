"""ℓ(m, y): losses of a margin m = ⟨a, x⟩ + intercept and a target y, with their derivative in m."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log1p

import numpy as np
from numba import njit

from onesfw.trees import HostArray

LOGISTIC, SQUARED_HINGE, SQUARED, HUBER, POISSON = range(5)
MOST_ROUNDS = 200
FAR = 1e3  # a step of the intercept, in units of its own size, at most: curvature fades far from the optimum


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
def curvature(loss: int, parameter: float, m: float, y: float) -> float:
    """∂²ℓ/∂m², where it exists."""
    if loss == LOGISTIC:
        e = exp(-abs(m))
        return e / (1.0 + e) ** 2
    if loss == SQUARED_HINGE:
        return 2.0 if y * m < 1.0 else 0.0
    if loss == SQUARED:
        return 1.0
    if loss == HUBER:
        return 1.0 if abs(m - y) <= parameter else 0.0
    return exp(m)


@njit(cache=True, nogil=True)
def slope_and_bend(loss: int, parameter: float, m: float, y: float) -> tuple[float, float]:
    """(∂ℓ/∂m, ∂²ℓ/∂m²), with one exponential for both."""
    if loss == LOGISTIC:
        e = exp(-abs(m))
        p = e / (1.0 + e)
        return -y * (p if y * m > 0 else 1.0 - p), p * (1.0 - p)
    if loss == POISSON:
        e = exp(m)
        return e - y, e
    return derivative(loss, parameter, m, y), curvature(loss, parameter, m, y)


@njit(cache=True, nogil=True)
def best_shift(
    loss: int, parameter: float, margins: HostArray, targets: HostArray, weights: HostArray, low: float, high: float,
    start: float,
) -> float:  # fmt: skip
    """The b in [low, high] that minimises Σ w ℓ(m + b, y); weights sum to 1.

    Steps that double until the slope changes its sign, or an end is reached; then Newton's method, with bisection where
    it leaves the bracket or its steps do not halve.
    """
    b, below, above, reach, last = min(max(start, low), high), -inf, inf, 1e-3, inf
    for _ in range(MOST_ROUNDS):
        slope, bend = 0.0, 0.0
        for i in range(margins.shape[0]):
            if weights[i] == 0.0:  # 0 · ∞ is no number
                continue
            first, second = slope_and_bend(loss, parameter, margins[i] + b, targets[i])
            slope += weights[i] * first
            bend += weights[i] * second
        if slope == 0.0 or (slope > 0 and b <= low) or (slope < 0 and b >= high):
            return b
        if slope > 0:
            above = b
        else:
            below = b
        newton = slope / bend if 0 < bend < inf else inf
        if below == -inf or above == inf:
            reach *= 2.0
            newton = reach if abs(newton) < reach else min(abs(newton), FAR * max(1.0, abs(b), reach))
            new = min(max(b - newton if slope > 0 else b + newton, low), high)
        else:
            new = b - newton
            if not below < new < above or abs(newton) > 0.5 * last:
                new = 0.5 * (below + above)
            last = abs(new - b)
        if abs(new - b) <= 1e-14 * max(1.0, abs(b)):
            return new
        b = new
    return b


@njit(cache=True, nogil=True)
def all_values(loss: int, parameter: float, margins: HostArray, targets: HostArray) -> HostArray:
    """ℓ, entry by entry."""
    out = np.empty(margins.shape[0])
    for i in range(out.shape[0]):
        out[i] = value(loss, parameter, margins[i], targets[i])
    return out


@njit(cache=True, nogil=True)
def all_derivatives(loss: int, parameter: float, margins: HostArray, targets: HostArray) -> HostArray:
    """∂ℓ/∂m, entry by entry."""
    out = np.empty(margins.shape[0])
    for i in range(out.shape[0]):
        out[i] = derivative(loss, parameter, margins[i], targets[i])
    return out


@dataclass(frozen=True)
class Loss:
    """A loss by its name.

    Args:
        name: what users write.
        title: as tables call it.
        code: its number in the kernels.
        formula: how it prints.
        classifies: whether y is a label, −1 or +1.
        least_target: the least y that it can take.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import LOSSES
        >>> LOSSES["huber"].value(np.array([0.5, 3.0]), np.zeros(2), delta=1.0).tolist()
        [0.125, 2.5]
    """

    name: str
    title: str
    code: int
    formula: str
    classifies: bool = False
    least_target: float = -inf

    def value(self, margins: HostArray, targets: HostArray, delta: float = 1.0) -> HostArray:
        """ℓ(m, y) for arrays of margins and targets; `delta` is the Huber loss's δ."""
        return all_values(self.code, float(delta), *as_floats(margins, targets))

    def derivative(self, margins: HostArray, targets: HostArray, delta: float = 1.0) -> HostArray:
        """∂ℓ/∂m for arrays of margins and targets."""
        return all_derivatives(self.code, float(delta), *as_floats(margins, targets))


def as_floats(*arrays: HostArray) -> tuple[HostArray, ...]:
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
