"""min ⟨c, v⟩ + ½⟨v, H v⟩ over the sets of linear models: simplices, the Euclidean ball, the cube."""

from __future__ import annotations

import numpy as np

from onesfw.linear.curvature import Curvature
from onesfw.trees import HostArray

MOST_PIVOTS, PATIENCE = 25, 3
MOST_SHIFTS, MOST_FACES = 12, 30
ACCURATE, SHORTEST = 1e-2, 1e-4
LEAST_DIAGONAL = 1e-8
TINY = 1e-300


def energy(H: Curvature, c: HostArray, v: HostArray) -> float:
    """⟨c, v⟩ + ½⟨v, H v⟩."""
    return float(c @ v + v @ H.times(v) / 2)


def over_simplex(H: Curvature, c: HostArray, z: HostArray, radius: float, filled: bool) -> HostArray:
    """Over {v ≥ 0, Σv ≤ r}, or with `filled` {v ≥ 0, Σv = r}: block pivoting from the support of z.

    The free coordinates are solved for with the multiplier of the sum; those that come out negative are fixed at 0, and
    fixed ones whose slope is below the multiplier are freed, all at once; one at a time where their number does not
    fall (Júdice and Pires 1994). Where that does not end in time, a Frank-Wolfe step from z.
    """
    slope = c + H.times(z)
    level = -float(slope @ z) / radius
    level = level if filled else max(level, 0.0)
    free = (z > 0) | (slope + level < 0)
    if not free.any():
        free[np.argmin(slope)] = True
    found, fewest, patience = z, len(z) + 1, PATIENCE
    for _ in range(MOST_PIVOTS):
        at = np.flatnonzero(free)
        sums = H.solve(at, np.column_stack([-c[at], np.ones(len(at))]))
        level = (float(sums[:, 0].sum()) - radius) / max(float(sums[:, 1].sum()), TINY)
        level = level if filled else max(level, 0.0)  # 0: the sum does not bind
        found = np.zeros(len(z))
        found[at] = sums[:, 0] - level * sums[:, 1]
        ahead = c + H.times(found)
        wrong = ~free & (ahead + level < -1e-9 * (abs(level) + 1e-12 * np.abs(c).max()))
        wrong[at] = found[at] < -1e-14 * radius
        count = int(wrong.sum())
        if count == 0:
            break
        patience = PATIENCE if count < fewest else patience - 1
        fewest = min(fewest, count)
        if patience < 0:
            last = np.flatnonzero(wrong)[-1]
            wrong[:] = False
            wrong[last] = True
        free ^= wrong
        if not free.any():
            free[np.argmin(ahead)] = True
    v = np.maximum(found, 0.0)
    total = float(v.sum())
    v *= radius / max(total, TINY) if filled or total > radius else 1.0
    if energy(H, c, v) <= energy(H, c, z) and (not filled or total > 0):
        return v
    j = int(np.argmin(slope))
    toward = -z
    if filled or slope[j] < 0:
        toward[j] += radius
    bend = float(toward @ H.times(toward))
    return z + min(1.0, max(0.0, -float(slope @ toward) / max(bend, TINY))) * toward


def over_ball(H: Curvature, c: HostArray, z: HostArray, radius: float) -> HostArray:
    """Over {‖v‖₂ ≤ r}: (H + λ) v = −c with the λ ≥ 0 at which ‖v‖ = r, by Newton's method on 1/‖v‖ − 1/r."""
    every = np.arange(len(z))
    level = max(-float((c + H.times(z)) @ z) / radius**2, 0.0)
    low, high = 0.0, np.inf
    v = z
    for _ in range(MOST_SHIFTS):
        v = H.solve(every, -c[:, None], level)[:, 0]
        size = float(np.linalg.norm(v))
        if (level == 0 and size <= radius) or abs(size - radius) <= 1e-9 * radius:
            break
        low, high = (level, high) if size > radius else (low, level)
        turn = H.solve(every, v[:, None], level)[:, 0]
        new = level + (size - radius) / radius * size**2 / max(float(v @ turn), TINY)
        if not low <= new <= high:
            new = low if high == np.inf else (low + high) / 2
        level = max(new, 0.0)
    size = float(np.linalg.norm(v))
    return v * (radius / size) if size > radius else v


def over_cube(H: Curvature, c: HostArray, z: HostArray, radius: float) -> HostArray:
    """Over {|v_i| ≤ r}, roughly: projected gradient steps find the face, conjugate gradients go on in it.

    Both search the projected path for a smaller value by halving; a coordinate at its bound is freed where the slope
    points inwards (Moré and Toraldo 1991). It ends where the gap of the quadratic is a hundredth of what it was.
    """
    first = c + H.times(z)
    v, value, slope = z, 0.0, first  # values are those of v less that of z: sums of large numbers would hide them
    inverse = 1.0 / np.maximum(H.diagonal, LEAST_DIAGONAL * float(H.diagonal.max(initial=0.0)) + TINY)
    wanted = ACCURATE * (float(slope @ v) + radius * float(np.abs(slope).sum()))
    for _ in range(MOST_FACES):
        before = value
        for gradient_step in (True, False):
            held = ((v >= radius) & (slope < 0)) | ((v <= -radius) & (slope > 0))
            free = np.flatnonzero(~held)
            step = np.zeros(len(v))
            if gradient_step:
                step[free] = -slope[free] * inverse[free]
            elif len(free):
                step[free] = H.solve(free, -slope[free, None], accuracy=ACCURATE)[:, 0]
            length = 1.0
            while length > SHORTEST:
                trial = np.clip(v + length * step, -radius, radius)
                image = H.times(trial - z)
                now = float((first + image / 2) @ (trial - z))
                if now < value:
                    v, value, slope = trial, now, first + image
                    break
                length /= 2
        if value >= before or float(slope @ v) + radius * float(np.abs(slope).sum()) <= wanted:
            break
    return v
