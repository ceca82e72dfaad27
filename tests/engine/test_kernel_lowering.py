"""The persistent kernel lowered for a GPU on a machine without one: Pallas' Triton lowering runs anywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from kernel_cases import LOSSES, RECIPES, SETS, problem

import onesfw as fw
from onesfw.engine.checks import checked_run
from onesfw.engine.padded import ELEMENTWISE, NotPaddable
from onesfw.engine.programs import gathered, kernel_chunk
from onesfw.linear import LOSSES as LINEAR_LOSSES
from onesfw.linear import Settings, examples
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.swept import FORMULAS, dense_problem

pytestmark = pytest.mark.skipif(
    jax.__version_info__ >= (0, 11), reason="from JAX 0.11 on the lowering asks the machine for its GPU"
)


def lowered(objective, constraint, algorithm=None, sense="minimize", steps=1_000, runs=1):
    """The text of a chunk for a GPU of NVIDIA's."""
    sign = 1 if sense == "minimize" else -1
    algorithm = fw.one_sfw(schedule="paper") if algorithm is None else algorithm
    with checked_run(objective, constraint, None, sign, steps=steps, algorithm=algorithm, evaluate=False) as run:
        key = jax.random.key(0) if runs == 1 else jax.random.split(jax.random.key(0), runs)
        function, *arguments = kernel_chunk(run, gathered([run] * runs, runs > 1), key, interpret=False)
        return jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("d", [1, 2, 3, 8, 33, 300, 4_000])
def test_every_size_lowers(d):
    assert "__gpu$xla.gpu.triton" in lowered(*problem(d, "logistic", "L1Ball"))


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_lowers(loss):
    assert "__gpu$xla.gpu.triton" in lowered(*problem(5, loss, "Simplex"))


@pytest.mark.parametrize("name", SETS)
def test_every_set_lowers(name):
    assert "__gpu$xla.gpu.triton" in lowered(*problem(6, "logistic", name))


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_lowers(name):
    objective, constraint = problem(6, "squared", "SubSimplex")
    assert "__gpu$xla.gpu.triton" in lowered(objective, constraint, *RECIPES[name])


@pytest.mark.parametrize("steps", [1 << 20, 1 << 23])
def test_long_runs_lower(steps):
    objective, constraint = problem(6, "squared", "L1Ball")
    assert "__gpu$xla.gpu.triton" in lowered(objective, constraint, fw.one_sfw(), steps=steps)


def test_many_runs_lower_with_draws_from_outside():
    objective = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2), lambda key: jax.random.normal(key, (3,)))
    text = lowered(objective, fw.sets.L2Ball(1.0, shape=3), runs=16_384)
    assert "__gpu$xla.gpu.triton" in text
    assert "grid_x = 16384" in text


def test_a_product_lowers():
    sets = fw.sets.Product({"slopes": fw.sets.L1Ball(1.0, shape=5), "level": fw.sets.Box(-1.0, 1.0, shape=())})
    data = problem(5, "logistic", "L1Ball")[0].data
    objective = fw.FiniteSum(lambda x, row: (row[0] @ x["slopes"] + x["level"] - row[1]) ** 2, data)
    assert "__gpu$xla.gpu.triton" in lowered(objective, sets, fw.one_sfw())


@pytest.mark.parametrize("loss", FORMULAS)
def test_linear_models_of_dense_rows_lower(loss):
    """What cross-validation and stability selection send to a sweep, with an intercept."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(20) > 0.5, 1.0, -1.0) if LINEAR_LOSSES[loss].classifies else rng.random(20)
    data = examples(rng.normal(size=(20, 5)), y, None, 5, LINEAR_LOSSES[loss])
    problem = dense_problem(Settings(5, loss, intercept=ANYWHERE), data, 0, [1.0])
    assert "__gpu$xla.gpu.triton" in lowered(problem.objective, problem.sets[0], fw.one_sfw(), runs=4)


def test_what_triton_cannot_do_is_found_here():
    """Errors of both kinds: what has no padded form, and what Pallas cannot lower though the padded form has it."""
    objective, constraint = problem(5, "squared", "L1Ball")
    sorting = fw.FiniteSum(lambda x, row: jnp.sort(x * row[0])[0], objective.data)
    with pytest.raises(NotPaddable, match="sort"):
        lowered(sorting, constraint)
    with pytest.raises(NotImplementedError, match="round"):
        lowered_alone(jnp.round, 1)


EXAMPLES = {
    "clamp": lambda x, y: lax.clamp(np.float32(0), x, np.float32(1)),
    "convert_element_type": lambda x, y: x.astype(jnp.int32),
    "integer_pow": lambda x, y: lax.integer_pow(x, -3),
    "select_n": lambda x, y: jnp.where(x > 0, x, y),
    "pow": lambda x, y: lax.pow(jnp.abs(x), y),
    "not": lambda x, y: ~(x > y),
    "and": lambda x, y: (x > 0) & (y > 0),
    "or": lambda x, y: (x > 0) | (y > 0),
    "xor": lambda x, y: (x > 0) ^ (y > 0),
}
WHOLE = ("clz", "population_count", "shift_left", "shift_right_arithmetic", "shift_right_logical")
BINARY = {"add", "atan2", "div", "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "nextafter", "rem", "sub"}


def lowered_alone(function, operands, dtype=jnp.float32):
    """A kernel of one function of vectors, for a GPU."""

    def body(*refs):
        refs[-1][:] = function(*(ref[:] for ref in refs[:-1])).astype(jnp.float32)

    arguments = [jax.ShapeDtypeStruct((8,), dtype)] * operands
    call = pl.pallas_call(
        body, out_shape=jax.ShapeDtypeStruct((8,), jnp.float32), compiler_params=triton.CompilerParams(num_warps=1)
    )
    assert "__gpu$xla.gpu.triton" in jax.jit(call).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_every_elementwise_operation_lowers(name):
    if name in EXAMPLES:
        lowered_alone(EXAMPLES[name], 2)
        return
    function = getattr(lax, name, None)
    if function is None:
        pytest.skip(f"this version of JAX has no {name}")
    operands = 2 if name in BINARY or name.startswith("shift") else 1
    lowered_alone(function, operands, jnp.int32 if name in WHOLE else jnp.float32)
