"""Compiles a loop around each primitive that `onesfw.engine.small_loop` calls simple, and prints those that agree."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onesfw.engine.small_loop import SIMPLE, small_loop

x = jnp.linspace(0.1, 0.9, 6)
n = jnp.arange(1, 7)
matrix = jnp.arange(36.0).reshape(6, 6) / 40
double = jax.custom_jvp(lambda v: 2 * v)
double.defjvps(lambda t, ans, v: 2 * t)
triple = jax.custom_vjp(lambda v: 3 * v)
triple.defvjp(lambda v: (3 * v, None), lambda _, t: (3 * t,))


def whole(function):
    """A body on whole numbers."""
    return lambda i, v: (function((10 * v).astype(jnp.int32)) % 8).astype(v.dtype) / 10 + 0.1


def truth(function):
    """A body whose function gives true and false."""
    return lambda i, v: jnp.where(function(v), v / 2, v + 0.01)


def names(name):
    """A body that has only an elementwise primitive of that name."""
    function = getattr(lax, name)
    return lambda i, v: 0.5 * v + 0.1 * jnp.clip(function(0.9 * v), -1, 1)


CASES = {
    **{
        name: names(name)
        for name in """
        abs acos asin asinh atan atanh cbrt ceil cos cosh erf erf_inv exp exp2 expm1 floor log log1p logistic neg rsqrt
        sign sin sinh sqrt square tan tanh
        """.split()  # noqa: SIM905
    },
    "acosh": lambda i, v: lax.acosh(1 + v),
    "round": lambda i, v: v + lax.round(10 * v) / 100,
    **{name: whole(getattr(lax, name)) for name in ("population_count",)},
    "not": whole(lambda k: ~k & 7),
    "and": whole(lambda k: k & 3),
    "or": whole(lambda k: k | 1),
    "xor": whole(lambda k: k ^ 5),
    "rem": whole(lambda k: lax.rem(k, n.astype(k.dtype))),
    "shift_left": whole(lambda k: k << 1),
    "shift_right_arithmetic": whole(lambda k: k >> 1),
    "shift_right_logical": whole(lambda k: lax.shift_right_logical(k, jnp.int32(1))),
    "add": lambda i, v: v + 0.1,
    "sub": lambda i, v: v - 0.1 * v,
    "mul": lambda i, v: v * 0.9,
    "div": lambda i, v: v / n,
    "max": lambda i, v: jnp.maximum(v, 0.5),
    "min": lambda i, v: jnp.minimum(v, 0.5),
    "pow": lambda i, v: v ** (0.5 + v[0]),
    "integer_pow": lambda i, v: lax.integer_pow(v, 3),
    "atan2": lambda i, v: lax.atan2(v, 1 + v),
    "nextafter": lambda i, v: lax.nextafter(v, 2 * v),
    "clamp": lambda i, v: lax.clamp(0.2, v * 1.1, 0.7),
    "select_n": truth(lambda v: v > 0.3),
    "eq": truth(lambda v: v == 0.5),
    "ne": truth(lambda v: v != 0.5),
    "ge": truth(lambda v: v >= 0.5),
    "gt": truth(lambda v: v > 0.5),
    "le": truth(lambda v: v <= 0.5),
    "lt": truth(lambda v: v < 0.5),
    "is_finite": truth(jnp.isfinite),
    "reduce_and": truth(lambda v: jnp.all(v < 0.5)),
    "reduce_or": truth(lambda v: jnp.any(v < 0.5)),
    "reduce_max": lambda i, v: v / jnp.max(v),
    "reduce_min": lambda i, v: v + jnp.min(v),
    "reduce_sum": lambda i, v: v / jnp.sum(v),
    "reduce_prod": lambda i, v: v + jnp.prod(v),
    "dot_general": lambda i, v: matrix @ v / 6,
    "transpose": lambda i, v: (v[:, None] * matrix).T[2] + 0.1,
    "reshape": lambda i, v: v.reshape(2, 3)[::-1].reshape(6) + 0.01,
    "rev": lambda i, v: v[::-1] * 1.1,
    "pad": lambda i, v: jnp.pad(v[:3], (1, 2)) + 0.1,
    "slice": lambda i, v: v + v[1:2],
    "split": lambda i, v: v + jnp.concatenate(lax.split(v, (2, 4))[::-1]),
    "squeeze": lambda i, v: v + lax.squeeze(v[2:3], (0,)),
    "broadcast_in_dim": lambda i, v: v + jnp.broadcast_to(v[0], 6),
    "concatenate": lambda i, v: jnp.concatenate([v[3:], v[:3]]) * 1.1,
    "iota": lambda i, v: v + lax.iota(v.dtype, 6),
    "gather": lambda i, v: v[n % 6] * 1.1,
    "dynamic_slice": lambda i, v: v + lax.dynamic_slice(matrix, (i, jnp.zeros_like(i)), (1, 6))[0],
    "dynamic_update_slice": lambda i, v: lax.dynamic_update_slice(v, v[:2] * 1.1, (i,)),
    "convert_element_type": lambda i, v: v + (10 * v).astype(jnp.int32).astype(v.dtype),
    "bitcast_convert_type": lambda i, v: lax.bitcast_convert_type(lax.bitcast_convert_type(v, n.dtype) + 1, v.dtype),
    "copy": lambda i, v: lax.copy_p.bind(v) * 1.1,
    "stop_gradient": lambda i, v: lax.stop_gradient(v) * 1.1,
    "add_any": lambda i, v: v - 0.1 * jax.grad(lambda u: jnp.sum(u * u) + jnp.sum(jnp.sin(u)))(v),
    "cond": lambda i, v: lax.cond(v[0] < 0.3, lambda u: u * 1.1, lambda u: u * 0.9, v),
    "while": lambda i, v: lax.while_loop(lambda u: jnp.max(u) < 2, lambda u: u * 1.5, v) / 3,
    "scan": lambda i, v: lax.scan(lambda c, u: (c + u, c), v[0], v)[1] / 3,
    "jit": lambda i, v: jax.jit(jnp.sin)(v) + 0.1,
    "custom_jvp_call": lambda i, v: double(v) / 3,
    "custom_vjp_call": lambda i, v: triple(v) / 4,
    "remat2": lambda i, v: v - 0.1 * jax.grad(jax.checkpoint(lambda u: jnp.sum(jnp.sin(u) ** 2)))(v),
}


def loops(body, *arrays):
    """What the loop gives, what its turns give one by one, and its text.

    XLA by itself compiles loops whole that touch less than a kilobyte.
    """
    state = (x, jnp.zeros(1000))

    def turn(i, state, *arrays):
        return body(i, state[0], *arrays), state[1] + state[0][0]

    def run(low, high, state, *arrays):
        return small_loop(low, high, jax.make_jaxpr(lambda i, s: turn(i, s, *arrays))(low, state), state)

    given = (jnp.int32(0), jnp.int32(4), state, *arrays)
    compiled = jax.jit(run).lower(*given).compile()
    for i in range(4):
        state = turn(jnp.int32(i), state, *arrays)
    return [np.asarray(compiled(*given)[0]), np.asarray(state[0])], compiled.as_text()


if __name__ == "__main__":
    for name in sorted(SIMPLE):
        found, text = loops(CASES[name])
        assert f" {name}[" in (program := str(jax.make_jaxpr(CASES[name])(0, x))) or f" {name} " in program, name
        assert "xla_cpu_small_call" in text, name
        np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6, err_msg=name)
        print(name)
