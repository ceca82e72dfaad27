"""A measured curve, its slopes on log-log axes with 95 % intervals over the seeds, and how they are printed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onesfw.trees import Counts, Floats

BOOTSTRAPS = 1000
LEVEL = 0.95
DECADES = 2.0  # a slope is taken over the last factor of a hundred of the counts
LEAST_POINTS = 3
ROUNDING = 1e-24  # errors below this are rounding: they have no slope
MISSING = "–"
SMALL = 0.01  # smaller numbers are shown with a power of ten
COUNTS = ("samples", "gradients", "hvps", "lmo_calls")
LABELS = {
    "suboptimality": "F(x) − F*",
    "gap": "Frank-Wolfe gap",
    "gradient_error": "‖d_T − ∇F(x_T)‖²",
    "regret": "oracle's regret",
    "value": "F(x)",
}
LOGARITHMIC = ("suboptimality", "gap", "gradient_error", "regret")


@dataclass(frozen=True)
class Curve:
    """What was measured of one method; the first of `measures` is the one that its theorem bounds.

    Args:
        name: of the method.
        summary: its name, setting and schedules in one line.
        citation: where it comes from.
        steps: of each point.
        counts: oracle calls at each point: "samples", "gradients", "hvps" and "lmo_calls".
        seconds: seeds × points, compilation and evaluation left out.
        measures: seeds × points of each measure; NaN where a method has no such thing.
        separate: whether each point is a run of its own, because a schedule depends on T.

    Example:
        >>> import numpy as np
        >>> from onesfw.experiments import Curve
        >>> steps, errors = np.array([10, 100]), np.array([[0.5, 0.1], [0.7, 0.3]])
        >>> counts = {"samples": steps}
        >>> curve = Curve("one_sfw", "", "", steps, counts, np.zeros((2, 2)), {"suboptimality": errors})
        >>> curve.primary, curve.final.tolist()
        ('suboptimality', [0.1, 0.3])
    """

    name: str
    summary: str
    citation: str
    steps: Counts
    counts: dict[str, Counts]
    seconds: Floats
    measures: dict[str, Floats]
    separate: bool = False

    @property
    def primary(self) -> str:
        """The name of the first measure."""
        return next(iter(self.measures))

    @property
    def final(self) -> Floats:
        """The first measure at the last point, one for each seed."""
        return self.measures[self.primary][:, -1]


class Slope(NamedTuple):
    """The slope of log E[error] against log(count), and the ends of its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float


NO_SLOPE = Slope(np.nan, np.nan, np.nan)


def slope(counts: Counts | Floats, errors: Floats) -> Slope:
    """By least squares through the means over the seeds; `errors` has a row for each seed, a column for each count."""
    counts, errors = np.asarray(counts, np.float64), np.asarray(errors, np.float64)
    use = (counts >= counts.max() / 10**DECADES * (1 - 1e-9)) & (counts > 0)
    use &= np.isfinite(errors).all(0) & (errors.mean(0) > ROUNDING)
    if np.unique(counts[use]).size < LEAST_POINTS:
        return NO_SLOPE
    x = np.log(counts[use])
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    kept = errors[:, use]
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.log(resampled_means(kept)) @ weights
    ends = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if len(kept) > 1 else (np.nan, np.nan)
    return Slope(float(np.log(kept.mean(0)) @ weights), float(ends[0]), float(ends[1]))


def ratio(over: Floats, under: Floats) -> Slope:
    """E[over]/E[under] with its 95 % interval, from independent resamples of the two."""
    over, under = np.asarray(over, np.float64)[:, None], np.asarray(under, np.float64)[:, None]
    value = float(over.mean() / under.mean())
    if min(len(over), len(under)) < 2:
        return Slope(value, np.nan, np.nan)
    drawn = resampled_means(over)[:, 0] / resampled_means(under, seed=1)[:, 0]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Slope(value, float(low), float(high))


def resampled_means(errors: Floats, seed: int = 0) -> Floats:
    """Means over resampled rows: one row for each resample."""
    picks = np.random.default_rng(seed).integers(0, len(errors), (BOOTSTRAPS, len(errors)))
    means: Floats = errors[picks].mean(1)
    return means


def standard_error(errors: Floats) -> float:
    """Of the mean over the seeds; NaN for a single seed."""
    return float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else float("nan")


def rise(curve: Curve, against: str, measure: str | None = None) -> Slope:
    """The slope of a curve's error against one of its counts; a value has none."""
    name = measure or curve.primary
    return NO_SLOPE if name == "value" else slope(curve.counts[against], curve.measures[name])


def final_of(curve: Curve | None) -> float:
    """The mean final error, NaN without a curve."""
    return float("nan") if curve is None else float(np.mean(curve.final))


def mean_text(values: Floats) -> str:
    """The mean over seeds ± its standard error, to the error's first digit."""
    mean, error = float(np.mean(values)), standard_error(values)
    if not math.isfinite(mean):
        return MISSING
    if not math.isfinite(error) or error <= abs(mean) * 1e-9:
        return number_text(mean, 3)
    place = -math.floor(math.log10(error))  # of the error's first digit
    if abs(mean) >= SMALL or mean == 0:
        return f"{mean:.{max(place, 0)}f} ± {error:.{max(place, 0)}f}"
    digits = math.floor(math.log10(abs(mean))) + place + 1
    return f"{number_text(mean, min(max(digits, 2), 7))} ± {number_text(error, 1)}"


def number_text(number: float, digits: int) -> str:
    """So many significant digits; a power of ten below 0.01, with a short exponent."""
    if number != 0 and not SMALL <= abs(number) < 1e6:
        mantissa, _, exponent = f"{number:.{digits - 1}e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{number:.{digits}g}"


def slope_text(slope: Slope) -> str:
    """A slope and its interval."""
    if not math.isfinite(slope.value):
        return MISSING
    interval = "" if not math.isfinite(slope.low) else f" [{signed(slope.low)}, {signed(slope.high)}]"
    return signed(slope.value) + interval


def ratio_text(found: Slope, digits: int = 2) -> str:
    """A ratio and its interval."""
    ends = [number_text(end, digits) for end in (found.low, found.high) if math.isfinite(end)]
    return number_text(found.value, digits) + (f" [{', '.join(ends)}]" if ends else "")


def signed(number: float) -> str:
    """Two decimals with a proper minus sign."""
    return f"{number:.2f}".replace("-", "−")


def count_text(count: float) -> str:
    """A count with commas."""
    return f"{int(count):,}"
