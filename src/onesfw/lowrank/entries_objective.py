"""F(X) = the mean of a loss over known entries of X, for the generic loop: every method runs on it, never dense."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onesfw.arguments import choose
from onesfw.linear.convergence import warn_unconverged
from onesfw.lowrank.low_rank import OWN, LowRank
from onesfw.lowrank.observed import ENTRY_LOSSES, check_values, checked_delta, indices
from onesfw.objectives import FiniteSum
from onesfw.sets.seen_entries import SeenMatrix, SeenNuclearBall
from onesfw.trees import Array, HostArray, Tree

EntryLoss = Callable[[Array, Tree], Array]
RECOMPRESSED = 0.01  # of the norm of the entries: how far those of the factors may be off without a word


class Entries(FiniteSum):
    """F(X) = (1/N) Σ_k loss(X_{i_k j_k}, r_k), for `minimize` over `NuclearBall(radius, shape, factored=True)`.

    There are no biases here: take the mean off the values first, or use `complete`, which in memory is far faster.

    Args:
        loss: "squared", "huber", "logistic" or "poisson"; or a function loss(predictions, row) ↦ one number.
        data: (i, j, r): row numbers, column numbers and values. For a function r may be any pytree of arrays with one
            row a sample, and i, j may be matrices, N × p: `predictions` are then the p entries of a sample.
        delta: where the Huber loss turns linear.
        replacement: draw samples uniformly and independently; False for a fresh random order at every pass.
        order: fixes the order of the samples instead.

    Raises:
        TypeError, ValueError: where the entries are no numbers of rows and columns, or values that the loss cannot
            take.

    Example:
        >>> import numpy as np
        >>> import onesfw as fw
        >>> rng = np.random.default_rng(0)
        >>> truth = np.outer(rng.normal(size=30), rng.normal(size=20)) / 25
        >>> i, j = np.nonzero(rng.random(truth.shape) < 0.5)
        >>> objective = fw.lowrank.Entries("squared", (i, j, truth[i, j]))
        >>> ball = fw.sets.NuclearBall(1.0, (30, 20), factored=True)
        >>> result = fw.minimize(objective, ball, steps=100, algorithm=fw.frank_wolfe())
        >>> type(result.x).__name__, bool(result.gap < 1e-3)
        ('LowRank', True)
    """

    name: str = eqx.field(static=True)
    delta: float = eqx.field(static=True)
    pattern: tuple[HostArray, HostArray]

    def __init__(
        self,
        loss: str | EntryLoss,
        data: tuple[npt.ArrayLike, npt.ArrayLike, Tree],
        *,
        delta: float = 1.0,
        replacement: bool = True,
        order: npt.ArrayLike | None = None,
    ) -> None:
        if not isinstance(data, tuple | list) or len(data) != 3:
            raise TypeError("Entries: data must be (i, j, r): row numbers, column numbers and values")
        i, j = np.asarray(data[0]), np.asarray(data[1])
        if i.shape != j.shape or i.ndim not in (1, 2):
            raise ValueError(f"Entries: i and j must have one shape, (N,) or (N, p), got {i.shape} and {j.shape}")
        if not i.size:
            raise ValueError("Entries: data holds no entry; at least one must be known")
        self.delta = checked_delta(delta)
        self.name = OWN if callable(loss) else str(loss)
        if not callable(loss):
            choose(loss, ENTRY_LOSSES, "loss")
            if i.ndim != 1:
                raise ValueError("Entries: i and j must be vectors for a loss by its name")
            check_values(np.asarray(data[2]), loss)
        places, self.pattern = seen(indices(i.ravel(), "i"), indices(j.ravel(), "j"), i.shape)
        function = loss if callable(loss) else named_loss(loss, self.delta)
        rows = data[2] if callable(loss) else np.asarray(data[2], np.float64)

        def at_entries(x: SeenMatrix, row: tuple[Array, Tree]) -> Array:
            return function(x.entries[row[0]], row[1])

        FiniteSum.__init__(self, at_entries, (places, rows), replacement=replacement, indices=order)

    def check(self, like: Tree, samples: int) -> None:
        """As for any finite sum; and x must be seen through its entries."""
        if not isinstance(like, SeenMatrix):
            raise TypeError(
                "Entries goes with NuclearBall(radius, shape, factored=True), whose x is known by its entries"
            )
        FiniteSum.check(self, like, samples)

    def present(self, x: Tree, constraint: object) -> Tree:
        """X as a `LowRank`, found again from its sketches, with a warning where its entries are off; `value` is its."""
        if not isinstance(constraint, SeenNuclearBall):
            return x
        P, Q = constraint.factors(x)
        s = np.linalg.norm(P, axis=0) * np.linalg.norm(Q, axis=0)
        rows, cols = self.pattern
        entries = np.einsum("kc,kc->k", P[rows], Q[cols]) if len(s) else np.zeros(len(rows))
        warn_of_sketches(entries, np.asarray(x.entries, np.float64), constraint.psi.shape[1])
        with jax.enable_x64(True):
            again = SeenMatrix(jnp.asarray(entries), None, None)
            value = float(jnp.mean(jax.vmap(self.loss, (None, 0))(again, self.data)))
        values = (
            np.asarray(jax.tree.leaves(self.data[1])[0], np.float64)
            if self.name != OWN
            else np.array([-np.inf, np.inf])
        )
        m, n = constraint.shape
        return LowRank(
            P, Q, np.zeros(m), np.zeros(n), 0.0, self.name, float(constraint.bound), s, value, None, "loop",
            (float(values.min()), float(values.max())), self.delta, False, int(np.size(self.data[0])),
        )  # fmt: skip


def warn_of_sketches(found: HostArray, true: HostArray, width: int) -> None:
    """Warn where the entries of the factors are not those of x, whose rank is beyond the width of the sketches."""
    off = float(np.linalg.norm(found - true) / max(float(np.linalg.norm(true)), 1e-300))
    if off > RECOMPRESSED:
        warn_unconverged(
            f"x has a rank above {width}, and its factors miss its entries by {off:.2g} of their norm: give "
            f"NuclearBall a larger sketch=, now {width}, or a smaller radius"
        )


def seen(rows: HostArray, cols: HostArray, shape: tuple[int, ...]) -> tuple[HostArray, tuple[HostArray, HostArray]]:
    """Where each sample finds its entries, and the different entries, by rows."""
    pairs = rows.astype(np.int64) * (int(cols.max()) + 1) + cols
    _, first, places = np.unique(pairs, return_index=True, return_inverse=True)
    return places.reshape(shape).astype(np.int32), (rows[first], cols[first])


def named_loss(name: str, delta: float) -> EntryLoss:
    """ℓ(m, y) in JAX."""

    def squared(m: Array, y: Array) -> Array:
        return (m - y) ** 2 / 2

    def huber(m: Array, y: Array) -> Array:
        far = jnp.abs(m - y)
        return jnp.where(far <= delta, far**2 / 2, delta * (far - delta / 2))

    def logistic(m: Array, y: Array) -> Array:
        return jnp.logaddexp(0.0, -y * m)

    def poisson(m: Array, y: Array) -> Array:
        return jnp.exp(m) - y * m

    return {"squared": squared, "huber": huber, "logistic": logistic, "poisson": poisson}[name]
