"""From a rough model to the optimum of its set, on rows in memory: Newton's method, certified by the full-data gap.

Each round minimises the second-order model of the loss over the set itself and searches the segment to its minimiser:
every iterate lies in the set. Where vertices have one nonzero, the rounds run on a working set of columns: the support,
and those whose gradient is largest. Coefficients outside it are exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from onesfw.engine import jobs
from onesfw.linear.constraints import CONSTRAINTS, Constraint
from onesfw.linear.curvature import Columns, Matrix, curvature
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Evaluation, Settings
from onesfw.linear.losses import HUBER
from onesfw.linear.profile import Expansion, Profile
from onesfw.linear.simplex_quadratics import over_ball, over_cube, over_simplex
from onesfw.trees import HostArray

MOST_ROUNDS, MOST_STEPS = 60, 25
MOST_FALLS = 200  # rounds that divide F by ten do not count: exponentials come down by a factor of e a step
MOST_APPROACHES, FALL = 4, 5.0  # rounds for each δ of the Huber loss, and the factor by which it falls
FEWEST_NEW = 50  # columns that a round may add, and more where the support is larger
NEAR = 0.999  # of the multiplier: columns whose gradient is above are worth having
NEAR_NEXT, WIDE = 0.9, 0.7  # likewise for the next radius, and for columns that are to serve several radii
SLACK = 0.1  # of the multiplier: zero columns whose slope is further above it stay out of a step
FEW = 0.8  # of the columns: where fewer move, the rest is left out
CLOSE, INEXACT = 1e-3, 1e-2  # gaps above a thousandth of F: steps that bring them to a hundredth are good enough
SQUARED = 0.1  # of the target: where the gap's square, over F, is below that, Newton's step needs no second look
AGAIN = 30.0  # times the target: gaps that a step with the last one's curvature will bring below it
SHORTEST = 1e-6  # of a step along the segment
ROUGH = 1e-2  # how far a round goes, of the gap it began with
MOST_DAMPING = 1e-2
SURE = 1e-2  # of the damping: quadratics are then solved exactly
AS_FORETOLD, LESS_DOUBT = 0.45, 0.1  # of the gain by the slope, half of which a parabola gives: damping falls then
PROGRESS = 1e-3  # of the gap, by which F falls in a round that does not count as idle
ROUNDING = 1e-14  # of F
MOST_IDLE = 2  # steps that F cannot tell from none
TINY = 1e-300

GapOf = Callable[[HostArray, HostArray], float]
Program = Callable[[Expansion, float, float, HostArray, HostArray, bool], HostArray]


@dataclass(frozen=True)
class Polished:
    """Models at the end of their polish."""

    coefs: HostArray
    evaluation: Evaluation
    rounds: int
    """Of the model that took most; each looks at all rows at least once."""


class Place(NamedTuple):
    """Where a model stands: coefficients, their margins, and φ there."""

    x: HostArray
    margins: HostArray
    there: Expansion


class Working(NamedTuple):
    """Columns that rounds work on."""

    chosen: HostArray
    signs: HostArray
    """By which each column of the rows is multiplied; 0 for those that were not chosen."""
    columns: Columns


class Quadratic(NamedTuple):
    """The second-order model of a Newton step."""

    free: HostArray
    """The places of its columns among the working ones."""
    H: Matrix


class Rounds:
    """One model's way to the optimum, and on to the optima of larger radii.

    Args:
        settings: of all models.
        data: the rows.
        model: which of them.
        x: where it starts, in its set.
        intercept: likewise.
        tol: the gap at which it ends.
        stop: asked between steps.
        note: hears of the gaps.
    """

    def __init__(
        self,
        settings: Settings,
        data: Examples,
        model: int,
        x: HostArray,
        intercept: float,
        tol: float,
        stop: Callable[[], bool] = lambda: False,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.radius, self.constraint = float(settings.radii[model]), settings.constraint
        self.alone = settings.models == 1  # several models that kept their columns might take more memory than the rows
        self.tol, self.stop, self.note = tol, stop, note
        self.rows = Columns(data.indptr, data.indices, data.values, data.n_features)
        self.profile = Profile(settings, data, model, intercept)
        origin = self.place(np.zeros(len(x)), np.zeros(data.size))
        self.at = self.place(np.array(x, np.float64), self.rows.times(np.asarray(x, np.float64)))
        ahead = self.at.margins.any() and self.at.there.value < origin.there.value
        if self.set.name != "simplex" and not ahead:
            self.at, self.profile.intercept = origin, origin.there.intercept
        self.gradient: HostArray | None = None
        self.working: Working | None = None
        self.quadratic: Quadratic | None = None
        self.wide, self.doubt = NEAR, 1.0
        self.stalled = 0  # rounds in a row that hardly helped: the next one makes all of its steps

    @property
    def set(self) -> Constraint:
        """By its name, which can be sent to other processes."""
        return CONSTRAINTS[self.constraint]

    def copy(self, room: int) -> Rounds:
        """Another that goes on from here; without the working columns where they take more than `room` bytes."""
        other = copy(self)
        other.profile = copy(self.profile)
        if self.working is not None and self.working.columns.nbytes > room:
            other.working = other.quadratic = None
        return other

    def place(self, x: HostArray, margins: HostArray) -> Place:
        """x with all that is known there."""
        return Place(x, margins, self.profile.expand(margins))

    def grow(self, radius: float) -> None:
        """Go to the boundary of a larger set, where most solutions lie: to the minimiser of the last quadratic there.

        Without one, or where F is larger there than at the solution for the smaller set, along the ray.
        """
        x, margins, there = self.at
        norm = self.set.norm(x)
        if norm >= (1 - 1e-9) * self.radius:
            with np.errstate(over="ignore", invalid="ignore"):
                ahead = self.ahead(radius)
            if ahead is None or not ahead.there.value <= there.value:
                ahead = self.place(x * (radius / max(norm, TINY)), margins * (radius / max(norm, TINY)))
            self.at = ahead
        self.radius, self.wide = radius, WIDE

    def ahead(self, radius: float) -> Place | None:
        """The minimiser of the last quadratic over a larger set; None where there is none of all nonzeros."""
        if self.working is None or self.quadratic is None or self.gradient is None:
            return None
        (chosen, signs, columns), (free, H) = self.working, self.quadratic
        at = chosen[free]
        z = np.abs(self.at.x[at])
        if z.sum() < (1 - 1e-9) * self.radius:
            return None
        start = z * (radius / z.sum())
        slope = signs[at] * self.gradient[at] + H.times(start - z)
        v, x = np.zeros(len(chosen)), np.zeros(len(self.at.x))
        v[free] = over_simplex(H, slope, start, radius, self.set.name == "simplex")
        x[at] = signs[at] * v[free]
        return self.place(x, columns.times(v))

    def run(self) -> tuple[HostArray, float, float, float, int]:
        """(x, intercept, value, gap, rounds)."""
        at = self.approach(self.at) if self.gradient is None else self.at
        rounds, least, before, self.stalled = 0, np.inf, np.inf, 0
        if self.gradient is not None:  # of a smaller radius: which columns matter is much the same
            rounds, at = 1, self.step(at, self.gradient, 0.8 * self.tol, NEAR_NEXT)
        best, falls = at, 0
        while rounds < MOST_ROUNDS + falls:
            rounds += 1
            gradient = self.rows.back(at.there.slopes)
            gap = float(gradient @ at.x) - self.radius * self.set.least(gradient)
            if not np.isfinite(gap):
                raise FloatingPointError("the loss is not finite: scale rows and targets, or lower the radius")
            self.note(f"polishing, gap {gap:.1e}")
            idle = gap > 0.7 * least and at.there.value > before - PROGRESS * least
            self.stalled = self.stalled + 1 if idle else 0
            falls += 0 < at.there.value < before / 10 < np.inf and falls < MOST_FALLS
            before = at.there.value
            if gap < least:
                best, least, self.gradient = at, gap, gradient
            if gap <= self.tol or self.stalled > 4 or self.stop():
                break
            at = self.step(at, gradient, max(0.3 * self.tol, ROUGH * gap))
        self.at = best
        if not self.alone:
            self.working = self.quadratic = None
        return best.x, best.there.intercept, best.there.value, float(least), rounds

    def approach(self, at: Place) -> Place:
        """A start from which the Huber loss can be solved: its δ comes down from the size of the residuals in steps.

        Where few residuals are below δ, nearly nothing bends, and Newton's steps are short.
        """
        if self.profile.code != HUBER:
            return at
        delta = self.profile.delta
        residuals = np.abs(at.margins + at.there.intercept - self.profile.targets)
        self.profile.delta = max(delta, float(np.median(residuals)))
        while self.profile.delta > delta:
            at = self.place(at.x, at.margins)
            for _ in range(MOST_APPROACHES):
                gradient = self.rows.back(at.there.slopes)
                gap = float(gradient @ at.x) - self.radius * self.set.least(gradient)
                if not gap > INEXACT * at.there.value or self.stop():
                    break
                at = self.step(at, gradient, ROUGH * gap)
            self.profile.delta = max(delta, self.profile.delta / FALL)
        return self.place(at.x, at.margins)

    def step(self, at: Place, gradient: HostArray, target: float, near: float = NEAR) -> Place:
        """A round."""
        return self.on_columns(at, gradient, target, near) if self.set.one_hot else self.on_all(at, target)

    def worth_having(self, x: HostArray, gradient: HostArray, near: float) -> Working:
        """The support, and columns whose gradient is large; those of the round before where they hold all of these."""
        if self.working is not None:
            chosen, signs = self.choose(x, gradient, near)
            if (self.working.signs[chosen] == signs).all():
                return self.working
        chosen, signs = self.choose(x, gradient, min(near, self.wide))
        every = np.zeros(len(x))
        every[chosen] = signs
        self.working, self.quadratic = Working(chosen, every, self.rows.only(chosen, signs)), None
        return self.working

    def choose(self, x: HostArray, gradient: HostArray, near: float) -> tuple[HostArray, HostArray]:
        """(columns, signs): the support, and the largest gradients above `near` times the multiplier."""
        support, level = x != 0, self.level(gradient, x)
        worth = np.abs(gradient) if self.set.signed else -gradient
        new = np.flatnonzero(~support & (worth > level - (1 - near) * abs(level)))
        held = np.flatnonzero(support)
        most = max(FEWEST_NEW, 2 * len(held))
        if len(new) > most:
            new = new[np.argpartition(-worth[new], most)[:most]]
        chosen = np.sort(np.concatenate([held, new]))
        if not self.set.signed:
            return chosen, np.ones(len(chosen))
        return chosen, np.where(support[chosen], np.sign(x[chosen]), -np.sign(gradient[chosen]))

    def on_columns(self, at: Place, gradient: HostArray, target: float, near: float) -> Place:
        """Newton's method on the columns worth having, as v ≥ 0 times signs."""
        filled = self.set.name == "simplex"
        chosen, signs, columns = self.worth_having(at.x, gradient, near)
        if not len(chosen):  # at the origin with no slope: of columns of zeros
            return at

        def gap_of(g: HostArray, z: HostArray) -> float:
            least = float(g.min())
            return float(g @ z) - self.radius * (least if filled else min(least, -turning(g, z)))

        def turning(g: HostArray, z: HostArray) -> float:
            """The largest slope of a coefficient that should change its sign: it has to come to 0 first."""
            return float(g.max(where=z > 0, initial=0.0)) if self.set.signed else 0.0

        def program(
            there: Expansion, damping: float, accuracy: float, g: HostArray, z: HostArray, again: bool
        ) -> HostArray:
            found = np.zeros(len(z))
            if again and self.quadratic is not None:
                places, last = self.quadratic
                found[places] = over_simplex(last, g[places], z[places], self.radius, filled)
                return found
            level = self.level(g, z)
            free = np.flatnonzero((z > 0) | (g + level < SLACK * abs(level)))
            few = len(free) < FEW * len(z)
            some = columns.only(free, np.ones(len(free))) if few else columns
            H = curvature(some, there.bends, there.centred, damping, self.rows.nbytes, True)
            if isinstance(H, Matrix):
                self.quadratic = Quadratic(free if few else np.arange(len(z)), H)
            if turning(g, z) > -float(g.min()):
                accuracy = 0.0  # exchanges pass over small coefficients
            if not few:
                return over_simplex(H, g, z, self.radius, filled, accuracy)
            found[free] = over_simplex(H, g[free], z[free], self.radius, filled, accuracy)
            return found

        place = self.newton(columns, at._replace(x=np.abs(at.x[chosen])), target, gap_of, program)
        found = np.zeros(len(at.x))
        found[chosen] = signs[chosen] * place.x
        return place._replace(x=found)

    def level(self, gradient: HostArray, x: HostArray) -> float:
        """The multiplier of the sum, were x the optimum."""
        level = -float(gradient @ x) / self.radius
        return level if self.set.name == "simplex" else max(level, 0.0)

    def on_all(self, at: Place, target: float) -> Place:
        """Newton's method on all columns."""
        over = over_ball if self.set.name == "l2" else over_cube

        def gap_of(g: HostArray, z: HostArray) -> float:
            return float(g @ z) - self.radius * self.set.least(g)

        def program(
            there: Expansion, damping: float, accuracy: float, g: HostArray, z: HostArray, again: bool
        ) -> HostArray:
            H = curvature(self.rows, there.bends, there.centred, damping, self.rows.nbytes, False)
            return over(H, g, z, self.radius)

        return self.newton(self.rows, at, target, gap_of, program)

    def newton(self, columns: Columns, at: Place, target: float, gap_of: GapOf, program: Program) -> Place:
        """min φ over the set on these columns, to a gap of `target`."""
        (z, margins, now), caution, idle, again = at, 0.0, 0, True
        if not self.set.one_hot:
            self.doubt = 1.0
        for _ in range(MOST_STEPS):
            slope = columns.back(now.slopes)
            gap = gap_of(slope, z)
            if gap <= target or idle > MOST_IDLE or self.stop():
                break
            share = gap / max(abs(now.value), TINY)
            damping = self.doubt * min(MOST_DAMPING, share)  # far away; Newton's own step near the end
            again = not again and gap <= AGAIN * target <= AGAIN * self.tol  # near the end H of the step before will do
            goal = program(now, damping, INEXACT if share > CLOSE and self.doubt > SURE else 0.0, slope, z, again)
            if self.set.one_hot:
                goal[goal < 1e-16 * self.radius] = 0.0
            downhill, noise = float(slope @ (goal - z)), ROUNDING * abs(now.value)
            if not downhill < 0:
                if caution >= 1:
                    break
                caution, now = 1.0, self.profile.expand(margins, 1.0)  # where nothing bends, upper bounds do
                continue
            idle = idle + 1 if -downhill <= noise else 0  # F cannot tell such steps; the gap can
            length, ahead = 1.0, columns.times(goal)
            trial = ahead
            there = self.profile.expand(trial)
            while length > SHORTEST and not there.value <= now.value + 1e-4 * length * downhill + noise:
                length /= 2
                trial = margins + length * (ahead - margins)
                there = self.profile.expand(trial)
            self.doubt = self.doubt * LESS_DOUBT if there.value <= now.value + AS_FORETOLD * downhill else 1.0
            if length <= SHORTEST:
                if caution >= 1:
                    break
                caution = 1.0
            else:
                caution = min(1.0, max(0.05, 4 * caution)) if length < 0.2 else caution / 4 if caution > 1e-3 else 0.0
                z, margins, now = (goal if length == 1 else z + length * (goal - z)), trial, there
            quick = self.set.one_hot and not self.stalled
            if quick and length == 1 and gap <= SQUARED * target * (abs(now.value) / gap):  # no overflow
                break
            if caution > 0:
                now = self.profile.expand(margins, caution)
        return Place(z, margins, now if caution == 0 else self.profile.expand(margins))


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

    models = [
        Rounds(settings, data, model, coefs[model], float(intercepts[model]), float(limits[model]), stop, note)
        for model in range(settings.models)
    ]
    with pools().limit(limits=1):
        return together(models, n_jobs)


def together(models: Sequence[Rounds], n_jobs: int | None = None) -> Polished:
    """The rounds of all models, in threads: kernels and factorisations run without the interpreter's lock.

    The linear algebra's own threads would wait for one another on small matrices: callers limit them to one.
    """
    workers = min(len(models), jobs.workers(n_jobs)) if len(models) > 1 else 1
    with np.errstate(over="ignore", invalid="ignore"):
        if workers == 1:
            parts = [[model.run() for model in models]]
        else:
            shares = [(share,) for share in np.array_split(np.arange(len(models)), workers)]
            parts = jobs.together(lambda share: [models[m].run() for m in share], shares, shared=True)
    xs, shifts, values, gaps, rounds = zip(*(found for part in parts for found in part), strict=True)
    coefs = xs[0][None] if len(xs) == 1 else np.stack(xs)
    return Polished(coefs, Evaluation(np.array(values), np.array(gaps), np.array(shifts)), max(rounds))
