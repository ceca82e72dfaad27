"""What to solve: a problem of the zoo by name, or what a user's Python file defines."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from onesfw.algorithms import CONVEX, DR_SUBMODULAR, KNOWN_SETTINGS, MAXIMISED
from onesfw.arguments import choose, nearest
from onesfw.trees import Tree
from onesfw.zoo.base import Problem

SENSES = ("minimize", "maximize")


@dataclass(frozen=True)
class Task:
    """An objective and a set, with what is known about them."""

    name: str
    objective: Any
    constraint: Any
    setting: str = CONVEX
    sense: str = "minimize"
    x0: Tree | None = None
    problem: Problem | None = None
    """The problem it came from, where there is one; it knows the optimum."""

    def optimum(self) -> float | None:
        """F*, or None where nobody knows it."""
        if self.problem is None or self.problem.solve is None:
            return None
        return float(self.problem.optimum().value)


def find_task(target: str) -> Task:
    """The task that `logistic`, `file.py` or `file.py:name` stands for."""
    path, _, name = target.partition(".py:")
    if name or target.endswith(".py"):
        return from_file(Path(f"{path}.py" if name else target), name)
    if target.endswith(".py:"):
        raise ValueError(f"{target!r} names nothing after the colon; write file.py:name, or file.py alone")
    from onesfw import zoo

    if target not in zoo.names():
        hint = nearest(target, zoo.names()) or f"; choose one of {', '.join(zoo.names())}, or a file that ends in .py"
        raise ValueError(f"there is no problem {target!r}{hint}")
    return from_problem(zoo.get(target))


def from_problem(problem: Problem, x0: Tree | None = None) -> Task:
    """A task from the zoo's own class."""
    return Task(problem.name, problem.objective, problem.constraint, problem.setting, problem.sense, x0, problem)


def from_file(path: Path, name: str) -> Task:
    """A task from a user's file: `name` in it, or its `objective` and `constraint`."""
    module = load(path)
    if not name:
        missing = [word for word in ("objective", "constraint") if word not in vars(module)]
        if missing:
            raise ValueError(
                f"{path} does not define {' and '.join(missing)}; define objective and constraint, "
                f"or name a problem in it: {path}:name"
            )
        return from_pair(path.stem, module.objective, module.constraint, module)
    if name not in vars(module):
        public = [word for word in vars(module) if not word.startswith("_")]
        raise ValueError(f"{path} does not define {name!r}{nearest(name, public)}")
    value = getattr(module, name)
    if callable(value) and not isinstance(value, Problem):
        value = call(value, f"{path}:{name}")
    if isinstance(value, Problem):
        return from_problem(value, vars(module).get("x0"))
    if isinstance(value, tuple | list) and len(value) == 2:
        objective, constraint = value
        return from_pair(name, objective, constraint, module)
    raise TypeError(
        f"{path}:{name} must be a Problem, a function that returns one, or a pair (objective, constraint), "
        f"got {type(value).__name__}"
    )


def from_pair(name: str, objective: Any, constraint: Any, module: ModuleType) -> Task:
    """A task from an objective and a set; `x0`, `setting` and `sense` are the file's, where it defines them."""
    given = vars(module)
    sense = given.get("sense", "maximize" if given.get("setting") in MAXIMISED else "minimize")
    choose(sense, SENSES, "sense")
    setting = given.get("setting", DR_SUBMODULAR if sense == "maximize" else CONVEX)
    choose(setting, KNOWN_SETTINGS, "setting")
    return Task(name, objective, constraint, setting, sense, given.get("x0"))


def load(path: Path) -> ModuleType:
    """Run a user's file as a module; files beside it can be imported from it."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; give the path of a Python file")
    spec = importlib.util.spec_from_file_location(f"onesfw_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be read as a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path} failed{line_in(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    return module


def call(function: Any, label: str) -> Any:
    """What a user's function without arguments returns."""
    try:
        return function()
    except Exception as error:
        raise ValueError(f"{label}() failed: {type(error).__name__}: {error}") from error


def line_in(error: BaseException, path: Path) -> str:
    """` at line 7`, where the error passed through the file."""
    if isinstance(error, SyntaxError):
        return f" at line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return f" at line {lines[-1]}" if lines else ""
