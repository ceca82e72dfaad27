"""One method on one subject, over seeds: its error against samples, gradients, oracle calls and seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from onesfw.algorithms import DR_SUBMODULAR, MAXIMISED, Algorithm
from onesfw.engine import solve
from onesfw.experiments import budgets
from onesfw.experiments.subject import Subject, flat
from onesfw.results.result import Result
from onesfw.results.status import Status
from onesfw.steps import ContinuousGreedyStep

COUNTS = ("samples", "gradients", "hvps", "lmo_calls")
NODES = (24, 12)  # iterates that a mean over all of them is taken from: on a log grid, and on a linear one
LABELS = {
    "suboptimality": "F(x) − F*",
    "gap": "Frank-Wolfe gap",
    "gradient_error": "‖d_T − ∇F(x_T)‖²",
    "regret": "oracle's regret",
    "value": "F(x)",
}
LOGARITHMIC = ("suboptimality", "gap", "gradient_error", "regret")


@dataclass(frozen=True)
class Curve:
    """What was measured of one method; the first of `measures` is the one that its theorem bounds."""

    name: str
    summary: str
    citation: str
    steps: np.ndarray
    counts: dict[str, np.ndarray]
    """Oracle calls at each point."""
    seconds: np.ndarray
    """seeds × points, compilation and evaluation left out."""
    measures: dict[str, np.ndarray]
    """seeds × points of each measure; NaN where a method has no such thing."""
    separate: bool = False
    """Whether each point is a run of its own, because a schedule depends on T."""

    @property
    def primary(self) -> str:
        """The name of the first measure."""
        return next(iter(self.measures))

    @property
    def final(self) -> np.ndarray:
        """The first measure at the last point, one for each seed."""
        return self.measures[self.primary][:, -1]


@dataclass
class Recorder:
    """Keeps x after the steps at which a run pauses: seeds × pauses × d."""

    steps: Sequence[int]
    seeds: int
    points: dict[int, np.ndarray] = field(default_factory=dict)

    def __call__(self, row: dict[str, Any], x: Any) -> None:
        """The callback; on an accelerator the replicates come together."""
        place = row["step"]
        if "replicate" in row:
            point = flat(x)
            store = self.points.setdefault(place, np.full((self.seeds, point.size), np.nan))
            store[row["replicate"]] = point
        else:
            leaves = [np.asarray(leaf).reshape(self.seeds, -1) for leaf in jax.tree.leaves(x)]
            self.points[place] = np.concatenate(leaves, 1)

    def array(self) -> np.ndarray:
        """The points in the order of the steps."""
        return np.stack([self.points[step] for step in self.steps], 1)


class NotFinite(ValueError):
    """A NaN or an infinity ended a run."""


def measure(subject: Subject, algorithm: Algorithm, budget: int, seeds: int, key: int = 0) -> Curve:
    """Run a method up to a budget and measure the error of its own output: x_{T+1}, or E over x_o."""
    if subject.setting == DR_SUBMODULAR and subject.exact:
        return over_ends(subject, algorithm, budget, seeds, key, submodular_end)
    if budgets.anytime(algorithm, subject.objective):
        return along(subject, algorithm, budget, seeds, key)
    return over_ends(subject, algorithm, budget, seeds, key, end)


def run(
    subject: Subject, algorithm: Algorithm, steps: int, seeds: int, key: int, pauses: Sequence[int]
) -> tuple[Result, np.ndarray | None]:
    """The run, and where it passed through (None where the subject's F is not known exactly)."""
    recorder = Recorder(pauses, seeds)
    call = solve.maximize if subject.sense == "maximize" else solve.minimize
    result = call(
        subject.objective,
        subject.constraint,
        subject.start(),
        steps=steps,
        algorithm=algorithm,
        key=key,
        replicates=seeds,
        evaluate=False if subject.exact else None,
        every=list(pauses),
        callbacks=[recorder] if subject.exact else (),
    )
    statuses = set(result.status)
    if Status.INTERRUPTED in statuses:
        raise KeyboardInterrupt
    if Status.NOT_FINITE in statuses:
        raise NotFinite(f"{algorithm.name} ended with a NaN or an infinity on {subject.name}")
    return result, recorder.array() if subject.exact else None


def along(subject: Subject, algorithm: Algorithm, budget: int, seeds: int, key: int) -> Curve:
    """One run that passes through all budgets."""
    marks = budgets.along(algorithm, subject.objective, budget)
    result, points = run(subject, algorithm, marks[-1], seeds, key, marks)
    errors = measured(subject, result, points)
    if algorithm.output == "random":
        errors = over_iterates(subject, marks, errors)
    counts = {name: mean_count(np.atleast_2d(getattr(result.trace, name))) for name in COUNTS}
    seconds = np.broadcast_to(result.trace.seconds, (seeds, len(marks)))
    return Curve(
        algorithm.name, algorithm.summary, algorithm.citation, np.asarray(marks), counts, seconds, ordered(errors)
    )


def mean_count(counts: np.ndarray) -> np.ndarray:
    """The mean over the seeds, rounded; only a method with an inner problem, STORC, has counts that differ."""
    return np.rint(counts.mean(0)).astype(np.int64)


def measured(subject: Subject, result: Result | None, points: np.ndarray | None) -> dict[str, np.ndarray]:
    """Every measure at every pause, seeds × pauses."""
    if points is None:
        assert result is not None
        value, gap = np.atleast_2d(result.trace.value), np.atleast_2d(result.trace.gap)
    else:
        value, gap = subject.value(points), subject.gap(points)
    best = subject.optimum()
    errors = {"value": value} if subject.setting in MAXIMISED else {"value": value, "gap": gap}
    if subject.setting == "convex" and best is not None:
        errors["suboptimality"] = value - best if subject.sense == "minimize" else best - value
    return errors


def ordered(errors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Measures in the order of `LABELS`: the theorem's first; what could not be measured at all is left out."""
    return {name: errors[name] for name in LABELS if name in errors and np.isfinite(errors[name]).any()}


def over_iterates(subject: Subject, pauses: Sequence[int], errors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """E over x_o at each pause: the mean over x_1, …, x_{t+1}, with less noise than one random iterate has."""
    nodes = np.asarray(pauses, np.float64) + 1  # x_{t+1} comes after t steps
    first = {}
    if subject.exact:
        start = flat(subject.start())[None, None]
        first = measured(subject, None, start)
    return {name: running_mean(nodes, values, first.get(name, values[:, :1])) for name, values in errors.items()}


def running_mean(nodes: np.ndarray, values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The mean of f(1), …, f(t) at each node t, f read off linearly between nodes, f(1) = `first`; seeds × nodes."""
    places = np.concatenate([[1.0], nodes])
    known = np.concatenate([np.broadcast_to(first, (len(values), 1)), values], 1)
    # Σ over whole numbers from a + 1 to b of a line: (b − a)(f(a) + f(b))/2 + (f(b) − f(a))/2.
    widths, rises = np.diff(places), np.diff(known, axis=1)
    sums = widths * (known[:, 1:] + known[:, :-1]) / 2 + np.where(widths > 0, rises, 0.0) / 2
    return (np.cumsum(sums, 1) + known[:, :1]) / nodes


def over_ends(
    subject: Subject,
    algorithm: Algorithm,
    budget: int,
    seeds: int,
    key: int,
    one: Callable[..., tuple[dict[str, np.ndarray], Result]],
) -> Curve:
    """Separate runs, one for each budget: each point is the end of a run."""
    lengths = budgets.ends(algorithm, subject.objective, budget)
    errors: list[dict[str, np.ndarray]] = []
    counts: dict[str, list[int]] = {name: [] for name in COUNTS}
    seconds = []
    for steps in lengths:
        measures, result = one(subject, algorithm, steps, seeds, key)
        errors.append(measures)
        seconds.append(np.broadcast_to(result.seconds, seeds))
        for name in COUNTS:
            counts[name].append(int(mean_count(np.reshape(getattr(result, name), (-1, 1)))[0]))
    return Curve(
        algorithm.name,
        algorithm.summary,
        algorithm.citation,
        np.asarray(lengths),
        {name: np.asarray(column) for name, column in counts.items()},
        np.stack(seconds, 1),
        ordered({name: np.stack([entry[name] for entry in errors], 1) for name in errors[0]}),
        separate=True,
    )


def end(
    subject: Subject, algorithm: Algorithm, steps: int, seeds: int, key: int
) -> tuple[dict[str, np.ndarray], Result]:
    """The measures of one run's output, one for each seed; E over x_o is the mean over the iterates."""
    scattered = algorithm.output == "random"
    pauses = nodes_of(steps) if scattered else [steps]
    result, points = run(subject, algorithm, steps, seeds, key, pauses)
    if algorithm.output == "average" and points is not None:
        points = np.asarray(result.x, np.float64).reshape(seeds, 1, -1)
    errors = measured(subject, result, points)
    if not scattered:
        return {name: values[:, -1] for name, values in errors.items()}, result
    means = over_iterates(subject, pauses, errors)
    return {name: values[:, -1] for name, values in means.items()}, result


def nodes_of(steps: int) -> list[int]:
    """Steps on a log and on a linear grid: a mean over all iterates needs both its start and its bulk."""
    logarithmic, linear = NODES
    grid = np.concatenate([np.geomspace(1, steps, logarithmic), np.linspace(1, steps, linear)])
    return np.unique(np.rint(grid).astype(int)).tolist()


def submodular_end(
    subject: Subject, algorithm: Algorithm, steps: int, seeds: int, key: int
) -> tuple[dict[str, np.ndarray], Result]:
    """‖d_T − ∇F(x_T)‖², the oracle's regret and F(x_{T+1}), one for each seed.

    The regret (1/T) Σ_t max over v in K of ⟨∇F(x_t), v − v_t⟩ is the quantity in the proof of Theorem 3. v_t is read
    off two iterates that follow one another; only continuous greedy has it.
    """
    greedy = isinstance(algorithm.step, ContinuousGreedyStep)
    nodes = nodes_of(steps) if greedy else [steps]
    pauses = sorted({t for node in nodes for t in (node - 1, node) if t >= 1}) if greedy else [steps]
    result, points = run(subject, algorithm, steps, seeds, key, pauses)
    assert points is not None
    states = states_of(result)
    x_last = np.stack([flat(state.previous) for state in states])
    d_last = np.stack([flat(state.estimate.d) for state in states])
    errors = np.sum((d_last - subject.gradient(x_last)) ** 2, -1)
    regret = np.full(seeds, np.nan)
    if greedy:
        # A pause shows Σ v_s/t over the steps done so far; x_{t+1} is that sum divided by T.
        sums = {t: points[:, place] * t for place, t in enumerate(pauses)}
        sums[0] = np.zeros_like(points[:, 0])
        x = np.stack([sums[t - 1] for t in nodes], 1) / steps
        vertices = np.stack([sums[t] - sums[t - 1] for t in nodes], 1)
        at_nodes = np.maximum(
            subject.gap(x) + np.sum(subject.gradient(x) * (x - vertices), -1), 0.0
        )  # but for rounding
        regret = running_mean(np.asarray(nodes, np.float64), at_nodes, at_nodes[:, :1])[:, -1]
    value = subject.value(np.asarray(result.x, np.float64).reshape(seeds, -1))
    return {"gradient_error": errors, "regret": regret, "value": value}, result


def states_of(result: Result) -> list[Any]:
    """The last state of each replicate."""
    if isinstance(result.state, list):
        return result.state
    return [jax.tree.map(lambda leaf, r=r: leaf[r], result.state) for r in range(result.replicates or 1)]
