"""The trace-norm ball as seen through some entries: what every method of the loop runs on without a dense matrix.

A loss that looks at the entries of X in a pattern Ω alone needs nothing else of X, and its gradient lives on Ω. The
entries of X in Ω, and two sketches XΨ and XᵀΦ with fixed random Ψ and Φ, are linear in X: a step moves them as it moves
X, a vertex −τ u vᵀ costs O(|Ω| + rows + columns), and X is found again from the sketches at the end (Yurtsever, Udell,
Tropp and Cevher 2017).
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from onesfw import trees
from onesfw.sets.base import ConvexSet
from onesfw.sets.lanczos import generic_vector, largest_eigenvector
from onesfw.sets.parameters import Parameter, Shape
from onesfw.trees import Array, HostArray, Tree

SMALL = 1e-10  # the size of the sketches: norms and inner products of x are those of its entries


class SeenMatrix(NamedTuple):
    """X through its entries in Ω and its two sketches."""

    entries: Tree
    left: Tree
    """XΨ, rows × width."""
    right: Tree
    """XᵀΦ, columns × (2 width + 1)."""


class SeenNuclearBall(ConvexSet):
    """{X : Σσ_i(X) ≤ radius}, its members as `SeenMatrix`.

    lmo(D) = −radius · u₁v₁ᵀ, the leading singular vectors of D, which has entries in Ω alone: O(|Ω|) an iteration of
    Lanczos, some tens of them, fewer through `lmo_from`.
    """

    bound: Parameter
    accuracy: Parameter
    rows: HostArray | Array
    cols: HostArray | Array
    psi: HostArray | Array
    phi: HostArray | Array
    shape: Shape = eqx.field(static=True)

    def __init__(
        self, bound: Parameter, accuracy: Parameter, shape: Shape, rows: HostArray, cols: HostArray, width: int
    ) -> None:
        self.bound, self.accuracy, self.shape = bound, accuracy, shape
        self.rows, self.cols = rows.astype(np.int32), cols.astype(np.int32)
        k = min(width, *shape)
        rng = np.random.default_rng(17)
        self.psi = SMALL * rng.standard_normal((shape[1], k))
        self.phi = SMALL * rng.standard_normal((shape[0], min(2 * k + 1, max(shape))))

    def template(self) -> Tree:
        """The shapes of entries and sketches."""
        m, n = self.shape
        return SeenMatrix((len(self.rows),), (m, self.psi.shape[1]), (n, self.phi.shape[1]))

    def start(self, like: Tree) -> Tree:
        """X = 0."""
        return trees.zeros_like(like)

    def lmo_memory(self, like: Tree) -> Tree:
        """The leading singular vector on the shorter side, a generic one at first."""
        return generic_vector(min(self.shape), trees.dtype_of(like))

    def lmo(self, d: Tree) -> Tree:
        """A vertex of K that minimises ⟨d, v⟩: the linear minimisation oracle."""
        return self.lmo_from(d, self.lmo_memory(d))[0]

    def lmo_from(self, d: Tree, memory: Tree) -> tuple[Tree, Tree]:
        """`lmo(d)` from what the last call left; returns the vertex and the new memory."""
        here = trees.cast(self, d.entries.dtype)
        g = d.entries
        largest = jnp.max(jnp.abs(g))
        g = g / jnp.where(largest > 0, largest, 1.0)
        m, n = self.shape
        rows, cols = jnp.asarray(self.rows), jnp.asarray(self.cols)

        def forward(v: Array) -> Array:  # D v
            return jax.ops.segment_sum(g * v[cols], rows, m)

        def back(u: Array) -> Array:  # Dᵀ u
            return jax.ops.segment_sum(g * u[rows], cols, n)

        begun = memory / jnp.linalg.norm(memory) + 0.1 * generic_vector(memory.size, memory.dtype)
        short, long = (forward, back) if n <= m else (back, forward)
        inner = largest_eigenvector(lambda v: long(short(v)), begun, 2 * here.accuracy)
        outer = short(inner)
        length = jnp.linalg.norm(outer)
        outer = jnp.where(length > 0, outer / jnp.where(length > 0, length, 1.0), jnp.zeros_like(outer).at[0].set(1.0))
        left, right = (outer, inner) if n <= m else (inner, outer)
        left = -here.bound * left
        vertex = SeenMatrix(
            left[rows] * right[cols], jnp.outer(left, right @ here.psi), jnp.outer(right, left @ here.phi)
        )
        return vertex, inner

    def contains(self, x: Tree, tol: float = 1e-6) -> Array:
        """Whether x can be seen of a member of K, as far as the sketches tell: 0, or what a run has reached."""
        return trees.all_finite(x) & (jnp.max(jnp.abs(x.entries)) <= self.bound * (1 + tol))

    @property
    def diameter(self) -> float:
        """Twice the largest Frobenius norm."""
        return 2 * self.radius

    @property
    def radius(self) -> float:
        """max ‖X‖_F = radius."""
        return float(self.bound)

    def factors(self, x: SeenMatrix) -> tuple[HostArray, HostArray]:
        """P and Q with P Qᵀ = X, as far as the width of the sketches allows: exactly for a rank below it."""
        left, right = (np.asarray(leaf, np.float64) / SMALL for leaf in (x.left, x.right))
        phi = np.asarray(self.phi, np.float64) / SMALL
        basis, _ = np.linalg.qr(left)
        rest, *_ = np.linalg.lstsq(phi.T @ basis, right.T, rcond=None)
        u, s, vt = np.linalg.svd(rest, full_matrices=False)
        s = s * min(1.0, float(self.bound) / max(float(s.sum()), 1e-300))
        keep = s > 1e-7 * max(float(s[0]), 1e-300)
        size = np.sqrt(s[keep])
        return (basis @ u[:, keep]) * size, vt[keep].T * size
