"""A trace is found again where all that it depends on is seen, and made anew where anything else might have changed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw
from onesfw.engine.programs import Program
from onesfw.engine.trace_keys import trace_key

ROWS = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
FACTOR = 1.0


def doubled(x, row):
    return 2 * squares(x, row)


def squares(x, row):
    return FACTOR * jnp.sum((x - row) ** 2)


@pytest.fixture
def traces(monkeypatch):
    """The parts of runs that were traced."""
    seen, plain = [], Program.traced
    monkeypatch.setattr(Program, "traced", lambda self, part, *args: seen.append(part) or plain(self, part, *args))
    return seen


def solve(loss, rows=ROWS, radius=1.0, **options):
    options = {"steps": 2_000, "key": 0, **options}
    return fw.minimize(fw.FiniteSum(loss, rows), fw.sets.L1Ball(radius, shape=rows.shape[1]), **options)


def test_a_second_call_traces_nothing(traces):
    def loss_of(scale):
        return lambda x, row: jnp.logaddexp(0.0, -scale * (row @ x))

    first = solve(loss_of(1.5))
    assert traces
    traces.clear()
    again = solve(loss_of(1.5), key=0)
    solve(loss_of(1.5), rows=ROWS[::-1].copy(), radius=3.0, steps=3_000, key=7)
    assert not traces
    assert np.array_equal(first.x, again.x)
    other = solve(loss_of(-1.5))
    assert traces
    assert not np.allclose(other.x, first.x)


def test_a_changed_name_is_seen(monkeypatch):
    shrunk = fw.FiniteSum(doubled, ROWS)
    ball = fw.sets.L1Ball(1.0, shape=3)
    first = fw.minimize(shrunk, ball, steps=50)
    monkeypatch.setitem(globals(), "FACTOR", -1.0)
    assert fw.minimize(shrunk, ball, steps=50).value < 0 < first.value


def test_a_changed_cell_is_seen():
    target = 0.1

    def loss(x, row):
        return jnp.sum((x - target) ** 2) + 0 * row[0]

    objective, ball = fw.FiniteSum(loss, ROWS), fw.sets.L1Ball(3.0, shape=3)
    first = fw.minimize(objective, ball, steps=200)
    target = 0.9
    second = fw.minimize(objective, ball, steps=200)
    assert np.all(second.x > first.x + 0.1)


@pytest.mark.parametrize("radius", [1.0, 2.0])
def test_what_decides_on_the_trace_is_in_the_key(radius):
    ball, box = fw.sets.L1Ball(radius, shape=3), fw.sets.Box(0.0, 1.0, shape=3)
    assert trace_key(ball) == trace_key(fw.sets.L1Ball(5.0, shape=3))
    assert trace_key(ball) != trace_key(box)
    assert trace_key(ball) != trace_key(fw.sets.L1Ball(radius, shape=4))
    with jax.enable_x64(True):
        wide = trace_key(ball)
    assert wide != trace_key(ball)


def test_what_cannot_be_seen_has_no_key():
    class Segment(fw.sets.ConvexSet):
        def lmo(self, d):
            return jnp.where(jnp.sum(d) < 0, jnp.ones_like(d), jnp.zeros_like(d))

    captured, changing = np.ones(3), [1.0]
    unseen = [
        Segment(),
        lambda x: x @ captured,
        lambda x: x * changing[0],
        lambda x: x * np.random.default_rng,  # a function of a library is seen
        lambda x: x * pytest.approx(1.0),
        changing,
        iter(changing),
    ]
    assert [trace_key(thing) is None for thing in unseen] == [True, True, True, False, True, True, True]


def test_what_is_read_elsewhere_has_no_key_or_is_in_it():
    def imports(x):
        import this_is_not_a_library

        return x * this_is_not_a_library.factor

    def attribute(x):
        return x * attribute.factor

    attribute.factor = 2.0
    first = trace_key(attribute)
    attribute.factor = 3.0
    assert first is not None
    assert first != trace_key(attribute)
    assert trace_key(imports) is None
    assert trace_key(lambda x: x * globals()["FACTOR"]) is None


def test_functions_are_compared_by_what_they_say():
    def power(n):
        return lambda x: jnp.sum(jnp.abs(x) ** n)

    def countdown(n):
        return 0 if n == 0 else countdown(n - 1)

    assert trace_key(power(2)) == trace_key(power(2)) != trace_key(power(3))
    assert trace_key(power(2)) != trace_key(power(2.0))
    assert trace_key(jax.jit(power(2))) == trace_key(jax.jit(power(2)))
    assert trace_key(jax.grad(power(2))) != trace_key(jax.grad(power(3)))
    assert trace_key(countdown) is not None
    assert trace_key(jnp.sin) != trace_key(jnp.cos)


def test_a_program_that_does_more_than_compute_is_traced_anew(traces):
    def run():
        return solve(lambda x, row: (jax.debug.print("", ordered=False), jnp.sum((x - row) ** 2))[1], steps=20)

    run()
    traces.clear()
    run()
    assert traces
