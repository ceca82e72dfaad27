"""Writes docs/api: a page for every room, with its names and their first sentences, and one for every public name.

The names are those of `__all__`. A name that several rooms export has one page, under the shortest of its names.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

# The rooms in the order of the index, each with the sentence that stands above its names.
ROOMS = {
    "onesfw": "Solve a problem, and what comes out: the names of `import onesfw as fw`.",
    "onesfw.sets": "Convex sets, known by their linear minimisation oracle.",
    "onesfw.linear": "Linear models from rows, files and streams.",
    "onesfw.sklearn": "Estimators for scikit-learn.",
    "onesfw.lowrank": "Matrices of low rank by their factors.",
    "onesfw.submodular": "Set functions, matroids, rounding and certificates.",
    "onesfw.rows": "Choices of rows for many runs: resampled, left out, halved.",
    "onesfw.theory": "The theorems' bounds as a calculator.",
    "onesfw.zoo": "Ready problems with known optima.",
    "onesfw.experiments": "Methods compared at equal budgets, and rates measured.",
    "onesfw.objectives": "What an objective is to the library: for objectives of your own.",
    "onesfw.algorithms": "Recipes: an estimator, a step and schedules under a paper's name.",
    "onesfw.estimators": "Gradient estimators: for algorithms of your own.",
    "onesfw.schedules": "Step sizes, averaging weights and batch sizes as functions of the step.",
}


def module(room: str):
    """The module of a room; `rows` is reached through the package."""
    return import_module("onesfw.engine.rows" if room == "onesfw.rows" else room)


def homes() -> dict[str, str]:
    """The full name under which each public name has its page: the shortest that leads to the same thing."""
    first: dict[int, str] = {}
    found = {}
    for room in ROOMS:
        for name in module(room).__all__:
            thing = getattr(module(room), name)
            if inspect.ismodule(thing):
                continue
            full = f"{room}.{name}"
            shared = inspect.isclass(thing) or inspect.isfunction(thing)
            found[full] = first.setdefault(id(thing), full) if shared else full
    return found


def file_names(pages: list[str]) -> dict[str, str]:
    """File names that stay apart where a file system does not tell `Sweep` from `sweep`."""
    lower = [page.lower() for page in pages]
    return {page: page + "-function" * (page.islower() and lower.count(page.lower()) > 1) for page in pages}


def plain(app, what, name, thing, options, lines: list[str]) -> None:
    """Docstrings hold formulas and names, no markup but `code`: |x|, F* and coef_ are meant as they stand."""
    example = False
    for number, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            parts = re.split(r"(`[^`]*`)", line)
            parts[::2] = [re.sub(r"(?<!\\)([|*]|_(?!\w))", r"\\\1", part) for part in parts[::2]]
            lines[number] = "".join(parts)


def title(text: str, sign: str = "=") -> str:
    return f"{text}\n{sign * len(text)}\n"


def page(full: str, aliases: list[str]) -> str:
    """The page of one name."""
    room, name = full.rsplit(".", 1)
    thing = getattr(module(room), name)
    if inspect.isclass(thing):
        body = f".. autoclass:: {full}\n"
    elif inspect.isfunction(thing):
        body = f".. autofunction:: {full}\n"
    else:
        body = f".. autodata:: {full}\n   :no-value:\n"
    also = f"Also reached as {', '.join(f'``{alias}``' for alias in aliases)}.\n\n" if aliases else ""
    examples = f".. minigallery:: {full} {' '.join(aliases)}\n   :add-heading: In the gallery\n   :heading-level: -\n"
    return f"{title(name)}\n{body}\n{also}{examples}"


def room_page(room: str, found: dict[str, str], files: dict[str, str]) -> str:
    """The page of a room: a table of its names, and their pages below it."""
    here = [home for full, home in found.items() if full.rsplit(".", 1)[0] == room]
    own = [home for home in here if home.rsplit(".", 1)[0] == room]
    rows = "\n".join(f"   {home}" for home in here)
    below = "\n".join(f"   {files[home]}" for home in own)
    table = f".. autosummary::\n\n{rows}\n"
    return f"{title(room)}\n{ROOMS[room]}\n\n{table}\n.. toctree::\n   :hidden:\n\n{below}\n"


def write(folder: Path) -> None:
    """Write what has changed, so that Sphinx reads no more than it must, and remove what is left over."""
    found = homes()
    pages = sorted(set(found.values()))
    files = file_names(pages)
    texts = {f"{room}.rst": room_page(room, found, files) for room in ROOMS}
    for full in pages:
        aliases = [name for name, home in found.items() if home == full and name != full]
        texts[f"{files[full]}.rst"] = page(full, aliases)
    rooms = "\n".join(f"   {room}" for room in ROOMS)
    lines = "\n".join(f"- :doc:`{room}`: {sentence[0].lower()}{sentence[1:]}" for room, sentence in ROOMS.items())
    intro = "Every public name: its arguments, an example that the tests run, the gallery's examples that use it.\n"
    texts["index.rst"] = f"{title('Reference')}\n{intro}\n{lines}\n\n.. toctree::\n   :hidden:\n\n{rooms}\n"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.rst"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        place = folder / name
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")
