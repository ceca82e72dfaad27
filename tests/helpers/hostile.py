"""Things that no one should pass, and what every answer to them must be; for the tests of hostile input."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import onesfw as fw
from onesfw import sets

NAN, INF = float("nan"), float("inf")
ROWS = np.asarray([[1.0, 0.0, 2.0], [0.0, -1.0, 0.5], [2.0, 2.0, -1.0], [-0.5, 1.0, 0.0]], np.float32)
BALL = sets.L2Ball(1.0, shape=3)


class Opaque:
    """Something that is nothing at all."""

    def __repr__(self):
        return "an opaque thing"


JUNK = [
    None, "", "x", "ünïcödé ☃", "\0", b"bytes", Opaque(), Ellipsis, NotImplemented, type, len, lambda: 0,
    True, np.bool_(True), 0, 1, -1, 2, 2.5, -0.0, 5e-324, 1e-300, 1e-30, 1e30, 1e300, -1e300, NAN, INF, -INF,
    10**400, -(10**400), 1j, np.complex64(1), np.float16(1), np.float64(2), np.int64(2), np.uint8(200),
    np.array(3), np.array(1.0), np.array([]), np.array([1.0, 2.0]), np.array([NAN, 1.0]), np.zeros((0, 3)),
    np.array(["a"]), np.array([1, None]), np.array([1j, 2]), np.datetime64("2020-01-01"), np.ones((2, 2, 2)),
    np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.masked, np.zeros(2, [("a", float)]), np.void(b"ab"),
    [], [[1], [2, 3]], [1.0, "a"], [[1, 2], [3, 4]], (), (1, 2), {}, {"a": 1.0}, {"a": None}, {1, 2}, range(3),
    frozenset(), slice(3), BALL, sets.L2Ball, fw.one_sfw, jnp.ones(3), jax.random.key(0), complex(NAN, 1),
]  # fmt: skip
junk = st.sampled_from(range(len(JUNK))).map(JUNK.__getitem__)
numbers = st.one_of(st.floats(width=64), st.integers(-(2**70), 2**70), st.just(10**400), st.just(5e-324))
anything = st.one_of(junk, numbers, st.text(max_size=5))
few = settings(max_examples=25, suppress_health_check=list(HealthCheck))
many = settings(max_examples=150, suppress_health_check=list(HealthCheck))


def documented(call, *names):
    """The call's answer; or None after an exception of the documented kind that names one of `names`."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        message = f"{type(error).__name__}: {error}"
    assert any(name in message for name in names), f"none of {names} is named: {message}"
    return None


def finite(tree):
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(tree))


def sound(result, constraint):
    """x is finite and inside, and whatever is not finite is said so."""
    if result is None:
        return
    assert finite(result.x), result
    assert finite(result.x_last), result
    with jax.enable_x64(np.asarray(jax.tree.leaves(result.x)[0]).dtype == np.float64):
        points = [result.x] if result.replicates is None else list(np.asarray(result.x))
        assert all(bool(constraint.contains(x, 1e-5)) for x in points), result


def square(x, row):
    return jnp.sum((x - row) ** 2)


def minimize(objective=None, constraint=BALL, x0=None, **options):
    objective = fw.FiniteSum(square, ROWS) if objective is None else objective
    return fw.minimize(objective, constraint, x0, **{"steps": 5, "evaluate": False, **options})
