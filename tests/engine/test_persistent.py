"""The persistent kernel against the compiled loop, without a GPU: padded steps, and the kernel in interpret mode."""

import sys
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_cases import LOSSES, RECIPES, SETS, problem

import onesfw as fw
from onesfw.engine import persistent
from onesfw.engine.compiled_loop import initial, one_step
from onesfw.engine.padded import NotPaddable, evaluate, pad, padded_shape, unpad
from onesfw.engine.programs import KERNEL_VARIABLE

CASES = [
    *((d, "logistic", "L1Ball", False) for d in (1, 2, 3, 8, 33, 300)),
    *((5, loss, "Simplex", True) for loss in LOSSES),
    *((5, "logistic", name, False) for name in SETS if name != "Simplex"),
]


class Rows:
    """Rows of an array that stays where it is, with NaN in their padding."""

    def __init__(self, array):
        self.array = array

    def row(self, number):
        return filled(self.array[number])


def filled(array, shape=None):
    """An array with padded axes, NaN in the padding: nothing may depend on it."""
    array = jnp.asarray(array)
    shape = array.shape if shape is None else shape
    padded = pad(array, shape)
    if jnp.issubdtype(array.dtype, jnp.floating):
        padded = jnp.where(pad(jnp.ones(array.shape), shape) > 0, padded, jnp.nan)
    return padded


@pytest.mark.parametrize(("d", "loss", "constraint", "adaptive"), CASES)
def test_a_step_on_padded_arrays_is_the_step(d, loss, constraint, adaptive):
    objective, constraint = problem(d, loss, constraint)
    algorithm = fw.one_sfw(rho="adaptive" if adaptive else None)
    estimator = algorithm.estimator(objective)
    step = algorithm.step.fit(constraint, jax.ShapeDtypeStruct((d,), np.float32))
    start = constraint.start(jax.ShapeDtypeStruct((d,), np.float32))
    state = initial(constraint, estimator, step, start, 10, False)
    rng = np.random.default_rng(0)
    state = state._replace(
        previous=0.9 * state.previous, estimate=state.estimate._replace(d=jnp.asarray(rng.normal(size=d), jnp.float32))
    )

    def advance(data, state, row, rho, weight, t):
        chosen = eqx.tree_at(lambda whole: whole.data, objective, data)
        drawn = (row[None], ()), jnp.float32(0)
        return one_step(chosen, constraint, estimator, step, 1, None, state, *drawn, (), rho, weight, t)

    arguments = objective.data, state, jnp.int32(7), jnp.float32(0.3), jnp.float32(0.2), jnp.int32(4)
    traced = jax.make_jaxpr(advance)(*arguments)
    leaves = jax.tree.leaves(arguments[1:])

    def padded(data, leaves):
        constants = [filled(array) for array in traced.consts]
        return evaluate(traced.jaxpr, constants, [*(Rows(array) for array in data), *map(filled, leaves)])

    expected = jax.tree.leaves(jax.jit(advance)(*arguments))
    found = jax.jit(padded)(objective.data, leaves)
    for true, larger in zip(expected, found, strict=True):
        assert larger.shape == padded_shape(true.shape)
        np.testing.assert_allclose(unpad(larger, true.shape), true, rtol=2e-6, atol=2e-6)


