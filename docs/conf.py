"""The site: the Markdown of this folder, the gallery, and a page for every public name. `make site` builds it."""

import logging
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx

from onesfw import __version__

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "site"))

import pictures  # noqa: E402
import reference  # noqa: E402

project = "onesfw"
author = "The onesfw developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["README.md", "site", "gallery/*.ipynb", "gallery/*.py", "gallery/*.json", "gallery/*.zip"]

# MathJax lies on the site itself: no page asks another host for anything. The package's own extension cannot read in
# parallel and copies four times as much.
MATHJAX = Path(str(find_spec("sphinx-mathjax-offline").origin)).parent / "static" / "mathjax"
MATHJAX_PARTS = ("tex-chtml.js", "input/tex/extensions/*", "output/chtml/**/*")
mathjax_path = "mathjax/tex-chtml.js"

smartquotes_action = "D"  # dashes; docstrings quote code: every="log"
default_role = "py:obj"  # `name` in a docstring: a link where there is a page, code otherwise
autosummary_generate = False  # `reference` writes the pages
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # Args say it in words
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
maximum_signature_line_length = 80
myst_heading_anchors = 4
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "onesfw"
html_favicon = "site/static/favicon.svg"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
html_last_updated_fmt = None


def needs(example: Path) -> list[str]:
    """The optional packages that an example imports and that are not installed."""
    optional = [name for name in ("gymnasium",) if re.search(rf"^\s*import {name}", example.read_text("utf-8"), re.M)]
    return [name for name in optional if find_spec(name) is None]


EXAMPLES = sorted((ROOT / "gallery").glob("plot_*.py"))
SKIPPED = {example.name: needs(example) for example in EXAMPLES if needs(example)}

sphinx_gallery_conf = {
    "examples_dirs": ["../gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": rf"/(?!{'|'.join(map(re.escape, SKIPPED)) or '$'})plot_",
    "copyfile_regex": r"GALLERY_HEADER\.rst",
    "doc_module": ("onesfw",),
    "backreferences_dir": "gallery/backreferences",
    "image_scrapers": ("pictures.scrape",),
    "capture_repr": ("_repr_html_",),  # a block may end with axes.legend()
    "reset_modules": ("matplotlib", "stopwatch.note"),
    "reset_modules_order": "both",
    "within_subsection_order": "pictures.Order",
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": False,
    "log_level": {"backreference_missing": "debug"},
    "min_reported_time": 0,
    "write_computation_times": False,  # its table of times asks another host for its scripts
}


SHOWN = {"contributing": ROOT / "CONTRIBUTING.md", "changelog": ROOT / "CHANGELOG.md", "security": ROOT / "SECURITY.md"}


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """A page as it is read: files of the repository's root have pages of their own, and links lead there."""
    if name in SHOWN:
        app.env.note_dependency(SHOWN[name])
        source[0] = SHOWN[name].read_text(encoding="utf-8")
    text = re.sub(r"\]\((?:\.\./)?(CONTRIBUTING|CHANGELOG|SECURITY)\.md", lambda m: f"]({m[1].lower()}.md", source[0])
    text = re.sub(r"\]\((?:\.\./)?gallery/\)", "](gallery/index.rst)", text)
    text = re.sub(r"\]\((?:\.\./)?gallery/(plot_\w+)\.py", r"](gallery/\1.rst", text)
    text = re.sub(r"\]\(docs/(?=[\w-]+\.md)", "](", text)
    source[0] = re.sub(r"^!\[([^\]]*)\]\((pictures/[\w-]+)\.png\)$", twins, text, flags=re.M)


def twins(picture: re.Match[str]) -> str:
    """A picture of a Markdown page as two: itself for light pages, its twin for dark ones."""
    kinds = ((f"{picture[2]}.png", "light"), (f"{picture[2]}-dark.png", "dark"))
    return "\n\n".join(
        f"```{{image}} {path}\n:alt: {picture[1]}\n:class: banner only-{kind}\n```" for path, kind in kinds
    )


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """What pages with formulas load."""
    if error is None:
        for path in (path for part in MATHJAX_PARTS for path in MATHJAX.glob(part) if path.is_file()):
            place = Path(app.outdir, "_static", "mathjax", path.relative_to(MATHJAX))
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def setup(app: Sphinx) -> None:
    for name, missing in SKIPPED.items():
        print(f"{name} is shown but not run: {', '.join(missing)} is not installed", file=sys.stderr)  # --quiet too
    for talkative in ("onesfw", "jax"):  # a package of the theme asks every logger to tell everything
        logging.getLogger(talkative).setLevel(logging.WARNING)
    reference.write(DOCS / "api")
    app.connect("builder-inited", pictures.crop_thumbnails, priority=900)  # after the gallery has been made
    app.connect("builder-inited", pictures.with_headings, priority=900)
    app.connect("source-read", read)
    app.connect("doctree-read", pictures.small_twins, priority=400)  # before pictures are collected, at 500
    app.connect("autodoc-skip-member", reference.leave_out)
    app.connect("build-finished", copy_mathjax)
    app.connect("autodoc-process-docstring", reference.plain, priority=400)  # before napoleon, at 500
