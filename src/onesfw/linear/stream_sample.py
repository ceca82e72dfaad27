"""Some rows of a stream, by which its model is judged when it is over."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import scipy.sparse

from onesfw.data.batch import joined
from onesfw.linear.defaults import largest_margins
from onesfw.linear.examples import Examples, examples, read_only
from onesfw.linear.learner import Settings
from onesfw.trees import HostArray, Rows

FEW = 1_000  # rows that wait for others: to look through the sample for each row would cost more than to learn it


class Sample:
    """Some rows of a stream by which its model is judged: those that lie farthest out, and a random part of the rest.

    A mean over the rest stands for all of them; rows far out are rare, and one of them can outweigh a million others.
    The sample depends on the stream, not on how it was cut.

    Args:
        settings: of the models.
        key: the seed of the draw.
        tensors: the state of a sample that goes on.
    """

    FARTHEST, DRAWN = 1_000, 4_000

    def __init__(self, settings: Settings, key: int, tensors: dict[str, HostArray] | None = None) -> None:
        self.settings, self.key, self.drawn = settings, key, 0
        empty = scipy.sparse.csr_array((0, settings.n_features))
        self.rows = examples(empty, np.zeros(0), None, settings.n_features, settings.loss_function)
        self.sizes, self.draws = np.zeros(0), np.zeros(0)
        self.waiting: list[Examples] = []
        if tensors is not None:
            found = {name: tensors[f"sample.{name}"] for name in ("indptr", "indices", "values", "targets", "weights")}
            matrix = scipy.sparse.csr_array(
                (found["values"], found["indices"].view(np.int32), found["indptr"]),
                (len(found["targets"]), settings.n_features),
            )
            self.rows = self.as_examples(matrix, found["targets"], found["weights"])
            self.sizes, self.draws = tensors["sample.sizes"], tensors["sample.draws"]
            self.drawn = int(tensors["sample.seen"][0])
            if not len(self.sizes) == len(self.draws) == self.rows.size <= self.drawn:
                raise ValueError("a sample has a size and a draw for each row")

    def as_examples(self, matrix: Rows, targets: HostArray, weights: HostArray) -> Examples:
        """Rows in the types of the kernels."""
        settings = self.settings
        return examples(matrix, targets, weights, settings.n_features, settings.loss_function, settings.labels)

    @property
    def seen(self) -> int:
        """Rows of the stream so far."""
        return self.drawn + sum(data.size for data in self.waiting)

    def add(self, data: Examples) -> None:
        """Take in the next rows of the stream: a few wait for others, as copies, since their owner may change them."""
        if data.size < FEW:
            self.waiting.append(deepcopy(data))
            if self.seen - self.drawn < FEW:
                return
            data, self.waiting = self.gathered(self.waiting), []
        else:
            self.take_waiting()
        self.take(data)

    def take_waiting(self) -> None:
        """Take in the rows that wait."""
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            self.take(self.gathered(waiting))

    def gathered(self, pieces: list[Examples]) -> Examples:
        """Pieces as one."""
        matrix = joined([piece.matrix for piece in pieces], self.settings.n_features)
        targets = np.concatenate([piece.targets for piece in pieces])
        weights = np.concatenate([piece.weights for piece in pieces])
        return self.as_examples(matrix, targets, weights)

    def take(self, data: Examples) -> None:
        """Keep those of the rows that belong to the sample."""
        sizes = largest_margins(data, self.settings.set)
        draws = np.random.Generator(np.random.PCG64(self.key).advance(self.drawn)).random(data.size)  # one number a row
        self.drawn += data.size
        new = np.arange(data.size)
        if len(self.sizes) == self.FARTHEST + self.DRAWN:
            far = self.farthest(self.sizes)
            new = np.flatnonzero((sizes > self.sizes[far].min()) | (draws < np.delete(self.draws, far).max()))
        if not len(new):
            return
        sizes, draws = np.append(self.sizes, sizes[new]), np.append(self.draws, draws[new])
        rest = np.delete(np.arange(len(sizes)), self.farthest(sizes))
        out = rest[np.argsort(draws[rest], kind="stable")[self.DRAWN :]]
        kept = np.delete(np.arange(len(sizes)), out)
        parts = [self.rows.matrix, data.matrix[new]] if self.rows.size else [data.matrix[new]]
        matrix = joined(parts, data.n_features)[kept]
        targets = np.append(self.rows.targets, data.targets[new])[kept]
        weights = np.append(self.rows.weights, data.weights[new])[kept]
        self.rows, self.sizes, self.draws = self.as_examples(matrix, targets, weights), sizes[kept], draws[kept]

    def farthest(self, sizes: HostArray) -> HostArray:
        """The places of the rows that can have the largest margins."""
        return np.argsort(-sizes, kind="stable")[: self.FARTHEST]

    def weighted(self) -> Examples:
        """The rows with weights by which their mean stands for that of the stream."""
        self.take_waiting()
        weights = self.rows.weights.copy()
        far = self.farthest(self.sizes)
        rest = np.delete(np.arange(self.rows.size), far)
        weights[rest] *= (self.seen - len(far)) / max(1, len(rest))
        return replace(self.rows, weights=read_only(weights))

    def tensors(self) -> dict[str, HostArray]:
        """The whole state."""
        self.take_waiting()
        rows = {name: getattr(self.rows, name) for name in ("indptr", "indices", "values", "targets", "weights")}
        own = {"sizes": self.sizes, "draws": self.draws, "seen": np.array([self.seen])}
        return {f"sample.{name}": np.array(array) for name, array in (rows | own).items()}
