"""One model from shards: rounds of rows on several workers, joined by their averages.

Each of W workers takes k steps over rows of its own shard from a common state (x̄, d̄), along which d is only carried
(ρ = 0). Then Algorithm 2 takes the rows of all workers as one sample:

    x̄⁺ = Σ_w p_w x_w,      d̄⁺ = ḡ(x̄⁺) + (1 − ρ)(d̄ − ḡ(x̄)),      ḡ(x) = Σ_w p_w (1/k) Σ_z g(x; z)

with p_w the shard's share of the rows. The workers' own d would not do: they are gradients at W points, and their mean
stops at a floor where shards differ; with ρ > 0 a worker's own noise draws its vertices to wrong places, which no
average of x mends. A round is a pure function of (state, shard, round): any joblib backend carries it, and a cluster
does again what a dead worker lost.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from onesfw.data.batch import joined
from onesfw.data.blocks import Input
from onesfw.data.prepare import Prepared, ReadOptions
from onesfw.data.row_groups import Group, chunked, decode
from onesfw.engine.jobs import together
from onesfw.linear.examples import Examples, examples
from onesfw.linear.gradient import LARGEST_CONSTANT, TINY
from onesfw.linear.learner import DEFAULT_SCHEDULE, SCHEDULES, Learner, Settings
from onesfw.linear.losses import all_derivatives, all_values
from onesfw.linear.one_hot import BLOCKS_PER_GROUP, L1
from onesfw.linear.scaling import divided
from onesfw.schedules import Preset, constant, harmonic
from onesfw.trees import HostArray

KEPT_CHUNKS = 2  # decoded chunks that a worker's process keeps for the next round
SEEN = 20  # rows of a label that a round should have: with none at all, the shards are sorted
RUNNING = ("intercept_d", "bend", "change", "noise")


@dataclass(frozen=True)
class State:
    """Where all workers stand after a round: x̄ and d̄ of each model, models × features, and the running means."""

    step: int
    coefs: HostArray
    intercepts: HostArray
    gradients: HostArray
    running: dict[str, HostArray]

    @classmethod
    def start(cls, settings: Settings) -> State:
        """Before the first row."""
        return state_of(Learner(settings))

    def tensors(self) -> dict[str, HostArray]:
        """All of it as arrays."""
        arrays = {"coefs": self.coefs, "intercepts": self.intercepts, "gradients": self.gradients}
        return arrays | self.running | {"step": np.array([self.step])}

    @classmethod
    def from_tensors(cls, tensors: dict[str, HostArray]) -> State:
        """What `tensors` gave."""
        return cls(
            int(tensors["step"].item()), tensors["coefs"], tensors["intercepts"], tensors["gradients"],
            {name: tensors[name] for name in RUNNING},
        )  # fmt: skip


def state_of(learner: Learner) -> State:
    """What of a learner is averaged."""
    scalars = learner.scalars
    gradients = np.ascontiguousarray((scalars["sigma"] * learner.pairs[:, 1]).T)
    running = {name: scalars[name].copy() for name in RUNNING}
    return State(learner.steps, learner.coefs, learner.intercepts, gradients, running)


def learner_at(settings: Settings, state: State) -> Learner:
    """A learner that goes on from there: its next step takes x_{t−1} = x_t, for the jump is in d̄ already."""
    learner = Learner(settings)
    if not state.step:
        return learner
    scalars, d = learner.scalars, state.gradients.T
    scalars["step"], scalars["scale"], scalars["sigma"], scalars["eta"] = state.step, 1.0, 1.0, 0.0
    scalars["intercept"] = scalars["intercept_before"] = state.intercepts
    for name, values in state.running.items():
        scalars[name] = values
    scalars["norm2"] = scalars["peak2"] = (d**2).sum(axis=0)
    learner.pairs[:, 1] = d
    # On the cube X is what x has beside the vertex −r sign(d).
    learner.pairs[:, 0] = state.coefs.T + (learner.radii * np.sign(d) if settings.constraint == "linf" else 0.0)
    if settings.set.one_hot:
        keys = np.abs(d) if settings.set.shape == L1 else -d
        scalars["place"] = keys.argmax(axis=0)
        learner.blocks[:] = largest_of(keys, -(-len(keys) // len(learner.blocks)), learner.blocks)
        learner.groups[:] = largest_of(learner.blocks, BLOCKS_PER_GROUP, learner.groups)
    learner.used = np.ones(len(learner.pairs), bool)
    return learner


def largest_of(keys: HostArray, width: int, like: HostArray) -> HostArray:
    """The largest of each so many rows; a bound may be too large, so the last rows are padded with the least."""
    width = 1 << (width - 1).bit_length()
    padded = np.full((len(like) * width, keys.shape[1]), -np.inf)
    padded[: len(keys)] = keys
    found: HostArray = padded.reshape(len(like), width, -1).max(axis=1)
    return found


class Shard(Protocol):
    """The rows of one worker: anything that can be sent to it."""

    @property
    def rows(self) -> int:
        """How many."""

    def round(self, place: int, count: int, settings: Settings) -> list[tuple[Examples, HostArray]]:
        """The rows from place · count on, of the endless stream of shuffled passes: examples, and which of them."""

    def whole(self, settings: Settings) -> list[Callable[[], Examples]]:
        """All rows, a part at a time."""

    def scaled(self, scales: HostArray) -> Shard:
        """The shard with each column divided by its scale."""


def stream(place: int, count: int, rows: int) -> list[tuple[int, int, int]]:
    """(pass, first row, last row) of the rows from place · count on."""
    found, begin, left = [], place * count, count
    while left:
        sweep, first = divmod(begin, rows)
        taken = min(left, rows - first)
        found.append((sweep, first, first + taken))
        begin, left = begin + taken, left - taken
    return found


@dataclass(frozen=True)
class RowShard:
    """Rows in memory."""

    number: int
    data: Examples
    key: int

    @property
    def rows(self) -> int:
        """How many."""
        return self.data.size

    def round(self, place: int, count: int, settings: Settings) -> list[tuple[Examples, HostArray]]:
        """Some rows of the passes, each of them a permutation."""
        orders = [
            np.random.default_rng([self.key, self.number, sweep]).permutation(self.rows)[first:last]
            for sweep, first, last in stream(place, count, self.rows)
        ]
        return [(self.data, np.concatenate(orders))]

    def whole(self, settings: Settings) -> list[Callable[[], Examples]]:
        """The rows."""
        return [lambda: self.data]

    def scaled(self, scales: HostArray) -> RowShard:
        """The rows with each column divided by its scale."""
        return replace(self, data=divided(self.data, scales))


_kept: OrderedDict[tuple[object, ...], Examples] = OrderedDict()
"""Chunks that this process decoded for the rounds before."""


@dataclass(frozen=True)
class GroupShard:
    """Row groups of Parquet files, decoded where they are learnt; a process keeps the last two chunks.

    Args:
        number: of the shard.
        inputs: its files.
        groups: its row groups; `file` counts in `inputs`.
        options: how the files are read.
        prepared: what was decided about them.
        buffer: rows that are shuffled together.
        key: the seed.
        stamp: what tells its rows from those of other files, or of these files read in another way.
        scales: what columns are divided by; None for nothing.
    """

    number: int
    inputs: tuple[Input, ...]
    groups: tuple[Group, ...]
    options: ReadOptions
    prepared: Prepared
    buffer: int
    key: int
    stamp: str
    scales: HostArray | None = None

    @cached_property
    def rows(self) -> int:
        """How many."""
        return sum(group.rows for group in self.groups)

    def plan(self, sweep: int) -> list[list[int]]:
        """The row groups of each chunk of a pass."""
        order = np.random.default_rng([self.key, self.number, sweep]).permutation(len(self.groups)).tolist()
        return chunked(order, self.groups, self.buffer, len(self.prepared.encoding.columns))

    def chunk(self, places: Sequence[int], settings: Settings) -> Examples:
        """Row groups, decoded and joined."""
        name = (self.stamp, self.number, tuple(places))
        if name not in _kept:
            parts = [
                decode(self.inputs[group.file], group.number, self.options, self.prepared)[0]
                for group in (self.groups[place] for place in places)
            ]
            rows = joined([part.rows for part in parts], settings.n_features)
            targets = np.concatenate([part.targets for part in parts])
            data = examples(rows, targets, None, settings.n_features, settings.loss_function, settings.labels)
            _kept[name] = divided(data, self.scales)
            while len(_kept) > KEPT_CHUNKS:
                _kept.popitem(last=False)
        return _kept[name]

    def round(self, place: int, count: int, settings: Settings) -> list[tuple[Examples, HostArray]]:
        """Some rows of the passes, from the chunks that hold them."""
        found = []
        for sweep, first, last in stream(place, count, self.rows):
            begin = 0
            for number, places in enumerate(self.plan(sweep)):
                size = sum(self.groups[p].rows for p in places)
                low, high = max(first - begin, 0), min(last - begin, size)
                if low < high:
                    order = np.random.default_rng([self.key, self.number, sweep, number]).permutation(size)
                    found.append((self.chunk(places, settings), order[low:high]))
                begin += size
        return found

    def whole(self, settings: Settings) -> list[Callable[[], Examples]]:
        """The chunks of a pass."""
        return [lambda places=places: self.chunk(places, settings) for places in self.plan(0)]  # type: ignore[misc]

    def scaled(self, scales: HostArray) -> GroupShard:
        """The shard with each column divided by its scale."""
        return replace(self, scales=scales, stamp=digest(self.stamp, scales.tobytes()))


def digest(*parts: object) -> str:
    """A word that stands for these things."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class Learnt(NamedTuple):
    """What a worker's round came to: where it is, the losses before, how many rows each model has as its own."""

    coefs: HostArray
    intercepts: HostArray
    bend: HostArray
    loss: float
    positives: HostArray


