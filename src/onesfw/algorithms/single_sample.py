"""1-SFW: d_t from one sample a step, corrected by the same sample."""

from __future__ import annotations

from collections.abc import Callable

from onesfw import schedules
from onesfw.algorithms.base import Algorithm
from onesfw.algorithms.settings import CONVEX, DR_SUBMODULAR, NONCONVEX, choose_setting, schedule_or
from onesfw.arguments import choose, real, whole_number
from onesfw.capabilities import OBLIVIOUS, ObjectiveLike
from onesfw.estimators import AsPrinted, Batched, Difference, Estimator, Hessian, Importance, OneSample, SameSample
from onesfw.estimators.corrections import Correction
from onesfw.schedules.rates import Schedule, ScheduleLike
from onesfw.schedules.sizes import Batches, SizesLike, as_sizes
from onesfw.steps import ContinuousGreedyStep, FrankWolfeStep, Step

PRESETS: dict[str, tuple[Schedule, Schedule, Step, str]] = {
    CONVEX: (schedules.power(1.0), schedules.harmonic(), FrankWolfeStep(), "last"),
    NONCONVEX: (schedules.power(2 / 3), schedules.horizon_power(2 / 3), FrankWolfeStep(), "random"),
    DR_SUBMODULAR: (schedules.power(1.0), schedules.horizon_power(1.0), ContinuousGreedyStep(), "last"),
}

PAPER = "paper"
SCHEDULES = tuple(schedules.PRESETS)

OBLIVIOUS_CORRECTIONS: dict[str, Callable[[], Correction]] = {"difference": SameSample, "hessian": Hessian}
NON_OBLIVIOUS_CORRECTIONS: dict[str, Callable[[], Correction]] = {
    "hessian": Hessian,
    "difference": Difference,
    "importance": Importance,
    "as_printed": AsPrinted,
}


def one_sfw(
    setting: str = CONVEX,
    *,
    correction: str | None = None,
    schedule: str = PAPER,
    rho: ScheduleLike | str | None = None,
    eta: ScheduleLike | None = None,
    batch: SizesLike = 1,
    t0: int = 0,
    delta: float | None = None,
) -> Algorithm:
    """One-sample stochastic Frank-Wolfe (Zhang, Shen, Mokhtari, Hassani, Karbasi 2020).

    The presets are the theorems': `convex` ρ = 1/(t−1), η = 1/t, output x_{T+1}; `nonconvex` ρ = (t−1)^(−2/3),
    η = T^(−2/3), output x_o; `dr_submodular` ρ = 1/(t−1), η = 1/T, x_1 = 0, x_{t+1} = x_t + η v_t.

    Args:
        setting: "convex", "nonconvex" or "dr_submodular".
        correction: None for Algorithm 2 on oblivious objectives and "hessian" on the others; "hessian", "difference",
            "importance", or "as_printed" (the paper's literal text, for the record).
        schedule: "paper", the theorem's. In the convex setting also heuristics of this library, without a theorem:
            "tuned", η = 1/t with ρ = "adaptive", which the study in docs/evidence.md finds no worse than 1.3 times the
            paper's error on any of its problems, and over 3 times better where the set is large or every sample agrees;
            "adaptive", η = 2/(t+1) with ρ = "adaptive"; "c2" and "c4", η = 2/(t+1) with ρ = 2/(t−1) or 4/(t−1).
        rho: a number, a function of t or (t, T), or "adaptive"; None for the schedule's.
        eta: a number or a function of t or (t, T); None for the schedule's.
        batch: samples averaged in each step: a whole number, or a function of t or (t, T).
        t0: reads η at t + t0, so that a warm start is not thrown away by η_1 = 1. ρ is not shifted: the gradient
            estimate starts anew and must average over its own samples.
        delta: half-width of the window of the "difference" correction, at most 1/2; None for the whole segment.

    Returns:
        The method, for `algorithm=` in `minimize` or `maximize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting, the schedule or the correction is unknown, a number is out of range, or
            options do not go together.

    Example:
        >>> import onesfw as fw
        >>> fw.one_sfw().summary
        'one_sfw, convex (rho=1/(t-1), eta=1/t)'
        >>> fw.one_sfw("nonconvex", batch=4).summary
        'one_sfw, nonconvex (rho=(t-1)^(-0.667), eta=T^(-0.667), batch=4)'
    """
    choose_setting(setting, PRESETS, "one_sfw")
    choose(schedule, SCHEDULES, "schedule")
    if schedule != PAPER and setting != CONVEX:
        raise ValueError(f"schedule={schedule!r} was found on convex problems; setting={setting!r} takes 'paper'")
    preset_rho, preset_eta, step, output = PRESETS[setting]
    if schedule != PAPER:
        preset = schedules.PRESETS[schedule]
        preset_rho, preset_eta = preset.rho, preset.eta
        rho = "adaptive" if rho is None and preset.adaptive else rho
    adaptive = isinstance(rho, str)
    if isinstance(rho, str):
        choose(rho, ("adaptive",), "rho")
        given_rho = schedules.ADAPTIVE
    else:
        given_rho = schedule_or(preset_rho, rho, "rho")
    if correction is not None:
        choose(correction, NON_OBLIVIOUS_CORRECTIONS, "correction")
    if delta is not None and (correction != "difference" or not 0 < (real(delta) or 0.0) <= 0.5):
        raise ValueError(f"delta must lie in (0, 1/2] and goes with correction='difference', got delta={delta!r}")
    if adaptive and callable(batch):
        raise ValueError("rho='adaptive' goes with a constant batch; give batch a whole number")

    def estimator(objective: ObjectiveLike) -> Estimator:
        return averaging(correction_for(objective, correction, delta), batch, adaptive)

    return Algorithm(
        name="one_sfw" if correction is None else f"one_sfw[{correction}]",
        citation="Zhang, Shen, Mokhtari, Hassani, Karbasi: One Sample Stochastic Frank-Wolfe, AISTATS 2020",
        setting=setting,
        estimator=estimator,
        step=step,
        rho=given_rho,
        eta=schedule_or(preset_eta, eta, "eta"),
        output=output,
        t0=whole_number(t0, "t0", 0),
        batch=shown(batch),
    )


def averaging(correction: Correction, batch: SizesLike, adaptive: bool = False) -> Estimator:
    """d_t = (1 − ρ_t)(d_{t−1} + Δ̃_t) + ρ_t g_t over a batch of a fixed size, or of a size that varies with t."""
    formula, sizes, uses_horizon = as_sizes(batch, "batch")
    if not callable(batch):
        return OneSample(correction, int(batch), adaptive)
    return Batched(correction, Batches(formula, lambda t, T: (0, sizes(t, T)), uses_horizon))


def shown(batch: SizesLike) -> str:
    """How a batch prints; nothing for the usual one sample."""
    formula = as_sizes(batch, "batch")[0]
    return "" if formula == "1" else formula


def correction_for(objective: ObjectiveLike, name: str | None, delta: float | None) -> Correction:
    """The correction by its name, where it applies to the objective."""
    oblivious = OBLIVIOUS in objective.offers
    if name is None:
        return SameSample() if oblivious else Hessian()
    if oblivious and name not in OBLIVIOUS_CORRECTIONS:
        raise ValueError(
            f"correction={name!r} is for NonOblivious objectives; {type(objective).__name__} takes "
            f"{', '.join(repr(c) for c in OBLIVIOUS_CORRECTIONS)} or None"
        )
    if oblivious:
        return OBLIVIOUS_CORRECTIONS[name]()
    return Difference(delta) if name == "difference" else NON_OBLIVIOUS_CORRECTIONS[name]()
