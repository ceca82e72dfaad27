"""From a rough model to the optimum of its set, on rows in memory: Newton's method, certified by the full-data gap.

Each round minimises the second-order model of the loss over the set itself and searches the segment to its minimiser:
every iterate lies in the set. Where vertices have one nonzero, the rounds run on a working set of columns: the support,
and those whose gradient is largest. Coefficients outside it are exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from onesfw.engine import jobs
from onesfw.linear.curvature import Columns, Curvature, curvature
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Evaluation, Settings
from onesfw.linear.profile import Profile
from onesfw.linear.simplex_quadratics import over_ball, over_cube, over_simplex
from onesfw.trees import HostArray

MOST_ROUNDS, MOST_STEPS = 60, 25
FEWEST_NEW = 50  # columns that a round may add, and more where the support is larger
NEAR = 0.999  # of the multiplier: columns whose gradient is above are worth having
SHORTEST = 1e-6  # of a step along the segment
ROUGH = 1e-2  # how far a round goes, of the gap it began with
MOST_DAMPING = 1e-2
ROUNDING = 1e-14  # of F
MOST_IDLE = 2  # steps that F cannot tell from none
TINY = 1e-300

GapOf = Callable[[HostArray, HostArray], float]
Program = Callable[[Curvature, HostArray, HostArray], HostArray]


@dataclass(frozen=True)
class Polished:
    """Models at the end of their polish."""

    coefs: HostArray
    evaluation: Evaluation
    rounds: int
    """Of the model that took most; each looks at all rows at least once."""


@dataclass
class Rounds:
    """One model's way to the optimum."""

    settings: Settings
    data: Examples
    model: int
    tol: float
    stop: Callable[[], bool]
    note: Callable[[str], None]

    def __post_init__(self) -> None:
        self.radius = float(self.settings.radii[self.model])
        self.set = self.settings.set
        data = self.data
        self.rows = Columns(data.indptr, data.indices, data.values, data.n_features)

    def run(self, x: HostArray, intercept: float) -> tuple[HostArray, float, float, float, int]:
        """(x, intercept, value, gap, rounds) from a start in the set."""
        self.profile = profile = Profile(self.settings, self.data, self.model, intercept)
        best: tuple[HostArray, float, float, float] | None = None
        stalled, rounds = 0, 0
        while rounds < MOST_ROUNDS:
            rounds += 1
            margins = self.rows.times(x)
            value = profile.expand(margins)
            gradient = self.rows.back(profile.slopes)
            gap = float(gradient @ x) - self.radius * self.set.least(gradient)
            if not np.isfinite(gap):
                raise FloatingPointError("the loss is not finite: scale rows and targets, or lower the radius")
            self.note(f"polishing, gap {gap:.1e}")
            stalled = stalled + 1 if best is not None and gap > 0.7 * best[3] else 0
            if best is None or gap < best[3]:
                best = (x, profile.intercept, value, gap)
            if gap <= self.tol or stalled > 4 or self.stop():
                break
            target = max(0.3 * self.tol, ROUGH * gap)
            x = self.on_columns(x, gradient, margins, target) if self.set.one_hot else self.on_all(x, margins, target)
        assert best is not None
        return (*best, rounds)

    def on_columns(self, x: HostArray, gradient: HostArray, margins: HostArray, target: float) -> HostArray:
        """Newton's method on the columns worth having, as v ≥ 0 times signs."""
        signed, filled = self.set.signed, self.set.name == "simplex"
        support = x != 0
        level = -float(gradient @ x) / self.radius
        level = level if filled else max(level, 0.0)
        worth = np.abs(gradient) if signed else -gradient
        new = np.flatnonzero(~support & (worth > level - (1 - NEAR) * abs(level)))
        most = max(FEWEST_NEW, 2 * int(support.sum()))
        if len(new) > most:
            new = new[np.argpartition(-worth[new], most)[:most]]
        chosen = np.sort(np.concatenate([np.flatnonzero(support), new]))
        signs = (
            np.where(x[chosen] != 0, np.sign(x[chosen]), -np.sign(gradient[chosen])) if signed else np.ones(len(chosen))
        )
        columns = self.rows.only(chosen, signs)

        def gap_of(g: HostArray, z: HostArray) -> float:
            least = float(g.min())
            return float(g @ z) - self.radius * (least if filled else min(least, 0.0))

        z = self.newton(
            columns, np.abs(x[chosen]), margins, target, gap_of,
            lambda H, c, z: over_simplex(H, c, z, self.radius, filled),
        )  # fmt: skip
        found = np.zeros(len(x))
        found[chosen] = signs * z
        return found

    def on_all(self, x: HostArray, margins: HostArray, target: float) -> HostArray:
        """Newton's method on all columns."""
        program = over_ball if self.set.name == "l2" else over_cube

        def gap_of(g: HostArray, z: HostArray) -> float:
            return float(g @ z) - self.radius * self.set.least(g)

        return self.newton(self.rows, x, margins, target, gap_of, lambda H, c, z: program(H, c, z, self.radius))

    def newton(
        self, columns: Columns, z: HostArray, margins: HostArray, target: float, gap_of: GapOf, program: Program
    ) -> HostArray:
        """min φ over the set on these columns, to a gap of `target`."""
        profile, caution, idle = self.profile, 0.0, 0
        for _ in range(MOST_STEPS):
            value = profile.expand(margins, caution)
            slope = columns.back(profile.slopes)
            gap = gap_of(slope, z)
            if gap <= target or idle > MOST_IDLE or self.stop():
                break
            damping = min(MOST_DAMPING, gap / max(abs(value), TINY))  # far away; Newton's own step near the end
            H = curvature(columns, profile.bends, profile.centred, damping, self.rows.nbytes, self.set.one_hot)
            move = program(H, slope - H.times(z), z) - z
            downhill, noise = float(slope @ move), ROUNDING * abs(value)
            if downhill >= 0:
                break
            idle = idle + 1 if -downhill <= noise else 0  # F cannot tell such steps; the gap can
            change, length = columns.times(move), 1.0
            while not profile.value(margins + length * change) <= value + 1e-4 * length * downhill + noise:
                length /= 2
                if length <= SHORTEST:
                    break
            if length <= SHORTEST:
                if caution >= 1:
                    break
                caution = 1.0
                continue
            caution = min(1.0, max(0.05, 4 * caution)) if length < 0.2 else caution / 4 if caution > 1e-3 else 0.0
            z, margins = z + length * move, margins + length * change
            if self.set.one_hot:
                z[z < 1e-16 * self.radius] = 0.0
        return z


