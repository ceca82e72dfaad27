"""The theorems as a calculator: against their own recursion, against runs, under changes of units, and in words."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import onesfw as fw
from onesfw import cli, zoo
from onesfw.algorithms import PRESETS
from onesfw.theory import Bounds, Constants, EstimateWarning, estimate
from onesfw.theory.bounds import CORRECTIONS, FORMS

SETTINGS = tuple(PRESETS)
OBLIVIOUS = Constants(G=3.0, L=2.0, D=1.5, B=4.0, R=1.2)
SCORED = Constants(
    G=3.0, L=2.0, D=1.5, B=4.0, R=1.2, L2=0.7, score_G=0.9, score_L=0.6, score_L2=0.4, oblivious=False, baseline=True
)
SEEDS = 16


def every_bounds():
    for constants in (OBLIVIOUS, SCORED):
        for form in FORMS:
            for score in (True, False):
                for correction in (None, *CORRECTIONS):
                    yield Bounds(constants, form, score, correction)


@cache
def known(name: str) -> Constants:
    """The estimated constants of a zoo problem."""
    problem = zoo.get(name)
    with pytest.warns(EstimateWarning, match="lower bounds of the true constants"):
        return estimate(problem.objective, problem.constraint, setting=problem.setting, points=32, samples=600)


# Formulas


def test_theorem_1_by_hand():
    # a = 2·3 + 1.5·2 = 9, b = 0, h = 1/2: C = 2a² = 162; paper: max{4·81, 256, (4·1.5·2)⁴ = 20736}.
    assert Bounds(OBLIVIOUS).error_constant() == pytest.approx(162)
    assert Bounds(OBLIVIOUS, "paper").error_constant() == pytest.approx(20736)
    expected = 2 * 1.5 * math.sqrt(162) / 10 + 2 * 1.5**2 * (1 + math.log(100)) / 200
    assert Bounds(OBLIVIOUS).convex(100) == pytest.approx(expected)
    assert Bounds(OBLIVIOUS).gradient_error(50) == pytest.approx(162 / 50)


def test_theorem_2_by_hand():
    slack = 4 / 3 - 2 ** (-2 / 3)
    constant = max(81 / slack, 2 ** (2 / 3) * 36)
    expected = (2 * 4 + 1.5 * 1.5 * math.sqrt(constant)) / 10 + 2 * 1.5**2 / 200
    assert Bounds(OBLIVIOUS).nonconvex(1000) == pytest.approx(expected)
    # Where steps are short the case t = 2 decides: C ≥ 2^α (2G)², which 1/h < 2^α does not imply.
    tiny = replace(OBLIVIOUS, D=1e-9)
    assert Bounds(tiny).error_constant("nonconvex") == pytest.approx(2 ** (2 / 3) * 36)


def test_theorem_3_by_hand():
    # R for D: a = 6 + 1.2·2 = 8.4.
    constant = 2 * 8.4**2
    expected = 4 * 1.2 * math.sqrt(constant) / 10 + 2 * 1.2**2 / 200
    assert Bounds(OBLIVIOUS).dr_submodular(100) == pytest.approx(expected)
    assert Bounds(OBLIVIOUS, "paper").error_constant("dr_submodular") == pytest.approx((4 * 1.2 * 2) ** 4)


def test_lemmas_as_the_paper_prints_them():
    common = Constants(G=3.0, L=2.0, D=1.5, B=4.0, oblivious=False)
    bounds = Bounds(common, "paper", score=False)
    smooth = math.sqrt(4 * 16 * 81 + 16 * 81 + 4 * 4 + 4 * 16 * 4)
    assert bounds.smoothness == pytest.approx(smooth)
    assert bounds.error_constant() == pytest.approx(
        max(4 * (6 + 1.5 * smooth) ** 2, 256, (3 * (smooth + 2)) ** 4), rel=1e-12
    )
    third = replace(bounds, correction="difference")
    first = 16 * (1.5**2 * smooth**2 + 9 + 3 * 1.5 * smooth)
    assert third.error_constant() == pytest.approx(max(first, 256, (6 * (smooth + 2)) ** 4), rel=1e-12)
    assert Bounds(replace(common, D=1e-6, G=1e-3, L=1e-3), "paper").error_constant() == 256


def test_lemmas_2_and_3_with_the_score():
    size, smooth = 8.0, 8 * 0.81 + 2 * 3 * 0.9 + 2 + 8 * 0.6
    assert Bounds(SCORED).smoothness == pytest.approx(smooth)
    gradient = 2 * (3 + size * 0.9)
    a, b = gradient + 1.5 * smooth, 1.5 * smooth / 2
    assert worst(a, b, 1.0) == pytest.approx(Bounds(SCORED).error_constant())
    extra = 1.5**2 * (0.7 + size * 0.4) / 2
    assert worst(a + extra, b + extra, 1.0) == pytest.approx(Bounds(SCORED, correction="difference").error_constant())
    # The printed algorithm takes no baseline: B, not 2B.
    plain = 4 * 0.81 + 2 * 3 * 0.9 + 2 + 4 * 0.6
    assert Bounds(SCORED, score=False).smoothness == pytest.approx(plain)
    expected = worst(6 + 1.5 * plain, 1.5 * (plain + 2), 1.0)
    assert Bounds(SCORED, score=False).error_constant() == pytest.approx(expected)


def worst(a: float, b: float, alpha: float) -> float:
    """The root of h C − 2·2^(−α/2) b √C − a² = 0, by NumPy."""
    slack = 2 - 2**-alpha - alpha
    return max(np.roots([slack, -2 * 2 ** (-alpha / 2) * b, -(a**2)]).real) ** 2


@given(st.floats(0, 5), st.floats(0, 50), st.floats(0, 5), st.floats(0.05, 1), st.sampled_from(FORMS), st.booleans())
def test_lemma_2_holds_for_its_own_recursion(G, L, D, alpha, form, hessian):
    """C t^(−α) lies above the worst sequence that the proof's recursion allows."""
    bounds = Bounds(Constants(G=G, L=L, D=D), form, correction="hessian" if hessian else None)
    a, b = 2 * G + D * L, D * L / 2 if hessian else 0.0
    t = np.arange(1, 2_000)
    promised = bounds.gradient_error(t, alpha=alpha)
    error = 4 * G**2
    assert promised[0] >= error * (1 - 1e-9)
    for step in range(2, t.size):
        assert promised[step - 1] >= error * (1 - 1e-9)
        rate = float(step) ** -alpha
        error = (1 - rate) ** 2 * error + (a * rate) ** 2 + 2 * b * rate**2 * math.sqrt(error)


