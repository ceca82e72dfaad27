"""Comparisons as plain numbers, for JSON."""

from __future__ import annotations

from typing import Any

from onesfw.experiments.compare import Comparison, rise
from onesfw.experiments.runs import COUNTS, Curve
from onesfw.experiments.slopes import Slope, standard_error
from onesfw.results.jsonable import plain


def comparison_content(comparison: Comparison) -> dict[str, Any]:
    """Everything that was measured; what is no finite number is null."""
    return {
        "problem": comparison.subject.name,
        "summary": comparison.subject.summary,
        "setting": comparison.subject.setting,
        "sense": comparison.subject.sense,
        "optimum": plain(comparison.optimum),
        "samples": comparison.budget,
        "seeds": comparison.seeds,
        "key": comparison.key,
        "methods": [curve_content(curve) for curve in comparison.curves],
        "step_rules": {
            name: {rule: plain(errors) for rule, errors in rules.items()} for name, rules in comparison.rules.items()
        },
        "not_applicable": comparison.skipped,
    }


def curve_content(curve: Curve) -> dict[str, Any]:
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


def slope_content(slope: Slope) -> dict[str, Any]:
    """A slope and the ends of its 95 % interval."""
    return {"value": plain(slope.value), "low": plain(slope.low), "high": plain(slope.high)}
