"""The short way: a call goes down through the files once, in the order that docs/design.md lists.

    python tests/test_short_way.py            prints the lists in a valid order, and the circles where there is none
    python tests/test_short_way.py --write    puts them into docs/design.md

Each call is traced in a process of its own, since what JAX has compiled once it does not call again. The caller of a
function is the nearest function of the package below it on the stack, so that closures that JAX, NumPy or scikit-learn
call count too. Kernels that numba compiled leave no trace: they are seen when Python calls them, together with the
kernels that they name.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import onesfw

PACKAGE = Path(onesfw.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "design.md"
BOTTOM = {f"{name}.py" for name in ("trees", "arguments", "capabilities", "progress", "files")}
CALLS = ("minimize", "fit", "select", "compare")
LIST = r"(<!-- the way of {} -->\n)(.*?)(\n<!-- its end -->)"

PROBLEM = """
import numpy as np
from onesfw.objectives import FiniteSum
from onesfw.sets import L1Ball
from onesfw.zoo.base import Optimum, Problem

rows = np.random.default_rng(0).normal(size=(20, 3))
problem = Problem(
    "mine", "half the mean square", FiniteSum(lambda x, row: (x @ row) ** 2 / 2, rows), L1Ball(1.0, shape=3),
    value=lambda x: np.mean((np.asarray(x) @ rows.T) ** 2, -1) / 2,
    gradient=lambda x: np.asarray(x) @ rows.T @ rows / 20,
    solve=lambda: Optimum(np.zeros(3), 0.0, 0.0),
)
"""

START = threading.Thread.start
Edges = dict[tuple[str, str], str]
"""(caller's file, called file): where the first such call stood."""


def prepared(name: str, folder: str) -> Callable[[], Any]:
    """One of the four calls, with everything ready that is the caller's business."""
    import jax.numpy as jnp
    import numpy as np

    import onesfw as fw
    from onesfw.cli import app
    from onesfw.sklearn import OneSFWClassifier

    rng = np.random.default_rng(0)
    minimize, select = fw.minimize, fw.select
    if name == "minimize":
        objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), rng.normal(size=(20, 3)).astype(np.float32))
        constraint = fw.sets.L1Ball(1.0)
        return lambda: minimize(objective, constraint, np.zeros(3, np.float32), steps=20)
    if name == "fit":
        X = rng.normal(size=(40, 3))
        classifier = OneSFWClassifier(radius=2.0, max_iter=2)
        return lambda: classifier.fit(X, X[:, 0] + X[:, 1] + rng.normal(size=40) > 0)  # no vertex is the optimum
    if name == "select":
        function = fw.submodular.Coverage(rng.random((8, 10)) < 0.4)
        matroid = fw.submodular.UniformMatroid(8, 3)
        return lambda: select(function, matroid, steps=20)
    file = Path(folder) / "mine.py"  # a problem of the zoo would call back to its own functions, as a user's does
    file.write_text(PROBLEM)
    words = ["compare", f"{file}:problem", "--samples", "200", "--seeds", "2", "--algorithms", "one_sfw", "--quiet"]
    return lambda: app(words, standalone_mode=False)


