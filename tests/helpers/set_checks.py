"""What every set must satisfy, as functions of a case: a set, the shape of x, and an independent minimum."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from onesfw import trees
from onesfw.sets import ConvexSet

DTYPES = ["float32", "float64"]
TOLERANCE = {"float32": 2e-5, "float64": 1e-9}

lmo = eqx.filter_jit(lambda constraint, d: constraint.lmo(d))
contains = eqx.filter_jit(lambda constraint, x, tol: constraint.contains(x, tol))
project = eqx.filter_jit(lambda constraint, y: constraint.project(y))


@dataclass(frozen=True)
class Case:
    """A set, the shapes of its members, and min over K of ⟨d, v⟩ by other means (d a float64 vector)."""

    name: str
    constraint: ConvexSet
    shapes: Any
    least: Callable[[np.ndarray], float]
    exact_diameter: bool = True
    exact_radius: bool = True
    projects: bool = True
    accuracy: float = 0.0  # the relative accuracy of an iterative oracle
    nonnegative: bool = False

    def like(self, dtype: str) -> Any:
        return jax.tree.map(
            lambda s: jnp.zeros(s, dtype),
            self.shapes,
            is_leaf=lambda n: isinstance(n, tuple) and all(isinstance(m, int) for m in n),
        )

    def tree(self, vector: np.ndarray, dtype: str) -> Any:
        return trees.ravel(self.like(dtype))[1](jnp.asarray(vector, dtype))

    @property
    def size(self) -> int:
        with precision("float32"):
            return trees.ravel(self.like("float32"))[0].size

    def tolerance(self, dtype: str) -> float:
        return max(TOLERANCE[dtype], self.accuracy)


@contextlib.contextmanager
def precision(dtype: str) -> Iterator[None]:
    with jax.enable_x64(dtype == "float64"):
        yield


def vector(tree: Any) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(tree)])


def over_vertices(vertices: Any) -> Callable[[np.ndarray], float]:
    """min over the rows of an array."""
    rows = np.asarray(vertices, np.float64)
    return lambda d: float(np.min(rows @ d))


def over_lp(**problem: Any) -> Callable[[np.ndarray], float]:
    """min by HiGHS."""

    def least(d: np.ndarray) -> float:
        solution = linprog(d, **problem)
        assert solution.status == 0, solution.message
        return float(solution.fun)

    return least


def directions(case: Case, count: int = 12) -> list[np.ndarray]:
    """Random dense, sparse and integer directions (with ties), axes, and zero."""
    rng = np.random.default_rng(0)
    dense = list(rng.normal(size=(count, case.size)))
    sparse = [d * (rng.random(case.size) < 0.4) for d in rng.normal(size=(count // 2, case.size))]
    tied = list(rng.integers(-2, 3, size=(count, case.size)).astype(float))
    axes = [sign * np.eye(case.size)[i] for i in range(min(3, case.size)) for sign in (1.0, -1.0)]
    return [*dense, *sparse, *tied, *axes, np.zeros(case.size), np.ones(case.size), -np.ones(case.size)]


def check_lmo(case: Case, dtype: str) -> None:
    """The oracle attains the independent minimum, in K and in x's dtype."""
    with precision(dtype):
        for d in directions(case):
            d = np.float32(d).astype(np.float64)  # the same direction for both
            vertex = lmo(case.constraint, case.tree(d, dtype))
            assert jax.tree.structure(vertex) == jax.tree.structure(case.like(dtype))
            assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(vertex))
            least = case.least(d)
            assert vector(vertex) @ d <= least + case.tolerance(dtype) * max(1.0, abs(least)), d
            # nor better than the minimum: the vertex would lie outside
            assert vector(vertex) @ d >= least - 10 * TOLERANCE[dtype] * max(1.0, abs(least)), d
            assert contains(case.constraint, vertex, 10 * TOLERANCE[dtype])


def member(case: Case, rng: np.random.Generator, dtype: str) -> np.ndarray:
    """A random mixture of a few vertices."""
    vertices = [vector(lmo(case.constraint, case.tree(d, dtype))) for d in rng.normal(size=(4, case.size))]
    return rng.dirichlet(np.full(4, 0.5)) @ np.stack(vertices)


def check_optimal_against_members(case: Case, dtype: str, examples: int = 12) -> None:
    """No random member beats lmo(d), whatever the scale of d; every mixture is a member."""
    rng = np.random.default_rng(1)
    with precision(dtype):
        members = [member(case, rng, dtype) for _ in range(8)]
        for x in members:
            assert contains(case.constraint, case.tree(x, dtype), 10 * TOLERANCE[dtype])
        start = case.constraint.start(case.like(dtype))
        assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(start))
        assert contains(case.constraint, start, 10 * TOLERANCE[dtype])
        members.append(vector(start))

        scales = st.sampled_from([1e-20, 1e-3, 1.0, 1e3, 1e18])
        entries = st.floats(-8, 8, width=16)

        @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
        @given(arrays(np.float64, case.size, elements=entries), scales)
        def holds(d: np.ndarray, scale: float) -> None:
            d = np.float32(d * scale).astype(np.float64)
            vertex = lmo(case.constraint, case.tree(d, dtype))
            assert contains(case.constraint, vertex, 10 * TOLERANCE[dtype])
            value = vector(vertex) @ d
            slack = 20 * case.tolerance(dtype) * (abs(value) + np.linalg.norm(d))
            assert all(value <= x @ d + slack for x in members)

        holds()


