"""Saving a figure: its format by the ending of its name, whole or not at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from onesfw.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".pdf", ".svg")


def picture_ending(path: str | Path) -> str:
    """The ending that names the picture's format, or a sentence."""
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
