"""Every picture of the site twice, for light and for dark pages; the gallery's scraper, small pictures and themes."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from PIL import Image

INK, PAPER = 0.15, 1.0  # brightness of the style's ink and of its paper
NIGHT_INK, NIGHT_PAPER = np.array([228, 232, 240]) / 255, np.array([19, 20, 22]) / 255
GREY = 0.09  # channels this close together are no colour
THUMBNAIL = (400, 280)  # pixels
# The gallery from the first use to the finer points; an example that is not named comes last.
THEMES = {
    "Linear models, and sets for them": (
        "sparse_logistic_stream", "which_set", "choosing_a_radius", "stability_selection", "how_sure",
        "multiclass_from_files", "multitask_group_ball", "robust_regression", "nonconvex_sigmoid",
    ),
    "Matrices of low rank": ("matrix_completion", "recommendations", "trace_classes"),
    "Pick k of n things": ("digits_representatives", "influence", "sensor_placement", "summarising_text"),
    "Budgets, portfolios, plans": ("budget_allocation", "portfolio_cvar", "assignment_noisy_costs"),
    "Samples that depend on x": ("samples_depend_on_x", "policy_gradient", "performative", "pricing"),
    "Which method, and what theory promises": ("compare_methods", "who_wins", "bounds_and_rates", "errata_live"),
    "Sets of your own, many runs, long runs": ("own_set", "many_runs", "checkpoints"),
}  # fmt: skip
ORDER = [name for names in THEMES.values() for name in names]
# What is painted on an artist, by the names of its getters and setters.
PAINTS = {
    Text: ("color",),
    Line2D: ("color", "markerfacecolor", "markeredgecolor"),
    Patch: ("facecolor", "edgecolor"),
    Collection: ("facecolor", "edgecolor"),
}


def at_night(colours: np.ndarray) -> np.ndarray:
    """Ink becomes light, paper dark, greys between them; what has a colour keeps it."""
    night = colours.copy()
    channels = colours[:, :3]
    grey = np.ptp(channels, axis=1) < GREY
    share = np.clip((channels.mean(1) - INK) / (PAPER - INK), 0.0, 1.0)[:, None]
    night[grey, :3] = ((1 - share) * NIGHT_INK + share * NIGHT_PAPER)[grey]
    return night


def darken(artist: Artist) -> None:
    """Repaint one artist for a dark page."""
    if isinstance(artist, Text):
        for part in (artist.get_bbox_patch(), getattr(artist, "arrow_patch", None)):
            if part is not None:
                darken(part)
    for kind, paints in PAINTS.items():
        if not isinstance(artist, kind) or (kind is Collection and artist.get_array() is not None):
            continue
        before = {paint: getattr(artist, f"get_{paint}")() for paint in paints}  # all of them: some follow others
        for paint, colour in before.items():
            if isinstance(colour, str) and colour in ("none", "auto"):
                continue
            after = at_night(to_rgba_array(colour))
            if len(after):
                getattr(artist, f"set_{paint}")(after if kind is Collection else tuple(after[0]))


def described(figure: Figure) -> str:
    """A picture in words: the titles of its panels, or what is drawn against what."""
    words = [axes.get_title() or f"{axes.get_ylabel()} against {axes.get_xlabel()}".strip() for axes in figure.axes]
    return " ".join("; ".join(word for word in words if word != "against").split()) or "the figure of this example"


def save(figure: Figure, path: Path) -> None:
    """Write `path`, and the same picture for dark pages beside it, with `-dark` in its name."""
    quiet = {"metadata": {"Software": None}}  # the bytes do not tell matplotlib's version
    figure.savefig(path, facecolor="white", **quiet)
    for artist in figure.findobj():
        darken(artist)
    figure.savefig(dark(path), facecolor=tuple(NIGHT_PAPER), **quiet)


def dark(path: Path) -> Path:
    """The name of a picture's dark twin."""
    return path.with_name(f"{path.stem}-dark{path.suffix}")


def directive(path: str, alt: str, pages: str) -> str:
    """One picture in reStructuredText, for light or dark pages only."""
    return f".. image:: /{path}\n   :alt: {alt}\n   :class: sphx-glr-single-img only-{pages}\n"


def scrape(block, block_vars, gallery_conf) -> str:
    """The figures that a block of an example has drawn, as sphinx-gallery asks a scraper for them."""
    source = Path(gallery_conf["src_dir"])
    lines = []
    for number, place in zip(plt.get_fignums(), block_vars["image_path_iterator"], strict=False):
        figure = plt.figure(number)
        alt = described(figure)
        path = Path(place)
        save(figure, path)
        for twin, pages in ((path, "light"), (dark(path), "dark")):
            lines.append(directive(twin.relative_to(source).as_posix(), alt, pages))
    plt.close("all")
    return "\n".join(lines)


def crop_thumbnails(app) -> None:
    """The small picture of an example is the upper part of its first figure, as wide as can be: letters stay large."""
    width, height = THUMBNAIL
    images = Path(app.srcdir, "gallery", "images")
    for first in images.glob("*_001.png"):
        small = images / "thumb" / re.sub(r"_001\.png$", "_thumb.png", first.name)
        if small.exists():
            for source, place in ((first, small), (dark(first), dark(small))):
                with Image.open(source) as picture:
                    size = width, round(width / picture.width * picture.height)
                    whole = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
                cut = Image.new("RGB", (width, height), whole.getpixel((0, 0)))
                cut.paste(whole, (0, max(0, (height - whole.height) // 2)))
                cut.save(place)


def with_headings(app) -> None:
    """The gallery's themes as headings above their first examples, each with a box of small pictures of its own."""
    page = Path(app.srcdir, "gallery", "index.rst")
    text, raw = page.read_text(encoding="utf-8"), ".. raw:: html\n\n"
    for heading, (first, *_) in THEMES.items():
        picture = text.index(f"sphx_glr_plot_{first}_thumb.png")
        place = text.rindex(raw, 0, text.rindex("thumbcontainer", 0, picture))
        title = f"{heading}\n{'-' * len(heading)}\n\n"
        text = f'{text[:place]}{raw}    </div>\n\n{title}{raw}    <div class="sphx-glr-thumbnails">\n\n{text[place:]}'
    page.write_text(text, encoding="utf-8")


def small_twins(app, doctree) -> None:
    """Beside the small picture of an example its dark twin, in the gallery and below the names that it uses."""
    from docutils import nodes  # the style of pictures is tested where the site's packages are missing

    for image in list(doctree.findall(nodes.image)):
        twin = dark(Path(image["uri"])).as_posix()
        if image["uri"].endswith("_thumb.png") and Path(app.srcdir, twin.lstrip("/")).exists():
            night = image.deepcopy()
            night["uri"] = twin
            image["classes"].append("only-light")
            night["classes"].append("only-dark")
            image.parent.insert(image.parent.index(image) + 1, night)


class Order:
    """The key by which sphinx-gallery sorts the examples."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file_name: str) -> tuple[int, str]:
        name = Path(file_name).stem.removeprefix("plot_")
        return ORDER.index(name) if name in ORDER else len(ORDER), name

    def __repr__(self) -> str:
        return "the order of ORDER"
