"""Methods side by side on a problem, at equal budgets: which apply, what was measured, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from onesfw.algorithms import ALGORITHMS, CONVEX, SCHEDULES, SETTINGS, Algorithm
from onesfw.arguments import named, nearest, whole_number
from onesfw.engine import jobs
from onesfw.engine.checks import checked_run
from onesfw.experiments.curves import (
    COUNTS,
    LABELS,
    MISSING,
    Curve,
    Slope,
    count_text,
    final_of,
    mean_text,
    rise,
    slope_text,
    standard_error,
)
from onesfw.experiments.runs import BY_GRADIENTS, ENDS, NotFinite, measure, steps_for
from onesfw.progress import RunsBar
from onesfw.results.jsonable import Jsonable, plain
from onesfw.results.show import Sheet, as_html, lines
from onesfw.trees import Floats
from onesfw.zoo import find
from onesfw.zoo.base import Problem

REFERENCE, OURS = "one_sfw[paper]", "one_sfw[auto]"  # the theorems are about the first; the second is the default
METHODS: dict[str, tuple[str, str | None]] = {
    OURS: ("one_sfw", "auto"),
    REFERENCE: ("one_sfw", "paper"),
    **{name: (name, None) for name in ALGORITHMS},
}
"""What can be compared: recipes by name, 1-SFW by that of its schedule too."""
PRESET = "preset"
TRIED = 4  # seeds on which a competitor's step rule is chosen; it is measured on others
CONSTANTS: dict[str, dict[str, tuple[float, ...]]] = {
    "minibatch_sfw": {"noise": (0.25, 1.0, 2.0)},
    "spider_fw": {"noise": (0.25, 1.0, 2.0)},
    "scg_plus_plus": {"noise": (0.25, 1.0, 2.0)},
    "svrf": {"constant": (0.25, 4.0)},
    "storc": {"smoothness": (0.01, 1.0)},
    "projected_sgd": {"noise": (0.1, 10.0), "smoothness": (1.0,)},
}
"""Other values of the constants that theory takes to be known, which competitors are tried with."""
MOST_SAMPLES, MOST_SEEDS = 2**30, 10_000
SHORT = {"gap": "gap"}
ENOUGH = 0.8  # of the budget: a method that used less is named
Announce = Callable[[str, str], None]
"""Called with (problem, method) before each run."""


@dataclass
class Comparison:
    """The curves of all methods on one problem, and why the others are missing.

    Args:
        problem: what the methods ran on.
        budget: samples of each run.
        seeds: how many runs of each method.
        key: the seed that all others are folded from.
        curves: what was measured, one for each method.
        skipped: the methods that did not run, with the reason.
        rules: of each method with several step rules, the final errors of those that were chosen, one for each seed:
            the best of all, and the best without a constant of its own.
        tried: the final errors of every rule on the seeds on which the choice was made.
        finished: whether every method was run; False after Ctrl-C.

    Example:
        >>> from onesfw import zoo
        >>> from onesfw.experiments import Comparison
        >>> reason = "needs a finite sum"
        >>> comparison = Comparison(zoo.get("quadratic-face"), budget=300, seeds=2, skipped={"svrf": reason})
        >>> comparison.remarks()
        ['svrf: needs a finite sum']
    """

    problem: Problem
    budget: int
    seeds: int
    key: int = 0
    curves: list[Curve] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    rules: dict[str, dict[str, Floats]] = field(default_factory=dict)
    tried: dict[str, dict[str, Floats]] = field(default_factory=dict)
    finished: bool = True

    @property
    def optimum(self) -> float | None:
        """F*, where it is known."""
        return self.problem.best_value()

    def curve(self, name: str) -> Curve | None:
        """The curve of a method."""
        return next((curve for curve in self.curves if curve.name == name), None)

    def ranked(self) -> list[Curve]:
        """The curves, the least error first; what is maximised has its largest value first."""
        upwards = self.problem.sense == "maximize"
        return sorted(self.curves, key=lambda c: -final_of(c) if upwards and c.primary == "value" else final_of(c))

    def sheet(self) -> Sheet:
        """The table: a row for each method, the least error first."""
        return comparison_sheet(self)

    def remarks(self) -> list[str]:
        """A line about each method that did not run, and about each that had a choice of step rules."""
        said = [f"{name}: {reason}" for name, reason in self.skipped.items()]
        for name, rules in self.rules.items():
            best = min(rules, key=lambda rule: float(rules[rule].mean()))
            said.append(f"{name}: {best!r} of {len(self.tried.get(name, rules))} step rules")
        return said

    def __str__(self) -> str:
        return "\n".join([lines(self.sheet()), *self.remarks()])

    def _repr_html_(self) -> str:
        sheet = self.sheet()
        return as_html(sheet.title, sheet.columns, sheet.rows, None, "\n".join([sheet.note, *self.remarks()]))

    def as_dict(self) -> dict[str, Jsonable]:
        """Everything that was measured, as JSON has it; what is no finite number is None."""
        return {
            "problem": self.problem.name,
            "summary": self.problem.summary,
            "setting": self.problem.setting,
            "sense": self.problem.sense,
            "optimum": plain(self.optimum),
            "samples": self.budget,
            "seeds": self.seeds,
            "key": self.key,
            "finished": self.finished,
            "methods": [curve_content(curve) for curve in self.curves],
            "step_rules": plain(self.rules),
            "step_rules_tried": plain(self.tried),
            "not_applicable": plain(self.skipped),
        }


def compare(
    problems: Problem | str | Iterable[Problem | str],
    *,
    algorithms: Iterable[str] | None = None,
    samples: int = 100_000,
    seeds: int = 8,
    key: int = 0,
    step_rules: bool = False,
    progress: bool = False,
) -> list[Comparison]:
    """All methods that apply to each problem, at equal budgets.

    Ctrl-C ends it: what is done by then is returned, with `finished` False.

    Args:
        problems: problems, or the words that `zoo.find` understands: a name, a file.
        algorithms: the names of methods; None for all. `one_sfw[paper]` has the theorem's schedule, `one_sfw[auto]`
            the default one, and so has `one_sfw`.
        samples: the budget of each run.
        seeds: how many seeds.
        key: the seed that all others are folded from.
        step_rules: whether each competitor gets the best of its documented step rules (convex problems), chosen on
            seeds of their own.
        progress: whether to show a bar.

    Returns:
        A comparison for each problem.

    Raises:
        ValueError: where an argument does not fit, or no method can run on a problem; before anything is run.
        KeyboardInterrupt: where Ctrl-C came before the first method was done.

    Example:
        >>> from onesfw.experiments import compare
        >>> (comparison,) = compare("nqp", algorithms=["one_sfw", "momentum_sfw"], samples=200, seeds=2)
        >>> sorted(curve.name for curve in comparison.curves)
        ['momentum_sfw', 'one_sfw']
    """
    samples = whole_number(samples, "samples", 1, MOST_SAMPLES)
    seeds = whole_number(seeds, "seeds", 1, MOST_SEEDS)
    key = whole_number(key, "key", 0, 2**32 - 1)
    names = known_names(algorithms)
    targets = [problems] if isinstance(problems, Problem | str) else list(problems)
    if not targets:
        raise ValueError("problems: name at least one; zoo.names() shows them")
    plans = []
    for target in targets:
        problem = find(target) if isinstance(target, str) else target
        plan = prepare(problem, samples, seeds, key, names, step_rules)
        if not plan.work:
            name, reason = next(iter(plan.comparison.skipped.items()))
            raise ValueError(f"no method can run on {problem.name}; {name}: {reason}")
        plans.append(plan)
    return carry_out_all(plans, progress)


def carry_out_all(plans: Sequence[Plan], progress: bool) -> list[Comparison]:
    """Run plans behind a bar; after Ctrl-C, those that have come to something."""
    comparisons = [plan.comparison for plan in plans]
    try:
        with RunsBar(sum(plan.runs for plan in plans), progress) as bar:
            for plan in plans:
                carry_out(plan, bar.begin)
    except KeyboardInterrupt:
        done = [comparison for comparison in comparisons if comparison.curves]
        if not done:
            raise
        return done
    return comparisons


@dataclass(frozen=True)
class Plan:
    """A comparison that has been checked and not yet run."""

    comparison: Comparison
    work: dict[str, dict[str, Algorithm]]
    """The step rules of each method, by name."""

    @property
    def runs(self) -> int:
        """How many runs will be announced: one for each rule that is tried, and one for each method."""
        return sum(1 if len(rules) == 1 else len(rules) + 1 for rules in self.work.values())


def prepare(
    problem: Problem,
    budget: int,
    seeds: int,
    key: int = 0,
    names: Iterable[str] | None = None,
    step_rules: bool = False,
) -> Plan:
    """Which methods run with which step rules; 1-SFW always with its own."""
    able, unable = applicable(problem, known_names(names), budget)
    work = {name: rules_of(name, algorithm) if step_rules else {PRESET: algorithm} for name, algorithm in able.items()}
    return Plan(Comparison(problem, budget, seeds, key, skipped=unable), work)


def carry_out(plan: Plan, announce: Announce | None = None) -> Comparison:
    """Run what was planned; Ctrl-C goes on as KeyboardInterrupt, and `plan.comparison` holds the methods done.

    Where a method has several step rules, each is tried on a few seeds of their own; the best is measured on the rest.
    """
    comparison = plan.comparison
    comparison.finished = False
    work = chosen_rules(plan, announce)
    every = [(name, algorithm) for name, rules in work.items() for algorithm in rules.values()]
    curves = measured_in_order(comparison, every, comparison.seeds, comparison.key, ENDS, announce)
    for name, rules in work.items():
        found: dict[str, Curve] = {}
        for rule in rules:
            curve = next(curves)
            if isinstance(curve, Curve):
                found[rule] = replace(curve, name=name)
            else:
                comparison.skipped[name] = curve
        if found:
            best = min(found, key=lambda rule: final_of(found[rule]))
            comparison.skipped.pop(name, None)
            comparison.curves.append(found[best])
            if name in comparison.tried:
                comparison.rules[name] = {rule: curve.final for rule, curve in found.items()}
    comparison.finished = True
    return comparison


def chosen_rules(plan: Plan, announce: Announce | None) -> dict[str, dict[str, Algorithm]]:
    """Of each method the best rule, and the best without a constant of its own, on seeds that are not the plan's."""
    comparison = plan.comparison
    choices = {name: rules for name, rules in plan.work.items() if len(rules) > 1}
    every = [(name, algorithm) for name, rules in choices.items() for algorithm in rules.values()]
    curves = measured_in_order(comparison, every, TRIED, (comparison.key + 1) % 2**32, 1, announce)
    chosen = dict(plan.work)
    for name, rules in choices.items():
        found = {rule: curve for rule in rules if isinstance(curve := next(curves), Curve)}
        if not found:
            continue  # the full runs will say why
        ranked = sorted(found, key=lambda rule: final_of(found[rule]))
        documented = next((rule for rule in ranked if "=" not in rule), ranked[0])
        comparison.tried[name] = {rule: curve.final for rule, curve in found.items()}
        chosen[name] = {rule: rules[rule] for rule in dict.fromkeys((ranked[0], documented))}
    return chosen


