"""Full columns that lie far from 0: from the origin, steps first have to find the intercept that makes up for it.

With a free intercept nothing is changed by taking the mean off a column, ⟨a − m, x⟩ + b = ⟨a, x⟩ + (b − ⟨m, x⟩), but
the way to the optimum is shorter. Columns with zeros are left as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onesfw.linear.examples import Examples, read_only
from onesfw.linear.learner import Settings
from onesfw.linear.scaling import column_sums, units
from onesfw.trees import HostArray

FAR = 1.0  # standard deviations from 0
LEAST_ROWS = 2


def offsets(data: Examples, settings: Settings) -> HostArray | None:
    """The mean of each column that has an entry in every row and lies far from 0, and 0 for the others.

    None where there is no such column, or where the intercept is not free to make up for it.
    """
    free = settings.intercept is not None and np.isinf(np.asarray(settings.intervals)).all()
    if not free or data.size < LEAST_ROWS:
        return None
    places = data.indices.view(np.int32)
    unit = units(places, data.values, data.n_features)
    count, _, last, first, second = column_sums(places, data.values, unit)
    away = first / data.size
    spread = np.sqrt(np.maximum(second / data.size - away**2, 0.0))
    means = last + away
    found = np.where((count == data.size) & (np.abs(means) > FAR * spread), means * unit, 0.0)
    return found if found.any() else None


def shifted(data: Examples, means: HostArray | None) -> Examples:
    """The rows with the means taken off; a row without an entry in such a column gets one."""
    if means is None or not data.size:
        return data
    columns = np.flatnonzero(means)
    if np.count_nonzero(means[data.indices.view(np.int32)]) < data.size * len(columns):
        data = with_entries(data, columns)
    values = data.values.astype(np.float64) - means[data.indices.view(np.int32)]
    return replace(data, values=read_only(values.astype(data.values.dtype)))


def with_entries(data: Examples, columns: HostArray) -> Examples:
    """The rows with an entry, 0 if need be, in each of some columns."""
    number = np.full(data.n_features, -1)
    number[columns] = np.arange(len(columns))
    rows, places = np.repeat(np.arange(data.size), np.diff(data.indptr)), data.indices.view(np.int32)
    known = number[places] >= 0
    there = np.zeros((data.size, len(columns)), bool)
    there[rows[known], number[places[known]]] = True
    new_rows, new_places = np.nonzero(~there)
    rows, places = np.append(rows, new_rows), np.append(places, columns[new_places]).astype(np.int32)
    values = np.append(data.values, np.zeros(len(new_rows), data.values.dtype))
    order = np.lexsort((places, rows))
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=data.size))).astype(np.int64)
    return replace(
        data, indptr=read_only(indptr), indices=read_only(places[order].view(np.uint32)),
        values=read_only(values[order]),
    )  # fmt: skip
