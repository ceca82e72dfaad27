"""Every method on every problem of the zoo that it serves: from a stated number of samples to a stated accuracy."""

import itertools

import jax
import numpy as np
import pytest

import onesfw as fw
from onesfw import zoo
from onesfw.algorithms import ALGORITHMS, SETTINGS

SEEDS = 4
SAMPLES = 20_000
MORE = {
    ("logistic-wide", "scg_plus_plus"): 2_000_000,  # one start: what the path adds over a diameter of 100 stays
    ("quadratic-interior", "online_fw"): 2_000,  # 2 million gradient evaluations
    ("quadratic-noisy", "online_fw"): 2_000,
    ("quadratic-noisy", "momentum_sfw"): 200_000,
    ("quadratic-noisy", "minibatch_sfw"): 200_000,
    ("quadratic-noisy", "projected_sgd"): 200_000,
}
"""Samples where 20,000 say too little; `online_fw` has the samples of 40,000 gradient evaluations otherwise."""

THEOREMS = {"schedule": "paper", "noise": 1.0}  # better there than the rule that does best over all problems
OPTIONS = {
    ("interpolation", "momentum_sfw"): {"schedule": "paper"},
    ("logistic-generated", "minibatch_sfw"): THEOREMS,
    ("logistic-generated", "spider_fw"): THEOREMS,
    ("quadratic-face", "minibatch_sfw"): THEOREMS,
    ("quadratic-face", "spider_fw"): THEOREMS,
    ("quadratic-noisy", "spider_fw"): THEOREMS,
    ("quadratic-noisy", "scg_plus_plus"): {"noise": 1.0},
    ("logistic-wide", "spider_fw"): {"full": True},
    ("logistic-wide", "scg_plus_plus"): {"batch": 10_000},
    ("quadratic-interior", "minibatch_sfw"): {"schedule": "unit"},
    ("quadratic-face", "projected_sgd"): {"noise": 10.0},  # σ/R is about 9
    ("quadratic-noisy", "projected_sgd"): {"noise": 100.0},
    ("quadratic-noisy", "momentum_sfw"): {"schedule": "ninefold"},
    ("quadratic-noisy", "minibatch_sfw"): {"noise": 10.0},
}

# F(x) − F*, or the gap where F is not convex, that may be left on the mean of the seeds: about twice what was measured.
ACCURACY = {
    "logistic": {
        "one_sfw": 1.6e-3, "momentum_sfw": 0.018, "minibatch_sfw": 0.016, "online_fw": 0.018, "spider_fw": 0.01,
        "scg_plus_plus": 0.05, "svrf": 0.009, "storc": 2.2e-3, "projected_sgd": 6.5e-3, "frank_wolfe": 4.1e-3,
    },
    "logistic-generated": {
        "one_sfw": 1.6e-3, "momentum_sfw": 0.027, "minibatch_sfw": 0.012, "online_fw": 0.04, "spider_fw": 0.01,
        "scg_plus_plus": 0.025, "svrf": 3.4e-3, "storc": 0.09, "projected_sgd": 0.02, "frank_wolfe": 0.051,
    },
    "logistic-wide": {
        "one_sfw": 0.18, "momentum_sfw": 0.04, "minibatch_sfw": 0.3, "online_fw": 0.32, "spider_fw": 0.32,
        "scg_plus_plus": 0.2, "svrf": 0.16, "storc": 0.06, "projected_sgd": 0.036, "frank_wolfe": 0.19,
    },
    "interpolation": {
        "one_sfw": 8e-3, "momentum_sfw": 7e-6, "minibatch_sfw": 0.013, "online_fw": 0.015, "spider_fw": 0.06,
        "scg_plus_plus": 0.24, "svrf": 9e-3, "storc": 0.022, "projected_sgd": 8e-6, "frank_wolfe": 6.8e-3,
    },
    "quadratic-interior": {
        "one_sfw": 4e-4, "momentum_sfw": 2e-3, "minibatch_sfw": 5e-3, "online_fw": 5e-3, "spider_fw": 3.7e-3,
        "scg_plus_plus": 6e-3, "projected_sgd": 2.1e-3,
    },
    "quadratic-face": {
        "one_sfw": 1.7e-4, "momentum_sfw": 2.4e-3, "minibatch_sfw": 2e-3, "online_fw": 7.5e-3, "spider_fw": 9e-4,
        "scg_plus_plus": 6.5e-3, "projected_sgd": 0.011,
    },
    "quadratic-noisy": {
        "one_sfw": 0.065, "momentum_sfw": 0.27, "minibatch_sfw": 0.046, "online_fw": 0.45, "spider_fw": 0.2,
        "scg_plus_plus": 0.033, "projected_sgd": 0.22,
    },
    "gaussian": {
        "one_sfw": 2e-3, "momentum_sfw": 0.022, "minibatch_sfw": 0.017, "scg_plus_plus": 0.058, "projected_sgd": 0.055,
    },
    "sigmoid": {
        "one_sfw": 0.1, "minibatch_sfw": 0.16, "spider_fw": 0.2, "scg_plus_plus": 0.2, "normalized_fw": 0.3,
        "svfw": 0.21, "saga_fw": 0.13, "storm": 0.021, "frank_wolfe": 0.26,
    },
    "indefinite": {
        "one_sfw": 0.28, "minibatch_sfw": 1.8, "spider_fw": 0.6, "scg_plus_plus": 0.6, "normalized_fw": 1.1,
        "storm": 0.06,
    },
    "nqp": {"one_sfw": 0.2, "momentum_sfw": 0.25, "scg_plus_plus": 0.21, "projected_sgd": 0.15},
    "coverage": {
        "one_sfw": 0.065, "momentum_sfw": 0.13, "scg_plus_plus": 0.052, "projected_sgd": 0.028, "frank_wolfe": 0.024,
    },
}  # fmt: skip
PAIRS = [(problem, method) for problem, methods in ACCURACY.items() for method in methods]

