"""Every public name says what it takes, gives and refuses, with an example that the suite runs."""

import importlib
import inspect
import pkgutil
from enum import Enum

import pytest

import onesfw

# Names that take arguments and check none: records, and parts that only checked arguments reach.
UNCHECKED = {
    "onesfw.Result",
    "onesfw.Sweep",
    "onesfw.Trace",
    "onesfw.algorithms.Algorithm",
    "onesfw.estimators.Batched",
    "onesfw.estimators.Difference",
    "onesfw.estimators.OneSample",
    "onesfw.estimators.OracleCounts",
    "onesfw.estimators.RunningAverage",
    "onesfw.estimators.Saga",
    "onesfw.estimators.Snapshot",
    "onesfw.estimators.StepInputs",
    "onesfw.estimators.Storm",
    "onesfw.experiments.Comparison",
    "onesfw.experiments.Curve",
    "onesfw.experiments.Rates",
    "onesfw.experiments.Report",
    "onesfw.linear.Evaluation",
    "onesfw.linear.Examples",
    "onesfw.linear.LinearModel",
    "onesfw.linear.Loss",
    "onesfw.linear.Predictions",
    "onesfw.linear.RadiusPath",
    "onesfw.linear.Scores",
    "onesfw.linear.Stability",
    "onesfw.linear.Start",
    "onesfw.linear.Training",
    "onesfw.lowrank.Columns",
    "onesfw.lowrank.Completed",
    "onesfw.lowrank.CompletionPath",
    "onesfw.lowrank.EntryScores",
    "onesfw.lowrank.LowRank",
    "onesfw.lowrank.TraceModel",
    "onesfw.objectives.Surrogate",
    "onesfw.results.show.FileKind",
    "onesfw.results.show.Sheet",
    "onesfw.results.show.as_html",
    "onesfw.results.show.as_text",
    "onesfw.results.show.axes_of",
    "onesfw.results.show.boxed",
    "onesfw.results.show.grid",
    "onesfw.results.show.lines",
    "onesfw.results.show.markdown",
    "onesfw.schedules.Batches",
    "onesfw.schedules.Epochs",
    "onesfw.schedules.Preset",
    "onesfw.schedules.Schedule",
    "onesfw.schedules.Sizes",
    "onesfw.schedules.constant",
    "onesfw.schedules.harmonic",
    "onesfw.schedules.horizon_power",
    "onesfw.schedules.inverse",
    "onesfw.schedules.power",
    "onesfw.submodular.Estimate",
    "onesfw.submodular.GreedyResult",
    "onesfw.submodular.Selection",
    "onesfw.theory.Promises",
    "onesfw.zoo.Optimum",
}


def public():
    """(full name, object) of every function and class in an `__all__`; a name's home is where it is listed lowest."""
    modules = [onesfw, *(importlib.import_module(info.name) for info in walk())]
    homes = {}
    for module in modules:
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                homes[id(thing)] = (f"{module.__name__}.{name}", thing)
    return sorted(homes.values(), key=lambda pair: pair[0])


def walk():
    return (i for i in pkgutil.walk_packages(onesfw.__path__, "onesfw.") if not i.name.endswith("__main__"))


PUBLIC = public()


def takes_arguments(thing):
    """Whether a function, or a class that can be built, has arguments of its own.

    An enumeration's members and the message of a warning or an error are Python's.
    """
    if inspect.isabstract(thing) or built_by_python(thing):
        return False
    return bool(inspect.signature(thing).parameters)


def built_by_python(thing):
    """Whether it is an enumeration, or a warning or an error without a constructor of its own."""
    if not inspect.isclass(thing):
        return False
    return issubclass(thing, Enum) or (issubclass(thing, BaseException) and not inspect.isfunction(thing.__init__))


def sections(thing):
    doc = inspect.getdoc(thing) or ""
    return {title for title in ("Args", "Returns", "Raises", "Example") if f"\n{title}:\n" in doc}


def wanted(name, thing):
    """The sections that a docstring needs."""
    need = {"Example"}
    if takes_arguments(thing):
        need.add("Args")
        if name not in UNCHECKED:
            need.add("Raises")
    if inspect.isfunction(thing) and inspect.signature(thing).return_annotation not in (None, "None"):
        need.add("Returns")
    return need


@pytest.mark.parametrize(("name", "thing"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_docstring(name, thing):
    doc = inspect.getdoc(thing) or ""
    assert vars(thing).get("__doc__") if inspect.isclass(thing) else doc, "the docstring is its own, not inherited"
    assert wanted(name, thing) <= sections(thing)
    assert ">>> " in doc.partition("\nExample:\n")[2]


@pytest.mark.parametrize(("name", "thing"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_every_argument_is_described(name, thing):
    if not takes_arguments(thing):
        return
    described = (inspect.getdoc(thing) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    for argument in inspect.signature(thing).parameters:
        assert f"    {argument}: " in f"\n{described}", f"{name} does not describe {argument}"


def test_the_list_of_unchecked_names_is_not_stale():
    names = {name for name, _ in PUBLIC}
    assert names >= UNCHECKED


def test_the_rule_finds_what_is_missing():
    def undocumented(a: int) -> int:
        """Something.

        Args:
            a: a number.
        """

    assert wanted("x", undocumented) - sections(undocumented) == {"Example", "Raises", "Returns"}


def test_a_warning_has_arguments_only_with_a_constructor_of_its_own():
    class Named(UserWarning):
        pass

    class Built(UserWarning):
        def __init__(self, row: int) -> None:
            super().__init__(f"row {row}")

    class Late(Built):
        pass

    assert [takes_arguments(kind) for kind in (Named, Built, Late)] == [False, True, True]
