"""How many samples each step takes: pure functions of t, and of T where a theorem asks for it, on the host."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onesfw.arguments import real, whole_number
from onesfw.schedules.rates import label_of, per_step

MOST_SAMPLES = 2**31 - 1  # samples and steps are numbered in 32 bits
SLICE = 1 << 16  # steps that are added up at once

Numbers = np.ndarray


class Sizes(NamedTuple):
    """Sample sizes, an entry for each step."""

    anew: Any
    """Of the estimate that starts anew at this step; 0 where none does."""
    batch: Any
    """Of the step's own average."""


class Totals(NamedTuple):
    """Sums over the first steps of a run."""

    anew: int
    batch: int
    starts: int
    """Steps at which an estimate starts anew."""


@dataclass(frozen=True)
class Batches:
    """t ↦ sample sizes for an array of steps t = 1, 2, …; `formula` is how it prints."""

    formula: str
    function: Callable[[Numbers, int], tuple[Any, Any]]
    """(t, T) ↦ (anew, batch), rounded up to whole numbers here."""
    uses_horizon: bool = False
    """Whether the sizes depend on T, so that a run cannot be prolonged."""

    def __call__(self, t: Numbers, horizon: int) -> Sizes:
        """The sizes at steps `t` of a run of `horizon` steps."""
        sizes = self.function(np.asarray(t, np.float64), horizon)
        # 1e-9: a product such as 3 · (1/3) must not be rounded up to the next number. What lies beyond MOST_SAMPLES
        # stays beyond it, and is refused when the run is built.
        whole = (np.ceil(np.minimum(np.asarray(size, np.float64), MOST_SAMPLES + 1) - 1e-9) for size in sizes)
        return Sizes(*(np.broadcast_to(size, np.shape(t)).astype(np.int64) for size in whole))

    def totals(self, steps: int, horizon: int) -> Totals:
        """The sums over steps 1, …, `steps`."""
        told = horizon if self.uses_horizon else 0
        whole = [slice_totals(self, i * SLICE + 1, SLICE, told) for i in range(steps // SLICE)]
        rest = slice_totals(self, steps // SLICE * SLICE + 1, steps % SLICE, told)
        return Totals(*(sum(column) for column in zip(*whole, rest, strict=True)))


@functools.lru_cache(4096)
def slice_totals(batches: Batches, first: int, count: int, horizon: int) -> Totals:
    """The sums over `count` steps from `first` on."""
    sizes = batches(np.arange(first, first + count), horizon)
    return Totals(int(sizes.anew.sum()), int(sizes.batch.sum()), int(np.count_nonzero(sizes.anew)))


def as_sizes(value: Any, name: str) -> tuple[str, Callable[[Numbers, int], Numbers], bool]:
    """A whole number, or a function of t or of (t, T), as (formula, function of (t, T), whether it uses T)."""
    if callable(value):
        return from_function(value, name)
    if real(value) is None:
        raise TypeError(f"{name} must be a whole number of at least 1, or a function of t or of (t, T), got {value!r}")
    size = whole_number(value, name, 1, MOST_SAMPLES)
    return f"{size}", lambda t, T: np.full(np.shape(t), size), False


def from_function(function: Callable[..., Any], name: str) -> tuple[str, Callable[[Numbers, int], Numbers], bool]:
    """A user's function of t or of (t, T), which must stay above 0; sizes are rounded up."""
    evaluate, uses_horizon = per_step(function, name)

    def checked(t: Numbers, horizon: int) -> Numbers:
        try:
            values = evaluate(t, horizon)
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ValueError(f"{name} must return a number for every step t; the function failed: {reason}") from error
        wrong = ~(values > 0)
        if wrong.any():
            first = int(np.argmax(wrong))
            raise ValueError(f"{name} must be above 0; it is {values[first]:g} at t = {t[first]:g}")
        return np.maximum(values, 1.0)

    return label_of(function), checked, uses_horizon


class Place(NamedTuple):
    """Where in its epochs a step stands."""

    epoch: Numbers
    """1, 2, …"""
    k: Numbers
    """1, …, `length`: the step's place in its epoch."""
    length: Numbers


@dataclass(frozen=True)
class Epochs:
    """Runs of steps between two new starts; epoch e has `length(e)` steps."""

    length: Callable[[int], int]

    def __call__(self, t: Numbers) -> Place:
        """The epoch of each step t ≥ 1."""
        starts, lengths = [0], []  # steps before the epoch
        while starts[-1] < (t.max() if t.size else 0):
            lengths.append(self.length(len(starts)))
            starts.append(starts[-1] + lengths[-1])
        epoch = np.searchsorted(starts, t)
        return Place(epoch, t - np.asarray(starts)[epoch - 1], np.asarray(lengths)[epoch - 1])
