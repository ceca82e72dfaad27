"""Passes over data in memory: shuffled, stopped by the true gap, one model or many in parallel threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onesfw.arguments import choose, number, whole_number
from onesfw.linear.examples import Examples
from onesfw.linear.gap import Evaluation, evaluate
from onesfw.linear.learner import Learner, Settings

GRADIENTS = {
    "one_sample": "Algorithm 2: remembers no row, for streams",
    "sag": "one number for each row (Négiar et al. 2020), for data that fit in memory",
}
LEAST_STEPS, LEAST_PASSES = 100_000, 20
STEPS_PER_CHECK = 10_000  # where a pass is shorter, several are made between two looks at the gap


@dataclass(frozen=True)
class Budget:
    """How long to train.

    Args:
        passes: over the data; None for 20, or as many as make 100,000 steps where there are few rows.
        steps: instead of passes.
        tol: stop when the Frank-Wolfe gap, from all rows and at most once a pass, is at most tol times the loss of the
            model that is 0; None: never.
        gradient: "one_sample" or "sag".
    """

    passes: int | None = None
    steps: int | None = None
    tol: float | None = None
    gradient: str = "one_sample"

    def __post_init__(self) -> None:
        choose(self.gradient, GRADIENTS, "gradient")
        if self.passes is not None:
            whole_number(self.passes, "max_iter", 1)
        if self.steps is not None:
            whole_number(self.steps, "steps", 1)
        if self.tol is not None:
            number(self.tol, "tol", 0.0)

    def total(self, rows: int) -> int:
        """Steps for so many rows."""
        if self.steps is not None:
            return int(self.steps)
        return rows * int(self.passes or max(LEAST_PASSES, -(-LEAST_STEPS // rows)))


@dataclass(frozen=True)
class Fit:
    """A trained model and what a last full pass says of it."""

    learner: Learner
    evaluation: Evaluation
    passes: int
    converged: bool
    """Whether the gap fell below tol; True where there is no tol."""


def train(
    settings: Settings,
    data: Examples,
    budget: Budget,
    seed: int,
    start: tuple[np.ndarray, float, int] | None = None,
    advance: Callable[[int], None] = lambda steps: None,
) -> Fit:
    """Train over shuffled passes; `start` is (x, intercept, steps they took), `advance` hears of every pass."""
    x, intercept, t0 = start or (None, 0.0, 0)
    learner = Learner(
        settings,
        rows=data.size if budget.gradient == "sag" else None,
        start=None if x is None else (x, intercept),
        t0=t0,
    )
    rng = np.random.default_rng(seed)
    limit = None
    if budget.tol is not None:
        zero = Learner(settings)
        limit = budget.tol * evaluate(settings, data, zero.coef, zero.intercept).value
    left, passes, evaluation = budget.total(data.size), 0, None
    passes_per_check = -(-STEPS_PER_CHECK // data.size)
    while left > 0:
        order = draw_order(rng, data.size, passes_per_check, budget.gradient == "sag" and passes > 0)[:left]
        learner.learn_examples(data, order)
        left, passes = left - len(order), passes + -(-len(order) // data.size)
        advance(len(order))
        if limit is not None:
            evaluation = evaluate(settings, data, learner.coef, learner.intercept)
            if evaluation.gap <= limit:
                break
    if evaluation is None:
        evaluation = evaluate(settings, data, learner.coef, learner.intercept)
    return Fit(learner, evaluation, passes, limit is None or evaluation.gap <= limit)


def draw_order(rng: np.random.Generator, rows: int, passes: int, independent: bool) -> np.ndarray:
    """The rows of some passes: each pass a permutation, or independent draws.

    SAG needs each row once to fill its table and independent rows after that: with a new permutation for every pass it
    oscillates. The one-sample gradient does better with permutations throughout.
    """
    if independent:
        return rng.integers(0, rows, rows * passes)
    if passes == 1:
        return rng.permutation(rows)
    return rng.permuted(np.tile(np.arange(rows), (passes, 1)), axis=1).ravel()
