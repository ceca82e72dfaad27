"""Linear models of dense rows by one-sample steps: all radii on all choices of rows are one `fw.sweep`.

It is the way for an accelerator, where thousands of runs go together. What comes out is near the optimum, not at it:
averages of vertices, whose entries are small rather than 0. Several classes take a sweep each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from onesfw import sets
from onesfw.arguments import choose, named, whole_number
from onesfw.engine.sweeps import sweep
from onesfw.linear.constraints import CLASSES
from onesfw.linear.convergence import LARGE_SHARE
from onesfw.linear.defaults import largest_margins
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Evaluation, Settings, evaluate
from onesfw.linear.profile import Profile
from onesfw.linear.radii import solve_radii
from onesfw.objectives import FiniteSum
from onesfw.results.status import Status
from onesfw.results.sweep import STATUSES
from onesfw.sets import ConvexSet
from onesfw.trees import Array, HostArray, Tree

ENGINES = ("linear", "sweep")
LEAST_FILLED = 0.1  # of the entries: rows with fewer are sparse ones
SEEN = 0.01  # of the radius: a smaller coefficient counts as none

FORMULAS: dict[str, Callable[[Array, Array, float], Array]] = {
    "logistic": lambda m, y, delta: jnp.logaddexp(0.0, -y * m),
    "squared_hinge": lambda m, y, delta: jnp.maximum(1.0 - y * m, 0.0) ** 2,
    "squared": lambda m, y, delta: (m - y) ** 2 / 2,
    "huber": lambda m, y, delta: jnp.minimum(abs(m - y), delta) * (abs(m - y) - jnp.minimum(abs(m - y), delta) / 2),
    "poisson": lambda m, y, delta: jnp.exp(m) - y * m,
}
"""The losses of `LOSSES` as JAX differentiates them."""


@dataclass(frozen=True)
class Engine:
    """How the models of radii and choices of rows are found.

    Args:
        name: "linear": each radius from the solution of the one before, to a gap of `tol`. "sweep": each radius and
            choice of rows a run of its own.
        tol: the gap of each model, over the loss of the best constant.
        steps: of each run of a sweep.

    Raises:
        ValueError, TypeError: for an unknown name or a wrong number.
    """

    name: str
    tol: float
    steps: int

    def __post_init__(self) -> None:
        choose(self.name, ENGINES, "engine")
        whole_number(self.steps, "steps", 1)

    @classmethod
    def of(cls, name: str, tol: float, steps: int | None, default: int) -> Engine:
        """An engine from a user's words; raises where steps were given to one that takes none."""
        if name == "linear" and steps is not None:
            raise ValueError(
                f"{named('steps')} are those of {named('engine')}='sweep', and 'linear' takes as many as tol asks "
                "for; leave them out"
            )
        return cls(name, tol, default if steps is None else steps)

    @property
    def allowed(self) -> float:
        """The gap over the loss of the best constant beyond which a model counts as not solved."""
        return self.tol if self.name == "linear" else max(self.tol, LARGE_SHARE)

    @property
    def least(self) -> float:
        """The share of the radius that a coefficient exceeds to count as one."""
        return 0.0 if self.name == "linear" else SEEN

    @property
    def remedy(self) -> str | None:
        """What helps where models are not solved; None for what always does."""
        return None if self.name == "linear" else f"raise {named('steps')}, or leave {named('engine')} at 'linear'"

    def paths(
        self,
        settings: Settings,
        data: Examples,
        choices: Sequence[HostArray],
        radii: Sequence[float],
        key: int,
        progress: bool = False,
    ) -> Sequence[HostArray | None]:
        """For each choice of rows the coefficients at all radii where they come from one sweep; None where not."""
        if self.name == "linear":
            return [None] * len(choices)
        return list(swept(settings, data, choices, radii, steps=self.steps, key=key, progress=progress))


def models_of(
    settings: Settings,
    data: Examples,
    radii: Sequence[float],
    limits: HostArray,
    path: HostArray | None,
    stop: Callable[[], bool],
) -> Iterator[tuple[HostArray, Evaluation]]:
    """The models of each radius in turn: those of a path that is there, with their gaps; else each from the one before.

    Raises:
        FloatingPointError: where a margin or a coefficient left the range of numbers.
    """
    if path is None:
        yield from solve_radii(settings, data, radii, limits, stop=stop)
        return
    for radius, coefs in zip(radii, path, strict=True):
        found = evaluate(replace(settings, radius=float(radius)), data, coefs)
        if not np.isfinite([*found.value, *found.gap]).all():
            raise FloatingPointError(
                f"at radius {radius:.3g} the steps left the range of numbers: scale rows and targets, or lower radii"
            )
        yield coefs, found


