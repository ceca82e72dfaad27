"""Discrete submodular maximisation against greedy methods and public packages: values, certified ratios, seconds.

    python benchmarks/submodular.py [digits] [misleading] [influence] [scale] [error] [--full-celf]

Without names all parts run, in one process and one run; ratios are printed beside the figures they come from. Kernels
are warmed up outside the measurements. apricot-select and submodlib-py are compared where they are installed. The
influence part needs ca-GrQc.txt and facebook_combined.txt (plain or .xz) in the folder that ONESFW_DATA names.
"""

from __future__ import annotations

import heapq
import lzma
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import onesfw as fw
from onesfw import submodular as sm
from onesfw.submodular.facility import similarities

KEYS = 20  # over which the digits' extremes are taken
PARTS = ("digits", "misleading", "influence", "scale", "error")


def timed(call: Callable[[], Any], repeats: int = 1) -> tuple[Any, float]:
    """The answer, and the median of the seconds."""
    seconds = []
    answer = None
    for _ in range(repeats):
        begun = time.perf_counter()
        answer = call()
        seconds.append(time.perf_counter() - begun)
    return answer, float(np.median(seconds))


def line(what: str, text: str) -> None:
    print(f"  {what:<46} {text}", flush=True)


def digits() -> None:
    data = load_digits()
    similarity = similarities(data.data, "rbf")
    n, k, steps = len(similarity), 50, 10_000
    print(f"facility location on digits, n = {n}, exp(-d²/median), k = {k}, {steps:,} steps")
    function, matroid = sm.FacilityLocation(similarity), sm.UniformMatroid(n, k)
    fw.select(function, matroid, steps=100)
    sm.greedy(function, matroid)
    greedy, ours = timed(lambda: sm.greedy(function, matroid), 5)
    line("lazy greedy", f"value {greedy.value:.2f}, {ours:.3f} s")
    runs: dict[str, Callable[[], Any]] = {
        "select": lambda: fw.select(sm.FacilityLocation(similarity), matroid, steps=steps, polish=False),
        "select, polished": lambda: fw.select(sm.FacilityLocation(similarity), matroid, steps=steps),
    }
    apricot = apricot_lazy(similarity, k)
    if apricot is not None:
        runs["apricot, lazy"] = apricot
    answers, times = interleaved(runs, 5)
    for name in ("select", "select, polished"):
        chosen, seconds = answers[name], times[name]
        text = f"{chosen.value / greedy.value:.4f} of lazy greedy, ratio {chosen.ratio:.4f}, {seconds:.3f} s"
        line(f"{name} (sorting the rows included)", text)
    if apricot is not None:
        value, seconds = function.value(answers["apricot, lazy"].ranking), times["apricot, lazy"]
        share = times["select, polished"] / seconds
        line("apricot, lazy", f"value {value:.2f}, {seconds:.3f} s; select, polished, took {share:.2f} of that")
    compare_submodlib(similarity, function, k, ours)
    groups = sm.PartitionMatroid(data.target, 5)
    base = sm.greedy(function, groups)
    for polish in (False, True):
        chosen = fw.select(function, groups, steps=steps, polish=polish)
        name = "5 per class" + (", polished" if polish else "")
        line(name, f"{chosen.value / base.value:.4f} of lazy greedy ({base.value:.2f}), ratio {chosen.ratio:.4f}")
    for name, limit, least in (("50 of all", matroid, greedy), ("5 per class", groups, base)):
        for polish in (False, True):
            made = [fw.select(function, limit, steps=steps, polish=polish, key=key) for key in range(KEYS)]
            shares, ratios = [m.value / least.value for m in made], [m.ratio for m in made]
            text = f"{min(shares):.4f} to {max(shares):.4f} of lazy greedy, ratio {min(ratios):.4f} at the lowest"
            line(f"{name}{', polished' if polish else ''}, {KEYS} keys", text)