def learn_round(settings: Settings, state: State, shard: Shard, place: int, count: int) -> Learnt:
    """The first task of a round: learn rows of a shard from the common state."""
    learner = learner_at(settings, state)
    if state.step:
        learner.schedule = replace(fixed(learner.schedule), rho=constant(0.0))
    loss, positives = 0.0, np.zeros(settings.models)
    for data, order in shard.round(place, count, settings):
        loss += float(learner.learn_examples(data, order).mean())
        for model in range(settings.models):
            positives[model] += np.count_nonzero(settings.targets_of(data.targets[order], model) > 0)
    return Learnt(learner.coefs, learner.intercepts, learner.scalars["bend"].copy(), loss, positives)


class Point(NamedTuple):
    """x̄ of each model, and the intercepts."""

    coefs: HostArray
    intercepts: HostArray


class Tracked(NamedTuple):
    """Means over a worker's rows, one a model: g(x̄⁺; z) − (1 − ρ) g(x̄; z), its entry for the intercept, and
    ‖g(x̄⁺; z) − g(x̄; z)‖² and the variance of g(x̄; z)."""

    gradients: HostArray
    intercept_d: HostArray
    change: HostArray
    noise: HostArray


def track(
    settings: Settings, before: Point, after: Point, rho: HostArray, shard: Shard, place: int, count: int
) -> Tracked:
    """The second task: how the gradient over the round's rows moved with x̄."""
    models, loss, own = settings.models, settings.loss_function, settings.intercept is not None
    news, olds = np.zeros((2, models)), np.zeros((2, models))  # of the intercept's slope and of ‖g‖²
    gradients, old_gradients = np.zeros((models, settings.n_features)), np.zeros((models, settings.n_features))
    change = np.zeros(models)
    for data, order in shard.round(place, count, settings):
        rows, targets, weights = data.matrix[order], data.targets[order], data.weights[order]
        squares = np.add.reduceat(np.append(rows.data**2, 0.0), rows.indptr[:-1]) * (np.diff(rows.indptr) > 0) + own
        for model in range(models):
            y = settings.targets_of(targets, model)
            new, old = (
                weights * all_derivatives(loss.code, settings.delta, rows @ at.coefs[model] + at.intercepts[model], y)
                for at in (after, before)
            )
            gradients[model] += rows.T @ new
            old_gradients[model] += rows.T @ old
            news[0, model] += new.sum()
            olds[:, model] += old.sum(), (old**2 * squares).sum()
            change[model] += ((new - old) ** 2 * squares).sum()
    means = np.sum(old_gradients**2, axis=1) + own * olds[0] ** 2
    return Tracked(
        (gradients - (1 - rho)[:, None] * old_gradients) / count, own * (news[0] - (1 - rho) * olds[0]) / count,
        change / count, olds[1] / count - means / count**2,
    )  # fmt: skip


