"""The paper's tables as measurements: which problems, budgets and seeds, and the tables that come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from onesfw import zoo
from onesfw.algorithms import CONVEX, DR_SUBMODULAR, NONCONVEX
from onesfw.experiments import noise, tuning
from onesfw.experiments.budgets import BY_GRADIENTS
from onesfw.experiments.claims import CLAIMS, TITLES, UTILITY, claim
from onesfw.experiments.compare import Announce, Comparison, Plan, carry_out, prepare, rise
from onesfw.experiments.grids import MISSING, Grid, mean_text, slope_text
from onesfw.experiments.runs import LABELS, Curve
from onesfw.experiments.subject import Subject


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: int
    budgets: dict[str, int]
    """Samples, by setting."""
    problems: Sequence[str]
    tuned_on: Sequence[str]
    tuning_budget: int
    sigmas: Sequence[float] = ()
    """Levels of noise at which 1-SFW and momentum are compared."""


FULL = Size(
    seeds=16,
    budgets={CONVEX: 100_000, NONCONVEX: 100_000, DR_SUBMODULAR: 10_000},
    problems=(
        "logistic", "quadratic-interior", "quadratic-face", "gaussian", "logistic-wide", "interpolation", "sigmoid",
        "indefinite", "nqp", "coverage",
    ),
    tuned_on=tuning.PROBLEMS,
    tuning_budget=100_000,
    sigmas=(0.3, 1.0, 2.0, 4.0),
)  # fmt: skip
QUICK = Size(
    seeds=4,
    budgets={CONVEX: 10_000, NONCONVEX: 3_000, DR_SUBMODULAR: 1_000},
    problems=("logistic", "sigmoid", "coverage"),
    tuned_on=("logistic", "interpolation"),
    tuning_budget=10_000,
)


@dataclass
class Rates:
    """What was measured."""

    size: Size
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    study: tuning.Study | None = None
    noise: dict[float, Comparison] = field(default_factory=dict)

    def of(self, setting: str) -> list[Comparison]:
        """The comparisons of a setting."""
        return [c for c in self.comparisons.values() if c.subject.setting == setting]


@dataclass(frozen=True)
class Work:
    """Everything that will be run, checked."""

    size: Size
    key: int
    plans: list[Plan]
    subjects: list[Subject]
    noise: dict[float, Plan]

    @property
    def runs(self) -> int:
        """How many curves will be measured."""
        plans = [*self.plans, *self.noise.values()]
        return sum(plan.runs for plan in plans) + len(self.subjects) * len(tuning.rules())


def plan_rates(size: Size, key: int = 0) -> Work:
    """Check every run before the first; competitors get the best of their documented step rules in a full run."""
    subjects = [Subject.of(zoo.get(name)) for name in size.problems]
    rules = size is not QUICK
    plans = [prepare(s, size.budgets[s.setting], size.seeds, key, step_rules=rules) for s in subjects]
    levels = noise.plan_noise(size.sigmas, size.budgets[CONVEX], size.seeds, key)
    return Work(size, key, plans, [Subject.of(zoo.get(name)) for name in size.tuned_on], levels)


def run_rates(work: Work, announce: Announce | None = None) -> Rates:
    """Run it all."""
    rates = Rates(work.size)
    for plan in work.plans:
        rates.comparisons[plan.comparison.subject.name] = carry_out(plan, announce)
    for sigma, plan in work.noise.items():
        rates.noise[sigma] = carry_out(plan, announce)
    rates.study = tuning.study(work.subjects, work.size.tuning_budget, work.size.seeds, work.key, announce)
    return rates


def claims_grid(rates: Rates, setting: str) -> Grid:
    """One of the paper's tables: each method's claim, and what was measured on each problem of the setting."""
    comparisons = rates.of(setting)
    measures = {c.curves[0].primary for c in comparisons if c.curves}
    columns = (
        "method", "reference", "batch", "claimed samples", "claimed slope", "problem", "slope in samples",
        "slope in LMO calls", "error at the end",
    )  # fmt: skip
    order = {name: place for place, name in enumerate(CLAIMS[setting])}
    found = [(curve, c) for c in comparisons for curve in c.curves]
    found.sort(key=lambda pair: order.get(pair[0].name, len(order)))
    rows = []
    for curve, comparison in found:
        said = claim(setting, curve.name)
        rows.append(
            (
                f"`{curve.name}`", said.reference, said.batch, said.complexity, said.slope, comparison.subject.name,
                samples_slope(curve), slope_text(rise(curve, "lmo_calls")), mean_text(curve.final),
            )
        )  # fmt: skip
    budget = rates.size.budgets[setting]
    note = (
        f"The error is {' or '.join(LABELS[name] for name in sorted(measures))}. "
        f"{budget:,} samples, {rates.size.seeds} seeds. Claims are orders. A slope is that of log E[error] over the "
        "last two decades, with a 95 % bootstrap interval over the seeds; ± is one standard error. * not in the "
        "paper's table; † printed there as Hazan, Luo 2016."
    )
    return Grid(TITLES[setting], columns, rows, note + (UTILITY if setting == DR_SUBMODULAR else ""), words=6)


def samples_slope(curve: Curve) -> str:
    """The slope in samples; where the budget counts gradients, the slope in those too."""
    text = slope_text(rise(curve, "samples"))
    return f"{text}; in gradients {slope_text(rise(curve, 'gradients'))}" if curve.name in BY_GRADIENTS else text


def submodular_grid(rates: Rates) -> Grid:
    """What Theorem 3's proof bounds, and the value, beside the error of the estimate."""
    columns = (
        "method",
        "problem",
        "oracle's regret at the end",
        "slope of the regret",
        "F(x)",
        "F*",
        "F(x)/F*",
    )
    rows = []
    for comparison in rates.of(DR_SUBMODULAR):
        best = comparison.optimum
        for curve in comparison.curves:
            value = curve.measures["value"][:, -1]
            regret = curve.measures.get("regret")
            known = regret is not None and bool(np.isfinite(regret).all())
            rows.append(
                (
                    f"`{curve.name}`",
                    comparison.subject.name,
                    mean_text(regret[:, -1]) if known and regret is not None else MISSING,
                    slope_text(rise(curve, "samples", "regret")) if known else MISSING,
                    mean_text(value),
                    MISSING if best is None else f"{best:.5g}",
                    MISSING if best is None else f"{value.mean() / best:.4f}",
                )
            )
    note = (
        "Regret of the oracle: (1/T) Σ_t max over v in K of ⟨∇F(x_t), v − v_t⟩ ≥ 0. F* is the global maximum. The "
        "guarantee is (1 − 1/e) F* = 0.632 F*, ½ F* for projected ascent."
    )
    return Grid("Regret of the oracle, and value", columns, rows, note, words=2)
