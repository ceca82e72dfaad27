"""Frank-Wolfe atoms and, between them, conjugate gradients on the factors: minimise F over a trace-norm ball.

    F(X, b) = (1/n) Σ ℓ(mean + bu_i + bi_j + X_ij, y_ij) + (ρ ‖bu‖² + ρ' ‖bi‖²)/(2n)    ‖diag(√p) X diag(√q)‖_* ≤ τ

X = P Qᵀ, and ‖X‖ ≤ (‖√p P‖² + ‖√q Q‖²)/2, with equality for balanced factors (Srebro, Rennie and Jaakkola 2005): the
factors move in the Euclidean ball of radius √(2τ), where a projection is a scaling. Local minima are left by new
atoms, from the leading singular vectors of the gradient, which also give the Frank-Wolfe gap: a bound on F − F*
whatever the factors did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor, log2
from typing import NamedTuple

import numpy as np

from onesfw.lowrank.entry_kernels import slopes, times, times_transposed, towards
from onesfw.lowrank.factors import balance, padded
from onesfw.lowrank.norm_bound import CHANCE, bounded
from onesfw.lowrank.observed import Observed
from onesfw.lowrank.singular import Scaled, Triples, leading
from onesfw.lowrank.step_kernels import (
    ROOM,
    advance,
    block_room,
    crossed,
    forward,
    gradients,
    moments,
    precondition,
    redirect,
    sizes,
)
from onesfw.lowrank.step_search import Polynomial, room, search
from onesfw.trees import HostArray

FIRST_ATOMS = 16
FEWEST_ATOMS = 4
MOST_ROUNDS = 500
NO_LIMIT = 2**31  # of the rank
STEPS_A_ROUND = 20
LEAST_STEPS = 4
MOST_KEPT = 4_000_000  # entries whose x is kept from step to step, in 20 bytes each
SETTLED = 0.3  # times gap_tol² and F without X: a gain that ends the first round; gains fall with the square of gaps
SHRINK = 0.01  # a round ends when the squared gradient has shrunk by this
LEAST_SHARE = 1e-12  # of new atoms in X: what a larger one adds to F keeps small gaps out of reach
DROP, LEAST_DROP = 1e-3, 1e-9  # of the largest singular value: smaller ones are left out after a round
IDLE = 1e-3  # of the goal: a gain that tells of atoms let in for nothing
FULL = 1 - 1e-4  # of the radius: a norm that fills the ball
SMALLEST = 1e-300  # of slopes that are not 0
ROUNDING = 1e-12  # of σ_1, where all singular values are found at once
LEAST_VALUE = 1e-2  # of the value without X: gaps are compared with no less
LEAST_GAP = 1e-8  # of a likelihood: what the means that are nearest to certain lose, see `observed.FARTHEST`


@dataclass(frozen=True)
class Point:
    """The factors, the biases, and how good they are."""

    P: HostArray
    Q: HostArray
    bu: HostArray
    bi: HostArray
    s: HostArray
    """Singular values of diag(√p) X diag(√q), falling."""
    radius: float
    value: float = np.inf
    gap: float = np.inf
    multiplier: float = 0.0
    """−⟨∇F, X⟩/τ, how much a larger radius would gain."""
    steps: int = 0
    rounds: int = 0

    @property
    def rank(self) -> int:
        """Singular values that are not 0."""
        return len(self.s)


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Args:
        gap_tol: stop when the gap is at most this times the value above its floor.
        max_rank: of X.
        rounds: of atoms, at most.
        stop: asked after each step.
    """

    gap_tol: float = 1e-3
    max_rank: int = NO_LIMIT
    rounds: int = MOST_ROUNDS
    stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Stage:
    """Where a run stands between two rounds, and all that the next one needs."""

    point: Point
    before: float = np.inf
    """The value of the round before."""
    drop: float = DROP