def test_derivatives_and_oracles_of_many_sizes():
    """From 1 to 300 entries, NaN in the padding, against NumPy: the loss's derivative, and vertices of both balls."""
    rng = np.random.default_rng(0)
    for d in (*range(1, 66), *range(67, 300, 9), 127, 128, 129, 255, 256, 257, 300):
        row, x = rng.normal(size=(2, d)).astype(np.float32)
        balls = fw.sets.L1Ball(2.0, shape=d), fw.sets.L2Ball(2.0, shape=d)

        def step(x, row, balls=balls):
            slope = jax.grad(LOSSES["logistic"])(x, (row, 1.0))
            return slope, *(ball.lmo(slope) for ball in balls)

        traced = jax.make_jaxpr(step)(x, row)
        larger = [np.full(padded_shape((d,)), np.nan, np.float32) for _ in range(2)]
        for array, given in zip(larger, (x, row), strict=True):
            array[... if d == 1 else slice(d)] = given[0] if d == 1 else given
        found = evaluate(traced.jaxpr, traced.consts, larger)
        slope = -row / (1 + np.exp(float(row @ x)))
        corner = np.where(np.arange(d) == np.abs(slope).argmax(), -2 * np.sign(slope), 0.0)
        for expected, padded in zip((slope, corner, -2 * slope / np.linalg.norm(slope)), found, strict=True):
            np.testing.assert_allclose(np.ravel(padded)[:d], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("d", [3, 8, 33])
def test_oracles_without_sorts_are_the_oracles(d):
    """Ties, zeros, costs of nothing, small and large budgets; NaN in the padding."""
    rng = np.random.default_rng(d)
    for _ in range(5):
        g = np.round(rng.normal(size=d), rng.integers(0, 3)).astype(np.float32)
        costs = np.round(rng.exponential(size=d) * rng.integers(0, 2, d), 1)
        cases = [
            fw.sets.KSparse(int(rng.integers(1, d)), 1.5, shape=d),
            fw.sets.Knapsack(costs, float(rng.exponential() * 3 + 0.01), np.round(rng.exponential(size=d), 1)),
            *(fw.sets.GroupBall(rng.integers(0, 3, d), 2.0, norm) for norm in ("l2", "linf")),
        ]
        for constraint in cases:
            traced = jax.make_jaxpr(constraint.lmo)(g)
            consts = [filled(array) for array in traced.consts]
            (found,) = evaluate(traced.jaxpr, consts, [filled(g)])
            np.testing.assert_allclose(found[:d], constraint.lmo(jnp.asarray(g)), rtol=2e-6, atol=2e-6)


def test_an_oracle_never_picks_padding():
    traced = jax.make_jaxpr(fw.sets.Simplex(shape=5).lmo)(jnp.zeros(5))
    high = jnp.asarray([3.0, 2.0, 2.5, 4.0, 2.0, -np.inf, np.nan, -1.0])
    (vertex,) = evaluate(traced.jaxpr, traced.consts, [high])
    assert vertex[:5].tolist() == [0, 1, 0, 0, 0]


@pytest.mark.parametrize("function", [jnp.sort, jnp.cumsum, lambda x: x[::-1], lambda x: jnp.outer(x, x) @ x])
def test_what_has_no_padded_form_says_so(function):
    traced = jax.make_jaxpr(function)(jnp.zeros(5))
    with pytest.raises(NotPaddable):
        evaluate(traced.jaxpr, traced.consts, [jnp.zeros(8)])


def run(monkeypatch, kernel, objective, constraint, **options):
    """A run with the kernel named."""
    monkeypatch.setenv(KERNEL_VARIABLE, kernel)
    result = fw.minimize(objective, constraint, **{"steps": 40, **options})
    return result


def test_the_kernel_follows_the_compiled_loop(monkeypatch):
    objective, constraint = problem(5, "logistic", "L1Ball")
    options = {"algorithm": fw.one_sfw(rho="adaptive"), "every": [3, 4, 17]}
    expected = run(monkeypatch, "xla", objective, constraint, **options)
    found = run(monkeypatch, "persistent", objective, constraint, **options)
    assert (expected.kernel, found.kernel) == ("xla", "persistent")
    np.testing.assert_allclose(found.trace.value, expected.trace.value, rtol=1e-5)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    np.testing.assert_allclose(found.state.estimate.d, expected.state.estimate.d, atol=1e-5)


def test_the_kernel_keeps_what_a_corrected_output_is_made_of(monkeypatch):
    objective, constraint = problem(5, "logistic", "L1Ball")
    options = {"algorithm": fw.one_sfw(), "evaluate": False, "steps": 600}
    expected = run(monkeypatch, "xla", objective, constraint, **options)
    found = run(monkeypatch, "persistent", objective, constraint, **options)
    assert (expected.kernel, found.kernel) == ("xla", "persistent")
    for one, other in zip(jax.tree.leaves(found.state.chosen), jax.tree.leaves(expected.state.chosen), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert np.abs(found.state.chosen.d).max() > 1e-3
    np.testing.assert_allclose(found.x, expected.x, atol=1e-4)


def test_means_of_many_runs_agree(monkeypatch):
    """Other seeds for either loop: the difference of the means against its standard error."""
    objective, constraint = problem(5, "logistic", "L1Ball", n=40)
    options = {"steps": 60, "replicates": 60, "algorithm": fw.one_sfw(schedule="paper")}
    expected = run(monkeypatch, "xla", objective, constraint, key=1, **options).value
    found = run(monkeypatch, "persistent", objective, constraint, key=2, **options)
    assert found.kernel == "persistent"
    error = np.sqrt((expected.var(ddof=1) + found.value.var(ddof=1)) / 60)
    assert abs(found.value.mean() - expected.mean()) < 3 * error
    assert error < 0.02 * expected.mean()


@pytest.mark.parametrize("names", [list(LOSSES)[:4], list(LOSSES)[4:]], ids=" and ".join)
def test_the_kernel_follows_the_loop_with_every_loss(monkeypatch, names):
    """The sum of several losses in one kernel, for each kernel takes seconds to compile; over a ball, where x follows
    from every derivative."""
    one, constraint = problem(3, "logistic", "L2Ball")
    objective = fw.FiniteSum(lambda x, row: sum(LOSSES[name](x, row) for name in names), one.data)
    options = {"algorithm": fw.one_sfw(schedule="paper"), "evaluate": False, "steps": 6}
    expected = run(monkeypatch, "xla", objective, constraint, **options)
    found = run(monkeypatch, "persistent", objective, constraint, **options)
    assert (expected.kernel, found.kernel) == ("xla", "persistent")
    np.testing.assert_allclose(found.x, expected.x, atol=5e-6)


@pytest.mark.parametrize("name", SETS)
def test_the_kernel_follows_the_loop_over_every_set_that_lowers(monkeypatch, name):
    objective, constraint = problem(6, "logistic", name)
    options = {"algorithm": fw.one_sfw(schedule="paper"), "evaluate": False, "steps": 12}
    expected = run(monkeypatch, "xla", objective, constraint, **options)
    found = run(monkeypatch, "persistent", objective, constraint, **options)
    assert (expected.kernel, found.kernel) == ("xla", "persistent")
    np.testing.assert_allclose(found.x, expected.x, atol=2e-6)


@pytest.mark.parametrize("name", RECIPES)
def test_the_kernel_follows_the_loop_with_every_rule(monkeypatch, name):
    algorithm, sense = RECIPES[name]
    objective, constraint = problem(5, "squared", "SubSimplex")
    found = {}
    for kernel in ("xla", "persistent"):
        monkeypatch.setenv(KERNEL_VARIABLE, kernel)
        found[kernel] = getattr(fw, sense)(objective, constraint, steps=25, algorithm=algorithm, evaluate=False)
        assert found[kernel].kernel == kernel
    np.testing.assert_allclose(found["persistent"].x, found["xla"].x, atol=5e-6)


@pytest.mark.parametrize("d", [1, 2, 31, 64, 300])
def test_the_kernel_follows_the_loop_at_every_size(monkeypatch, d):
    objective, constraint = problem(d, "logistic", "L1Ball")
    options = {"algorithm": fw.one_sfw(schedule="paper"), "evaluate": False, "steps": 10}
    expected = run(monkeypatch, "xla", objective, constraint, **options)
    found = run(monkeypatch, "persistent", objective, constraint, **options)
    assert found.kernel == "persistent"
    np.testing.assert_allclose(found.x, expected.x, atol=2e-6)


def test_the_kernel_keeps_x_o_and_takes_draws_from_outside(monkeypatch):
    objective = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2), lambda key: jax.random.normal(key, (3,)))
    options = {"algorithm": fw.one_sfw("nonconvex"), "evaluate": False}
    expected = run(monkeypatch, "xla", objective, fw.sets.L2Ball(1.0, shape=3), **options)
    found = run(monkeypatch, "persistent", objective, fw.sets.L2Ball(1.0, shape=3), **options)
    assert found.kernel == "persistent"
    np.testing.assert_allclose(found.x, expected.x, atol=1e-5)
    np.testing.assert_allclose(found.x_last, expected.x_last, atol=1e-5)


