"""CONTRIBUTING.md is true: each recipe is followed to the letter in a copy of the repository, and what it runs passes.

A block goes where the line above it says: "New file `path`:", "At the end of `path`:", "In `path`, below `line`:",
"In `path`, above `line`:", "In `path`, instead of `line`:"; a block of `sh` is run. A line is named by its beginning,
without its indentation, and must be the only one that begins so, or that is so.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = ("Add a set", "Add an estimator", "Add a loss", "Add a set function", "Add a problem")
COPIED = (
    "src",
    "tests",
    "docs",
    "benchmarks",
    "gallery",
    "conftest.py",
    "pyproject.toml",
    "CHANGELOG.md",
    "README.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "SECURITY.md",
    "CITATION.cff",
)
BLOCK = re.compile(
    r"(?P<above>(?:^[^\n]+\n)+)?\n?^(?P<indent> *)```(?P<language>\w+)\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S
)
PLACE = re.compile(
    r"(?:(?P<new>New file|At the end of) `(?P<file>[^`]+)`|"
    r"In `(?P<path>[^`]+)`, (?P<where>below|above|instead of) (?P<ticks>`+)(?P<line>.+)(?P=ticks)):$"
)


def recipe(title: str) -> str:
    """The section of the page under a heading."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert found is not None, f"CONTRIBUTING.md has no section {title!r}"
    return found[1]


def edit(folder: Path, place: re.Match[str], body: str) -> None:
    """Put a block where the line above it says."""
    path = folder / (place["file"] or place["path"])
    if place["new"] == "New file":
        assert not path.exists(), f"{path} is there already"
        path.write_text(body, encoding="utf-8")
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if place["new"]:
        path.write_text("".join([*lines, body]), encoding="utf-8")
        return
    whole = [i for i, line in enumerate(lines) if line.strip() == place["line"]]
    found = whole or [i for i, line in enumerate(lines) if line.strip().startswith(place["line"])]
    assert len(found) == 1, f"{len(found)} lines of {place['path']} begin with {place['line']!r}"
    begin, end = {"below": (1, 1), "above": (0, 0), "instead of": (0, 1)}[place["where"]]
    lines[found[0] + begin : found[0] + end] = [body]
    path.write_text("".join(lines), encoding="utf-8")


def follow(title: str, folder: Path) -> list[str]:
    """Do what a recipe says, from top to bottom; the commands that were run."""
    ran = []
    for block in BLOCK.finditer(recipe(title)):
        body = re.sub(rf"^{block['indent']}", "", block["body"], flags=re.M)
        if block["language"] == "sh":
            for command in body.splitlines():
                run(command, folder)
                ran.append(command)
            continue
        above = " ".join((block["above"] or "").split())
        place = PLACE.search(above)
        assert place is not None, f"where does this block go? {above!r}"
        edit(folder, place, body)
    return ran


def run(command: str, folder: Path) -> None:
    """Run a line of the page; it must succeed."""
    environment = os.environ | {
        "PYTHONPATH": str(folder / "src"),
        "NUMBA_CACHE_DIR": str(folder / ".pytest_cache" / "numba"),
        "JAX_PLATFORMS": "cpu",
        "PYTEST_XDIST_AUTO_NUM_WORKERS": "1",
    }
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"


@pytest.fixture
def copy(tmp_path):
    """The repository as a contributor has it, with this environment as its own."""
    for name in COPIED:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(place, tmp_path / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_works_as_it_is_written(title, copy):
    assert any("pytest" in command for command in follow(title, copy))


def test_a_step_left_out_is_noticed(copy, monkeypatch):
    """Without its case in the table the new set is refused by what the page runs."""
    whole = recipe("Add a set")
    case = next(block[0] for block in BLOCK.finditer(whole) if "SMALL = [" in (block["above"] or ""))
    monkeypatch.setitem(globals(), "PAGE", PAGE.replace(case, ""))
    with pytest.raises(AssertionError, match=r"set_cases|no tests ran|deselected"):
        follow("Add a set", copy)


def test_a_wrong_line_is_noticed(copy):
    place = PLACE.search("3. In `src/onesfw/sets/__init__.py`, below `from nowhere import nothing`:")
    with pytest.raises(AssertionError, match="0 lines of"):
        edit(copy, place, "x\n")