def measured_in_order(
    comparison: Comparison,
    work: list[tuple[str, Algorithm]],
    seeds: int,
    key: int,
    ends: int,
    announce: Announce | None,
) -> Iterator[Curve | str]:
    """Every curve, here or on the workers of a joblib backend; a method's first one is announced, trials each."""
    tasks = [(comparison.problem, algorithm, comparison.budget, seeds, key, ends) for _, algorithm in work]

    def begin(place: int) -> None:
        if announce is not None and (ends == 1 or place == 0 or work[place][0] != work[place - 1][0]):
            announce(comparison.problem.name, work[place][0])

    def here() -> Iterator[Curve | str]:
        for place, task in enumerate(tasks):
            begin(place)
            yield curve_or_reason(*task)

    return iter(jobs.in_order(curve_or_reason, tasks, begin)) if jobs.away() and tasks else here()


def curve_or_reason(
    problem: Problem, algorithm: Algorithm, budget: int, seeds: int, key: int, ends: int
) -> Curve | str:
    """What was measured, or why a method was left out; a task of its own."""
    try:
        return measure(problem, algorithm, budget, seeds, key, ends)
    except NotFinite as error:
        return str(error)


def recipe(name: str, setting: str, options: dict[str, str | float] | None = None) -> Algorithm:
    """The recipe of that name in a setting; an error where it does not serve it."""
    method, own = METHODS[name]
    if setting not in SETTINGS[method]:
        raise ValueError(f"serves {' and '.join(SETTINGS[method])} problems only")
    return ALGORITHMS[method](setting, **({"schedule": own} if own else {}), **(options or {}))


