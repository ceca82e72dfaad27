"""1-SFW on a stream of entries: one atom a batch, whose entries are forgotten; their slopes stay in the estimate d."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from onesfw.linear.losses import LOSSES
from onesfw.lowrank.completion import taller
from onesfw.lowrank.corrective import DROP, NO_LIMIT
from onesfw.lowrank.factors import balance
from onesfw.lowrank.low_rank import LowRank
from onesfw.lowrank.observed import Triplets, norm_weights
from onesfw.lowrank.singular import Scaled, leading
from onesfw.trees import HostArray

ACCURACY = 1e-2  # of a batch's atom, relative


@dataclass
class EntryStream:
    """A model that learns batch by batch, and what 1-SFW keeps beside it, however many entries came before.

    d ← (1 − ρ)(d + ∇̃(x_t) − ∇̃(x_{t−1})) + ρ ∇̃(x_t) and x ← (1 − η) x + η v: ∇̃ is from the batch alone, v the vertex
    that d chooses, and ρ = η the entries of the batch over all entries so far, which is 1/t for batches of one size.

    Args:
        model: x_t.
        before: x_{t−1}.
        d: the estimate of the gradient, on the latest different entries.
        row_counts: entries of each row so far.
        col_counts: entries of each column so far.
    """

    model: LowRank
    before: LowRank
    d: Triplets
    row_counts: HostArray
    col_counts: HostArray

    @classmethod
    def after(cls, model: LowRank, given: Triplets) -> EntryStream:
        """Goes on from a model that was fitted to these entries: d is its gradient."""
        slopes = Triplets(given.rows, given.cols, slopes_of(model, given) / len(given), given.shape)
        return cls(model, model, slopes, *(np.zeros(size) for size in given.shape)).counted(given)

    def counted(self, given: Triplets) -> EntryStream:
        """With the entries of a batch counted, whose rows and columns may be new."""
        counts = zip((self.row_counts, self.col_counts), (given.rows, given.cols), given.shape, strict=True)
        rows, cols = (taller(count, size) + np.bincount(lines, minlength=size) for count, lines, size in counts)
        return replace(
            self, model=enlarged(self.model, given.shape), before=enlarged(self.before, given.shape),
            row_counts=rows, col_counts=cols,
        )  # fmt: skip

    def step(self, given: Triplets, memory: int, key: int) -> EntryStream:
        """After one step on a batch; d keeps at most so many entries. The value is the batch's loss before the step."""
        begun = time.perf_counter()
        stream = self.counted(given)
        model, seen = stream.model, stream.row_counts.sum()
        share = len(given) / seen
        loss = LOSSES[model.loss].value(
            model.margins_of_codes(given.rows, given.cols), given.values.astype(np.float64), model.delta
        )
        now, old = slopes_of(model, given), slopes_of(stream.before, given)
        fresh = Triplets(given.rows, given.cols, ((1 - share) * (now - old) + share * now) / len(given), given.shape)
        d = latest_sums(replace(self.d, values=(1 - share) * self.d.values, shape=given.shape), fresh, memory)
        P, Q, s = stream.towards_vertex(d, share, key)
        bounds = (min(float(given.values.min()), model.bounds[0]), max(float(given.values.max()), model.bounds[1]))
        bu, bi = stream.moved_biases(given, now)
        moved = replace(
            model, P=P, Q=Q, s=s, row_bias=bu, col_bias=bi, value=float(loss.mean()), gap=None, status="loop",
            bounds=bounds, entries=int(seen), steps=model.steps + 1,
            seconds=model.seconds + time.perf_counter() - begun, row_labels=None, col_labels=None, test=None,
        )  # fmt: skip
        return replace(stream, model=moved, before=model, d=d)

    def towards_vertex(self, d: Triplets, share: float, key: int) -> tuple[HostArray, HostArray, HostArray]:
        """(1 − η) x + η v, recompressed: singular values below a thousandth of the largest are left out."""
        model = self.model
        p, q = norm_weights(self.row_counts, self.col_counts, model.weighted, model.shape)
        order = np.lexsort((d.cols, d.rows))
        ptr = np.concatenate([[0], np.cumsum(np.bincount(d.rows, minlength=d.shape[0]))])
        operator = Scaled(ptr, d.cols[order], d.values[order], 1 / np.sqrt(p), 1 / np.sqrt(q))
        atom = leading(operator, 1, np.random.default_rng([key, model.steps]), accuracy=ACCURACY)
        size = np.sqrt(share * model.radius)
        left, right = -size * atom.left / np.sqrt(p)[:, None], size * atom.right / np.sqrt(q)[:, None]
        keep = np.sqrt(1 - share)
        P, Q = np.hstack([model.P * keep, left]), np.hstack([model.Q * keep, right])
        most = NO_LIMIT if model.max_rank is None else model.max_rank
        kind = model.P.dtype
        return balance(p, q, P.astype(kind), Q.astype(kind), model.radius, DROP, most, fill=False)

    def moved_biases(self, given: Triplets, slopes: HostArray) -> tuple[HostArray, HostArray]:
        """A Newton-like step on each bias of the batch: those of many entries move little."""
        model = self.model
        if not model.ridge[0]:
            return model.row_bias, model.col_bias
        margins = model.margins_of_codes(given.rows, given.cols)
        curve = {"logistic": 0.25, "poisson": float(np.exp(margins).mean())}.get(model.loss, 1.0)
        rows = np.bincount(given.rows, slopes, given.shape[0]) / (curve * self.row_counts + model.ridge[0])
        cols = np.bincount(given.cols, slopes, given.shape[1]) / (curve * self.col_counts + model.ridge[1])
        return model.row_bias - rows, model.col_bias - cols


def slopes_of(model: LowRank, given: Triplets) -> HostArray:
    """∂ℓ/∂m of these entries."""
    margins = model.margins_of_codes(given.rows, given.cols)
    return LOSSES[model.loss].derivative(margins, given.values.astype(np.float64), model.delta)


def enlarged(model: LowRank, shape: tuple[int, int]) -> LowRank:
    """A model whose new rows and columns have factors and biases of 0."""
    (m, n), old = shape, model
    return replace(
        old, P=taller(old.P, m), Q=taller(old.Q, n), row_bias=taller(old.row_bias, m), col_bias=taller(old.col_bias, n)
    )


def latest_sums(before: Triplets, new: Triplets, memory: int) -> Triplets:
    """The sums of both on the entries of either, of which the latest are kept."""
    rows, cols = np.concatenate([new.rows, before.rows[::-1]]), np.concatenate([new.cols, before.cols[::-1]])
    values = np.concatenate([new.values, before.values[::-1]])
    places = rows.astype(np.int64) * new.shape[1] + cols
    _, first, which = np.unique(places, return_index=True, return_inverse=True)
    totals = np.bincount(which, values)
    keep = np.argsort(first)[:memory][::-1]  # the latest ones come first in `places`, and stand last in what is kept
    return Triplets(rows[first[keep]], cols[first[keep]], totals[keep], new.shape)