def test_homogeneous_is_never_above_the_paper():
    for bounds in every_bounds():
        if bounds.correction != "difference" or bounds.constants.oblivious:
            paper = replace(bounds, form="paper")
            homogeneous = replace(bounds, form="homogeneous")
            assert homogeneous.smoothness <= paper.smoothness
            for setting in SETTINGS:
                assert homogeneous.error_constant(setting) <= paper.error_constant(setting)


def test_a_silent_score_leaves_the_oblivious_hessian_form():
    silent = replace(OBLIVIOUS, oblivious=False, score_G=0.0, score_L=0.0)
    assert Bounds(silent).smoothness == OBLIVIOUS.L
    for setting in SETTINGS:
        oblivious = Bounds(OBLIVIOUS, correction="hessian").at(100, setting)
        assert Bounds(silent).at(100, setting) == pytest.approx(oblivious)


# Monotonicity, the inverse, units


@pytest.mark.parametrize("setting", SETTINGS)
def test_bounds_grow_with_every_constant_and_fall_with_the_steps(setting):
    steps = np.unique(np.geomspace(1, 1e9, 300).astype(np.int64))
    for bounds in every_bounds():
        values = bounds.at(steps, setting)
        assert values.shape == steps.shape
        assert np.all(np.diff(values) < 0)
        assert bounds.at(int(steps[7]), setting) == pytest.approx(values[7])
        assert np.all(np.diff(bounds.gradient_error(steps, setting)) < 0)
        for field in fields(Constants):
            value = getattr(bounds.constants, field.name)
            if value is None or isinstance(value, bool):
                continue
            larger = replace(bounds, constants=replace(bounds.constants, **{field.name: 1.5 * value}))
            assert larger.at(100, setting) >= bounds.at(100, setting)
    used = {"G", "L"} | ({"R"} if setting == "dr_submodular" else {"D"}) | ({"B"} if setting == "nonconvex" else set())
    for name in used:
        larger = replace(OBLIVIOUS, **{name: 1.5 * getattr(OBLIVIOUS, name)})
        assert Bounds(larger).at(100, setting) > Bounds(OBLIVIOUS).at(100, setting)
    difference = Bounds(SCORED, correction="difference")
    for name in ("L2", "score_G", "score_L", "score_L2", "B"):
        larger = replace(SCORED, **{name: 1.5 * getattr(SCORED, name)})
        assert Bounds(larger, correction="difference").at(100, setting) > difference.at(100, setting)
    assert Bounds(replace(SCORED, baseline=False)).at(100, setting) < Bounds(SCORED).at(100, setting)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("epsilon", [1e3, 30.0, 10.0, 1.0, 0.1])
def test_steps_for_inverts_the_bound(setting, epsilon):
    bounds = Bounds(OBLIVIOUS)
    steps = bounds.steps_for(epsilon, setting)
    assert isinstance(steps, int)
    assert bounds.at(steps, setting) <= epsilon
    assert steps == 1 or bounds.at(steps - 1, setting) > epsilon


