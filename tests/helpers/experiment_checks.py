"""What the tests of comparisons share: curves with given errors, and one small comparison."""

from functools import cache

import numpy as np

from onesfw import zoo
from onesfw.experiments.comparison import carry_out, prepare
from onesfw.experiments.curves import Curve


def curve(name, counts, errors, measure="suboptimality", lmo_calls=None):
    """A curve with given errors (seeds × points)."""
    counts, errors = np.asarray(counts), np.asarray(errors, float)
    calls = counts if lmo_calls is None else np.asarray(lmo_calls)
    columns = {"samples": counts, "gradients": 2 * counts, "hvps": 0 * counts, "lmo_calls": calls}
    seconds = np.broadcast_to(counts * 1e-6, errors.shape)
    return Curve(name, f"{name} (paper)", "someone", counts, columns, seconds, {measure: errors})


def power_law(exponent, seeds=12, noise=0.1, scale=1.0, seed=0):
    """Errors scale · N^exponent with log-normal noise, on nine counts over two decades."""
    counts = np.rint(np.geomspace(1e3, 1e5, 9)).astype(int)
    rng = np.random.default_rng(seed)
    return counts, scale * counts**exponent * np.exp(noise * rng.standard_normal((seeds, 9)))


@cache
def small_comparison():
    """Three methods on quadratic-face, with step rules: the plan, what came out, and what was announced."""
    plan = prepare(
        zoo.get("quadratic-face"), 2_000, 4, names=["one_sfw", "momentum_sfw", "frank_wolfe"], step_rules=True
    )
    asked = []
    comparison = carry_out(plan, lambda *what: asked.append(what))
    return plan, comparison, asked
