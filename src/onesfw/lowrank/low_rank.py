"""A matrix of low rank by its factors: what it predicts, how it prints and draws itself, and its file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Self

import jax
import numpy as np
from scipy.special import expit

from onesfw.arguments import named, number, whole_number
from onesfw.data.labels import Label
from onesfw.files import Tensors
from onesfw.linear.losses import LOSSES
from onesfw.lowrank.completion_path import CompletionPath
from onesfw.lowrank.corrective import FULL
from onesfw.lowrank.entry_kernels import margins_at
from onesfw.lowrank.entry_scores import EntryScores, entry_scores
from onesfw.lowrank.factors import decompose
from onesfw.lowrank.observed import ENTRY_LOSSES, check_values, indices, triplets
from onesfw.results.pictures import BLUE
from onesfw.results.show import FileKind, Sheet, Shown, axes_of
from onesfw.trees import HostArray, Json, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OWN = "own"
MOST_BARS = 100  # side by side in a picture: of more, some gaps between them would be drawn and others not
ARRAYS = ("P", "Q", "row_bias", "col_bias", "s")
ENDINGS = {
    "gap": "the gap fell below gap_tol",
    "rank": "the rank is at its limit; the gap counts what any rank could gain on the entries that were learnt",
    "stuck": "rounding keeps the gap where it is",
    "rounds": "all rounds of atoms were done",
    "time": "the time limit was reached; raise time_limit for a smaller gap",
    "interrupted": "the run was interrupted; this is its last feasible iterate",
    "loop": "made from the iterate of a run",
}


@dataclass(frozen=True)
class LowRank(Shown):
    """X = P Qᵀ and biases: entry (i, j) is predicted by m = mean + row_bias_i + col_bias_j + X_ij.

    `fw.lowrank.complete` makes it. m is the value itself for the squared and the Huber loss, the log odds of +1 for
    the logistic one, the logarithm of the rate for counts.

    Args:
        P: rows × rank, perhaps with columns of zeros behind.
        Q: columns × rank, likewise.
        row_bias: one a row.
        col_bias: one a column.
        mean: of all entries, on the scale of m; 0 where there are no biases.
        loss: "squared", "huber", "logistic" or "poisson"; "own" for a function of the user's, whose m are the values.
        radius: of the trace-norm ball that X lies in.
        s: the singular values of X in the weighted norm, falling; they sum to the norm.
        value: F: the mean loss on the entries that were learnt, and the biases' ridges.
        gap: F is at most so far above its minimum over the ball; None where it was not measured.
        status: why the run ended: "gap", "rank", "stuck", "rounds", "time", "interrupted" or "loop".
        bounds: the least and the largest value that were learnt; predictions are kept between them.
        delta: where the Huber loss turns linear.
        weighted: whether rows and columns count in the norm by their entries.
        entries: that were learnt.
        steps: of conjugate gradients.
        rounds: of atoms.
        seconds: in all, the path of radii too.
        path: from which the radius was chosen.
        row_labels: what rows are called, where that is not their number.
        col_labels: what columns are called.
        test: how good it was on other entries.
        ridge: the weights of the rows' and the columns' biases in F; 0 without biases.
        max_rank: the limit of the rank that was given, or that the path chose; None without one.

    Example:
        >>> import numpy as np
        >>> import onesfw as fw
        >>> i, j = np.divmod(np.arange(20), 5)
        >>> model = fw.lowrank.complete(i, j, (i + 1.0) * (j - 2.0), radius=5.0)
        >>> model.shape, bool(abs(model.predict([3], [4])[0] - 8.0) < 1.0)
        ((4, 5), True)
    """

    file_kind = FileKind("onesfw.lowrank", 1, "low-rank model")

    P: HostArray = field(repr=False)
    Q: HostArray = field(repr=False)
    row_bias: HostArray = field(repr=False)
    col_bias: HostArray = field(repr=False)
    mean: float
    loss: str
    radius: float
    s: HostArray
    value: float
    gap: float | None
    status: str = "gap"
    bounds: tuple[float, float] = (-np.inf, np.inf)
    delta: float = 1.0
    weighted: bool = True
    entries: int = 0
    steps: int = 0
    rounds: int = 0
    seconds: float = 0.0
    path: CompletionPath | None = None
    row_labels: tuple[Label, ...] | None = field(default=None, repr=False)
    col_labels: tuple[Label, ...] | None = field(default=None, repr=False)
    test: EntryScores | None = None
    ridge: tuple[float, float] = (0.0, 0.0)
    max_rank: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.P), len(self.Q)

    @property
    def rank(self) -> int:
        """Of X."""
        return len(self.s)

    @property
    def norm(self) -> float:
        """The trace norm of X, weighted as it was learnt: at most the radius."""
        return float(self.s.sum())

    @property
    def factors(self) -> tuple[HostArray, HostArray, HostArray]:
        """(U, s, Vt) with X = U diag(s) Vt: the singular value decomposition, without the biases."""
        m, n = self.shape
        A, s, B = decompose(np.ones(m), np.ones(n), self.P, self.Q)
        keep = s > 1e-7 * (s[0] if len(s) else 0.0)
        return self.P @ A[:, keep], s[keep], (self.Q @ B[:, keep]).T

    def margins(self, rows: Rows, cols: Rows) -> HostArray:
        """m of these entries.

        Args:
            rows: row numbers.
            cols: column numbers, as many.

        Raises:
            TypeError, ValueError: where they are no numbers of rows and columns.
        """
        i, j = indices(rows, "rows"), indices(cols, "cols")
        if len(i) != len(j):
            raise ValueError(
                f"{named('rows')} and {named('cols')} must be of one length, got {len(i):,} and {len(j):,}"
            )
        for numbers, size, argument in ((i, self.shape[0], "rows"), (j, self.shape[1], "cols")):
            if len(numbers) and numbers.max() >= size:
                raise ValueError(f"{named(argument)} holds {numbers.max():,}, and the model has {size:,} of them")
        return self.margins_of_codes(i, j)

    def margins_of_codes(self, rows: HostArray, cols: HostArray) -> HostArray:
        """m of these entries; −1 stands for a row or a column that was never seen, which has no bias."""
        out = np.empty(len(rows))
        margins_at(rows, cols, self.mean, self.P, self.Q, self.row_bias, self.col_bias, out)
        return out

    def predict(self, rows: Rows, cols: Rows, *, clip: bool = True) -> HostArray:
        """What is expected of these entries: the value, the chance of +1 (logistic), or the rate (counts).

        Args:
            rows: row numbers.
            cols: column numbers, as many.
            clip: keep values between the least and the largest one that was learnt.

        Raises:
            TypeError, ValueError: where they are no numbers of rows and columns.
        """
        return self.predictions(self.margins(rows, cols), clip)

    def predictions(self, margins: HostArray, clip: bool = True) -> HostArray:
        """What margins stand for."""
        if self.loss == "logistic":
            return expit(margins)
        if self.loss == "poisson":
            return np.exp(np.minimum(margins, np.log(max(self.bounds[1], 1e-300)) if clip else np.inf))
        return np.clip(margins, *self.bounds) if clip else margins

    def top(self, row: int, k: int = 10, exclude: Rows = ()) -> tuple[HostArray, HostArray]:
        """The k columns with the largest predictions in a row, best first, and those predictions.

        Args:
            row: its number.
            k: how many.
            exclude: columns to leave out, such as those whose values are known.

        Raises:
            TypeError, ValueError: where the row or a column has no such number, or k is below 1.
        """
        here = whole_number(row, "row", 0, self.shape[0] - 1)
        left_out = np.asarray(sorted(exclude) if isinstance(exclude, set | frozenset) else exclude)
        left_out = indices(left_out if left_out.size else np.zeros(0, np.int64), "exclude")
        if len(left_out) and left_out.max() >= self.shape[1]:
            raise ValueError(
                f"{named('exclude')} holds {left_out.max():,}, and the model has {self.shape[1]:,} columns, from 0 on"
            )
        return self.top_of_code(here, whole_number(k, "k", 1), left_out)

    def top_of_code(self, row: int, k: int, exclude: HostArray) -> tuple[HostArray, HostArray]:
        """`top` of a row by its number; −1 stands for one that was never seen."""
        margins = self.mean + self.col_bias
        if row >= 0:
            margins = margins + self.Q.astype(np.float64) @ self.P[row] + self.row_bias[row]
        margins[exclude] = -np.inf
        allowed = int(np.isfinite(margins).sum())
        best = np.argsort(-margins, kind="stable")[: min(k, allowed)]
        return best, self.predictions(margins[best])

    def evaluate(self, rows: Rows, cols: Rows = None, values: Rows = None) -> EntryScores:
        """Errors on other entries; a sparse matrix may stand in the place of the three.

        Args:
            rows: row numbers, or a sparse matrix.
            cols: column numbers.
            values: what is known of them.

        Raises:
            TypeError, ValueError: where they are no entries of this matrix, or values that the loss cannot take.
        """
        given = triplets(rows, cols, values, self.shape, "squared" if self.loss == OWN else self.loss)
        return self.scores(self.margins_of_codes(given.rows, given.cols), np.asarray(given.values, np.float64))

    def scores(self, margins: HostArray, values: HostArray) -> EntryScores:
        """Errors of margins; those of a chance are measured against 0 and 1."""
        loss = "squared" if self.loss == OWN else self.loss
        check_values(values, loss)
        targets = (values + 1) / 2 if loss == "logistic" else values
        return entry_scores(self.predictions(margins), targets, LOSSES[loss].value(margins, values, self.delta))

    def sheet(self) -> Sheet:
        """The table that is printed, and shown in a notebook."""
        return Sheet(self.title, ("", ""), self.rows(), ENDINGS[self.status], words=2)

    @property
    def title(self) -> str:
        """What was learnt, in one line."""
        kind = "weighted trace norm" if self.weighted else "trace norm"
        loss = "a loss of one's own" if self.loss == OWN else LOSSES[self.loss].title
        return f"{self.shape[0]:,} × {self.shape[1]:,}, {loss}, {kind}, radius {self.radius:.4g}"

    @property
    def gap_line(self) -> str:
        """The gap, and whether it tells anything: a limit of the rank can leave more to gain than there is."""
        if self.gap is None:
            return "not measured"
        trivial = self.loss not in ("poisson", OWN) and self.gap >= self.value * (1 - 1e-9) > 0
        return f"{self.gap:.2g}" + (", all of the value: no bound" if trivial else "")

    @property
    def edge(self) -> str:
        """Words for a path, cut by the clock perhaps, whose last radius was the best though it fills its ball."""
        last = self.path is not None and self.path.best == len(self.path.radii) - 1
        return ", the largest: larger ones may be better" if last and self.norm >= FULL * self.radius else ""

    def rows(self) -> list[tuple[str, str]]:
        """Names and figures, a line each."""
        lines = [
            ("entries", f"{self.entries:,}"),
            ("rank", f"{self.rank}, the limit" if self.rank == self.max_rank else f"{self.rank}"),
            ("norm", f"{self.norm:.4g} of {self.radius:.4g}"),
            ("value", f"{self.value:.6g}"),
            ("gap", self.gap_line),
        ]
        if self.path is not None:
            best = self.path.best
            lines.append(("radius from", f"a path of {len(self.path.radii)}{self.edge}"))
            lines.append(("  validation loss", self.path.shown(best)))
        if self.test is not None:
            lines += [
                (f"test {name}" if name in ("entries", "loss") else name, text) for name, text in self.test.lines()
            ]
        if self.steps or self.status != "loop":  # those of a loop's model are in its result
            rounds = f" in {self.rounds} round{'' if self.rounds == 1 else 's'}" if self.rounds else ""
            lines += [("steps", f"{self.steps:,}{rounds}"), ("seconds", f"{self.seconds:.2f}")]
        return lines

    def draw(self, ax: Axes | None = None) -> Figure:
        """The singular values; beside them the path of radii, where there is one."""
        from matplotlib.figure import Figure

        if ax is None and self.path is not None:
            figure = Figure(figsize=(11.0, 4.2), layout="constrained")
            axes, other = figure.subplots(1, 2)
            self.path.draw(other)
        else:
            figure, axes = axes_of(ax, (6.4, 4.2))
        if self.rank > MOST_BARS:
            axes.stairs(self.s, np.arange(self.rank + 1) + 0.5, fill=True, color=BLUE)
        else:
            axes.bar(np.arange(1, self.rank + 1), self.s, color=BLUE)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("number")
        axes.set_ylabel("singular value in the norm of the ball")
        axes.set_title(f"rank {self.rank}, norm {self.norm:.4g} of {self.radius:.4g}")
        if not self.rank:
            axes.set(xticks=[], yticks=[])
            axes.text(0.5, 0.5, "X = 0: the biases alone", transform=axes.transAxes, ha="center", color="0.4")
        return figure

    def pack(self) -> tuple[dict[str, Json], Tensors]:
        """What the file holds, the path included."""
        tensors: Tensors = {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS}
        numbers = {
            name: getattr(self, name)
            for name in ("mean", "loss", "radius", "value", "gap", "status", "delta", "weighted", "entries", "steps",
                         "rounds", "seconds", "max_rank")
        }  # fmt: skip
        content = {
            **numbers,
            "bounds": [None if not np.isfinite(b) else float(b) for b in self.bounds],
            "ridge": list(self.ridge),
            "path": None if self.path is None else self.path.pack_into(tensors, "path."),
            "row_labels": None if self.row_labels is None else list(self.row_labels),
            "col_labels": None if self.col_labels is None else list(self.col_labels),
            "test": None if self.test is None else asdict(self.test),
        }
        return content, tensors

    @classmethod
    def unpack(cls, content: dict[str, Json], tensors: Tensors) -> Self:
        """The model that a file holds, whose fields must fit one another."""
        return cls(**decode(content, tensors))


class Rest:
    """The fields of a model that are no arrays, for trees: equal where it is the same object."""

    def __init__(self, fields: dict[str, Json]) -> None:
        self.fields = fields


def flatten(model: LowRank) -> tuple[list[tuple[jax.tree_util.GetAttrKey, HostArray]], Rest]:
    """A model as a tree of its arrays, for whatever walks over a result's x."""
    rest = {entry.name: getattr(model, entry.name) for entry in fields(model) if entry.name not in ARRAYS}
    return [(jax.tree_util.GetAttrKey(name), getattr(model, name)) for name in ARRAYS], Rest(rest)


