"""X = P Qᵀ by its factors: the SVD of diag(√p) X diag(√q) through two small Gram matrices."""

from __future__ import annotations

import numpy as np

from onesfw.trees import HostArray

LANES = 8  # ranks are padded to a multiple of this: whole registers
BLOCK = 65_536  # rows whose products are summed at once, in double precision


def padded(P: HostArray, Q: HostArray) -> tuple[HostArray, HostArray]:
    """The factors with columns of zeros up to a whole number of lanes."""
    extra = -P.shape[1] % LANES
    if not extra and P.flags.c_contiguous and Q.flags.c_contiguous:
        return P, Q
    return tuple(np.hstack([X, np.zeros((len(X), extra), X.dtype)]) for X in (P, Q))  # type: ignore[return-value]


def gram(weight: HostArray, X: HostArray) -> HostArray:
    """Xᵀ diag(weight) X in double precision."""
    total = np.zeros((X.shape[1],) * 2)
    for begin in range(0, len(X), BLOCK):
        part = X[begin : begin + BLOCK].astype(np.float64)
        total += part.T @ (weight[begin : begin + BLOCK, None] * part)
    return total


def square_root(gram_matrix: HostArray) -> tuple[HostArray, HostArray]:
    """R and its pseudo-inverse, with RᵀR the Gram matrix, on its range."""
    sizes, vectors = np.linalg.eigh(gram_matrix)
    keep = sizes > 1e-14 * max(float(sizes[-1]), 1e-300)
    roots, vectors = np.sqrt(sizes[keep]), vectors[:, keep]
    return roots[:, None] * vectors.T, vectors / roots


def decompose(p: HostArray, q: HostArray, P: HostArray, Q: HostArray) -> tuple[HostArray, HostArray, HostArray]:
    """(A, s, B): P A and Q B are the singular vectors of diag(√p) P Qᵀ diag(√q) over √p and √q, s its values."""
    (left, left_inverse), (right, right_inverse) = square_root(gram(p, P)), square_root(gram(q, Q))
    u, s, vt = np.linalg.svd(left @ right.T, full_matrices=False)
    return left_inverse @ u, s, right_inverse @ vt.T


def balance(
    p: HostArray, q: HostArray, P: HostArray, Q: HostArray, radius: float, drop: float, most: int, fill: bool
) -> tuple[HostArray, HostArray, HostArray]:
    """Factors of equal sizes with the norm at most `radius`, and the singular values.

    Values below `drop` times the largest are left out, and all but the `most` largest. With `fill` the norm is the
    radius: factors on the boundary of their ball are nearly balanced, and X is nearly there.
    """
    A, s, B = decompose(p, q, P, Q)
    keep = np.flatnonzero(s > drop * (s[0] if len(s) else 0.0))[:most]
    if not len(keep):
        return *padded(np.zeros((len(P), 1), P.dtype), np.zeros((len(Q), 1), Q.dtype)), np.zeros(0)
    total = radius if fill else min(float(s.sum()), radius)
    s = s[keep] * (total / float(s[keep].sum()))  # what is left out does not shrink the rest
    size = np.sqrt(s)
    kind = P.dtype
    return *padded(P @ (A[:, keep] * size).astype(kind), Q @ (B[:, keep] * size).astype(kind)), s
