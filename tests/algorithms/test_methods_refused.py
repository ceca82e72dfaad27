"""What methods refuse: objectives and sets that cannot serve them, and arguments that make no sense, all by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from methods_checks import BALL, D, moving, noisy

import onesfw as fw
from onesfw.algorithms import ALGORITHMS, KNOWN_SETTINGS, SCHEDULES, SETTINGS
from onesfw.engine.programs import compilations
from onesfw.objectives.base import Objective
from onesfw.objectives.surrogates import surrogate

REFUSED = [
    (
        fw.svrf(),
        noisy(),
        TypeError,
        r"svrf needs a full gradient, which objective Expectation does not offer.*FiniteSum",
    ),
    (fw.storc(), noisy(), TypeError, r"storc needs a full gradient"),
    (fw.svfw(), noisy(), TypeError, r"svfw needs a full gradient"),
    (fw.saga_fw(), noisy(), TypeError, r"saga_fw needs numbered rows, which objective Expectation does not offer"),
    (fw.spider_fw(full=True), noisy(), TypeError, r"spider_fw needs a full gradient"),
    (fw.spider_fw(), moving(), TypeError, r"spider_fw needs samples whose distribution does not depend on x"),
    (fw.online_fw(), moving(), TypeError, r"online_fw needs samples whose distribution does not depend on x"),
    (fw.storm(), moving(), TypeError, r"storm needs samples whose distribution does not depend on x"),
    (fw.scg_plus_plus("convex", correction="importance"), noisy(), ValueError, r"correction='importance' is for"),
    (fw.minibatch_sfw(batch=lambda t: 5 - t), noisy(), ValueError, r"batch must be above 0; it is 0 at t = 5"),
    (fw.momentum_sfw("dr_submodular"), noisy(), ValueError, r"the dr_submodular setting maximises; call maximize"),
    (fw.momentum_sfw("nonmonotone_dr"), noisy(), ValueError, r"the nonmonotone_dr setting maximises; call maximize"),
    (fw.projected_sgd(eta=-1.0), noisy(), ValueError, r"eta must stay in \[0, ∞\); it is -1 at t = 1"),
    (fw.minibatch_sfw(batch=10**9), noisy(), ValueError, r"20 steps draw 20,000,000,000 samples; at most"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_a_method_says_what_it_cannot_do(case):
    algorithm, objective, kind, sentence = REFUSED[case]
    with pytest.raises(kind, match=sentence):
        fw.minimize(objective, BALL, steps=20, algorithm=algorithm, evaluate=False)


class Simulator(Objective):
    """Samples that depend on x, and nobody knows how: only ∇F̃(x; z) is to be had."""

    @property
    def offers(self):
        return set()

    def draw(self, key, number):
        return jax.random.fold_in(key, number)

    def at(self, draw, point, baseline):
        z = point + jax.random.normal(draw, point.shape)
        return surrogate(lambda y: jnp.sum((y - z) ** 2))

    def check(self, like, samples):
        pass


@pytest.mark.parametrize("method", ALGORITHMS)
def test_no_method_takes_gradients_without_their_score(method):
    """∇F̃(x; z) alone is biased where p depends on x: every method says so before it compiles anything."""
    algorithm = ALGORITHMS[method](SETTINGS[method][0])
    call = fw.maximize if algorithm.setting == "dr_submodular" else fw.minimize
    before = compilations()
    with pytest.raises(TypeError, match=rf"{method} needs .*, which objective Simulator does not offer"):
        call(Simulator(), fw.sets.Box(0.0, 1.0, shape=3), steps=5, algorithm=algorithm)
    assert compilations() == before


def test_momentum_without_the_score_names_the_remedy():
    with pytest.raises(TypeError, match=r"momentum_sfw needs unbiased gradients.* the score .*with log_prob="):
        fw.minimize(Simulator(), BALL, np.zeros(D), steps=5, algorithm=fw.momentum_sfw())


def test_sets_that_cannot_serve_a_method_are_named():
    vertices = fw.sets.VertexHull(np.eye(D))
    with pytest.raises(ValueError, match=r"constraint: VertexHull has no projection.*such as one_sfw"):
        fw.minimize(noisy(), vertices, steps=5, algorithm=fw.projected_sgd())
    nonmonotone = fw.momentum_sfw("nonmonotone_dr")
    with pytest.raises(ValueError, match=r"Simplex has no oracle below an upper bound; use Box"):
        fw.maximize(noisy(), fw.sets.Simplex(1.0, shape=D), steps=5, algorithm=nonmonotone)
    with pytest.raises(ValueError, match=r"the nonmonotone_dr setting needs a down-closed set, which holds 0"):
        fw.maximize(noisy(), fw.sets.Box(0.1, 1.0, shape=D), steps=5, algorithm=nonmonotone)


def test_settings_and_schedules_are_checked_by_name():
    assert set(SETTINGS) == set(ALGORITHMS) >= set(SCHEDULES)
    for name, recipe in ALGORITHMS.items():
        for setting in KNOWN_SETTINGS:
            if setting in SETTINGS[name]:
                assert recipe(setting).setting == setting
                assert recipe(setting).citation
            else:
                with pytest.raises(ValueError, match=rf"setting='{setting}': {name} has no such result; it serves"):
                    recipe(setting)
        for schedule in SCHEDULES.get(name, ()):
            assert recipe("convex", schedule=schedule).name.partition("[")[0] == name
        assert recipe(SETTINGS[name][0]).summary.startswith(f"{name}, ")
    for name in ("momentum_sfw", "minibatch_sfw", "spider_fw"):
        assert len(SCHEDULES[name]) >= 3
    with pytest.raises(ValueError, match=r"schedule='papr' is not known.*did you mean 'paper'"):
        fw.spider_fw(schedule="papr")
    with pytest.raises(ValueError, match=r"rho='adaptive' goes with a constant batch"):
        fw.one_sfw(rho="adaptive", batch=lambda t: t)
    for recipe in (fw.one_sfw, fw.momentum_sfw, fw.minibatch_sfw, fw.projected_sgd):
        with pytest.raises((ValueError, TypeError), match="batch must be"):
            recipe(batch=0)
        with pytest.raises(TypeError, match="batch must be a whole number of at least 1, or a function of t"):
            recipe(batch="many")


BAD = [float("nan"), float("inf"), -1, "many", [3], np.array([1, 2]), True, object()]
NUMBERS = {
    "minibatch_sfw": ("noise", "batch", "t0"),
    "spider_fw": ("noise", "batch"),
    "scg_plus_plus": ("noise", "batch"),
    "normalized_fw": ("batch",),
    "momentum_sfw": ("batch", "t0"),
    "online_fw": ("batch", "memory", "t0"),
    "svrf": ("constant", "batch"),
    "storc": ("constant", "smoothness", "inner", "batch"),
    "svfw": ("batch", "length"),
    "saga_fw": ("batch",),
    "projected_sgd": ("smoothness", "noise", "batch", "t0"),
    "storm": ("k", "w", "c", "batch"),
}


@pytest.mark.parametrize(("name", "argument"), [(n, a) for n, arguments in NUMBERS.items() for a in arguments])
def test_numbers_of_recipes_are_checked_by_name(name, argument):
    for value in BAD:
        with pytest.raises((ValueError, TypeError), match=argument):
            ALGORITHMS[name](SETTINGS[name][0], **{argument: value})


def test_functions_of_batches_are_checked_by_name():
    def broken(t):
        raise RuntimeError("no idea")

    for wrong, sentence in (
        (broken, "batch must return a number for every step t; the function failed: no idea"),
        (lambda t: np.nan, "batch must be above 0; it is nan at t = 1"),
        (lambda t: "many", "batch must return a number for every step t"),
        (lambda t: 1e30, "1 steps draw 2,147,483,648 samples"),
        (lambda a, b, c: 1, "batch must be a function of t or of"),
    ):
        for recipe in (fw.one_sfw, fw.momentum_sfw, fw.minibatch_sfw):
            with pytest.raises((ValueError, TypeError), match=sentence):
                fw.minimize(noisy(), BALL, steps=1, algorithm=recipe(batch=wrong), evaluate=False)
