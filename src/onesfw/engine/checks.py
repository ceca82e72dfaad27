"""From a user's arguments to a checked `Run`: every mistake raises before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from onesfw import schedules, trees
from onesfw.algorithms import MAXIMISED, Algorithm
from onesfw.algorithms.base import CORRECTED
from onesfw.arguments import number, whole_number
from onesfw.engine.evaluation import Evaluate, Every, evaluation_steps, evaluator_for, number_from
from onesfw.engine.programs import split
from onesfw.engine.run import Callbacks, Run, as_callbacks
from onesfw.engine.trace_keys import shape_key, trace_key
from onesfw.objectives import Objective
from onesfw.schedules.sizes import MOST_SAMPLES
from onesfw.sets import ConvexSet, VectorSet
from onesfw.sets.base import is_shape
from onesfw.trees import Array, DType, HostArray, Tree

LARGEST_CORRECTED = 1 << 24  # bytes of x: a corrected output keeps 86 points like it
MOST_REMEMBERED = 1_000  # objectives that were found to have second derivatives, or none
MEMBERSHIP = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-7}  # how far outside K x0 may lie

_has_product: dict[tuple[Hashable, Hashable], bool] = {}


@contextmanager
def checked_run(
    objective: Objective,
    constraint: ConvexSet,
    x0: Tree | None,
    sign: int,
    *,
    steps: int,
    algorithm: Algorithm,
    evaluate: Evaluate = None,
    every: Every = None,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    callbacks: Callbacks = (),
) -> Iterator[Run]:
    """From a user's arguments to a checked run, in x0's precision, which holds inside the block.

    The one preamble of `minimize`, `maximize`, comparisons and estimates of constants: types first, then the starting
    point, then everything that can be found out about the run before it is compiled.
    """
    require_types(objective, constraint, algorithm)
    constraint = constraint.over(objective)
    start = starting_point(x0, constraint)
    with jax.enable_x64(trees.wide() or trees.dtype_of(start) == np.float64):
        yield build_run(
            objective,
            constraint,
            start,
            x0 is not None,
            sign,
            steps=steps,
            algorithm=algorithm,
            evaluate=evaluate,
            every=every,
            gap_tol=gap_tol,
            time_limit=time_limit,
            callbacks=callbacks,
        )


def build_run(
    objective: Objective,
    constraint: ConvexSet,
    start: Tree,
    given: bool,
    sign: int,
    *,
    steps: int,
    algorithm: Algorithm,
    evaluate: Evaluate,
    every: Every,
    gap_tol: float | None,
    time_limit: float | None,
    callbacks: Callbacks,
) -> Run:
    """The run, checked; to be called in the precision of `start`, which `starting_point` made."""
    steps = whole_number(steps, "steps", 1)
    gap_tol = None if gap_tol is None else number(gap_tol, "gap_tol", 0, strict=True)
    time_limit = None if time_limit is None else number(time_limit, "time_limit", 0, strict=True)
    callbacks = as_callbacks(callbacks)
    if algorithm.setting in MAXIMISED and sign > 0:
        raise ValueError(
            f"algorithm: the {algorithm.setting} setting maximises; call maximize (in a sweep, sense='maximize'), or "
            "choose another setting"
        )
    x0, inside = first_points(algorithm, start, given, constraint, gap_tol)
    if algorithm.output == CORRECTED and not can_be_corrected(objective, x0):
        algorithm = algorithm.uncorrected or replace(algorithm, output="last")
    estimator = algorithm.estimator_for(objective).for_steps(steps, x0)
    samples = estimator.drawn(objective, steps, steps)
    if max(samples, steps) > MOST_SAMPLES:
        raise ValueError(
            f"steps: {steps:,} steps draw {samples:,} samples; at most {MOST_SAMPLES:,} can be numbered, lower steps "
            "or the batch"
        )
    objective.check(trees.shapes(x0), samples)
    check_domain(objective, constraint, trees.shapes(x0))
    if evaluator_for(evaluate, objective, constraint, sign) is None and gap_tol is not None:
        raise ValueError("gap_tol needs a gap: leave evaluate=None, or give a number of samples")
    if callable(evaluate):
        number_from(evaluate, x0)  # better now than after the last step
    check_schedules(algorithm, steps)
    return Run(
        objective=objective,
        constraint=constraint,
        algorithm=algorithm,
        estimator=estimator,
        step=algorithm.step.fit(constraint, x0),
        x0=x0,
        inside=inside,
        steps=steps,
        sign=sign,
        evaluate=evaluate,
        pauses=evaluation_steps(every, steps, gap_tol is not None),
        gap_tol=gap_tol,
        time_limit=time_limit,
        callbacks=callbacks,
    )


def over_another(run: Run, constraint: ConvexSet, x0: Tree | None) -> Run:
    """A checked run over another set of that class and shape: what does not depend on the set is not checked again."""
    constraint = constraint.over(run.objective)
    start = starting_point(x0, constraint)
    first, inside = first_points(run.algorithm, start, x0 is not None, constraint, run.gap_tol)
    check_domain(run.objective, constraint, trees.shapes(first))
    step = run.algorithm.step.fit(constraint, first)
    return replace(run, constraint=constraint, step=step, x0=first, inside=inside)


def first_points(
    algorithm: Algorithm, start: Tree, given: bool, constraint: ConvexSet, gap_tol: float | None
) -> tuple[Tree, Tree]:
    """x_1, and a member of K: continuous greedy starts at 0, which need not lie in it."""
    greedy = algorithm.step.from_zero
    inside = member(start, given and not greedy, constraint)
    if greedy:
        check_continuous_greedy(start, given, constraint, algorithm.setting, gap_tol)
    return (trees.zeros_like(inside) if greedy else inside), inside


def require_types(objective: object, constraint: object, algorithm: object) -> None:
    """Raise TypeError where one of the three nouns is something else."""
    kinds: tuple[tuple[object, type, str, str], ...] = (
        (objective, Objective, "objective", "an Expectation, NonOblivious or FiniteSum"),
        (constraint, ConvexSet, "constraint", "a set from onesfw.sets, such as L1Ball(5.0, shape=20)"),
        (algorithm, Algorithm, "algorithm", "a recipe that was called, such as one_sfw()"),
    )
    for value, kind, argument, wanted in kinds:
        if not isinstance(value, kind):
            raise TypeError(f"{argument} must be {wanted}, got {getattr(value, '__name__', repr(value))}")


def starting_point(x0: Tree | None, constraint: ConvexSet) -> Tree:
    """x0 as arrays of one floating dtype; without it the set's own shapes, in float32."""
    if x0 is None:
        template = constraint.template()
        if template is None:
            name = constraint.without_shape()
            raise TypeError(f"x0: {name} does not know its shape; pass x0= here, or shape= to the set")
        return jax.tree.map(lambda shape: jax.ShapeDtypeStruct(shape, np.float32), template, is_leaf=is_shape)
    leaves, structure = jax.tree.flatten(x0)
    if not leaves:
        raise ValueError("x0 holds no array; pass an array or a pytree of arrays")
    with np.errstate(over="ignore"):  # an infinite x0 is refused below
        wide = any(getattr(leaf, "dtype", None) == np.float64 for leaf in leaves)
        plain = np.float64 if wide else np.float32  # a number beside arrays has their precision
        arrays = [plain(leaf) if type(leaf) is float else leaf for leaf in leaves]
    if any(np.ma.is_masked(leaf) for leaf in leaves):
        raise ValueError("x0 has masked entries; fill them with x0.filled(0) or another value")
    arrays = [leaf if isinstance(leaf, jax.Array) else np.asarray(leaf) for leaf in arrays]
    for array in arrays:
        if array.dtype not in MEMBERSHIP:
            raise TypeError(f"x0 must hold float32 or float64 numbers, got {array.dtype}: convert with .astype(float)")
        if array.size == 0:
            raise ValueError("x0 has an empty leaf; every leaf needs at least one entry")
    if len({array.dtype for array in arrays}) > 1:
        raise TypeError("x0 mixes float32 and float64 leaves; give all leaves one dtype")
    return jax.tree.unflatten(structure, arrays)


