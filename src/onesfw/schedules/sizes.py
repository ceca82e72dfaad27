"""How many samples each step takes: pure functions of t, and of T where a theorem asks for it, on the host."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from onesfw.arguments import real, whole_number
from onesfw.schedules.rates import Numbers, OfSteps, label_of, per_step

MOST_SAMPLES = 2**31 - 1  # samples and steps are numbered in 32 bits
SLICE = 1 << 16  # steps that are added up at once

SizesLike = int | OfSteps
"""A whole number of samples, or a user's function of t or of (t, T)."""
UserSizes = tuple[str, Callable[[Numbers, int], Numbers], bool]
"""(formula, function of (t, T), whether it uses T)"""


class Sizes(NamedTuple):
    """Sample sizes, an entry for each step.

    Args:
        anew: of the estimate that starts anew at this step; 0 where none does.
        batch: of the step's own average.

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import Sizes
        >>> Sizes(anew=np.array([100, 0]), batch=np.array([0, 10])).batch.tolist()
        [0, 10]
    """

    anew: Numbers
    batch: Numbers


class Totals(NamedTuple):
    """Sums over the first steps of a run."""

    anew: int
    batch: int
    starts: int
    """Steps at which an estimate starts anew."""


@dataclass(frozen=True)
class Batches:
    """t ↦ sample sizes for an array of steps t = 1, 2, …

    Args:
        formula: how it prints.
        function: (t, T) ↦ (anew, batch) as in `Sizes`, rounded up to whole numbers here.
        uses_horizon: whether the sizes depend on T, so that a run cannot be prolonged.

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import Batches
        >>> growing = Batches("t/2", lambda t, T: (0, t / 2))
        >>> growing(np.array([1, 2, 3]), 10).batch.tolist()
        [1, 1, 2]
    """

    formula: str
    function: Callable[[Numbers, int], tuple[npt.ArrayLike, npt.ArrayLike]]
    uses_horizon: bool = False

    def __call__(self, t: Numbers, horizon: int) -> Sizes:
        """The sizes at steps `t` of a run of `horizon` steps."""
        sizes = self.function(np.asarray(t, np.float64), horizon)
        # 1e-9: a product such as 3 · (1/3) must not be rounded up to the next number. What lies beyond MOST_SAMPLES
        # stays beyond it, and is refused when the run is built.
        whole = (np.ceil(np.minimum(np.asarray(size, np.float64), MOST_SAMPLES + 1) - 1e-9) for size in sizes)
        return Sizes(*(np.broadcast_to(size, np.shape(t)).astype(np.int64) for size in whole))

    def totals(self, steps: int, horizon: int) -> Totals:
        """The sums over steps 1, …, `steps`."""
        shown = horizon if self.uses_horizon else 0  # one entry of the cache serves every T where it does not matter
        whole = [slice_totals(self, i * SLICE + 1, SLICE, shown) for i in range(steps // SLICE)]
        rest = slice_totals(self, steps // SLICE * SLICE + 1, steps % SLICE, shown)
        return Totals(*(sum(column) for column in zip(*whole, rest, strict=True)))


@functools.lru_cache(4096)
def slice_totals(batches: Batches, first: int, count: int, horizon: int) -> Totals:
    """The sums over `count` steps from `first` on."""
    sizes = batches(np.arange(first, first + count), horizon)
    return Totals(int(sizes.anew.sum()), int(sizes.batch.sum()), int(np.count_nonzero(sizes.anew)))


def as_sizes(value: SizesLike, name: str) -> UserSizes:
    """A whole number, or a function of t or of (t, T), as (formula, function of (t, T), whether it uses T).

    Args:
        value: what a user gave for a batch.
        name: the argument, for error messages.

    Returns:
        How it prints, the function, and whether its values depend on T.

    Raises:
        TypeError: where the value is no number and no function.
        ValueError: where it is no whole number from 1 on.

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import as_sizes
        >>> formula, sizes, uses_horizon = as_sizes(8, "batch")
        >>> formula, sizes(np.array([1, 2]), 100).tolist(), uses_horizon
        ('8', [8, 8], False)
    """
    if callable(value):
        return from_function(value, name)
    if real(value) is None:
        raise TypeError(f"{name} must be a whole number of at least 1, or a function of t or of (t, T), got {value!r}")
    size = whole_number(value, name, 1, MOST_SAMPLES)
    return f"{size}", lambda t, T: np.full(np.shape(t), size), False


def from_function(function: OfSteps, name: str) -> UserSizes:
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
    """Runs of steps between two new starts.

    Args:
        length: e ↦ the number of steps of epoch e = 1, 2, …

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import Epochs
        >>> Epochs(lambda e: 2**e)(np.array([1, 2, 3, 7])).k.tolist()
        [1, 2, 1, 1]
    """

    length: Callable[[int], int]

    def __call__(self, t: Numbers) -> Place:
        """The epoch of each step t ≥ 1."""
        starts, lengths = [0], []  # steps before the epoch
        while starts[-1] < (t.max() if t.size else 0):
            lengths.append(self.length(len(starts)))
            starts.append(starts[-1] + lengths[-1])
        epoch = np.searchsorted(starts, t)
        return Place(epoch, t - np.asarray(starts)[epoch - 1], np.asarray(lengths)[epoch - 1])
