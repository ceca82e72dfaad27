"""d_t = keep · d_{t−1} + c · a: the two numbers a step needs, for Algorithm 2 and for SAG."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

from onesfw.linear.losses import LOGISTIC, POISSON, derivative
from onesfw.trees import HostArray, Record

LARGEST_CONSTANT = 100.0  # of the adaptive ρ_t = c/(t + c − 2), as in estimators/one_sample.py
TINY = 1e-300
INTERCEPT_SPEED = 4.0
EXPONENTIAL = (LOGISTIC, POISSON)
FARTHEST_MARGIN = 600.0  # of the Poisson loss: its exponential is within the range of numbers
LONGEST_ROW = 1e145  # of what a Poisson loss's row adds to the gradient: its square, too, is within that range
LEAST_BEND = 0.01  # of ℓ'', where margins are large and it fades
SMALLEST_SCALE = 1e-100  # of x = scale · X and d = sigma · g, before the factor is multiplied into the vector

# What a step of one model needs of the steps before it, besides the vectors: x = scale · X (and more, by the set) and
# d = sigma · g.
SCALARS = np.dtype(
    [
        ("step", np.int64),
        ("scale", np.float64),
        ("sigma", np.float64),
        ("beta", np.float64),  # l2 ball: x = scale (X + beta g)
        ("norm2", np.float64),  # ‖g‖²
        ("peak2", np.float64),  # l2 ball: the largest ‖g‖² since it was last summed from the entries
        ("eta", np.float64),  # of the step before
        ("place", np.int64),  # the vertex of the step before is height · e_place
        ("height", np.float64),
        ("start", np.float64),  # x_1 = start · e_0
        ("intercept", np.float64),
        ("intercept_before", np.float64),
        ("intercept_d", np.float64),
        ("bend", np.float64),  # the mean of ℓ'' over the rows so far
        ("change", np.float64),  # running means behind the adaptive ρ
        ("noise", np.float64),
    ]
)


@njit(cache=True, nogil=True)
def target_of(target: float, label: int) -> float:
    """y of one model: the row's target, or with a label ≥ 0, one against the rest, +1 for that class and −1 else."""
    if label < 0:
        return target
    return 1.0 if target == label else -1.0


@njit(cache=True, nogil=True)
def drift_constant(s: Record) -> float:
    """c = (1 + √(1 + 4m²/s²))/2, at most 100."""
    return min((1.0 + sqrt(1.0 + 4.0 * s.change / max(s.noise, TINY))) / 2.0, LARGEST_CONSTANT)


@njit(cache=True, nogil=True)
def adaptive_rho(s: Record, t: int) -> float:
    """ρ_t = c/(t + c − 2); ρ_1 = ρ_2 = 1."""
    if t <= 2:
        return 1.0
    c = drift_constant(s)
    return c / (t + c - 2.0)


@njit(cache=True, nogil=True)
def paced(s: Record, weight: float, pace: float) -> float:
    """a/(t + a − 1) from 1/t, a = pace · c^(−1/2): as in estimators/one_sample.py."""
    a = pace / sqrt(drift_constant(s))
    return a * weight / (1.0 + (a - 1.0) * weight)


@njit(cache=True, nogil=True)
def observe(s: Record, t: int, new: float, old: float, row2: float, row_g: float, has_intercept: bool) -> None:
    """The running means after step t ≥ 2: m² of (t−1)²‖Δ_t‖², s² of ‖g(x_{t−1}; z_t) − d_{t−1}‖²."""
    d2, row_d = s.sigma * s.sigma * s.norm2, s.sigma * row_g
    if has_intercept:
        row2, d2, row_d = row2 + 1.0, d2 + s.intercept_d**2, row_d + s.intercept_d
    change = (t - 1.0) ** 2 * (new - old) ** 2 * row2
    noise = max(old * old * row2 - 2.0 * old * row_d + d2, 0.0)
    s.change += (change - s.change) / (t - 1.0)
    s.noise += (noise - s.noise) / (t - 1.0)


@njit(cache=True, nogil=True)
def in_range(loss: int, margin: float) -> float:
    """The margin, or one whose exponential is still a number: the step then leads away from such a row."""
    return min(margin, FARTHEST_MARGIN) if loss == POISSON else margin


@njit(cache=True, nogil=True)
def cut(slope: float, unit: float, row2: float) -> float:
    """A slope along a row a, or the nearest at which ‖slope · a‖² is within the range of numbers in units of g."""
    most = LONGEST_ROW * unit / sqrt(1.0 + row2)
    return min(max(slope, -most), most)


@njit(cache=True, nogil=True)
def combine(
    s: Record, t: int, loss: int, parameter: float, weight: float, target: float, here: float, before: float,
    rho: float, adaptive: bool, row2: float, row_g: float, has_intercept: bool, table: HostArray, row: int, model: int,
) -> tuple[float, float]:  # fmt: skip
    """(keep, c) from the margins at x_t and x_{t−1}.

    SAG where there is a table of derivatives, one a row and model: the row's entry is replaced. Otherwise Algorithm 2;
    with an adaptive ρ the running means behind it take this step in. Exponentials beyond the range of numbers are cut.
    """
    new = weight * derivative(loss, parameter, here, target)
    if loss == POISSON:
        new = cut(new, 1.0, row2)
    if table.shape[0] > 0:
        c = (new - table[row, model]) / table.shape[0]
        table[row, model] = new
        return 1.0, c
    old = weight * derivative(loss, parameter, before, target)
    if loss == POISSON:
        old = cut(old, 1.0, row2)
    if adaptive:
        rho = adaptive_rho(s, t)
        if t >= 2:
            observe(s, t, new, old, row2, row_g, has_intercept)
    keep = 1.0 - rho
    change = new - keep * old
    if loss == POISSON:
        unit = s.sigma * keep
        change = cut(change, unit if unit >= SMALLEST_SCALE else 1.0, row2)
    return keep, change


@njit(cache=True, nogil=True)
def move_intercept(s: Record, t: int, loss: int, keep: float, c: float, bend: float, low: float, high: float) -> None:
    """The intercept's own step, Newton's, shortened as 1/t, with the same variance-reduced gradient; in [low, high].

    b ← b − γ_t d_b/h, γ_t = min(1, 4/(t + 3)), h the mean of ℓ'' over the rows so far, or the row's own where it is
    larger. A Frank-Wolfe step would throw it from one end of its interval to the other.
    """
    s.intercept_d = keep * s.intercept_d + c
    s.bend += (bend - s.bend) / t
    newton = s.intercept_d / max(s.bend, bend, LEAST_BEND)
    if loss in EXPONENTIAL:  # ℓ'' changes by a factor from one unit of the margin to the next
        newton = min(max(newton, -1.0), 1.0)
    s.intercept_before = s.intercept
    speed = min(1.0, INTERCEPT_SPEED / (t + INTERCEPT_SPEED - 1.0))
    s.intercept = min(max(s.intercept - speed * newton, low), high)
