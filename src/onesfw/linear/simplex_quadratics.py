"""min ⟨g, v − z⟩ + ½⟨v − z, H (v − z)⟩ over the sets of linear models: simplices, the Euclidean ball, the cube.

z is where the search starts, and g the slope there.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from onesfw.linear.curvature import FAST, Curvature, Matrix
from onesfw.trees import HostArray

MOST_PIVOTS, PATIENCE = 25, 3
SLIGHT = 1e-9  # of the multiplier: slopes that are so little below it are as good
MOST_TURNS = 300  # one coordinate each, where pivoting all at once has not ended
MOST_EXCHANGES = 20  # times the columns
GAP_EVERY = 16  # exchanges
WARM = 1e-2  # how near exchanges come before pivoting begins
MOST_SHIFTS, MOST_FACES = 30, 30
MOST_SWEPT_FACES, SWEEPS, SWEPT = 100, 20, 1e-4  # with a matrix, where sweeps over the coordinates are cheap
ACCURATE, SHORTEST = 1e-2, 1e-4
LEAST_DIAGONAL = 1e-8
TINY = 1e-300


@njit(cache=True, nogil=True, fastmath=FAST)
def pairs(
    H: HostArray, slope: HostArray, z: HostArray, radius: float, filled: bool, accuracy: float, v: HostArray,
    g: HostArray,
) -> bool:  # fmt: skip
    """Over {v ≥ 0, Σv ≤ r}, or with `filled` Σv = r, by exchanges between two coordinates; writes v and its slope g.

    What has the least slope grows at the cost of the coordinate where that gains most (Fan, Chen and Lin 2005); the
    room that the sum leaves counts as a coordinate of slope 0. True where the gap came below `accuracy` times that of
    z, False where it did not in time.
    """
    size, first = len(z), -1.0
    v[:], g[:] = z, slope
    room = 0.0 if filled else max(radius - v.sum(), 0.0)
    for turn in range(MOST_EXCHANGES * size):
        i = np.argmin(g)
        grows = filled or g[i] < 0
        least = g[i] if grows else 0.0
        if turn % GAP_EVERY == 0:
            gap = np.dot(g, v) - radius * least
            first = gap if turn == 0 else first
            if gap <= accuracy * first:
                return True
        j, most, wide, deep = -1, 0.0, 1.0, 0.0
        if grows and room > 0.0:
            wide, deep = max(H[i, i], TINY), -least
            most = deep * deep / wide
        for k in range(size):
            if v[k] > 0.0 and g[k] > least:
                bend = max(H[k, k] + H[i, i] - 2.0 * H[i, k] if grows else H[k, k], TINY)
                gain = (g[k] - least) ** 2 / bend
                if gain > most:
                    j, most, wide, deep = k, gain, bend, g[k] - least
        if most <= 0.0:
            return False
        length = deep / wide
        if j < 0:
            length = min(length, room)
            room = room - length if length < room else 0.0
        elif length < v[j]:
            v[j] -= length
        else:
            length, v[j] = v[j], 0.0
        if grows:
            v[i] += length
        elif j >= 0:
            room += length
        for k in range(size):
            g[k] += length * ((H[i, k] if grows else 0.0) - (H[j, k] if j >= 0 else 0.0))
    return False


def over_simplex(
    H: Curvature, slope: HostArray, z: HostArray, radius: float, filled: bool, accuracy: float = 0.0
) -> HostArray:
    """Over {v ≥ 0, Σv ≤ r}, or with `filled` {v ≥ 0, Σv = r}: exchanges of pairs, then block pivoting from the support.

    The free coordinates are solved for with the multiplier of the sum; those that come out negative are fixed at 0, and
    fixed ones whose slope is below the multiplier are freed, all at once; one at a time where their number does not
    fall (Júdice and Pires 1994). Where that does not end in time, `one_by_one`; at worst a Frank-Wolfe step. With an
    accuracy above 0, a gap that is so much smaller than at z is enough: exchanges alone mostly reach it.
    """
    if isinstance(H, Matrix):
        v, g = np.empty(len(z)), np.empty(len(z))
        if pairs(H.H, slope, z, radius, filled, accuracy or WARM, v, g) and accuracy > 0:
            return v
        z, slope = v, g
    level = -float(slope @ z) / radius
    level = level if filled else max(level, 0.0)
    free = (z > 0) | (slope + level < 0)
    if not free.any():
        free[np.argmin(slope)] = True
    c = slope - H.times(z)
    least = -1e-12 * float(np.abs(c).max())
    found, fewest, patience = z, len(z) + 1, PATIENCE
    for _ in range(MOST_PIVOTS):
        found, level = on_face(H, c, free, radius, filled)
        ahead = c + H.times(found)
        wrong = np.where(free, found < -1e-14 * radius, ahead + level < -SLIGHT * (abs(level) - least))
        wrongs = int(np.count_nonzero(wrong))
        if wrongs == 0:
            break
        patience = PATIENCE if wrongs < fewest else patience - 1
        fewest = min(fewest, wrongs)
        if patience < 0:
            last = np.flatnonzero(wrong)[-1]
            wrong[:] = False
            wrong[last] = True
        free ^= wrong
        if not free.any():
            free[np.argmin(ahead)] = True
    else:
        found = one_by_one(H, c, z, radius, filled)
    v = np.maximum(found, 0.0)
    total = float(v.sum())
    if filled or total > radius:
        v *= radius / max(total, TINY)
    move = v - z
    if float(move @ (slope + H.times(move) / 2)) <= 0 and (not filled or total > 0):
        return v
    j = int(np.argmin(slope))
    toward = -z
    if filled or slope[j] < 0:
        toward[j] += radius
    bend = float(toward @ H.times(toward))
    return z + min(1.0, max(0.0, -float(slope @ toward) / max(bend, TINY))) * toward


def on_face(H: Curvature, c: HostArray, free: HostArray, radius: float, filled: bool) -> tuple[HostArray, float]:
    """The minimiser of ⟨c, v⟩ + ½⟨v, H v⟩ with v = 0 but for the free coordinates, of any sign; the multiplier."""
    at = np.flatnonzero(free)
    right = np.ones((2, len(at)))
    np.negative(c[at], out=right[0])
    sums = H.solve(at, right.T).T
    level = (float(sums[0].sum()) - radius) / max(float(sums[1].sum()), TINY)
    level = level if filled else max(level, 0.0)  # 0: the sum does not bind
    found = np.zeros(len(c))
    found[at] = sums[0] - level * sums[1]
    return found, level


def one_by_one(H: Curvature, c: HostArray, z: HostArray, radius: float, filled: bool) -> HostArray:
    """The primal active-set method from z, a member: slow, and its value falls with every turn.

    Towards the minimiser over the free coordinates, as far as none falls below 0; the one that stops it is fixed. Where
    none does, the coordinate with the least slope is freed.
    """
    v, free = z.copy(), z > 0
    for _ in range(MOST_TURNS if isinstance(H, Matrix) else MOST_PIVOTS):
        if free.any():
            goal, level = on_face(H, c, free, radius, filled)
            below = np.flatnonzero(goal < 0)
            if len(below):
                rooms = v[below] / (v[below] - goal[below])
                first = int(np.argmin(rooms))
                v = np.maximum(v + rooms[first] * (goal - v), 0.0)
                v[below[first]], free[below[first]] = 0.0, False
                continue
            v = goal
        else:
            level = 0.0
        slope = c + H.times(v)
        slope[free] = np.inf
        enters = int(np.argmin(slope))
        if not slope[enters] + level < -SLIGHT * (abs(level) + 1e-12 * float(np.abs(c).max())):
            break
        free[enters] = True
    return v


def over_ball(H: Curvature, slope: HostArray, z: HostArray, radius: float) -> HostArray:
    """Over {‖v‖₂ ≤ r}: (H + λ) v = H z − g with the λ ≥ 0 at which ‖v‖ = r, by Newton's method on 1/‖v‖ − 1/r."""
    every = np.arange(len(z))
    level = max(-float(slope @ z) / radius**2, 0.0)
    low, high = 0.0, np.inf
    v = inside = z
    for _ in range(MOST_SHIFTS):
        v = z + H.solve(every, -(slope + level * z)[:, None], level)[:, 0]  # the small part alone is solved for
        size = float(np.linalg.norm(v))
        if (level == 0 and size <= radius) or abs(size - radius) <= 1e-9 * radius:
            inside = v if size <= radius else v * (radius / size)
            break
        if size > radius:
            low = level
        else:
            high, inside = level, v
        turn = H.solve(every, v[:, None], level)[:, 0]
        new = level + (size - radius) / radius * size**2 / max(float(v @ turn), TINY)
        if not low <= new <= high:
            new = low if high == np.inf else (low * high) ** 0.5 if low > 0 else high / 10
        level = max(new, 0.0)
    return inside if inside is not z else v * (radius / float(np.linalg.norm(v)))


