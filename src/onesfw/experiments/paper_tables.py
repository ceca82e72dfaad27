"""The paper's Tables 1–3, as claims and as measurements: which problems, budgets and seeds, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from onesfw import zoo
from onesfw.algorithms import CONVEX, DR_SUBMODULAR, NONCONVEX
from onesfw.experiments import studies
from onesfw.experiments.comparison import OURS, REFERENCE, Announce, Comparison, Plan, carry_out, prepare
from onesfw.experiments.curves import LABELS, MISSING, Curve, mean_text, rise, slope_text
from onesfw.experiments.runs import BY_GRADIENTS
from onesfw.results.show import Sheet, lines
from onesfw.zoo.base import Problem


@dataclass(frozen=True)
class Claim:
    """A row: whose it is, samples in a step, samples in all for an error ε, and the slope that this means."""

    reference: str
    batch: str
    complexity: str
    slope: str
    """Of the measured error against samples: −1/p for a complexity of 1/ε^p; of its square for DR-submodular."""


UTILITY = " The utility is ½ OPT − ε for `projected_sgd` and (1 − 1/e) OPT − ε for the other three."
TITLES = {
    CONVEX: "Table 1: convex",
    NONCONVEX: "Table 2: non-convex",
    DR_SUBMODULAR: "Table 3: monotone DR-submodular",
}

CLAIMS: dict[str, dict[str, Claim]] = {
    CONVEX: {
        "online_fw": Claim("Hazan, Kale 2012", "1/ε²", "1/ε⁴ gradients", "−1/4 in gradients"),
        "minibatch_sfw": Claim("Hazan, Luo 2016", "1/ε²", "1/ε³", "−1/3"),
        "svrf": Claim("Hazan, Luo 2016 *", "1/ε", "1/ε²", "−1/2"),
        "storc": Claim("Hazan, Luo 2016 *", "1/√ε", "1/ε^1.5", "−2/3"),
        "momentum_sfw": Claim("Mokhtari et al. 2018", "1", "1/ε³", "−1/3"),
        "spider_fw": Claim("Yurtsever et al. 2019", "1/ε", "1/ε²", "−1/2"),
        "scg_plus_plus": Claim("Hassani et al. 2019", "1/ε", "1/ε²", "−1/2"),
        "projected_sgd": Claim("projected *", "1", "1/ε²", "−1/2"),
        REFERENCE: Claim("this paper", "1", "1/ε²", "−1/2"),
        OURS: Claim("this library *", "1", "–", "–"),
    },
    NONCONVEX: {
        "minibatch_sfw": Claim("Reddi et al. 2016 †", "1/ε²", "1/ε⁴", "−1/4"),
        # The finite-sum forms, which are run; the paper's row, 1/ε^(10/3), is of the form for expectations.
        "svfw": Claim("Reddi et al. 2016 †", "n^(2/3)", "n + n^(2/3)/ε²", "−1/2 beyond n"),
        "saga_fw": Claim("Reddi et al. 2016 *", "n^(1/3)", "n + n^(1/3)/ε², disputed", "−1/2 beyond n"),
        "normalized_fw": Claim("Shen et al. 2019", "1/ε", "1/ε³", "−1/3"),
        "spider_fw": Claim("Yurtsever et al. 2019", "1/ε", "1/ε³", "−1/3"),
        "scg_plus_plus": Claim("Hassani et al. 2019", "1/ε", "1/ε³", "−1/3"),
        "storm": Claim("Cutkosky, Orabona 2019 *", "1", "1/ε³", "−1/3"),
        REFERENCE: Claim("this paper", "1", "1/ε³", "−1/3"),
        OURS: Claim("this library *", "1", "–", "–"),
    },
    DR_SUBMODULAR: {
        "projected_sgd": Claim("Hassani et al. 2017", "1", "1/ε²", "–"),
        "momentum_sfw": Claim("Mokhtari et al. 2018", "1", "1/ε³", "−2/3"),
        "scg_plus_plus": Claim("Hassani et al. 2019", "1/ε", "1/ε²", "−1"),
        REFERENCE: Claim("this paper", "1", "1/ε²", "−1"),
        OURS: Claim("this library *", "1", "–", "–"),
    },
}
UNKNOWN = Claim("full gradient *", "–", "–", "–")


def claim(setting: str, name: str) -> Claim:
    """The claim of a method in a setting."""
    return CLAIMS.get(setting, {}).get(name, UNKNOWN)


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
        "logistic", "quadratic-interior", "quadratic-face", "gaussian", "logistic-wide", "interpolation",
        "logistic-generated", "quadratic-noisy", "sigmoid", "indefinite", "nqp", "coverage",
    ),
    tuned_on=studies.PROBLEMS,
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
    """What was measured.

    Args:
        size: how much was run.
        comparisons: of the methods, by the problem's name.
        study: of the step rules of one_sfw; None before it is run.
        noise: comparisons of 1-SFW and momentum, by the level of noise.
        seconds: wall time in all.
        files: where it was written to, by "markdown", "json" and "page".

    Example:
        >>> from onesfw.experiments import Rates
        >>> from onesfw.experiments.paper_tables import QUICK
        >>> Rates(QUICK).of("convex")
        []
    """

    size: Size
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    study: studies.Study | None = None
    noise: dict[float, Comparison] = field(default_factory=dict)
    seconds: float = 0.0
    files: dict[str, Path] = field(default_factory=dict)

    def of(self, setting: str) -> list[Comparison]:
        """The comparisons of a setting."""
        return [c for c in self.comparisons.values() if c.problem.setting == setting]

    def sheets(self) -> list[Sheet]:
        """What was measured in each setting, for the terminal; `claims_sheet` has the paper's columns beside it."""
        return [measured_sheet(self, setting) for setting in TITLES if self.of(setting)]

    def __str__(self) -> str:
        return "\n\n".join(lines(sheet) for sheet in self.sheets())


