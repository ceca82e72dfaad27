"""The gallery's examples keep its rules; `make site` runs them."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "gallery").glob("plot_*.py"))
LONGEST = 80  # lines
WIDEST = 5.6  # inches: on a phone letters are then 9 pixels high


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_keeps_the_rules(path):
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) < LONGEST
    heading = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert len(heading) > 3, "a title, its underline, an empty line, and what is asked"
    assert set(heading[1]) == {"="}
    assert len(heading[1]) >= len(heading[0])
    assert text.count('plt.style.use("onesfw.pictures")') == 1
    assert "plt.show" not in text
    assert "suptitle" not in text
    widths = [float(width) for width in re.findall(r"figsize=\(\s*([\d.]+)", text)]
    assert max(widths, default=0.0) <= WIDEST
    assert re.search(r"plt\.(subplots|figure)", text), "a figure that pyplot did not make is not on the page"