def known_names(names: Iterable[str] | None) -> list[str]:
    """The names asked for, all of them without a wish, or an error about the first that is no method."""
    chosen = [name for name in METHODS if name != "one_sfw"] if names is None else list(dict.fromkeys(names))
    for name in chosen:
        if name not in METHODS:
            hint = nearest(name, METHODS) or f"; choose among {', '.join(METHODS)}"
            raise ValueError(f"{named('algorithms')}: there is no algorithm {name!r}{hint}")
    if not chosen:
        raise ValueError(f"{named('algorithms')}: name at least one of {', '.join(ALGORITHMS)}")
    return chosen


def applicable(problem: Problem, names: Iterable[str], budget: int) -> tuple[dict[str, Algorithm], dict[str, str]]:
    """The methods that can run, by name, and the reason of each that cannot."""
    able: dict[str, Algorithm] = {}
    unable: dict[str, str] = {}
    for name in names:
        try:
            algorithm = recipe(name, problem.setting)
            check(problem, algorithm, budget)
            able[name] = algorithm
        except (TypeError, ValueError) as error:
            unable[name] = str(error)
    return able, unable


def check(problem: Problem, algorithm: Algorithm, budget: int) -> None:
    """Every check that a run makes before it compiles, and that a step fits into the budget."""
    algorithm.estimator_for(problem.objective)
    sign, steps = 1 if problem.sense == "minimize" else -1, steps_for(algorithm, problem.objective, budget)
    with checked_run(
        problem.objective, problem.constraint, problem.start(), sign, steps=steps, algorithm=algorithm, evaluate=False
    ):
        pass


