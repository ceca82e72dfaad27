"""Time to an accuracy: the sparse engine and copt's stochastic Frank-Wolfe at its best batch size."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sparse_common import ROWS, as_examples, constrained_optimum, installed, seconds, version
from sparse_data import generated

from onesfw.linear import Examples, Learner, Settings, evaluate
from onesfw.linear.pass_rows import draw_order

TARGETS = (1e-2, 1e-3, 1e-4)
RADII = (30.0, 100.0)
BATCHES = (250, 500, 1_000, 2_500, 5_000)
PATIENCE = 40.0  # seconds for a run


class Reached(Exception):
    """The last target is met."""


class Watch:
    """When the suboptimality first fell below each target; evaluating is off the clock."""

    def __init__(self, settings: Settings, data: Examples, optimum: float) -> None:
        self.settings, self.data, self.optimum = settings, data, optimum
        self.times: list[float | None] = [None] * len(TARGETS)

    def look(self, spent: float, coef: np.ndarray) -> None:
        """Note what x has reached after so many seconds."""
        distance = evaluate(self.settings, self.data, coef).value[0] - self.optimum
        for place, target in enumerate(TARGETS):
            if self.times[place] is None and distance <= target:
                self.times[place] = spent
        if self.times[-1] is not None or spent > PATIENCE:
            raise Reached


def copt_runner(
    copt: Any, matrix: Any, labels: np.ndarray, radius: float, batch: int, variant: str, callback: Any = None
) -> Callable[[int], Any]:
    """copt's stochastic Frank-Wolfe over the l1 ball, logistic loss, its own step sizes."""
    import copt.constraint
    from numba import njit

    @njit
    def slope(margins: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return -targets / (1.0 + np.exp(targets * margins))

    ball = copt.constraint.L1Ball(radius)
    return lambda count: copt.minimize_sfw(
        slope, matrix, labels, np.zeros(matrix.shape[1]), ball.lmo, batch_size=batch, max_iter=count, tol=0,
        variant=variant, callback=callback,
    )  # fmt: skip


def run_ours(watch: Watch, sag: bool, slice_rows: int = 2_500) -> list[float | None]:
    """Train in slices of rows, looking after each."""
    data = watch.data
    learner = Learner(watch.settings, rows=data.size if sag else None)
    learner.compile()
    rng, spent, number = np.random.default_rng(0), 0.0, 0
    with contextlib.suppress(Reached):
        while True:
            begun = time.perf_counter()
            order = draw_order(rng, data.size, 1, sag and number > 0)
            spent, number = spent + time.perf_counter() - begun, number + 1
            for start in range(0, data.size, slice_rows):
                rows = order[start : start + slice_rows]
                spent += seconds(lambda rows=rows: learner.learn_examples(data, rows))
                watch.look(spent, learner.coef)
    return watch.times


def run_copt(watch: Watch, copt: Any, matrix: Any, labels: np.ndarray, batch: int) -> list[float | None]:
    """copt's SAG, looking at most every 20 ms of its time."""
    radius = watch.settings.radius
    copt_runner(copt, matrix[: 4 * batch], labels[: 4 * batch], radius, batch, "SAG")(1)  # compiles
    clock = {"begun": time.perf_counter(), "off": 0.0, "last": 0.0}

    def callback(state: dict[str, Any]) -> None:
        now = time.perf_counter()
        spent = now - clock["begun"] - clock["off"]
        if spent - clock["last"] > 0.02:
            watch.look(spent, state["x"])
            clock["off"] += time.perf_counter() - now
            clock["last"] = spent

    with contextlib.suppress(Reached):
        copt_runner(copt, matrix, labels, radius, batch, "SAG", callback)(10_000)
    return watch.times


def accuracy() -> None:
    """The table for each radius."""
    matrix, labels = generated(ROWS, 47_000)
    data = as_examples(matrix, labels)
    copt = installed("copt")
    for radius in RADII:
        optimum, gap, _, _ = constrained_optimum(matrix, labels, radius, data)
        settings = Settings(47_000, "logistic", "l1", radius)
        print(f"\n== Seconds to F − F* ≤ 1e-2, 1e-3, 1e-4 over the l1 ball of radius {radius:g}")
        print(f"   F* = {optimum:.6f}, its duality gap {gap:.1e}")
        ours = {name: run_ours(Watch(settings, data, optimum), name == "sag") for name in ("sag", "one_sample")}
        for name, times in ours.items():
            line("onesfw gradient=" + name, times)
        if copt is None:
            continue
        best: list[float | None] = [None] * len(TARGETS)
        for batch in BATCHES:
            times = run_copt(Watch(settings, data, optimum), copt, matrix, labels, batch)
            line(f"{version('copt')} SAG, batch {batch}", times)
            best = [min((t for t in pair if t is not None), default=None) for pair in zip(best, times, strict=True)]
        line("ratio, best batch to sag", [b / o if b and o else None for b, o in zip(best, ours["sag"], strict=True)])


def line(label: str, numbers: list[float | None]) -> None:
    """One row of the table."""
    print(f"   {label:<32}" + "".join(f"{'never' if number is None else f'{number:.3f}':>9}" for number in numbers))