def swept(
    settings: Settings,
    data: Examples,
    choices: Sequence[HostArray],
    radii: Sequence[float],
    *,
    steps: int,
    key: int = 0,
    progress: bool = False,
) -> HostArray:
    """The coefficients of all models: choices of rows × radii × models × features.

    Args:
        settings: what is learnt; its radius does not count.
        data: the rows, dense ones.
        choices: for each the numbers of the rows to learn from.
        radii: rising.
        steps: of each run.
        key: the seed.
        progress: show a bar.

    Raises:
        ValueError: where the rows are sparse.
        KeyboardInterrupt: after a Ctrl-C.
    """
    filled = len(data.values) / max(1, data.size * data.n_features)
    if filled < LEAST_FILLED:
        raise ValueError(
            f"{named('engine')}='sweep' is for dense rows, and of these {filled:.1%} of the entries are not 0; leave "
            f"{named('engine')} at 'linear'"
        )
    found = np.empty((len(choices), len(radii), settings.models, settings.n_features))
    for model in range(settings.models):
        problem = dense_problem(settings, data, model, radii)
        runs = sweep(
            problem.objective, problem.sets, steps=steps, rows=choices, validation=False, evaluate=False,
            key=jax.random.fold_in(jax.random.key(key), model), progress=progress,
        )  # fmt: skip
        if (runs.status == STATUSES.index(Status.INTERRUPTED)).any():
            raise KeyboardInterrupt("interrupted while models were swept")
        coefs = runs.x if settings.intervals is None else runs.x["coefs"]
        broken = (runs.status == STATUSES.index(Status.NOT_FINITE))[..., None]
        found[:, :, model] = np.where(broken, np.nan, coefs * problem.unit)[:, :, 0].swapaxes(0, 1)
    return found


class Dense(NamedTuple):
    """The problem of one model, in units in which rows and targets are about 1."""

    objective: FiniteSum
    sets: list[ConvexSet]
    unit: float
    """of the coefficients"""


@dataclass(frozen=True)
class RowLoss:
    """w ℓ(⟨a, x⟩ + b, y) for a row (a, y, w): the same for all rows, so that one program serves every call.

    Args:
        name: of `FORMULAS`.
        delta: where the Huber loss turns linear.
        intercept: whether x is {"coefs": x, "intercept": b}.
    """

    name: str
    delta: float
    intercept: bool

    def __call__(self, x: Tree, row: tuple[Array, Array, Array]) -> Array:
        a, y, w = row
        margin = a @ x["coefs"] + x["intercept"] if self.intercept else a @ x
        return w * FORMULAS[self.name](margin, y, self.delta)


def dense_problem(settings: Settings, data: Examples, model: int, radii: Sequence[float]) -> Dense:
    """One model's objective over all rows, and its set for each radius.

    Where the intercept is free, columns are centred, which changes nothing else, and the intercept keeps to what
    margins of such a size can ask of it; that of the models is found exactly afterwards.
    """
    rows, targets = data.matrix.toarray().astype(np.float64), settings.targets_of(data.targets, model)
    weights = data.weights / max(float(data.weights.mean()), np.finfo(float).tiny)
    intervals = settings.intervals
    if intervals is not None and np.isinf(intervals[model]).all():
        rows = rows - np.average(rows, axis=0, weights=weights)
    unit = float(largest_margins(data, settings.set).mean()) or 1.0
    scale = 1.0 if settings.loss in ("poisson", "logistic", "squared_hinge") else float(targets.std()) or 1.0
    rows, targets = rows / unit, targets / scale
    reach = -settings.set.least(-np.sqrt(np.mean(rows**2, axis=0)))  # of a typical margin, at radius 1
    kind = getattr(sets, next(name for name, word in CLASSES.items() if word == settings.constraint))
    constraints: list[ConvexSet] = [kind(r * unit / scale, shape=settings.n_features) for r in radii]
    if intervals is not None:
        low, high = (bound / scale for bound in intervals[model])
        middle = Profile(settings, data, model).expand(np.zeros(data.size)).intercept / scale
        for place, radius in enumerate(radii):
            width = reach * radius * unit / scale * max(1.0, abs(middle))
            box = sets.Box(max(low, middle - width), min(high, middle + width), shape=())
            constraints[place] = sets.Product({"coefs": constraints[place], "intercept": box})
    loss = RowLoss(settings.loss, settings.delta / scale, intervals is not None)
    numbers = tuple(np.asarray(part, np.float32) for part in (rows, targets, weights))
    return Dense(FiniteSum(loss, numbers), constraints, scale / unit)
