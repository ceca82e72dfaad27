"""Methods that follow the gradient along the path: a large first batch, then differences on smaller ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from onesfw import schedules
from onesfw.algorithms.base import CONVEX, NONCONVEX, Algorithm, choose_setting, given_or
from onesfw.arguments import choose, number
from onesfw.batches import Batches, as_sizes
from onesfw.estimators import Batched, SameSample
from onesfw.schedules import Numbers, Schedule
from onesfw.steps import FrankWolfeStep

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
    schedule: str = "paper",
    eta: Any = None,
    batch: Any = None,
    noise: float = 1.0,
    full: bool = False,
) -> Algorithm:
    """Frank-Wolfe on SPIDER, d_t = d_{t−1} + mean of ∇F̃(x_t; z) − ∇F̃(x_{t−1}; z), restarted (Yurtsever et al. 2019).

    Convex: epochs of K = 1, 2, 4, … steps; each starts anew from ⌈(cK)²⌉ gradients, c = σ/(LD), and goes on with K
    samples a step; η = 2/(K+k) at step k of its epoch, which is 2/(t+1). O(1/ε²) samples, O(1/ε) oracle calls.
    Non-convex: epochs of ⌈√T⌉ steps that start from T gradients and go on with ⌈√T⌉ samples a step, η = T^(−1/2),
    output x_o; O(1/ε³) samples, O(1/ε²) oracle calls.

    Args:
        setting: "convex" or "nonconvex".
        schedule: the convex rule. "paper": as above; "book": 16(t+1) samples a step and (ct)² at a start, of the
            code beside a survey of Frank-Wolfe methods; "unit": the paper's epochs with η_t = 1/t.
        eta: a number, or a function of t or (t, T); None for the schedule's.
        batch: samples of the steps between two starts: a whole number, or a function of t or (t, T).
        noise: c, which scales the batch of a start in the convex setting. Its true value is seldom known, and the
            original's constants were not checked; 1 is a choice of this library.
        full: starts anew from the full gradient of a finite sum, which counts n samples.
    """
    choose_setting(setting, (CONVEX, NONCONVEX), "spider_fw")
    choose(schedule, SPIDER_SCHEDULES, "schedule")
    convex = setting == CONVEX
    c = number(noise, "noise", 0, strict=True)
    user = None if batch is None else as_sizes(batch, "batch")
    batches = spider_batches(convex, schedule == "book", c, user)
    return Algorithm(
        name="spider_fw",
        citation="Yurtsever, Sra, Cevher: Conditional Gradient Methods via Stochastic Path-Integrated Differential "
        "Estimator, ICML 2019",
        setting=setting,
        estimator=lambda objective: Batched(SameSample(), batches, path=True, full=bool(full)),
        step=FrankWolfeStep(),
        rho=schedules.constant(0.0),
        eta=given_or(eta, SPIDER_SCHEDULES[schedule] if convex else schedules.horizon_power(0.5), "eta"),
        output="last" if convex else "random",
        batch=batches.formula,
    )


def spider_batches(convex: bool, book: bool, c: float, user: Any) -> Batches:
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
