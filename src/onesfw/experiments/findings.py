"""What the measurements say: expectations met or not, and where 1-SFW loses and why, in measured numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onesfw.algorithms import CONVEX, DR_SUBMODULAR, NONCONVEX
from onesfw.experiments import tuning
from onesfw.experiments.compare import Comparison, rise
from onesfw.experiments.grids import Grid, final_of, number_text, ratio_text, slope_text
from onesfw.experiments.methods import REFERENCE
from onesfw.experiments.page import Section
from onesfw.experiments.rates import QUICK, Rates
from onesfw.experiments.runs import Curve
from onesfw.experiments.slopes import ratio

EXPECTED_RATIOS = {"momentum_sfw": 5.0, "minibatch_sfw": 5.0, "spider_fw": 1.5}
EXPECTED_ON = ("logistic", "quadratic-interior", "quadratic-face")
NONCONVEX_SLOPE = -1 / 3 + 0.08
ESTIMATE_SLOPE, MOMENTUM_SLOPE = -0.9, -0.85


@dataclass(frozen=True)
class Finding:
    """A measured number beside what is expected of it."""

    problem: str
    what: str
    measured: str
    expected: str
    met: bool


def findings(rates: Rates) -> list[Finding]:
    """Every expectation whose problem was run; a quick run says too little to be held against any."""
    if rates.size is QUICK:
        return []
    found: list[Finding] = []
    for name in EXPECTED_ON:
        if name in rates.comparisons:
            found += convex_findings(rates.comparisons[name])
    for comparison in rates.of(NONCONVEX):
        curve = comparison.curve(REFERENCE)
        if curve is not None:
            slope = rise(curve, "samples")
            what = "slope of 1-SFW's gap, E over its output"
            met = slope.value <= NONCONVEX_SLOPE
            found.append(Finding(comparison.subject.name, what, slope_text(slope), "at most −0.25 (−1/3 + 0.08)", met))
    for comparison in rates.of(DR_SUBMODULAR):
        found += submodular_findings(comparison)
    return found


def convex_findings(comparison: Comparison) -> list[Finding]:
    """How many times 1-SFW's suboptimality a competitor's is, with its best step rule."""
    ours = comparison.curve(REFERENCE)
    found = []
    for name, least in EXPECTED_RATIOS.items():
        theirs = comparison.curve(name)
        if ours is None or theirs is None:
            continue
        rules = comparison.rules.get(name, {"preset": theirs.final})
        documented = {rule: errors for rule, errors in rules.items() if "noise=" not in rule}
        for label, among in (("its step rules", documented), ("its step rules and of noise=", rules)):
            if label != "its step rules" and len(among) == len(documented):
                continue
            rule = min(among, key=lambda r: float(among[r].mean()))
            times = ratio(among[rule], ours.final)
            what = f"`{name}`, the best of {len(among)} of {label} ({rule}), over 1-SFW"
            measured = f"{ratio_text(times, 3)} times"
            found.append(Finding(comparison.subject.name, what, measured, f"at least {least:g}", times.value >= least))
    return found


def submodular_findings(comparison: Comparison) -> list[Finding]:
    """The slopes of E‖d_T − ∇F(x_T)‖² of 1-SFW and of momentum, and whether their intervals are apart."""
    ours, theirs = comparison.curve(REFERENCE), comparison.curve("momentum_sfw")
    name = comparison.subject.name
    found = []
    what = "slope of E‖d_T − ∇F(x_T)‖²"
    if ours is not None:
        slope = rise(ours, "samples")
        found.append(Finding(name, f"{what}, 1-SFW", slope_text(slope), "at most −0.9", slope.value <= ESTIMATE_SLOPE))
    if ours is not None and theirs is not None:
        slope, other = rise(ours, "samples"), rise(theirs, "samples")
        gentle = other.value >= MOMENTUM_SLOPE
        found.append(Finding(name, f"{what}, momentum", slope_text(other), "no steeper than −0.85", gentle))
        apart = slope.high < other.low
        found.append(Finding(name, "the two intervals", "apart" if apart else "overlap", "apart", apart))
    return found


def findings_grid(found: list[Finding]) -> Grid:
    """The findings as a table."""
    rows = [(f.problem, f.what, f.measured, f.expected, "yes" if f.met else "**no**") for f in found]
    return Grid("", ("problem", "figure", "measured", "expected", "met"), rows, words=5)


def losses(rates: Rates) -> Section:
    """Where 1-SFW loses, and why."""
    paragraphs = [
        *loss_on(rates, "logistic-wide", "**Large diameter.**", WIDE),
        *loss_on(rates, "interpolation", "**Interpolation.**", EXACT),
        *oracle_bound(rates),
        *small_sums(rates),
        *interior(rates),
    ]
    return Section("Where 1-SFW loses, and why", paragraphs)


WIDE = (
    "A step of length η_t moves x by up to η_t D, and the gradient moves with it. ρ = 1/(t−1) keeps all past samples "
    "with equal weight, so every early error of the differences, which grows with D, is remembered for good; a larger "
    'ρ forgets it. `rho="adaptive"` weighs the two against one another.'
)
EXACT = (
    "Every sample's gradient is right at the optimum, so there is no noise to average away, and forgetting fast costs "
    "nothing. ρ = 1/(t−1) averages all the same, over samples that were drawn far from the optimum."
)


def loss_on(rates: Rates, name: str, head: str, why: str) -> list[str]:
    """1-SFW against the best other method and the best schedule on one problem."""
    comparison = rates.comparisons.get(name)
    ours = None if comparison is None else comparison.curve(REFERENCE)
    if comparison is None or ours is None:
        return []
    others = [c for c in comparison.curves if c.name != REFERENCE]
    text = f"{head} On `{name}` 1-SFW ends at {number_text(final_of(ours), 2)}"
    if others:
        best = min(others, key=final_of)
        times = ratio(best.final, ours.final)
        word = "loses to" if times.value < 1 else "still beats"
        text += (
            f" and {word} `{best.name}`, the best of the others, at {number_text(final_of(best), 2)} "
            f"({ratio_text(times, 3)} times 1-SFW's error)"
        )
    if rates.study is not None and name in rates.study.errors:
        errors = rates.study.errors[name]
        rule = min(errors, key=lambda r: float(errors[r].mean()))
        if rule != tuning.PAPER:
            text += f"; 1-SFW itself with (ρ, η) = `{rule}` at {number_text(float(errors[rule].mean()), 2)}"
    return [f"{text}. {why}"]


def oracle_bound(rates: Rates) -> list[str]:
    """Errors after equally many oracle calls, on the first convex problem that has SPIDER."""
    for comparison in rates.of(CONVEX):
        ours, theirs = comparison.curve(REFERENCE), comparison.curve("spider_fw")
        if ours is None or theirs is None:
            continue
        calls = int(theirs.counts["lmo_calls"][-1])
        mine = error_after(ours, calls)
        if np.isnan(mine):
            continue
        return [
            "**Problems whose oracle is the bottleneck.** 1-SFW calls the oracle once for every sample. On "
            f"`{comparison.subject.name}` SPIDER has used {int(theirs.counts['samples'][-1]):,} samples after "
            f"{calls:,} calls and is at {number_text(final_of(theirs), 2)}; 1-SFW after as many calls, and samples, is "
            f"at {number_text(mine, 2)}. At the full budget of samples 1-SFW has called it "
            f"{int(ours.counts['lmo_calls'][-1]):,} times for {number_text(final_of(ours), 2)}. Where a call costs "
            "far more than a gradient, take `batch=` in `one_sfw`, or SPIDER."
        ]
    return []


def small_sums(rates: Rates) -> list[str]:
    """Where passes over all rows are cheap."""
    for comparison in rates.of(CONVEX):
        ours, theirs = comparison.curve(REFERENCE), comparison.curve("frank_wolfe")
        if ours is None or theirs is None or final_of(theirs) >= final_of(ours):
            continue
        passes = int(theirs.counts["lmo_calls"][-1])
        return [
            f"**Few rows.** The budget buys {passes:,} passes over the rows of `{comparison.subject.name}`, and "
            f"`frank_wolfe` with the full gradient ends at {number_text(final_of(theirs), 2)}, 1-SFW at "
            f"{number_text(final_of(ours), 2)}. One sample at a time pays where a pass is dear: many rows, or a stream."
        ]
    return []


def interior(rates: Rates) -> list[str]:
    """Where a competitor that averages the vertices comes close."""
    comparison = rates.comparisons.get("quadratic-interior")
    ours = None if comparison is None else comparison.curve(REFERENCE)
    theirs = None if comparison is None else comparison.curve("momentum_sfw")
    if comparison is None or ours is None or theirs is None:
        return []
    times = ratio(theirs.final, ours.final)
    return [
        "**Optimum inside K.** No vertex is right there: x is a mean of many, and a noisy direction picks now one, now "
        "another. With η = 1/(t+1) the mean over the vertices averages the noise that momentum leaves in the "
        f"direction. On `quadratic-interior` `momentum_sfw` ends at {number_text(final_of(theirs), 2)}, "
        f"{ratio_text(times, 3)} times 1-SFW's error; its slope is {slope_text(rise(theirs, 'samples'))}, 1-SFW's "
        f"{slope_text(rise(ours, 'samples'))}. The factor shrinks as the noise grows; the table below shows how."
    ]


def error_after(curve: Curve, calls: int) -> float:
    """The mean error at so many oracle calls, read off the curve on log-log axes; NaN outside it."""
    counts, errors = curve.counts["lmo_calls"].astype(float), curve.measures[curve.primary].mean(0)
    if not counts[0] <= calls <= counts[-1] or np.any(errors <= 0):
        return float("nan")
    return float(np.exp(np.interp(np.log(calls), np.log(counts), np.log(errors))))
