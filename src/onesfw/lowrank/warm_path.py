"""A path of radii with warm starts, measured on entries that were held out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from onesfw.arguments import named, number
from onesfw.lowrank.completion_path import CompletionPath
from onesfw.lowrank.corrective import FULL, Limits, Point, Stage, biases_alone, fit
from onesfw.lowrank.entry_kernels import margins_at, slopes
from onesfw.lowrank.entry_scores import standard_error
from onesfw.lowrank.observed import Observed, Triplets
from onesfw.trees import HostArray

SMALLEST, LARGEST, GRID = 0.08, 4.0, 20  # of the spread of what the biases leave, and how many radii
MOST_HELD_OUT = 200_000  # more entries tell no better which radius is best
FEWEST = 10  # entries that can be parted in two
PATIENCE, WORSE = 3, 1.003  # radii in a row without a new best, and how much worse the last one is: then the path ends


class Figures(NamedTuple):
    """What is known of one radius."""

    radius: float
    value: float
    gap: float
    rank: int
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
    entries: int = 0

    @property
    def best_place(self) -> int:
        """The place of the smallest loss."""
        return int(np.argmin([entry.loss for entry in self.figures]))

    @property
    def ended(self) -> bool:
        """Whether larger radii only lose."""
        losses = [entry.loss for entry in self.figures]
        if len(losses) <= PATIENCE:
            return False
        best = min(losses)
        return all(loss > best for loss in losses[-PATIENCE:]) and losses[-1] > best + (WORSE - 1) * abs(best)


def hold_out(given: Triplets, share: float, rng: np.random.Generator) -> tuple[Triplets, Triplets]:
    """(entries to learn, entries to measure on)."""
    count = min(max(round(share * len(given)), 2), MOST_HELD_OUT)
    if len(given) < FEWEST or count > len(given) - 2:
        raise ValueError(
            f"{named('values')}: {len(given):,} entries are too few to choose a radius on some of them; give "
            f"{named('radius')} a number"
        )
    held = np.zeros(len(given), bool)
    held[rng.choice(len(given), count, replace=False)] = True
    return given.take(~held), given.take(held)


def check_radii(radii: Sequence[float]) -> list[float]:
    """Rising positive numbers."""
    grid = sorted({number(radius, "radii", 0.0, strict=True) for radius in radii})
    if not grid:
        raise ValueError(f"{named('radii')} must hold at least one radius, or be None")
    return grid


def default_radii(data: Observed) -> list[float]:
    """Radii around the spread of what the biases leave, on the scale of the margins."""
    zero = biases_alone(data, 1.0)
    g = np.empty_like(data.y)
    slopes(*data.head, zero.P, zero.Q, zero.bu, zero.bi, g)
    spread = float(np.sqrt(np.mean(np.square(g, dtype=np.float64))))
    bend = {"logistic": 0.25, "poisson": max(float(data.y.mean()), 1e-12)}.get(data.loss.name, 1.0)
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
    """Fit the radii that are left, until larger ones only lose or the run is to stop; at least one is fitted."""
    state.entries = data.n
    low, high = float(data.y.min()), float(data.y.max())
    targets = held.values.astype(np.float64)
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

        point, why = fit(data, radius, limits, seed, stage=start, keep=kept, report=reported)
        if why == "stopped" and state.figures:
            break  # half a model would be compared with whole ones
        margins = np.empty(len(held))
        margins_at(held.rows, held.cols, data.mean, point.P, point.Q, point.bu, point.bi, margins)
        if data.loss.name in ("squared", "huber"):
            margins = np.clip(margins, low, high)
        losses = data.loss.value(margins, targets, data.delta)
        seconds = time.perf_counter() - begun
        entry = Figures(
            radius, point.value, point.gap, point.rank, float(losses.mean()), standard_error(losses), seconds
        )
        state.figures.append(entry)
        state.losses.append(losses.astype(np.float32))
        state.last, state.stage = point, None
        if state.best_place == place:
            state.best = point
        keep(state)
    return state


def summary(state: PathState, loss: str) -> CompletionPath:
    """The path as what users are given."""
    best = state.losses[state.best_place].astype(np.float64)
    apart = np.array([standard_error(losses - best) for losses in state.losses])
    columns = [np.array(column, np.float64) for column in zip(*state.figures, strict=True)]
    radii, value, gap, rank, losses, stderr, seconds = columns
    return CompletionPath(loss, state.entries, len(best), radii, value, gap, rank, losses, stderr, apart, seconds)