def fit(
    data: Observed,
    radius: float,
    limits: Limits,
    key: int,
    *,
    stage: Stage | None = None,
    keep: Callable[[Stage], None] = lambda stage: None,
    report: Callable[[Point], None] = lambda point: None,
    worse: Callable[[Point], bool] = lambda point: False,
) -> tuple[Point, str]:
    """Minimise F over the ball of that radius; the last point, certified, and why the run ended.

    A round's randomness depends on the key and on where the round stands: a run that goes on from a stage ends bit for
    bit as if it had not stopped.

    Args:
        data: the entries.
        radius: τ.
        limits: when to stop.
        key: a seed.
        stage: where to start; None begins with the biases.
        keep: hears of each stage that the run can go on from.
        report: hears of each certified point.
        worse: asked after each round; the run ends where a larger rank only does harm.
    """
    floor = data.floor
    least = LEAST_VALUE * (data.null[2] - floor)
    nothing = LEAST_GAP if data.loss.name in ("logistic", "poisson") else 0.0
    cap = min(limits.max_rank, *data.shape)
    stage = stage or Stage(first_atoms(data, zero := biases_alone(data, radius), cap, randomness(data, zero, key)))
    while True:
        little = 0.0 if np.isfinite(stage.before) else SETTLED * limits.gap_tol**2 * (data.null[2] - floor)
        point, full, settled = descend(data, stage.point, limits.stop, little)
        P, Q, s = balance(data.p, data.q, point.P, point.Q, radius, stage.drop, cap, full)
        point, slope = measured(data, replace(point, P=P, Q=Q, s=s, rounds=point.rounds + 1))
        goal = max(limits.gap_tol * max(point.value - floor, least), nothing)
        gain = stage.before - point.value
        full_rank = point.rank >= cap < min(data.shape)
        why = None
        if worse(point):
            why = "worse"
        elif limits.stop():
            why = "stopped"
        elif full_rank and gain < 0.1 * goal:
            why = "rank"
        elif point.rounds >= limits.rounds:
            why = "rounds"
        if full_rank and why is None:  # no atom could be let in
            stage = replace(stage, point=point, before=point.value)
            report(point)
            keep(stage)
            continue
        if why is None and gain < IDLE * limits.gap_tol * goal and stage.drop < LEAST_DROP:
            why = "stuck"  # gains fall with the square of gaps
        point, atoms = certified(data, point, slope, goal, randomness(data, point, key), why not in (None, "stopped"))
        report(point)
        if point.gap <= goal:
            why = "gap"
        if why is not None:
            return point, why
        drop = stage.drop * (0.1 if gain < IDLE * goal else 1.0)  # the new atoms may have been dropped again
        grown = point if settled else grow(data, point, atoms, cap)  # corrected all the way, before atoms are let in
        stage = Stage(grown, point.value, drop)
        keep(stage)


def biases_alone(data: Observed, radius: float) -> Point:
    """X = 0 with its best biases, nearly."""
    bu, bi, value = data.null
    P, Q = padded(np.zeros((data.shape[0], 1), data.y.dtype), np.zeros((data.shape[1], 1), data.y.dtype))
    return Point(P, Q, bu, bi, np.zeros(0), radius, value)


def penalty(data: Observed, point: Point) -> float:
    """n times the biases' part of F."""
    return 0.5 * ridged(data, point.bu, point.bu, point.bi, point.bi)


def ridged(data: Observed, bu: HostArray, cu: HostArray, bi: HostArray, ci: HostArray) -> float:
    """The products of two pairs of biases, weighted by their ridges."""
    return data.ridge[0] * float(bu @ cu) + data.ridge[1] * float(bi @ ci)


def first_atoms(data: Observed, zero: Point, cap: int, rng: np.random.Generator) -> Point:
    """From X = 0 towards a mixture of the leading singular vectors of the gradient."""
    g = np.empty_like(data.y)
    slopes(*data.head, zero.P, zero.Q, zero.bu, zero.bi, g)
    atoms = leading(scaled(data, g), min(FIRST_ATOMS, cap), rng, accuracy=1e-2, dtype=data.y.dtype)
    return mixed(data, zero, atoms, atoms.values, 1.0)


