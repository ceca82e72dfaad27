"""Methods that follow the gradient along the path: a large first batch, then differences on smaller ones."""

from __future__ import annotations

import math

import numpy as np

from onesfw import schedules
from onesfw.algorithms.base import Algorithm
from onesfw.algorithms.settings import CONVEX, DR_SUBMODULAR, NONCONVEX, choose_setting, convex_schedule, schedule_or
from onesfw.algorithms.single_sample import correction_for
from onesfw.arguments import choose, number
from onesfw.estimators import Batched, SameSample
from onesfw.schedules.rates import Numbers, Schedule, ScheduleLike
from onesfw.schedules.sizes import Batches, SizesLike, UserSizes, as_sizes
from onesfw.steps import ContinuousGreedyStep, FrankWolfeStep, NormalizedStep

SPIDER_SCHEDULES: dict[str, Schedule] = {
    "paper": schedules.harmonic(2.0, 1.0),
    "book": schedules.harmonic(2.0, 1.0),
    "unit": schedules.harmonic(1.0, 0.0),
}


def doubling(t: Numbers) -> Numbers:
    """K, the length of the epoch that step t is in: 1, 2, 2, 4, 4, 4, 4, 8, …"""
    return 2.0 ** (np.frexp(t)[1] - 1)


def spider_fw(
    setting: str = CONVEX,
    *,
    schedule: str | None = None,
    eta: ScheduleLike | None = None,
    batch: SizesLike | None = None,
    noise: float = 0.5,
    full: bool = False,
) -> Algorithm:
    """Frank-Wolfe on SPIDER, d_t = d_{t−1} + mean of ∇F̃(x_t; z) − ∇F̃(x_{t−1}; z), restarted (Yurtsever et al. 2019).

    Convex: epochs of K = 1, 2, 4, … steps; each starts anew from ⌈(cK)²⌉ gradients, c = σ/(LD), and goes on with K
    samples a step; η = 2/(K+k) at step k of its epoch, which is 2/(t+1). O(1/ε²) samples, O(1/ε) oracle calls.
    Non-convex: epochs of ⌈√T⌉ steps that start from T gradients and go on with ⌈√T⌉ samples a step, η = T^(−1/2),
    output x_o; O(1/ε³) samples, O(1/ε²) oracle calls. The convex epochs and steps agree with public code; the size of
    a start and the non-convex setting are recalled, not read in the original.

    Args:
        setting: "convex" or "nonconvex".
        schedule: the convex rule. "paper": as above; "book": 16(t+1) samples a step and (ct)² at a start, of the
            code beside a survey of Frank-Wolfe methods; "unit": the paper's epochs with η_t = 1/t; None takes it, for
            it did best on problems drawn for the choice (`benchmarks/step_rules.py`).
        eta: a number, or a function of t or (t, T); None for the schedule's.
        batch: samples of the steps between two starts: a whole number, or a function of t or (t, T).
        noise: c, which scales the batch of a start in the convex setting. Its true value is seldom known, and the
            original's constants were not checked; 0.5 was chosen with the schedule.
        full: starts anew from the full gradient of a finite sum, which counts n samples. Epochs keep their lengths; the
            original's non-convex finite-sum form has epochs of √n.

    Returns:
        The method, for `algorithm=` in `minimize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting or the schedule is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.spider_fw().summary
        'spider_fw, convex (rho=0, eta=1/t, batch=(0.5K)^2, K)'
    """
    choose_setting(setting, (CONVEX, NONCONVEX), "spider_fw")
    rule = convex_schedule(setting, schedule, SPIDER_SCHEDULES, "unit")
    convex = setting == CONVEX
    c = number(noise, "noise", 0, strict=True)
    user = None if batch is None else as_sizes(batch, "batch")
    batches = spider_batches(convex, rule == "book", c, user)
    return Algorithm(
        name="spider_fw",
        citation="Yurtsever, Sra, Cevher: Conditional Gradient Methods via Stochastic Path-Integrated Differential "
        "Estimator, ICML 2019",
        setting=setting,
        estimator=lambda objective: Batched(SameSample(), batches, path=True, full=bool(full)),
        step=FrankWolfeStep(),
        rho=schedules.constant(0.0),
        eta=schedule_or(SPIDER_SCHEDULES[rule] if convex else schedules.horizon_power(0.5), eta, "eta"),
        output="last" if convex else "random",
        batch=batches.formula,
    )


def spider_batches(convex: bool, book: bool, c: float, user: UserSizes | None) -> Batches:
    """The epochs of SPIDER: sizes of the starts, and of the steps between them."""

    def doubled(t: Numbers, T: int) -> tuple[Numbers, Numbers]:
        length = doubling(t)
        between = user[1](t, T) if user else 16.0 * (t + 1) if book else length
        start = np.maximum((c * length) ** 2, 1.0)
        return np.where(t == length, start, 0.0), np.where(t == length, 0.0, between)

    def equal(t: Numbers, T: int) -> tuple[Numbers, Numbers]:
        length = np.ceil(np.sqrt(T))
        first = (t - 1) % length == 0
        between = user[1](t, T) if user else length
        return np.where(first, float(T), 0.0), np.where(first, 0.0, between)

    if not convex:
        return Batches(f"T, {user[0] if user else 'sqrt(T)'}", equal, uses_horizon=True)
    between = user[0] if user else "16(t+1)" if book else "K"
    return Batches(f"({c:g}K)^2, {between}", doubled, bool(user and user[2]))