def rules_of(name: str, algorithm: Algorithm) -> dict[str, Algorithm]:
    """A competitor's documented step rules in the convex setting, by their names; 1-SFW keeps its own.

    Each is tried with other values of the constants in `CONSTANTS` too, where the recipe has one.
    """
    if METHODS[name][0] == "one_sfw" or algorithm.setting != CONVEX:
        return {PRESET: algorithm}
    schedules: list[dict[str, str | float]] = [{"schedule": rule} for rule in SCHEDULES.get(name, ())] or [{}]
    found: dict[str, Algorithm] = {}
    for chosen in schedules:
        word = str(chosen.get("schedule", PRESET))
        found[word] = recipe(name, CONVEX, chosen)
        for constant, values in CONSTANTS.get(name, {}).items():
            for value in values:
                found[f"{word}, {constant}={value:g}"] = recipe(name, CONVEX, {**chosen, constant: value})
    return found


def comparison_sheet(comparison: Comparison) -> Sheet:
    """A row for each method, the least error first."""
    curves = comparison.ranked()
    further = [name for name in LABELS if any(name in curve.measures for curve in curves)][1:]
    if curves and curves[0].primary == "suboptimality":
        further = [name for name in further if name != "value"]  # F* is in the note
    second_order = any(curve.counts["hvps"][-1] > 0 for curve in curves)
    primary = curves[0].primary if curves else "value"
    columns = [
        "method", SHORT.get(primary, LABELS[primary]), "slope in samples", "slope in LMO calls",
        *(SHORT.get(name, LABELS[name]) for name in further), "samples", "gradients",
        *(["HVPs"] if second_order else []), "LMO calls", "seconds",
    ]  # fmt: skip
    rows = [
        (
            curve.name,
            mean_text(curve.final),
            slope_text(rise(curve, "samples")),
            slope_text(rise(curve, "lmo_calls")),
            *(mean_text(curve.measures[name][:, -1]) if name in curve.measures else MISSING for name in further),
            count_text(curve.counts["samples"][-1]),
            count_text(curve.counts["gradients"][-1]),
            *([count_text(curve.counts["hvps"][-1])] if second_order else []),
            count_text(curve.counts["lmo_calls"][-1]),
            f"{curve.seconds[:, -1].mean():.3g}",
        )
        for curve in curves
    ]
    return Sheet(comparison.problem.name, tuple(columns), rows, note_of(comparison))


def note_of(comparison: Comparison) -> str:
    """What the numbers are."""
    best = comparison.optimum
    known = "" if best is None else f" F* = {best:.8g}."
    short = [
        f"{curve.name} ends at {count_text(curve.counts['samples'][-1])}: its next step takes more than are left."
        for curve in comparison.curves
        if curve.name not in BY_GRADIENTS and curve.counts["samples"][-1] < ENOUGH * comparison.budget
    ]
    about = (
        f"{comparison.problem.summary}.{known} Means over {comparison.seeds} seeds at {comparison.budget:,} samples, "
        "± one standard error; slopes over the last two decades with 95 % intervals; seconds for one seed."
    )
    return " ".join([about, *short])


def curve_content(curve: Curve) -> dict[str, Jsonable]:
    """One method: its end, its slopes, and the curve over the seeds."""
    return {
        "method": curve.name,
        "algorithm": curve.summary,
        "citation": curve.citation,
        "measure": curve.primary,
        "final": {
            name: {"mean": plain(values[:, -1].mean()), "stderr": plain(standard_error(values[:, -1]))}
            for name, values in curve.measures.items()
        },
        "slope_in_samples": slope_content(rise(curve, "samples")),
        "slope_in_lmo_calls": slope_content(rise(curve, "lmo_calls")),
        **{name: int(curve.counts[name][-1]) for name in COUNTS},
        "seconds": plain(curve.seconds[:, -1].mean()),
        "separate_runs": curve.separate,
        "curve": {
            "steps": plain(curve.steps),
            **{name: plain(curve.counts[name]) for name in COUNTS},
            "seconds": plain(curve.seconds.mean(0)),
            **{name: plain(values) for name, values in curve.measures.items()},
        },
    }


def slope_content(slope: Slope) -> dict[str, Jsonable]:
    """A slope and the ends of its 95 % interval."""
    return {"value": plain(slope.value), "low": plain(slope.low), "high": plain(slope.high)}