def test_the_logarithm_does_not_upset_the_inverse():
    # Almost no noise: (1 + ln T)/T decides. It is flat at T = 1, and falls.
    smooth = Bounds(Constants(G=0.0, L=1.0, D=1e-6))
    values = smooth.convex(np.arange(1, 20))
    assert np.all(np.diff(values) < 0)
    assert [smooth.steps_for(float(value)) for value in values] == list(range(1, 20))


def rescaled(constants: Constants, c: float, s: float) -> Constants:
    """The constants of c F(x/s) over s K."""
    units = {
        "B": c, "G": c / s, "L": c / s**2, "L2": c / s**3, "D": s, "R": s,
        "score_G": 1 / s, "score_L": s**-2, "score_L2": s**-3,
    }  # fmt: skip
    values = {name: getattr(constants, name) for name in units}
    return replace(constants, **{name: unit * values[name] for name, unit in units.items() if values[name] is not None})


@pytest.mark.parametrize("setting", SETTINGS)
@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_homogeneous_bounds_scale_as_the_error_does(setting, c, s):
    for bounds in every_bounds():
        if bounds.form == "paper":
            continue
        other = replace(bounds, constants=rescaled(bounds.constants, c, s))
        assert other.at(50, setting) == pytest.approx(c * bounds.at(50, setting), rel=1e-9)
        assert other.smoothness == pytest.approx(c / s**2 * bounds.smoothness, rel=1e-9)
        expected = (c / s) ** 2 * bounds.gradient_error(50, setting)
        assert other.gradient_error(50, setting) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("scale", [(10.0, 1.0), (1.0, 10.0)])
def test_the_papers_bounds_depend_on_the_units(setting, scale):
    for bounds in every_bounds():
        if bounds.form == "paper" and not (bounds.constants.oblivious and scale == (1.0, 10.0)):
            other = replace(bounds, constants=rescaled(bounds.constants, *scale))
            assert abs(other.at(50, setting) / (scale[0] * bounds.at(50, setting)) - 1) > 0.1
    # D(L̄ + L) has the units of F/x, its fourth power those of a C only by accident.
    other = Bounds(rescaled(OBLIVIOUS, 1.0, 10.0), "paper")
    assert other.error_constant(setting) != pytest.approx(Bounds(OBLIVIOUS, "paper").error_constant(setting) / 100)


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


# Words


def test_mistakes_in_constants():
    with pytest.raises(ValueError, match="G must be a finite number of at least 0, got nan"):
        Constants(G=math.nan, L=1.0, D=1.0)
    with pytest.raises(ValueError, match="score_L must be a finite number of at least 0, got -1"):
        Constants(G=1.0, L=1.0, D=1.0, score_L=-1.0)
    with pytest.raises(TypeError, match="D must be a number of at least 0, got None"):
        Constants(G=1.0, L=1.0, D=None)
    with pytest.raises(TypeError, match="oblivious must be True or False, got 1"):
        Constants(G=1.0, L=1.0, D=1.0, oblivious=1)


def test_mistakes_in_bounds():
    bare = Constants(G=1.0, L=1.0, D=1.0)
    with pytest.raises(TypeError, match="constants must be a Constants"):
        Bounds({"G": 1.0})
    with pytest.raises(ValueError, match=r"form='homogenous' is not known.*did you mean 'homogeneous'"):
        Bounds(bare, "homogenous")
    with pytest.raises(ValueError, match=r"correction='diference'.*did you mean 'difference'"):
        Bounds(bare, correction="diference")
    with pytest.raises(TypeError, match="score must be True or False"):
        Bounds(bare, score="no")
    with pytest.raises(ValueError, match=r"setting='convx' is not known.*did you mean 'convex'"):
        Bounds(bare).at(10, "convx")
    with pytest.raises(ValueError, match=r"the nonconvex setting needs B, a bound on .F̃.; pass B= to Constants"):
        Bounds(bare).nonconvex(10)
    with pytest.raises(ValueError, match="the dr_submodular setting needs R"):
        Bounds(bare).dr_submodular(10)
    with pytest.raises(ValueError, match="an objective whose samples depend on x needs B"):
        Bounds(replace(bare, oblivious=False)).convex(10)
    with pytest.raises(ValueError, match="the correction 'difference' needs L2"):
        Bounds(replace(bare, oblivious=False, B=1.0), correction="difference").convex(10)
    with pytest.raises(ValueError, match=r"alpha must lie in \(0, 1\], got 1.5"):
        Bounds(bare).gradient_error(10, alpha=1.5)
    for steps in (0, math.nan, [10, -1]):
        with pytest.raises(ValueError, match="steps must hold finite numbers of at least 1"):
            Bounds(bare).convex(steps)
    with pytest.raises(TypeError, match="t must be a step number or an array of them"):
        Bounds(bare).gradient_error("ten")
    with pytest.raises(ValueError, match="epsilon must be a finite number above 0, got 0"):
        Bounds(bare).steps_for(0)
    with pytest.raises(ValueError, match="epsilon=1e-200 would take more than 1e300 steps"):
        Bounds(bare).steps_for(1e-200)


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
