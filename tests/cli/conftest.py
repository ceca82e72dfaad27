"""What the tests of commands are given: files of several kinds."""

import textwrap

import numpy as np
import pytest
from select_command_checks import ROWS
from solve_checks import PRELUDE

from onesfw.submodular import from_files


@pytest.fixture
def file(tmp_path):
    def write(text: str, name: str = "mine.py") -> str:
        (tmp_path / name).write_text(PRELUDE + textwrap.dedent(text))
        return str(tmp_path / name)

    return write


@pytest.fixture
def table(tmp_path):
    """A CSV file with numbers, a name and a group; three clusters."""
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [5, 5], [0, 9]])
    points = centres[np.arange(ROWS) % 3] + rng.normal(size=(ROWS, 2))
    lines = ["name,a,b,kind"] + [f"row{i},{x:.4f},{y:.4f},g{i % 3}" for i, (x, y) in enumerate(points)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def graph(tmp_path):
    """A text file of edges with a headline, comments and mixed separators: two stars."""
    lines = ["https://example.org/graph", "# a comment", "1 2"]
    lines += [f"1\t{i}" for i in range(3, 30)] + [f"100,{i}" for i in range(101, 120)]
    path = tmp_path / "graph.txt"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def never_selects(monkeypatch):
    """Fails where a run is begun."""

    def select(*arguments, **options):
        raise AssertionError("a run was begun")

    monkeypatch.setattr(from_files, "select", select)
