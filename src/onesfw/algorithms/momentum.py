"""Methods that average gradients: over past samples (momentum), or over a batch of fresh ones."""

from __future__ import annotations

import numpy as np

from onesfw import schedules
from onesfw.algorithms.base import Algorithm
from onesfw.algorithms.settings import (
    CONVEX,
    DR_SUBMODULAR,
    NONCONVEX,
    NONMONOTONE_DR,
    choose_setting,
    convex_schedule,
    schedule_or,
)
from onesfw.algorithms.single_sample import averaging, shown
from onesfw.arguments import number, whole_number
from onesfw.capabilities import DENSITY, ObjectiveLike
from onesfw.estimators import Batched, NoChange, NoChangeWithScore
from onesfw.estimators.corrections import Correction
from onesfw.schedules.rates import Schedule, ScheduleLike
from onesfw.schedules.sizes import Batches, SizesLike, as_sizes
from onesfw.steps import BelowStep, ContinuousGreedyStep, FrankWolfeStep, Step


def plain_gradient(objective: ObjectiveLike) -> Correction:
    """No correction; with the score where z depends on x."""
    return NoChangeWithScore() if DENSITY in objective.offers else NoChange()


def decaying(shift: float) -> Schedule:
    """ρ_t = 4/(t + shift)^(2/3), at most 1."""
    return Schedule(f"4/(t+{shift:g})^(2/3)", lambda t, T: np.minimum(4.0 / (t + shift) ** (2 / 3), 1.0))


def falling(shift: float) -> Schedule:
    """ρ_t = (t + shift)^(−2/3)."""
    formula = f"(t+{shift:g})^(-2/3)" if shift else "t^(-2/3)"
    return Schedule(formula, lambda t, T: (t + shift) ** (-2 / 3))


MOMENTUM_SCHEDULES: dict[str, tuple[Schedule, Schedule]] = {
    "paper": (decaying(8), schedules.harmonic(1.0, 1.0)),
    "book": (decaying(8), schedules.harmonic(2.0, 7.0)),
    "ninefold": (decaying(7), schedules.harmonic(9.0, 8.0)),
    "unit": (falling(0), schedules.harmonic()),
    "double": (falling(1), schedules.harmonic(2.0, 2.0)),
}


MOMENTUM_STEPS: dict[str, Step] = {
    CONVEX: FrankWolfeStep(),
    DR_SUBMODULAR: ContinuousGreedyStep(),
    NONMONOTONE_DR: BelowStep(),
}


def momentum_sfw(
    setting: str = CONVEX,
    *,
    schedule: str | None = None,
    rho: ScheduleLike | None = None,
    eta: ScheduleLike | None = None,
    batch: SizesLike = 1,
    t0: int = 0,
) -> Algorithm:
    """Stochastic Frank-Wolfe with momentum, d_t = (1 − ρ_t) d_{t−1} + ρ_t g(x_t; z_t) (Mokhtari et al. 2018).

    One sample and one gradient a step; O(1/ε³) samples and oracle calls. `dr_submodular` is SCG: ρ_t = 4/(t+8)^(2/3),
    x_1 = 0, η = 1/T. `nonmonotone_dr` is NMSCG, for F that need not be monotone, over a down-closed set: v_t ≤ ū − x_t,
    1/e of the optimum. d_1 is the first gradient itself, where the paper's listing starts from d_0 = 0; from the second
    step on the two differ by a term that fades. Where z depends on x, each gradient carries its score and baseline.

    Args:
        setting: "convex", "dr_submodular" or "nonmonotone_dr".
        schedule: the convex step rule. "unit": ρ_t = t^(−2/3), η_t = 1/t, as in copt; None takes it, for it did best
            on problems drawn for the choice (`benchmarks/step_rules.py`). "paper": ρ_t = 4/(t+8)^(2/3), η_t = 1/(t+1),
            recalled rather than read in the original; "book": the same ρ with η_t = 2/(t+7), of the code beside a
            survey of Frank-Wolfe methods; "ninefold": ρ_t = 4/(t+7)^(2/3), η_t = 9/(t+8), of the code of Yurtsever,
            Sra and Cevher; "double": ρ_t = (t+1)^(−2/3), η_t = 2/(t+2).
        rho: a number, or a function of t or (t, T); None for the schedule's.
        eta: a number, or a function of t or (t, T); None for the schedule's.
        batch: samples averaged in each step: a whole number, or a function of t or (t, T).
        t0: reads η at t + t0.

    Returns:
        The method, for `algorithm=` in `minimize` or `maximize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting or the schedule is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.momentum_sfw(schedule="book").summary
        'momentum_sfw, convex (rho=4/(t+8)^(2/3), eta=2/(t+7))'
    """
    choose_setting(setting, MOMENTUM_STEPS, "momentum_sfw")
    preset_rho, preset_eta = MOMENTUM_SCHEDULES[convex_schedule(setting, schedule, MOMENTUM_SCHEDULES, "unit")]
    text = shown(batch)
    return Algorithm(
        name="momentum_sfw",
        citation="Mokhtari, Hassani, Karbasi: Stochastic Conditional Gradient Methods: From Convex Minimization to "
        "Submodular Maximization, 2018",
        setting=setting,
        estimator=lambda objective: averaging(plain_gradient(objective), batch),
        step=MOMENTUM_STEPS[setting],
        rho=schedule_or(preset_rho, rho, "rho"),
        eta=schedule_or(preset_eta if setting == CONVEX else schedules.horizon_power(1.0), eta, "eta"),
        t0=whole_number(t0, "t0", 0),
        batch=text,
    )


