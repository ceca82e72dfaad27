"""A path of radii with warm starts, measured on entries that were held out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from onesfw.arguments import named, number
from onesfw.lowrank.completion_path import CompletionPath
from onesfw.lowrank.corrective import FULL, NO_LIMIT, Limits, Point, Stage, biases_alone, fit, with_one_more
from onesfw.lowrank.entry_kernels import margins_at, slopes
from onesfw.lowrank.entry_scores import standard_error
from onesfw.lowrank.observed import Observed, Triplets
from onesfw.trees import HostArray

SMALLEST, LARGEST, GRID = 0.02, 4.0, 20  # of the spread of what the biases leave, and how many radii
MOST_HELD_OUT = 200_000  # more entries tell no better which radius is best
BLOCK = 1_000_000  # entries that are looked up at once
FEWEST = 10  # entries that can be parted in two
HARM, HELP = 2.0, 1.0  # standard errors: how much worse a larger rank must be to be refused, and better to be taken
PATIENCE, WORSE = 3, 1.003  # radii in a row without a new best, and how much worse the last one is: then the path ends
FLAT = 6  # radii in a row without a new best, however little they differ


class Figures(NamedTuple):
    """What is known of one radius."""

    radius: float
    value: float
    gap: float
    rank: int
    max_rank: int
    loss: float
    stderr: float
    seconds: float


@dataclass
class PathState:
    """How far a path has come."""

    figures: list[Figures] = field(default_factory=list)
    losses: list[HostArray] = field(default_factory=list)
    """Of every held-out entry, one vector a radius."""
    best: Point | None = None
    last: Point | None = None
    stage: Stage | None = None
    """Of the radius that is being fitted."""
    first: Point | None = None
    """The first round of that radius, before atoms were let in."""
    max_rank: int = NO_LIMIT
    entries: int = 0

    @property
    def best_place(self) -> int:
        """The place of the smallest loss."""
        return int(np.argmin([entry.loss for entry in self.figures]))

    @property
    def ended(self) -> bool:
        """Whether larger radii only lose, or change nothing: the last model did not fill its ball."""
        losses = [entry.loss for entry in self.figures]
        if self.last is not None and self.last.s.sum() < FULL * self.last.radius:
            return True
        if len(losses) <= PATIENCE:
            return False
        best, since = losses[self.best_place], len(losses) - 1 - self.best_place
        return since >= FLAT or (since >= PATIENCE and losses[-1] > best + (WORSE - 1) * abs(best))


def hold_out(given: Triplets, share: float, rng: np.random.Generator) -> tuple[Triplets, Triplets]:
    """(entries to learn, entries to measure on); one that was given more than once is in one of the two alone."""
    count = min(max(round(share * len(given)), 2), MOST_HELD_OUT)
    short = len(given) < FEWEST or count > len(given) - 2
    if not short:
        other = given.take(np.sort(rng.choice(len(given), count, replace=False)))
        learnt = ~among(given, other)
        short = int(learnt.sum()) < 2
    if short:
        known = "1 entry is" if len(given) == 1 else f"{len(given):,} entries are"
        raise ValueError(
            f"{named('values')}: {known} too few to choose a radius on some of them; give {named('radius')} a number"
        )
    return given.take(learnt), other


def among(given: Triplets, other: Triplets) -> HostArray:
    """Which entries, value apart, are among the others; in blocks, for numbers of places are large."""
    places = np.unique(other.rows.astype(np.int64) * given.shape[1] + other.cols)
    found = np.empty(len(given), bool)
    for begin in range(0, len(given), BLOCK):
        block = slice(begin, begin + BLOCK)
        here = given.rows[block].astype(np.int64) * given.shape[1] + given.cols[block]
        found[block] = places[np.minimum(np.searchsorted(places, here), len(places) - 1)] == here
    return found


def check_radii(radii: Sequence[float]) -> list[float]:
    """Rising positive numbers."""
    if not isinstance(radii, Iterable):
        raise TypeError(f"{named('radii')} must be a list of radii, or None, got {radii!r}")
    grid = [number(radius, "radii", 0.0, strict=True) for radius in radii]
    if not grid:
        raise ValueError(f"{named('radii')} must hold at least one radius, or be None")
    if any(second <= first for first, second in pairwise(grid)):
        raise ValueError(f"{named('radii')} must rise, each larger than the one before; sort them")
    return grid


def default_radii(data: Observed) -> list[float]:
    """Radii around the spread of what the biases leave, on the scale of the margins."""
    zero = biases_alone(data, 1.0)
    g = np.empty_like(data.y)
    slopes(*data.head, zero.P, zero.Q, zero.bu, zero.bi, g)
    spread = float(np.sqrt(np.mean(np.square(g, dtype=np.float64))))
    rate = float(np.maximum(data.y.mean(), (data.y + g).mean()))  # of counts: as seen or as predicted
    bend = {"logistic": 0.25, "poisson": rate}.get(data.loss.name, 1.0)
    return [float(r) for r in np.geomspace(SMALLEST, LARGEST, GRID) * (spread / bend if spread > 0 else 1.0)]


def warm(point: Point, radius: float) -> Stage:
    """A start for another radius: X scaled with it where it filled its ball."""
    factor = radius / point.radius if radius < point.radius or point.s.sum() >= FULL * point.radius else 1.0
    root = point.P.dtype.type(np.sqrt(factor))
    begun = replace(
        point, P=point.P * root, Q=point.Q * root, s=point.s * factor, radius=radius, steps=0, rounds=0, gap=np.inf
    )
    return Stage(begun)


def fit_path(
    data: Observed,
    held: Triplets,
    radii: Sequence[float],
    limits: Limits,
    seed: int,
    state: PathState,
    keep: Callable[[PathState], None],
    report: Callable[[int, Point], None],
) -> PathState:
    """Fit the radii that are left, until larger ones only lose or the run is to stop; at least one is fitted.

    A radius begins with the factors of the one before, whose loss on the held-out entries is compared with that after
    atoms were let in: where these do harm, or double the rank and are of no use, the rank is limited to what it was,
    and grows by one where that helps. The norm shrinks strong and weak singular values alike; a limit lets the strong
    ones grow without the noise.
    """
    state.entries = data.n
    state.max_rank = min(state.max_rank, limits.max_rank)
    judge = Judge(data, held)
    while len(state.figures) < len(radii) and not state.ended and not (state.figures and limits.stop()):
        place = len(state.figures)
        radius = radii[place]
        begun = time.perf_counter()
        start = state.stage or (None if state.last is None else warm(state.last, radius))

        def kept(stage: Stage) -> None:
            state.stage = stage
            keep(state)

        def reported(point: Point, place: int = place) -> None:
            report(place, point)

        def worse(point: Point) -> bool:
            if limits.stop():
                return False  # what was cut short is done again
            if state.first is None or point.rank <= state.first.rank:
                state.first = point
                return False
            return judge.apart(point, state.first) > (HARM if point.rank <= 2 * state.first.rank else 0.0)

        limited = replace(limits, max_rank=state.max_rank)
        point, why = fit(data, radius, limited, seed, stage=start, keep=kept, report=reported, worse=worse)
        if why == "worse":
            assert state.first is not None
            state.max_rank, state.stage = state.first.rank, Stage(state.first)
            continue
        if state.max_rank < limits.max_rank:
            point = widest(data, judge, point, limits, seed, reported)
            state.max_rank = max(state.max_rank, point.rank)
        cut = limits.stop()
        if cut and state.figures:
            break  # half a model would be compared with whole ones
        losses = judge.losses(point)
        entry = Figures(
            radius, point.value, point.gap, point.rank, state.max_rank, float(losses.mean()), standard_error(losses),
            time.perf_counter() - begun,
        )  # fmt: skip
        if cut:  # there is no other model; the path that is kept goes on with the open stage
            return replace(state, figures=[entry], losses=[losses.astype(np.float32)], last=point, best=point)
        state.figures.append(entry)
        state.losses.append(losses.astype(np.float32))
        state.last, state.stage, state.first = point, None, None
        if state.best_place == place:
            state.best = point
        keep(state)
    return state


def widest(
    data: Observed, judge: Judge, point: Point, limits: Limits, seed: int, report: Callable[[Point], None]
) -> Point:
    """A model of limited rank with one atom more, and again, as long as the held-out entries are the better for it."""
    while point.rank < limits.max_rank and not limits.stop():
        grown = with_one_more(data, point, seed)
        most = replace(limits, max_rank=point.rank + 1)

        def worse(wider: Point, than: Point = point) -> bool:
            return judge.apart(wider, than) > HARM

        wider, _ = fit(data, point.radius, most, seed, stage=Stage(grown), report=report, worse=worse)
        if wider.rank <= point.rank or judge.apart(wider, point) > -HELP:
            break
        point = wider
    return point


class Judge:
    """Models on the held-out entries."""

    def __init__(self, data: Observed, held: Triplets) -> None:
        self.data, self.held = data, held
        self.bounds = data.bounds
        self.targets = held.values.astype(np.float64)

    def losses(self, point: Point) -> HostArray:
        """Of every entry."""
        margins = np.empty(len(self.held))
        margins_at(self.held.rows, self.held.cols, self.data.mean, point.P, point.Q, point.bu, point.bi, margins)
        if self.data.loss.name in ("squared", "huber"):
            margins = np.clip(margins, *self.bounds)
        return self.data.loss.value(margins, self.targets, self.data.delta)

    def apart(self, point: Point, than: Point) -> float:
        """How much more a model loses than another, in standard errors of the difference."""
        apart = self.losses(point) - self.losses(than)
        return float(apart.mean()) / max(standard_error(apart), 1e-300)


def summary(state: PathState, loss: str) -> CompletionPath:
    """The path as what users are given."""
    best = state.losses[state.best_place].astype(np.float64)
    apart = np.array([standard_error(losses - best) for losses in state.losses])
    columns = [np.array(column, np.float64) for column in zip(*state.figures, strict=True)]
    radii, value, gap, rank, max_rank, losses, stderr, seconds = columns
    max_rank[max_rank >= NO_LIMIT] = np.inf
    return CompletionPath(
        loss, state.entries, len(best), radii, value, gap, rank, max_rank, losses, stderr, apart, seconds
    )
