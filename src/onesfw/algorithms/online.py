"""Online Frank-Wolfe: all past losses, evaluated again in every round."""

from __future__ import annotations

from onesfw import schedules
from onesfw.algorithms.base import Algorithm
from onesfw.algorithms.settings import CONVEX, choose_setting, schedule_or
from onesfw.arguments import choose, whole_number
from onesfw.estimators import RunningAverage
from onesfw.schedules.rates import Schedule, ScheduleLike
from onesfw.steps import FrankWolfeStep

ONLINE_SCHEDULES: dict[str, Schedule] = {
    "paper": Schedule("t^(-1/2)", lambda t, T: t**-0.5),
    "unit": schedules.harmonic(1.0, 0.0),
    "double": schedules.harmonic(2.0, 1.0),
}


def online_fw(
    setting: str = CONVEX,
    *,
    schedule: str = "unit",
    eta: ScheduleLike | None = None,
    batch: int = 1,
    memory: int | None = None,
    t0: int = 0,
) -> Algorithm:
    """Online Frank-Wolfe, d_t = (1/t) Σ_{s≤t} ∇F̃(x_t; z_s) (Hazan and Kale 2012).

    One new sample a step, but t gradient evaluations at step t: O(1/ε²) samples and O(1/ε⁴) gradients. Compare it at
    equal gradient evaluations. Past samples are drawn again from their numbers, so that nothing is stored.

    Args:
        setting: "convex".
        schedule: the step rule. "unit": η_t = 1/t, which did best over problems drawn for the choice; "double":
            η_t = 2/(t+1); "paper": η_t = t^(−1/2), an exponent recalled rather than read in the original.
        eta: a number, or a function of t or (t, T); None for the schedule's.
        batch: new samples in each step.
        memory: average over the latest `memory` samples only, which bounds the cost of a step and leaves the noise of
            a mean over so many; None for all of them. A variant of this library, without a theorem.
        t0: reads η at t + t0.

    Returns:
        The method, for `algorithm=` in `minimize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting or the schedule is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.online_fw(schedule="unit").summary
        'online_fw, convex (rho=1, eta=1/t)'
    """
    choose_setting(setting, (CONVEX,), "online_fw")
    choose(schedule, ONLINE_SCHEDULES, "schedule")
    size = whole_number(batch, "batch", 1)
    window = None if memory is None else whole_number(memory, "memory", size)
    return Algorithm(
        name="online_fw",
        citation="Hazan, Kale: Projection-free Online Learning, ICML 2012",
        setting=setting,
        estimator=lambda objective: RunningAverage(size, window),
        step=FrankWolfeStep(),
        rho=schedules.constant(1.0),
        eta=schedule_or(ONLINE_SCHEDULES[schedule], eta, "eta"),
        t0=whole_number(t0, "t0", 0),
        batch="" if size == 1 else f"{size}",
    )