def fixed(schedule: Preset) -> Preset:
    """A schedule whose η needs no c: workers take no sample's noise into account, from which c comes."""
    return replace(schedule, eta=harmonic(2.0, 1.0) if schedule.pace else schedule.eta, adaptive=False, pace=0.0)


def weight_of(settings: Settings, state: State, count: int) -> HostArray:
    """ρ of a round, one a model: 1 − Π (1 − ρ_t) over its steps; adaptive, c k/(t + c k) with c as in `gradient`."""
    schedule, t = SCHEDULES[settings.schedule or DEFAULT_SCHEDULE], state.step
    if not t:
        return np.ones(settings.models)
    if not schedule.adaptive:
        steps = schedule.rho(np.arange(t + 1, t + 1 + count), 0)
        return np.full(settings.models, 1 - np.prod(1 - steps))
    ratio = state.running["change"] / np.maximum(state.running["noise"], TINY)
    c = np.minimum((1 + np.sqrt(1 + 4 * ratio)) / 2, LARGEST_CONSTANT)
    found: HostArray = c * count / (t + c * count)
    return found


def mean_of(values: Sequence[HostArray], shares: Sequence[float]) -> HostArray:
    """Σ p_w value_w, in a fixed order of the sum, so that the bits do not depend on who was first."""
    total = shares[0] * values[0]
    for share, value in zip(shares[1:], values[1:], strict=True):
        total = total + share * value
    return total


