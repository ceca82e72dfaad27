"""The house: which room may import which, no import in a circle, nothing loose, no name twice, no file too long.

Imports inside functions count like any other; those under TYPE_CHECKING do not. Importing a module does not count as
importing the packages above it, though Python runs their `__init__`: `onesfw.sets.base` is one file.
"""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import onesfw

PACKAGE = Path(onesfw.__file__).parent
ROOT = PACKAGE.parent.parent
LONGEST = 460  # lines of a file

BOTTOM = {"trees", "arguments", "capabilities", "progress", "files"}
FORMULA = {"objectives", "sets", "estimators", "steps", "schedules"}
BELOW_ENGINE = BOTTOM | FORMULA | {"algorithms", "results"}
ABOVE_ENGINE = {"linear", "submodular", "lowrank", "zoo", "theory", "experiments", "sklearn"}
BELOW_CLI = BELOW_ENGINE | ABOVE_ENGINE | {"engine", "data"}

# A room on the left may import itself and the rooms on the right.
MAY_IMPORT = {
    **dict.fromkeys(BOTTOM, BOTTOM),
    **dict.fromkeys(FORMULA, BOTTOM),  # so F, K, d_t, the step and its schedules know nothing of one another
    "algorithms": BOTTOM | {"estimators", "steps", "schedules"},
    "results": BOTTOM,
    "data": BOTTOM,
    "engine": BELOW_ENGINE,
    **dict.fromkeys(ABOVE_ENGINE, BELOW_CLI),
    "cli": BELOW_CLI,  # anything; and no other line has cli in it
    "__main__": {"cli", "engine"},
    "__init__": BELOW_CLI,
}
LOOSE = BOTTOM | {"__init__", "__main__"}
HEAVY = {
    "jax", "jaxlib", "numpy", "scipy", "equinox", "numba", "sklearn", "matplotlib", "orbax", "pyarrow", "plotly",
    "pandas", "rich", "typer", "safetensors",
}  # fmt: skip