def member(start: Tree, given: bool, constraint: ConvexSet) -> Tree:
    """The starting point, checked against the set's shape, its oracle and its membership test."""
    check_shape(start, constraint)
    check_range(constraint, trees.dtype_of(start))
    name = type(constraint).__name__
    try:
        vertex = jax.eval_shape(constraint.lmo, trees.shapes(start))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"constraint: {name}.lmo failed on x of shape {trees.describe(start)}: {reason}") from error
    if trees.describe(vertex) != trees.describe(start):
        raise ValueError(
            f"constraint: {name}.lmo must return the shapes of x, {trees.describe(start)}, got {trees.describe(vertex)}"
        )
    if not given:
        x0 = jax.tree.map(jnp.asarray, constraint.start(start))
        if not bool(trees.all_finite(x0)):
            raise ValueError(f"constraint: {name}.start gave NaN or infinite values; pass x0=, or scale the problem")
        return x0
    x0 = jax.tree.map(jnp.asarray, start)
    if not bool(trees.all_finite(x0)):
        raise ValueError("x0 holds NaN or infinite values; start from a member of the constraint")
    if not bool(constraint.contains(x0, MEMBERSHIP[trees.dtype_of(x0)])):
        remedy = "leave x0 out to start at a member the set chooses"
        raise ValueError(
            f"x0 lies outside the constraint {name}; {remedy}, or move it inside with constraint.project(x0)"
        )
    return x0