def do_round(
    settings: Settings, state: State, shards: Sequence[Shard], place: int, count: int
) -> tuple[State, list[Learnt]]:
    """(state, shards, round) ↦ state."""
    total = sum(shard.rows for shard in shards)
    shares = [shard.rows / total for shard in shards]
    learnt = together(learn_round, [(settings, state, shard, place, count) for shard in shards], shared=False)
    before = Point(state.coefs, state.intercepts)
    after = Point(*(mean_of([getattr(one, name) for one in learnt], shares) for name in Point._fields))
    rho = weight_of(settings, state, count)
    parts = together(track, [(settings, before, after, rho, shard, place, count) for shard in shards], shared=False)
    found = Tracked(*(mean_of(values, shares) for values in zip(*parts, strict=True)))
    running = {
        "intercept_d": found.intercept_d + (1 - rho) * state.running["intercept_d"],
        "bend": mean_of([one.bend for one in learnt], shares),
        "change": state.running["change"],
        "noise": state.running["noise"],
    }
    if place:  # means over the rounds: m² of (t/k)²‖Δ‖², s² of the variance, both of one row
        for name, seen in (("change", (state.step / count) ** 2 * found.change), ("noise", found.noise)):
            running[name] = running[name] + (seen - running[name]) / place
    gradients = found.gradients + (1 - rho)[:, None] * state.gradients
    return State(state.step + count, after.coefs, after.intercepts, gradients, running), learnt


def refuse_sorted(settings: Settings, learnt: Sequence[Learnt], count: int) -> None:
    """Raise ValueError where a shard's first round lacks a label that others have often: the rows are sorted."""
    if not settings.loss_function.classifies:
        return
    positives = np.array([one.positives for one in learnt])  # shards × models
    for labels in (positives, count - positives) if settings.models == 1 else (positives,):
        expected = labels.mean(axis=0)
        for shard, model in np.argwhere((labels == 0) & (expected >= SEEN)).tolist():
            raise ValueError(
                f"shards: shard {shard} has no row of a label among its first {count:,}, where others have "
                f"{expected[model]:,.0f} in the mean: the rows are sorted by label, and a model from such shards would "
                "be wrong; write the files shuffled, with more and smaller row groups, or take fewer shards"
            )


class Sums(NamedTuple):
    """Sums over a shard's rows at one point, one a model: losses, slopes and bends in the intercept, gradients."""

    rows: int
    losses: HostArray
    slopes: HostArray
    bends: HostArray
    gradients: HostArray


def sums_over(settings: Settings, state: State, shard: Shard) -> Sums:
    """What a shard tells about the loss and its gradient: a task."""
    models, loss = settings.models, settings.loss_function
    losses, slopes, bends = np.zeros(models), np.zeros(models), np.zeros(models)
    gradients, rows = np.zeros_like(state.gradients), 0
    for part in shard.whole(settings):
        data = part()
        rows += data.size
        for model in range(models):
            y = settings.targets_of(data.targets, model)
            margins = data.matrix @ state.coefs[model] + state.intercepts[model]
            first = all_derivatives(loss.code, settings.delta, margins, y)
            losses[model] += all_values(loss.code, settings.delta, margins, y).sum()
            slopes[model] += first.sum()
            bends[model] += (all_derivatives(loss.code, settings.delta, margins + 1e-4, y) - first).sum() / 1e-4
            gradients[model] += data.matrix.T @ first
    return Sums(rows, losses, slopes, bends, gradients)


def gap_over(settings: Settings, state: State, shards: Sequence[Shard]) -> tuple[float, float]:
    """(F, gap) over the rows of all shards, the means over the models.

    The gap is max over v of ⟨∇F(x̄), x̄ − v⟩, and what the intercept could still gain, to second order in it.
    """
    sums = together(sums_over, [(settings, state, shard) for shard in shards], shared=False)
    rows = sum(one.rows for one in sums)
    gradients = sum((one.gradients for one in sums), np.zeros_like(state.gradients)) / rows
    gaps = np.array([
        gradient @ coef - radius * settings.set.least(gradient)
        for gradient, coef, radius in zip(gradients, state.coefs, settings.radii, strict=True)
    ])  # fmt: skip
    if settings.intercept is not None:
        slopes, bends = (sum(getattr(one, name) for one in sums) / rows for name in ("slopes", "bends"))
        gaps = gaps + slopes**2 / (2 * np.maximum(bends, 1e-3))
    return float(sum(one.losses.sum() for one in sums) / rows / settings.models), float(gaps.mean())