class Visits:
    """The files that a call visits, in the order of their first visit, and who calls whom."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.edges: Edges = {}
        self.kernels: set[Any] = set()
        self.starters: dict[threading.Thread, FrameType | None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """What `sys.setprofile` asks for."""
        name = own(frame.f_code.co_filename)
        if event == "call" and name is not None:
            self.add(name, frame.f_code.co_qualname, frame.f_back)

    def add(self, name: str, function: str, below: FrameType | None) -> None:
        """A function of a file is called."""
        self.files.setdefault(name)
        below = nearest(below) or self.starters.get(threading.current_thread())
        if below is not None:
            caller = str(own(below.f_code.co_filename))
            where = f"{caller}:{below.f_lineno} ({below.f_code.co_qualname}) calls {name} ({function})"
            if caller != name:
                self.edges.setdefault((caller, name), where)

    def starting(self, thread: threading.Thread) -> None:
        """What a thread calls is called by the function that starts it."""
        self.starters[thread] = nearest(sys._getframe(1)) or self.starters.get(threading.current_thread())
        START(thread)

    def kernel(self, function: Any, caller: str | None = None) -> None:
        """A compiled kernel is called, and so may be those it names."""
        name = own(function.__code__.co_filename)
        if name is None:
            return
        self.files.setdefault(name)
        if caller is not None and caller != name:
            self.edges.setdefault((caller, name), f"a kernel of {caller} calls {name} ({function.__qualname__})")
        if function in self.kernels:
            return
        self.kernels.add(function)
        for used in function.__code__.co_names:
            inner = getattr(function.__globals__.get(used), "py_func", None)
            if inner is not None:
                self.kernel(inner, name)


class Seen:
    """A kernel that says when it is called; numba takes it for the kernel itself."""

    def __init__(self, dispatcher: Any, visits: Visits) -> None:
        self.dispatcher, self.visits = dispatcher, visits
        self.py_func = dispatcher.py_func
        self._numba_type_ = dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        self.visits.add(str(own(self.py_func.__code__.co_filename)), self.py_func.__qualname__, sys._getframe(1))
        self.visits.kernel(self.py_func)
        sys.setprofile(None)  # watching the compiler would take a minute
        try:
            return self.dispatcher(*arguments)
        finally:
            sys.setprofile(self.visits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)


def own(filename: str | None) -> str | None:
    """A file of the package by its short name; None for any other."""
    start = f"{PACKAGE}/"
    return filename[len(start) :] if filename is not None and filename.startswith(start) else None


def nearest(frame: FrameType | None) -> FrameType | None:
    """The first frame of the package from this one downwards."""
    while frame is not None and own(frame.f_code.co_filename) is None:
        frame = frame.f_back
    return frame


def trace(name: str) -> Visits:
    """Carry a call out and watch it."""
    from numba.core.dispatcher import Dispatcher

    visits = Visits()
    modules = [m.name for m in pkgutil.walk_packages([str(PACKAGE)], "onesfw.") if not m.name.endswith("__main__")]
    for module in map(importlib.import_module, modules):
        for attribute, value in vars(module).items():
            if isinstance(value, Dispatcher):
                setattr(module, attribute, Seen(value, visits))
    with tempfile.TemporaryDirectory() as folder:
        call = prepared(name, folder)
        threading.Thread.start = lambda thread: visits.starting(thread)  # type: ignore[method-assign]
        threading.setprofile(visits)
        sys.setprofile(visits)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
    return visits


def traced(name: str) -> tuple[list[str], Edges]:
    """The files above the bottom that a call visits in a process of its own, and the calls between them."""
    command = [sys.executable, __file__, "--trace", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout.splitlines()[-1])
    files = [file for file in content["files"] if file not in BOTTOM]
    return files, {(a, b): where for a, b, where in content["edges"] if not {a, b} & BOTTOM}


def reachable(files: list[str], edges: Edges) -> dict[str, set[str]]:
    """The files that each file's calls lead to in the end."""
    found = {file: {b for a, b in edges if a == file} for file in files}
    while True:
        more = {file: near.union(*(found[other] for other in near)) for file, near in found.items()}
        if more == found:
            return found
        found = more


def in_order(files: list[str], edges: Edges) -> tuple[list[str], list[str]]:
    """The files so that calls go downwards, those visited first before others; and the calls that stand in circles."""
    reach = reachable(files, edges)
    circling = [where for (a, b), where in edges.items() if a in reach[b]]
    left, order = list(files), []
    while left:
        free = [file for file in left if not any((a, file) in edges and a not in reach[file] for a in left)]
        order.append(free[0])
        left.remove(free[0])
    return order, circling


def listed(name: str) -> list[str]:
    """The files of a call in docs/design.md."""
    found = re.search(LIST.format(name), PAGE.read_text(encoding="utf-8"), re.S)
    assert found is not None, f"{PAGE.name} has no list for {name}"
    return re.findall(r"^\d+\. `([^`]+)`", found[2], re.M)


def lines(order: list[str]) -> str:
    """A list as the page has it: each file with the first sentence of its docstring."""
    said = [str(importlib.import_module(f"onesfw.{file[:-3].replace('/', '.')}").__doc__) for file in order]
    first = [re.split(r"[.:](?:\s|$)", text.strip(), maxsplit=1)[0].replace("\n", " ") for text in said]
    return "\n".join(f"{i}. `{file}`: {text}" for i, (file, text) in enumerate(zip(order, first, strict=True), 1))


@pytest.mark.parametrize("name", CALLS)
def test_the_call_goes_down_the_list_once(name):
    files, edges = traced(name)
    order = listed(name)
    assert sorted(files) == sorted(order), "`python tests/test_short_way.py --write` lists what is visited today"
    upwards = [where for (a, b), where in edges.items() if order.index(a) > order.index(b)]
    assert not upwards, f"{name} comes back to a file it left:\n" + "\n".join(upwards)


def test_circles_are_named():
    edges = {("a", "b"): "a calls b", ("b", "c"): "b calls c", ("c", "b"): "c calls b", ("c", "d"): "c calls d"}
    order, circling = in_order(["a", "d", "b", "c"], edges)
    assert order.index("a") < order.index("b") < order.index("d")
    assert circling == ["b calls c", "c calls b"]


def main(words: list[str]) -> None:
    """Trace one call for a test, or print and write the lists."""
    if words[:1] == ["--trace"]:
        visits = trace(words[1])
        print(json.dumps({"files": list(visits.files), "edges": [[*pair, w] for pair, w in visits.edges.items()]}))
        return
    text = PAGE.read_text(encoding="utf-8")
    for name in CALLS:
        order, circling = in_order(*traced(name))
        print(f"{name}\n{lines(order)}\n" + "".join(f"  in a circle: {where}\n" for where in circling))
        text = re.sub(
            LIST.format(name), lambda found, order=order: found[1] + lines(order) + found[3], text, flags=re.S
        )
    if words == ["--write"]:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
