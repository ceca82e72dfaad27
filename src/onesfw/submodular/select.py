"""`select`: pick a base of a matroid that maximises a set function, with a certificate of how good it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onesfw.algorithms import DR_SUBMODULAR, Algorithm
from onesfw.arguments import choose, whole_number
from onesfw.engine.keys import as_key, seed_of
from onesfw.progress import ProgressBar
from onesfw.results.trace import Trace
from onesfw.submodular.base import Estimate, Function
from onesfw.submodular.custom import SetFunction
from onesfw.submodular.greedy import check_pair
from onesfw.submodular.judges import Judge, estimate, judge_of
from onesfw.submodular.matroids import Matroid
from onesfw.submodular.rounding import Grouped, deterministic_pipage, pipage, swap_round
from onesfw.submodular.sources import Source, source_of
from onesfw.submodular.two_phases import Point, TwoPhases

ROUNDINGS = ("swap", "pipage", "deterministic")
TRACED, TICKS = 16, 100  # points of the trace, and of the progress bar
SAMPLES, MERGES, PIPAGE, CHOICE, REPORT = range(5)  # streams of the key


@dataclass(frozen=True)
class Selection:
    """What `select` chose and how good it is.

    `value` and the bound are exact for functions with finitely many ω, the log-determinant and one's own deterministic
    functions; otherwise they come from samples that had no part in the choice, with standard errors. The confidence
    rests on their means being nearly normal: an ω of a probability below 1/1,000 that carries much of f is seldom seen,
    and the bound is then too low.
    """

    indices: np.ndarray
    """The chosen elements, in increasing order."""
    value: float
    value_stderr: float
    fractional_value: float
    """F(x) at the fractional point that was rounded."""
    fractional_stderr: float
    upper_bound: float
    """No set of the matroid has a larger f: for certain if `exact`, at 95 % confidence otherwise."""
    certificate: str
    """Which bound was the tighter one: "thresholds", "gradient" or "marginals"."""
    ratio: float
    """f(S)/OPT is at least this: for certain if `exact`, at 95 % confidence otherwise."""
    ratio_stderr: float
    exact: bool
    """Whether `value`, `upper_bound` and `ratio` are certain rather than measured on samples."""
    phase: str
    """The phase whose set was better: "continuous greedy" or "Frank-Wolfe"."""
    exchanges: int
    """Improving exchanges that `polish` made."""
    x: np.ndarray
    """The fractional point that was rounded."""
    trace: Trace
    samples: int
    lmo_calls: int
    seconds: float
    method: str = field(default="one_sfw, two phases")

    def __str__(self) -> str:
        error = "" if self.exact else f" ± {self.value_stderr:.3g}"
        sure = "" if self.exact else " (95 % confidence)"
        lines = [
            f"{self.indices.size} elements chosen, {self.method}, the better set came from {self.phase}",
            f"value            {self.value:.6g}{error}",
            f"fractional value {self.fractional_value:.6g}",
            f"upper bound      {self.upper_bound:.6g}{sure}, by {self.certificate}",
            f"certified ratio  {self.ratio:.4f}{sure}",
            f"samples          {self.samples:,}, LMO calls {self.lmo_calls:,}, {self.seconds:.3g} s",
        ]
        return "\n".join(lines)


def select(
    function: Function,
    matroid: Matroid,
    *,
    steps: int,
    algorithm: Algorithm | None = None,
    rounding: str = "swap",
    polish: bool = False,
    batch: int = 1,
    key: Any = 0,
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
    """
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
    require_nonnegative(function)
    judge = judge_of(function, matroid, seed_of(key, CHOICE), seed_of(key, REPORT))
    run = TwoPhases(matroid, steps, seed_of(key, MERGES))
    source = source_of(function, batch, as_key(key), seed_of(key, SAMPLES))
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
    verdict = judge.report(chosen, best.x)
    fractional = judge.fractional(best.x)
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
        seconds=watch.seconds,
        method="one_sfw, two phases" if algorithm is None else f"{algorithm.name}, then Frank-Wolfe",
    )


def require_nonnegative(function: Function) -> None:
    """Raise a sentence where f(∅) < 0, which only one's own function can have: no share of OPT is promised then."""
    if not isinstance(function, SetFunction):
        return
    nothing = estimate(function.terms([]))
    if nothing.value < -5 * nothing.stderr - 1e-9:
        raise ValueError(f"function is negative on the empty set, {nothing.value:.6g}; add a constant so that f(∅) ≥ 0")


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
    run: TwoPhases, function: Function, matroid: Matroid, algorithm: Algorithm, key: Any
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


def rounded(point: Point, function: Function, matroid: Matroid, rounding: str, key: Any) -> Point:
    """The same x with a base from pipage."""
    if rounding == "pipage":
        return Point(point.name, point.x, pipage(point.x, matroid, seed_of(key, PIPAGE) % 2**32))
    return Point(point.name, point.x, deterministic_pipage(point.x, matroid, function))


def improve(judge: Judge, matroid: Matroid, base: np.ndarray) -> tuple[np.ndarray, int]:
    """One sweep of improving exchanges: each chosen element, the least useful first, for the best one outside."""
    chosen = {int(i) for i in base}
    rises = judge.marginals(base)
    exchanges = 0
    for i in sorted(base.tolist(), key=lambda i: rises[i]):
        rest = np.array(sorted(chosen - {i}), np.int64)
        gains = judge.marginals(rest)
        gains[rest] = -np.inf
        if isinstance(matroid, Grouped):
            gains[matroid.groups != matroid.groups[i]] = -np.inf
        for j in np.argsort(-gains, kind="stable").tolist():
            if gains[j] <= gains[i] * (1 + 1e-12):
                break
            if matroid.extends(rest.tolist(), j):
                chosen = (chosen - {i}) | {j}
                exchanges += 1
                break
    return np.array(sorted(chosen), np.int64), exchanges