MINIBATCH_SCHEDULES: dict[str, Schedule] = {
    "paper": schedules.harmonic(2.0, 1.0),
    "book": schedules.harmonic(2.0, 7.0),
    "unit": schedules.harmonic(1.0, 0.0),
}


def minibatch_sfw(
    setting: str = CONVEX,
    *,
    schedule: str | None = None,
    eta: ScheduleLike | None = None,
    batch: SizesLike | None = None,
    noise: float = 0.5,
    t0: int = 0,
) -> Algorithm:
    """Frank-Wolfe on means of fresh gradients, ⌈(c(t+1))²⌉ of them at step t, c = G/(LD) (Hazan and Luo 2016).

    O(1/ε) oracle calls and O(1/ε³) samples. The `nonconvex` setting is that of Reddi, Sra, Póczos and Smola (2016): T
    samples in each of T steps, η = T^(−1/2), output x_o; O(1/ε⁴) samples. Both are recalled, not read in the originals;
    the convex sizes agree with public code.

    Args:
        setting: "convex" or "nonconvex".
        schedule: the convex step rule. "unit": η_t = 1/t, the mean of all vertices; None takes it, for it did best on
            problems drawn for the choice (`benchmarks/step_rules.py`). "paper": η_t = 2/(t+1); "book": η_t = 2/(t+7),
            of the code beside a survey of Frank-Wolfe methods.
        eta: a number, or a function of t or (t, T); None for the schedule's.
        batch: samples at step t: a whole number, or a function of t or (t, T); None for the theorem's.
        noise: c, the noise of a gradient in units of its change over K; it scales the theorem's batch. Its true value
            is seldom known; 0.5 was chosen with the schedule.
        t0: reads η at t + t0.

    Returns:
        The method, for `algorithm=` in `minimize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting or the schedule is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.minibatch_sfw(batch=64).summary
        'minibatch_sfw, convex (rho=1, eta=1/t, batch=64)'
    """
    choose_setting(setting, (CONVEX, NONCONVEX), "minibatch_sfw")
    rule = convex_schedule(setting, schedule, MINIBATCH_SCHEDULES, "unit")
    c = number(noise, "noise", 0, strict=True)
    convex = setting == CONVEX
    if batch is not None:
        formula, sizes, uses_horizon = as_sizes(batch, "batch")
        batches = Batches(formula, lambda t, T: (0, sizes(t, T)), uses_horizon)
    elif convex:
        batches = Batches(f"({c:g}(t+1))^2", lambda t, T: (0, np.maximum((c * (t + 1)) ** 2, 1.0)))
    else:
        batches = Batches("T", lambda t, T: (0, T), uses_horizon=True)
    return Algorithm(
        name="minibatch_sfw",
        citation="Hazan, Luo: Variance-Reduced and Projection-Free Stochastic Optimization, ICML 2016"
        if convex
        else "Reddi, Sra, Poczos, Smola: Stochastic Frank-Wolfe Methods for Nonconvex Optimization, 2016",
        setting=setting,
        estimator=lambda objective: Batched(plain_gradient(objective), batches),
        step=FrankWolfeStep(),
        rho=schedules.constant(1.0),
        eta=schedule_or(MINIBATCH_SCHEDULES[rule] if convex else schedules.horizon_power(0.5), eta, "eta"),
        output="last" if convex else "random",
        t0=whole_number(t0, "t0", 0),
        batch=batches.formula,
    )
