"""Nothing exported goes untried: every set, loss, algorithm, set function, matroid and problem has its case."""

import importlib.util
import inspect
from pathlib import Path

import matroid_checks
import numpy as np
import pytest
import set_cases
import submodular_checks
import zoo_checks
from dense_reference import slope

import onesfw as fw
from onesfw import sets, submodular, zoo
from onesfw.algorithms import ALGORITHMS, SETTINGS, Algorithm
from onesfw.linear import LOSSES

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
BASES = {sets.ConvexSet, sets.VectorSet, sets.MatrixSet, submodular.Function, submodular.Matroid}


def exported(module, base):
    """The classes of a kind that a module exports, without those that only others derive from."""
    found = [getattr(module, name) for name in module.__all__]
    return [thing for thing in found if inspect.isclass(thing) and issubclass(thing, base) and thing not in BASES]


def loaded(path):
    """A module by its file."""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_for_its_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", exported(sets, sets.ConvexSet))
def test_every_set_has_a_case(kind):
    assert kind in {type(case.constraint) for case in set_cases.CASES}, "add a Case to tests/helpers/set_cases.py"


@pytest.mark.parametrize("kind", exported(sets, sets.ConvexSet))
def test_every_set_has_a_row_and_a_picture(kind):
    name = kind.__name__
    assert f"| ![{name}](sets/{name}.png) | `{name}(" in (DOCS / "sets.md").read_text(encoding="utf-8")
    assert (DOCS / "sets" / f"{name}.png").is_file(), "python docs/draw_sets.py"
    assert f'"{name}": (' in (DOCS / "draw_sets.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_has_its_dense_reference(loss):
    """The reference that the kernels are compared with gives a loss's own derivative, not that of another."""
    rng = np.random.default_rng(0)
    margins = rng.normal(size=50)
    targets = rng.choice([-1.0, 1.0], 50) if LOSSES[loss].classifies else np.abs(rng.normal(size=50))
    expected = [slope.py_func(loss, m, y) for m, y in zip(margins, targets, strict=True)]
    np.testing.assert_allclose(
        LOSSES[loss].derivative(margins, targets), expected, atol=1e-12, err_msg="tests/helpers/dense_reference.py"
    )


def test_every_recipe_is_known_by_its_name():
    recipes = {name for name in fw.__all__ if inspect.isfunction(getattr(fw, name)) and returns(getattr(fw, name))}
    assert recipes == ALGORITHMS.keys() == SETTINGS.keys()
    assert all(ALGORITHMS[name] is getattr(fw, name) for name in recipes)


def returns(function):
    """Whether a function is a recipe."""
    return inspect.signature(function).return_annotation in (Algorithm, "Algorithm")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_a_stated_accuracy(name):
    """In each of its settings, on a problem of the zoo; that no such problem is missing is tested beside the table."""
    table = loaded(TESTS / "algorithms" / "test_methods_zoo.py").ACCURACY
    settled = {zoo.get(problem).setting for problem, methods in table.items() if name in methods}
    problems = {zoo.get(problem).setting for problem in table}
    assert settled == set(SETTINGS[name]) & problems, "tests/algorithms/test_methods_zoo.py"


@pytest.mark.parametrize("kind", exported(submodular, submodular.Function))
def test_every_set_function_has_a_case(kind):
    kinds = {type(submodular_checks.estimated(name)[0]) for name in submodular_checks.ESTIMATED}
    assert kind in kinds, "add it to FUNCTIONS in tests/helpers/submodular_checks.py"


@pytest.mark.parametrize("kind", exported(submodular, submodular.Matroid))
def test_every_matroid_has_a_case(kind):
    kinds = {type(matroid) for matroid in matroid_checks.MATROIDS.values()}
    assert kind in kinds, "add it to MATROIDS in tests/helpers/matroid_checks.py"


def test_every_problem_has_a_case():
    assert zoo.names() == zoo_checks.NAMES, "add it to tests/helpers/zoo_checks.py"


def test_bases_are_not_hidden_cases():
    """Only what nobody can use by itself is left out above."""
    assert all(inspect.isabstract(base) for base in BASES)
