"""1-SFW: d_t from one sample a step, corrected by the same sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from onesfw import schedules
from onesfw.algorithms.base import CORRECTED, Algorithm
from onesfw.algorithms.settings import CONVEX, DR_SUBMODULAR, NONCONVEX, choose_setting
from onesfw.arguments import choose, real, whole_number
from onesfw.capabilities import DENSITY, OBLIVIOUS, ObjectiveLike
from onesfw.estimators import AsPrinted, Batched, Difference, Estimator, Hessian, Importance, OneSample, SameSample
from onesfw.estimators.corrections import Correction
from onesfw.schedules.rates import Schedule, ScheduleLike
from onesfw.schedules.sizes import Batches, SizesLike, as_sizes
from onesfw.steps import ContinuousGreedyStep, FrankWolfeStep, LazyStep, Step, TwoPhaseStep, greedy_steps

PRESETS: dict[str, tuple[Schedule, Schedule, Step, str]] = {
    CONVEX: (schedules.power(1.0), schedules.harmonic(), FrankWolfeStep(), "last"),
    NONCONVEX: (schedules.power(2 / 3), schedules.horizon_power(2 / 3), FrankWolfeStep(), "random"),
    DR_SUBMODULAR: (schedules.power(1.0), schedules.horizon_power(1.0), ContinuousGreedyStep(), "last"),
}

AUTO, PAPER = "auto", "paper"
LAST = "last"
OUTPUTS = (LAST, "random", "average", CORRECTED)
SCHEDULES = tuple(schedules.PRESETS)
HASTE = 2.0  # where z depends on x: the first vertices come from the noisiest gradients
HASTENED = Schedule("1/(t+1)", schedules.harmonic(1.0, 1.0).function)
TWO_PHASES = Schedule("4/T, then 4a/t", lambda t, T: np.where(t <= greedy_steps(T), 1 / greedy_steps(T), 0.0), True)
AUTOMATIC: dict[str, tuple[Schedule, Schedule, Step, str]] = {
    CONVEX: (schedules.ADAPTIVE, schedules.PACED, FrankWolfeStep(), CORRECTED),
    NONCONVEX: (schedules.ADAPTIVE, HASTENED, FrankWolfeStep(), CORRECTED),
    DR_SUBMODULAR: (schedules.ADAPTIVE, TWO_PHASES, TwoPhaseStep(), "last"),
}
"""What did best in each setting (docs/choosing-an-algorithm.md), in the order of `PRESETS`."""
ORACLES = (AUTO, "exact", "lazy")

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
    schedule: str = AUTO,
    rho: ScheduleLike | str | None = None,
    eta: ScheduleLike | None = None,
    batch: SizesLike = 1,
    t0: int = 0,
    delta: float | None = None,
    output: str | None = None,
    oracle: str = AUTO,
) -> Algorithm:
    """One-sample stochastic Frank-Wolfe (Zhang, Shen, Mokhtari, Hassani, Karbasi 2020).

    `schedule="auto"` is what this library has found to do best; it has no theorem. `convex`: ρ_t = c/(t + c − 2) with a
    c that the run finds out itself, η_t = a/(t + a − 1), a = c^(−1/2), and a corrected output: 2 % of the steps give
    their samples to a quadratic model of F at the run's averages, whose minimiser over late iterates and new vertices
    is taken as far as half of these samples confirm it; with output="last", or more than 150 entries in x,
    a = 2c^(−1/2). `nonconvex`: the same ρ,
    η = 1/(t+1), or 2/(t+2) where z has a log-density that depends on x, and the corrected output where the model is
    convex, x_{T+1} elsewhere. `dr_submodular`: the same ρ, a = c^(−1/2), the theorem's steps in the first quarter of
    the run, x_{t+1} = x_t + η_t (v_t − x_t) with η_t = 4a/(t + 4(a − 1)) from there.

    `schedule="paper"` are the theorems': `convex` ρ = 1/(t−1), η = 1/t, output x_{T+1}; `nonconvex` ρ = (t−1)^(−2/3),
    η = T^(−2/3), output x_o; `dr_submodular` ρ = 1/(t−1), η = 1/T, x_1 = 0, x_{t+1} = x_t + η v_t.

    Args:
        setting: "convex", "nonconvex" or "dr_submodular".
        correction: None for Algorithm 2 on oblivious objectives and "hessian" on the others; "hessian", "difference",
            "importance", or "as_printed" (the paper's literal text, for the record). Where F̃ has kinks in x, take
            "importance": no sample's Hessian sees them.
        schedule: "auto" or "paper". In the convex setting also "tuned", η = 1/t with ρ = "adaptive"; "adaptive",
            η = 2/(t+1) with ρ = "adaptive"; "c2" and "c4", η = 2/(t+1) with ρ = 2/(t−1) or 4/(t−1).
        rho: a number, a function of t or (t, T), or "adaptive", the ρ_t of "auto"; None for the schedule's.
        eta: a number or a function of t or (t, T); None for the schedule's. With a ρ or an η of your own, "auto" means
            η = 1/t where none is given (nonconvex 1/(t+1)), the adaptive ρ where none is given, and the output x_{T+1}.
        batch: samples averaged in each step: a whole number, or a function of t or (t, T), with which "auto" takes the
            theorem's ρ.
        t0: reads η at t + t0, so that a warm start is not thrown away by η_1 = 1. ρ is not shifted: the gradient
            estimate starts anew and must average over its own samples.
        delta: half-width of the window of the "difference" correction, at most 1/2; None for the whole segment.
        output: "last", x_{T+1}; "random", x_o; "average", the mean of the iterates; "corrected", with an adaptive ρ;
            None for the schedule's. Where F̃ cannot be differentiated twice, "corrected" is "last".
        oracle: "lazy" asks the oracle more and more seldom, and takes vertices met before; "exact" asks at every step;
            "auto" is lazy with schedule="auto" over sets that say their oracle is dear, as Birkhoff and Polytope do,
            and exact elsewhere. A lazy run knows its vertices (`Result.atoms`). Not in the dr_submodular setting.

    Returns:
        The method, for `algorithm=` in `minimize` or `maximize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting, the schedule or the correction is unknown, a number is out of range, or
            options do not go together.

    Example:
        >>> import onesfw as fw
        >>> fw.one_sfw().summary
        'one_sfw, convex (rho=adaptive, eta=a/(t+a-1), output=corrected)'
        >>> fw.one_sfw("nonconvex", schedule="paper", batch=4).summary
        'one_sfw[paper], nonconvex (rho=(t-1)^(-0.667), eta=T^(-0.667), batch=4)'
    """
    choose_setting(setting, PRESETS, "one_sfw")
    choose(schedule, SCHEDULES, "schedule")
    if schedule not in (AUTO, PAPER) and setting != CONVEX:
        raise ValueError(
            f"schedule={schedule!r} was found on convex problems; setting={setting!r} takes 'auto' or 'paper'"
        )
    if isinstance(rho, str):
        choose(rho, ("adaptive",), "rho")
    if isinstance(rho, str) and callable(batch):
        raise ValueError("rho='adaptive' goes with a constant batch; give batch a whole number")
    if correction is not None:
        choose(correction, NON_OBLIVIOUS_CORRECTIONS, "correction")
    if delta is not None and (correction != "difference" or not 0 < (real(delta) or 0.0) <= 0.5):
        raise ValueError(f"delta must lie in (0, 1/2] and goes with correction='difference', got delta={delta!r}")
    rules = rules_of(setting, schedule, rho, eta, callable(batch))
    if output is not None:
        choose(output, OUTPUTS, "output")
        check_output(output, rules)
        rules = replace(rules, output=output)
    choose(oracle, ORACLES, "oracle")
    if oracle == "lazy":
        if rules.step.from_zero:
            raise ValueError("oracle='lazy' is for Frank-Wolfe steps; leave it out in the dr_submodular setting")
        rules = replace(rules, step=LazyStep())
    elif oracle == AUTO == schedule and not rules.step.from_zero:
        rules = replace(rules, step=LazyStep(always=False))

    def estimator(rules: Rules, objective: ObjectiveLike) -> Estimator:
        found = averaging(correction_for(objective, correction, delta), batch, rules.adaptive, rules.paced)
        if not isinstance(found, OneSample):
            return found
        return replace(found, haste=rules.haste(objective), haste_of_many=schedules.TO_THE_LAST if rules.hull else None)

    marks = [*([] if schedule == AUTO else [schedule]), *([] if correction is None else [correction])]
    algorithm = Algorithm(
        name="one_sfw" + (f"[{', '.join(marks)}]" if marks else ""),
        citation="Zhang, Shen, Mokhtari, Hassani, Karbasi: One Sample Stochastic Frank-Wolfe, AISTATS 2020",
        setting=setting,
        estimator=partial(estimator, rules),
        step=rules.step,
        rho=rules.rho,
        eta=rules.eta,
        output=rules.output,
        t0=whole_number(t0, "t0", 0),
        batch=shown(batch),
    )
    if rules.output != CORRECTED:
        return algorithm
    plain = replace(rules, output=LAST)
    return replace(algorithm, uncorrected=replace(algorithm, estimator=partial(estimator, plain), output=LAST))


@dataclass(frozen=True)
class Rules:
    """ρ, η, the step and the output, with what of them the run finds out itself."""

    rho: Schedule
    eta: Schedule
    step: Step
    output: str

    @property
    def adaptive(self) -> bool:
        """Whether ρ follows the run."""
        return self.rho is schedules.ADAPTIVE

    @property
    def paced(self) -> bool:
        """Whether η follows the run too."""
        return self.adaptive and self.eta in (schedules.PACED, TWO_PHASES)

    @property
    def hull(self) -> bool:
        """Whether η follows the run towards a corrected output."""
        return self.adaptive and self.eta is schedules.PACED and self.output == CORRECTED

    def haste(self, objective: ObjectiveLike) -> float:
        """What a is multiplied by."""
        if self.adaptive and self.eta is HASTENED and DENSITY in objective.offers:
            return HASTE
        return schedules.TO_THE_LAST if self.adaptive and self.eta is schedules.PACED and self.output == LAST else 1.0


def rules_of(
    setting: str, schedule: str, rho: ScheduleLike | str | None, eta: ScheduleLike | None, growing: bool
) -> Rules:
    """A schedule's rules, with those of a user's own in their place."""
    paper = Rules(*PRESETS[setting])
    if schedule == AUTO:
        rules = Rules(*AUTOMATIC[setting])
    elif schedule == PAPER:
        rules = paper
    else:
        rules = replace(paper, rho=schedules.PRESETS[schedule].rho, eta=schedules.PRESETS[schedule].eta)
    own_rho = None if rho is None or isinstance(rho, str) else schedules.as_schedule(rho, "rho")
    if isinstance(rho, str):
        rules = replace(rules, rho=schedules.ADAPTIVE)
    elif own_rho is None and growing and rules.adaptive:
        own_rho = paper.rho
    if eta is not None:
        rules = replace(rules, eta=schedules.as_schedule(eta, "eta"), step=paper.step)
    if own_rho is not None:
        rules = replace(rules, rho=own_rho, eta=schedules.harmonic() if rules.eta is schedules.PACED else rules.eta)
    if rules.output == CORRECTED and (own_rho is not None or eta is not None):
        rules = replace(rules, output=LAST)
    return rules


def check_output(output: str, rules: Rules) -> None:
    """Raise ValueError where an output does not go with the rest."""
    if output == CORRECTED and not rules.adaptive:
        raise ValueError("output='corrected' needs rho='adaptive', which says how far d can be trusted")
    if output != LAST and rules.step.from_zero:
        raise ValueError(f"output={output!r}: the dr_submodular setting ends at x_(T+1); leave output out")


def averaging(correction: Correction, batch: SizesLike, adaptive: bool = False, paced: bool = False) -> Estimator:
    """d_t = (1 − ρ_t)(d_{t−1} + Δ̃_t) + ρ_t g_t over a batch of a fixed size, or of a size that varies with t."""
    formula, sizes, uses_horizon = as_sizes(batch, "batch")
    if not callable(batch):
        return OneSample(correction, int(batch), adaptive, paced)
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
