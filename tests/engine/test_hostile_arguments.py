"""Arguments of minimize and recipes, whatever comes in: a sentence that names it, or a finite answer in the set."""

import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import BALL, INF, JUNK, NAN, ROWS, documented, few, many, minimize, numbers, sound, square
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onesfw as fw
from onesfw import sets

# ---- the arguments of minimize


OPTIONS = ("replicates", "gap_tol", "time_limit", "every", "evaluate", "key", "steps", "x0", "constraint", "objective",
           "algorithm")  # fmt: skip


def cheap(name, value):
    """Whether a value that is right would not ask for hours of work, or for the user's own functions."""
    if callable(value):
        return False
    if isinstance(value, int | float | np.integer) and name in ("steps", "replicates", "evaluate", "every"):
        return value < 50 or (name == "steps" and value >= 2**31) or value == INF
    return True


@pytest.mark.parametrize("name", OPTIONS)
def test_arguments_of_minimize(name):
    for value in JUNK:
        if cheap(name, value) and not (name == "every" and getattr(value, "shape", None) == ()):
            option = {name: value, **({"evaluate": None} if name == "gap_tol" else {})}
            sound(documented(lambda option=option: minimize(**option), name, "x0"), BALL)


@many
@given(name=st.sampled_from(OPTIONS[:8]), value=numbers)
def test_numbers_as_arguments_of_minimize(name, value):
    if cheap(name, value):
        sound(documented(lambda: minimize(**{"evaluate": None, name: value}), name), BALL)


SINGLE = {
    "replicates": ("replicates", lambda: minimize(replicates=1e30)),
    "delta": ("delta", lambda: fw.one_sfw(correction="difference", delta="x")),
    "evaluate": ("evaluate", lambda: minimize(evaluate=2**40)),
    "evaluate, text": ("evaluate", lambda: minimize(evaluate=lambda x: "text")),
    "eta off the grid": ("eta", lambda: minimize(steps=1_000_010, algorithm=fw.one_sfw(eta=spike))),
}


def spike(t):
    return np.where(t == 777_777, 50.0, 1 / t)


@pytest.mark.parametrize("case", SINGLE)
def test_single_cases(case):
    name, call = SINGLE[case]
    assert documented(call, name) is None


@pytest.mark.parametrize("name", ["setting", "correction", "schedule", "rho", "eta", "batch", "t0"])
def test_arguments_of_recipes(name):
    for value in JUNK:
        if name == "batch" and isinstance(value, np.uint8):
            continue  # 200, and right
        for recipe in (fw.one_sfw, fw.frank_wolfe):
            if recipe is fw.frank_wolfe and name not in ("setting", "eta", "t0"):
                continue
            result = documented(
                lambda recipe=recipe, value=value: minimize(algorithm=recipe(**{name: value})), name, "setting", "steps"
            )
            sound(result, BALL)


@few
@given(rho=numbers, eta=numbers, t0=numbers)
def test_numbers_as_arguments_of_recipes(rho, eta, t0):
    sound(documented(lambda: minimize(algorithm=fw.one_sfw(rho=rho, eta=eta, t0=t0)), "rho", "eta", "t0"), BALL)


@pytest.mark.parametrize(
    "function",
    [lambda t: "a", lambda t: None, lambda t: 1 / 0, lambda t: 1j, lambda t: {}, lambda t: t, lambda t: NAN,
     lambda t, *, key: 0.5, lambda: 0.5, lambda t: undefined, lambda t: np.ones((2, 2))],  # noqa: F821
)  # fmt: skip
def test_schedules_that_fail(function):
    for name in ("rho", "eta"):
        assert documented(lambda name=name: minimize(algorithm=fw.one_sfw(**{name: function})), name) is None


def test_a_shifted_schedule_is_checked_where_it_is_read():
    with pytest.raises(ValueError, match=r"eta must stay in \[0, 1\]; it is 10.1 at t = 101"):
        minimize(algorithm=fw.one_sfw(eta=lambda t: t / 10, t0=100))
    with pytest.raises(ValueError, match="t0 must be at most"):
        minimize(algorithm=fw.one_sfw(t0=1e30))
    with pytest.raises(ValueError, match=r"steps: .* at most"):
        minimize(algorithm=fw.frank_wolfe(), steps=1e12)