@njit(cache=True, nogil=True, fastmath=FAST)
def sweep_cube(H: HostArray, slope: HostArray, v: HostArray, radius: float, least: float, sweeps: int) -> None:
    """The best value of one coordinate after the other, several times; changes v and its slope."""
    for _ in range(sweeps):
        for i in range(len(v)):
            new = min(max(v[i] - slope[i] / max(H[i, i], least), -radius), radius)
            move = new - v[i]
            if move != 0.0:
                v[i] = new
                for k in range(len(v)):
                    slope[k] += move * H[i, k]


def over_cube(H: Curvature, slope: HostArray, z: HostArray, radius: float) -> HostArray:
    """Over {|v_i| ≤ r}, roughly: steps in one coordinate find the face, Newton's or conjugate gradients go on in it.

    Without a matrix, projected gradient steps find it. What goes on in a face searches the projected path for a smaller
    value by halving; a coordinate at its bound is freed where the slope points inwards (Moré and Toraldo 1991). It ends
    where the gap of the quadratic is a small part of what it was.
    """
    first = slope
    v, value = z, 0.0  # values are those of v less that of z: sums of large numbers would hide them
    least = LEAST_DIAGONAL * float(H.diagonal.max(initial=0.0)) + TINY
    inverse = 1.0 / np.maximum(H.diagonal, least)
    faces, accuracy = (MOST_SWEPT_FACES, SWEPT) if isinstance(H, Matrix) else (MOST_FACES, ACCURATE)
    wanted = accuracy * (float(slope @ v) + radius * float(np.abs(slope).sum()))
    for _ in range(faces):
        before = value
        for finds_face in (True, False):
            step = np.zeros(len(v))
            held = ((v >= radius) & (slope < 0)) | ((v <= -radius) & (slope > 0))
            free = np.flatnonzero(~held)
            if finds_face and isinstance(H, Matrix):
                swept = v.copy()
                sweep_cube(H.H, slope.copy(), swept, radius, least, SWEEPS)
                step = swept - v
            elif finds_face:
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
