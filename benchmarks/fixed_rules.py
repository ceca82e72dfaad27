"""1-SFW with fixed step rules in numba: the yardstick of `auto_schedule.py`, nineteen rules on many seeds.

The samples are those of the zoo's problems and of `fresh_problems.py` in distribution, drawn by NumPy's old generator,
the only one that numba knows without an argument.
"""

from __future__ import annotations

from math import exp, sqrt

import numba as nb
import numpy as np

LOGISTIC, SQUARES, QUADRATIC, GAUSSIAN = range(4)  # kinds of F
L1, SIMPLEX, L2, BOX, VERTICES, NUCLEAR, PRODUCT = range(7)  # kinds of K
FIXED, POWER, ADAPTIVE = range(3)  # kinds of ρ

RULES: dict[str, tuple[int, float, float]] = {
    **{f"ρ {c:g}/(t−1), a = {a:g}": (FIXED, c, a) for c, a in (
        (1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (4, 2), (4, 1), (16, 1), (32, 1), (64, 1),
    )},
    "ρ (t−1)^−0.8, a = 1": (POWER, 0.8, 1),
    "ρ (t−1)^−2/3, a = 1": (POWER, 2 / 3, 1),
    **{f"ρ adaptive, a = {a:g}": (ADAPTIVE, 1, a) for a in (1, 1.5, 2, 4)},
    **{f"ρ adaptive with {f:g}c, a = 1": (ADAPTIVE, f, 1) for f in (2, 4)},
}  # fmt: skip
"""(kind of ρ, its number, a) with η_t = a/(t + a − 1); the first is the paper's, "ρ adaptive, a = 1" is "tuned"."""


@nb.njit(cache=True, fastmath=True)
def vertex(shape, size, table, split, d, out):
    """argmin of ⟨d, v⟩ over K, into `out`."""
    n = len(d)
    if shape == L2:
        norm = 0.0
        for j in range(n):
            norm += d[j] ** 2
        for j in range(n):
            out[j] = -size * d[j] / max(sqrt(norm), 1e-300)
        return
    if shape == BOX:
        for j in range(n):
            out[j] = -size if d[j] > 0 else size
        return
    if shape == VERTICES:
        out[:] = table[np.argmin(table @ d)]
        return
    if shape == NUCLEAR:
        u, _, v = np.linalg.svd(np.ascontiguousarray(d).reshape(split, n // split))
        for i in range(split):
            for j in range(n // split):
                out[i * (n // split) + j] = -size * u[i, 0] * v[0, j]
        return
    out[:] = 0.0
    last = split if shape == PRODUCT else n  # of a product: an l1 ball first, then a unit simplex
    if shape != SIMPLEX:
        place = 0
        for j in range(last):
            if abs(d[j]) > abs(d[place]):
                place = j
        out[place] = size if d[place] < 0 else -size
    if shape in (SIMPLEX, PRODUCT):
        first = 0 if shape == SIMPLEX else last
        out[first + np.argmin(d[first:])] = 1.0


@nb.njit(cache=True, fastmath=True)
def gradients(kind, A, b, off, tau, sigma, x, before, t, memory, g, g_before):
    """One sample's gradients at x_t and x_{t−1}, into g and g_before."""
    d = len(x)
    if kind in (LOGISTIC, SQUARES):
        i = np.random.randint(0, len(A))  # noqa: NPY002
        now, then = 0.0, 0.0
        for j in range(d):
            now += A[i, j] * x[j]
            then += A[i, j] * before[j]
        if kind == LOGISTIC:
            now, then = -b[i] / (1 + exp(b[i] * now)), -b[i] / (1 + exp(b[i] * then))
        else:
            now, then = now - b[i], then - b[i]
        for j in range(d):
            g[j], g_before[j] = now * A[i, j], then * A[i, j]
    elif kind == QUADRATIC:
        signs = np.where(np.random.random(d) < 0.5, 1.0, -1.0)  # noqa: NPY002
        turned, turned_before = signs * x, signs * before
        for j in range(d):
            now, then, pull, pull_then = 0.0, 0.0, 0.0, 0.0
            for k in range(d):
                now += A[j, k] * x[k]
                then += A[j, k] * before[k]
                pull += off[j, k] * turned[k]
                pull_then += off[j, k] * turned_before[k]
            noise = b[j] + sigma * np.random.standard_normal()  # noqa: NPY002
            g[j], g_before[j] = now + tau * signs[j] * pull + noise, then + tau * signs[j] * pull_then + noise
    else:  # the zoo's "gaussian": z ~ N(x, σ²I), by the Hessian correction with its baseline
        a = np.random.random()  # noqa: NPY002
        point, u = a * x + (1 - a) * before, x - before
        z = point + sigma * np.random.standard_normal(d)  # noqa: NPY002
        slope = point.copy()
        slope[0] -= 1
        aim = z.copy()
        aim[1] -= 1
        value = 0.5 * (slope @ slope) + 0.5 * (aim @ aim)
        score = (z - point) / sigma**2
        centred = value - memory[0]
        g[:] = slope + centred * score
        change = u + centred * (-u / sigma**2 + score * (score @ u)) + score * (slope @ u) + slope * (score @ u)
        g_before[:] = g - change
        memory[0] += centred / t


@nb.njit(cache=True, fastmath=True)
def run(kind, A, b, off, tau, sigma, shape, size, table, split, start, seed, looks, rule, number, a):
    """x after the steps `looks`."""
    np.random.seed(seed)  # noqa: NPY002
    d = len(start)
    x, before, direction, v = start.copy(), start.copy(), np.zeros(d), np.zeros(d)
    g, g_before, memory = np.zeros(d), np.zeros(d), np.zeros(1)
    seen = np.zeros((len(looks), d))
    change, noise, place = 0.0, 0.0, 0
    for t in range(1, looks[-1] + 1):
        gradients(kind, A, b, off, tau, sigma, x, before, t, memory, g, g_before)
        c = min((1 + sqrt(1 + 4 * change / max(noise, 1e-300))) / 2, 100.0)
        if t <= 2:
            rho = 1.0
        elif rule == POWER:
            rho = (t - 1.0) ** -number
        else:
            k = number if rule == FIXED else min(number * c, 100.0)
            rho = k / (t + k - 2)
        if t >= 2:
            moved, off_by = 0.0, 0.0
            for j in range(d):
                moved += (g[j] - g_before[j]) ** 2
                off_by += (g_before[j] - direction[j]) ** 2
            change += ((t - 1.0) ** 2 * moved - change) / (t - 1)
            noise += (off_by - noise) / (t - 1)
        for j in range(d):
            direction[j] = (1 - rho) * (direction[j] + g[j] - g_before[j]) + rho * g[j]
        vertex(shape, size, table, split, direction, v)
        eta = a / (t + a - 1)
        for j in range(d):
            before[j] = x[j]
            x[j] += eta * (v[j] - x[j])
        if t == looks[place]:
            seen[place] = x
            place += 1
    return seen
