"""A checked problem: everything a run needs but its key."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from onesfw.algorithms import Algorithm
from onesfw.algorithms.base import CORRECTED
from onesfw.engine.evaluation import Evaluate
from onesfw.estimators import Estimator
from onesfw.objectives import Objective
from onesfw.sets import ConvexSet
from onesfw.steps import Step
from onesfw.trees import HostArray, Tree

Row = dict[str, int | float | HostArray]
"""A row of the trace: the step, the oracle calls so far, the seconds, and what was measured."""
Callback = Callable[[Row, Tree], object]
"""A function of (row, x), called after each evaluation; one that returns False stops the run."""
Callbacks = Callback | Iterable[Callback]


def as_callbacks(callbacks: Callbacks) -> tuple[Callback, ...]:
    """One callback or several as a tuple; raises TypeError where one is no function of (row, x)."""
    alone = not isinstance(callbacks, Iterable) or getattr(callbacks, "ndim", None) == 0
    several: Iterable[object] = (callbacks,) if alone else callbacks  # type: ignore[assignment]  # as `alone` says
    return tuple(checked_callback(callback) for callback in several)


def checked_callback(callback: object) -> Callback:
    """A function that can be called with (row, x): better now than at the first evaluation."""
    if not callable(callback):
        raise TypeError(f"callbacks must be functions of (row, x), got {callback!r}")
    try:
        signature = inspect.signature(callback)
    except ValueError:  # some functions written in C do not say
        return callback
    try:
        signature.bind({}, None)
    except TypeError as error:
        name = getattr(callback, "__name__", repr(callback))
        raise TypeError(
            f"callbacks must be functions of (row, x), a dictionary and a point; {name}{signature} cannot be called "
            f"so: {error}"
        ) from None
    return callback


@dataclass(frozen=True)
class Run:
    """A checked problem: everything a run needs but its key."""

    objective: Objective
    constraint: ConvexSet
    algorithm: Algorithm
    estimator: Estimator
    step: Step
    """The algorithm's, fitted to the constraint."""
    x0: Tree
    """x_1"""
    inside: Tree
    """A member of K, for a run that ends before its first step."""
    steps: int
    sign: int
    """+1 minimises, −1 maximises: the only place where the two differ."""
    evaluate: Evaluate = None
    pauses: Sequence[int] = ()
    """After which steps to evaluate."""
    gap_tol: float | None = None
    time_limit: float | None = None
    callbacks: Sequence[Callback] = ()
    inputs: dict[tuple[int, int], tuple[Step, Tree]] = field(default_factory=dict, repr=False, compare=False)
    """What a few chunks were handed, by (first step, steps), and for which step: for all runs of a sweep."""

    @property
    def iterations(self) -> int:
        """The steps that the loop takes; those after them give their samples to a corrected output."""
        return self.steps - self.algorithm.kept(self.steps)

    @property
    def corrects(self) -> bool:
        """Whether the output is a corrected one, where enough steps were done for it."""
        return self.algorithm.output == CORRECTED
