"""Linear models on disk: coefficients with everything that is needed to predict from a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onesfw.data.encoding import Encoding
from onesfw.data.labels import Label
from onesfw.files import read_tensors, write_tensors

FORMAT, VERSION = "onesfw.linear.model", 1


@dataclass(frozen=True)
class LinearModel:
    """m(a) = ⟨a, coef⟩ + intercept, learnt with `loss` over {x : ‖x‖ ≤ radius} of the named constraint.

    Args:
        coef: one number a feature.
        intercept: added to every margin.
        loss: "logistic", "squared_hinge", "squared", "huber" or "poisson".
        constraint: "l1", "l2", "linf", "simplex" or "nonnegative_l1".
        radius: r.
        labels: for a classifier, the two labels; the second one is where the margin is positive.
        encoding: how a file becomes rows.
        versions: of the packages that wrote it.
        training: figures of the run, for the record.
    """

    coef: np.ndarray
    intercept: float
    loss: str
    constraint: str
    radius: float
    labels: tuple[Label, Label] | None = None
    encoding: Encoding | None = None
    versions: dict[str, str] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """The number of coefficients."""
        return len(self.coef)

    def margins(self, rows: Any) -> np.ndarray:
        """m(a) of each row of a CSR matrix or array."""
        if rows.shape[1] != self.n_features:
            raise ValueError(f"rows must have {self.n_features:,} columns, got {rows.shape[1]:,}")
        return np.asarray(rows @ self.coef, np.float64) + self.intercept

    def predict(self, rows: Any) -> np.ndarray:
        """Labels for a classifier, exp(m) for counts, m for other numbers."""
        return self.predictions(self.margins(rows))

    def predictions(self, margins: np.ndarray) -> np.ndarray:
        """What margins stand for."""
        if self.labels is not None:
            kind = object if isinstance(self.labels[0], str) else np.float64
            return np.asarray(self.labels, kind)[(margins > 0).astype(np.intp)]
        with np.errstate(over="ignore"):  # a rate beyond 1e308 is infinite
            return np.exp(margins) if self.loss == "poisson" else margins

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """The probability of the second label, 1/(1 + exp(−m)); only the logistic loss has one."""
        if self.loss != "logistic":
            raise ValueError(f"a model of the {self.loss} loss has no probabilities; train with loss='logistic'")
        positive = margins >= 0
        small = np.exp(np.where(positive, -margins, margins))  # at most 1: no overflow
        return np.where(positive, 1.0, small) / (1.0 + small)

    def save(self, path: str | Path) -> None:
        """Write the model whole or not at all; mostly-zero coefficients are stored by their nonzeros."""
        coef = np.ascontiguousarray(self.coef, np.float64)
        nonzero = np.flatnonzero(coef)
        sparse = 2 * len(nonzero) < len(coef)
        tensors = {"indices": nonzero, "values": coef[nonzero]} if sparse else {"coef": coef}
        content = {
            "n_features": self.n_features,
            "intercept": float(self.intercept),
            "loss": self.loss,
            "constraint": self.constraint,
            "radius": float(self.radius),
            "labels": None if self.labels is None else list(self.labels),
            "encoding": None if self.encoding is None else self.encoding.to_json(),
            "versions": self.versions,
            "training": self.training,
        }
        write_tensors(path, FORMAT, VERSION, content, tensors)

    @classmethod
    def load(cls, path: str | Path) -> LinearModel:
        """Read what `save` wrote.

        A missing path raises FileNotFoundError, a folder IsADirectoryError, and a damaged or foreign file ValueError.
        """
        content, tensors = read_tensors(path, FORMAT, VERSION, "model")
        try:
            return decode(content, tensors)
        except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{path} is not a model of this version of onesfw: its fields do not fit") from error


def decode(content: dict[str, Any], tensors: dict[str, np.ndarray]) -> LinearModel:
    """A model from a file's content, whose fields must fit one another."""
    size = content["n_features"]
    if "coef" in tensors:
        coef = tensors["coef"]
    else:
        coef = np.zeros(size)
        coef[tensors["indices"]] = tensors["values"]
    labels = content["labels"]
    encoding = None if content["encoding"] is None else Encoding.from_json(content["encoding"])
    if coef.shape != (size,) or coef.dtype != np.float64 or (labels is not None and len(labels) != 2):
        raise ValueError("shapes do not fit")
    if encoding is not None and encoding.n_features != size:
        raise ValueError("the encoding is of another size")
    return LinearModel(
        coef,
        float(content["intercept"]),
        content["loss"],
        content["constraint"],
        float(content["radius"]),
        None if labels is None else (labels[0], labels[1]),
        encoding,
        dict(content["versions"]),
        dict(content["training"]),
    )


def package_versions() -> dict[str, str]:
    """The versions that a model keeps for the record."""
    from importlib.metadata import version

    return {name: version(name) for name in ("onesfw", "numba", "numpy", "scikit-learn")}
