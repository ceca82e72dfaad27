"""The streaming learner: one Frank-Wolfe step a row for one or several models, at the cost of the row's nonzeros."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse

from onesfw.arguments import choose, named, number, real, whole_number
from onesfw.linear.constraints import CONSTRAINTS, Constraint, constraint_name
from onesfw.linear.examples import Examples, examples, read_only
from onesfw.linear.gradient import SCALARS
from onesfw.linear.losses import LOSSES, Loss, all_derivatives, all_values, best_shift
from onesfw.linear.one_hot import bounds_for
from onesfw.schedules import PRESETS, Preset
from onesfw.trees import HostArray, Rows

CHUNK = 1 << 16  # steps whose η and ρ are computed at once
MOST_RADIUS = 1e100  # squares of larger numbers, summed, may be infinite
MOST_BYTES = 64 << 30  # of x and d for all models
DEFAULT_SCHEDULE = "auto"
SCHEDULES: dict[str, Preset] = PRESETS
"""η_t and ρ_t by name, the same formulas as in `one_sfw` with the output x_{T+1}."""
SLICE_ENTRIES = 1 << 24  # margins that are computed at once

Interval = tuple[float, float]


@dataclass(frozen=True)
class Settings:
    """min over ‖x‖ ≤ radius of the mean of ℓ(⟨a, x⟩ + intercept, y), for one model or for several on the same rows.

    Args:
        n_features: the number of columns.
        loss: "logistic", "squared_hinge" (targets −1 and +1), "squared", "huber", "poisson".
        constraint: "l1", "l2", "linf", "simplex" or "nonnegative_l1", or the set's class: "L1Ball", "SubSimplex", ….
        radius: r; a tuple gives each model its own.
        schedule: a name of `SCHEDULES`; None for "auto".
        intercept: an interval (low, high) in which the intercept moves, (−inf, inf) for anywhere, or a tuple of them,
            one a model; None for none. It is not part of the norm.
        delta: where the Huber loss turns linear.
        labels: one against the rest: targets are class numbers, and model i takes y = +1 for class labels[i], −1 else.

    Raises:
        ValueError, TypeError: for an unknown name, or a number out of its range.

    Example:
        >>> from onesfw.linear import Settings
        >>> Settings(20, "squared", radius=3.0).models
        1
        >>> Settings(20, radius=(1.0, 2.0, 4.0)).models
        3
    """

    n_features: int
    loss: str = "logistic"
    constraint: str = "l1"
    radius: float | tuple[float, ...] = 1.0
    schedule: str | None = None
    intercept: Interval | tuple[Interval, ...] | None = None
    delta: float = 1.0
    labels: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        whole_number(self.n_features, "n_features", 1)
        choose(self.loss, LOSSES, "loss")
        object.__setattr__(self, "constraint", constraint_name(self.constraint))
        for radius in self.radius if isinstance(self.radius, tuple) else (self.radius,):
            if number(radius, "radius", 0.0, strict=True) > MOST_RADIUS:
                raise ValueError(f"{named('radius')} must be at most {MOST_RADIUS:g}, got {radius:g}; scale the rows")
        number(self.delta, "delta", 0.0, strict=True)
        if self.schedule is None:
            object.__setattr__(self, "schedule", DEFAULT_SCHEDULE)
        choose(self.schedule, SCHEDULES, "schedule")
        if self.labels is not None and not self.loss_function.classifies:
            raise ValueError(f"labels go with a loss that classifies, not with loss={self.loss!r}")
        sizes = {len(v) for v in (self.radius, self.labels) if isinstance(v, tuple)}
        if len(sizes) > 1 or 0 in sizes:
            raise ValueError("radius and labels must have one entry a model, the same number of both")
        for interval in self.intervals or ():
            low, high = map(real, interval) if len(interval) == 2 else (None, None)
            if low is None or high is None or not low <= high:
                raise ValueError(f"intercept must be an interval (low, high), got {self.intercept!r}")
        if self.models * self.n_features * 16 > MOST_BYTES:
            raise ValueError(
                f"n_features: {self.n_features:,} features for {self.models:,} models take more than "
                f"{MOST_BYTES >> 30} GB; hash the features to fewer, or train fewer models together"
            )

    @property
    def models(self) -> int:
        """How many models learn side by side."""
        return next((len(v) for v in (self.radius, self.labels) if isinstance(v, tuple)), 1)

    @property
    def radii(self) -> HostArray:
        """r of each model."""
        return np.broadcast_to(np.asarray(self.radius, np.float64), (self.models,)).copy()

    @property
    def intervals(self) -> tuple[Interval, ...] | None:
        """The interval of each model's intercept."""
        if self.intercept is None:
            return None
        several = isinstance(self.intercept, tuple | list) and any(np.ndim(entry) for entry in self.intercept)
        found: Rows = tuple(self.intercept) if several else (self.intercept,) * self.models
        if not all(isinstance(entry, tuple | list) for entry in found) or len(found) != self.models:
            raise ValueError(f"intercept must be an interval (low, high), got {self.intercept!r}")
        return found

    @property
    def loss_function(self) -> Loss:
        """The loss."""
        return LOSSES[self.loss]

    @property
    def set(self) -> Constraint:
        """The constraint set."""
        return CONSTRAINTS[self.constraint]

    def targets_of(self, targets: HostArray, model: int) -> HostArray:
        """y as model number `model` sees it."""
        return targets if self.labels is None else np.where(targets == self.labels[model], 1.0, -1.0)


