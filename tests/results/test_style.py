"""One style for every picture: its colours show on light and on dark pages, and a caller's settings are his own."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from onesfw.linear import LinearModel
from onesfw.results import pictures

LIGHT, DARK = "#ffffff", "#131416"  # the site's pages


def luminance(colour):
    channels = np.array(to_rgb(colour))
    linear_light = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear_light @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture
def cycle():
    with style.context(pictures.STYLE):
        return [to_hex(entry["color"]).upper() for entry in mpl.rcParams["axes.prop_cycle"]]


def test_every_colour_is_seen_on_light_and_on_dark_pages(cycle):
    assert len(set(cycle)) >= 6
    assert min(contrast(colour, page) for colour in cycle for page in (LIGHT, DARK)) >= 3.8


def test_the_named_colours_are_the_styles_own(cycle):
    assert [cycle[0], cycle[1], cycle[-1]] == [pictures.BLUE, pictures.VERMILION, pictures.GREY]


def test_a_picture_has_the_style_and_leaves_the_callers_settings():
    model = LinearModel(np.array([1.0, -2.0]), 0.5, "squared", "l1", 3.0)
    before = dict(mpl.rcParams)
    axes = model.plot().axes[0]
    assert not axes.spines["top"].get_visible()
    assert to_hex(axes.patches[0].get_facecolor()).upper() == pictures.BLUE
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(("radii", "fewest"), [((0.018, 0.75), 4), ((0.1, 30.0), 6), ((1e-3, 1e3), 2)])
@pytest.mark.parametrize("cropped", [False, True])
def test_the_ticks_of_radii_do_not_run_into_one_another(radii, fewest, cropped):
    with style.context(pictures.STYLE):
        figure = Figure()
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.plot((1e-9, *radii) if cropped else radii, (1.0,) * (2 + cropped))
        if cropped:
            axes.set_xlim(*radii)
        pictures.log_radii(axes)
        figure.canvas.draw()
        labels = [text for text in axes.get_xticklabels(which="both") if text.get_text()]
        spans = sorted(
            (box.x0, box.x1)
            for box in (text.get_window_extent() for text in labels)
            if axes.bbox.x0 <= (box.x0 + box.x1) / 2 <= axes.bbox.x1
        )
    assert len(spans) >= fewest
    assert all(left[1] < right[0] for left, right in pairwise(spans))