def check_shape(start: Tree, constraint: ConvexSet) -> None:
    """Raise ValueError where x0 does not have the set's shape; a vector set takes any tree of the right size."""
    template = constraint.template()
    if template is None:
        return
    wanted = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, np.float32), template, is_leaf=is_shape)
    same = trees.describe(wanted) == trees.describe(start)
    size, expected = (sum(leaf.size for leaf in jax.tree.leaves(t)) for t in (start, wanted))
    several = len(jax.tree.leaves(start)) > 1
    if not same and not (isinstance(constraint, VectorSet) and several and size == expected):
        raise ValueError(
            f"x0 has shape {trees.describe(start)}, but the constraint {type(constraint).__name__} has shape "
            f"{trees.describe(wanted)}; give both the same shape"
        )


def check_range(constraint: ConvexSet, dtype: DType) -> None:
    """Raise ValueError where a number of the set, which is kept in float64, is infinite in x's dtype."""
    largest = float(np.finfo(dtype).max)
    for leaf in jax.tree.leaves(constraint):
        if trees.is_floating(leaf) and leaf.dtype.itemsize > dtype.itemsize:
            beyond = np.isfinite(leaf) & (np.abs(leaf) > largest)
            if np.any(beyond):
                raise ValueError(
                    f"constraint: {type(constraint).__name__} holds {np.asarray(leaf)[beyond][0]:g}, beyond the range "
                    f"of {dtype}; scale the problem, or pass a float64 x0"
                )


def check_domain(objective: Objective, constraint: ConvexSet, like: Tree) -> None:
    """Raise ValueError where K holds points at which F has no meaning."""
    if objective.domain is None:
        return
    low, high = objective.domain
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    if not constraint.in_box(low - slack, high + slack, like):
        raise ValueError(
            f"constraint: {type(objective).__name__} is defined for entries between {low:g} and {high:g} only, and "
            f"{type(constraint).__name__} holds others; use a Box({low:g}, {high:g}), a Knapsack or a MatroidPolytope"
        )


def check_continuous_greedy(
    start: Tree, given: bool, constraint: ConvexSet, setting: str, gap_tol: float | None
) -> None:
    """The terms of continuous greedy (Theorem 3: x_1 = 0, K in the non-negative orthant)."""
    if given and any(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(start)):
        raise ValueError(f"x0: the {setting} setting starts at 0; leave x0 out, or pass zeros to set the dtype")
    if gap_tol is not None:
        raise ValueError(f"gap_tol: the {setting} setting runs all its steps; use time_limit or fewer steps")
    if not constraint.nonnegative(trees.shapes(start)):
        raise ValueError(
            f"constraint: the {setting} setting needs a set of non-negative vectors, which "
            f"{type(constraint).__name__} is not; use SubSimplex, Knapsack or a Box with lower >= 0"
        )


def can_be_corrected(objective: Objective, x0: Tree) -> bool:
    """Whether one sample has a Hessian-vector product, and points of x's size can be kept by the dozen."""
    if trees.size_in_bytes(x0) > LARGEST_CORRECTED:
        return False
    arrays, join = split(objective)
    name, shapes = trace_key(objective), shape_key((arrays, x0))
    found = _has_product.get((name, shapes))
    if found is None:
        found = has_product(arrays, join, x0)
        if name is not None and len(_has_product) < MOST_REMEMBERED:
            _has_product[name, shapes] = found
    return found


def has_product(
    arrays: list[Array | HostArray], join: Callable[[list[Array]], Objective], x0: Tree
) -> bool:  # fmt: skip
    """Whether one sample has a Hessian-vector product."""
    dtype = trees.dtype_of(x0)

    def product(arrays: list[Array], key: Array, x: Tree) -> Tree:
        given = join(arrays)
        return given.at(given.draw(key, jnp.int32(0)), x, jnp.zeros((), dtype)).hvp(x, x)

    def as_run(leaf: Array | HostArray) -> jax.ShapeDtypeStruct:
        kind = dtype if trees.is_floating(leaf) else jax.dtypes.canonicalize_dtype(leaf.dtype)
        return jax.ShapeDtypeStruct(leaf.shape, kind)

    try:
        jax.eval_shape(product, [as_run(leaf) for leaf in arrays], jax.random.key(0), trees.shapes(x0))
    except Exception:  # JAX cannot differentiate the gradient; what is wrong with F itself, the run will say
        return False
    return True


def check_schedules(algorithm: Algorithm, steps: int) -> None:
    """Raise ValueError where ρ or η leaves [0, 1], or a continuous-greedy run would not end in K."""
    schedules.check(algorithm.rho, "rho", steps)
    if algorithm.t0 > MOST_SAMPLES:
        raise ValueError(f"t0 must be at most {MOST_SAMPLES:,}, got {algorithm.t0:,}; steps are numbered in 32 bits")
    schedules.check(algorithm.eta, "eta", steps, algorithm.t0, algorithm.step.largest)
    if algorithm.step.from_zero:
        total = sum(
            float(np.sum(algorithm.eta(np.arange(t, min(t + 1_000_000, steps + 1)) + algorithm.t0, steps)))
            for t in range(1, steps + 1, 1_000_000)
        )
        if abs(total - 1.0) > 1e-6:
            raise ValueError(
                f"eta must add up to 1 over a {algorithm.setting} run; over {steps:,} steps it gives {total:g}"
            )