def apricot_lazy(similarity: np.ndarray, k: int) -> Callable[[], Any] | None:
    """apricot's lazy greedy, warmed up; None and a sentence where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import apricot
    except ImportError:
        line("apricot", "is not installed: pip install apricot-select")
        return None

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return apricot.FacilityLocationSelection(k, metric="precomputed", optimizer="lazy").fit(similarity)

    run()
    return run


def interleaved(runs: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Answers and median seconds, the runs taking turns: a busy machine slows all of them."""
    answers: dict[str, Any] = {}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            answers[name], seconds = timed(run)
            times[name].append(seconds)
    return answers, {name: float(np.median(seconds)) for name, seconds in times.items()}


def compare_submodlib(similarity: np.ndarray, function: sm.FacilityLocation, k: int, ours: float) -> None:
    try:
        from submodlib import FacilityLocationFunction
    except ImportError:
        line("submodlib", "is not installed: pip install submodlib-py")
        return
    made = FacilityLocationFunction(
        n=len(similarity), mode="dense", sijs=similarity.astype(np.float32), separate_rep=False
    )
    options = {"optimizer": "LazyGreedy", "stopIfZeroGain": False, "stopIfNegativeGain": False, "verbose": False}
    answer, seconds = timed(lambda: made.maximize(budget=k, show_progress=False, **options), 5)
    value = function.value([i for i, _ in answer])
    line("submodlib, lazy", f"value {value:.2f}, {seconds:.3f} s; our lazy greedy took {ours / seconds:.2f} of that")


def misleading_family(m: int, delta: float) -> tuple[sm.Coverage, sm.PartitionMatroid]:
    """m gadgets on which greedy gets m(1 + δ) of OPT = 2m."""
    incidence, groups = np.zeros((3 * m, 3 * m)), np.zeros(3 * m, int)
    for q in range(m):
        x, y, z = 3 * q, 3 * q + 1, 3 * q + 2
        incidence[x, 3 * q] = incidence[z, 3 * q] = incidence[x, 3 * q + 1] = incidence[y, 3 * q + 2] = 1
        groups[x] = groups[y] = 2 * q
        groups[z] = 2 * q + 1
    return sm.Coverage(incidence, np.tile([1, delta, 1], m)), sm.PartitionMatroid(groups, 1)


def misleading() -> None:
    m, delta = 50, 0.05
    print(f"the family that misleads greedy, m = {m}, delta = {delta}, OPT = {2 * m}")
    function, matroid = misleading_family(m, delta)
    line("greedy", f"{sm.greedy(function, matroid).value / (2 * m):.4f} of OPT")
    objective, polytope = fw.MultilinearExtension(function), fw.sets.MatroidPolytope(matroid)
    exact = fw.maximize(objective, polytope, steps=1_000, algorithm=fw.frank_wolfe("dr_submodular"))
    line("continuous greedy, exact gradients, fractional", f"{exact.value / (2 * m):.4f} of OPT")
    first = fw.maximize(objective, polytope, steps=10_000)
    line("one_sfw, 10,000 steps, fractional", f"{first.value / (2 * m):.4f} of OPT")
    for steps in (1_000, 10_000):
        values = [fw.select(function, matroid, steps=steps, polish=False, key=key).value / (2 * m) for key in range(10)]
        line(f"select, {steps:,} steps, 10 seeds", f"{np.mean(values):.4f} of OPT, the lowest {min(values):.4f}")


def read_graph(name: str) -> np.ndarray | None:
    """The edges of a graph, or None and a sentence."""
    folder = os.environ.get("ONESFW_DATA")
    found = [Path(folder) / f for f in (f"{name}.txt", f"{name}.txt.xz")] if folder else []
    path = next((f for f in found if f.exists()), None)
    if path is None:
        line(name, "is missing: set ONESFW_DATA to a folder that holds it")
        return None
    with lzma.open(path, "rt") if path.suffix == ".xz" else open(path) as lines:
        return np.array([[int(a) for a in text.split()[:2]] for text in lines if text[:1].isdigit()])