def scaled(data: Observed, g: HostArray) -> Scaled:
    """The gradient in the coordinates where the norm is the plain trace norm."""
    return Scaled(data.ptr, data.cols, g, 1 / np.sqrt(data.p), 1 / np.sqrt(data.q))


def mixed(data: Observed, point: Point, atoms: Triples, weights: HostArray, most: float) -> Point:
    """The best point on the way from X to a mixture of atoms, at most so far."""
    kind = data.y.dtype
    count = min(len(weights), atoms.left.shape[1])
    weights = weights[:count]
    if not count or not weights.sum() > 0:
        return point
    weights = weights / weights.sum()
    size = np.sqrt(weights * point.radius)
    A = (-(atoms.left[:, :count] * size) / np.sqrt(data.p)[:, None]).astype(kind)
    B = ((atoms.right[:, :count] * size) / np.sqrt(data.q)[:, None]).astype(kind)
    slope, curvature = towards(*data.head, point.P, point.Q, A, B, point.bu, point.bi)
    share = float(np.clip(-slope / max(curvature, 1e-300), LEAST_SHARE, most))
    old, new, r = kind.type(np.sqrt(1 - share)), kind.type(np.sqrt(share)), point.rank
    P, Q = padded(np.hstack([point.P[:, :r] * old, A * new]), np.hstack([point.Q[:, :r] * old, B * new]))
    return replace(point, P=P, Q=Q)


def grow(data: Observed, point: Point, atoms: Triples, cap: int) -> Point:
    """The atoms whose singular values exceed the multiplier by enough to matter, as far as the rank allows."""
    level = max(point.multiplier * data.n, 0.0)
    enough = level + 0.1 * max(float(atoms.values[0]) - level, 0.0)
    count = min(int((atoms.values > enough).sum()), cap - point.rank)
    return point if count <= 0 else mixed(data, point, atoms, atoms.values[:count] - level, 0.5)


def with_one_more(data: Observed, point: Point, key: int) -> Point:
    """A point with one more atom, whatever the gap says."""
    point, slope = measured(data, point)
    atoms = leading(scaled(data, slope), 1, randomness(data, point, key), accuracy=1e-2, dtype=data.y.dtype)
    return mixed(data, point, atoms, np.ones(1), 0.5)


def measured(data: Observed, point: Point) -> tuple[Point, HostArray]:
    """A point with its value and its multiplier, and the loss's slope at each entry, in double precision."""
    g = np.empty(data.n)
    total, along = slopes(*data.head, point.P.astype(g.dtype), point.Q.astype(g.dtype), point.bu, point.bi, g)
    return replace(
        point, value=(total + penalty(data, point)) / data.n, multiplier=-along / point.radius / data.n, gap=np.inf
    ), g


def certified(
    data: Observed, point: Point, g: HostArray, goal: float, rng: np.random.Generator, last: bool
) -> tuple[Point, Triples]:
    """A balanced point whose slopes are g with its Frank-Wolfe gap, and the leading atoms of its gradient.

    In all rounds together the gap fails to be one with probability `norm_bound.CHANCE`. It is known well at its goal,
    or where `last` asks. The slopes are changed: their fourth powers are formed.
    """
    level, biases = max(point.multiplier * data.n, 0.0), bias_gain(data, point, g)
    unit = 2.0 ** floor(log2(max(float(g.max()), -float(g.min()), SMALLEST)))
    g /= unit
    operator, count, kind = scaled(data, g), max(FEWEST_ATOMS, point.rank), data.y.dtype
    if operator.is_narrow(count):
        atoms = operator.exact_triples(count, level / unit, kind)
        sigma = float(atoms.values[0]) * (1 + ROUNDING)
    else:
        enough = level + (goal - biases) * data.n / point.radius
        chance = CHANCE / (point.rounds * (point.rounds + 1))  # their sum is CHANCE
        atoms, sigma = bounded(
            operator, count, level / unit, rng, enough=enough / unit, known=last, chance=chance, dtype=kind
        )
    return with_gap(data, point, sigma * unit, biases), atoms._replace(values=atoms.values * unit)