@dataclass(frozen=True)
class Work:
    """Everything that will be run, checked."""

    size: Size
    key: int
    plans: list[Plan]
    tuned_on: list[Problem]
    noise: dict[float, Plan]

    @property
    def runs(self) -> int:
        """How many curves will be measured."""
        plans = [*self.plans, *self.noise.values()]
        return sum(plan.runs for plan in plans) + len(self.tuned_on) * len(studies.rules())


def plan_rates(size: Size, key: int = 0, also: Sequence[Problem] = ()) -> Work:
    """Check every run before the first; competitors get the best of their documented step rules in a full run."""
    problems = [*(zoo.get(name) for name in size.problems), *also]
    for problem in also:
        if problem.setting not in size.budgets:
            raise ValueError(f"also: {problem.name} is a {problem.setting} problem; {', '.join(TITLES)} have a table")
    rules = size is not QUICK
    plans = [prepare(p, size.budgets[p.setting], size.seeds, key, step_rules=rules) for p in problems]
    levels = studies.plan_noise(size.sigmas, size.budgets[CONVEX], size.seeds, key)
    return Work(size, key, plans, [zoo.get(name) for name in size.tuned_on], levels)


def run_rates(work: Work, announce: Announce | None = None) -> Rates:
    """Run it all."""
    rates = Rates(work.size)
    for plan in work.plans:
        rates.comparisons[plan.comparison.problem.name] = carry_out(plan, announce)
    for sigma, plan in work.noise.items():
        rates.noise[sigma] = carry_out(plan, announce)
    rates.study = studies.study(work.tuned_on, work.size.tuning_budget, work.size.seeds, work.key, announce)
    return rates


def claims_sheet(rates: Rates, setting: str) -> Sheet:
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
                f"`{curve.name}`", said.reference, said.batch, said.complexity, said.slope, comparison.problem.name,
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
    return Sheet(TITLES[setting], columns, rows, note + (UTILITY if setting == DR_SUBMODULAR else ""), words=6)


def measured_sheet(rates: Rates, setting: str) -> Sheet:
    """The claimed slope and the measured ones, a row for each method and problem."""
    claimed = claims_sheet(rates, setting)
    rows = [
        (f"{method.strip('`')} on {problem}", slope, samples.partition(";")[0], calls, error)
        for method, _, _, _, slope, problem, samples, calls, error in claimed.rows
    ]
    columns = ("method and problem", "claimed slope", "slope in samples", "slope in LMO calls", "error at the end")
    return Sheet(claimed.title, columns, rows, claimed.note)


def samples_slope(curve: Curve) -> str:
    """The slope in samples; where the budget counts gradients, the slope in those too."""
    text = slope_text(rise(curve, "samples"))
    return f"{text}; in gradients {slope_text(rise(curve, 'gradients'))}" if curve.name in BY_GRADIENTS else text


def submodular_sheet(rates: Rates) -> Sheet:
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
                    comparison.problem.name,
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
    return Sheet("Regret of the oracle, and value", columns, rows, note, words=2)
