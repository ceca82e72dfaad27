"""Methods for finite sums that remember gradients: of a snapshot, or of every row."""

from __future__ import annotations

import math

import numpy as np

from onesfw import schedules
from onesfw.algorithms.base import Algorithm
from onesfw.algorithms.path_integrated import doubling
from onesfw.algorithms.settings import CONVEX, NONCONVEX, choose_setting, schedule_or
from onesfw.arguments import choose, number, whole_number
from onesfw.capabilities import ObjectiveLike
from onesfw.estimators import Saga, Snapshot
from onesfw.schedules.rates import Numbers, Schedule, ScheduleLike
from onesfw.schedules.sizes import Batches, Epochs, SizesLike, as_sizes
from onesfw.steps import FrankWolfeStep, SlidingStep

HAZAN_LUO = "Hazan, Luo: Variance-Reduced and Projection-Free Stochastic Optimization, ICML 2016"
REDDI = "Reddi, Sra, Poczos, Smola: Stochastic Frank-Wolfe Methods for Nonconvex Optimization, 2016"

SVRF_EPOCHS = Epochs(lambda e: 2 ** (e + 3) - 2)
STORC_EPOCHS = Epochs(lambda e: math.ceil(2 ** (e / 2 + 2)))


def in_epoch(epochs: Epochs) -> Schedule:
    """γ = 2/(k + 1) at step k of its epoch."""
    return Schedule("2/(k+1)", lambda t, T: 2.0 / (epochs(t).k + 1))


SVRF_SCHEDULES: dict[str, Schedule] = {"paper": in_epoch(SVRF_EPOCHS), "book": schedules.harmonic(2.0, 1.0)}


def svrf(
    setting: str = CONVEX,
    *,
    schedule: str = "paper",
    eta: ScheduleLike | None = None,
    batch: SizesLike | None = None,
    constant: float = 1.0,
) -> Algorithm:
    """Variance-reduced Frank-Wolfe, d = ∇F(w) + mean of ∇f_i(x) − ∇f_i(w) (Hazan and Luo 2016).

    Epoch e takes a snapshot w and its full gradient, then 2^(e+3) − 2 steps with c(k+1) samples and γ_k = 2/(k+1) at
    step k. O(ln 1/ε) full gradients, O(1/ε²) samples, O(1/ε) oracle calls. Finite sums only. The first snapshot is
    x_1; at a snapshot the differences vanish and nothing is drawn.

    Args:
        setting: "convex".
        schedule: "paper": as above, recalled; "book": a snapshot when t is a power of two, c(t+1)/2 samples and
            η_t = 2/(t+1), of the code beside a survey of Frank-Wolfe methods (where c = 96).
        eta: a number, or a function of t or (t, T); None for the schedule's.
        batch: samples of the steps between two snapshots: a whole number, or a function of t or (t, T).
        constant: c. The theorem's 96 is unusable for small budgets: with 4 the error at 1e5 samples was 23 times
            smaller, measured during design, and 1 did twice as well again on problems drawn for the choice.

    Returns:
        The method, for `algorithm=` in `minimize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting or the schedule is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.svrf().summary
        'svrf, convex (rho=1, eta=2/(k+1), batch=n, 1(k+1))'
    """
    choose_setting(setting, (CONVEX,), "svrf")
    choose(schedule, SVRF_SCHEDULES, "schedule")
    c = number(constant, "constant", 0, strict=True)
    book = schedule == "book"
    user = None if batch is None else as_sizes(batch, "batch")

    def sizes(t: Numbers, T: int) -> tuple[Numbers, Numbers]:
        place = SVRF_EPOCHS(t)
        first = t == doubling(t) if book else place.k == 1
        between = user[1](t, T) if user else c * (t + 1) / 2 if book else c * (place.k + 1)
        return np.where(first, 1.0, 0.0), np.where(first, 0.0, between)

    formula = user[0] if user else f"{c / 2:g}(t+1)" if book else f"{c:g}(k+1)"
    batches = Batches(f"n, {formula}", sizes, bool(user and user[2]))
    return Algorithm(
        name="svrf",
        citation=HAZAN_LUO,
        setting=setting,
        estimator=lambda objective: Snapshot(batches),
        step=FrankWolfeStep(),
        rho=schedules.constant(1.0),
        eta=schedule_or(SVRF_SCHEDULES[schedule], eta, "eta"),
        batch=batches.formula,
    )


