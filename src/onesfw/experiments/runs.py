"""One method on one problem, over seeds: its error against samples, gradients, oracle calls and seconds.

Budgets are equal: where a method is looked at on its way to so many samples, or so many gradient evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import jax
import numpy as np

from onesfw.algorithms import CONVEX, DR_SUBMODULAR, MAXIMISED, Algorithm
from onesfw.engine.compiled_loop import RunState
from onesfw.experiments.curves import COUNTS, LABELS, Curve
from onesfw.experiments.recorder import Recorder, flat
from onesfw.objectives import Objective
from onesfw.results.result import Result
from onesfw.results.status import Status
from onesfw.steps import ContinuousGreedyStep
from onesfw.trees import Counts, Floats
from onesfw.zoo.base import Problem

PER_DECADE = 8  # points of a curve
DEPTH = 3  # decades of a curve
ENDS = 5  # budgets of a method whose schedules depend on T, half a decade apart
BY_GRADIENTS = ("online_fw",)  # each round costs more gradients than the one before: equal samples would flatter it
NODES = (24, 12)  # iterates that a mean over all of them is taken from: on a log grid, and on a linear one
Measures = dict[str, Floats]


def steps_for(algorithm: Algorithm, objective: Objective, budget: int) -> int:
    """The largest T within `budget` samples; `online_fw` gets as many gradient evaluations as one_sfw, 2·budget."""
    if algorithm.name.split("[")[0] in BY_GRADIENTS:
        return algorithm.steps_for(objective, gradients=2 * budget)
    return algorithm.steps_for(objective, samples=budget)


def anytime(algorithm: Algorithm, objective: Objective) -> bool:
    """Whether the first steps are the same however many follow, so that one run passes through all budgets."""
    horizon = algorithm.rho.uses_horizon or algorithm.eta.uses_horizon or algorithm.estimator(objective).uses_horizon
    return not horizon and algorithm.output in ("last", "random")


def marks_for(algorithm: Algorithm, objective: Objective, budget: int) -> list[int]:
    """The steps after which an anytime run is looked at: evenly spaced budgets on a log axis, the last one whole."""
    marks = []
    for count in np.geomspace(max(1.0, budget / 10**DEPTH), budget, PER_DECADE * DEPTH + 1):
        try:
            marks.append(steps_for(algorithm, objective, max(1, round(count))))
        except ValueError:  # not one step fits yet
            continue
    if not marks:
        steps_for(algorithm, objective, budget)  # raises the sentence that says what one step takes
    return sorted(set(marks))


def lengths_for(algorithm: Algorithm, objective: Objective, budget: int, points: int = ENDS) -> list[int]:
    """The lengths of separate runs, one for each budget over the last two decades; one point is the whole budget."""
    lengths = []
    for count in np.geomspace(budget, max(1.0, budget / 100), points):
        try:
            lengths.append(steps_for(algorithm, objective, max(1, round(count))))
        except ValueError:
            continue
    if not lengths:
        steps_for(algorithm, objective, budget)
    return sorted(set(lengths))


class NotFinite(ValueError):
    """A NaN or an infinity ended a run."""


def measure(problem: Problem, algorithm: Algorithm, budget: int, seeds: int, key: int = 0, ends: int = ENDS) -> Curve:
    """Run a method up to a budget and measure the error of its own output: x_{T+1}, or E over x_o.

    A method whose schedules depend on T is run for `ends` budgets, of which the last is the whole.
    """
    if problem.setting == DR_SUBMODULAR and problem.exact:
        return over_ends(problem, algorithm, budget, seeds, key, submodular_end, ends)
    if anytime(algorithm, problem.objective):
        return along(problem, algorithm, budget, seeds, key)
    return over_ends(problem, algorithm, budget, seeds, key, end, ends)


def run(
    problem: Problem, algorithm: Algorithm, steps: int, seeds: int, key: int, pauses: Sequence[int]
) -> tuple[Result, Floats | None]:
    """The run, and where it passed through (None where the problem's F is not known exactly)."""
    recorder = Recorder(pauses, seeds)
    result = replace(problem, x0=problem.start()).run(
        steps=steps,
        algorithm=algorithm,
        key=key,
        replicates=seeds,
        evaluate=False if problem.exact else None,
        every=list(pauses),
        callbacks=[recorder] if problem.exact else (),
    )
    statuses = {result.status} if isinstance(result.status, Status) else set(result.status)
    if Status.INTERRUPTED in statuses:
        raise KeyboardInterrupt
    if Status.NOT_FINITE in statuses:
        raise NotFinite(f"{algorithm.name} ended with a NaN or an infinity on {problem.name}")
    return result, recorder.array() if problem.exact else None


def along(problem: Problem, algorithm: Algorithm, budget: int, seeds: int, key: int) -> Curve:
    """One run that passes through all budgets."""
    marks = marks_for(algorithm, problem.objective, budget)
    result, points = run(problem, algorithm, marks[-1], seeds, key, marks)
    errors = measured(problem, result, points)
    if algorithm.output == "random":
        errors = over_iterates(problem, marks, errors)
    counts = {name: mean_count(np.atleast_2d(getattr(result.trace, name))) for name in COUNTS}
    seconds = np.broadcast_to(result.trace.seconds, (seeds, len(marks)))
    return Curve(
        algorithm.name, algorithm.summary, algorithm.citation, np.asarray(marks), counts, seconds, ordered(errors)
    )


def mean_count(counts: Counts) -> Counts:
    """The mean over the seeds, rounded; only a method with an inner problem, STORC, has counts that differ."""
    rounded: Counts = np.rint(counts.mean(0)).astype(np.int64)
    return rounded


def measured(problem: Problem, result: Result | None, points: Floats | None) -> Measures:
    """Every measure at every pause, seeds × pauses."""
    if points is None:
        assert result is not None
        value, gap = np.atleast_2d(result.trace.value), np.atleast_2d(result.trace.gap)
    else:
        value, gap = problem.values_at(points), problem.gaps_at(points)
    best = problem.best_value()
    errors = {"value": value} if problem.setting in MAXIMISED else {"value": value, "gap": gap}
    if problem.setting == CONVEX and best is not None:
        errors["suboptimality"] = value - best if problem.sense == "minimize" else best - value
    return errors


def ordered(errors: Measures) -> Measures:
    """Measures in the order of `LABELS`: the theorem's first; what could not be measured at all is left out."""
    return {name: errors[name] for name in LABELS if name in errors and np.isfinite(errors[name]).any()}


def over_iterates(problem: Problem, pauses: Sequence[int], errors: Measures) -> Measures:
    """E over x_o at each pause: the mean over x_1, …, x_{t+1}, with less noise than one random iterate has."""
    nodes = np.asarray(pauses, np.float64) + 1  # x_{t+1} comes after t steps
    first = {}
    if problem.exact:
        start = flat(problem.start())[None, None]
        first = measured(problem, None, start)
    return {name: running_mean(nodes, values, first.get(name, values[:, :1])) for name, values in errors.items()}


def running_mean(nodes: Floats, values: Floats, first: Floats) -> Floats:
    """The mean of f(1), …, f(t) at each node t, f read off linearly between nodes, f(1) = `first`; seeds × nodes."""
    places = np.concatenate([[1.0], nodes])
    known = np.concatenate([np.broadcast_to(first, (len(values), 1)), values], 1)
    # Σ over whole numbers from a + 1 to b of a line: (b − a)(f(a) + f(b))/2 + (f(b) − f(a))/2.
    widths, rises = np.diff(places), np.diff(known, axis=1)
    sums = widths * (known[:, 1:] + known[:, :-1]) / 2 + np.where(widths > 0, rises, 0.0) / 2
    means: Floats = (np.cumsum(sums, 1) + known[:, :1]) / nodes
    return means


def over_ends(
    problem: Problem,
    algorithm: Algorithm,
    budget: int,
    seeds: int,
    key: int,
    one: Callable[[Problem, Algorithm, int, int, int], tuple[Measures, Result]],
    ends: int,
) -> Curve:
    """Separate runs, one for each budget: each point is the end of a run."""
    lengths = lengths_for(algorithm, problem.objective, budget, ends)
    errors: list[Measures] = []
    counts: dict[str, list[int]] = {name: [] for name in COUNTS}
    seconds = []
    for steps in lengths:
        measures, result = one(problem, algorithm, steps, seeds, key)
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


def end(problem: Problem, algorithm: Algorithm, steps: int, seeds: int, key: int) -> tuple[Measures, Result]:
    """The measures of one run's output, one for each seed; E over x_o is the mean over the iterates."""
    scattered = algorithm.output == "random"
    pauses = nodes_of(steps) if scattered else [steps]
    result, points = run(problem, algorithm, steps, seeds, key, pauses)
    if algorithm.output in ("average", "corrected") and points is not None:
        points = np.asarray(result.x, np.float64).reshape(seeds, 1, -1)
    errors = measured(problem, result, points)
    if not scattered:
        return {name: values[:, -1] for name, values in errors.items()}, result
    means = over_iterates(problem, pauses, errors)
    return {name: values[:, -1] for name, values in means.items()}, result


def nodes_of(steps: int) -> list[int]:
    """Steps on a log and on a linear grid: a mean over all iterates needs both its start and its bulk."""
    logarithmic, linear = NODES
    grid = np.concatenate([np.geomspace(1, steps, logarithmic), np.linspace(1, steps, linear)])
    return [int(node) for node in np.unique(np.rint(grid))]


def submodular_end(problem: Problem, algorithm: Algorithm, steps: int, seeds: int, key: int) -> tuple[Measures, Result]:
    """‖d_T − ∇F(x_T)‖², the oracle's regret and F(x_{T+1}), one for each seed.

    The regret (1/T) Σ_t max over v in K of ⟨∇F(x_t), v − v_t⟩ is the quantity in the proof of Theorem 3. v_t is read
    off two iterates that follow one another; only continuous greedy has it.
    """
    greedy = isinstance(algorithm.step, ContinuousGreedyStep)
    nodes = nodes_of(steps) if greedy else [steps]
    pauses = sorted({t for node in nodes for t in (node - 1, node) if t >= 1}) if greedy else [steps]
    result, points = run(problem, algorithm, steps, seeds, key, pauses)
    assert points is not None
    states = states_of(result)
    x_last = np.stack([flat(state.previous) for state in states])
    d_last = np.stack([flat(state.estimate.d) for state in states])
    errors = np.sum((d_last - problem.gradients_at(x_last)) ** 2, -1)
    regret = np.full(seeds, np.nan)
    if greedy:
        # A pause shows Σ v_s/t over the steps done so far; x_{t+1} is that sum divided by T.
        sums = {t: points[:, place] * t for place, t in enumerate(pauses)}
        sums[0] = np.zeros_like(points[:, 0])
        x = np.stack([sums[t - 1] for t in nodes], 1) / steps
        vertices = np.stack([sums[t] - sums[t - 1] for t in nodes], 1)
        at_nodes = np.maximum(
            problem.gaps_at(x) + np.sum(problem.gradients_at(x) * (x - vertices), -1), 0.0
        )  # but for rounding
        regret = running_mean(np.asarray(nodes, np.float64), at_nodes, at_nodes[:, :1])[:, -1]
    value = problem.values_at(np.asarray(result.x, np.float64).reshape(seeds, -1))
    return {"gradient_error": errors, "regret": regret, "value": value}, result


def states_of(result: Result) -> list[RunState]:
    """The last state of each replicate."""
    if isinstance(result.state, list):
        return result.state
    return [jax.tree.map(lambda leaf, r=r: leaf[r], result.state) for r in range(result.replicates or 1)]
