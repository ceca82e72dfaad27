"""Slopes on log-log axes, with 95 % intervals from a bootstrap over the seeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BOOTSTRAPS = 1000
LEVEL = 0.95
DECADES = 2.0  # a slope is taken over the last factor of a hundred of the counts
LEAST_POINTS = 3
ROUNDING = 1e-24  # errors below this are rounding: they have no slope


class Slope(NamedTuple):
    """The slope of log E[error] against log(count), and the ends of its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float


NO_SLOPE = Slope(np.nan, np.nan, np.nan)


def slope(counts: np.ndarray, errors: np.ndarray) -> Slope:
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


def ratio(over: np.ndarray, under: np.ndarray) -> Slope:
    """E[over]/E[under] with its 95 % interval, from independent resamples of the two."""
    over, under = np.asarray(over, np.float64)[:, None], np.asarray(under, np.float64)[:, None]
    value = float(over.mean() / under.mean())
    if min(len(over), len(under)) < 2:
        return Slope(value, np.nan, np.nan)
    drawn = resampled_means(over)[:, 0] / resampled_means(under, seed=1)[:, 0]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Slope(value, float(low), float(high))


def resampled_means(errors: np.ndarray, seed: int = 0) -> np.ndarray:
    """Means over resampled rows: one row for each resample."""
    picks = np.random.default_rng(seed).integers(0, len(errors), (BOOTSTRAPS, len(errors)))
    return errors[picks].mean(1)


def standard_error(errors: np.ndarray) -> float:
    """Of the mean over the seeds; NaN for a single seed."""
    return float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else float("nan")