def test_another_loop_runs_what_the_kernel_cannot(monkeypatch):
    objective, _ = problem(5, "logistic", "L1Ball")
    result = run(monkeypatch, "persistent", objective, fw.sets.Permutahedron(np.arange(5.0)), evaluate=False)
    assert (result.kernel, result.steps) == ("xla", 40)


def test_a_kernel_that_does_not_compile_never_reaches_the_user(monkeypatch):
    def broken(*args):
        raise RuntimeError("the compiler gave up")

    monkeypatch.setattr(persistent, "evaluate", broken)
    objective, constraint = problem(5, "logistic", "L1Ball")
    assert run(monkeypatch, "persistent", objective, constraint, evaluate=False).kernel == "xla"


def test_a_jax_without_triton_never_reaches_the_user(monkeypatch):
    monkeypatch.setitem(sys.modules, "onesfw.engine.persistent", None)  # as where an import of Pallas fails
    objective, constraint = problem(5, "logistic", "L1Ball")
    assert run(monkeypatch, "persistent", objective, constraint, evaluate=False).kernel == "xla"


def test_what_jax_says_about_triton_never_reaches_the_user(monkeypatch):
    def deprecated(*args, **options):
        warnings.warn("the Triton backend is deprecated", DeprecationWarning, stacklevel=1)
        return called(*args, **options)

    called = persistent.pl.pallas_call
    monkeypatch.setattr(persistent.pl, "pallas_call", deprecated)
    objective, constraint = problem(7, "logistic", "L1Ball")
    assert run(monkeypatch, "persistent", objective, constraint, evaluate=False).kernel == "persistent"


def test_an_unknown_kernel_is_refused(monkeypatch):
    objective, constraint = problem(5, "logistic", "L1Ball")
    with pytest.raises(ValueError, match="ONESFW_KERNEL must be persistent or xla, got 'fast'"):
        run(monkeypatch, "fast", objective, constraint)
