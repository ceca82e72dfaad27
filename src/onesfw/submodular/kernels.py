"""Compiled kernels of coverage and facility location; importing this file loads numba.

Rows are stored one after another: row r holds the elements indices[indptr[r]:indptr[r+1]], for facility location in
the order of falling similarity. A row's weight is what it adds to f where it is fully served.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numba

NEGLIGIBLE = 1e-10  # probability below which what follows in a sorted row no longer matters

jit: Any = numba.njit(cache=True, nogil=True)
any_order: Any = numba.njit(cache=True, nogil=True, fastmath={"reassoc"})  # so that sums vectorise


@jit
def cover_add(d, x, factor, indptr, indices, row, prefix):
    """d_i += factor · ∏_{l≠i in the row} (1 − x_l), by prefix × suffix products: no division. Returns ∏ (1 − x_l)."""
    first, last = indptr[row], indptr[row + 1]
    product = 1.0
    for p in range(first, last):
        prefix[p - first] = product
        product *= 1.0 - x[indices[p]]
    suffix = factor
    for p in range(last - 1, first - 1, -1):
        i = indices[p]
        d[i] += prefix[p - first] * suffix
        suffix *= 1.0 - x[i]
    return product


@jit
def facility_add(d, x, factor, indptr, indices, values, row, prefix):
    """d_i += factor · P_k (m_k − R_k) for the element i at place k of the sorted row; returns F_ω(x) = R_0.

    The row is left once every product of the factors 1 − x but one is negligible: at an x_k = 1 the product of all of
    them is 0, yet the derivative along k still needs what comes after it.
    """
    first, last = indptr[row], indptr[row + 1]
    product, least, others = 1.0, 1.0, 1.0
    end = last
    for p in range(first, last):
        prefix[p - first] = product
        factor_here = 1.0 - x[indices[p]]
        product *= factor_here
        if factor_here < least:
            others *= least
            least = factor_here
        else:
            others *= factor_here
        if others < NEGLIGIBLE:
            end = p + 1
            break
    rest = 0.0
    for p in range(end - 1, first - 1, -1):
        i = indices[p]
        d[i] += factor * prefix[p - first] * (values[p] - rest)
        rest += x[i] * (values[p] - rest)
    return rest


@jit
def cover_step(d, x, previous, rho, indptr, indices, weights, which, scale, prefix):
    """d ← (1 − ρ)(d + Δ̃) + ρ g with g and Δ̃ averaged over the rows `which` (Algorithm 2)."""
    d *= 1.0 - rho
    for row in which:
        factor = scale * weights[row] / which.size
        cover_add(d, x, factor, indptr, indices, row, prefix)
        if rho < 1.0:
            cover_add(d, previous, -(1.0 - rho) * factor, indptr, indices, row, prefix)


@jit
def facility_step(d, x, previous, rho, indptr, indices, values, weights, which, scale, prefix):
    """`cover_step` for facility location."""
    d *= 1.0 - rho
    for row in which:
        factor = scale * weights[row] / which.size
        facility_add(d, x, factor, indptr, indices, values, row, prefix)
        if rho < 1.0:
            facility_add(d, previous, -(1.0 - rho) * factor, indptr, indices, values, row, prefix)


@jit
def cover_pass(x, indptr, indices, weights, which, gradient, served, prefix):
    """Each row's 1 − ∏(1 − x) into `served`, and Σ weight · gradient into `gradient`."""
    for q in range(which.size):
        row = which[q]
        served[q] = 1.0 - cover_add(gradient, x, weights[row], indptr, indices, row, prefix)


@jit
def facility_pass(x, indptr, indices, values, weights, which, gradient, served, prefix):
    """`cover_pass` for facility location."""
    for q in range(which.size):
        row = which[q]
        served[q] = facility_add(gradient, x, weights[row], indptr, indices, values, row, prefix)


@jit
def gains_by_element(candidates, starts, rows, values, level, weights, out):
    """Σ_r weight_r (m_ri − level_r)⁺ for each candidate i; column i of the similarities is starts[i]:starts[i+1]."""
    for q in range(candidates.size):
        i = candidates[q]
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            r = rows[p]
            over = values[p] - level[r]
            if over > 0.0:
                total += over * weights[r]
        out[q] = total


@jit
def cover_gains(candidates, starts, rows, covered, weights, out):
    """Σ of the weights of the uncovered rows that hold i, for each candidate i."""
    for q in range(candidates.size):
        i = candidates[q]
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            r = rows[p]
            if covered[r] == 0:
                total += weights[r]
        out[q] = total


@jit
def by_column(indices, values, out):
    """The matrix by columns, from rows that hold every element once: out[i, r] = m_ri."""
    n, rows = out.shape
    for r in range(rows):
        for p in range(r * n, (r + 1) * n):
            out[indices[p], r] = values[p]


@any_order
def dense_gains(candidates, columns, level, weights, out):
    """`gains_by_element` where every element has an entry in every row."""
    for q in range(candidates.size):
        column = columns[candidates[q]]
        total = 0.0
        for r in range(level.size):
            total += weights[r] * max(column[r] - level[r], 0.0)
        out[q] = total


@jit
def dense_raise(i, columns, level):
    """`raise_level` where every element has an entry in every row."""
    for r in range(level.size):
        level[r] = max(level[r], columns[i, r])


@jit
def raise_level(i, starts, rows, values, level):
    """level_r ← max(level_r, m_ri)."""
    for p in range(starts[i], starts[i + 1]):
        if values[p] > level[rows[p]]:
            level[rows[p]] = values[p]


@jit
def cover_element(i, starts, rows, covered):
    """One more chosen element in every row that holds i."""
    for p in range(starts[i], starts[i + 1]):
        covered[rows[p]] += 1


@jit
def facility_marginals(inside, indptr, indices, values, weights, out):
    """g_i(S) = f(S + i) − f(S − i) for all i; a sorted row is left at the second chosen element."""
    for r in range(indptr.size - 1):
        first, last = indptr[r], indptr[r + 1]
        best, place = 0.0, -1
        for p in range(first, last):
            if inside[indices[p]]:
                best, place = values[p], p
                break
        if place < 0:
            for p in range(first, last):
                out[indices[p]] += weights[r] * values[p]
            continue
        for p in range(first, place):
            out[indices[p]] += weights[r] * (values[p] - best)
        second = 0.0
        for p in range(place + 1, last):
            if inside[indices[p]]:
                second = values[p]
                break
        out[indices[place]] += weights[r] * (best - second)


@jit
def cover_marginals(inside, indptr, indices, weights, out):
    """g_i(S) = f(S + i) − f(S − i) for all i."""
    for r in range(indptr.size - 1):
        first, last = indptr[r], indptr[r + 1]
        count, only = 0, -1
        for p in range(first, last):
            if inside[indices[p]]:
                count += 1
                only = indices[p]
        if count == 0:
            for p in range(first, last):
                out[indices[p]] += weights[r]
        elif count == 1:
            out[only] += weights[r]