def dotted(path: Path) -> str:
    """A file's module: `onesfw.sets.base`; the file of a package has the package's name."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room(module: str) -> str:
    """The folder, or loose file, that a module of the package lives in."""
    return [*module.split("."), "__init__"][1]


def is_type_checking(node: ast.AST) -> bool:
    """Whether a node is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def statements(node: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    """Every import statement below a node that runs; the else of `if TYPE_CHECKING` does."""
    children = node.orelse if is_type_checking(node) else list(ast.iter_child_nodes(node))
    found = [child for child in children if isinstance(child, ast.Import | ast.ImportFrom)]
    return found + [statement for child in children for statement in statements(child)]


def imports(path: Path) -> dict[str, int]:
    """The modules of the package that a file imports, each with the line of its first import."""
    found: dict[str, int] = {}
    for statement in statements(ast.parse(path.read_text(encoding="utf-8"))):
        assert not getattr(statement, "level", 0), f"{path}:{statement.lineno}: write the import with its full name"
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        else:
            inside = [f"{statement.module}.{alias.name}" for alias in statement.names]
            names = [name if name in MODULES else str(statement.module) for name in inside]
        for name in names:
            if name.split(".")[0] == "onesfw":
                found.setdefault(name, statement.lineno)
    return found


IMPORTS = {module: imports(path) for module, path in MODULES.items()}


def circles(edges: dict[str, dict[str, int]]) -> list[list[str]]:
    """Modules that reach themselves through imports: the shortest circle of each that is in none of the others."""
    found: list[list[str]] = []
    for start in edges:
        if any(start in circle for circle in found):
            continue
        before: dict[str, str] = {}
        waiting = [start]
        while waiting and start not in before:
            module = waiting.pop(0)
            for name in edges.get(module, {}):
                if name not in before:
                    before[name] = module
                    waiting.append(name)
        if start in before:
            circle = [start]
            while before[circle[-1]] != start:
                circle.append(before[circle[-1]])
            found.append([start, *reversed(circle[1:]), start])
    return found


def test_every_room_has_its_line():
    assert {room(module) for module in MODULES} <= MAY_IMPORT.keys()


@pytest.mark.parametrize("name", sorted({room(module) for module in MODULES}))
def test_a_room_imports_only_what_lies_below(name):
    broken = [
        f"{MODULES[module].relative_to(ROOT)}:{line} imports {other}"
        for module, found in IMPORTS.items()
        if room(module) == name
        for other, line in found.items()
        if room(other) not in MAY_IMPORT[name] | {name, "__init__"}
    ]
    assert not broken, "\n".join(broken)


def test_nobody_asks_the_front_door():
    """`from onesfw import minimize` inside the package would hide which room is asked; only the version lives there."""
    broken = [
        f"{path.relative_to(ROOT)}:{statement.lineno}"
        for module, path in MODULES.items()
        if module != "onesfw"
        for statement in statements(ast.parse(path.read_text(encoding="utf-8")))
        for name in statement.names
        if (isinstance(statement, ast.Import) and name.name == "onesfw")
        or (isinstance(statement, ast.ImportFrom) and statement.module == "onesfw")
        if f"onesfw.{name.name}" not in MODULES and name.name != "__version__"
    ]
    assert not broken, "\n".join(broken)


def test_no_import_in_a_circle():
    assert not circles(IMPORTS), "\n".join(" → ".join(circle) for circle in circles(IMPORTS))


def test_nothing_is_loose():
    assert {path.stem for path in PACKAGE.glob("*.py")} <= LOOSE


def test_no_two_modules_have_one_name():
    places = defaultdict(list)
    for module, path in MODULES.items():
        if path.name not in ("__init__.py", "base.py"):
            places[path.stem].append(module)
    assert not [names for names in places.values() if len(names) > 1]


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_no_file_is_too_long(folder):
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert lengths
    assert not {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LONGEST}


def test_a_circle_and_a_lazy_import_are_found(tmp_path):
    """What the tests above rest on: functions are looked into, types are not, the shortest circle is named."""
    page = tmp_path / "page.py"
    page.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from onesfw.cli import app\n"
        "else:\n    from onesfw import trees\n"
        "def later():\n    from onesfw.sets.base import ConvexSet\n    import onesfw.files\n"
    )
    assert imports(page) == {"onesfw.trees": 5, "onesfw.sets.base": 7, "onesfw.files": 8}
    assert circles({"a": {"b": 1}, "b": {"c": 1, "a": 2}, "c": {"a": 1}, "d": {"a": 1}}) == [
        ["a", "b", "a"],
        ["c", "a", "b", "c"],
    ]
    assert circles({"a": {"a": 1}}) == [["a", "a"]]


def run(script: str) -> str:
    """What a script prints in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def test_import_is_light():
    """Importing onesfw loads nothing of weight, so that `onesfw --help` need not wait for it."""
    assert run(f"import sys, onesfw; print(sorted({HEAVY!r} & sys.modules.keys()))") == "[]"


def test_first_use_loads_no_more_than_the_formula_needs():
    late = {"numba", "sklearn", "matplotlib", "orbax", "pyarrow", "plotly", "pandas"}
    assert (
        run(f"import sys, onesfw; onesfw.minimize, onesfw.sets; print(sorted({late!r} & sys.modules.keys()))") == "[]"
    )


def test_type_checkers_see_every_public_name():
    """The names under TYPE_CHECKING in `onesfw/__init__.py`, which only tools read, are those of `__all__`."""
    blocks = [node for node in ast.parse(MODULES["onesfw"].read_text()).body if is_type_checking(node)]
    names = [
        alias.asname or alias.name
        for block in blocks
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]
    assert sorted(names) == sorted(onesfw.__all__)
    assert len(set(names)) == len(names)
    assert all(getattr(onesfw, name) is not None for name in names)


def test_global_precision_is_never_touched():
    script = (
        "import jax, numpy as np, jax.numpy as jnp, onesfw as fw\n"
        "f = fw.FiniteSum(lambda x, r: jnp.sum((x - r) ** 2), np.ones((3, 2)))\n"
        "r = fw.minimize(f, fw.sets.L2Ball(1.0), np.zeros(2), steps=10)\n"
        "print(r.x.dtype, jax.config.jax_enable_x64, jnp.ones(1).dtype)"
    )
    assert run(script).split() == ["float64", "False", "float32"]


def test_every_public_name_is_documented():
    for name in onesfw.__all__:
        assert (getattr(onesfw, name).__doc__ or "").strip(), name
