"""How often the polish misses its tolerance, on random rows.

    python benchmarks/polish_instances.py [loss ...] [--first 9000] [--instances 600]

Rows of 10 to 630, columns of 2 to 320: normal, sparse, with duplicated columns, of unlike scales, correlated, or of one
sign; all sets, radii from 0.1 to 300, without an intercept, with one, with one that is bounded. Each must come to a gap
of 1e-6 of the loss of the best constant. Counted apart: losses that are infinite wherever the polish looks, which it
says, and minima so large that rounding alone is more than that.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from onesfw.linear import CONSTRAINTS, LOSSES, Settings, examples
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.profile import loss_units
from onesfw.linear.training import Budget, fit_in_memory

ROUNDING = 1e-12  # of F: less is not asked for
TOL = 1e-6


def rows(rng: np.random.Generator) -> np.ndarray:
    """A matrix of one of six kinds."""
    n, d = int(10 ** rng.uniform(1, 2.8)), int(10 ** rng.uniform(0.3, 2.5))
    X = rng.normal(size=(n, d))
    kind = rng.integers(6)
    if kind == 1:
        X *= rng.random((n, d)) < 0.2
    elif kind == 2 and d > 3:
        X[:, d // 2 :] = X[:, : d - d // 2]
    elif kind == 3:
        X *= 10 ** rng.uniform(-2, 2, size=d)
    elif kind == 4:
        X += 3 * rng.normal(size=(n, 1))
    elif kind == 5:
        X = np.abs(X)
    return X


def outcome(loss: str, seed: int) -> tuple[str, str]:
    """(how it ended, what the instance was)."""
    rng = np.random.default_rng([13, seed])
    X = rows(rng)
    signal = X @ rng.normal(size=X.shape[1]) * rng.uniform(0, 1) / X.shape[1] ** 0.5
    y = rng.poisson(np.exp(np.clip(signal, -5, 5))).astype(float)
    if LOSSES[loss].classifies:
        y = np.where(y > np.median(y), 1.0, -1.0)
    constraint = tuple(CONSTRAINTS)[rng.integers(len(CONSTRAINTS))]
    radius = float(10 ** rng.uniform(-1, 2.5))
    interval = (None, ANYWHERE, (-0.5, 0.5))[rng.integers(3)]
    data = examples(X, y, None, X.shape[1], LOSSES[loss])
    settings = Settings(X.shape[1], loss, constraint, radius, intercept=interval)
    what = f"{X.shape[0]} x {X.shape[1]}, {constraint}, radius {radius:.3g}, intercept {interval}"
    try:
        fit = fit_in_memory(settings, data, Budget(tol=TOL, polish=True), 0)
    except FloatingPointError:
        return "infinite", what
    value, gap = float(fit.evaluation.value[0]), float(fit.evaluation.gap[0])
    limit = TOL * float(loss_units(settings, data)[0])
    what += f": gap {gap:.1e}, limit {limit:.1e}, F {value:.6g}"
    if gap <= 1.01 * limit:
        return "reached", what
    return ("rounding" if limit < ROUNDING * abs(value) else "missed"), what


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("losses", nargs="*", default=list(LOSSES))
    parser.add_argument("--first", type=int, default=9_000)
    parser.add_argument("--instances", type=int, default=600)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for loss in asked.losses:
        begun, ends = time.process_time(), []
        for seed in range(asked.first, asked.first + asked.instances):
            end, what = outcome(loss, seed)
            ends.append(end)
            if end in ("missed", "rounding"):
                print(f"   {loss}, {seed}, {end}: {what}", flush=True)
        counts = ", ".join(f"{end} {ends.count(end)}" for end in ("reached", "missed", "rounding", "infinite"))
        print(f"{loss}: {len(ends)} instances: {counts}; {time.process_time() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
