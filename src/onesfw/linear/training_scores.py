"""What a trained model comes to on its own training rows: its scores, and how far from the best its loss can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onesfw.data.chunks import Chunk
from onesfw.data.passes import KEPT, Passes
from onesfw.data.row_groups import GroupPasses
from onesfw.linear.learner import Settings
from onesfw.linear.losses import all_derivatives, all_values, best_shift
from onesfw.linear.model import LinearModel, Training
from onesfw.linear.scores import Counting
from onesfw.trees import HostArray


def with_training_scores(
    training: Training, model: LinearModel, settings: Settings, passes: Passes | GroupPasses
) -> Training:
    """The record with training loss, gap and scores, where the rows are at hand: in memory or in the cache.

    To read a file once more would cost as much as a pass of training. The margins are kept, eight bytes a row and
    model, and no more of them than rows would be.
    """
    if not passes.at_hand or 8 * training.rows * settings.models > KEPT:
        return training
    counting = Counting(model)
    margins, targets = [], []
    for chunk in passes.chunks():
        margins.append(model.margins(chunk.rows).reshape(len(chunk), settings.models))
        targets.append(chunk.targets.copy())  # a cache takes its memory back
        counting.count(margins[-1] if settings.models > 1 else margins[-1][:, 0], chunk.targets)
    gap = gap_of(model, settings, passes, np.concatenate(margins), np.concatenate(targets))
    return replace(training, scores=counting.scores(), gap=gap)


def gap_of(
    model: LinearModel, settings: Settings, passes: Passes | GroupPasses, margins: HostArray, targets: HostArray
) -> float:  # fmt: skip
    """An upper bound on F(x, b) − F*, over x in the set and b in its interval; of several labels, the mean.

    F(x, b) − F(x, b*) + max over v of ⟨∇F(x, b*), x − v⟩, where b* is the best intercept for x: there the slope in b is
    0 or points out of the interval, so that the second part bounds F(x, b*) − F*.
    """
    loss, weights = settings.loss_function, np.full(len(targets), 1 / len(targets))
    coefs, own = np.atleast_2d(model.coef), np.atleast_1d(model.intercept)
    bounds, slopes = np.zeros(settings.models), np.empty_like(margins)
    for k in range(settings.models):
        m, y = np.ascontiguousarray(margins[:, k]), settings.targets_of(targets, k)
        if settings.intervals is not None:
            low, high = (float(end) - float(own[k]) for end in settings.intervals[k])
            moved = m + best_shift(loss.code, settings.delta, m, y, weights, low, high, 0.0)
            lost = all_values(loss.code, settings.delta, m, y) - all_values(loss.code, settings.delta, moved, y)
            bounds[k], m = max(0.0, float(lost.mean())), moved
        slopes[:, k] = weights * all_derivatives(loss.code, settings.delta, m, y)
    gradients, begin = np.zeros(coefs.shape), 0
    for chunk in passes.chunks():
        gradients += gradient_part(chunk, slopes[begin : begin + len(chunk)])
        begin += len(chunk)
    scale = 1.0 if model.scale is None else model.scale  # the constraint is on coef · scale
    for k, gradient in enumerate(gradients):
        bounds[k] += gradient @ coefs[k] - settings.radii[k] * settings.set.least(gradient / scale)
    return max(0.0, float(bounds.mean()))


def gradient_part(chunk: Chunk, slopes: HostArray) -> HostArray:
    """Σ ℓ'(m, y) a over the rows of a chunk, models × features."""
    return np.asarray(chunk.rows.T.astype(np.float64) @ slopes).T
