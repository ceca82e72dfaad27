"""Columns whose scales differ: a norm of their coefficients compares unlike things, and the largest lead the steps.

Columns are divided by their scales, never centred: zeros stay zeros.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

from onesfw.arguments import named
from onesfw.linear.examples import Examples, read_only
from onesfw.trees import HostArray

UNEVEN = 100.0  # scales that differ by more are divided out by "auto"
MOSTLY = 0.5  # the share of entries from which a column counts as full
FEWEST_ENTRIES = 10  # of a column whose scale counts in the comparison
TINY = 1e-100  # columns of smaller numbers are squared in units of their own
LEAST_SPREAD = 1e-6  # of its size: a full column that varies less is taken for constant

Scale = bool | str


def check_scale(scale: Scale) -> None:
    """Raise where `scale` is none of True, False and "auto"."""
    if not (isinstance(scale, bool | np.bool_) or scale == "auto"):
        raise ValueError(f"{named('scale')} must be 'auto', True or False, got {scale!r}")


def column_scales(data: Examples) -> HostArray:
    """A scale for each column: the standard deviation of a full one, the root mean square of the entries of others.

    Of a sparse column the entries alone count: how rare they are is no matter of units. A column without entries, or
    one that is constant, has its size, or 1.
    """
    width, places = data.n_features, data.indices.view(np.int32)
    unit = units(places, data.values, width)
    count, squares, shift, first, second = column_sums(places, data.values, unit)
    filled = count >= MOSTLY * data.size
    size = np.sqrt(squares / np.maximum(count, 1))
    empty = data.size - count
    first = (first - empty * shift) / max(1, data.size)
    second = (second + empty * shift**2) / max(1, data.size)
    spread = np.sqrt(np.maximum(second - first**2, 0.0))
    scales = np.where(filled & (spread > LEAST_SPREAD * size), spread, size)
    return np.where(scales > 0, scales, 1.0) * unit


@njit(cache=True, nogil=True)
def column_sums(places: HostArray, values: HostArray, unit: HostArray) -> tuple[HostArray, ...]:
    """Of each column's entries v, in its unit: their number, Σ v², the last one, and Σ (v − last) and Σ (v − last)².

    The last one is near the mean: sums of squares of large numbers lose small spreads.
    """
    width = len(unit)
    count, squares, shift = np.zeros(width, np.int64), np.zeros(width), np.zeros(width)
    first, second = np.zeros(width), np.zeros(width)
    for p in range(len(places)):
        j = places[p]
        v = np.float64(values[p]) / unit[j]
        count[j] += 1
        squares[j] += v * v
        shift[j] = v
    for p in range(len(places)):
        j = places[p]
        away = np.float64(values[p]) / unit[j] - shift[j]
        first[j] += away
        second[j] += away * away
    return count, squares, shift, first, second


def units(places: HostArray, values: HostArray, width: int) -> HostArray:
    """The largest entry of each column of tiny numbers, whose squares are 0; 1 for all others."""
    if not values.size or np.abs(values).min() >= TINY:
        return np.ones(width)
    largest = np.zeros(width)
    np.maximum.at(largest, places, np.abs(values))
    return np.where((largest > 0) & (largest < TINY), largest, 1.0)


def unevenness(scales: HostArray, data: Examples) -> float:
    """The largest scale over the smallest, of the columns with enough entries to tell: rare words have few."""
    used = np.bincount(data.indices.view(np.int32), minlength=len(scales)) >= min(FEWEST_ENTRIES, 0.1 * data.size)
    return float(scales[used].max() / scales[used].min()) if used.any() else 1.0


def chosen_scales(data: Examples, scale: Scale) -> HostArray | None:
    """What to divide columns by; None where they are left as they are."""
    if not scale or not data.size:
        return None
    scales = column_scales(data)
    return scales if scale != "auto" or unevenness(scales, data) > UNEVEN else None


def divided(data: Examples, scales: HostArray | None) -> Examples:
    """The rows with each column divided by its scale."""
    if scales is None:
        return data
    values = (data.values / scales[data.indices.view(np.int32)]).astype(data.values.dtype)
    return replace(data, values=read_only(values))