QUICK = {
    "logistic": ("svrf", "storc"),
    "quadratic-face": ("momentum_sfw", "minibatch_sfw", "online_fw", "spider_fw", "scg_plus_plus", "projected_sgd"),
    "sigmoid": ("normalized_fw", "svfw", "saga_fw", "storm"),
    "coverage": ("projected_sgd", "scg_plus_plus"),
}


def recipe(problem, name):
    return ALGORITHMS[name](problem.setting, **OPTIONS.get((problem.name, name), {}))


def error(problem, x):
    if problem.setting == "nonconvex":
        return problem.gap(x)
    return np.abs(problem.optimum().value - problem.value(x))


@pytest.mark.parametrize(
    ("name", "method"),
    [pytest.param(p, m, marks=() if m in QUICK.get(p, ()) else pytest.mark.slow) for p, m in PAIRS],
)
def test_a_method_reaches_its_accuracy(name, method):
    problem = zoo.get(name)
    algorithm = recipe(problem, method)
    evaluations = method == "online_fw" and (name, method) not in MORE
    budget = {"gradients": 2 * SAMPLES} if evaluations else {"samples": MORE.get((name, method), SAMPLES)}
    steps = algorithm.steps_for(problem.objective, **budget)
    run = (fw.minimize if problem.sense == "minimize" else fw.maximize)(
        problem.objective, problem.constraint, steps=steps, algorithm=algorithm, replicates=SEEDS, evaluate=False
    )
    assert error(problem, np.asarray(run.x, np.float64)).mean() <= ACCURACY[name][method]
    assert jax.vmap(lambda x: problem.constraint.contains(x, 1e-4))(run.x).all()


def test_the_table_holds_every_method_on_every_problem_that_it_serves():
    def serves(problem, name):
        if problem.setting not in SETTINGS[name]:
            return False
        return recipe(problem, name).estimator(problem.objective).needs <= set(problem.objective.offers)

    assert [(p, m) for p in ACCURACY for m in ALGORITHMS if serves(zoo.get(p), m)] == PAIRS
    assert set(ACCURACY) == set(zoo.names())


@pytest.mark.parametrize("name", ACCURACY)
def test_every_accuracy_is_better_than_the_start(name):
    problem = zoo.get(name)
    start = error(problem, problem.start()[None])[0]
    assert max(ACCURACY[name].values()) < start


SETS = {
    "knapsack": fw.sets.Knapsack(np.ones(12), 4.0),
    "matroid": fw.sets.MatroidPolytope(fw.submodular.UniformMatroid(12, 4)),
}
SHARES = {"one_sfw": 0.97, "momentum_sfw": 0.9, "scg_plus_plus": 0.97, "projected_sgd": 0.9, "frank_wolfe": 0.98}


@pytest.mark.parametrize("sampled", [False, True], ids=["closed form", "random sets"])
@pytest.mark.parametrize("method", [m for m, settings in SETTINGS.items() if "dr_submodular" in settings])
@pytest.mark.parametrize("name", SETS)
def test_every_method_for_dr_submodular_maximisation_serves_set_functions(name, method, sampled):
    """A share of the best coverage by 4 of 12 elements, found among all of them; S may be drawn, without a density."""
    covers = (np.random.default_rng(1).random((12, 40)) < 0.2).astype(float)
    best = max(covers[list(s)].max(0).mean() for s in itertools.combinations(range(12), 4))
    function = fw.MultilinearExtension(fw.submodular.Coverage(covers, np.full(40, 1 / 40)), sampled=sampled)
    algorithm = ALGORITHMS[method]("dr_submodular")

    def run():
        steps = algorithm.steps_for(function, samples=4_000)
        return fw.maximize(function, SETS[name], steps=steps, algorithm=algorithm, evaluate=False).x

    if method == "frank_wolfe" and sampled:
        with pytest.raises(TypeError, match="frank_wolfe needs a full gradient"):
            run()
    else:
        x = np.asarray(run(), float)
        assert 1 - np.mean(np.prod(1 - covers * x[:, None], 0)) > SHARES[method] * best
        assert bool(SETS[name].contains(x, 1e-6))


@pytest.mark.parametrize("constraint", [fw.sets.Box(0.0, 1.0, shape=4), fw.sets.Knapsack(np.ones(4), 1.5)])
def test_non_monotone_continuous_greedy_keeps_its_promise(constraint):
    """½ x'Hx + h'x with h so small that F falls again inside the box: 1/e of the best value, found on a grid."""
    rng = np.random.default_rng(4)
    matrix = -rng.random((4, 4))
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    linear, noise = -0.4 * matrix.sum(1), rng.normal(0, 0.3, (500, 4))
    objective = fw.FiniteSum(lambda x, row: x @ matrix @ x / 2 + row @ x, linear + noise - noise.mean(0))
    run = fw.maximize(
        objective, constraint, np.zeros(4), steps=2_000, algorithm=fw.momentum_sfw("nonmonotone_dr"), evaluate=False
    )

    def value(x):
        return np.sum(x @ matrix * x, -1) / 2 + x @ linear

    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 11)] * 4), -1).reshape(-1, 4)
    inside = grid[np.asarray(jax.vmap(constraint.contains)(grid))]
    assert value(np.ones(4)) < value(inside).max()  # more is not better
    assert value(np.asarray(run.x)) > value(inside).max() / np.e
    assert bool(constraint.contains(run.x, 1e-9))
    assert run.x.max() < 1 - (1 - 1 / 2_000) ** 2_000 + 1e-9  # v_t ≤ 1 − x_t: no entry fills up
