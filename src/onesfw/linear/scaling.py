"""Columns whose scales differ: a norm of their coefficients compares unlike things, and the largest lead the steps.

Columns are divided by their scales, never centred: zeros stay zeros.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

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
    width, values = data.n_features, data.values.astype(np.float64)
    places = data.indices.view(np.int32)
    unit = units(places, values, width)
    values /= unit[places]
    shift = np.zeros(width)  # near the mean: sums of squares of large numbers lose small spreads
    shift[places] = values
    count = np.bincount(places, minlength=width)
    filled = count >= MOSTLY * data.size
    size = np.sqrt(np.bincount(places, values**2, minlength=width) / np.maximum(count, 1))
    away = values - shift[places]
    empty = data.size - count
    first = (np.bincount(places, away, minlength=width) - empty * shift) / max(1, data.size)
    second = (np.bincount(places, away**2, minlength=width) + empty * shift**2) / max(1, data.size)
    spread = np.sqrt(np.maximum(second - first**2, 0.0))
    scales = np.where(filled & (spread > LEAST_SPREAD * size), spread, size)
    return np.where(scales > 0, scales, 1.0) * unit


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
    if scale is False or not data.size:
        return None
    scales = column_scales(data)
    return scales if scale != "auto" or unevenness(scales, data) > UNEVEN else None


def divided(data: Examples, scales: HostArray | None) -> Examples:
    """The rows with each column divided by its scale."""
    if scales is None:
        return data
    values = (data.values / scales[data.indices.view(np.int32)]).astype(data.values.dtype)
    return replace(data, values=read_only(values))
