"""The theorems as a calculator: by hand, against their own recursion, under changes of units, and mistakes in words."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesfw.algorithms import PRESETS
from onesfw.theory import Bounds, Constants, promises_from
from onesfw.theory.bounds import CORRECTIONS, FORMS

SETTINGS = tuple(PRESETS)
OBLIVIOUS = Constants(G=3.0, L=2.0, D=1.5, B=4.0, R=1.2)
SCORED = Constants(
    G=3.0, L=2.0, D=1.5, B=4.0, R=1.2, L2=0.7, score_G=0.9, score_L=0.6, score_L2=0.4, oblivious=False, baseline=True
)


def every_bounds():
    for constants in (OBLIVIOUS, SCORED):
        for form in FORMS:
            for score in (True, False):
                for correction in (None, *CORRECTIONS):
                    yield Bounds(constants, form, score, correction)


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


@pytest.mark.parametrize(
    ("constants", "options", "error", "words"),
    [
        (3, {}, TypeError, "constants must be a Constants"),
        (None, {"steps": 0}, ValueError, "steps must be a finite number of at least 1"),
        (None, {"epsilon": 0.0}, ValueError, "epsilon must be a finite number above 0"),
    ],
)
def test_promises_from_names_what_is_wrong(constants, options, error, words):
    with pytest.raises(error, match=words):
        promises_from(constants or OBLIVIOUS, **options)