def influence(full_celf: bool = False) -> None:
    k, cases = 50, [("ca-GrQc", 0.1), ("ca-GrQc", "weighted-cascade"), ("facebook_combined", "weighted-cascade")]
    print(f"influence, k = {k}: spread over 10,000 cascades against greedy on 1e6 reverse-reachable sets")
    for name, chance in [*cases, ("facebook_combined", 0.1)]:
        edges = read_graph(name)
        if edges is None:
            continue
        function = sm.Influence(edges, chance)
        matroid = sm.UniformMatroid(function.n, k)
        heavy = name == "facebook_combined" and chance == 0.1
        steps, batch = (2_000, 2) if heavy else (20_000, 15)
        fw.select(function, matroid, steps=4, batch=2)
        function.spread([0], 10)

        def by_sets(function: sm.Influence = function, matroid: Any = matroid) -> Any:
            sets = function.sample(1_000_000, seed=1, entries=50_000_000)
            return sm.greedy(sets, matroid), sets

        (greedy, sets), seconds = timed(by_sets)
        reference = function.spread(greedy.indices, 10_000, seed=7)
        text = f"spread {reference.value:.1f} ± {reference.stderr:.1f}, {seconds:.1f} s"
        line(f"{name}, {chance}: greedy on {sets.omegas:,} sets", f"{text}, {sets.indices.size:,} entries")
        del sets
        chosen, ours = timed(
            lambda f=function, m=matroid, s=steps, b=batch: fw.select(f, m, steps=s, batch=b, polish=False)
        )
        spread = function.spread(chosen.indices, 10_000, seed=7)
        share = f"{spread.value / reference.value:.4f} of greedy's, certified ratio {chosen.ratio:.3f}"
        line(f"  select, {steps * batch:,} sets", f"spread {spread.value:.1f}: {share}, {ours:.1f} s")
        celf(function, matroid, ours, full_celf and not heavy, heavy)


def celf(function: sm.Influence, matroid: sm.UniformMatroid, ours: float, whole: bool, heavy: bool) -> None:
    """CELF with 10,000 cascades per estimate: its first pass alone, or all of it; extrapolated where it takes hours."""
    if heavy:
        nodes, count = np.random.default_rng(0).choice(function.n, 40, replace=False), 200
        _, seconds = timed(lambda: [function.spread([int(i)], count) for i in nodes])
        seconds *= 10_000 / count * function.n / nodes.size
        line("  CELF, first pass over all nodes (extrapolated)", f"{seconds:.0f} s; select took {ours / seconds:.4f}")
        return
    begun = time.perf_counter()
    gains = [(-function.spread([i], 10_000).value, i, 0) for i in range(function.n)]
    seconds = time.perf_counter() - begun
    line("  CELF, first pass over all nodes", f"{seconds:.1f} s; select took {ours / seconds:.4f} of that")
    if not whole:
        return
    heapq.heapify(gains)
    chosen: list[int] = []
    value, estimates = 0.0, function.n
    while len(chosen) < matroid.k:
        gain, i, seen = heapq.heappop(gains)
        if seen == len(chosen):
            chosen.append(i)
            value -= gain
        else:
            heapq.heappush(gains, (value - function.spread([*chosen, i], 10_000).value, i, len(chosen)))
            estimates += 1
    seconds = time.perf_counter() - begun
    spread = function.spread(chosen, 10_000, seed=7)
    text = (
        f"spread {spread.value:.1f}, {estimates:,} estimates, {seconds:.0f} s; select took {ours / seconds:.4f} of that"
    )
    line("  CELF, 10,000 cascades per estimate", text)


