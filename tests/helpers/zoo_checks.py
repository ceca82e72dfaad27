"""What the tests of the zoo share: the problems by kind, random members of a set, and the Hessian of a quadratic."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

LOGISTIC = ["logistic", "logistic-generated", "logistic-wide"]
SIMPLEX = ["quadratic-interior", "quadratic-face", "quadratic-noisy"]
CONVEX = [*LOGISTIC, "interpolation", *SIMPLEX, "gaussian"]
NAMES = [*LOGISTIC, "interpolation", *SIMPLEX, "sigmoid", "indefinite", "nqp", "coverage", "gaussian"]
SUMS = [*LOGISTIC, "interpolation", "sigmoid", "coverage"]
MAXIMISED = ["nqp", "coverage"]
QUADRATIC = [*SIMPLEX, "indefinite", "nqp"]
GLOBAL = ["indefinite", "nqp"]


def dimension(problem):
    (d,) = problem.constraint.template()
    return d


@cache
def two_hundred_members(problem):
    """Random members of K: means of three vertices, pulled towards the starting point."""
    d = dimension(problem)
    with jax.enable_x64(True):
        directions = jnp.asarray(np.random.default_rng(0).standard_normal((600, d)))
        vertices = np.asarray(jax.jit(jax.vmap(problem.constraint.lmo))(directions)).reshape(200, 3, d)
        start = np.asarray(problem.constraint.start(jnp.zeros(d)))
    return 0.7 * vertices.mean(1) + 0.3 * start


def members(problem, count):
    """Some of them."""
    return two_hundred_members(problem)[:count]


def hessian(problem):
    """Q of a quadratic, from its gradient."""
    d = dimension(problem)
    return problem.gradient(np.eye(d)) - problem.gradient(np.zeros(d))
