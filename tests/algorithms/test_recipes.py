"""What each recipe is made of: its output, its schedules and its sizes, as numbers written out from the listings."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw
from onesfw import zoo
from onesfw.algorithms import ALGORITHMS, SCHEDULES, SETTINGS
from onesfw.estimators import StepInputs
from onesfw.estimators.one_sample import Moments, adaptive_rho
from onesfw.schedules.sizes import Sizes

T = 64  # the horizon at which schedules are read, at t = 10
LISTED = {
    ("one_sfw", "convex"): ("last", 1 / 9, 1 / 10),
    ("one_sfw", "nonconvex"): ("random", 9 ** (-2 / 3), 1 / 16),
    ("one_sfw", "dr_submodular"): ("last", 1 / 9, 1 / 64),
    ("momentum_sfw", "convex"): ("last", 10 ** (-2 / 3), 1 / 10),
    ("momentum_sfw", "dr_submodular"): ("last", 4 / 18 ** (2 / 3), 1 / 64),
    ("momentum_sfw", "nonmonotone_dr"): ("last", 4 / 18 ** (2 / 3), 1 / 64),
    ("minibatch_sfw", "convex"): ("last", 1, 1 / 10),
    ("minibatch_sfw", "nonconvex"): ("random", 1, 1 / 8),
    ("online_fw", "convex"): ("last", 1, 1 / 10),
    ("spider_fw", "convex"): ("last", 0, 1 / 10),
    ("spider_fw", "nonconvex"): ("random", 0, 1 / 8),
    ("scg_plus_plus", "dr_submodular"): ("last", 0, 1 / 64),
    ("scg_plus_plus", "convex"): ("last", 0, math.log(64) / 64),
    ("scg_plus_plus", "nonconvex"): ("random", 0, 1 / 8),
    ("normalized_fw", "nonconvex"): ("random", 0, 1 / 8),
    ("svrf", "convex"): ("last", 1, 2 / 11),  # step 10 of the first epoch, which has 14
    ("storc", "convex"): ("last", 1, None),
    ("svfw", "nonconvex"): ("random", 1, 1 / 8),
    ("saga_fw", "nonconvex"): ("random", 1, 1 / 8),
    ("projected_sgd", "convex"): ("average", 1, 1 / (10 + 10**0.5)),
    ("projected_sgd", "dr_submodular"): ("random", 1, 1 / (1 + 10**0.5)),
    ("storm", "nonconvex"): ("random", None, None),
    ("frank_wolfe", "convex"): ("last", 1, 2 / 11),
    ("frank_wolfe", "nonconvex"): ("random", 1, 1 / 8),
    ("frank_wolfe", "dr_submodular"): ("last", 1, 1 / 64),
}


def read(schedule, t=10):
    return float(np.ravel(schedule(np.array([float(t)]), T))[0])


def test_every_recipe_is_listed():
    assert set(LISTED) == {(name, setting) for name, settings in SETTINGS.items() for setting in settings}


@pytest.mark.parametrize(("name", "setting"), LISTED)
def test_outputs_and_schedules(name, setting):
    output, rho, eta = LISTED[name, setting]
    algorithm = ALGORITHMS[name](setting, **({"schedule": "paper"} if name == "one_sfw" else {}))
    assert algorithm.output == output
    for schedule, number in ((algorithm.rho, rho), (algorithm.eta, eta)):
        if number is not None:
            assert read(schedule) == pytest.approx(number, rel=1e-12)


AUTOMATIC = {
    "convex": ("corrected", True, 1 / 10),
    "nonconvex": ("corrected", True, 1 / 11),
    "dr_submodular": ("last", True, 1 / 16),  # of the first phase, which takes a quarter of the 64 steps
}


@pytest.mark.parametrize("setting", AUTOMATIC)
def test_the_default_schedule_of_each_setting(setting):
    algorithm = fw.one_sfw(setting)
    adaptive = algorithm.estimator(zoo.get("quadratic-face").objective).adaptive
    assert (algorithm.output, adaptive, pytest.approx(read(algorithm.eta))) == AUTOMATIC[setting]


def test_a_rho_or_an_eta_of_ones_own_takes_the_rest_from_auto_and_the_last_iterate():
    objective = zoo.get("quadratic-face").objective
    own_eta, own_rho = fw.one_sfw(eta=lambda t: 2 / (t + 2)), fw.one_sfw(rho=0.5)
    assert own_eta.estimator(objective).adaptive
    assert not own_eta.estimator(objective).paced
    assert not own_rho.estimator(objective).adaptive
    assert read(own_rho.eta) == pytest.approx(1 / 10)
    assert {own_eta.output, own_rho.output} == {"last"}
    assert fw.one_sfw(rho="adaptive").summary == fw.one_sfw().summary
    growing = fw.one_sfw(batch=lambda t: t)
    assert read(growing.rho) == pytest.approx(1 / 9)
    assert growing.output == "last"


def test_an_output_of_ones_own():
    assert fw.one_sfw(output="last").output == "last"
    assert fw.one_sfw("nonconvex", output="random").output == "random"
    assert fw.one_sfw(schedule="tuned", output="corrected").output == "corrected"
    with pytest.raises(ValueError, match="output='corrected' needs rho='adaptive'"):
        fw.one_sfw(schedule="paper", output="corrected")
    with pytest.raises(ValueError, match="the dr_submodular setting ends at"):
        fw.one_sfw("dr_submodular", output="average")
    with pytest.raises(ValueError, match="output"):
        fw.one_sfw(output="best")


RULES = {  # (ρ, η) at t = 10 of the named rules of the convex setting
    "one_sfw": {
        "auto": (None, 1 / 10), "paper": (1 / 9, 1 / 10), "tuned": (None, 1 / 10), "adaptive": (None, 2 / 11),
        "c2": (2 / 9, 2 / 11), "c4": (4 / 9, 2 / 11),
    },
    "momentum_sfw": {
        "paper": (4 / 18 ** (2 / 3), 1 / 11), "book": (4 / 18 ** (2 / 3), 2 / 17),
        "ninefold": (4 / 17 ** (2 / 3), 9 / 18), "unit": (10 ** (-2 / 3), 1 / 10),
        "double": (11 ** (-2 / 3), 2 / 12),
    },
    "minibatch_sfw": {"paper": (1, 2 / 11), "book": (1, 2 / 17), "unit": (1, 1 / 10)},
    "spider_fw": {"paper": (0, 2 / 11), "book": (0, 2 / 11), "unit": (0, 1 / 10)},
    "online_fw": {"paper": (1, 10**-0.5), "unit": (1, 1 / 10), "double": (1, 2 / 11)},
    "svrf": {"paper": (1, 2 / 11), "book": (1, 2 / 11)},
}  # fmt: skip


def test_every_named_rule_is_what_its_docstring_says():
    assert {name: tuple(rules) for name, rules in RULES.items()} == SCHEDULES
    for name, rules in RULES.items():
        for rule, (rho, eta) in rules.items():
            algorithm = ALGORITHMS[name]("convex", schedule=rule)
            assert read(algorithm.eta) == pytest.approx(eta, rel=1e-12), (name, rule)
            if rho is not None:
                assert read(algorithm.rho) == pytest.approx(rho, rel=1e-12), (name, rule)


@pytest.mark.parametrize(
    ("name", "setting", "rule"),
    [
        ("momentum_sfw", "dr_submodular", "ninefold"),
        ("minibatch_sfw", "nonconvex", "unit"),
        ("spider_fw", "nonconvex", "book"),
    ],
)
def test_a_rule_of_the_convex_setting_is_refused_elsewhere(name, setting, rule):
    with pytest.raises(ValueError, match=f"schedule='{rule}' is a step rule of the convex setting"):
        ALGORITHMS[name](setting, schedule=rule)


def test_sizes_of_the_nonconvex_setting():
    """Epochs of ⌈√T⌉ steps that start from T samples, and ⌈√T⌉ samples between: SPIDER, SCG++, the normalised one."""
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.ones((30, 2)))
    for recipe in (fw.spider_fw, fw.scg_plus_plus, fw.normalized_fw):
        assert recipe("nonconvex").counts(objective, T).samples == 8 * (64 + 7 * 8)
    assert fw.minibatch_sfw("nonconvex").counts(objective, T).samples == T * T


def test_storm_counts_its_batch():
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.ones((30, 2)))
    assert fw.storm(batch=3).counts(objective, 10) == (30, 3 * 19, 0)


def test_the_adaptive_constant_has_a_cap():
    assert float(adaptive_rho(Moments(jnp.float32(1e9), jnp.float32(1.0)), jnp.float32(50.0))) == pytest.approx(
        100 / 148
    )


# Batches whose size is a function


def test_a_batch_of_three_is_three_whichever_way_it_is_given():
    """Where z depends on x the baseline is the mean of all values seen: the same samples give the same run."""
    problem = zoo.get("gaussian")
    start = np.full(10, 0.1)
    runs = [
        fw.minimize(problem.objective, problem.constraint, start, steps=40, algorithm=algorithm, evaluate=False)
        for algorithm in (fw.momentum_sfw(batch=3), fw.momentum_sfw(batch=lambda t: 3 + 0 * t))
    ]
    np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=1e-9)
    np.testing.assert_allclose(runs[0].state.estimate.baseline, runs[1].state.estimate.baseline, rtol=1e-9)


def test_every_sample_of_a_batch_has_its_own_place_on_the_segment():
    """Σ x⁴ has the change 4(x_t³ − x_{t−1}³): one place for 400 samples would miss it by far."""
    objective = fw.Expectation(lambda x, z: jnp.sum(x**4), lambda key: jnp.zeros(()))
    estimator = fw.one_sfw(correction="hessian", batch=lambda t: 400 + 0 * t).estimator(objective)
    x, previous = jnp.array([1.0, -0.5]), jnp.array([-1.0, 2.0])
    zero = jnp.int32(0)
    for seed in range(3):
        draws = estimator.draws(objective, jax.random.key(seed), jnp.int32(5))
        now = StepInputs(x, previous, draws, Sizes(zero, jnp.int32(400)), jnp.float32(0.0), jnp.int32(5))
        d = np.asarray(estimator.update(objective, estimator.init(x), now).d)
        along = np.linspace(0, 1, 1001)[:, None] * np.asarray(x - previous) + np.asarray(previous)
        spread = (12 * along**2 * np.asarray(x - previous)).std(0) / np.sqrt(400)
        np.testing.assert_array_less(np.abs(d - 4 * np.asarray(x**3 - previous**3)), 5 * spread)


def test_storm_never_weighs_a_gradient_by_more_than_one():
    """With small gradients c η² is far above 1; a_t is then 1, and d_t the plain stochastic gradient."""
    rows = 1e-3 * np.random.default_rng(0).normal(size=(50, 3))
    objective = fw.FiniteSum(lambda x, row: row @ x, rows, indices=np.arange(20))
    run = fw.minimize(objective, fw.sets.L2Ball(1.0), np.zeros(3), steps=20, algorithm=fw.storm(c=1e6), evaluate=False)
    np.testing.assert_allclose(run.state.estimate.d, rows[19], rtol=1e-9)
    drifting = fw.FiniteSum(lambda x, row: 0.5 * jnp.sum((x - row) ** 2), rows, indices=np.arange(20))
    run = fw.minimize(drifting, fw.sets.L2Ball(1.0), np.zeros(3), steps=20, algorithm=fw.storm(c=1e6), evaluate=False)
    np.testing.assert_allclose(run.state.estimate.d, np.asarray(run.state.previous) - rows[19], rtol=1e-6, atol=1e-12)


def test_nonconvex_runs_with_a_score_forget_their_first_vertices_sooner():
    """η = 1/(t+1) becomes 2/(t+2) where z has a log-density, unless an η or a ρ was given; elsewhere it stays."""
    scored, plain = zoo.get("gaussian").objective, zoo.get("sigmoid").objective
    weight = jnp.float32(1 / 8)  # of t = 7

    def pace(objective, **options):
        estimator = fw.one_sfw("nonconvex", **options).estimator(objective)
        return float(estimator.pace(estimator.init(jnp.zeros(10)), weight))

    assert pace(scored) == pace(scored, correction="importance") == pytest.approx(2 / 9)
    assert pace(plain) == pace(scored, eta=0.1) == pace(scored, rho=0.1) == pace(scored, schedule="paper") == 1 / 8
