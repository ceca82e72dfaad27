"""Constants estimated from samples: against derivatives by hand, their bounds against runs, and `onesfw bounds`."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import onesfw as fw
from onesfw import cli, zoo
from onesfw.theory import Bounds, Constants, EstimateWarning, estimate
from onesfw.theory.bounds import FORMS

SEEDS = 16


@cache
def known(name: str) -> Constants:
    """The estimated constants of a zoo problem."""
    problem = zoo.get(name)
    with pytest.warns(EstimateWarning, match="lower bounds of the true constants"):
        return estimate(problem.objective, problem.constraint, setting=problem.setting, points=32, samples=600)


# Estimates


def test_estimates_of_a_finite_sum():
    problem = zoo.get("logistic")
    rows = np.asarray(problem.objective.data[0])
    longest = np.max(np.sum(rows**2, 1))
    constants = known("logistic")
    assert constants.oblivious
    assert constants.D == 10
    assert constants.R == 5
    # ‖∇F̃‖ = σ(−y a·x)‖a‖ and ‖∇²F̃‖ = σ'(a·x)‖a‖², at most ‖a‖ and ‖a‖²/4, the latter at x = 0: the set's own start.
    assert 0.9 * math.sqrt(longest) <= constants.G <= math.sqrt(longest) * (1 + 1e-5)
    assert pytest.approx(longest / 4, rel=1e-4) == constants.L
    assert math.log(2) + 5 * np.abs(rows).max() >= constants.B


def test_estimates_of_a_density():
    constants = known("gaussian")
    assert not constants.oblivious
    assert constants.baseline
    # ∇F̃ = x − e_1, ∇²F̃ = I; the score (z − x)/s² has E‖·‖⁴ = d(d + 2)/s⁴, and its derivative is −I/s².
    assert pytest.approx(math.sqrt(2), rel=1e-5) == constants.G
    assert pytest.approx(1, rel=1e-5) == constants.L
    assert constants.score_G == pytest.approx((10 * 12) ** 0.25 / 0.5, rel=0.05)
    assert constants.score_L == pytest.approx(4, rel=1e-5)
    assert constants.L2 == constants.score_L2 == pytest.approx(0, abs=1e-5)


def test_estimates_of_third_derivatives():
    # F̃ = Σ x³/6 has ∇³F̃[v, v] = v² by entries, of norm 1 at a unit vector; log p = −½(z − x)² − x⁴/24 has |x| ≤ 1.
    objective = fw.NonOblivious(
        lambda x, z: jnp.sum(x**3) / 6 + 0 * z[0],
        lambda key, x: jax.random.normal(key, (2,)),
        lambda z, x: -jnp.sum((z - x) ** 2) / 2 - jnp.sum(x**4) / 24,
        baseline=False,
    )
    with pytest.warns(EstimateWarning):
        constants = estimate(objective, fw.sets.L1Ball(1.0, shape=2), points=20, samples=20)
    assert pytest.approx(1, rel=1e-3) == constants.L2
    assert constants.score_L2 == pytest.approx(1, rel=1e-3)
    assert pytest.approx(1, rel=1e-3) == constants.L
    assert not constants.baseline


def test_lemma_1_bounds_the_hessian_estimates():
    problem = zoo.get("gaussian")
    x, constants = jnp.full(10, 0.1), replace(known("gaussian"), baseline=False)

    def hessian(number):
        h = problem.objective.at(jax.random.fold_in(jax.random.key(5), number), x, jnp.zeros(()))
        return jax.hessian(h.value)(x)

    sizes = np.linalg.norm(np.asarray(jax.jit(jax.vmap(hessian))(jnp.arange(500))), 2, (1, 2))
    measured = math.sqrt(np.mean(sizes**2))
    assert measured <= Bounds(constants).smoothness
    assert Bounds(constants).smoothness <= Bounds(constants, "paper").smoothness


def test_estimates_repeat_grow_and_follow_the_dtype():
    rows = np.random.default_rng(0).normal(size=(50, 4))
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x["w"] - row) ** 2), rows)
    ball = fw.sets.L2Ball(1.0)
    x0 = {"w": np.zeros(4)}

    def measure(**options):
        with pytest.warns(EstimateWarning):
            return estimate(objective, ball, x0, **options)

    few, many = measure(points=8, samples=5), measure(points=8, samples=50)
    assert few == measure(points=8, samples=5, key=0)
    assert few.G < many.G <= 2 * (1 + np.linalg.norm(rows, axis=1).max())
    assert pytest.approx(2, rel=1e-12) == many.L  # float64, as x0
    assert (many.D, many.R) == (2.0, 1.0)


def test_mistakes_in_estimate():
    problem = zoo.get("quadratic-interior")
    with pytest.raises(TypeError, match=r"constraint must be a set from onesfw\.sets"):
        estimate(problem.objective, 3.0)
    with pytest.raises(ValueError, match="points must be a finite number of at least 1"):
        estimate(problem.objective, problem.constraint, points=0)
    with pytest.raises(ValueError, match="did you mean 'nonconvex'"):
        estimate(problem.objective, problem.constraint, setting="non-convex")
    with pytest.raises(ValueError, match="needs a set of non-negative vectors"):
        estimate(problem.objective, fw.sets.L1Ball(1.0, shape=20), setting="dr_submodular")
    with pytest.raises(TypeError, match="L2Ball does not know its shape"):
        estimate(problem.objective, fw.sets.L2Ball(1.0))
    overflow = fw.FiniteSum(lambda x, row: jnp.exp(1e4 * jnp.sum(x * row)), np.ones((3, 2), np.float32))
    with pytest.raises(ValueError, match=r"the estimate of \w+ is (inf|nan): the objective or a derivative overflows"):
        estimate(overflow, fw.sets.Simplex(shape=2))


# The theorems against runs


def mean_and_error(values) -> tuple[float, float]:
    values = np.asarray(values, np.float64)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


@cache
def solve(name: str, steps: int) -> fw.Result:
    problem = zoo.get(name)
    run = fw.minimize if problem.sense == "minimize" else fw.maximize
    return run(
        problem.objective, problem.constraint, steps=steps, algorithm=problem.algorithm(), key=3, replicates=SEEDS,
        evaluate=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["quadratic-interior", "sigmoid", "nqp", "gaussian"])
def test_measured_errors_lie_below_the_bounds(name):
    problem, bounds = zoo.get(name), Bounds(known(name))
    for steps in (2, 100, 2_000):
        result = solve(name, steps)
        if problem.setting == "nonconvex":
            errors = problem.gap(result.x)
        elif problem.setting == "dr_submodular":
            errors = (1 - 1 / math.e) * problem.optimum().value - problem.value(result.x)
        else:
            errors = problem.value(result.x) - problem.optimum().value
        mean, stderr = mean_and_error(errors)
        assert mean + 3 * stderr <= bounds.at(steps, problem.setting)


@pytest.mark.parametrize("name", ["quadratic-interior", "sigmoid", "nqp", "gaussian"])
def test_measured_gradient_errors_lie_below_the_lemma(name):
    problem, bounds = zoo.get(name), Bounds(known(name))
    for steps in (2, 100, 2_000):
        states = solve(name, steps).state
        points = np.stack([np.asarray(state.previous, np.float64) for state in states])
        estimates = np.stack([np.asarray(state.estimate.d, np.float64) for state in states])
        mean, stderr = mean_and_error(np.sum((estimates - problem.gradient(points)) ** 2, 1))
        assert mean + 3 * stderr <= bounds.gradient_error(steps, problem.setting)


# The command


def onesfw(*arguments: str):
    return CliRunner().invoke(cli.app, ["bounds", *arguments], env={"COLUMNS": "140"})


def test_the_command_prints_tables():
    outcome = onesfw("gaussian", "--steps", "1e4", "--epsilon", "0.1", "--points", "8", "--samples", "50")
    assert outcome.exit_code == 0, outcome.stderr
    for words in ("samples depend on x", "score_G", "homogeneous, with score", "paper, without score", "T = 10,000",
                  "steps for 0.1", "promises nothing", "is an estimate"):  # fmt: skip
        assert words in outcome.stdout


def test_the_command_prints_json():
    outcome = onesfw("nqp", "--json", "--steps", "500", "--epsilon", "2", "--points", "8", "--samples", "50")
    assert outcome.exit_code == 0, outcome.stderr
    answer = json.loads(outcome.stdout)
    assert (answer["problem"], answer["setting"], answer["steps"]) == ("nqp", "dr_submodular", 500)
    assert "lower bounds of the true constants" in answer["warning"]
    bounds = Bounds(Constants(**answer["constants"]))
    assert [row["form"] for row in answer["bounds"]] == list(FORMS)
    assert answer["bounds"][0]["bound"] == pytest.approx(bounds.dr_submodular(500))
    assert answer["bounds"][0]["steps_for_epsilon"] == bounds.steps_for(2.0, "dr_submodular")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nqpp"], "there is no problem 'nqpp'; did you mean 'nqp'?"),
        (["nqp", "--epsilon", "-1"], "--epsilon must be a finite number above 0"),
        (["nqp", "--setting", "convx"], "did you mean 'convex'?"),
        (["nqp", "--correction", "hesian"], "did you mean 'hessian'?"),
        (["nqp", "--steps", "0"], "--steps must be a finite number of at least 1"),
        (["logistic", "--setting", "dr_submodular"], "needs a set of non-negative vectors"),
    ],
)
def test_the_command_fails_in_a_sentence(arguments, words):
    outcome = onesfw(*arguments)
    assert outcome.exit_code == 2
    assert words in outcome.stderr
    assert "Traceback" not in outcome.stderr
