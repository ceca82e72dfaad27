"""d_t = mean of the table + mean over I_t of ∇f_i(x_t) − table_i: a gradient of every row, refreshed at random."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.capabilities import OBLIVIOUS, ROWS, ObjectiveLike
from onesfw.estimators.base import Estimator, OracleCounts, StepInputs
from onesfw.trees import Array, Tree


class State(NamedTuple):
    """The estimate, the gradients of all rows at the points where they were last seen, and their mean."""

    d: Tree
    table: Tree
    mean: Tree


class Saga(Estimator):
    """The estimator of SAGAFW (Reddi, Sra, Póczos, Smola 2016): n gradients in memory, two sets of rows a step.

    I_t gives the estimate, J_t, independent of it, the rows whose entries are refreshed at x_t. The table starts with
    all gradients at x_1.

    Args:
        n: the number of rows.
        batch: the size of I_t, and of J_t.

    Example:
        >>> from onesfw.estimators import Saga
        >>> Saga(n=100, batch=5).counts(None, steps=3)
        OracleCounts(samples=120, gradients=120, hvps=0)
    """

    n: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    @property
    def needs(self) -> Set[str]:
        return {OBLIVIOUS, ROWS}

    def init(self, x: Tree) -> State:
        zero = trees.zeros_like(x)
        return State(zero, jax.tree.map(lambda leaf: jnp.zeros((self.n, *leaf.shape), leaf.dtype), zero), zero)

    def draws(self, objective: ObjectiveLike, key: Array, t: Array) -> tuple[Array, Array]:
        samples = jax.random.split(key)[0]
        numbers = (t - 1) * (2 * self.batch) + jnp.arange(2 * self.batch, dtype=t.dtype)
        rows = jax.vmap(lambda number: objective.draw(samples, number))(numbers)
        return rows[: self.batch], rows[self.batch :]

    def update(self, objective: ObjectiveLike, state: State, inputs: StepInputs) -> State:
        chosen, refreshed = inputs.draws
        x, zero = inputs.x, jnp.zeros((), inputs.rho.dtype)

        def gradient(row: Array) -> Tree:
            return objective.at(row, x, zero).gradient(x)

        def refresh(row: Array, new: Tree, held: tuple[Tree, Tree]) -> tuple[Tree, Tree]:
            table, mean = held  # one row after the other: a row drawn twice changes the mean once
            mean = jax.tree.map(lambda m, g, entries: m + (g - entries[row]) / self.n, mean, new, table)
            return jax.tree.map(lambda entries, g: entries.at[row].set(g), table, new), mean

        def fill(row: Array, held: tuple[Tree, Tree]) -> tuple[Tree, Tree]:
            return refresh(row, gradient(row), held)

        held = lax.fori_loop(0, jnp.where(inputs.t == 1, self.n, 0), fill, (state.table, state.mean))
        gradients = jax.vmap(gradient)(jnp.concatenate([chosen, refreshed]))
        d = jax.tree.map(
            lambda mean, g, entries: mean + jnp.mean(g[: self.batch] - entries[chosen], 0), held[1], gradients, held[0]
        )

        def replace(j: Array, held: tuple[Tree, Tree]) -> tuple[Tree, Tree]:
            return refresh(refreshed[j], jax.tree.map(lambda g: g[self.batch + j], gradients), held)

        return State(d, *lax.fori_loop(0, self.batch, replace, held))

    def counts(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> OracleCounts:
        """n gradients for the table at the first step, whose I and J add nothing; 2 · batch at every later one."""
        total = self.n * min(steps, 1) + 2 * self.batch * max(steps - 1, 0)
        return OracleCounts(total, total, 0)

    def drawn(self, objective: ObjectiveLike, steps: int, horizon: int | None = None) -> int:
        return 2 * self.batch * steps
