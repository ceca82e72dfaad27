"""What comes out of a sweep: one run for every set, every choice of rows and every seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from onesfw.files import Tensors
from onesfw.results.pictures import BLUE, VERMILION, log_radii
from onesfw.results.result_file import decode_tree, encode_tree
from onesfw.results.show import FileKind, Sheet, Shown, as_html, axes_of
from onesfw.results.status import Status
from onesfw.trees import Floats, HostArray, Json, Tree

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = ("value", "value_stderr", "gap", "gap_stderr", "validation", "validation_stderr")
LOG_FROM = 20.0  # a ratio of the largest to the smallest radius from which the axis is logarithmic
FAR = 0.1  # of the largest value: a gap that says that a set is not solved
STATUSES = tuple(Status)
RULES = ("best", "one_standard_error")


class Choice(NamedTuple):
    """A set that was chosen, and what it was chosen for.

    Args:
        number: its place among the constraints.
        at: its radius, or whatever number tells the sets apart.
        mean: the mean it was chosen for, of the validation values where there are any.
        stderr: the standard error of that mean.
    """

    number: int
    at: float
    mean: float
    stderr: float


@dataclass(frozen=True)
class Sweep(Shown):
    """The runs of `fw.sweep`: arrays over (constraint, rows, replicate), in that order.

    Args:
        x: the points, with three leading axes.
        value: F(x), of a finite sum on the rows that were learnt; NaN where nothing was evaluated.
        value_stderr: its standard error.
        gap: the Frank-Wolfe gap there.
        gap_stderr: its standard error.
        validation: the value on the rows left out, or what `validation=` asked for; NaN where there is none.
        validation_stderr: its standard error, over the rows of one run.
        status: why each run ended: the place of a member of `Status`.
        at: what tells the sets apart, the radius mostly; 0, 1, 2, … where no single number does.
        parameter: the name of that number.
        constraint: the class of the sets.
        algorithm: the method's name, setting and schedules.
        sense: "minimize" or "maximize".
        steps: iterations of each run, as far as it came.
        seconds: wall time of all runs together, compilation and evaluation included.
        kernel: which loop ran: "xla" or "persistent".
        learnt: whether values are those of the very rows that the runs learnt from, which favour large sets.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> import onesfw as fw
        >>> rows = np.random.default_rng(0).normal(0.5, 0.2, (40, 3))
        >>> objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2) / 2, rows)
        >>> sets = [fw.sets.L2Ball(r, shape=3) for r in (0.1, 0.3, 1.0)]
        >>> found = fw.sweep(objective, sets, steps=300, rows=fw.rows.folds(40, 4))
        >>> found.value.shape, found.best().at
        ((3, 4, 1), 1.0)
    """

    file_kind = FileKind("onesfw.sweep", 1, "sweep")

    x: Tree
    value: Floats
    value_stderr: Floats
    gap: Floats
    gap_stderr: Floats
    validation: Floats
    validation_stderr: Floats
    status: HostArray
    at: Floats
    parameter: str
    constraint: str
    algorithm: str
    sense: str
    steps: HostArray
    seconds: float
    kernel: str = "xla"
    learnt: bool = True

    @property
    def judged(self) -> Floats:
        """What sets are compared by: the validation values, or F itself where there are none."""
        return self.value if np.isnan(self.validation).all() else self.validation

    @property
    def compared(self) -> HostArray:
        """Which runs count for a set: not those that broke down, nor those that were cut too early.

        Too early is before half the steps of the longest run where the user cut it; where the clock did, which gives
        every run the same time, before half of what most runs made of that time: the median.
        """
        enough = {Status.INTERRUPTED: self.steps.max(), Status.TIME_UP: np.median(self.steps)}
        fine: HostArray = self.status != STATUSES.index(Status.NOT_FINITE)
        for status, usual in enough.items():
            fine = fine & ((self.status != STATUSES.index(status)) | (2 * self.steps >= usual))
        return fine

    @property
    def means(self) -> tuple[Floats, Floats]:
        """The mean of what sets are compared by, and its standard error: over rows, or over seeds where rows are one.

        With one run a set the error is that of the run's own value. NaN where a run of the set does not count.
        """
        judged = np.where(self.compared, self.judged, np.nan)
        values = judged.mean(2)
        if values.shape[1] == 1:
            values = judged[:, 0]
        if values.shape[1] > 1:
            return values.mean(1), values.std(1, ddof=1) / np.sqrt(values.shape[1])
        own = self.value_stderr if self.judged is self.value else self.validation_stderr
        return values[:, 0], own[:, 0, 0]

    def best(self, rule: str = "best") -> Choice:
        """The set with the best mean; or the smallest one within a standard error of it.

        A set is left out where one of its runs became NaN or infinite, or was stopped too early: by the user before
        half the steps of the longest run, by the clock before half the median. Over folds the standard error says how
        far the mean would move with other rows. Over bootstraps and half-samples, which overlap, it goes to 0 with
        their number: choose within one standard error by folds.

        Args:
            rule: "best", or "one_standard_error", which prefers the set that is asked for less.

        Returns:
            The choice.

        Raises:
            ValueError: where the rule has another name, nothing was measured, or no set is left.
        """
        if rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))}, got {rule!r}")
        means, errors = self.means
        if np.isnan(self.judged).all():
            raise ValueError("nothing was measured; leave evaluate=None, or give rows or validation")
        if np.isnan(means).all():
            raise ValueError(
                "no set is left to choose from: of each a run became NaN or infinite, or was stopped long before "
                "others; look at status and steps, and let the sweep go on (checkpoint=) or raise time_limit"
            )
        cost = means if self.sense == "minimize" else -means
        number = int(np.nanargmin(cost))
        if rule == "one_standard_error":
            error = 0.0 if np.isnan(errors[number]) else errors[number]
            near = np.flatnonzero(cost <= cost[number] + error)
            number = int(near[np.argmin(self.at[near])])
        return Choice(number, float(self.at[number]), float(means[number]), float(errors[number]))

    def table(self) -> str:
        """The table that `print` shows: a line a set, with the best one and the simplest within a standard error."""
        return str(self)

    def sheet(self) -> Sheet:
        """The table that is printed, and shown in a notebook: a line a set."""
        _, folds, seeds = self.value.shape
        counts = ((len(self.at), "set", "sets"), (folds, "choice", "choices"), (seeds, "seed", "seeds"))
        sets, choices, several_seeds = (f"{count:,} {one if count == 1 else many}" for count, one, many in counts)
        title = f"{self.constraint}, {sets} × {choices} of rows × {several_seeds}: {self.algorithm}"
        validated = not np.isnan(self.validation).all()
        heads = (self.parameter, "value", "largest gap", *(["validation"] if validated else []), "")
        notes = {}
        if not np.isnan(self.means[0]).all():
            notes = {self.best("one_standard_error").number: "within one standard error", self.best().number: "best"}
        means, errors = self.means
        rows = []
        for c, at in enumerate(self.at):
            cells = [f"{at:.4g}", f"{self.value[c].mean():.6g}", f"{self.gap[c].max():.1e}"]
            if validated:
                cells.append("–" if np.isnan(means[c]) else f"{means[c]:.6g} ± {errors[c]:.2g}")
            rows.append((*cells, notes.get(c, "" if self.compared[c].all() else "not compared")))
        return Sheet(title, heads, rows, "\n".join([*self.caveats(validated), self.ended]), words=0)

    def caveats(self, validated: bool) -> list[str]:
        """What the table's words do not mean."""
        lines = []
        if self.learnt and not validated and len(self.at) > 1 and not np.isnan(self.means[0]).all():
            lines.append("no rows were left out, and those learnt favour large sets: give rows= to choose by others")
        far = self.gap > FAR * np.nanmax(np.abs(self.value), initial=0.0)
        if far.any():
            sets = int(far.any(axis=(1, 2)).sum())
            noun = "one set has gaps" if sets == 1 else f"{sets:,} sets have gaps"
            lines.append(f"{noun} over a tenth of the largest value: raise steps")
        return lines

    @property
    def ended(self) -> str:
        """How many runs did not do all their steps, and why, in a line; and the time."""
        counts = {status: int(np.sum(self.status == place)) for place, status in enumerate(STATUSES)}
        lines = [f"{count:,} {'run' if count == 1 else 'runs'}: {status}" for status, count in counts.items() if count]
        return "\n".join([*lines, f"{self.seconds:.2f} seconds"])

    def _repr_html_(self) -> str:
        """The table with the picture beside it, where there is something to draw."""
        if not np.isnan(self.judged).all():
            return super()._repr_html_()
        sheet = self.sheet()
        return as_html(sheet.title, sheet.columns, sheet.rows, None, sheet.note, words=sheet.words)

    def draw(self, ax: Axes | None = None) -> Figure:
        """Training and validation values against the radius, with bands of one standard error."""
        if np.isnan(self.judged).all():
            raise ValueError("nothing was measured, and the picture would be empty; leave evaluate=None")
        figure, axes = axes_of(ax, (7.0, 4.2))
        means, errors = self.means
        if not np.isnan(self.validation).all() and not np.isnan(means).all():
            axes.fill_between(self.at, means - errors, means + errors, color=BLUE, alpha=0.2, linewidth=0)
            if len(self.at) == 1:  # a band has no width
                axes.vlines(self.at, means - errors, means + errors, color=BLUE, alpha=0.4)
            axes.plot(self.at, means, "o-", color=BLUE, label="validation, ± 1 standard error")
            axes.axvline(self.best().at, color=BLUE, linewidth=1, linestyle=":")
        if not np.isnan(self.value).all():
            runs, whose = self.value.reshape(len(self.at), -1), "rows learnt" if self.learnt else "value"
            low, high = np.quantile(runs, [0.1, 0.9], axis=1)
            axes.fill_between(self.at, low, high, color=VERMILION, alpha=0.15, linewidth=0)
            if len(self.at) == 1:
                axes.vlines(self.at, low, high, color=VERMILION, alpha=0.4)
            axes.plot(self.at, runs.mean(1), "s--", color=VERMILION, label=f"{whose}, middle 80 % of the runs")
        if self.at.min() > 0 and self.at.max() > LOG_FROM * self.at.min():
            log_radii(axes)
        if self.parameter == "set":
            axes.locator_params(axis="x", integer=True)
        axes.set_xlabel(self.parameter)
        axes.set_ylabel("value")
        noun = "run" if self.value.size == 1 else "runs"
        axes.set_title(f"{self.constraint}: {self.value.size:,} {noun} of {self.algorithm.split(',')[0]}")
        if len(axes.get_legend_handles_labels()[0]) > 1:
            axes.legend()
        return figure

    def to_pandas(self) -> pd.DataFrame:
        """A line for every run: its set, rows and seed, and what was measured.

        Raises:
            ImportError: where pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas needs pandas, which is not installed: pip install pandas") from error
        c, f, r = np.indices(self.value.shape).reshape(3, -1)
        columns = {self.parameter: self.at[c], "constraint": c, "rows": f, "replicate": r, "steps": self.steps.ravel()}
        columns |= {name: getattr(self, name).ravel() for name in MEASURES}
        columns["status"] = np.array([STATUSES[place].name for place in self.status.ravel()], object)
        return pd.DataFrame(columns)

    def pack(self) -> tuple[dict[str, Json], Tensors]:
        """What the file holds."""
        tensors: Tensors = {
            name: np.asarray(getattr(self, name), order="C") for name in (*MEASURES, "status", "at", "steps")
        }
        names = ("parameter", "constraint", "algorithm", "sense", "kernel", "learnt")
        content = {name: getattr(self, name) for name in names}
        content |= {"seconds": self.seconds, "x": encode_tree(self.x, "x", tensors)}
        return content, tensors

    @classmethod
    def unpack(cls, content: dict[str, Json], tensors: Tensors) -> Self:
        """The sweep that a file holds, whose shapes must fit one another."""
        x = decode_tree(content.pop("x"), tensors)
        fields: dict[str, Json] = {name: tensors[name] for name in (*MEASURES, "status", "at", "steps")}
        found = cls(x=x, **fields, **content)
        places = found.status.min() >= 0 and found.status.max() < len(STATUSES)
        shapes = {getattr(found, name).shape for name in (*MEASURES, "status", "steps")}
        if len(shapes) > 1 or found.value.ndim != 3 or len(found.at) != len(found.value) or not places:
            raise ValueError("shapes")
        return found
