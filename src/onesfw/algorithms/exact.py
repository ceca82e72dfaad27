"""The reference without noise."""

from __future__ import annotations

from onesfw import schedules
from onesfw.algorithms.base import Algorithm
from onesfw.algorithms.settings import CONVEX, DR_SUBMODULAR, NONCONVEX, choose_setting, schedule_or
from onesfw.algorithms.single_sample import PRESETS
from onesfw.arguments import whole_number
from onesfw.estimators import FullGradient
from onesfw.schedules.rates import ScheduleLike


def frank_wolfe(setting: str = CONVEX, *, eta: ScheduleLike | None = None, t0: int = 0) -> Algorithm:
    """Frank-Wolfe with the full gradient of a finite sum (Frank and Wolfe 1956), η_t = 2/(t + 1): the reference.

    In the `dr_submodular` setting it is continuous greedy (Vondrák 2008) with η = 1/T; in the `nonconvex` one
    η = T^(−1/2) and the output is x_o (Lacoste-Julien 2016).

    Args:
        setting: "convex", "nonconvex" or "dr_submodular".
        eta: a number or a function of t or (t, T).
        t0: reads η at t + t0.

    Returns:
        The method, for `algorithm=` in `minimize` or `maximize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.frank_wolfe(eta=lambda t: 2 / (t + 2)).summary
        "frank_wolfe, convex (rho=1, eta=user's)"
    """
    choose_setting(setting, PRESETS, "frank_wolfe")
    _, _, step, output = PRESETS[setting]
    steps = {
        CONVEX: schedules.harmonic(2.0, 1.0),
        NONCONVEX: schedules.horizon_power(0.5),
        DR_SUBMODULAR: schedules.horizon_power(1.0),
    }
    return Algorithm(
        name="frank_wolfe",
        citation="Frank, Wolfe: An algorithm for quadratic programming, 1956",
        setting=setting,
        estimator=lambda objective: FullGradient(),
        step=step,
        rho=schedules.constant(1.0),
        eta=schedule_or(steps[setting], eta, "eta"),
        output=output,
        t0=whole_number(t0, "t0", 0),
    )
