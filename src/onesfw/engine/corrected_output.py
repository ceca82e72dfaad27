"""The corrected output: the minimiser of a quadratic model of F, as far as samples that the run did not see confirm it.

A run's last iterate forgets most of what the run has learnt. With x̄ and d̄ ≈ ∇F(x̄), averages in which the late steps
weigh most, and H the mean Hessian of B new samples at x̄, the model ⟨d̄, x − x̄⟩ + ½⟨x − x̄, H(x − x̄)⟩ is minimised over
the hull of a few late iterates and of new vertices, which the oracle finds at the model's own gradients. B other
samples then say how far to go from x_{T+1} towards the minimiser. Where the gradients of both halves at x̄ show that d̄
is further off than they are, as where one x fits all samples and their noise vanishes, they take its place. A heuristic
of this library; the result lies in K, for it is a mean of members.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from onesfw import trees
from onesfw.algorithms.base import LINE_POINTS, MOST_VERTICES, SNAPSHOTS
from onesfw.capabilities import OBLIVIOUS
from onesfw.engine.compiled_loop import RunState, streams
from onesfw.estimators import OneSample
from onesfw.estimators.sampling import block_size, mean_over
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet
from onesfw.trees import Array, HostArray, Tree

CAPACITY = SNAPSHOTS + 1 + MOST_VERTICES
ENOUGH = 500.0  # samples behind d, t/c, below which its noise would decide
SETTLED = 0.01  # of the model's first gap: then it is solved
TURNS = 3 * CAPACITY  # of the active-set method, after each new point
ASTRAY = 3.0  # times the mean squared error of B samples' mean gradient: then that of d̄ is too large
NOISY = 2.0  # below this c the drift is small, and d_T itself averages over all samples


class Sizes(NamedTuple):
    """What the host tells the correction."""

    known: Array
    """how many late iterates there are"""
    first: Array
    """the number of the first sample that the run did not see"""
    batch: Array
    """B"""
    vertices: Array
    """new vertices, at most"""
    steps: Array
    """T, the steps that were done"""


class Corrected(NamedTuple):
    """The point, and what it has cost."""

    x: Tree
    products: Array
    """directions along which Hessian-vector products of the B samples were taken"""
    lmo_calls: Array
    vertices: Tree
    """the new vertices, as vectors in the first rows; () where they are not kept"""
    found: Array
    """how many of them there are"""


Correct = Callable[[Array, RunState, Tree, Tree, Sizes], Corrected]


class Model(NamedTuple):
    """The quadratic model on the hull of the points found so far, as vectors."""

    points: Tree
    """the points; () where they are left out, as the images are"""
    images: Tree
    """H(v − x̄) for every point v"""
    curvature: Array
    """⟨u, H w⟩ for every pair of points, u and w counted from x̄"""
    slopes: Array
    """⟨d̄, v − x̄⟩"""
    weights: Array
    size: Array
    gap: Array
    first_gap: Array
    calls: Array
    open: Array
    """whether another vertex is wanted"""
    sound: Array
    """whether the model is convex on the hull, where that is asked for"""


def corrected_output(
    objective: Objective, constraint: ConvexSet, estimator: OneSample, sign: int, convex: bool, keeps: bool = False
) -> Correct:
    """The function (key, state, x, snapshots, sizes) ↦ the corrected output.

    x is the run's own output, the snapshots are late iterates along a leading axis of length `SNAPSHOTS`.

    Args:
        objective, constraint, estimator, sign: the run's.
        convex: whether F is known to be convex, so that a model which is not owes it to its few samples; elsewhere
            such a model is not trusted, and x is the output.
        keeps: whether the new vertices are given back, for `Result.atoms`.
    """

    def run(key: Array, state: RunState, x: Tree, snapshots: Tree, sizes: Sizes) -> Corrected:
        c = estimator.constant(state.estimate)
        space = jnp.zeros((MOST_VERTICES, trees.ravel(x)[0].size), trees.dtype_of(x))
        nothing = Corrected(x, jnp.int32(0), jnp.int32(0), space if keeps else (), jnp.int32(0))
        return lax.cond(enough(sizes.steps, c), lambda: improved(key, state, x, snapshots, sizes, c), lambda: nothing)

    def improved(key: Array, state: RunState, x: Tree, snapshots: Tree, sizes: Sizes, c: Array) -> Corrected:
        means, samples = state.chosen, streams(key).draws
        last, unravel = trees.ravel(x)
        noisy = c < NOISY

        def either(now: Tree, mean: Tree) -> Array:
            return jnp.where(noisy, trees.ravel(now)[0], trees.ravel(mean)[0])

        centre = either(state.previous, means.x)
        slope = sign * either(estimator.direction(state.estimate), means.d)
        place, block = unravel(centre), block_size(x)
        baseline = state.estimate.baseline if estimator.correction.uses_baseline else jnp.zeros((), last.dtype)

        def surrogate(number: Array) -> Tree:
            return objective.at(estimator.sample(objective, samples, number), place, baseline)

        def image(u: Array, first: Array = sizes.first) -> Array:
            """H u, from B samples."""
            along = unravel(u)
            mean = mean_over(lambda i: surrogate(i).hvp(place, along)[1], first, sizes.batch, block, x)
            return sign * trees.ravel(mean)[0]

        def gradient(y: Array, first: Array) -> tuple[Array, Array]:
            """The mean gradient at y of B samples, and the mean of their squared norms."""
            point = unravel(y)

            def one(i: Array) -> tuple[Tree, Array]:
                g = surrogate(i).gradient(point)
                return g, trees.squared_norm(g)

            mean, square = mean_over(one, first, sizes.batch, block, (x, c))
            return sign * trees.ravel(mean)[0], square

        second = sizes.first + sizes.batch
        if OBLIVIOUS in objective.offers:
            (one, other), squares = lax.map(partial(gradient, centre), jnp.stack([sizes.first, second]))
            error = jnp.maximum(squares[0] - one @ one, 0) / sizes.batch.astype(c.dtype)
            astray = (slope - one) @ (slope - other) > ASTRAY * error  # on the left is the squared error of d̄, unbiased
            offset = jnp.where(astray, 0, slope - other)
            slope = jnp.where(astray, one, slope)
        else:
            offset = slope

        def confirmed(y: Array) -> Array:
            """∇F(y) as the other B samples see it; where z depends on x, from their Hessians at x̄."""
            if OBLIVIOUS in objective.offers:
                return gradient(y, second)[0] + offset
            return image(y - centre, second) + offset

        def oracle(g: Array) -> Array:
            return trees.ravel(constraint.lmo(unravel(g)))[0].astype(last.dtype)

        late = jax.vmap(lambda leaf: trees.ravel(leaf)[0])(snapshots)
        trusted = (
            convex and OBLIVIOUS in objective.offers
        )  # where z depends on x, F is seldom convex though the loss is
        model = solved(last, late, centre, slope, sizes, image, oracle, trusted)
        target = model.weights @ model.points
        share = line_search(last, target, confirmed)
        x_new = (1 - share) * last + share * target  # not last + share (target − last), which may leave K by rounding
        good = model.sound & jnp.all(jnp.isfinite(x_new))
        first = sizes.known + 1
        vertices = lax.dynamic_slice_in_dim(model.points, first, MOST_VERTICES) if keeps else ()
        return Corrected(
            unravel(jnp.where(good, x_new, last)), model.size, model.calls, vertices, jnp.maximum(model.size - first, 0)
        )

    return run


def enough(steps: int | Array, c: Array | HostArray) -> Array | HostArray:
    """Whether enough samples are behind d."""
    return steps >= ENOUGH * c


def snapshot_space(x: Tree, batched: bool) -> Tree:
    """Room for the late iterates, before there are any; x holds several replicates where it is batched."""

    def space(leaf: Array) -> Array:
        before = leaf.shape[:1] if batched else ()
        return jnp.zeros((*before, SNAPSHOTS, *leaf.shape[len(before) :]), leaf.dtype)

    return jax.tree.map(space, x)


@partial(jax.jit, static_argnames="batched")
def with_snapshot(snapshots: Tree, x: Tree, batched: bool) -> Tree:
    """The late iterates with x before them; the oldest leaves."""
    axis = 1 if batched else 0

    def pushed(held: Array, leaf: Array) -> Array:
        kept = lax.slice_in_dim(held, 0, SNAPSHOTS - 1, axis=axis)
        return jnp.concatenate([jnp.expand_dims(leaf, axis), kept], axis)

    return jax.tree.map(pushed, snapshots, x)


def solved(
    last: Array,
    late: Array,
    centre: Array,
    slope: Array,
    sizes: Sizes,
    image: Callable[[Array], Array],
    oracle: Callable[[Array], Array],
    convex: bool,
) -> Model:
    """The model, minimised over the hull of the late iterates and as many new vertices as it takes."""
    dtype, d = last.dtype, last.size
    at_first = sizes.known + 1
    most = at_first + sizes.vertices
    start = Model(
        points=jnp.zeros((CAPACITY, d), dtype),
        images=jnp.zeros((CAPACITY, d), dtype),
        curvature=jnp.zeros((CAPACITY, CAPACITY), dtype),
        slopes=jnp.zeros(CAPACITY, dtype),
        weights=jnp.zeros(CAPACITY, dtype).at[0].set(1),
        size=jnp.int32(0),
        gap=jnp.asarray(jnp.inf, dtype),
        first_gap=jnp.asarray(jnp.inf, dtype),
        calls=jnp.int32(0),
        open=jnp.asarray(True),
        sound=jnp.asarray(True),
    )

    def given(model: Model) -> tuple[Model, Array]:
        """The next of the points that the run has left."""
        return light(model), jnp.where(model.size == 0, last, late[jnp.maximum(model.size - 1, 0)])

    def found(model: Model) -> tuple[Model, Array]:
        """The minimiser over the hull so far, and the vertex that the oracle gives at its gradient."""
        among = jnp.arange(CAPACITY) < model.size
        shift, sound = convex_shift(model.curvature, among, convex)
        weights = on_simplex(model.curvature + shift, model.slopes, model.weights, among)
        g = slope + weights @ model.images
        vertex = oracle(g)
        gap = g @ (weights @ model.points - vertex)
        first_gap = jnp.where(model.calls == 0, gap, model.first_gap)
        wanted = sound & (gap > SETTLED * first_gap) & (model.size < most)
        return light(model)._replace(
            weights=weights, gap=gap, first_gap=first_gap, calls=model.calls + 1, open=wanted, sound=sound
        ), vertex

    def light(model: Model) -> Model:
        """The model without its large arrays, which a condition would copy."""
        return model._replace(points=(), images=())

    def turn(model: Model) -> Model:
        """The model with one point more, if another is wanted."""
        seen, point = lax.cond(model.size < at_first, given, found, model)
        k, new = model.size, seen.open.astype(jnp.int32)
        u = jnp.where(seen.open, point - centre, 0)
        product = lax.cond(seen.open, image, jnp.zeros_like, u)
        row = ((model.points - centre) @ product + model.images @ u) / 2
        row = jnp.where(jnp.arange(CAPACITY) < k, row, 0).at[k].set(u @ product)
        return seen._replace(
            points=model.points.at[k].set(jnp.where(seen.open, point, 0)),
            images=model.images.at[k].set(product),
            curvature=model.curvature.at[k].set(row).at[:, k].set(row),
            slopes=model.slopes.at[k].set(slope @ u),
            size=k + new,
        )

    return lax.while_loop(lambda model: model.open, turn, start)


@partial(jax.jit, static_argnames="convex", inline=True)  # traced once, not at every call of `minimize`
def convex_shift(curvature: Array, among: Array, convex: bool) -> tuple[Array, Array]:
    """What makes the form definite along the hull, and whether it may be trusted.

    Of a convex F it is the few samples that make the model indefinite, and a multiple of the identity mends it.
    """
    count = jnp.sum(among).astype(curvature.dtype)
    mean = among / count
    centred = jnp.where(among[:, None], curvature - (mean @ curvature)[None, :], 0)
    centred = jnp.where(among[None, :], centred - (centred @ mean)[:, None], 0)
    info = jnp.finfo(curvature.dtype)
    size = jnp.maximum(jnp.max(jnp.abs(centred)), info.tiny)  # squares of what is left neither vanish nor overflow
    centred = (centred + centred.T) / (2 * size)
    identity = jnp.eye(len(curvature), dtype=curvature.dtype)
    rounding = 100 * info.eps * jnp.maximum(jnp.linalg.norm(centred), 1) * identity
    # NaN where it is not definite; a tenth of the spectrum's time.
    definite = jnp.all(jnp.isfinite(jnp.linalg.cholesky(centred + rounding)))
    if not convex:
        return jnp.zeros_like(curvature), definite
    shift = lax.cond(definite, lambda: jnp.zeros_like(size), lambda: -1.01 * size * jnp.linalg.eigvalsh(centred)[0])
    return jnp.maximum(shift, 0) * identity, jnp.asarray(True)


@partial(jax.jit, inline=True)
def on_simplex(curvature: Array, slopes: Array, weights: Array, among: Array) -> Array:
    """argmin of ⟨slopes, w⟩ + ½⟨w, curvature w⟩ over the simplex of the points `among`, from `weights` on.

    A primal active-set method: the minimiser over the free points alone, as far towards it as no weight falls below 0;
    then the point with the least derivative is freed, until none is left that would lower the value.
    """
    eps = jnp.finfo(slopes.dtype).eps
    steepest = jnp.max(jnp.where(among, jnp.abs(slopes), 0))
    size = jnp.maximum(jnp.max(jnp.diagonal(curvature)), jnp.maximum(eps * steepest, jnp.finfo(slopes.dtype).tiny))
    form, linear = curvature / size, slopes / size  # F may be linear
    form = form + jnp.diag(100 * eps * (jnp.diagonal(form) + eps))  # points may repeat
    tolerance = 10 * eps * jnp.max(jnp.where(among, jnp.abs(linear), 0))

    def turn(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        w, free, _, turns = state
        z = on_face(form, linear, free)
        below = free & (z < 0)
        room = jnp.where(below, w / jnp.where(below, w - z, 1), jnp.inf)
        stops = jnp.argmin(room)
        blocked = below[stops]
        derivative = linear + form @ z
        promise = jnp.where(among & ~free, derivative @ z - derivative, -jnp.inf)
        entering = jnp.argmax(promise)
        wanted = promise[entering] > tolerance
        w = jnp.where(blocked, jnp.maximum(w + jnp.minimum(room[stops], 1) * (z - w), 0), z)
        w = jnp.where(blocked & (jnp.arange(len(w)) == stops), 0, w)
        freed = jnp.where(wanted, free.at[entering].set(True), free)
        return w, jnp.where(blocked, free.at[stops].set(False), freed), ~blocked & ~wanted, turns + 1

    start = (weights, weights > 0, jnp.asarray(False), jnp.int32(0))
    w = lax.while_loop(lambda state: ~state[2] & (state[3] < TURNS), turn, start)[0]
    return w / jnp.sum(w)


def on_face(form: Array, linear: Array, free: Array) -> Array:
    """The minimiser over the points that are free, weights of any sign that add up to 1."""
    count = len(linear)
    inside = free.astype(linear.dtype)
    matrix = jnp.where(free[:, None] & free[None, :], form, 0) + jnp.diag(1 - inside)
    system = jnp.zeros((count + 1, count + 1), linear.dtype).at[:count, :count].set(matrix)
    system = system.at[:count, count].set(inside).at[count, :count].set(inside)
    return jnp.linalg.solve(system, jnp.append(-linear * inside, 1.0))[:count] * inside


def line_search(last: Array, target: Array, gradient: Callable[[Array], Array]) -> Array:
    """s in [0, 1] that minimises F along last + s (target − last), by two secant steps on its derivative.

    Where F falls at both ends the middle is asked: if it rises there, F is not convex, and s lies before it.
    """
    towards = target - last

    def inner(at_start: Array, at_end: Array) -> Array:
        return jnp.where(at_end > 0, root(at_start, at_end), 0.5)

    def ask(i: Array, seen: Array) -> Array:
        """The derivative at s = 0, at s = 1 and between."""
        along = jnp.where(i == 2, inner(seen[0], seen[1]), i.astype(last.dtype))
        return seen.at[i].set(gradient(last + along * towards) @ towards)

    at_start, at_end, between = lax.fori_loop(0, LINE_POINTS, ask, jnp.zeros(LINE_POINTS, last.dtype))
    middle = inner(at_start, at_end)
    before = middle * root(at_start, between)
    after = middle + (1 - middle) * root(between, at_end)
    inside = jnp.where(between > 0, before, after)
    falls = (at_end <= 0) & (between <= 0)
    return jnp.where(at_start >= 0, 0.0, jnp.where(falls, 1.0, inside)).astype(last.dtype)


def root(low: Array, high: Array) -> Array:
    """Where in [0, 1] a line from `low` to `high` crosses 0."""
    rise = high - low
    return jnp.clip(jnp.where(rise > 0, -low / jnp.where(rise > 0, rise, 1), 1.0), 0.0, 1.0)
