"""More entries for a model that is there: a round of corrected factors and atoms from where it stands."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from onesfw.lowrank.bias_ridge import Ridge
from onesfw.lowrank.corrective import NO_LIMIT, Limits, Point, Stage, fit
from onesfw.lowrank.low_rank import LowRank
from onesfw.lowrank.observed import Triplets, observe
from onesfw.trees import HostArray


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
    point, why = fit(
        data,
        model.radius,
        Limits(gap_tol, NO_LIMIT if model.max_rank is None else model.max_rank, rounds),
        key,
        stage=Stage(point),
    )
    low, high = float(data.y.min()), float(data.y.max())
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
