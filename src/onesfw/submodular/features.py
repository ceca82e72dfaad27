"""f(S) = Σ_u w_u φ(Σ_{i∈S} m_iu): diminishing returns feature by feature."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from onesfw.arguments import choose, number
from onesfw.engine.keys import Key
from onesfw.objectives.indices import uniform_index
from onesfw.submodular.base import Chosen, Function, Judge, Source, State, as_mask
from onesfw.submodular.certificates import ByMarginals
from onesfw.submodular.extension import TracedSource
from onesfw.submodular.matroids import Matroid
from onesfw.submodular.row_functions import Matrix, Sparse, check_size, feature_matrix, row_weights
from onesfw.trees import Array, HostArray, Tree

CONCAVE = ("sqrt", "log1p", "saturated")


class FeatureBased(Function):
    """f(S) = Σ_u w_u φ(Σ_{i∈S} m_iu) with m ≥ 0 and a concave φ.

    ω is a feature u, drawn uniformly; f_ω is its term times their number. There is no closed-form extension: S is
    sampled. All marginals for one u cost O(n).

    Args:
        features: n elements × features, not negative; scipy sparse matrices are made dense.
        concave: "sqrt"; "log1p", log(1 + s); or "saturated", min(s, saturation · Σ_i m_iu).
        weights: of the features, not negative; ones where left out.
        saturation: the share of a feature's total at which "saturated" stops to grow.

    Raises:
        TypeError: where features or weights hold no numbers.
        ValueError: where a number is negative, not finite or too large, or shapes do not match.

    Example:
        >>> from onesfw import submodular as sm
        >>> f = sm.FeatureBased([[4.0, 0.0], [5.0, 1.0]])
        >>> f.value([0]), f.value([0, 1])
        (2.0, 4.0)
    """

    n: int = eqx.field(static=True)
    amounts: HostArray  # features × n
    caps: HostArray
    weights: HostArray
    concave: str = eqx.field(static=True)

    def __init__(
        self, features: Matrix, concave: str = "sqrt", weights: ArrayLike | None = None, *, saturation: float = 0.2
    ) -> None:
        choose(concave, CONCAVE, "concave")
        if isinstance(features, Sparse):
            features = features.toarray()
        amounts = feature_matrix(features, "FeatureBased").T
        if np.any(amounts < 0):
            raise ValueError("FeatureBased: features must not be negative, so that f is monotone; shift or clip them")
        if not 0 < number(saturation, "saturation", 0, strict=True) <= 1:
            raise ValueError(f"FeatureBased: saturation must lie in (0, 1], got {saturation!r}")
        self.amounts = np.ascontiguousarray(amounts)
        self.n, self.concave = int(amounts.shape[1]), concave
        self.weights = row_weights(weights, amounts.shape[0], "FeatureBased", "feature")
        with np.errstate(over="ignore"):
            totals = amounts.sum(1)
        check_size(totals.max(), "FeatureBased", "features")
        self.caps = saturation * totals
        check_size(
            self.omegas * np.max(self.weights * shape(concave, totals, self.caps, np)), "FeatureBased", "weights"
        )

    @property
    def omegas(self) -> int:
        return int(self.amounts.shape[0])

    def draw(self, key: Array, number: Array) -> Tree:
        return uniform_index(key, number, self.omegas)

    def term(self, omega: Tree, like: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
        """A feature's amounts and scaled weight, and its φ."""
        amounts = jnp.asarray(self.amounts, like.dtype)[omega]
        weight = jnp.asarray(self.weights, like.dtype)[omega] * self.omegas
        cap = jnp.asarray(self.caps, like.dtype)[omega]
        return amounts, weight, lambda total: shape(self.concave, total, cap, jnp)

    def value_at(self, s: Array, omega: Tree) -> Array:
        amounts, weight, phi = self.term(omega, s)
        return weight * phi(amounts @ s)

    def marginals_at(self, s: Array, omega: Tree) -> Array:
        amounts, weight, phi = self.term(omega, s)
        without = jnp.maximum(amounts @ s - amounts * s, 0.0)
        return weight * (phi(without + amounts) - phi(without))

    def value(self, chosen: Chosen) -> float:
        """f(S)."""
        totals = self.amounts[:, as_mask(chosen, self.n)].sum(1)
        return float(self.weights @ shape(self.concave, totals, self.caps, np))

    def marginals(self, chosen: Chosen) -> HostArray:
        """g_i(S) = f(S + i) − f(S − i) for all i: O(n · features)."""
        mask = as_mask(chosen, self.n)
        totals = self.amounts[:, mask].sum(1)
        without = np.maximum(totals[:, None] - self.amounts * mask, 0.0)
        caps = self.caps[:, None]
        rise = shape(self.concave, without + self.amounts, caps, np) - shape(self.concave, without, caps, np)
        return self.weights @ rise

    def state(self) -> State:
        """The empty set; a gain costs one pass over the features."""
        return Totals(self)

    def source(self, batch: int, key: Key) -> Source:
        """Features drawn uniformly, and sets drawn from x."""
        return TracedSource(self, batch, key)

    def judge(self, matroid: Matroid, seed: int, other: int) -> Judge:
        """Values are exact, bounds by marginals."""
        return ByMarginals(self, matroid, seed)


class Totals(State):
    """Σ_{i∈S} m_iu for each feature."""

    def __init__(self, function: FeatureBased) -> None:
        self.function = function
        self.totals = np.zeros(function.omegas)
        self.value, self.chosen = 0.0, []

    def gains(self, candidates: HostArray) -> HostArray:
        f = self.function
        grown = self.totals[:, None] + f.amounts[:, candidates]
        before = shape(f.concave, self.totals, f.caps, np)
        return f.weights @ (shape(f.concave, grown, f.caps[:, None], np) - before[:, None])

    def add(self, i: int) -> None:
        self.value += float(self.gains(np.array([i]))[0])
        self.totals = self.totals + self.function.amounts[:, i]
        self.chosen.append(i)


def shape(concave: str, total: Tree, cap: Tree, module: ModuleType) -> Tree:
    """φ(total), in NumPy or jax.numpy."""
    if concave == "sqrt":
        return module.sqrt(total)
    return module.log1p(total) if concave == "log1p" else module.minimum(total, cap)
