"""`complete`: all entries of a matrix from some of them, the radius by a path; `refined`: a model on more entries."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from rich.progress import TimeElapsedColumn

from onesfw import __version__
from onesfw.arguments import choose, flag, named, number, whole_number
from onesfw.engine.checkpoint import Checkpoint, digest, open_folder
from onesfw.engine.interrupts import catch_interrupt
from onesfw.engine.keys import Key, seed_of
from onesfw.lowrank.bias_ridge import Ridge
from onesfw.lowrank.completion_checkpoint import Saves
from onesfw.lowrank.completion_path import CompletionPath
from onesfw.lowrank.corrective import NO_LIMIT, Limits, Point, Stage, fit
from onesfw.lowrank.low_rank import LowRank
from onesfw.lowrank.observed import (
    ENTRY_LOSSES,
    NO_BIASES,
    Observed,
    Triplets,
    checked_delta,
    checked_ridge,
    observe,
    triplets,
)
from onesfw.lowrank.occupied import Occupied
from onesfw.lowrank.warm_path import PathState, check_radii, default_radii, fit_path, hold_out, summary, warm
from onesfw.progress import Bar, NoteColumn
from onesfw.trees import HostArray, Rows

PATH_GAP = 1e-2  # of the models of a path, relative: their order is known long before
PATH_SHARE = 0.5  # of the time limit that a path may take
SINGLE = (1e-9, 1e12)  # between these the largest value lies in single precision
DOUBLE_BELOW = 1e-4  # a relative gap that single precision cannot show
CHOICES = ("path", "simplest")


@dataclass(frozen=True)
class Plan:
    """What is to be fitted, and how exactly."""

    loss: str
    delta: float
    weighted: bool
    ridge: Ridge | None
    max_rank: int
    gap_tol: float
    seed: int
    far: bool = False
    """Whether the values lie so far from 1 that single precision does not hold their squares."""

    @property
    def dtype(self) -> type:
        """Of factors and entries."""
        return np.float64 if self.far or self.gap_tol < DOUBLE_BELOW else np.float32

    def observe(self, given: Triplets) -> Observed:
        """The entries in the order of the kernels."""
        return observe(given, self.loss, delta=self.delta, weighted=self.weighted, ridge=self.ridge, dtype=self.dtype)

    def parts(self) -> dict[str, str]:
        """What decides where a run goes, for its fingerprint."""
        return {
            "version": __version__, "loss": self.loss, "delta": f"{self.delta:.17g}", "weighted": str(self.weighted),
            "biases": str(self.ridge), "max_rank": str(self.max_rank), "gap_tol": f"{self.gap_tol:.17g}",
            "key": str(self.seed),
        }  # fmt: skip


def complete(
    rows: Rows,
    cols: Rows = None,
    values: Rows = None,
    shape: tuple[int, int] | None = None,
    *,
    radius: float | str = "path",
    loss: str = "squared",
    weighted: bool = True,
    biases: bool = True,
    max_rank: int | None = None,
    gap_tol: float = 1e-3,
    delta: float = 1.0,
    ridge: float | Ridge | None = None,
    key: Key = 0,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
) -> LowRank:
    """Predict all entries of a matrix from some: minimise the mean loss over a trace-norm ball, X = P Qᵀ never dense.

    Memory is O(entries + (rows + columns) · rank). Frank-Wolfe atoms come from the leading singular vectors of the
    gradient; between them conjugate gradients correct all factors; the Frank-Wolfe gap certifies the result.

    Args:
        rows: the row numbers of the known entries, from 0 on; or a scipy sparse matrix, whose stored entries are
            known, in the place of rows, cols and values.
        cols: their column numbers.
        values: their values. An entry that is given more than once counts once, with the mean of its values.
        shape: (rows, columns); None for as many as the numbers need.
        radius: of the ball, in the units of the values; "path" for the best of a path of radii on a tenth of the
            entries held out, "simplest" for the smallest within one standard error of it.
        loss: "squared", "huber", "logistic" (values −1 and +1) or "poisson" (counts).
        weighted: measure X by ‖diag(√p) X diag(√q)‖_*, p and q half the shares of the entries in each row and column,
            half uniform (Salakhutdinov and Srebro 2010); False for uniform p and q, which is ‖X‖_*/√(rows · columns).
        biases: learn one number for each row and column too, beside the mean; they are not part of the norm. False
            leaves the mean out too: predictions are X alone.
        max_rank: of X; None for no limit but the one that a path finds on the held-out entries. With a limit the gap
            may not fall below gap_tol.
        gap_tol: stop when the gap is at most this times the value (for counts, above the least that any predictions
            could have), or times a hundredth of the value of the biases alone where that is more; or below 1e-8 for the
            logistic loss and for counts. Below 1e-4 the run is in double precision.
        delta: where the Huber loss turns linear.
        ridge: the weight of the biases' squares, in entries: a row's bias is shrunk as by so many zeros; two numbers
            for rows and columns, one for both, None to estimate them: noise over the variance of the biases.
        key: a seed of the held-out entries and of the singular vectors' first guesses.
        progress: show a bar.
        checkpoint: a folder to save the run in; the same call goes on after a kill, to the same last bit.
        time_limit: seconds after which the best so far is certified and returned; a path gets at most half of them.

    Returns:
        The factors, their value and gap; it predicts, prints, draws, saves itself.

    Raises:
        TypeError, ValueError: where an argument is wrong, or a checkpoint belongs to another run.
        FloatingPointError: where numbers grow beyond all bounds: a radius that is far too large.

    Example:
        >>> import numpy as np
        >>> import onesfw as fw
        >>> rng = np.random.default_rng(0)
        >>> truth = np.outer(rng.normal(size=30), rng.normal(size=20))
        >>> i, j = np.nonzero(rng.random(truth.shape) < 0.5)
        >>> model = fw.lowrank.complete(i, j, truth[i, j], truth.shape, radius=0.5)
        >>> model.norm <= 0.5 + 1e-6, model.gap <= 1e-3 * model.value
        (True, True)
    """
    if isinstance(radius, str):
        choose(radius, CHOICES, "radius")
    else:
        number(radius, "radius", 0.0, strict=True)
    plan = checked_plan(loss, delta, weighted, biases, ridge, max_rank, gap_tol, key)
    given = triplets(rows, cols, values, shape, loss)
    plan = replace(plan, far=not SINGLE[0] <= spread(given.values, plan) <= SINGLE[1])
    limit = np.inf if time_limit is None else number(time_limit, "time_limit", 0.0, strict=True)
    occupied = Occupied.of(given)
    given = occupied.alone(given)
    saves = saves_in(checkpoint, plan, given, str(radius))
    with watched(progress, limit, plan.dtype) as watch:
        path: CompletionPath | None = None
        start: Stage | None = None
        if isinstance(radius, str):
            state = path_state(given, None, 0.1, plan, watch, saves)
            path = summary(state, plan.loss)
            place = path.best if radius == "path" else path.simplest
            chosen, most = float(path.radii[place]), state.figures[place].max_rank
            assert state.best is not None
            start = warm(state.best, chosen)
        else:
            chosen, most = float(radius), plan.max_rank
        saved = saves.fit_stage(chosen)
        cut = isinstance(radius, str) and state is not saves.path  # its only model is half fitted, and no start
        data = plan.observe(given)
        watch.say("all entries", chosen)
        limits = Limits(plan.gap_tol, most, stop=watch.over)
        point, why = fit(
            data,
            chosen,
            limits,
            plan.seed,
            stage=saved or start,
            keep=ignored if cut else saves.keep_fit,
            report=watch.report,
        )
        if not np.isfinite(point.value):
            raise FloatingPointError("the loss is not finite")
        saves.finish()
    status = why if why != "stopped" else "interrupted" if watch.interrupted() else "time"
    return as_model(occupied.back(point), data, status, plan, path, time.perf_counter() - watch.begun, most)


def ignored(stage: Stage) -> None:
    """Keep nothing."""


def as_model(
    point: Point, data: Observed, status: str, plan: Plan, path: CompletionPath | None, seconds: float, most: int
) -> LowRank:
    """A certified point as what users are given."""
    return LowRank(
        point.P, point.Q, point.bu, point.bi, data.mean, plan.loss, point.radius, point.s, point.value, point.gap,
        status, data.bounds, plan.delta, plan.weighted, data.n, point.steps,
        point.rounds, seconds, path, ridge=data.ridge,
        max_rank=None if most >= NO_LIMIT else most,
    )  # fmt: skip


def radius_path(
    rows: Rows,
    cols: Rows = None,
    values: Rows = None,
    shape: tuple[int, int] | None = None,
    *,
    radii: Sequence[float] | None = None,
    validation: float | tuple[Rows, Rows, Rows] = 0.1,
    loss: str = "squared",
    weighted: bool = True,
    biases: bool = True,
    max_rank: int | None = None,
    gap_tol: float = PATH_GAP,
    delta: float = 1.0,
    ridge: float | Ridge | None = None,
    key: Key = 0,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
) -> CompletionPath:
    """Fit one model a radius, from small to large, each begun at the one before, and measure each on other entries.

    The path ends early where three radii in a row were worse than the best, the last one by 0.3 %, where six were, or
    where a model does not fill its ball. Where new atoms do harm on the other entries, the rank is limited from there
    on.

    Args:
        rows: row numbers of the known entries, or a scipy sparse matrix, as in `complete`.
        cols: their column numbers.
        values: their values.
        shape: (rows, columns); None for as many as the numbers need.
        radii: of the models; None for 20 from 0.02 to 4 times the spread of what the biases leave.
        validation: the share of the entries to measure on, of which 200,000 at most are taken, or three vectors (rows,
            cols, values) of other entries.
        loss: "squared", "huber", "logistic" or "poisson".
        weighted: as in `complete`.
        biases: learn one number for each row and column too.
        max_rank: of X; None for no limit.
        gap_tol: how exactly each model is fitted, relative.
        delta: where the Huber loss turns linear.
        ridge: of the biases, as in `complete`.
        key: a seed.
        progress: show a bar.
        checkpoint: a folder to save the path in.
        time_limit: seconds after which the path ends.

    Returns:
        The radii, and what their models lost on the entries they learnt and on the others.

    Raises:
        TypeError, ValueError: for a wrong argument, or too few entries.

    Example:
        >>> import numpy as np
        >>> import onesfw as fw
        >>> rng = np.random.default_rng(0)
        >>> truth = 2 * np.outer(rng.normal(size=60), rng.normal(size=40))
        >>> i, j = np.nonzero(rng.random(truth.shape) < 0.5)
        >>> noisy = truth[i, j] + 0.1 * rng.normal(size=len(i))
        >>> path = fw.lowrank.radius_path(i, j, noisy, radii=[0.1, 2.0])
        >>> path.best_radius
        2.0
    """
    plan = checked_plan(loss, delta, weighted, biases, ridge, max_rank, gap_tol, key)
    given = triplets(rows, cols, values, shape, loss)
    plan = replace(plan, far=not SINGLE[0] <= spread(given.values, plan) <= SINGLE[1])
    grid = None if radii is None else check_radii(radii)
    held: float | Triplets
    if isinstance(validation, tuple):
        held = triplets(*validation, given.shape, loss)
    else:
        held = number(validation, "validation", 0.0, strict=True)
        if held >= 1:
            raise ValueError(f"{named('validation')} must be a share of the entries, above 0 and below 1, got {held:g}")
    limit = np.inf if time_limit is None else number(time_limit, "time_limit", 0.0, strict=True)
    parts = f"{'default' if grid is None else digest(np.array(grid))}"
    parts += f"{held:.17g}" if isinstance(held, float) else digest(held.rows, held.cols, held.values)
    occupied = Occupied.of(given, *(() if isinstance(held, float) else (held,)))
    given, held = occupied.alone(given), held if isinstance(held, float) else occupied.alone(held)
    saves = saves_in(checkpoint, plan, given, parts)
    with watched(progress, limit / PATH_SHARE, plan.dtype) as watch:
        state = path_state(given, grid, held, plan, watch, saves)
        saves.finish()
    return summary(state, plan.loss)


def checked_plan(
    loss: str,
    delta: float,
    weighted: bool,
    biases: bool,
    ridge: float | Ridge | None,
    max_rank: int | None,
    gap_tol: float,
    key: Key,
) -> Plan:
    """The arguments that `complete` and `radius_path` share."""
    choose(loss, ENTRY_LOSSES, "loss")
    most = NO_LIMIT if max_rank is None else whole_number(max_rank, "max_rank", 1)
    if ridge is not None and not flag(biases, "biases"):
        raise ValueError(
            f"{named('ridge')} shrinks biases, and without {named('biases')} there are none; drop one of the two"
        )
    weights = checked_ridge(ridge) if flag(biases, "biases") else NO_BIASES
    tolerance = number(gap_tol, "gap_tol", 0.0, strict=True)
    return Plan(loss, checked_delta(delta), flag(weighted, "weighted"), weights, most, tolerance, seed_of(key) >> 1)


def spread(values: HostArray, plan: Plan) -> float:
    """How far values lie from what the mean predicts, at most; 1 where they are alike."""
    middle = 0.0 if plan.ridge == NO_BIASES else float(np.mean(values, dtype=np.float64))
    return max(float(values.max()) - middle, middle - float(values.min())) or 1.0


def path_state(
    given: Triplets, grid: list[float] | None, held: float | Triplets, plan: Plan, watch: Watch, saves: Saves
) -> PathState:
    """The path as far as it comes."""
    learnt, other = (
        hold_out(given, held, np.random.default_rng([plan.seed, 1])) if isinstance(held, float) else (given, held)
    )
    data = plan.observe(learnt)
    del learnt  # as large as the data
    radii = default_radii(data) if grid is None else grid
    limits = Limits(max(plan.gap_tol, PATH_GAP), plan.max_rank, stop=watch.path_over)

    def report(place: int, point: Point) -> None:
        watch.say(f"radius {place + 1}/{len(radii)}", radii[place])
        watch.report(point)

    return fit_path(data, other, radii, limits, plan.seed, saves.path_state(), saves.keep_path, report)


def saves_in(checkpoint: str | os.PathLike[str] | None, plan: Plan, given: Triplets, radius: str) -> Saves:
    """Where the run is kept: a folder that belongs to it, or nowhere."""
    if checkpoint is None:
        return Saves(None)
    if not isinstance(checkpoint, str | os.PathLike):
        raise TypeError(f"{named('checkpoint')} must be the path of a folder, got {checkpoint!r}")
    data = digest(given.rows, given.cols, given.values, np.array([given.shape, given.whole or given.shape]))
    folder = open_folder(os.fspath(checkpoint), {**plan.parts(), "values": data, "radius": radius})
    return Saves(Checkpoint(folder), given.shape)


class Watch:
    """The clock, Ctrl-C and the bar of a run."""

    def __init__(self, bar: Bar, limit: float, begun: float, interrupted: Callable[[], bool]) -> None:
        self.bar, self.limit, self.begun, self.interrupted = bar, limit, begun, interrupted

    def over(self) -> bool:
        """Whether the run is to end."""
        return self.interrupted() or time.perf_counter() - self.begun >= self.limit

    def path_over(self) -> bool:
        """Whether the path is to end: what is left of the time is for the model."""
        return self.interrupted() or time.perf_counter() - self.begun >= PATH_SHARE * self.limit

    def say(self, what: str, radius: float) -> None:
        """What is fitted now."""
        self.bar.update(description=f"{what}, radius {radius:.4g}")

    def report(self, point: Point) -> None:
        """How far it has come."""
        self.bar.update(note=f"value {point.value:.6g}  gap {point.gap:.2g}  rank {point.rank}")


@cache
def compiled(kind: type) -> None:
    """What a run needs in that precision, compiled or loaded before its clock begins: on a wide and a narrow matrix."""
    places = np.arange(0, 108, 2, dtype=np.int32)
    for shape in ((6, 18), (18, 6)):
        given = Triplets(places // shape[1], places % shape[1], np.sin(places), shape)
        fit(observe(given, "squared", dtype=kind), 0.5, Limits(1e-9, rounds=1), 0)


@contextmanager
def watched(progress: bool, limit: float, kind: type) -> Iterator[Watch]:
    """A bar, the clock, and Ctrl-C as a wish to stop; numbers that grow beyond all bounds are an error that says so."""
    columns = (NoteColumn(), TimeElapsedColumn())
    try:
        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # it ends in one of the errors below
        with quiet, catch_interrupt() as wished, Bar(bool(progress), "compiling", None, *columns) as bar:
            compiled(kind)
            yield Watch(bar, limit, time.perf_counter(), wished.is_set)
    except (np.linalg.LinAlgError, ArithmeticError) as error:
        raise FloatingPointError(
            f"numbers grew beyond all bounds ({error}): lower {named('radius')}, or scale the values"
        ) from error


def refined(
    model: LowRank, given: Triplets, *, ridge: Ridge | None, key: int, gap_tol: float = 1e-3, rounds: int = 1
) -> LowRank:
    """The model after some rounds on these entries, whose rows and columns may be more than it has.

    New rows and columns begin with factors and biases of 0; the mean stays, so that the biases mean what they meant.
    """
    begun = time.perf_counter()
    data = observe(
        given, model.loss, delta=model.delta, weighted=model.weighted, ridge=ridge,
        dtype=model.P.dtype.type, mean=model.mean,
    )  # fmt: skip
    m, n = given.shape
    point = Point(
        taller(model.P, m), taller(model.Q, n), taller(model.row_bias, m), taller(model.col_bias, n), model.s,
        model.radius,
    )  # fmt: skip
    limits = Limits(gap_tol, NO_LIMIT if model.max_rank is None else model.max_rank, rounds)
    point, why = fit(data, model.radius, limits, key, stage=Stage(point))
    low, high = data.bounds
    return replace(
        model, P=point.P, Q=point.Q, row_bias=point.bu, col_bias=point.bi, s=point.s, value=point.value, gap=point.gap,
        status=why, bounds=(min(low, model.bounds[0]), max(high, model.bounds[1])), entries=data.n,
        steps=model.steps + point.steps, rounds=model.rounds + point.rounds,
        seconds=model.seconds + time.perf_counter() - begun, row_labels=None, col_labels=None, test=None,
        ridge=data.ridge,
    )  # fmt: skip


def taller(array: HostArray, size: int) -> HostArray:
    """An array with zeros behind its last row."""
    return np.concatenate([array, np.zeros((size - len(array), *array.shape[1:]), array.dtype)])
