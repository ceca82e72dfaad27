"""The gallery's examples keep its rules, and the quickest run; `make site` runs all of them."""

import ast
import os
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "gallery").glob("plot_*.py"))
LONGEST = 80  # lines
WIDEST = 5.6  # inches: on a phone letters are then 9 pixels high
OUTSIDE = re.compile(r"urllib|requests|fetch_\w+|https?://|socket|ONESFW_DATA|\bopen\(|/tmp|expanduser")
QUICK = ("plot_sensor_placement", "plot_multiclass_from_files", "plot_summarising_text")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_keeps_the_rules(path):
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) < LONGEST
    heading = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert len(heading) > 3, "a title, its underline, an empty line, and what is asked"
    assert set(heading[1]) == {"="}
    assert len(heading[1]) >= len(heading[0])
    assert "?" in "".join(heading), "the docstring asks a question that a user has"
    assert text.count('plt.style.use("onesfw.pictures")') == 1
    assert "plt.show" not in text
    assert "suptitle" not in text
    widths = [float(width) for width in re.findall(r"figsize=\(\s*([\d.]+)", text)]
    assert max(widths, default=0.0) <= WIDEST
    assert re.search(r"plt\.(subplots|figure)", text), "a figure that pyplot did not make is not on the page"
    assert "# %%" in text
    assert not OUTSIDE.findall(text), "an example draws its data, or takes what scikit-learn and Python bring along"


def test_there_are_twenty_examples():
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_example_runs_and_draws(name, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with plt.rc_context({"backend": "agg"}):
        plt.switch_backend("agg")
        try:
            runpy.run_path(str(ROOT / "gallery" / f"{name}.py"))
            figures = [plt.figure(number) for number in plt.get_fignums()]
            assert figures
            for figure in figures:
                figure.canvas.draw()
                assert all(axes.has_data() for axes in figure.axes)
        finally:
            plt.close("all")
    assert capsys.readouterr().out
    assert not os.listdir(tmp_path), "an example leaves no file where it is run"
