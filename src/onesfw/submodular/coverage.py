"""f(S) = Σ of the weights of the items that S covers."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from onesfw.submodular.base import Chosen, State, as_mask, unchecked
from onesfw.submodular.row_functions import Matrix, RowFunction, Stepper, as_sparse, check_size, row_weights
from onesfw.trees import Array, HostArray, Tree


class Coverage(RowFunction):
    """f(S) = Σ_j w_j [some i ∈ S covers item j].

    F_ω(x) = w (1 − ∏_{i∈A}(1 − x_i)) for an item covered by A, ∂_i = w ∏_{l∈A∖i}(1 − x_l), by prefix and suffix
    products: O(|A|), and right at x_i = 1.

    Args:
        incidence: n elements × m items, dense or scipy sparse; whatever is not 0 covers.
        weights: of the items, not negative; ones where left out.

    Raises:
        TypeError: where incidence or weights hold no numbers.
        ValueError: where a number is negative, not finite or too large, shapes do not match, or nothing is covered.

    Example:
        >>> from onesfw import submodular as sm
        >>> f = sm.Coverage([[1, 1, 0], [0, 1, 1]], weights=[1.0, 2.0, 4.0])
        >>> f.value([1]), f.value([0, 1])
        (6.0, 7.0)
    """

    n: int = eqx.field(static=True)
    indptr: HostArray
    indices: HostArray
    values: HostArray
    weights: HostArray
    longest: int = eqx.field(static=True)
    closed_form: ClassVar[bool] = True

    def __init__(self, incidence: Matrix, weights: ArrayLike | None = None) -> None:
        matrix = as_sparse(incidence, "Coverage", "incidence")
        rows = matrix.T.tocsr()
        self.n = int(matrix.shape[0])
        self.indptr, self.indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
        self.values = np.zeros(0)
        self.weights = row_weights(weights, rows.shape[0], "Coverage", "item")
        check_size(rows.shape[0] * self.weights.max(), "Coverage", "weights")
        self.longest = max(1, int(np.diff(self.indptr).max()))
        if self.indices.size == 0:
            raise ValueError("Coverage: incidence has no entry that is not 0: no element covers any item")

    @staticmethod
    def from_rows(n: int, indptr: HostArray, indices: HostArray, weights: HostArray) -> Coverage:
        """Coverage whose item r is covered by the elements indices[indptr[r]:indptr[r+1]]: nothing is copied."""
        longest = max(1, int(np.diff(indptr).max(initial=0)))
        return unchecked(
            Coverage, n=int(n), indptr=indptr, indices=indices, values=np.zeros(0), weights=weights, longest=longest
        )

    def value_at(self, s: Array, omega: Tree) -> Array:
        _, _, inside, weight = self.window(omega, s)
        return weight * jnp.any(inside > 0.5).astype(s.dtype)

    def marginals_at(self, s: Array, omega: Tree) -> Array:
        return self.extension_gradient_at(s, omega)

    def extension_at(self, x: Array, omega: Tree) -> Array:
        _, _, inside, weight = self.window(omega, x)
        return weight * (1 - jnp.prod(1 - inside))

    def extension_gradient_at(self, x: Array, omega: Tree) -> Array:
        elements, real, inside, weight = self.window(omega, x)
        factors = 1 - inside
        one = jnp.ones(1, x.dtype)
        before = jnp.concatenate([one, lax.cumprod(factors)[:-1]])
        after = jnp.concatenate([lax.cumprod(factors, reverse=True)[1:], one])
        return jnp.zeros_like(x).at[elements].add(jnp.where(real, weight * before * after, 0.0))

    def stepper(self, scale: float) -> Stepper:
        from onesfw.submodular.kernels import cover_step

        indptr, indices, weights = self.indptr, self.indices, self.weights
        work = np.empty(self.longest)
        return lambda d, x, previous, rho, which: cover_step(
            d, x, previous, rho, indptr, indices, weights, which, scale, work
        )

    def served(self, x: HostArray, which: HostArray, gradient: HostArray) -> HostArray:
        from onesfw.submodular.kernels import cover_pass

        out, work = np.empty(which.size), np.empty(self.longest)
        cover_pass(x, self.indptr, self.indices, self.weights, which, gradient, out, work)
        return out

    def thresholds(self, x: HostArray, which: HostArray) -> HostArray:
        from onesfw.submodular.kernels import cover_thresholds

        tau = np.empty(which.size)
        cover_thresholds(x, self.indptr, self.indices, which, tau)
        return tau

    def excess(self, tau: HostArray, which: HostArray) -> HostArray:
        from onesfw.submodular.kernels import cover_excess

        out = np.zeros(self.n)
        cover_excess(tau, self.indptr, self.indices, self.weights, which, out)
        return out

    def marginals(self, chosen: Chosen) -> HostArray:
        """g_i(S) = f(S + i) − f(S − i) for all i: O(entries)."""
        from onesfw.submodular.kernels import cover_marginals

        out = np.zeros(self.n)
        cover_marginals(as_mask(chosen, self.n), self.indptr, self.indices, self.weights, out)
        return out

    def state(self) -> State:
        """The empty set; a gain costs as much as the element has items."""
        return Covered(self)


class Covered(State):
    """Which items are covered, and how often."""

    def __init__(self, function: Coverage) -> None:
        self.starts, self.rows, _ = function.columns()
        self.weights = function.weights
        self.count = np.zeros(function.omegas, np.int32)
        self.value, self.chosen = 0.0, []

    def gains(self, candidates: HostArray) -> HostArray:
        from onesfw.submodular.kernels import cover_gains

        out = np.empty(candidates.size)
        cover_gains(candidates, self.starts, self.rows, self.count, self.weights, out)
        return out

    def add(self, i: int) -> None:
        from onesfw.submodular.kernels import cover_element

        self.value += float(self.gains(np.array([i]))[0])
        cover_element(i, self.starts, self.rows, self.count)
        self.chosen.append(i)