# ---- numbers too large and too small for the run's precision


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(["L2Ball", "Simplex", "L1Ball"]),
    radius=st.sampled_from([1e-300, 1e-45, 1e-30, 1e-3, 1.0, 1e15, 1e30, 3e38, 1e39, 1e300]),
    scale=st.sampled_from([0.0, 1e-300, 5e-324, 1e-40, 1e-20, 1.0, 1e18, 1e19, 1e30, 3e38, 1e39, 1e300]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_runs_in_every_scale(name, radius, scale, dtype):
    """Overflow ends as NOT_FINITE with a finite x inside, or is refused; it warns of nothing and returns no NaN."""
    with np.errstate(all="ignore"):
        rows = (ROWS.astype(dtype) * dtype(scale)).astype(dtype)
    constraint = getattr(sets, name)(radius, shape=3)
    result = documented(lambda: minimize(fw.FiniteSum(square, rows), constraint), "constraint", "data")
    if result is not None:
        sound(result, constraint)
        assert result.status in (fw.Status.STEPS_DONE, fw.Status.NOT_FINITE)


def test_numbers_beyond_float32_are_refused():
    with pytest.raises(ValueError, match=r"constraint: L2Ball holds 1e\+300, beyond the range of float32.*float64 x0"):
        minimize(constraint=sets.L2Ball(1e300, 3))
    with pytest.raises(ValueError, match=r"data holds numbers beyond the range of float32.*float64 x0"):
        minimize(fw.FiniteSum(square, ROWS.astype(float) * 1e300))
    with pytest.raises(ValueError, match="data holds numbers beyond the range of int32"):
        minimize(fw.FiniteSum(square, np.full((4, 3), 2**40)))
    sound(minimize(fw.FiniteSum(square, np.full((4, 3), 2**40)), x0=np.zeros(3)), BALL)


# ---- callbacks, evaluation, keys


@pytest.mark.parametrize("replicates", [None, 2])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit, OSError])
def test_an_error_in_a_callback_comes_out(error, replicates):
    def callback(row, x):
        raise error("é")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(error, match="é"):
        minimize(callbacks=[callback], replicates=replicates)
    assert signal.getsignal(signal.SIGINT) is before
    sound(minimize(), BALL)


def test_odd_callbacks():
    calls = []

    def note(row, x):
        calls.append(row["step"])
        row.clear()  # it is the callback's own copy

    result = minimize(callbacks=(each for each in [note, note]), every=[1, 5])
    assert calls == [1, 1, 5, 5]
    assert result.trace.step.tolist() == [1, 5]
    minimize(callbacks=note)
    assert minimize(callbacks=lambda row, x: False).status is fw.Status.STOPPED
    for value in JUNK:
        if not callable(value):
            sound(documented(lambda value=value: minimize(callbacks=value), "callbacks"), BALL)
            if value is not None:
                assert documented(lambda value=value: minimize(callbacks=[note, value]), "callbacks") is None
    with pytest.raises(TypeError, match="positional argument"):
        minimize(callbacks=[lambda: None])


@pytest.mark.parametrize("answer", ["text", None, jnp.ones(3), {}, b"x"])
def test_an_evaluation_that_is_no_number(answer):
    with pytest.raises(TypeError, match="evaluate must return one number"):
        minimize(evaluate=lambda x: answer)


@pytest.mark.parametrize("answer", [NAN, INF, np.float16(1), jnp.float32(2), 10**30, True])
def test_an_evaluation_that_is_odd(answer):
    result = minimize(evaluate=lambda x: answer, every=2)
    sound(result, BALL)
    np.testing.assert_array_equal(result.trace.value, np.full(3, float(answer)))
    assert str(result)


def test_keys():
    for key in (jax.random.key(3, impl="rbg"), jax.random.key(3, impl="unsafe_rbg")):
        for objective in (fw.FiniteSum(square, ROWS), fw.FiniteSum(square, ROWS, replacement=False)):
            sound(minimize(objective, key=key, steps=8), BALL)
    np.testing.assert_array_equal(minimize(key=np.asarray([0, 3], np.uint32)).x, minimize(key=3).x)
    for key in (jax.random.split(jax.random.key(0)), np.zeros(3, np.uint32), np.zeros(2, np.int32), 2**32, -1, 1.0):
        assert documented(lambda key=key: minimize(key=key), "key") is None