def randomness(data: Observed, point: Point, key: int) -> np.random.Generator:
    """Of a round: no other has it, whatever led to that point; a proof must not know the matrix."""
    radius = np.frombuffer(np.float64(point.radius).tobytes(), np.uint32).tolist()
    return np.random.default_rng([key, point.rounds, point.steps, data.n, *radius])


def with_gap(data: Observed, point: Point, sigma: float, biases: float) -> Point:
    """max ⟨∇F, X − V⟩ over the ball and what the biases could gain; no predictions could gain more than the value."""
    gap = point.radius * (sigma / data.n - point.multiplier) + biases
    return replace(point, gap=max(min(gap, point.value - data.floor), 0.0))


def bias_gain(data: Observed, point: Point, g: HostArray) -> float:
    """What the biases could gain at most: F is strongly convex in them."""
    if not data.ridge[0]:
        return 0.0
    gu, gi = np.empty(len(point.bu)), np.empty(len(point.bi))
    times(data.ptr, data.cols, g, np.ones(len(point.bi)), gu)
    times_transposed(data.ptr, data.cols, g, np.ones(len(point.bu)), gi)
    gu += data.ridge[0] * point.bu
    gi += data.ridge[1] * point.bi
    return (float(gu @ gu) / data.ridge[0] + float(gi @ gi) / data.ridge[1]) / (2 * data.n)


class Scale(NamedTuple):
    """The preconditioner of the factors of one side: see `step_kernels.scale_of`."""

    weights: HostArray
    counts: HostArray
    pull: float
    ease: float
    curvature: float


