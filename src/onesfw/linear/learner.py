"""The streaming learner: one Frank-Wolfe step a row, at the cost of the row's nonzeros."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from onesfw.arguments import choose, number, real, whole_number
from onesfw.linear import one_hot
from onesfw.linear.constraints import CONSTRAINTS, DENSE_KERNELS, Constraint
from onesfw.linear.examples import Examples, examples
from onesfw.linear.gradient import SCALARS
from onesfw.linear.largest import bounds_for
from onesfw.linear.losses import LOSSES, Loss
from onesfw.linear.presets import DEFAULT_SCHEDULE, SCHEDULES, Schedule

CHUNK = 1 << 16  # steps whose η and ρ are computed at once


@dataclass(frozen=True)
class Settings:
    """min over ‖x‖ ≤ radius of the mean of ℓ(⟨a, x⟩ + intercept, y).

    Args:
        n_features: the number of columns.
        loss: "logistic", "squared_hinge" (targets −1 and +1), "squared", "huber", "poisson".
        constraint: "l1", "l2", "linf", "simplex" or "nonnegative_l1".
        radius: r.
        schedule: "paper" (η = 1/t, ρ = 1/(t−1)), "c2" or "c4" (η = 2/(t+1), ρ = c/(t−1)), or "adaptive".
        intercept: an interval (low, high) in which the intercept moves as part of a product set; None for none.
        huber: where the Huber loss turns linear.
    """

    n_features: int
    loss: str = "logistic"
    constraint: str = "l1"
    radius: float = 1.0
    schedule: str | None = None
    intercept: tuple[float, float] | None = None
    huber: float = 1.0

    def __post_init__(self) -> None:
        whole_number(self.n_features, "n_features", 1)
        choose(self.loss, LOSSES, "loss")
        choose(self.constraint, CONSTRAINTS, "constraint")
        number(self.radius, "radius", 0.0, strict=True)
        number(self.huber, "huber", 0.0, strict=True)
        if self.schedule is None:
            object.__setattr__(self, "schedule", DEFAULT_SCHEDULE)
        choose(self.schedule, SCHEDULES, "schedule")
        if self.intercept is not None:
            pair = (
                self.intercept
                if isinstance(self.intercept, tuple | list) and len(self.intercept) == 2
                else (None, None)
            )
            low, high = map(real, pair)
            if low is None or high is None or not -np.inf < low <= high < np.inf:
                raise ValueError(f"intercept must be an interval (low, high) of finite numbers, got {self.intercept!r}")

    @property
    def loss_function(self) -> Loss:
        """The loss."""
        return LOSSES[self.loss]

    @property
    def set(self) -> Constraint:
        """The constraint set."""
        return CONSTRAINTS[self.constraint]


class Learner:
    """One-sample stochastic Frank-Wolfe (Algorithm 2 of Zhang et al. 2020) over a stream of sparse rows.

    `learn` may be called with any number of rows at a time: the model depends on the stream, not on how it was cut.

    Args:
        settings: what is learnt.
        rows: None for the one-sample gradient, which remembers no row; the number of rows of the data for SAG (Négiar
            et al. 2020), which keeps one number for each.
        start: (x_1, intercept) instead of the origin (on the simplex: the first vertex); must lie in the set.
        t0: η is read at t + t0, so that a start is not thrown away by η_1 = 1.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        rows: int | None = None,
        start: tuple[np.ndarray, float] | None = None,
        t0: int = 0,
    ) -> None:
        self.settings = settings
        self.schedule: Schedule = SCHEDULES[settings.schedule or DEFAULT_SCHEDULE]
        self.t0 = whole_number(t0, "t0", 0)
        size = settings.n_features
        self.table = np.zeros(0 if rows is None else whole_number(rows, "rows", 1))
        self.pairs = np.zeros((size, 2))
        self.blocks, self.groups = bounds_for(size)
        self.scalars = np.zeros(1, SCALARS)
        self.scalars["scale"] = self.scalars["sigma"] = 1.0
        low, high = settings.intercept or (0.0, 0.0)
        self.scalars["intercept"] = min(max(0.0, low), high)
        if settings.constraint == "simplex":
            self.scalars["start"] = self.pairs[0, 0] = settings.radius
        if start is not None:
            self.pairs[:, 0], self.scalars["intercept"] = start
        self.scalars["intercept_before"] = self.scalars["intercept"]

    def learn(self, rows: Any, targets: Any, weights: Any = None, order: Any = None) -> float:
        """A step for each row, in the given order; the sum of the losses they had before they were learnt."""
        checked = examples(rows, targets, weights, self.settings.n_features, self.settings.loss_function)
        return self.learn_examples(checked, np.arange(checked.size) if order is None else order)

    def learn_examples(self, data: Examples, order: np.ndarray) -> float:
        """`learn` for rows that were checked before."""
        if self.table.size not in (0, data.size):
            raise ValueError(f"rows must be the {self.table.size:,} rows that SAG was told of, got {data.size:,}")
        order = np.ascontiguousarray(order, np.int64)
        total = 0.0
        for begin in range(0, len(order), CHUNK):
            chunk = order[begin : begin + CHUNK]
            first = self.steps + 1
            etas = self.schedule.etas(first + self.t0, len(chunk))
            total += self.run_kernel(data, chunk, etas, self.schedule.rhos(first, len(chunk)))
            if not (np.isfinite(total) and np.isfinite(self.scalars["norm2"][0])):
                raise FloatingPointError(
                    f"the loss is not finite after {self.steps:,} steps: scale rows and targets, or lower the radius"
                )
        return total

    def run_kernel(self, data: Examples, order: np.ndarray, etas: np.ndarray, rhos: np.ndarray) -> float:
        """The compiled loop of the set."""
        settings, loss = self.settings, self.settings.loss_function
        low, high = settings.intercept or (0.0, 0.0)
        rows = (data.indptr, data.indices, data.values, data.targets, data.weights, order, etas, rhos)
        gradient = (self.schedule.adaptive and self.table.size == 0, self.table, loss.code, float(settings.huber))
        interval = (float(settings.radius), settings.intercept is not None, float(low), float(high))
        if settings.set.one_hot:
            return one_hot.learn(
                *rows, *gradient, settings.set.shape, *interval, self.scalars, self.pairs, self.blocks, self.groups
            )
        return DENSE_KERNELS[settings.constraint](*rows, *gradient, *interval, self.scalars, self.pairs)

    def compile(self, value_type: Any = np.float64) -> float:
        """Compile the kernel, or load it from the cache, without a step; the seconds it took."""
        started = time.perf_counter()
        width = self.settings.n_features
        empty = scipy.sparse.csr_array((0, width), dtype=np.float32 if value_type == np.float32 else np.float64)
        data = examples(empty, np.zeros(0), None, width, self.settings.loss_function)
        self.run_kernel(data, np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        return time.perf_counter() - started

    @property
    def steps(self) -> int:
        """Rows learnt so far."""
        return int(self.scalars["step"][0])

    @property
    def coef(self) -> np.ndarray:
        """x, a copy."""
        scalars = self.scalars[0]
        x, g = self.pairs[:, 0], self.pairs[:, 1]
        if self.settings.constraint == "l2":
            return scalars["scale"] * (x + scalars["beta"] * g)
        if self.settings.constraint == "linf":
            return scalars["scale"] * x - self.settings.radius * np.sign(g)
        return scalars["scale"] * x

    @property
    def intercept(self) -> float:
        """The intercept, 0 where there is none."""
        return float(self.scalars["intercept"][0])

    @property
    def gradient(self) -> np.ndarray:
        """d_t, the estimate of the gradient at the last but one iterate, a copy."""
        return self.scalars["sigma"][0] * self.pairs[:, 1]

    def tensors(self) -> dict[str, np.ndarray]:
        """The whole state, exactly; `from_tensors` goes on from it bit for bit."""
        scalars = {f"scalar.{name}": self.scalars[name].copy() for name in SCALARS.names or ()}
        arrays = {"pairs": self.pairs, "blocks": self.blocks, "groups": self.groups, "table": self.table}
        return scalars | {name: array.copy() for name, array in arrays.items()} | {"t0": np.array([self.t0])}

    @classmethod
    def from_tensors(cls, settings: Settings, tensors: dict[str, np.ndarray]) -> Learner:
        """The learner whose `tensors` these are."""
        try:
            learner = cls(settings, rows=tensors["table"].size or None, t0=int(tensors["t0"].item()))
            mine = learner.tensors()
            for name, array in mine.items():
                if (array.shape, array.dtype) != (tensors[name].shape, tensors[name].dtype):
                    raise ValueError(f"{name} has shape {tensors[name].shape}, not {array.shape}")
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"tensors must be those of a Learner with the same settings: {error}") from error
        for name in SCALARS.names or ():
            learner.scalars[name] = tensors[f"scalar.{name}"]
        for name in ("pairs", "blocks", "groups", "table"):
            getattr(learner, name)[...] = tensors[name]
        return learner
