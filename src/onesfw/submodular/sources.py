"""Where d_t comes from when `select` runs: d_t = (1 − ρ)(d_{t−1} + Δ̃_t) + ρ g_t, from the step's own samples."""

from __future__ import annotations

import abc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.engine.programs import Program
from onesfw.estimators import Hessian
from onesfw.submodular.base import Function
from onesfw.submodular.coverage import Coverage
from onesfw.submodular.extension import MultilinearExtension
from onesfw.submodular.influence import Influence, Sets
from onesfw.submodular.logdet import LogDet, all_marginals
from onesfw.submodular.row_functions import RowFunction, Stepper
from onesfw.trees import Array

BLOCK = 1 << 16  # rows whose numbers are drawn at once
BLOCK_ENTRIES = 2_000_000  # nodes of reverse-reachable sets kept at once


class Source(abc.ABC):
    """A stream of samples of f, `batch` of them a step."""

    closed: bool
    """Whether each sample's extension has a closed form."""

    @abc.abstractmethod
    def update(self, d: np.ndarray, x: np.ndarray, previous: np.ndarray, rho: float, t: int) -> None:
        """d_{t−1} becomes d_t, in place."""


class RowSource(Source):
    """Rows drawn uniformly, with replacement."""

    closed = True

    def __init__(self, function: RowFunction, batch: int, seed: int) -> None:
        self.rows, self.batch, self.advance = function.omegas, batch, function.stepper()
        self.rng = np.random.default_rng(seed)
        self.block, self.used = np.zeros(0, np.int64), 0

    def update(self, d: np.ndarray, x: np.ndarray, previous: np.ndarray, rho: float, t: int) -> None:
        if self.used + self.batch > self.block.size:
            self.block = self.rng.integers(0, self.rows, max(BLOCK, self.batch))
            self.used = 0
        which = self.block[self.used : self.used + self.batch]
        self.used += self.batch
        self.advance(d, x, previous, rho, which)


class InfluenceSource(Source):
    """Reverse-reachable sets, drawn in blocks and thrown away after use."""

    closed = True

    def __init__(self, function: Influence, batch: int, seed: int) -> None:
        self.n, self.batch, self.sets = function.n, batch, Sets(function, seed)
        self.drawn, self.used, self.held = 0, 0, 0
        self.advance: Stepper | None = None

    def update(self, d: np.ndarray, x: np.ndarray, previous: np.ndarray, rho: float, t: int) -> None:
        if self.advance is None or self.used + self.batch > self.held:
            self.drawn += self.used
            # a block may end early; the batch must fit all the same
            room = max(BLOCK_ENTRIES, self.batch * self.n)
            indptr, nodes = self.sets.draw(self.drawn, max(BLOCK, self.batch), room)
            self.used, self.held = 0, indptr.size - 1
            weights = np.full(self.held, self.n / self.held)
            self.advance = Coverage.from_rows(self.n, indptr, nodes, weights).stepper()
        which = np.arange(self.used, self.used + self.batch)
        self.used += self.batch
        self.advance(d, x, previous, rho, which)


class HostSource(Source):
    """The same estimator as `TracedSource`'s in NumPy, for a log-determinant: |S| decides the cost, not n."""

    closed = False

    def __init__(self, function: LogDet, batch: int, seed: int) -> None:
        self.kernel, self.batch, self.rng = function.kernel, batch, np.random.default_rng(seed)

    def update(self, d: np.ndarray, x: np.ndarray, previous: np.ndarray, rho: float, t: int) -> None:
        u = x - previous
        sizes = np.cumsum(np.abs(u))
        gradient, change = np.zeros_like(d), np.zeros_like(d)
        for _ in range(self.batch):
            place, choice = self.rng.random(2)
            s = self.rng.random(d.size) < place * x + (1 - place) * previous
            here = all_marginals(self.kernel, s)
            gradient += here / self.batch
            if sizes[-1] > 0 and rho < 1:
                j = min(int(np.searchsorted(sizes, choice * sizes[-1], side="right")), d.size - 1)
                inside = s[j]
                s[j] = not inside
                there = all_marginals(self.kernel, s)
                change += np.sign(u[j]) * sizes[-1] * (here - there if inside else there - here) / self.batch
        d[:] = (1 - rho) * (d + change) + rho * gradient


class TracedSource(Source):
    """The estimator of `MultilinearExtension` with the sampled coordinate, compiled: any function."""

    closed = False

    def __init__(self, function: Function, batch: int, key: Array) -> None:
        objective = MultilinearExtension(function, sampled=True)
        self.key = key

        def increment(key: Array, number: Array, x: Array, previous: Array) -> tuple[Array, Array]:
            samples, places = jax.random.split(key)
            a = jax.random.uniform(jax.random.fold_in(places, number), (), x.dtype)
            made = Hessian()(objective, objective.draw(samples, number), a, x, previous, jnp.zeros((), x.dtype))
            return made.gradient, made.change

        def update(key: Array, d: Array, x: Array, previous: Array, rho: Array, t: Array) -> Array:
            numbers = t * batch + jnp.arange(batch, dtype=jnp.int32)
            gradient, change = jax.vmap(lambda number: increment(key, number, x, previous))(numbers)
            return (1 - rho) * (d + change.mean(0)) + rho * gradient.mean(0)

        point = jax.ShapeDtypeStruct((function.n,), jnp.float32)
        scalar = jax.ShapeDtypeStruct((), jnp.float32)
        self.program = Program(update, key, point, point, point, scalar, jax.ShapeDtypeStruct((), jnp.int32))

    def update(self, d: np.ndarray, x: np.ndarray, previous: np.ndarray, rho: float, t: int) -> None:
        points = (np.float32(d), np.float32(x), np.float32(previous))
        d[:] = np.asarray(self.program(self.key, *points, np.float32(rho), np.int32(t)))


def source_of(function: Function, batch: int, key: Any, seed: int) -> Source:
    """The stream that suits a function."""
    if isinstance(function, RowFunction):
        return RowSource(function, batch, seed)
    if isinstance(function, Influence):
        return InfluenceSource(function, batch, seed)
    if isinstance(function, LogDet):
        return HostSource(function, batch, seed)
    return TracedSource(function, batch, key)
