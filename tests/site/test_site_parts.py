"""Parts of the site without building it: twins of pictures for dark pages; examples whose package is not there."""

import importlib.util
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def pictures(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    yield __import__("pictures")
    sys.modules.pop("pictures", None)


@pytest.fixture
def figure():
    with plt.style.context("onesfw.pictures"):
        figure = plt.figure(figsize=(2.0, 1.5))
        axes = figure.add_subplot()
        axes.plot([0, 1], [0, 1], "o-", color="C0")
        axes.plot([0, 1], [1, 0], "o-", color="C5")
        axes.set_title("ink")
        axes.annotate("", (1, 1), (0, 0), arrowprops={"arrowstyle": "->", "color": "black"})
        axes.scatter([0.5], [0.5], color="C1", edgecolors="white")
        yield figure
        plt.close(figure)


def test_the_twin_is_dark_and_its_ink_light(pictures, figure, tmp_path):
    path = tmp_path / "one.png"
    pictures.save(figure, path)
    light, dark = (plt.imread(place)[..., :3] for place in (path, tmp_path / "one-dark.png"))
    assert light.shape == dark.shape
    assert np.allclose(light[0, 0], 1.0)
    assert np.allclose(dark[0, 0], pictures.NIGHT_PAPER, atol=0.01)
    axes = figure.axes[0]
    assert np.allclose(to_rgb(axes.title.get_color()), pictures.NIGHT_INK, atol=0.05)
    assert min(to_rgb(axes.texts[0].arrow_patch.get_edgecolor())) > 0.8
    blue, grey = axes.lines
    assert to_rgb(blue.get_color()) == to_rgb("C0") == to_rgb(blue.get_markerfacecolor())
    assert min(to_rgb(grey.get_color())) > max(to_rgb("C5"))
    assert to_rgb(grey.get_markerfacecolor()) == to_rgb(grey.get_color())
    assert np.allclose(axes.collections[0].get_edgecolor()[0, :3], pictures.NIGHT_PAPER)


def test_every_example_has_its_place_in_the_gallery(pictures):
    examples = [path.stem.removeprefix("plot_") for path in (ROOT / "gallery").glob("plot_*.py")]
    assert sorted(pictures.ORDER) == sorted(examples)


def test_every_example_is_reached_from_a_guide():
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name not in ("README.md", "measurements.md")]
    linked = {name for page in pages for name in re.findall(r"\.\./gallery/(plot_\w+)\.py", page.read_text("utf-8"))}
    assert {path.stem for path in (ROOT / "gallery").glob("plot_*.py")} == linked


def test_a_picture_is_told_in_words(pictures, figure):
    assert pictures.described(figure) == "ink"
    figure.axes[0].set(title="", xlabel="samples", ylabel="gap")
    assert pictures.described(figure) == "gap against samples"


def test_a_small_picture_gets_its_dark_twin_where_there_is_one(pictures, tmp_path):
    nodes = pytest.importorskip("docutils.nodes", reason="the site needs the extra docs")
    folder = tmp_path / "images" / "thumb"
    folder.mkdir(parents=True)
    (folder / "one_thumb-dark.png").touch()
    page = nodes.section("", *(nodes.image(uri=f"/images/thumb/{name}_thumb.png") for name in ("one", "other")))
    pictures.small_twins(SimpleNamespace(srcdir=tmp_path), page)
    assert [(Path(image["uri"]).name, image["classes"]) for image in page.findall(nodes.image)] == [
        ("one_thumb.png", ["only-light"]),
        ("one_thumb-dark.png", ["only-dark"]),
        ("other_thumb.png", []),
    ]


def test_an_example_whose_package_lacks_is_shown_and_not_run(monkeypatch):
    pytest.importorskip("sphinx", reason="the site needs the extra docs")
    pytest.importorskip("sphinx_gallery", reason="the site needs the extra docs")
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "gymnasium" else found(name))
    monkeypatch.setattr(sys, "path", list(sys.path))
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    assert conf["SKIPPED"] == {"plot_policy_gradient.py": ["gymnasium"]}
    runs = re.compile(conf["sphinx_gallery_conf"]["filename_pattern"])
    assert not runs.search("gallery/plot_policy_gradient.py")
    assert runs.search("gallery/plot_influence.py")


def test_the_gallery_has_a_heading_for_each_theme(pictures, tmp_path):
    box = """.. raw:: html

    <div class="sphx-glr-thumbcontainer" tooltip="a question">

.. image:: sphx_glr_plot_{}_thumb.png

"""
    page = tmp_path / "gallery" / "index.rst"
    page.parent.mkdir()
    page.write_text("".join(map(box.format, pictures.ORDER)), encoding="utf-8")
    pictures.with_headings(SimpleNamespace(srcdir=tmp_path))
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^(.+)\n-+$|plot_(\w+)_thumb", text, re.M)
    expected = [
        pair for heading, names in pictures.THEMES.items() for pair in ((heading, ""), *(("", n) for n in names))
    ]
    assert found == expected
    assert text.count("</div>") == text.count('"sphx-glr-thumbnails"') == len(pictures.THEMES)