def check_project(case: Case, dtype: str) -> None:
    """p = project(y) lies in K and ⟨y − p, v − p⟩ ≤ 0 for every v in K; members stay where they are."""
    rng = np.random.default_rng(2)
    with precision(dtype):
        for scale in (0.3, 1.0, 10.0):
            for y in scale * rng.normal(size=(4, case.size)):
                y = vector(case.tree(y, dtype))
                nearest = project(case.constraint, case.tree(y, dtype))
                assert contains(case.constraint, nearest, 10 * TOLERANCE[dtype])
                p = vector(nearest)
                best = -case.least(-(y - p))  # max over v in K of ⟨y − p, v⟩
                assert best - (y - p) @ p <= 30 * TOLERANCE[dtype] * max(1.0, scale) ** 2 * (1 + np.linalg.norm(p))
        x = member(case, rng, dtype)
        again = vector(project(case.constraint, case.tree(x, dtype)))
        np.testing.assert_allclose(again, x, atol=100 * TOLERANCE[dtype] * (1 + np.linalg.norm(x)))


def check_sizes(case: Case) -> None:
    """diameter and radius bound what vertices show, and are attained where they are said to be exact."""
    rng = np.random.default_rng(3)
    with precision("float64"):
        looks = [*directions(case), *rng.normal(size=(40, case.size))]
        vertices = np.stack([vector(lmo(case.constraint, case.tree(d, "float64"))) for d in looks])
        radius, diameter = case.constraint.radius, case.constraint.diameter
        assert isinstance(radius, float)
        assert isinstance(diameter, float)
        lengths = np.linalg.norm(vertices, axis=1)
        apart = np.linalg.norm(vertices[:, None] - vertices[None], axis=2)
        assert lengths.max() <= radius * (1 + 1e-6)
        assert apart.max() <= diameter * (1 + 1e-6) + 1e-9
        if case.exact_radius:
            assert climb(case, vertices[lengths.argmax()], np.zeros(case.size)) >= radius * (1 - 1e-6) - case.accuracy
        if case.exact_diameter:
            i, j = np.unravel_index(apart.argmax(), apart.shape)
            assert climb(case, vertices[i], vertices[j]) >= diameter * (1 - 1e-6) - case.accuracy


def climb(case: Case, x: np.ndarray, y: np.ndarray) -> float:
    """‖x − y‖ after moving each (y not when it is zero) to the vertex farthest in the direction x − y."""
    fixed = not np.any(y)
    for _ in range(20):
        x = vector(lmo(case.constraint, case.tree(y - x, "float64")))
        if not fixed:
            y = vector(lmo(case.constraint, case.tree(x - y, "float64")))
    return float(np.linalg.norm(x - y))


def check_outside(case: Case, dtype: str) -> None:
    """Points beyond a supporting hyperplane, NaN and infinity are rejected."""
    rng = np.random.default_rng(4)
    with precision(dtype):
        for d in rng.normal(size=(6, case.size)):
            vertex = vector(lmo(case.constraint, case.tree(d, dtype)))
            beyond = vertex - 0.05 * (1 + np.linalg.norm(vertex)) * d / np.linalg.norm(d)
            # an iterative oracle's vertex is not the very last point of K in this direction
            assert beyond @ d < case.least(d) - 1e-3 * np.linalg.norm(d)
            assert not contains(case.constraint, case.tree(beyond, dtype), 1e-6)
        for poison in (np.nan, np.inf, -np.inf):
            x = vector(case.constraint.start(case.like(dtype)))
            x[-1] = poison
            assert not contains(case.constraint, case.tree(x, dtype), 1e-6)


def check_bounds(case: Case) -> None:
    """The closed forms of `bounds` and `nonnegative` agree with what 2d calls of the oracle say."""
    with precision("float64"):
        like = case.like("float64")
        lower, upper = case.constraint.bounds(like)
        slow_lower, slow_upper = ConvexSet.bounds(case.constraint, like)
        scale = 1 + np.abs(vector(slow_upper)).max()
        np.testing.assert_allclose(vector(lower), vector(slow_lower), atol=1e-9 * scale + 10 * case.accuracy * scale)
        np.testing.assert_allclose(vector(upper), vector(slow_upper), atol=1e-9 * scale + 10 * case.accuracy * scale)
        assert case.constraint.nonnegative(like) is case.nonnegative
        if type(case.constraint).in_box is ConvexSet.in_box:
            return
        least, most = vector(slow_lower).min(), vector(slow_upper).max()
        room = 1e-6 * scale + 20 * case.accuracy * scale
        assert case.constraint.in_box(least - room, most + room, like)
        assert not case.constraint.in_box(least - room, most - 2 * room, like)
        assert not case.constraint.in_box(least + 2 * room, most + room, like)
