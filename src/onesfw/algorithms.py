"""Recipes: an estimator, a step and schedules, joined under a paper's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onesfw import schedules
from onesfw.arguments import choose, real, whole_number
from onesfw.capabilities import OBLIVIOUS
from onesfw.estimators import AsPrinted, Difference, Estimator, FullGradient, Hessian, Importance, OneSample, SameSample
from onesfw.estimators.corrections import Correction
from onesfw.schedules import Schedule
from onesfw.steps import ContinuousGreedyStep, FrankWolfeStep, Step

CONVEX, NONCONVEX, DR_SUBMODULAR = "convex", "nonconvex", "dr_submodular"


@dataclass(frozen=True)
class Algorithm:
    """A method ready to run: what the driver needs to know, and what a printout says."""

    name: str
    citation: str
    setting: str
    estimator: Callable[[Any], Estimator]
    """From the objective to the estimator, so that one recipe serves oblivious and non-oblivious objectives."""
    step: Step
    rho: Schedule
    eta: Schedule
    output: str = "last"
    """`last`: x_{T+1}; `random`: x_o, uniform over x_1, …, x_T."""
    t0: int = 0
    """η is read at t + t0."""

    @property
    def summary(self) -> str:
        """One line for printouts: the name, the setting and the schedules."""
        shift = f", t0={self.t0}" if self.t0 else ""
        return f"{self.name}, {self.setting} (rho={self.rho.formula}, eta={self.eta.formula}{shift})"


ADAPTIVE = Schedule("adaptive", schedules.power(1.0).function)

PRESETS: dict[str, tuple[Schedule, Schedule, Step, str]] = {
    CONVEX: (schedules.power(1.0), schedules.harmonic(), FrankWolfeStep(), "last"),
    NONCONVEX: (schedules.power(2 / 3), schedules.horizon_power(2 / 3), FrankWolfeStep(), "random"),
    DR_SUBMODULAR: (schedules.power(1.0), schedules.horizon_power(1.0), ContinuousGreedyStep(), "last"),
}

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
    schedule: str = "paper",
    rho: Any = None,
    eta: Any = None,
    batch: int = 1,
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
        schedule: "paper", the theorem's.
        rho: a number, a function of t or (t, T), or "adaptive"; None for the schedule's.
        eta: a number or a function of t or (t, T); None for the schedule's.
        batch: samples averaged in each step.
        t0: reads η at t + t0, so that a warm start is not thrown away by η_1 = 1. ρ is not shifted: the gradient
            estimate starts anew and must average over its own samples.
        delta: half-width of the window of the "difference" correction, at most 1/2; None for the whole segment.
    """
    choose(setting, PRESETS, "setting")
    choose(schedule, ("paper",), "schedule")
    preset_rho, preset_eta, step, output = PRESETS[setting]
    adaptive = isinstance(rho, str)
    if adaptive:
        choose(rho, ("adaptive",), "rho")
    if correction is not None:
        choose(correction, NON_OBLIVIOUS_CORRECTIONS, "correction")
    if delta is not None and (correction != "difference" or not 0 < (real(delta) or 0.0) <= 0.5):
        raise ValueError(f"delta must lie in (0, 1/2] and goes with correction='difference', got delta={delta!r}")
    whole_number(batch, "batch", 1)

    def estimator(objective: Any) -> OneSample:
        return OneSample(correction_for(objective, correction, delta), int(batch), adaptive)

    return Algorithm(
        name="one_sfw" if correction is None else f"one_sfw[{correction}]",
        citation="Zhang, Shen, Mokhtari, Hassani, Karbasi: One Sample Stochastic Frank-Wolfe, AISTATS 2020",
        setting=setting,
        estimator=estimator,
        step=step,
        rho=ADAPTIVE if adaptive else preset_rho if rho is None else schedules.as_schedule(rho, "rho"),
        eta=preset_eta if eta is None else schedules.as_schedule(eta, "eta"),
        output=output,
        t0=whole_number(t0, "t0", 0),
    )


def correction_for(objective: Any, name: str | None, delta: float | None) -> Correction:
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


def frank_wolfe(setting: str = CONVEX, *, eta: Any = None, t0: int = 0) -> Algorithm:
    """Frank-Wolfe with the full gradient of a finite sum (Frank and Wolfe 1956), η_t = 2/(t + 1): the reference.

    In the `dr_submodular` setting it is continuous greedy (Vondrák 2008) with η = 1/T; in the `nonconvex` one
    η = T^(−1/2) and the output is x_o (Lacoste-Julien 2016).

    Args:
        setting: "convex", "nonconvex" or "dr_submodular".
        eta: a number or a function of t or (t, T).
        t0: reads η at t + t0.
    """
    choose(setting, PRESETS, "setting")
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
        eta=steps[setting] if eta is None else schedules.as_schedule(eta, "eta"),
        output=output,
        t0=whole_number(t0, "t0", 0),
    )


ALGORITHMS: dict[str, Callable[..., Algorithm]] = {"one_sfw": one_sfw, "frank_wolfe": frank_wolfe}