def descend(data: Observed, point: Point, stop: Callable[[], bool], little: float) -> tuple[Point, bool, bool]:
    """Preconditioned conjugate gradients (Polak-Ribière) on the factors and the biases, with a search along the way.

    The preconditioner is the diagonal of the Gauss-Newton blocks. Where the factors fill their ball, the gradient is
    that of the Lagrange function, with the multiplier that makes it tangential. It ends where a Newton step with the
    preconditioner would gain as little as that. Returns whether the ball was filled at the end, and whether it
    ended for that reason.
    """
    n, radius = data.n, point.radius
    P, Q, bu, bi = point.P.copy(), point.Q.copy(), point.bu.copy(), point.bi.copy()
    arrays = [np.zeros_like(X) for X in (P, Q, P, Q, P, Q)]
    GP, GQ, oP, oQ, dP, dQ = arrays
    gu, gi, ou, oi, du, di = (np.zeros_like(b) for b in (bu, bi, bu, bi, bu, bi))
    ones_u, ones_i = np.ones(len(bu)), np.ones(len(bi))
    last = first = 0.0
    pulled, settled, steps = False, False, 0
    row_ridge, col_ridge = data.ridge
    columns = P.shape[1]
    whole = n <= MOST_KEPT
    X = np.empty((ROOM, n if whole else block_room(data.ptr)), P.dtype)
    biased = row_ridge > 0
    while steps < STEPS_A_ROUND:
        along, bends = gradients(*data.head, P, Q, bu, bi, biased, X, whole and steps > 0, GP, GQ, gu, gi)
        (size_p, weight_p), (size_q, weight_q) = sizes(data.p, data.row_counts, P), sizes(data.q, data.col_counts, Q)
        size = size_p + size_q
        pull = max(-along / radius, 0.0) if size >= 2 * radius * FULL else 0.0  # the multiplier
        curvature = bends / n
        ease = pull + 1e-9 * curvature * n  # rows without entries have no curvature of their own
        scale_p = Scale(data.p, data.row_counts, pull, ease, curvature * weight_q / n / columns)
        scale_q = Scale(data.q, data.col_counts, pull, ease, curvature * weight_p / n / columns)
        new_p, old_p = precondition(P, GP, oP, *scale_p)
        new_q, old_q = precondition(Q, GQ, oQ, *scale_q)
        new, old = new_p + new_q, old_p + old_q
        scale_u = Scale(ones_u, data.row_counts, row_ridge, row_ridge, curvature)
        scale_i = Scale(ones_i, data.col_counts, col_ridge, col_ridge, curvature)
        if row_ridge:  # biases are factors of one column
            new_u, old_u = precondition(bu[:, None], gu[:, None], ou[:, None], *scale_u)
            new_i, old_i = precondition(bi[:, None], gi[:, None], oi[:, None], *scale_i)
            new, old = new + new_u + new_i, old + old_u + old_i
        if not steps or (pull > 0) != pulled:
            first, pulled = new, pull > 0
        settled = 0.0 < new <= 2 * n * little
        if settled or new <= 0.0 or (steps >= LEAST_STEPS and new < SHRINK * first):
            break
        beta = max(0.0, (new - old) / last) if steps else 0.0
        sides = [(dP, GP, scale_p), (dQ, GQ, scale_q)]
        if row_ridge:
            sides += [(du[:, None], gu[:, None], scale_u), (di[:, None], gi[:, None], scale_i)]
        if sum(redirect(D, G, beta, *scale) for D, G, scale in sides) >= 0:
            for D, G, scale in sides:
                redirect(D, G, 0.0, *scale)
        oP, GP, oQ, GQ, ou, gu, oi, gi, last = GP, oP, GQ, oQ, gu, ou, gi, oi, new
        sums = moments(*data.head, P, Q, dP, dQ, bu, bi, du, di, biased, X)
        (cross_p, length_p), (cross_q, length_q) = crossed(data.p, P, dP), crossed(data.q, Q, dQ)
        shares = (0.0, 0.0, 0.0)
        if row_ridge:
            shares = (
                ridged(data, bu, bu, bi, bi), 2 * ridged(data, bu, du, bi, di), ridged(data, du, du, di, di)
            )  # fmt: skip
        norms = (size, 2 * (cross_p + cross_q), length_p + length_q)
        t = search(sums, norms, shares, radius, pulled)
        if data.loss.name == "poisson":
            t = shortened(data, (P, Q, bu, bi), (dP, dQ, du, di), norms, shares, pulled, radius, t)
        share = room(norms, radius, pulled, t)
        if whole:
            forward(X, t, share, biased)
        advance(P, dP, t, np.sqrt(share))
        advance(Q, dQ, t, np.sqrt(share))
        if row_ridge:
            advance(bu[:, None], du[:, None], t, 1.0)
            advance(bi[:, None], di[:, None], t, 1.0)
        steps += 1
        if t == 0.0 or stop():
            break
    return replace(point, P=P, Q=Q, bu=bu, bi=bi, steps=point.steps + steps), pulled, settled


def shortened(
    data: Observed,
    at: tuple[HostArray, HostArray, HostArray, HostArray],
    along: tuple[HostArray, HostArray, HostArray, HostArray],
    norms: Polynomial,
    shares: Polynomial,
    boundary: bool,
    radius: float,
    t: float,
) -> float:
    """The step, halved until F falls: the exponential of a count's loss lies below no parabola."""
    P, Q, bu, bi = at
    dP, dQ, du, di = along
    out = np.empty_like(data.y)
    here = slopes(*data.head, P, Q, bu, bi, out)[0] + 0.5 * shares[0]
    while t > 1e-9:
        size, step = P.dtype.type(np.sqrt(room(norms, radius, boundary, t))), P.dtype.type(t)
        total, _ = slopes(*data.head, (P + step * dP) * size, (Q + step * dQ) * size, bu + t * du, bi + t * di, out)
        if total + 0.5 * (shares[0] + t * (shares[1] + t * shares[2])) < here:
            return t
        t *= 0.5
    return 0.0