def random_sets(n: int, count: int, rng: np.random.Generator) -> sm.Coverage:
    """Sets of geometric sizes with mean 20, their elements Zipf 0.5 over n."""
    weights = np.arange(1, n + 1) ** -0.5
    cumulative = np.cumsum(weights / weights.sum())
    sizes = rng.geometric(1 / 20, count)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    elements = np.searchsorted(cumulative, rng.random(indptr[-1])).clip(max=n - 1).astype(np.int32)
    rows = np.repeat(np.arange(count, dtype=np.int32), sizes)
    order = np.lexsort((elements, rows))
    rows, elements = rows[order], elements[order]
    kept = np.ones(rows.size, bool)
    kept[1:] = (rows[1:] != rows[:-1]) | (elements[1:] != elements[:-1])  # a set holds an element once
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=count))])
    return sm.Coverage.from_rows(n, indptr, elements[kept], np.full(count, 1.0 / count))


def scale() -> None:
    n, count, k, steps, batch = 100_000, 1_000_000, 1_000, 5_000, 20
    print(f"coverage, n = {n:,}, {count:,} sets, k = {k:,}, {steps * batch:,} samples in {steps:,} steps")
    rng = np.random.default_rng(0)
    function, held_out = random_sets(n, count, rng), random_sets(n, 200_000, rng)
    matroid = sm.UniformMatroid(n, k)
    before = peak()
    chosen, seconds = timed(lambda: fw.select(function, matroid, steps=steps, batch=batch, polish=False))
    ours = held_out.value(chosen.indices)
    line("select", f"{ours:.4f} of held-out sets, ratio {chosen.ratio:.3f} ({chosen.phase}), {seconds:.1f} s")
    line("peak memory of the process", f"{peak():.2f} GB ({before:.2f} GB before select)")
    for epsilon in (0.1, 0.01):
        greedy, seconds = timed(lambda e=epsilon: sm.greedy(function, matroid, "stochastic", epsilon=e))
        value = held_out.value(greedy.indices)
        line(
            f"stochastic greedy, epsilon = {epsilon}",
            f"{value:.4f}, {seconds:.1f} s; select {ours / value:.4f} of that",
        )
    greedy, seconds = timed(lambda: sm.greedy(function, matroid))
    value = held_out.value(greedy.indices)
    line("lazy greedy", f"{value:.4f}, {seconds:.1f} s; select {ours / value:.4f} of that")


def peak() -> float:
    """The most memory this process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def error() -> None:
    horizons, seeds = [100, 316, 1_000, 3_162, 10_000], 48
    print(f"coverage, n = 12: E‖d_T − ∇F(x_T)‖² for T = 1e2 to 1e4, {seeds} seeds")
    rng = np.random.default_rng(0)
    function = sm.Coverage(rng.random((12, 9)) < 0.35, rng.random(9) + 0.1)
    polytope = fw.sets.MatroidPolytope(sm.UniformMatroid(12, 4))
    for sampled in (True, False):
        objective = fw.MultilinearExtension(function, sampled=sampled)
        errors = []
        for steps in horizons:
            result = fw.maximize(objective, polytope, steps=steps, replicates=seeds, evaluate=False)
            squares = [
                np.sum((np.asarray(s.estimate.d) - function.extension(np.asarray(s.previous))[1]) ** 2)
                for s in result.state
            ]
            errors.append(np.mean(squares))
        slope = np.polyfit(np.log(horizons), np.log(errors), 1)[0]
        figures = " ".join(f"{e:.2e}" for e in errors)
        line("sampled S" if sampled else "closed form", f"slope {slope:.2f}: {figures}")


def main(arguments: list[str]) -> None:
    names = [a for a in arguments if not a.startswith("--")]
    unknown = set(names) - set(PARTS)
    if unknown:
        raise SystemExit(f"there is no part {unknown.pop()!r}; choose among {', '.join(PARTS)}")
    for name in names or PARTS:
        if name == "influence":
            influence("--full-celf" in arguments)
        else:
            {"digits": digits, "misleading": misleading, "scale": scale, "error": error}[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
