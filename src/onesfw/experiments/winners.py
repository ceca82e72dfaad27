"""Who wins where: on each problem the best of the other methods, and 1-SFW with either schedule beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onesfw.algorithms import DR_SUBMODULAR
from onesfw.experiments.comparison import OURS, PRESET, REFERENCE, Comparison
from onesfw.experiments.curves import MISSING, Curve, Slope, mean_text, ratio, ratio_text
from onesfw.results.show import Sheet
from onesfw.trees import Floats

CLOSE = 1.1  # times the best other method's error: no worse than it


@dataclass(frozen=True)
class Winner:
    """The best of the other methods on a problem, and how far 1-SFW is from it.

    Args:
        problem: its name.
        method: the best of the others, with its step rule where it had a choice.
        error: its errors, one for each seed.
        auto: those of one_sfw[auto].
        paper: those of one_sfw[paper].
    """

    problem: str
    method: str
    error: Floats
    auto: Floats
    paper: Floats

    @property
    def times(self) -> Slope:
        """How many times the best other method's error that of one_sfw[auto] is, with its 95 % interval."""
        return ratio(self.auto, self.error)

    @property
    def met(self) -> bool:
        """Whether one_sfw[auto] is best, or within 1.1 of the best."""
        return self.times.value <= CLOSE


def errors_of(comparison: Comparison, curve: Curve) -> Floats | None:
    """What decides: the method's own error, but F* − F(x) where F is DR-submodular; None where F* is not known."""
    if comparison.problem.setting != DR_SUBMODULAR:
        return curve.final
    best = comparison.optimum
    if best is None or "value" not in curve.measures:
        return None
    short: Floats = best - curve.measures["value"][:, -1]
    return short


def winner(comparison: Comparison) -> Winner | None:
    """The best of the others beside 1-SFW; None where one of the three was not measured."""
    errors = {curve.name: errors_of(comparison, curve) for curve in comparison.curves}
    known = {name: values for name, values in errors.items() if values is not None}
    others = [name for name in known if name not in (OURS, REFERENCE)]
    if not others or OURS not in known or REFERENCE not in known:
        return None
    best = min(others, key=lambda name: float(known[name].mean()))
    rules = comparison.rules.get(best, {})
    rule = min(rules, key=lambda name: float(rules[name].mean()), default=PRESET)
    method = f"`{best}`" if rule == PRESET else f"`{best}` ({rule})"
    return Winner(comparison.problem.name, method, known[best], known[OURS], known[REFERENCE])


def winners(comparisons: Iterable[Comparison]) -> list[Winner]:
    """Those that can be told, in the order of the problems."""
    return [found for found in map(winner, comparisons) if found is not None]


def winners_sheet(found: list[Winner]) -> Sheet:
    """A row for each problem; where auto is not within 1.1 of the best, it says so."""
    columns = (
        "problem", "best of the others", "its error", "`one_sfw[auto]`", "auto / best", "`one_sfw[paper]`",
        "paper / best", "auto best or within 1.1",
    )  # fmt: skip
    rows = [
        (
            w.problem, w.method, mean_text(w.error), mean_text(w.auto), ratio_text(w.times), mean_text(w.paper),
            ratio_text(ratio(w.paper, w.error)), "yes" if w.met else "**no**",
        )
        for w in found
    ]  # fmt: skip
    return Sheet("Who wins where", columns, rows or [(MISSING,) * len(columns)], words=2)
