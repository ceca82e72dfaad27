"""`select`: pick a base of a matroid that maximises a set function, with a certificate of how good it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onesfw.algorithms import DR_SUBMODULAR, Algorithm
from onesfw.arguments import choose, whole_number
from onesfw.engine.keys import Key, seed_of
from onesfw.progress import ProgressBar
from onesfw.results.trace import Trace
from onesfw.submodular.base import Estimate, Function, Judge, Source
from onesfw.submodular.greedy import check_pair
from onesfw.submodular.matroids import Matroid
from onesfw.submodular.rounding import SwapRounding, deterministic_pipage, grouped, pipage, swap_round
from onesfw.submodular.selection import Selection
from onesfw.trees import HostArray

ROUNDINGS = ("swap", "pipage", "deterministic")
TRACED, TICKS = 16, 100  # points of the trace, and of the progress bar
MERGES, PIPAGE, CHOICE, REPORT = range(1, 5)  # streams of the key; 0 is for the samples
SPEED = 5.0  # the second phase's step is SPEED/T₂: what the first phase left fades to e^(−5)


def select(
    function: Function,
    matroid: Matroid,
    *,
    steps: int,
    algorithm: Algorithm | None = None,
    rounding: str = "swap",
    polish: bool = True,
    batch: int = 1,
    key: Key = 0,
    progress: bool = False,
) -> Selection:
    """Choose a base of the matroid with a large f: at least (1 − 1/e) of the optimum, up to an error that falls with
    the steps, from one sample of f a step.

    Half of the steps are continuous greedy on the multilinear extension (1-SFW), the others Frank-Wolfe steps
    x ← x + (5/T₂)(v − x) that carry d over and make x nearly integral. Both ends are rounded without loss, and the set
    that is better on independent samples is returned with an upper bound on the optimum.

    Args:
        function: a set function from `onesfw.submodular`, monotone and submodular.
        matroid: a matroid from `onesfw.submodular` over the same elements.
        steps: T, half of them for each phase.
        algorithm: a recipe in the dr_submodular setting for the first phase, run by `maximize`; None for
            one_sfw, run by kernels of this room where the function has some.
        rounding: "swap", merged as the run goes; "pipage" for uniform, partition and laminar matroids;
            "deterministic" pipage where F is exact.
        polish: one sweep of improving exchanges after rounding.
        batch: samples averaged in each step.
        key: an integer seed or a JAX key.
        progress: show a progress bar.

    Returns:
        The set, its value, an upper bound on the optimum and the certified ratio.

    Raises:
        TypeError: where an argument is not what it should be, or a rounding needs what the function has not.
        ValueError: where function and matroid speak of different elements, a number is out of range, or f gives NaN.

    Example:
        >>> import onesfw as fw
        >>> from onesfw import submodular as sm
        >>> chosen = fw.select(sm.Coverage([[1, 1, 0], [0, 1, 1], [0, 0, 1]]), sm.UniformMatroid(3, 2), steps=20)
        >>> chosen.indices.size, chosen.ratio
        (2, 1.0)
    """
    begun = time.perf_counter()
    check_pair(function, matroid)
    steps, batch = whole_number(steps, "steps", 2), whole_number(batch, "batch", 1)
    choose(rounding, ROUNDINGS, "rounding")
    if rounding == "deterministic" and (not function.closed_form or function.omegas is None):
        raise TypeError(
            f"rounding='deterministic' needs the exact F, which {type(function).__name__} has not; use 'swap'"
        )
    if algorithm is not None and (not isinstance(algorithm, Algorithm) or algorithm.setting != DR_SUBMODULAR):
        raise ValueError("algorithm must be a recipe in the dr_submodular setting, such as one_sfw('dr_submodular')")
    if not matroid.rank:
        raise ValueError("matroid has rank 0: no element may be chosen")
    function.check()
    judge = function.judge(matroid, seed_of(key, CHOICE), seed_of(key, REPORT))
    run = TwoPhases(matroid, steps, seed_of(key, MERGES))
    opened = time.perf_counter()
    source = function.source(batch, key)  # where it compiles, that is part of sampling
    opened = time.perf_counter() - opened
    traced = {max(1, round(t)) for t in np.geomspace(1, steps, TRACED)} | {run.first}
    watch = Watch(run, judge, source, batch, traced, ProgressBar(steps, progress, "selecting"))
    pauses = sorted(traced | {round(t) for t in np.linspace(1, steps, TICKS)})
    samples = steps * batch
    with watch.bar:
        if algorithm is None:
            run.run(source, run.first, watch, pauses)
            first = run.point("continuous greedy")
        else:
            first, drawn = by_recipe(run, function, matroid, algorithm, key)
            samples = drawn + run.second * batch
            watch.origin = (run.t, drawn)
            watch(run.t)
        run.run(source, steps, watch, pauses)
    candidates = [first, run.point("Frank-Wolfe")]
    if rounding != "swap":
        candidates = [rounded(c, function, matroid, rounding, key) for c in candidates]
    best = max(candidates, key=lambda c: judge.choose(c.base))
    chosen, exchanges = improve(judge, matroid, best.base) if polish else (best.base, 0)
    reported = time.perf_counter()
    verdict = judge.report(chosen, best.x)
    fractional = judge.fractional(best.x)
    ended = time.perf_counter()
    return Selection(
        indices=chosen,
        value=verdict.value.value,
        value_stderr=verdict.value.stderr,
        fractional_value=fractional.value,
        fractional_stderr=fractional.stderr,
        upper_bound=verdict.bound.upper,
        certificate=verdict.bound.kind,
        ratio=verdict.ratio,
        ratio_stderr=verdict.ratio_stderr,
        exact=judge.exact,
        phase=best.name,
        exchanges=exchanges,
        x=best.x,
        trace=watch.trace(),
        samples=samples,
        lmo_calls=steps,
        sampling_seconds=opened + watch.seconds,
        judging_seconds=reported - begun - opened - watch.seconds,
        certificate_seconds=ended - reported,
        method="one_sfw, two phases" if algorithm is None else f"{algorithm.name}, then Frank-Wolfe",
    )


@dataclass(frozen=True)
class Point:
    """Where a phase ended: x in the polytope, and a base with E 1_B = x."""

    name: str
    x: HostArray
    base: HostArray


class TwoPhases:
    """The state of a run over T = T₁ + T₂ steps: x, x_{t−1}, d, and the base merged so far.

    Phase 1, t ≤ T₁: x_{t+1} = x_t + v_t/T₁ from 0, kept as integer counts. Phase 2: x_{t+1} = x_t + (5/T₂)(v_t − x_t).
    Both with ρ_t = 1/(t − 1), ρ_1 = 1, and v_t the base of the largest ⟨d_t, v⟩.
    """

    def __init__(self, matroid: Matroid, steps: int, seed: int) -> None:
        self.matroid, self.steps = matroid, steps
        self.first = max(1, steps // 2)
        self.second = steps - self.first
        self.t = 0
        n = matroid.n
        self.d, self.x, self.previous = np.zeros(n), np.zeros(n), np.zeros(n)
        self.counts = np.zeros(n, np.int64)
        self.rounding = SwapRounding(matroid, seed)
        self.grouping = matroid.grouping
        self.buffer = np.empty(0 if self.grouping is None else int(self.grouping.capacities.sum()), np.int64)

    def resume(self, x: HostArray, previous: HostArray, d: HostArray, base: HostArray) -> Point:
        """Take over where another method ended the first phase."""
        self.x, self.previous, self.d = (np.array(v, np.float64) for v in (x, previous, d))
        self.rounding.merge(grouped(self.matroid, base), 1.0)
        self.t = self.first
        return self.point("continuous greedy")

    def vertex(self) -> HostArray:
        """The base of the largest total d."""
        if self.grouping is None:
            return self.matroid.base(self.d)
        from onesfw.submodular.kernels import top_by_group

        top_by_group(self.d, self.grouping.groups, self.rounding.layout, self.buffer)
        return self.buffer

    def run(self, source: Source, until: int, watch: Callable[[int], None], pauses: list[int]) -> None:
        """Steps up to number `until`; `watch` is called after those in `pauses`."""
        waiting = [t for t in pauses if self.t < t <= until][::-1]
        while self.t < until:
            self.step(source)
            if waiting and waiting[-1] == self.t:
                waiting.pop()
                watch(self.t)

    def step(self, source: Source) -> None:
        """One step."""
        self.t = t = self.t + 1
        source.update(self.d, self.x, self.previous, 1.0 / max(t - 1, 1), t)
        vertex = self.vertex()
        self.previous[:] = self.x
        if t <= self.first:
            self.counts[vertex] += 1
            self.x[vertex] = self.counts[vertex] / self.first
            self.rounding.merge(vertex, 1.0 / t)
        else:
            share = min(1.0, SPEED / self.second)
            self.x *= 1.0 - share
            self.x[vertex] += share
            self.rounding.merge(vertex, share)

    def point(self, name: str) -> Point:
        """x and the base as they are now."""
        return Point(name, np.clip(self.x, 0.0, 1.0), self.rounding.result())


class Watch:
    """What the trace keeps: F(x) on samples of its own, after the steps it is called at."""

    def __init__(
        self, run: TwoPhases, judge: Judge, source: Source, batch: int, traced: set[int], bar: ProgressBar
    ) -> None:
        self.run, self.judge, self.closed, self.batch = run, judge, source.closed, batch
        self.traced, self.bar = traced, bar
        self.origin = (0, 0)  # the step before ours, and the samples drawn until then
        self.rows: list[tuple[int, float, Estimate]] = []
        self.shown = 0
        self.begun, self.away = time.perf_counter(), 0.0

    def __call__(self, t: int) -> None:
        begun = time.perf_counter()
        if not np.all(np.isfinite(self.run.d)):
            raise ValueError(f"function gave NaN or infinite marginals before step {t:,}; check its value on all sets")
        if not self.shown:
            self.bar.note("")
        self.bar.advance(t - self.shown)
        self.shown = t
        if t in self.traced:
            # x_t of the first phase is scaled to a point of the polytope, as for a run that stopped here
            scale = self.run.first / t if t < self.run.first else 1.0
            looked = self.judge.glance(np.clip(self.run.x * scale, 0.0, 1.0))
            self.rows.append((t, begun - self.begun - self.away, looked))
        self.away += time.perf_counter() - begun

    @property
    def seconds(self) -> float:
        """Time in the loop, without looking at it."""
        return self.rows[-1][1]

    def trace(self) -> Trace:
        """The rows as `maximize` would give them; there is no gap."""
        step = np.array([t for t, _, _ in self.rows])
        first, drawn = self.origin
        samples = drawn + (step - first) * self.batch
        later = np.maximum(samples - self.batch, 0)  # the first step asks for one gradient per sample
        nothing = np.full(step.size, np.nan)
        return Trace(
            step=step,
            samples=samples,
            gradients=samples + (later if self.closed else 0),
            hvps=np.zeros_like(step) if self.closed else later,
            lmo_calls=step,
            seconds=np.array([seconds for _, seconds, _ in self.rows]),
            value=np.array([estimate.value for *_, estimate in self.rows]),
            value_stderr=np.array([estimate.stderr for *_, estimate in self.rows]),
            gap=nothing,
            gap_stderr=nothing,
        )


def by_recipe(
    run: TwoPhases, function: Function, matroid: Matroid, algorithm: Algorithm, key: Key
) -> tuple[Point, int]:
    """The first phase by `maximize` with a recipe; its x, d and a base go over to the second phase."""
    from onesfw.engine.solve import maximize
    from onesfw.sets import MatroidPolytope
    from onesfw.submodular.extension import MultilinearExtension

    result = maximize(
        MultilinearExtension(function), MatroidPolytope(matroid), steps=run.first, algorithm=algorithm, key=key,
        evaluate=False,
    )  # fmt: skip
    x = np.clip(np.asarray(result.x, np.float64), 0.0, 1.0)
    base = swap_round(x, matroid, seed_of(key, MERGES) % 2**32)
    d = np.asarray(result.state.estimate.d, np.float64)
    return run.resume(x, np.asarray(result.state.previous), d, base), int(result.samples)


def rounded(point: Point, function: Function, matroid: Matroid, rounding: str, key: Key) -> Point:
    """The same x with a base from pipage."""
    if rounding == "pipage":
        return Point(point.name, point.x, pipage(point.x, matroid, seed_of(key, PIPAGE) % 2**32))
    return Point(point.name, point.x, deterministic_pipage(point.x, matroid, function))


def improve(judge: Judge, matroid: Matroid, base: HostArray) -> tuple[HostArray, int]:
    """One sweep of improving exchanges: each chosen element, the least useful first, for the best one outside."""
    chosen = {int(i) for i in base}
    rises = judge.marginals(base)
    exchanges = 0
    for i in sorted(base.tolist(), key=lambda i: rises[i]):
        rest = np.array(sorted(chosen - {i}), np.int64)
        gains = judge.marginals(rest)
        gains[rest] = -np.inf
        if matroid.grouping is not None:
            groups = matroid.grouping.groups
            gains[groups != groups[i]] = -np.inf
        for j in np.argsort(-gains, kind="stable").tolist():
            if gains[j] <= gains[i] * (1 + 1e-12):
                break
            if matroid.extends(rest.tolist(), j):
                chosen = (chosen - {i}) | {j}
                exchanges += 1
                break
    return np.array(sorted(chosen), np.int64), exchanges