def normalized_fw(
    setting: str = NONCONVEX,
    *,
    correction: str | None = None,
    eta: ScheduleLike | None = None,
    batch: SizesLike | None = None,
    full: bool = False,
) -> Algorithm:
    """Frank-Wolfe with steps of a fixed length, x_{t+1} = x_t + η D (v_t − x_t)/‖v_t − x_t‖ (Shen et al. 2019).

    The gradient is SPIDER's, or with correction="hessian" the second-order estimate: epochs of ⌈√T⌉ steps that start
    from T gradients and go on with ⌈√T⌉ samples a step; η = T^(−1/2), output x_o. O(1/ε³) samples, O(1/ε²) oracle
    calls. D is the diameter of the set. Only the original's abstract was read; sizes and lengths are choices of this
    library.

    Args:
        setting: "nonconvex".
        correction: None for gradient differences (Hessians where z depends on x), or a name that `one_sfw` takes.
        eta: a number, or a function of t or (t, T); None for T^(−1/2).
        batch: samples of the steps between two starts: a whole number, or a function of t or (t, T).
        full: starts anew from the full gradient of a finite sum.

    Returns:
        The method, for `algorithm=` in `minimize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.normalized_fw().summary
        'normalized_fw, nonconvex (rho=0, eta=T^(-0.5), batch=T, sqrt(T))'
    """
    choose_setting(setting, (NONCONVEX,), "normalized_fw")
    require_correction(correction)
    batches = spider_batches(False, False, 1.0, None if batch is None else as_sizes(batch, "batch"))
    return Algorithm(
        name="normalized_fw",
        citation="Shen, Fang, Zhao, Huang, Qian: Complexities in Projection-Free Stochastic Non-convex Minimization, "
        "AISTATS 2019",
        setting=setting,
        estimator=lambda objective: Batched(correction_for(objective, correction, None), batches, True, bool(full)),
        step=NormalizedStep(),
        rho=schedules.constant(0.0),
        eta=schedule_or(schedules.horizon_power(0.5), eta, "eta"),
        output="random",
        batch=batches.formula,
    )


def scg_plus_plus(
    setting: str = DR_SUBMODULAR,
    *,
    correction: str | None = None,
    eta: ScheduleLike | None = None,
    batch: SizesLike | None = None,
    noise: float | None = None,
) -> Algorithm:
    """SCG++ and SFW++: one large batch, then d_t = d_{t−1} + mean of ∇²F̃ (x_t − x_{t−1}) (Hassani et al. 2019).

    `dr_submodular`: ⌈(cT)²/2⌉ gradients at the start, c = G/(LD), then ⌈T/2⌉ samples a step, η = 1/T from x_1 = 0;
    O(1/ε²) samples, O(1/ε) oracle calls. `convex`: the same sizes with η = ln(T)/T. `nonconvex`: epochs of ⌈√T⌉ steps,
    T gradients at each start, ⌈√T⌉ samples between, η = T^(−1/2), output x_o; O(1/ε³) samples. Sizes and the steps of
    the last two settings are recalled or reconstructed from the claimed orders, not read in the original.

    Args:
        setting: "dr_submodular", "convex" or "nonconvex".
        correction: None for gradient differences on the same samples (Hessian-vector products where z depends on x);
            "hessian", "difference" or "importance" as in `one_sfw`.
        eta: a number, or a function of t or (t, T); None for the setting's.
        batch: samples of the steps after the start: a whole number, or a function of t or (t, T).
        noise: c, which scales the first batch. None for 1/2 in the convex setting, which did best over problems drawn
            for the choice, and 1, a choice of this library, in the others.

    Returns:
        The method, for `algorithm=` in `maximize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.scg_plus_plus().summary
        'scg_plus_plus, dr_submodular (rho=0, eta=1/T, batch=(1T)^2/2, T/2)'
    """
    choose_setting(setting, PATH_ETAS, "scg_plus_plus")
    require_correction(correction)
    usual = 0.5 if setting == CONVEX else 1.0
    c = usual if noise is None else number(noise, "noise", 0, strict=True)
    user = None if batch is None else as_sizes(batch, "batch")

    def once(t: Numbers, T: int) -> tuple[Numbers, Numbers]:
        between = user[1](t, T) if user else T / 2
        return np.where(t == 1, max((c * T) ** 2 / 2, 1.0), 0.0), np.where(t == 1, 0.0, between)

    if setting == NONCONVEX:
        batches = spider_batches(False, False, c, user)
    else:
        batches = Batches(f"({c:g}T)^2/2, {user[0] if user else 'T/2'}", once, uses_horizon=True)
    return Algorithm(
        name="scg_plus_plus",
        citation="Hassani, Karbasi, Mokhtari, Shen: Stochastic Conditional Gradient++, 2019",
        setting=setting,
        estimator=lambda objective: Batched(correction_for(objective, correction, None), batches, path=True),
        step=ContinuousGreedyStep() if setting == DR_SUBMODULAR else FrankWolfeStep(),
        rho=schedules.constant(0.0),
        eta=schedule_or(PATH_ETAS[setting], eta, "eta"),
        output="random" if setting == NONCONVEX else "last",
        batch=batches.formula,
    )


PATH_ETAS: dict[str, Schedule] = {
    DR_SUBMODULAR: schedules.horizon_power(1.0),
    CONVEX: Schedule("ln(T)/T", lambda t, T: np.full(np.shape(t), max(math.log(T), 1.0) / T), uses_horizon=True),
    NONCONVEX: schedules.horizon_power(0.5),
}


def require_correction(correction: str | None) -> None:
    """Raise ValueError for a name that is no correction of a path-integrated estimate."""
    if correction is not None:
        choose(correction, ("hessian", "difference", "importance"), "correction")
