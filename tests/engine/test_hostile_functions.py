"""Data and functions of the user, whatever comes in: a sentence that names it, or a finite answer inside the set."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import BALL, JUNK, ROWS, anything, documented, few, minimize, sound, square
from hypothesis import given

import onesfw as fw
from onesfw import sets
from onesfw.engine.programs import compilations

# ---- data and starting points


@few
@given(data=anything)
def test_data_at_random(data):
    documented(lambda: fw.FiniteSum(square, data), "data")


def test_data_and_indices():
    for value in JUNK:
        documented(lambda value=value: fw.FiniteSum(square, value), "data")
        documented(lambda value=value: fw.FiniteSum(square, {"é": ROWS, "rest": value}), "data")
        if value is not None:
            documented(lambda value=value: fw.FiniteSum(square, ROWS, indices=value), "indices")
    with pytest.raises(ValueError, match="data has masked entries"):
        fw.FiniteSum(square, np.ma.array(ROWS, mask=ROWS == 0))


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "float64": lambda rows: rows.astype(np.float64),
    "float16": lambda rows: rows.astype(np.float16),
    "bfloat16": lambda rows: jnp.asarray(rows, jnp.bfloat16),
    "big-endian": lambda rows: rows.astype(">f4"),
    "big-endian double": lambda rows: rows.astype(">f8"),
    "Fortran": np.asfortranarray,
    "read-only": frozen,
    "backwards": lambda rows: rows[::-1].copy()[::-1],
    "every second": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "masked nowhere": lambda rows: np.ma.array(rows, mask=False),
    "lists": lambda rows: np.asarray(rows.tolist()),
    "matrix subclass": lambda rows: rows.view(type("Own", (np.ndarray,), {})),
    "int64": lambda rows: (2 * rows).astype(np.int64),
    "big-endian int": lambda rows: (2 * rows).astype(">i8"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_data_give_the_same_answer(layout):
    rows = LAYOUTS[layout](ROWS)
    halves = np.issubdtype(np.asarray(rows).dtype, np.integer)
    expected = minimize(fw.FiniteSum(square, 2 * ROWS if halves else ROWS))
    np.testing.assert_array_equal(minimize(fw.FiniteSum(square, rows)).x, expected.x)


def test_layouts_of_x0():
    start = np.asarray([0.1, -0.2, 0.3], np.float32)
    expected = minimize(x0=start).x
    for x0 in (frozen(start), np.repeat(start, 2)[::2], jnp.asarray(start), np.ma.array(start, mask=False)):
        np.testing.assert_array_equal(minimize(x0=x0).x, expected)
    for x0 in (start.astype(">f4"), start.astype(np.float16), start.astype(complex), start > 0, start.astype(object)):
        with pytest.raises(TypeError, match="x0 must hold float32 or float64"):
            minimize(x0=x0)
    with pytest.raises(ValueError, match="x0 has masked entries"):
        minimize(x0=np.ma.array(start, mask=[0, 1, 0]))
    with pytest.raises(ValueError, match="x0 holds NaN or infinite"):
        minimize(x0=1e300, constraint=sets.L2Ball(1.0))


def test_small_and_odd_trees():
    """One row, one coordinate, a scalar x, unicode keys, None leaves and numpy scalars."""
    one = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.ones((1,), np.float32))
    for constraint, x0 in ((sets.L2Ball(1.0, shape=1), None), (sets.L2Ball(1.0, shape=()), None),
                           (sets.L1Ball(1.0), np.float32(0.5)), (sets.Box(0.0, 2.0), 0.25)):  # fmt: skip
        result = minimize(one, constraint, x0, evaluate=None)
        sound(result, constraint)
        assert np.isfinite(result.value)
    x0 = {"größe ☃": np.zeros(2, np.float32), "nothing": None, "": (np.float32(0.5), [])}
    tree = fw.FiniteSum(
        lambda x, row: jnp.sum((x["größe ☃"] - row[:2]) ** 2) + (x[""][0] - row[2]) ** 2, ROWS
    )  # fmt: skip
    result = minimize(tree, sets.L2Ball(1.0), x0)
    sound(result, sets.L2Ball(1.0))
    assert result.x["nothing"] is None
    assert str(result)


# ---- functions of the user


WRONG = {
    "no arguments": lambda: 0.0,
    "three arguments": lambda a, b, c: 0.0,
    "raises": lambda *args: {}["é"],
    "raises without a word": lambda *args: (_ for _ in ()).throw(RuntimeError()),
    "None": lambda *args: None,
    "text": lambda *args: "text",
    "nothing": lambda *args: (),
    "a pair": lambda *args: (jnp.float32(1), jnp.float32(2)),
    "a vector": lambda *args: jnp.ones(3),
    "an integer": lambda *args: 3,
    "a complex number": lambda *args: jnp.complex64(1),
    "a truth value": lambda x, *args: x.sum() > 0 if hasattr(x, "sum") else True,
    "asks for a number": lambda x, *args: float(jnp.sum(x)),
}


@pytest.mark.filterwarnings("ignore:.*does not depend on its key")
@pytest.mark.parametrize("kind", WRONG)
def test_functions_that_do_not_fit(kind):
    wrong = WRONG[kind]

    def draw(key):
        return jax.random.normal(key, (3,))

    def dense(z, x):
        return -jnp.sum((z - x) ** 2)

    cases = {
        "loss": lambda: fw.FiniteSum(wrong, ROWS),
        "value": lambda: fw.Expectation(wrong, draw),
        "log_prob": lambda: fw.NonOblivious(square, lambda key, x: x + draw(key), wrong),
        "sample": lambda: fw.Expectation(lambda x, z: x @ z["not there"], wrong),
    }
    if kind not in ("a vector",):
        cases["grad"] = lambda: fw.Expectation(square, draw, grad=wrong)
        cases["hvp"] = lambda: fw.Expectation(square, draw, hvp=wrong)
    for name, build in cases.items():
        before = compilations()
        assert documented(lambda build=build: minimize(build()), name, "value") is None, name
        assert compilations() == before
    for name in ("value", "sample", "log_prob"):
        arguments = {"value": square, "sample": lambda key, x: x, "log_prob": dense, name: "text"}
        with pytest.raises(TypeError, match=f"NonOblivious: {name} must be a function"):
            fw.NonOblivious(**arguments)


def test_a_sample_that_changes_its_mind():
    """Its shape is read when the run is built; another shape later is an error, not a wrong answer."""
    sizes = iter(range(1, 100))
    objective = fw.Expectation(lambda x, z: jnp.sum(x) * jnp.sum(z), lambda key: jnp.zeros(next(sizes)))
    sound(documented(lambda: minimize(objective), "sample"), BALL)


NOT_FINITE = {
    "at the start": lambda x, row: jnp.sum(x * row) * jnp.nan,
    "later": lambda x, row: jnp.where(jnp.sum(x**2) > 0.5, jnp.nan, 1.0) * jnp.sum(x * (1 + row**2)),
    "in the gradient only": lambda x, row: jnp.sqrt(jnp.sum(row**2 * (x - jax.lax.stop_gradient(x)) ** 2)),
    "infinite": lambda x, row: jnp.exp(1e4 * (1 + jnp.sum(x * row) ** 2)) * jnp.sum(x),
}


@pytest.mark.parametrize("kind", NOT_FINITE)
def test_functions_that_are_not_finite(kind):
    result = minimize(fw.FiniteSum(NOT_FINITE[kind], ROWS), x0=np.full(3, 0.1, np.float32), steps=50)
    assert result.status is fw.Status.NOT_FINITE
    assert result.failed_step >= 1
    sound(result, BALL)
    assert str(result)
