"""Rows and columns without an entry: X and the biases are 0 there, and a fit does without them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onesfw.lowrank.corrective import Point
from onesfw.lowrank.observed import Triplets
from onesfw.trees import HostArray


@dataclass(frozen=True)
class Occupied:
    """The numbers of the rows and of the columns that have entries; None where all have some."""

    rows: HostArray | None
    cols: HostArray | None
    shape: tuple[int, int]
    """Of the matrix, with those that have none."""

    @classmethod
    def of(cls, *given: Triplets) -> Occupied:
        """Those that some of the triplets, of one matrix, have entries in."""
        m, n = given[0].shape
        return cls(numbers([some.rows for some in given], m), numbers([some.cols for some in given], n), (m, n))

    def alone(self, given: Triplets) -> Triplets:
        """The same entries in the matrix of these rows and columns."""
        rows, m = among(given.rows, self.rows, self.shape[0])
        cols, n = among(given.cols, self.cols, self.shape[1])
        return Triplets(rows, cols, given.values, (m, n), self.shape)

    def back(self, point: Point) -> Point:
        """A point of that matrix as one of the whole."""
        m, n = self.shape
        return replace(
            point, P=spread(point.P, self.rows, m), Q=spread(point.Q, self.cols, n),
            bu=spread(point.bu, self.rows, m), bi=spread(point.bi, self.cols, n),
        )  # fmt: skip


def numbers(lines: list[HostArray], size: int) -> HostArray | None:
    """Which of 0, …, size − 1 occur; None where all do."""
    seen = np.zeros(size, bool)
    for some in lines:
        seen[some] = True
    return None if seen.all() else np.flatnonzero(seen)


def among(lines: HostArray, kept: HostArray | None, size: int) -> tuple[HostArray, int]:
    """The places of lines among those that are kept, and how many there are of these."""
    if kept is None:
        return lines, size
    place = np.zeros(size, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    return place[lines], len(kept)


def spread(array: HostArray, kept: HostArray | None, size: int) -> HostArray:
    """An array with zeros for the lines that were left out."""
    if kept is None:
        return array
    whole: HostArray = np.zeros((size, *array.shape[1:]), array.dtype)
    whole[kept] = array
    return whole