@cache
def pools() -> ThreadpoolController:
    """The linear algebra's threads; looking for its libraries takes a while."""
    return ThreadpoolController()


def polish(
    settings: Settings,
    data: Examples,
    coefs: HostArray,
    intercepts: HostArray,
    limits: HostArray,
    *,
    n_jobs: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda text: None,
) -> Polished:
    """Each model at the optimum of its set, up to a Frank-Wolfe gap of its limit.

    Args:
        settings: what the models learn.
        data: the rows.
        coefs: where they start, models × features, in their sets.
        intercepts: one a model.
        limits: the gaps at which they end.
        n_jobs: threads among which the models are divided; the models are the same bit for bit.
        stop: asked between steps; the models are then as they stand, in their sets.
        note: hears of the gaps.

    Returns:
        The models, their losses and gaps from all rows.
    """

    def one(model: int) -> tuple[HostArray, float, float, float, int]:
        rounds = Rounds(settings, data, model, float(limits[model]), stop, note)
        return rounds.run(np.array(coefs[model], np.float64), float(intercepts[model]))

    shares = np.array_split(np.arange(settings.models), min(settings.models, jobs.workers(n_jobs)))
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pools().limit(limits=1),
    ):  # small matrices: threads of the linear algebra would wait for one another
        # Threads: kernels and factorisations run without the interpreter's lock, and `stop` is heard at once.
        if len(shares) == 1:
            parts = [[one(model) for model in range(settings.models)]]
        else:
            parts = jobs.together(
                lambda share: [one(int(m)) for m in share], [(share,) for share in shares], shared=True
            )  # fmt: skip
    xs, shifts, values, gaps, rounds = zip(*(found for part in parts for found in part), strict=True)
    return Polished(np.stack(xs), Evaluation(np.array(values), np.array(gaps), np.array(shifts)), max(rounds))
