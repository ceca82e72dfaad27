"""The style of all pictures, and saving them whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from onesfw.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = "onesfw.pictures"  # src/onesfw/pictures.mplstyle, for `plt.style.use` as well
# The first two and the last colour of its cycle; by name "C0" they would follow the style of whoever saves the figure.
BLUE, VERMILION, GREY = "#2A7FC9", "#D1603D", "#767C85"
ENDINGS = (".png", ".pdf", ".svg")
DECADE = 10.0


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the library's style; as a decorator too."""
    from matplotlib import style

    with style.context(STYLE):
        yield


def picture_ending(path: str | Path) -> str:
    """The ending that names the picture's format; raises ValueError where it names none."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"{str(path)!r} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}: the ending is the format"
        )
    return ending


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write the figure under `path`."""
    picture = io.BytesIO()
    figure.savefig(picture, format=picture_ending(path)[1:], dpi=150)
    write_whole(path, picture.getvalue())


def log_radii(axes: Axes) -> None:
    """A logarithmic x-axis with ticks at 1, 2 and 5 times powers of ten, written in full.

    Radii span a decade or three; matplotlib's own ticks there are few, or run into one another.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axes.dataLim.intervalx if axes.get_autoscalex_on() else axes.get_xlim()
    axes.set_xscale("log")
    if high <= low * DECADE**3:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter("{x:g}")
