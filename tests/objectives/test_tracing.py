"""Mistakes that tracing would hide or put into JAX's words: each has a message with its remedy, nothing else has."""

import math
import random
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw
from onesfw.engine.programs import compilations
from onesfw.objectives.user_functions import ObjectiveWarning

ROWS = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
LIKE = jax.ShapeDtypeStruct((3,), np.float32)
GENERATOR = np.random.default_rng(1)


def square(x, z):
    return jnp.sum((x - z) ** 2)


def normal(key):
    return jax.random.normal(key, (3,))


def check(objective):
    objective.check(LIKE, 10)


FROZEN = {
    "np.random": lambda key: np.random.normal(size=3),  # noqa: NPY002
    "a generator outside": lambda key: GENERATOR.normal(size=3),
    "a row at random": lambda key: ROWS[GENERATOR.integers(5)] + 0 * GENERATOR.normal(),
    "the key beside it": lambda key: normal(key) + GENERATOR.normal(size=3),
    "a number": lambda key: jnp.ones(3) * random.random(),
}


@pytest.mark.parametrize("kind", FROZEN)
def test_random_numbers_that_tracing_would_freeze(kind):
    with pytest.raises(ValueError, match=r"Expectation: sample\(key\) .* use jax.random with the key"):
        check(fw.Expectation(square, FROZEN[kind]))


def test_frozen_numbers_elsewhere():
    with pytest.raises(ValueError, match=r"FiniteSum: loss\(x, row\) computes with other numbers"):
        check(fw.FiniteSum(lambda x, row: square(x, row) * GENERATOR.random(), ROWS))
    with pytest.raises(ValueError, match=r"NonOblivious: sample\(key, x\) computes with other numbers"):
        check(fw.NonOblivious(square, lambda key, x: x + GENERATOR.normal(size=3), lambda z, x: -square(z, x)))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_key_of_its_own(wrap):
    with pytest.raises(ValueError, match="draws from a key of its own"):
        check(fw.Expectation(square, wrap(lambda key: normal(jax.random.key(0)))))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_sample_that_ignores_its_key(wrap):
    with pytest.warns(ObjectiveWarning, match=r"does not depend on its key.* Use jax.random with the key"):
        check(fw.Expectation(square, wrap(lambda key: np.random.default_rng(0).normal(size=3))))


CONSTANT = {
    "ones": lambda key: jnp.ones(3),
    "a number": lambda key: 2.0,
    "the clock": lambda key: jnp.full(3, 1.7e9),  # in float32 it stands still from one tracing to the next
    "a range": lambda key: jnp.arange(3.0),
    "zeros that were captured": lambda key: jnp.asarray(np.zeros(3)),
}


@pytest.mark.parametrize("kind", CONSTANT)
def test_a_sample_that_is_a_constant(kind):
    with pytest.warns(ObjectiveWarning, match=r"does not depend on its key.* Use jax.random with the key"):
        check(fw.Expectation(square, CONSTANT[kind]))


def test_a_loss_that_ignores_its_row_or_sample():
    with pytest.warns(ObjectiveWarning, match="does not depend on its row.* the one row that it is given"):
        check(fw.FiniteSum(lambda x, row: jnp.mean((ROWS @ x) ** 2), ROWS))
    with pytest.warns(ObjectiveWarning, match="does not depend on its sample z"):
        check(fw.Expectation(lambda x, z: jnp.sum(x**2), normal))


UNTRACED = {
    "if": (lambda x, row: row @ x if row @ x > 0 else 0.0, "jnp.where"),
    "max": (lambda x, row: max(row @ x, 0.0), "jnp.maximum"),
    "np.exp": (lambda x, row: np.exp(row @ x), "jnp. instead of np."),
    "np.maximum": (lambda x, row: np.maximum(row @ x, 0), "jnp. instead of np."),
    "float": (lambda x, row: float(row @ x), "leave it an array"),
    "math.exp": (lambda x, row: math.exp(row @ x), "leave it an array"),
    "item": (lambda x, row: jnp.sum(x) * row[0].item(), "leave it an array"),
    "a mask": (lambda x, row: jnp.sum(x[row > 0]), "use jnp.where"),
    "a list": (lambda x, row: [1.0, 2.0][jnp.argmax(row) % 2] * jnp.sum(x), "jnp.array"),
    "scipy": (lambda x, row: jnp.sum(x) * np.random.default_rng(row).random(), "compute with jnp"),
}


@pytest.mark.parametrize("kind", UNTRACED)
def test_what_cannot_be_traced_has_its_remedy(kind):
    loss, remedy = UNTRACED[kind]
    before = compilations()
    with pytest.raises(ValueError, match=r"FiniteSum: loss\(x, row\) failed") as raised:
        fw.minimize(fw.FiniteSum(loss, ROWS), fw.sets.L2Ball(1.0, shape=3), steps=2)
    assert remedy in str(raised.value)
    assert compilations() == before


SOUND = {
    "a draw": lambda: fw.Expectation(square, normal),
    "compiled functions": lambda: fw.Expectation(jax.jit(square), jax.jit(normal)),
    "captured rows": lambda: fw.Expectation(square, lambda key: jnp.asarray(ROWS)[jax.random.randint(key, (), 0, 5)]),
    "a loop": lambda: fw.Expectation(
        square, lambda key: jax.lax.fori_loop(0, 3, lambda i, z: z + normal(jax.random.fold_in(key, i)), jnp.zeros(3))
    ),
    "a branch": lambda: fw.Expectation(
        square, lambda key: jax.lax.cond(jax.random.bernoulli(key), lambda: jnp.zeros(3), lambda: jnp.ones(3))
    ),
    "some leaves constant": lambda: fw.Expectation(lambda x, z: square(x, z[0]) * z[1], lambda key: (normal(key), 2.0)),
    "deterministic on purpose": lambda: fw.Expectation(square, lambda key: jnp.zeros(3)),
    "nothing drawn": lambda: fw.Expectation(lambda x, z: jnp.sum(x**2), lambda key: ()),
    "one row": lambda: fw.FiniteSum(lambda x, row: jnp.mean((ROWS @ x) ** 2), ROWS[:1]),
    "labels unused": lambda: fw.FiniteSum(lambda x, row: square(x, row[0]), (ROWS, ROWS[:, 0])),
    "not finite": lambda: fw.Expectation(lambda x, z: square(x, z) + jnp.sum(ROWS / 0 * 0), normal),
}


@pytest.mark.parametrize("kind", SOUND)
def test_no_false_alarm(kind):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", ObjectiveWarning)
        check(SOUND[kind]())


@pytest.mark.parametrize("name", fw.zoo.names())
def test_no_false_alarm_in_the_zoo(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ObjectiveWarning)
        problem = fw.zoo.get(name)
        problem.objective.check(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, "f4"), problem.start()), 10)
