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

# What constants are; they have no docstrings.
CONSTANTS = {
    "onesfw.linear.CONSTRAINTS": "the sets of linear models by name",
    "onesfw.linear.DEFAULT_SCHEDULE": "the schedule of linear models unless told otherwise",
    "onesfw.linear.LOSSES": "the losses of linear models by name",
    "onesfw.linear.SCHEDULES": "the schedules of linear models by name",
    "onesfw.algorithms.ALGORITHMS": "recipes by name; each takes a setting first",
    "onesfw.algorithms.CONVEX": "the name of a setting",
    "onesfw.algorithms.DR_SUBMODULAR": "the name of a setting",
    "onesfw.algorithms.KNOWN_SETTINGS": "the names of all settings",
    "onesfw.algorithms.MAXIMISED": "the settings in which F is maximised",
    "onesfw.algorithms.NONCONVEX": "the name of a setting",
    "onesfw.algorithms.NONMONOTONE_DR": "the name of a setting",
    "onesfw.algorithms.PRESETS": "the theorems' schedules, step and output of 1-SFW by setting",
    "onesfw.algorithms.SCHEDULES": "the schedules that each recipe knows by name",
    "onesfw.algorithms.SETTINGS": "the settings that each recipe serves",
    "onesfw.schedules.ADAPTIVE": "ρ that weighs the drift of the gradient against its noise",
    "onesfw.schedules.MOST_SAMPLES": "the most samples, and steps, of a run",
    "onesfw.schedules.Numbers": "the type of the steps that a schedule is asked for: an array",
    "onesfw.schedules.PACED": "η that follows the run, beside an adaptive ρ",
    "onesfw.schedules.TO_THE_LAST": "how much longer its steps are where the last iterate is the answer",
    "onesfw.schedules.PRESETS": "pairs of schedules by name",
}


def is_constant(full: str) -> bool:
    """Whether a name is neither a class nor a function."""
    thing = getattr(module(full.rpartition(".")[0]), full.rpartition(".")[2])
    return not (inspect.isclass(thing) or inspect.isfunction(thing))


def value(thing: object) -> str:
    """A constant in a few words: the names of a table, or what it is."""
    if isinstance(thing, dict):
        return f"Names: {', '.join(f'``{name}``' for name in thing)}."
    return f"Value: ``{thing!r}``." if isinstance(thing, str | int | tuple) else ""


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


def leave_out(app, what, name: str, thing, skip: bool, options) -> bool | None:
    """scikit-learn adds methods such as `set_fit_request` to every estimator, with links that lead nowhere here."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


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
        sentence = CONSTANTS.get(full, "a constant")
        body = f".. py:data:: {full}\n\n   {sentence[0].upper()}{sentence[1:]}. {value(thing)}\n"
    also = f"Also reached as {', '.join(f'``{alias}``' for alias in aliases)}.\n\n" if aliases else ""
    examples = f".. minigallery:: {full} {' '.join(aliases)}\n   :add-heading: In the gallery\n   :heading-level: -\n"
    return f"{title(name)}\n{body}\n{also}{examples}"


def room_page(room: str, found: dict[str, str], files: dict[str, str]) -> str:
    """The page of a room: a table of its names, and their pages below it."""
    here = [home for full, home in found.items() if full.rsplit(".", 1)[0] == room]
    own = [home for home in here if home.rsplit(".", 1)[0] == room]
    rows = "\n".join(f"   ~{home}" for home in here if not is_constant(home))
    constant = [home for home in here if is_constant(home)]
    constants = "\n".join(f"- :py:data:`~{home}`: {CONSTANTS.get(home, 'a constant')}" for home in constant)
    below = "\n".join(f"   {files[home]}" for home in own)
    table = f".. autosummary::\n   :nosignatures:\n\n{rows}\n"
    return f"{title(room)}\n{ROOMS[room]}\n\n{table}\n{constants}\n\n.. toctree::\n   :hidden:\n\n{below}\n"


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
    intro = "Each with its arguments, an example that the tests run, and the examples of the gallery that use it.\n"
    texts["index.rst"] = f"{title('Every public name')}\n{intro}\n{lines}\n\n.. toctree::\n   :hidden:\n\n{rooms}\n"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.rst"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        place = folder / name
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")
