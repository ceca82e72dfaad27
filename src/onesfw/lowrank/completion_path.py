"""A path of radii: what each model lost on entries that it had not learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from onesfw.files import Tensors
from onesfw.linear.losses import LOSSES
from onesfw.results.pictures import BLUE, GREY, log_radii
from onesfw.results.show import FileKind, Sheet, Shown, axes_of
from onesfw.trees import HostArray, Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = (
    "radii", "value", "gap", "rank", "max_rank", "validation_loss", "validation_stderr", "difference_stderr", "seconds",
)  # fmt: skip
NOTE = "simplest: the smallest radius within one standard error of the best"
HEADS = ("radius", "value", "gap", "rank", "validation loss", "seconds", "")


@dataclass(frozen=True)
class CompletionPath(Shown):
    """Models for rising radii, each begun at the one before, and what they lose on other entries.

    Args:
        loss: its name.
        entries: that were learnt.
        held_out: entries that were measured on.
        radii: of the models, rising; the path ends early where larger radii only lose.
        value: F of each model.
        gap: its Frank-Wolfe gap, as it is estimated on the way.
        rank: of each model.
        max_rank: its limit, infinite without one.
        validation_loss: the mean loss on the other entries.
        validation_stderr: its standard error.
        difference_stderr: the standard error of the difference to the best: both are measured on the same entries.
        seconds: of each model.

    Example:
        >>> import numpy as np
        >>> from onesfw.lowrank import CompletionPath
        >>> losses, ones = np.array([0.4, 0.21, 0.2]), np.ones(3)
        >>> errors = np.array([0.02, 0.015, 0.0])
        >>> radii = np.array([1.0, 2.0, 4.0])
        >>> path = CompletionPath("squared", 90, 10, radii, ones, ones, ones, ones, losses, ones, errors, ones)
        >>> path.best_radius, path.simplest_radius
        (4.0, 2.0)
    """

    file_kind = FileKind("onesfw.radii", 1, "path of radii")

    loss: str
    entries: int
    held_out: int
    radii: HostArray
    value: HostArray
    gap: HostArray
    rank: HostArray
    max_rank: HostArray
    validation_loss: HostArray
    validation_stderr: HostArray
    difference_stderr: HostArray
    seconds: HostArray

    @property
    def best(self) -> int:
        """The place of the smallest validation loss."""
        return int(np.argmin(self.validation_loss))

    @property
    def best_radius(self) -> float:
        """The radius with the smallest validation loss."""
        return float(self.radii[self.best])

    @property
    def simplest(self) -> int:
        """The place of the smallest radius whose loss is within one standard error of the difference to the best."""
        worse = self.validation_loss - self.validation_loss[self.best]
        return int(np.argmax(worse <= self.difference_stderr))

    @property
    def simplest_radius(self) -> float:
        """The smallest radius within one standard error of the best."""
        return float(self.radii[self.simplest])

    def shown(self, place: int) -> str:
        """A validation loss for the eye, with the RMSE where that is what it stands for."""
        loss, error = float(self.validation_loss[place]), float(self.validation_stderr[place])
        also = f" (RMSE {np.sqrt(2 * loss):.5f})" if self.loss == "squared" else ""
        return f"{loss:.5f} ± {error:.5f}{also}"

    def sheet(self) -> Sheet:
        """The table that is printed, and shown in a notebook."""
        marks = {self.simplest: "simplest", self.best: "best"}
        columns = (self.radii, self.value, self.gap, self.rank, self.max_rank, self.seconds)
        rows = [
            (
                f"{r:.4g}",
                f"{v:.5f}",
                f"{g:.1e}",
                f"{k:.0f}{', the limit' * bool(k == most)}",
                self.shown(i),
                f"{s:.2f}",
                marks.get(i, ""),
            )
            for i, (r, v, g, k, most, s) in enumerate(zip(*columns, strict=True))
        ]
        return Sheet(self.title, HEADS, rows, NOTE if self.simplest < self.best else "", words=0)

    @property
    def title(self) -> str:
        """What was learnt, in one line."""
        return f"{LOSSES[self.loss].title}, {self.held_out:,} entries held out: best radius {self.best_radius:.4g}"

    def draw(self, ax: Axes | None = None) -> Figure:
        """The validation loss, with a band of one standard error, and the rank against the radius."""
        figure, axes = axes_of(ax, (7.0, 4.2))
        low, high = (self.validation_loss + side * self.validation_stderr for side in (-1, 1))
        axes.fill_between(self.radii, low, high, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(self.radii, self.validation_loss, "o-", color=BLUE, label="validation, ± 1 standard error")
        axes.axvline(self.best_radius, color=BLUE, linewidth=1, linestyle=":")
        log_radii(axes)
        axes.set_xlabel("radius of the ball")
        halved = self.loss in ("squared", "huber")  # as everywhere: (m − y)²/2
        axes.set_ylabel(f"mean {LOSSES[self.loss].title}{', halved' if halved else ''}")
        axes.set_title(f"best radius {self.best_radius:.4g}", pad=24)  # the legend stands below it
        ranks = axes.twinx()
        ranks.plot(self.radii, self.rank, "^-", color=GREY, linewidth=1, markersize=4, label="rank (right)")
        ranks.locator_params(axis="y", integer=True)
        ranks.grid(False)
        ranks.set_ylabel("rank")
        handles = [*axes.get_legend_handles_labels()[0], *ranks.get_legend_handles_labels()[0]]
        axes.legend(handles=handles, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        return figure

    def pack_into(self, tensors: Tensors, prefix: str = "") -> dict[str, Json]:
        """The fields as JSON; the columns go to `tensors`."""
        tensors |= {f"{prefix}{name}": np.asarray(getattr(self, name), np.float64) for name in COLUMNS}
        return {"loss": self.loss, "entries": self.entries, "held_out": self.held_out}

    def pack(self) -> tuple[dict[str, Json], Tensors]:
        """What the file holds."""
        tensors: Tensors = {}
        return self.pack_into(tensors), tensors

    @classmethod
    def unpack(cls, content: dict[str, Json], tensors: Tensors, prefix: str = "") -> Self:
        """The path that a file holds; a ValueError where columns differ in length."""
        columns = {name: tensors[f"{prefix}{name}"] for name in COLUMNS}
        if len({column.shape for column in columns.values()}) != 1 or columns["radii"].ndim != 1:
            raise ValueError("columns do not fit")
        if content["loss"] not in LOSSES or not columns["radii"].size:
            raise ValueError("an unknown loss, or no radius")
        return cls(content["loss"], int(content["entries"]), int(content["held_out"]), **columns)
