"""Methods that project, as baselines: they need `project` of the set, and no oracle."""

from __future__ import annotations

import numpy as np

from onesfw.algorithms.base import Algorithm
from onesfw.algorithms.momentum import plain_gradient
from onesfw.algorithms.settings import CONVEX, DR_SUBMODULAR, NONCONVEX, choose_setting, schedule_or
from onesfw.algorithms.single_sample import averaging, shown
from onesfw.arguments import number, whole_number
from onesfw.estimators import Storm
from onesfw.schedules.rates import Schedule, ScheduleLike, constant
from onesfw.schedules.sizes import SizesLike
from onesfw.steps import ProjectedStep


def projected_sgd(
    setting: str = CONVEX,
    *,
    eta: ScheduleLike | None = None,
    batch: SizesLike = 1,
    smoothness: float | None = None,
    noise: float = 1.0,
    t0: int = 0,
) -> Algorithm:
    """Projected stochastic gradient, x_{t+1} = Proj(x_t ∓ η_t g(x_t; z_t)), η_t = 1/(L + c√t), c = σ/R (Hassani 2017).

    One sample, one gradient and one projection a step. `dr_submodular`: ascent from any member of K, output x_o, half
    of the optimum less O(1/√T); recalled, the factor ½ confirmed. `convex`: the mean of the iterates.

    Args:
        setting: "convex" or "dr_submodular".
        eta: a number, or a function of t or (t, T), of any size; None for the theorem's.
        batch: samples averaged in each step: a whole number, or a function of t or (t, T).
        smoothness: L. Its true value is seldom known; None for 10 in the convex setting, which did best over problems
            drawn for the choice, and 1 in the other.
        noise: c, the noise of a gradient over the radius of K. 1 is a choice of this library.
        t0: reads η at t + t0.

    Returns:
        The method, for `algorithm=` in `minimize` or `maximize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.projected_sgd(smoothness=2.0).summary
        'projected_sgd, convex (rho=1, eta=1/(2+1sqrt(t)))'
    """
    choose_setting(setting, (CONVEX, DR_SUBMODULAR), "projected_sgd")
    usual = 10.0 if setting == CONVEX else 1.0
    slope = usual if smoothness is None else number(smoothness, "smoothness", 0, strict=True)
    spread = number(noise, "noise", 0)
    preset = Schedule(f"1/({slope:g}+{spread:g}sqrt(t))", lambda t, T: 1.0 / (slope + spread * np.sqrt(t)))
    return Algorithm(
        name="projected_sgd",
        citation="Hassani, Soltanolkotabi, Karbasi: Gradient Methods for Submodular Maximization, NeurIPS 2017",
        setting=setting,
        estimator=lambda objective: averaging(plain_gradient(objective), batch),
        step=ProjectedStep(),
        rho=constant(1.0),
        eta=schedule_or(preset, eta, "eta"),
        output="average" if setting == CONVEX else "random",
        t0=whole_number(t0, "t0", 0),
        batch=shown(batch),
    )


def storm(
    setting: str = NONCONVEX,
    *,
    k: float = 0.1,
    w: float = 0.1,
    c: float = 100.0,
    batch: int = 1,
) -> Algorithm:
    """STORM, the ancestor of 1-SFW's correction, with a projected step: x_{t+1} = Proj(x_t − η_t d_t) (Cutkosky 2019).

    η_t = k/(w + Σ_{s≤t} G_s²)^(1/3) and a_{t+1} = min(c η_t², 1), G_s the norms of the gradients seen; output x_o. One
    sample, two gradients and one projection a step. Its theorem is for unconstrained F; over a set without a
    boundary in reach (a large ball) this is the same method. The defaults are choices of this library.

    Args:
        setting: "nonconvex".
        k: the scale of the steps.
        w: keeps the first steps short.
        c: how fast old gradients are forgotten.
        batch: samples averaged in each step.

    Returns:
        The method, for `algorithm=` in `minimize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.storm().summary
        'storm, nonconvex (rho=100eta^2, eta=0.1/(0.1+sum G^2)^(1/3))'
    """
    choose_setting(setting, (NONCONVEX,), "storm")
    size = whole_number(batch, "batch", 1)
    scale, start, forget = (number(value, name, 0, strict=True) for value, name in ((k, "k"), (w, "w"), (c, "c")))
    return Algorithm(
        name="storm",
        citation="Cutkosky, Orabona: Momentum-Based Variance Reduction in Non-Convex SGD, NeurIPS 2019",
        setting=setting,
        estimator=lambda objective: Storm(scale, start, forget, size),
        step=ProjectedStep(),
        rho=Schedule(f"{forget:g}eta^2", constant(1.0).function),
        eta=Schedule(f"{scale:g}/({start:g}+sum G^2)^(1/3)", constant(1.0).function),
        output="random",
        batch="" if size == 1 else f"{size}",
    )
