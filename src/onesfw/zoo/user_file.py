"""A problem from a user's own Python file: what it defines, and an error for whatever is wrong with it."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from onesfw.algorithms import CONVEX, DR_SUBMODULAR, KNOWN_SETTINGS, MAXIMISED
from onesfw.arguments import choose, nearest
from onesfw.engine.jobs import send_whole
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet
from onesfw.zoo.base import SENSES, Problem


def from_file(path: Path, name: str) -> Problem:
    """The problem that a file defines: `name` in it, or its `objective` and `constraint`."""
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
    value: object = getattr(module, name)
    if callable(value) and not isinstance(value, Problem):
        value = call(value, f"{path}:{name}")
    if isinstance(value, Problem):
        return value if value.x0 is not None else replace(value, x0=vars(module).get("x0"))
    if isinstance(value, tuple | list) and len(value) == 2:
        return from_pair(name, value[0], value[1], module)
    raise TypeError(
        f"{path}:{name} must be a Problem, a function that returns one, or a pair (objective, constraint), "
        f"got {type(value).__name__}"
    )


def from_pair(name: str, objective: Objective, constraint: ConvexSet, module: ModuleType) -> Problem:
    """A problem from an objective and a set; `x0`, `setting` and `sense` are the file's, where it defines them."""
    given = vars(module)
    sense = given.get("sense", "maximize" if given.get("setting") in MAXIMISED else "minimize")
    choose(sense, SENSES, "sense")
    setting = given.get("setting", DR_SUBMODULAR if sense == "maximize" else CONVEX)
    choose(setting, KNOWN_SETTINGS, "setting")
    return Problem(name, name, objective, constraint, setting, x0=given.get("x0"), sense=sense)


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
    send_whole(module)
    return module


def call(function: Callable[[], object], label: str) -> object:
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
