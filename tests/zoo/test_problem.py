"""A problem from Python: found by a word, over another set, run as the command runs it; and the names it suggests."""

import textwrap
from dataclasses import replace

import numpy as np
import pytest

import onesfw as fw
from onesfw import zoo
from onesfw.algorithms import ALGORITHMS
from onesfw.arguments import errors_between, nearest
from onesfw.engine import checks
from onesfw.experiments import compare
from onesfw.theory import EstimateWarning, estimate


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        textwrap.dedent("""
        import jax.numpy as jnp, numpy as np, onesfw as fw
        objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.eye(4, dtype=np.float32))
        constraint = fw.sets.L1Ball(1.0, shape=4)
        x0 = np.full(4, 0.25, np.float32)
        named = fw.zoo.Problem("named", "words", objective, constraint)
        own_start = fw.zoo.Problem("own", "words", objective, constraint, x0=np.zeros(4, np.float32))
        """)
    )
    return str(path)


def test_python_finds_what_the_command_finds(mine):
    assert zoo.find("nqp") is zoo.get("nqp")
    found = zoo.find(mine)
    assert (found.name, found.sense, found.setting, found.exact) == ("mine", "minimize", "convex", False)
    np.testing.assert_array_equal(found.x0, np.full(4, 0.25))
    assert zoo.find(f"{mine}:named").name == "named"
    np.testing.assert_array_equal(zoo.find(f"{mine}:named").x0, np.full(4, 0.25))
    np.testing.assert_array_equal(zoo.find(f"{mine}:own_start").x0, np.zeros(4))


def test_a_run_is_the_library_s_own():
    problem = zoo.get("quadratic-face")
    result = problem.run(steps=200, key=3)
    again = fw.minimize(problem.objective, problem.constraint, steps=200, key=3)
    np.testing.assert_array_equal(result.x, again.x)
    assert (result.problem, again.problem) == ("quadratic-face", "")
    assert zoo.get("nqp").run(steps=50, float64=True).x.dtype == np.float64
    assert problem.run(steps=20, algorithm=fw.momentum_sfw()).algorithm.startswith("momentum_sfw")
    with pytest.raises(ValueError, match="setting: the algorithm has one already"):
        problem.run(steps=20, algorithm=fw.one_sfw(), setting="nonconvex")


def test_another_set_keeps_the_function_and_forgets_the_optimum():
    problem = zoo.get("logistic")
    other = problem.over("L2Ball", 2.0)
    assert isinstance(other.constraint, fw.sets.L2Ball)
    assert other.best_value() is None
    x = np.zeros(30)
    assert other.value(x) == problem.value(x)
    assert problem.over() is problem
    assert problem.over(radius=2.0).constraint.radius == 2.0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"set_name": "l1ball"}, "set_name: there is no set 'l1ball'; did you mean 'L1Ball'?"),
        ({"set_name": "L1Ball"}, "radius: L1Ball needs one"),
        ({"set_name": "Knapsack", "radius": 1.0}, "set_name: Knapsack takes costs, budget, upper"),
    ],
)
def test_from_python_an_error_names_the_argument(wrong, words):
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        zoo.get("quadratic-face").over(**wrong)


def test_a_problem_knows_its_sense():
    problem = zoo.get("quadratic-face")
    assert replace(problem, setting="dr_submodular", sense="").sense == "maximize"
    assert replace(problem, sense="maximize").sense == "maximize"
    with pytest.raises(ValueError, match="did you mean 'minimize'"):
        replace(problem, sense="minimise")
    with pytest.raises(ValueError, match="setting='convx' is not known"):
        replace(problem, setting="convx")


def test_there_is_one_preamble(monkeypatch):
    """minimize, comparisons and estimates come through the same checks."""
    seen = []
    build = checks.build_run
    monkeypatch.setattr(checks, "build_run", lambda *a, **k: seen.append(k["steps"]) or build(*a, **k))
    problem = zoo.get("quadratic-face")
    problem.run(steps=30)
    assert seen == [30]
    compare(problem, algorithms=["one_sfw"], samples=40, seeds=1)
    assert seen[1] == 40
    seen.clear()
    with pytest.warns(EstimateWarning):
        estimate(problem.objective, problem.constraint, points=2, samples=5)
    assert seen == [1]


@pytest.mark.parametrize(
    ("name", "names", "meant"),
    [
        ("sgd", ALGORITHMS, "projected_sgd"),
        ("svrg", ALGORITHMS, "svrf"),
        ("onesfw", ALGORITHMS, "one_sfw"),
        ("longitude", ("Slope", "Latitude", "Aspect"), None),
        ("LONGITUDE", ("slope", "longitude"), "longitude"),
        ("zzz", ALGORITHMS, None),
        ("quadratic", ("quadratic-face", "quadratic-noisy"), None),  # two are as near
        ("nuclear", ("NuclearBall", "L1Ball"), "NuclearBall"),
        ("aeg", ("age", "sex"), "age"),
        ("", ALGORITHMS, None),
        ("x", (), None),
    ],
)
def test_suggestions_are_near(name, names, meant):
    assert nearest(name, names) == ("" if meant is None else f"; did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("a", "b", "count"), [("age", "aeg", 1), ("kitten", "sitting", 3), ("", "ab", 2), ("same", "same", 0)]
)
def test_typing_errors_are_counted(a, b, count):
    assert errors_between(a, b) == errors_between(b, a) == count