class Start(NamedTuple):
    """Where models start instead of the origin: they must lie in their sets.

    Args:
        coefs: models × features.
        intercepts: one a model.
        t0: η is read at t + t0, so that a start is not thrown away by η_1 = 1.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import Learner, Settings, Start
        >>> start = Start(np.array([[1.0, -2.0]]), np.zeros(1), t0=100)
        >>> Learner(Settings(2, "squared", radius=3.0), start=start).coef
        array([ 1., -2.])
    """

    coefs: HostArray
    intercepts: HostArray
    t0: int = 0


class Learner:
    """One-sample stochastic Frank-Wolfe (Algorithm 2 of Zhang et al. 2020) over a stream of sparse rows.

    `learn` may be called with any number of rows at a time: the model depends on the stream, not on how it was cut.
    Several models (`Settings.labels`, or a tuple of radii) learn each row together; each comes out bit for bit as it
    would alone.

    Args:
        settings: what is learnt.
        rows: None for the one-sample gradient, which remembers no row; the number of rows of the data for SAG (Négiar
            et al. 2020), which keeps one number for each row and model.
        start: where the models start; None for the origin (on the simplex: the first vertex).

    Raises:
        ValueError, TypeError: for rows below 1 or a start of other shapes.

    Example:
        >>> from onesfw.linear import Learner, Settings
        >>> learner = Learner(Settings(2, "squared", radius=3.0))
        >>> for _ in range(2_000):
        ...     total = learner.learn([[1.0, 0.0], [0.0, 1.0]], [1.0, -2.0])
        >>> learner.coef.round(1)
        array([ 1., -2.])
    """

    def __init__(self, settings: Settings, *, rows: int | None = None, start: Start | None = None) -> None:
        self.settings = settings
        self.own_schedule: Preset | None = None
        size, models = settings.n_features, settings.models
        self.table = np.zeros((0 if rows is None else whole_number(rows, "rows", 1), models))
        self.pairs = np.zeros((size, 2, models))
        self.blocks, self.groups = bounds_for(size, models)
        self.scalars = np.zeros(models, SCALARS)
        self.scalars["scale"] = self.scalars["sigma"] = 1.0
        self.radii = settings.radii
        self.labels = np.asarray(settings.labels if settings.labels is not None else [-1] * models, np.int64)
        self.intervals = np.asarray(settings.intervals or [(0.0, 0.0)] * models, np.float64)
        self.scalars["intercept"] = np.clip(0.0, self.intervals[:, 0], self.intervals[:, 1])
        if settings.constraint == "simplex":
            self.scalars["start"] = self.pairs[0, 0] = self.radii
        self.t0 = 0
        if start is not None:
            if start.coefs.shape != (models, size):
                raise ValueError(f"start.coefs must have shape {(models, size)}, got {start.coefs.shape}")
            self.pairs[:, 0], self.scalars["intercept"] = start.coefs.T, start.intercepts
            self.t0 = whole_number(start.t0, "t0", 0)
        self.scalars["intercept_before"] = self.scalars["intercept"]
        self.used = (self.pairs[:, 0] != 0).any(axis=1)  # where a vertex of one of several models has been

    @property
    def schedule(self) -> Preset:
        """η and ρ: the settings' by name, unless another preset is put in its place."""
        return self.own_schedule or SCHEDULES[self.settings.schedule or DEFAULT_SCHEDULE]

    @schedule.setter
    def schedule(self, preset: Preset) -> None:
        self.own_schedule = preset

    def learn(self, rows: Rows, targets: Rows, weights: Rows = None, order: Rows = None) -> float:
        """A step for each row, in the given order; the sum of the losses they had before they were learnt.

        Several models' losses are averaged; `learn_examples` tells them apart.
        """
        settings = self.settings
        checked = examples(rows, targets, weights, settings.n_features, settings.loss_function, settings.labels)
        return float(self.learn_examples(checked, np.arange(checked.size) if order is None else order).mean())

    def learn_examples(self, data: Examples, order: HostArray) -> HostArray:
        """A step for each row of the order; the sums of the losses before, one a model.

        Raises:
            FloatingPointError: where a loss or a gradient left the range of numbers.
        """
        total = self.learn_unchecked(data, order)
        if not self.finite(total).all():
            raise FloatingPointError(
                f"the loss is not finite after {self.steps:,} steps: scale rows and targets, or lower the radius"
            )
        return total

    def finite(self, total: HostArray) -> HostArray:
        """Which models are still within the range of numbers."""
        found: HostArray = np.isfinite(total) & np.isfinite(self.scalars["norm2"])
        return found

    def learn_unchecked(self, data: Examples, order: HostArray) -> HostArray:
        """The same, whatever becomes of a model; each of several is on its own."""
        if len(self.table) not in (0, data.size):
            raise ValueError(f"rows must be the {len(self.table):,} rows that SAG was told of, got {data.size:,}")
        order = np.ascontiguousarray(order, np.int64)
        total = np.zeros(self.settings.models)
        for begin in range(0, len(order), CHUNK):
            chunk = order[begin : begin + CHUNK]
            t = np.arange(self.steps + 1, self.steps + 1 + len(chunk))
            total += self.run_kernel(data, chunk, self.schedule.eta(t + self.t0, 0), self.schedule.rho(t, 0))
        return total

    def forget(self, models: HostArray) -> None:
        """Put some models back to the origin; the others do not notice."""
        steps = self.steps
        for state in (self.pairs, self.blocks, self.groups):
            state[..., models] = 0.0
        self.scalars[models] = np.zeros((), SCALARS)
        self.scalars["scale"][models] = self.scalars["sigma"][models] = 1.0
        self.scalars["step"] = steps

    def run_kernel(self, data: Examples, order: HostArray, etas: HostArray, rhos: HostArray) -> HostArray:
        """The compiled loop of the set."""
        settings, loss = self.settings, self.settings.loss_function
        alone = settings.models == 1
        arguments = (
            data.indptr, data.indices, data.values, data.targets, data.weights, order, read_only(etas), read_only(rhos),
            self.schedule.adaptive and not len(self.table), self.schedule.pace, self.table, loss.code,
            float(settings.delta), self.labels, self.radii, settings.intercept is not None, self.intervals,
            self.scalars, self.pairs, None if alone else True,
        )  # fmt: skip
        bounds = (settings.set.shape, self.blocks, self.groups, self.used) if settings.set.one_hot else ()
        return settings.set.kernel(*arguments, *bounds)

    def compile(self, value_type: object = np.float64) -> float:
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
    def coefs(self) -> HostArray:
        """x of each model, models × features, a copy."""
        scale, x, g = self.scalars["scale"], self.pairs[:, 0], self.pairs[:, 1]
        if self.settings.constraint == "l2":
            return np.ascontiguousarray((scale * (x + self.scalars["beta"] * g)).T)
        if self.settings.constraint == "linf":
            return np.ascontiguousarray((scale * x - self.radii * np.sign(g)).T)
        return np.ascontiguousarray((scale * x).T)

    @property
    def coef(self) -> HostArray:
        """x of the only model, a copy."""
        (coef,) = self.coefs
        return coef

    @property
    def intercepts(self) -> HostArray:
        """The intercepts, one a model; 0 where there is none."""
        return self.scalars["intercept"].copy()

    @property
    def intercept(self) -> float:
        """The intercept of the only model, 0 where there is none."""
        (intercept,) = self.intercepts
        return float(intercept)

    def set_intercepts(self, values: HostArray) -> None:
        """Put the intercepts elsewhere: the next step's correction of the gradient takes the move in."""
        self.scalars["intercept"] = values
        if not self.steps:
            self.scalars["intercept_before"] = values

    @property
    def gradient(self) -> HostArray:
        """d_t of the only model, the estimate of the gradient at the last but one iterate, a copy."""
        (gradient,) = (self.scalars["sigma"] * self.pairs[:, 1]).T
        return gradient

    def __setstate__(self, state: dict[str, object]) -> None:
        """Arrays of its own: joblib hands large ones to other processes as files that nobody may write to."""
        self.__dict__ = {name: np.array(a) if isinstance(a, np.ndarray) else a for name, a in state.items()}

    def tensors(self) -> dict[str, HostArray]:
        """The whole state, exactly; `from_tensors` goes on from it bit for bit."""
        scalars = {f"scalar.{name}": self.scalars[name].copy() for name in SCALARS.names or ()}
        arrays = {"pairs": self.pairs, "blocks": self.blocks, "groups": self.groups, "table": self.table}
        return scalars | {name: array.copy() for name, array in arrays.items()} | {"t0": np.array([self.t0])}

    @classmethod
    def from_tensors(cls, settings: Settings, tensors: dict[str, HostArray]) -> Learner:
        """The learner whose `tensors` these are."""
        try:
            learner = cls(settings, rows=len(tensors["table"]) or None)
            learner.t0 = whole_number(int(tensors["t0"].item()), "t0", 0)
            for name, array in learner.tensors().items():
                if (array.shape, array.dtype) != (tensors[name].shape, tensors[name].dtype):
                    raise ValueError(f"{name} has shape {tensors[name].shape}, not {array.shape}")
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"tensors must be those of a Learner with the same settings: {error}") from error
        for name in SCALARS.names or ():
            learner.scalars[name] = tensors[f"scalar.{name}"]
        for name in ("pairs", "blocks", "groups", "table"):
            getattr(learner, name)[...] = tensors[name]
        learner.used = (learner.pairs[:, 0] != 0).any(axis=1)
        if not learner.sound:
            raise ValueError("tensors are not those of a Learner: a number is out of its range")
        return learner

    @property
    def sound(self) -> bool:
        """Whether every number is in its range, as it need not be in a file: kernels do not look where they write."""
        s = self.scalars
        whole = (s["step"] >= 0) & (s["step"] == s["step"][0]) & (s["place"] >= 0)
        positive = (s["scale"] > 0) & (s["sigma"] > 0) & (s["eta"] >= 0) & (s["eta"] <= 1)
        finite = all(np.isfinite(a).all() for a in (*(s[name] for name in s.dtype.names or ()), self.pairs, self.table))
        bounds = not np.isnan(self.blocks).any() and not np.isnan(self.groups).any()
        return bool((whole & positive & (s["place"] < self.settings.n_features)).all() and finite and bounds)


