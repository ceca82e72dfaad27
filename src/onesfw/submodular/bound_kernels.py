"""Compiled kernels of the certificates; importing this file loads numba."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from onesfw.submodular.kernels import jit


@jit
def facility_thresholds(x, indptr, indices, values, which, tau):
    """τ_ω = m_(q), q the first place at which the sorted cumulative x reaches 1; 0 if it never does."""
    for q in range(which.size):
        total = 0.0
        tau[q] = 0.0
        for p in range(indptr[which[q]], indptr[which[q] + 1]):
            total += x[indices[p]]
            if total >= 1.0 - 1e-9:
                tau[q] = values[p]
                break


@jit
def facility_excess(tau, indptr, indices, values, weights, which, out):
    """Σ_ω weight_ω (m_ωi − τ_ω)⁺ for every i."""
    for q in range(which.size):
        row = which[q]
        for p in range(indptr[row], indptr[row + 1]):
            over = values[p] - tau[q]
            if over <= 0.0:
                break
            out[indices[p]] += weights[row] * over


@jit
def cover_thresholds(x, indptr, indices, which, tau):
    """τ_ω = 1 − clip((1.05 − Σ_A x)/0.1, 0, 1): a smooth version of [Σ_A x ≥ 1]."""
    for q in range(which.size):
        total = 0.0
        for p in range(indptr[which[q]], indptr[which[q] + 1]):
            total += x[indices[p]]
        tau[q] = 1.0 - min(max((1.05 - total) / 0.1, 0.0), 1.0)


@jit
def cover_excess(tau, indptr, indices, weights, which, out):
    """Σ_ω weight_ω (1 − τ_ω) over the rows that hold i, for every i."""
    for q in range(which.size):
        row = which[q]
        over = weights[row] * (1.0 - tau[q])
        if over > 0.0:
            for p in range(indptr[row], indptr[row + 1]):
                out[indices[p]] += over


@jit
def row_sums(v, indptr, indices, which, values, tau, out):
    """Σ_i v_i (m_ωi − τ_ω)⁺ row by row; `values` of length 0 stands for ones."""
    for q in range(which.size):
        row = which[q]
        total = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            value = values[p] if values.size else 1.0
            if value > tau[q]:
                total += v[indices[p]] * (value - tau[q])
        out[q] = total


@jit
def cover_slopes(x, direction, indptr, indices, out, prefix):
    """Σ_i direction_i ∏_{l≠i}(1 − x_l) row by row."""
    for r in range(out.size):
        first, last = indptr[r], indptr[r + 1]
        product = 1.0
        for p in range(first, last):
            prefix[p - first] = product
            product *= 1.0 - x[indices[p]]
        suffix, total = 1.0, 0.0
        for p in range(last - 1, first - 1, -1):
            total += direction[indices[p]] * prefix[p - first] * suffix
            suffix *= 1.0 - x[indices[p]]
        out[r] = total
