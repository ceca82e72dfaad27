"""Optima to high accuracy: accelerated projected gradients for convex F, a mixed-integer program for quadratics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onesfw.trees import Floats
from onesfw.zoo.base import Optimum

Function = Callable[[Floats], Floats]

MOST_STEPS = 200_000
ROUNDING = 1e-6  # HiGHS's tolerance: an integer variable may be that far from an integer


def project_to_simplex(y: Floats, total: float = 1.0) -> Floats:
    """argmin over {x ≥ 0, Σx = total} of ‖x − y‖₂, from the sorted entries (Held, Wolfe and Crowder 1974)."""
    falling = -np.sort(-y)
    excess = (np.cumsum(falling) - total) / np.arange(1, y.size + 1)
    found: Floats = np.maximum(y - excess[np.nonzero(falling > excess)[0][-1]], 0.0)
    return found


def project_to_l1_ball(y: Floats, radius: float) -> Floats:
    """argmin over {‖x‖₁ ≤ radius} of ‖x − y‖₂."""
    size = np.abs(y)
    return y if size.sum() <= radius else np.sign(y) * project_to_simplex(size, radius)


def simplex_gap(gradient: Floats, x: Floats) -> float:
    """max over v in {v ≥ 0, Σv = 1} of ⟨g, x − v⟩."""
    return float((gradient - gradient.min()) @ x)  # every term is ≥ 0: nothing cancels


def l1_ball_gap(gradient: Floats, x: Floats, radius: float) -> float:
    """max over v in {‖v‖₁ ≤ radius} of ⟨g, x − v⟩."""
    return float(gradient @ x + radius * np.abs(gradient).max())


def convex_optimum(
    value: Function,
    gradient: Function,
    project: Function,
    gap: Callable[[Floats, Floats], float],
    smoothness: float,
    x: Floats,
    tolerance: float = 1e-12,
) -> Optimum:
    """argmin of a convex F over K by FISTA (Beck and Teboulle 2009) with restarts (O'Donoghue and Candès 2015).

    x_{k+1} = project(y_k − ∇F(y_k)/L), y_{k+1} = x_{k+1} + β_k (x_{k+1} − x_k); β starts anew whenever the last move
    goes uphill. It ends when `gap(∇F(x), x)`, which bounds F(x) − F*, is at most `tolerance`, or no longer falls.
    """
    best, error = x, gap(gradient(x), x)
    y, momentum, checked = x, 1.0, 0
    for step in range(1, MOST_STEPS + 1):
        slope = gradient(y)
        moved = project(y - slope / smoothness)
        if (y - moved) @ (moved - x) > 0:
            momentum = 1.0
        grown = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        y = moved + (momentum - 1) / grown * (moved - x)
        x, momentum = moved, grown
        if step % 50 == 0:
            here = gap(gradient(x), x)
            if here < error:
                best, error, checked = x, here, step
            if error <= tolerance or step - checked > 20_000:
                break
    return Optimum(best, float(value(best)), max(error, 0.0))


def quadratic_optimum(
    matrix: Floats,
    linear: Floats,
    lower: Floats,
    upper: Floats,
    costs: Floats | None = None,
    budget: float | None = None,
) -> Optimum:
    """The global minimum of F(x) = ½ x'Qx + c'x over {lower ≤ x ≤ upper, costs·x ≤ budget}, Q of any sign.

    Every local minimum has multipliers (constraints are linear): Qx + c − α + β + μ·costs = 0 with α, β, μ ≥ 0 and
    α'(x − lower) = β'(upper − x) = μ(budget − costs·x) = 0. There ½ x'Qx = −½(c'x − α'lower + β'upper + μ·budget), so
    F = ½(c'x + α'lower − β'upper − μ·budget) is linear in (x, α, β, μ). Complementarity takes one binary variable per
    constraint, and HiGHS proves the least value of that mixed-integer linear program (Hansen, Jaumard, Ruiz and Xiong
    1993; Chen and Burer 2012). Where there is a budget, lower must be 0 and costs positive.

    Bounds of the multipliers: let g_i = (Qx + c)_i lie in [g⁻_i, g⁺_i] over the box. μ·costs_i ≤ −g_i wherever x_i > 0,
    which some i has when the budget is spent, so μ ≤ M = max(0, max −g⁻_i/costs_i); β_i ≤ max(0, −g⁻_i);
    α_i ≤ max(0, g⁺_i + M·costs_i).

    The error is the distance from F(x) to the proven bound, plus what the solver's rounding of binaries can hide.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    d = linear.size
    positive, negative = np.maximum(matrix, 0), np.minimum(matrix, 0)
    highest = linear + positive @ upper + negative @ lower
    lowest = linear + positive @ lower + negative @ upper
    price, limit = (np.zeros(d), 1.0) if costs is None or budget is None else (costs, budget)
    most = 0.0 if costs is None else max(0.0, float(np.max(-lowest / costs)))
    alpha, beta = np.maximum(highest + most * price, 0), np.maximum(-lowest, 0)
    eye, none, width = np.eye(d), np.zeros((d, d)), np.diag(upper - lower)
    column = np.zeros((d, 1))
    # Columns: x, α, β, μ, then the binaries "x at lower", "x at upper", "budget spent".
    stationary = np.hstack([matrix, -eye, eye, price[:, None], none, none, column])
    rows = [
        (stationary, -linear, -linear),
        (np.hstack([none, eye, none, column, -np.diag(alpha), none, column]), -np.inf, 0.0),
        (np.hstack([none, none, eye, column, none, -np.diag(beta), column]), -np.inf, 0.0),
        (np.hstack([eye, none, none, column, width, none, column]), -np.inf, upper),
        (np.hstack([-eye, none, none, column, none, width, column]), -np.inf, -lower),
        (np.hstack([none, none, none, column, eye, eye, column]), -np.inf, 1.0),
        (np.hstack([price, np.zeros(2 * d), 0.0, np.zeros(2 * d), 0.0])[None], -np.inf, limit),
        (np.hstack([np.zeros(3 * d), 1.0, np.zeros(2 * d), -most])[None], -np.inf, 0.0),
        (np.hstack([-price, np.zeros(2 * d), 0.0, np.zeros(2 * d), limit])[None], -np.inf, 0.0),
    ]
    objective = np.hstack([linear, lower, -upper, -limit, np.zeros(2 * d + 1)]) / 2
    whole = np.hstack([np.zeros(3 * d + 1), np.ones(2 * d + 1)])
    found = milp(
        objective,
        integrality=whole,
        bounds=Bounds(
            np.hstack([lower, np.zeros(4 * d + 2)]), np.hstack([upper, alpha, beta, most, np.ones(2 * d + 1)])
        ),
        constraints=[LinearConstraint(a, low, high) for a, low, high in rows],
        options={"mip_rel_gap": 0.0},
    )
    if found.x is None or found.mip_dual_bound is None:
        raise RuntimeError(f"the mixed-integer program was not solved: {found.message}")
    x = np.clip(found.x[:d], lower, upper)
    if costs is not None and costs @ x > limit:
        x = x * (limit / (costs @ x))
    value = float(x @ matrix @ x / 2 + linear @ x)
    hidden = ROUNDING * float(alpha @ np.abs(lower) + beta @ np.abs(upper) + most * limit) / 2
    return Optimum(x, value, abs(value - found.mip_dual_bound) + hidden)