def unflatten(rest: Rest, arrays: Iterable[HostArray]) -> LowRank:
    """The way back."""
    found: dict[str, Json] = {**dict(zip(ARRAYS, arrays, strict=True)), **rest.fields}
    return LowRank(**found)


jax.tree_util.register_pytree_with_keys(LowRank, flatten, unflatten)


def decode(content: dict[str, Json], tensors: Tensors) -> dict[str, Json]:
    """A model's fields from a file's content; they must fit one another."""
    arrays = {name: tensors[name] for name in ARRAYS}
    m, n, columns = len(arrays["P"]), len(arrays["Q"]), arrays["P"].shape[1]
    shapes = {"P": (m, columns), "Q": (n, columns), "row_bias": (m,), "col_bias": (n,), "s": arrays["s"].shape[:1]}
    if any(arrays[name].shape != shape for name, shape in shapes.items()) or len(arrays["s"]) > columns:
        raise ValueError("shapes do not fit")
    if not all(array.dtype.kind == "f" and np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("factors must be finite numbers")
    content = dict(content)
    for name in ("mean", "radius", "value", "delta", "gap"):
        if name != "gap" or content[name] is not None:
            content[name] = number(content[name], name, -np.inf)
    if content["loss"] not in (*ENTRY_LOSSES, OWN) or content["status"] not in ENDINGS:
        raise ValueError("an unknown loss or status")
    low, high = content.pop("bounds")
    path, test = content.pop("path"), content.pop("test")
    ridge = content.pop("ridge")
    labels = {name: content.pop(name) for name in ("row_labels", "col_labels")}
    for name, size in (("row_labels", m), ("col_labels", n)):
        if labels[name] is not None and len(labels[name]) != size:
            raise ValueError("labels do not fit")
    return {
        **arrays,
        **content,
        "bounds": (-np.inf if low is None else float(low), np.inf if high is None else float(high)),
        "path": None if path is None else CompletionPath.unpack(path, tensors, "path."),
        "row_labels": None if labels["row_labels"] is None else tuple(labels["row_labels"]),
        "col_labels": None if labels["col_labels"] is None else tuple(labels["col_labels"]),
        "test": None if test is None else EntryScores(**test),
        "ridge": (float(ridge[0]), float(ridge[1])),
    }