class Evaluation(NamedTuple):
    """What a pass over the data says of the models, one number a model.

    Args:
        value: F(x), the weighted mean of the losses.
        gap: max over v of ⟨∇F(x), x − v⟩, at the best intercept: at least F(x) − F*.
        intercepts: the intercepts that value and gap are at.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import Evaluation
        >>> Evaluation(np.array([0.5]), np.array([0.01]), np.array([0.0])).gap
        array([0.01])
    """

    value: HostArray
    gap: HostArray
    intercepts: HostArray


def evaluate(settings: Settings, data: Examples, coefs: HostArray, intercepts: Rows = None) -> Evaluation:
    """F and its Frank-Wolfe gap for each model, from all rows, at the best intercept for its coefficients.

    F is convex in both, and its slope in the best intercept is 0 (or points out of the interval): the gap over x alone
    then bounds F(x) − F*, up to the 1e-13 by which the intercept is off.

    Args:
        settings: what the models learn.
        data: the rows.
        coefs: models × features, or one vector.
        intercepts: where the search for the best ones starts, one a model; None for 0.

    Returns:
        `Evaluation`, arrays of one number a model.

    Raises:
        ValueError: where `coefs` are not one row a model, or `intercepts` not one a model.

    Example:
        >>> import numpy as np
        >>> from onesfw.linear import Settings, evaluate, examples
        >>> settings = Settings(2, "squared", radius=3.0)
        >>> rows = examples([[1.0, 0.0], [0.0, 1.0]], [1.0, -2.0], None, 2, settings.loss_function)
        >>> evaluate(settings, rows, np.array([1.0, -2.0])).gap
        array([0.])
    """
    coefs = np.atleast_2d(coefs)
    models, intervals, radii = len(coefs), settings.intervals, settings.radii
    if coefs.shape != (settings.models, settings.n_features):
        raise ValueError(
            f"coefs must have a row for each of the {settings.models} models and {settings.n_features:,} columns, got "
            f"shape {coefs.shape}"
        )
    found = np.zeros(models) if intercepts is None else np.array(np.broadcast_to(intercepts, models), np.float64)
    loss, matrix = settings.loss_function, data.matrix
    weights = data.weights / max(data.weights.sum(), np.finfo(float).tiny)
    values, gaps = np.empty(models), np.empty(models)
    step = max(1, SLICE_ENTRIES // max(1, data.size))
    for first in range(0, models, step):
        some = range(first, min(first + step, models))
        margins = np.asarray(matrix @ coefs[some.start : some.stop].T)
        slopes = np.empty_like(margins)
        for place, model in enumerate(some):
            m, y = np.ascontiguousarray(margins[:, place]), settings.targets_of(data.targets, model)
            if intervals is not None:
                low, high = map(float, intervals[model])
                found[model] = best_shift(loss.code, settings.delta, m, y, weights, low, high, found[model])
                m = m + found[model]
            values[model] = weights @ all_values(loss.code, settings.delta, m, y)
            slopes[:, place] = weights * all_derivatives(loss.code, settings.delta, m, y)
        gradients = np.asarray(matrix.T @ slopes).T
        for gradient, model in zip(gradients, some, strict=True):
            gaps[model] = gradient @ coefs[model] - radii[model] * settings.set.least(gradient)
    return Evaluation(values, gaps, found)