def storc(
    setting: str = CONVEX,
    *,
    batch: SizesLike | None = None,
    constant: float = 1.0,
    smoothness: float = 0.1,
    inner: int = 10_000,
) -> Algorithm:
    """Stochastic accelerated sliding with snapshots (Hazan and Luo 2016).

    Epoch e takes a snapshot and its full gradient, then N = ⌈2^(e/2+2)⌉ steps with cN samples each. A step asks the
    oracle as often as its inner problem needs, and the count is the run's own: oracle calls are not steps here.
    O(1/ε^1.5) samples for Lipschitz F, O(1/ε) oracle calls. Finite sums only. γ_k = 2/(k+1), β_k = 3L/k, and the inner
    gap 2LD²/(Nk) are recalled, their constants unsure; D is the diameter of the set.

    Args:
        setting: "convex".
        batch: samples of the steps between two snapshots: a whole number, or a function of t or (t, T). The theorem
            has 900N where ∇F vanishes at the optimum, 700N + 24N G(k+1)/(LD) for G-Lipschitz F, as recalled.
        constant: c; 1 is a choice of this library, for small budgets.
        smoothness: L, which sets how far a step goes and how exactly it is solved. The theorem wants the largest
            eigenvalue of the Hessian; on the zoo's logistic problems a tenth and less was 50 times better, so that
            0.1 is the default. Try several.
        inner: at most so many oracle calls in a step.

    Returns:
        The method, for `algorithm=` in `minimize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.storc(constant=2.0).summary
        'storc, convex (rho=1, eta=2/(k+1), batch=n, 2N)'
    """
    choose_setting(setting, (CONVEX,), "storc")
    c = number(constant, "constant", 0, strict=True)
    slope = number(smoothness, "smoothness", 0, strict=True)
    user = None if batch is None else as_sizes(batch, "batch")

    def sizes(t: Numbers, T: int) -> tuple[Numbers, Numbers]:
        place = STORC_EPOCHS(t)
        first = place.k == 1
        return np.where(first, 1.0, 0.0), np.where(first, 0.0, user[1](t, T) if user else c * place.length)

    batches = Batches(f"n, {user[0] if user else f'{c:g}N'}", sizes, bool(user and user[2]))
    gamma = in_epoch(STORC_EPOCHS)
    return Algorithm(
        name="storc",
        citation=HAZAN_LUO,
        setting=setting,
        estimator=lambda objective: Snapshot(batches),
        step=SlidingStep(STORC_EPOCHS, slope, whole_number(inner, "inner", 1), gamma),
        rho=schedules.constant(1.0),
        eta=gamma,
        batch=batches.formula,
    )


def svfw(
    setting: str = NONCONVEX,
    *,
    eta: ScheduleLike | None = None,
    batch: SizesLike | None = None,
    full: bool = True,
    length: int | None = None,
) -> Algorithm:
    """SVFW: snapshots every ⌈n^(1/3)⌉ steps, ⌈n^(2/3)⌉ samples between, η = T^(−1/2), output x_o (Reddi et al. 2016).

    O(n + n^(2/3)/ε²) gradients for finite sums, recalled. `full=False` is SVFW-S, for expectations too: snapshots from
    T samples every ⌈T^(1/3)⌉ steps, ⌈T^(2/3)⌉ samples between; O(1/ε^(10/3)) samples.

    Args:
        setting: "nonconvex".
        eta: a number, or a function of t or (t, T); None for T^(−1/2).
        batch: samples of the steps between two snapshots: a whole number, or a function of t or (t, T).
        full: whether a snapshot takes the full gradient of a finite sum.
        length: steps from a snapshot to the next; None for the theorem's.

    Returns:
        The method, for `algorithm=` in `minimize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.svfw().summary
        'svfw, nonconvex (rho=1, eta=T^(-0.5), batch=n, n^(2/3))'
    """
    choose_setting(setting, (NONCONVEX,), "svfw")
    user = None if batch is None else as_sizes(batch, "batch")
    every = None if length is None else whole_number(length, "length", 1)

    def batches(n: int | None) -> Batches:
        def sizes(t: Numbers, T: int) -> tuple[Numbers, Numbers]:
            base = float(n or T)
            first = (t - 1) % (every or math.ceil(base ** (1 / 3) - 1e-9)) == 0
            between = user[1](t, T) if user else base ** (2 / 3)
            return np.where(first, 1.0 if full else base, 0.0), np.where(first, 0.0, between)

        symbol = "n" if full else "T"
        return Batches(
            f"{symbol}, {user[0] if user else f'{symbol}^(2/3)'}", sizes, n is None or bool(user and user[2])
        )

    return Algorithm(
        name="svfw",
        citation=REDDI,
        setting=setting,
        estimator=lambda objective: Snapshot(batches(rows_of(objective) if full else None), bool(full)),
        step=FrankWolfeStep(),
        rho=schedules.constant(1.0),
        eta=schedule_or(schedules.horizon_power(0.5), eta, "eta"),
        output="random",
        batch=batches(1 if full else None).formula,
    )


def saga_fw(setting: str = NONCONVEX, *, eta: ScheduleLike | None = None, batch: int | None = None) -> Algorithm:
    """SAGAFW: a table of every row's gradient, two sets of ⌈n^(1/3)⌉ rows a step, output x_o (Reddi et al. 2016).

    O(n + n^(1/3)/ε²) gradients are claimed, recalled; Beznosikov et al. (2024) report an error in that analysis. The
    table holds n gradients for each run: n·d numbers. Finite sums only. η = T^(−1/2).

    Args:
        setting: "nonconvex".
        eta: a number, or a function of t or (t, T); None for T^(−1/2).
        batch: the size of each of the two sets; None for ⌈n^(1/3)⌉.

    Returns:
        The method, for `algorithm=` in `minimize`.

    Raises:
        TypeError: where an argument is of the wrong kind.
        ValueError: where the setting is none of this method's, or a number is out of range.

    Example:
        >>> import onesfw as fw
        >>> fw.saga_fw(batch=8).summary
        'saga_fw, nonconvex (rho=1, eta=T^(-0.5), batch=8)'
    """
    choose_setting(setting, (NONCONVEX,), "saga_fw")
    size = None if batch is None else whole_number(batch, "batch", 1)

    def estimator(objective: ObjectiveLike) -> Saga:
        n = rows_of(objective)
        return Saga(n, size or math.ceil(n ** (1 / 3) - 1e-9))

    return Algorithm(
        name="saga_fw",
        citation=REDDI,
        setting=setting,
        estimator=estimator,
        step=FrankWolfeStep(),
        rho=schedules.constant(1.0),
        eta=schedule_or(schedules.horizon_power(0.5), eta, "eta"),
        output="random",
        batch="n^(1/3)" if size is None else f"{size}",
    )


def rows_of(objective: ObjectiveLike) -> int:
    """n, and 1 for an objective without rows, which is refused when the run is built."""
    return int(getattr(objective, "n", 1))
