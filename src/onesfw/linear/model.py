"""A trained linear model: what it predicts, how it prints and draws itself, and its file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse
from scipy.special import expit

from onesfw.data.encoding import NUMBERS, Encoding
from onesfw.data.labels import Label, show
from onesfw.data.sources import check_indices
from onesfw.files import Tensors
from onesfw.linear.constraints import CONSTRAINTS
from onesfw.linear.losses import LOSSES
from onesfw.linear.scores import Scores
from onesfw.results.pictures import BLUE
from onesfw.results.show import FileKind, Sheet, Shown, axes_of
from onesfw.trees import HostArray, Json, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS = 20  # coefficients that a picture shows


@dataclass(frozen=True)
class Training:
    """How a model was trained, for the record.

    Args:
        rows: of the file or stream.
        passes: that were finished.
        steps: rows learnt over all passes.
        skipped: bad rows that were left out.
        progressive_loss: the mean loss of each row before it was first learnt: honest, since the row was unseen.
        schedule: of η and ρ.
        key: the seed of the shuffling.
        seconds: reading and learning.
        pass_seconds: of each pass that was finished.
        compile_seconds: compiling the kernel, or loading it.
        finished: False where Ctrl-C ended the run; the model is as it stood.
        scores: of the finished model on its training rows; None where they are neither in memory nor in a cache.
        gap: at least F(model) − F*, of the training loss and its least value under the constraint; None as `scores`.
        polished: rounds of the polish; 0 where there was none.
        converged: whether the gap is as small as was asked for, or a tenth of the loss at most without a polish; None
            where the rows were not kept.

    Example:
        >>> from onesfw.linear import Training
        >>> Training(rows=500, passes=20, steps=10_000).finished
        True
    """

    rows: int = 0
    passes: int = 0
    steps: int = 0
    skipped: int = 0
    progressive_loss: float | None = None
    schedule: str = ""
    key: int = 0
    seconds: float = 0.0
    pass_seconds: tuple[float, ...] = ()
    compile_seconds: float = 0.0
    finished: bool = True
    scores: Scores | None = None
    gap: float | None = None
    polished: int = 0
    converged: bool | None = None


@dataclass(frozen=True)
class LinearModel(Shown):
    """m(a) = ⟨a, coef⟩ + intercept, learnt with `loss` over {x : ‖x‖ ≤ radius} of the named constraint.

    `fw.linear.train` makes it. With more than two labels there is one row of coefficients a label, each learnt against
    the rest.

    Args:
        coef: one number a feature; labels × features where there are more than two labels.
        intercept: added to every margin; one a label where there are more than two.
        loss: "logistic", "squared_hinge", "squared", "huber" or "poisson".
        constraint: "l1", "l2", "linf", "simplex" or "nonnegative_l1".
        radius: r.
        labels: for a classifier; of two, the second one is where the margin is positive.
        delta: where the Huber loss turns linear.
        encoding: how a file becomes rows.
        versions: of the packages that wrote it.
        training: how it was trained.
        test: how good it was on the test rows, where there were some.
        scale: what the columns were divided by in training; None for nothing. The constraint is on `coef * scale`.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import LinearModel
        >>> model = LinearModel(np.array([1.0, -2.0]), 0.5, "squared", "l1", 3.0)
        >>> model.predict(np.array([[1.0, 1.0], [0.0, 0.0]]))
        array([-0.5,  0.5])
    """

    file_kind = FileKind("onesfw.model", 2, "model")

    coef: HostArray
    intercept: float | HostArray
    loss: str
    constraint: str
    radius: float
    labels: tuple[Label, ...] | None = None
    delta: float = 1.0
    encoding: Encoding | None = None
    versions: dict[str, str] = field(default_factory=dict)
    training: Training = field(default_factory=Training)
    test: Scores | None = None
    scale: HostArray | None = None

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(np.shape(self.coef)[-1])

    @property
    def norm(self) -> float:
        """‖coef‖ in the norm of the constraint, of scaled columns where they were; the largest over the labels."""
        coefs = np.atleast_2d(self.coef) * (1.0 if self.scale is None else self.scale)
        return max(CONSTRAINTS[self.constraint].norm(row) for row in coefs)

    def margins(self, rows: Rows) -> HostArray:
        """m(a) of each row of a CSR matrix or array; a column a label where there are more than two.

        Raises:
            ValueError: where the rows have another number of columns.
        """
        rows = rows if hasattr(rows, "shape") else np.asarray(rows)
        if rows.shape[1] != self.n_features:
            raise ValueError(f"rows must have {self.n_features:,} columns, got {rows.shape[1]:,}")
        if scipy.sparse.issparse(rows):
            check_indices(rows, "rows")
            rows = scipy.sparse.csr_array(rows)
        return np.asarray(rows @ np.asarray(self.coef).T, np.float64) + self.intercept

    def predict(self, rows: Rows) -> HostArray:
        """Labels for a classifier, exp(m) for counts, m for other numbers."""
        return self.predictions(self.margins(rows))

    def predict_proba(self, rows: Rows) -> HostArray:
        """The probability of each label, one column each, in the order of `labels`.

        Raises:
            ValueError: for a model of another loss than the logistic.
        """
        chances = self.probabilities(self.margins(rows))
        return np.column_stack([1.0 - chances, chances]) if chances.ndim == 1 else chances

    def predictions(self, margins: HostArray) -> HostArray:
        """What margins stand for."""
        if self.labels is not None:
            kind = object if isinstance(self.labels[0], str) else np.float64
            places = margins.argmax(axis=1) if margins.ndim == 2 else (margins > 0).astype(np.intp)
            return np.asarray(self.labels, kind)[places]
        with np.errstate(over="ignore"):  # a rate beyond 1e308 is infinite
            return np.exp(margins) if self.loss == "poisson" else margins

    def probabilities(self, margins: HostArray) -> HostArray:
        """1/(1 + exp(−m)), the probability of the second label; of more, each against the rest, scaled to add up to 1.

        Raises:
            ValueError: for a model of another loss than the logistic.
        """
        if self.loss != "logistic":
            raise ValueError(f"a model of the {self.loss} loss has no probabilities; train with loss='logistic'")
        chances = expit(margins)
        if margins.ndim == 1:
            return chances
        totals = chances.sum(axis=1, keepdims=True)
        return np.divide(chances, totals, out=np.full_like(chances, 1 / chances.shape[1]), where=totals > 0)

    def sheet(self) -> Sheet:
        """The table that is printed, and shown in a notebook."""
        return Sheet(self.title, ("", ""), self.rows(), words=2)

    @property
    def title(self) -> str:
        """What was learnt, in one line."""
        return f"{LOSSES[self.loss].title}, {self.constraint}, radius {self.radius:g}"

    def rows(self) -> list[tuple[str, str]]:
        """Names and figures, a line each."""
        record = self.training
        lines = [("rows", f"{record.rows:,}")]
        if record.skipped:
            lines.append(("  skipped", f"{record.skipped:,}"))
        if self.encoding is not None:
            lines += self.encoding.roles()
        lines.append(("passes", f"{record.passes}" + ("" if record.finished else ", then interrupted")))
        lines.append(("steps", f"{record.steps:,}"))
        if record.polished:
            lines.append(("polish", f"{record.polished} rounds"))
        if record.progressive_loss is not None:
            lines.append(("progressive loss", f"{record.progressive_loss:.6g}"))
        if record.scores is not None:
            lines += [(f"training {name}", text) for name, text in record.scores.lines() if name != "rows"]
        if record.gap is not None:
            flag = ", too large" if record.converged is False else ""
            lines.append(("training gap", f"{record.gap:.3g}{flag}"))
        if self.labels is not None and len(self.labels) > 2:
            names = ", ".join(show(label) for label in self.labels[:5]) + (", …" if len(self.labels) > 5 else "")
            lines.append(("labels", f"{len(self.labels)}: {names}"))
        if self.test is not None:
            lines += [(f"test {name}" if name in ("rows", "loss") else name, text) for name, text in self.test.lines()]
        lines.append(("nonzeros", f"{np.count_nonzero(self.coef):,} of {np.size(self.coef):,}"))
        scaled = "" if self.scale is None else ", of columns divided by their scales"
        lines.append(("norm", f"{self.norm:.6g} of {self.radius:g}{scaled}"))
        if np.any(self.intercept):
            values = np.atleast_1d(self.intercept)
            lines.append(("intercept", ", ".join(f"{v:.6g}" for v in values[:5]) + (", …" if values.size > 5 else "")))
        lines.append(("seconds", f"{record.seconds:.2f}"))
        lines.append(("  compiling", f"{record.compile_seconds:.2f}"))
        return lines

    def draw(self, ax: Axes | None = None) -> Figure:
        """The largest coefficients as bars; with several labels, the largest of any label, a colour a label."""
        coefs = np.atleast_2d(self.coef)
        figure, axes = axes_of(ax, (6.4, 4.2))
        sizes = np.abs(coefs).max(axis=0)
        largest = [j for j in np.argsort(-sizes, kind="stable")[:BARS] if sizes[j] > 0][::-1]
        places = np.arange(len(largest))
        if len(coefs) == 1:
            axes.barh(places, coefs[0, largest], color=BLUE)
            axes.set_xlabel("coefficient")
        else:
            strongest = np.abs(coefs[:, largest]).argmax(axis=0)
            axes.barh(places, coefs[strongest, largest], color=[f"C{c % 10}" for c in strongest])
            axes.set_xlabel("largest coefficient over the labels; its label at the end of the bar")
            for place, j, c in zip(places, largest, strongest, strict=True):
                assert self.labels is not None
                side = "left" if coefs[c, j] > 0 else "right"
                axes.annotate(f" {show(self.labels[c])} ", (coefs[c, j], place), va="center", ha=side, fontsize=8)
            axes.margins(x=0.1)
        axes.set_yticks(places, [self.feature_name(j) for j in largest], fontsize=8)
        axes.set_ylabel("feature")
        axes.axvline(0.0, color="0.5", linewidth=0.8)
        axes.set_title(self.title)
        if not largest:
            axes.text(0.5, 0.5, "all coefficients are 0", transform=axes.transAxes, ha="center", color="0.4")
        return figure

    def feature_name(self, j: int) -> str:
        """What feature j is called: a column of a table, or its number as the file counts."""
        if self.encoding is None or not self.encoding.columns:
            first = 0 if self.encoding is None or self.encoding.zero_based or self.encoding.format != "libsvm" else 1
            return f"{j + first}"
        numbers = [column.name for column in self.encoding.columns if column.kind in NUMBERS]
        return numbers[j] if j < len(numbers) else f"feature {j}"

    def pack(self) -> tuple[dict[str, Json], Tensors]:
        """What the file holds; mostly-zero coefficients by their nonzeros."""
        coef = np.ascontiguousarray(self.coef, np.float64)
        nonzero = np.flatnonzero(coef)
        tensors: Tensors = {"intercept": np.atleast_1d(np.asarray(self.intercept, np.float64))}
        if 2 * len(nonzero) < coef.size:
            tensors |= {"indices": nonzero, "values": coef.ravel()[nonzero]}
        else:
            tensors["coef"] = coef
        if self.scale is not None:
            tensors["scale"] = np.ascontiguousarray(self.scale, np.float64)
        content = {
            "shape": list(coef.shape),
            "loss": self.loss,
            "constraint": self.constraint,
            "radius": float(self.radius),
            "labels": None if self.labels is None else list(self.labels),
            "delta": float(self.delta),
            "encoding": None if self.encoding is None else self.encoding.to_json(),
            "versions": self.versions,
            "training": asdict(self.training),
            "test": None if self.test is None else asdict(self.test),
        }
        return content, tensors

    @classmethod
    def unpack(cls, content: dict[str, Json], tensors: Tensors) -> Self:
        """The model that a file holds, whose fields must fit one another."""
        return cls(**decode(content, tensors))


def decode(content: dict[str, Json], tensors: Tensors) -> dict[str, Json]:
    """A model's fields from a file's content; they must fit one another."""
    shape = tuple(int(size) for size in content["shape"])
    if "coef" in tensors:
        coef = tensors["coef"]
    else:
        coef = np.zeros(shape)
        coef.reshape(-1)[tensors["indices"]] = tensors["values"]
    labels = None if content["labels"] is None else tuple(content["labels"])
    encoding = None if content["encoding"] is None else Encoding.from_json(content["encoding"])
    intercept, scale = tensors["intercept"], tensors.get("scale")
    if scale is not None and (scale.shape != shape[-1:] or not (np.isfinite(scale) & (scale > 0)).all()):
        raise ValueError("scales must be positive numbers, one a feature")
    models = 1 if labels is None or len(labels) == 2 else len(labels)
    radius, delta = float(content["radius"]), float(content["delta"])
    if not (0 < radius < np.inf and 0 < delta < np.inf):
        raise ValueError("radius and delta must be finite numbers above 0")
    if (
        not shape
        or coef.shape != shape
        or shape[:-1] != (() if models == 1 else (models,))
        or intercept.shape != (models,)
    ):
        raise ValueError("shapes do not fit")
    if coef.dtype != np.float64 or not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("coefficients must be finite numbers")
    if content["loss"] not in LOSSES or content["constraint"] not in CONSTRAINTS:
        raise ValueError("an unknown loss or constraint")
    if labels is not None and {type(label) for label in labels} not in ({str}, {float}, {int}, {int, float}):
        raise ValueError("labels are words, or they are numbers")
    if labels is not None and (len(labels) < 2 or not LOSSES[content["loss"]].classifies):
        raise ValueError("labels go with a loss that classifies")
    if encoding is not None and encoding.n_features != shape[-1]:
        raise ValueError("the encoding is of another size")
    record = Training(**content["training"])
    scores = content["training"].get("scores")
    return {
        "coef": coef,
        "intercept": float(intercept[0]) if models == 1 else intercept,
        "loss": content["loss"],
        "constraint": content["constraint"],
        "radius": radius,
        "labels": labels,
        "delta": delta,
        "encoding": encoding,
        "versions": dict(content["versions"]),
        "training": replace(
            record,
            pass_seconds=tuple(record.pass_seconds),
            scores=None if scores is None else Scores.from_json(scores),
        ),
        "test": None if content["test"] is None else Scores.from_json(content["test"]),
        "scale": scale,
    }


def package_versions() -> dict[str, str]:
    """The versions that a model keeps for the record."""
    from importlib.metadata import version

    return {name: version(name) for name in ("onesfw", "numba", "numpy", "scikit-learn")}
