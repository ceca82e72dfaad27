"""Rates of one_sfw on the zoo: slopes on log-log axes and final errors, each beside the limit it must keep.

    python benchmarks/rates_core.py [--seeds 16] [--quick]

Every figure is a mean over seeds, with a standard error from a bootstrap over the seeds. N is the number of samples,
which for one_sfw is the number of steps. `--quick` cuts the runs to a tenth or less: it shows that the script works,
and says little about rates.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from rich.console import Console
from rich.table import Table

import onesfw as fw
from onesfw import zoo
from onesfw.sets import ConvexSet
from onesfw.zoo import Problem

SEEDS = 16
BOOTSTRAPS = 500
CONVEX_LIMITS = (  # of the slope and of the suboptimality at 1e5; infinite where none is set
    ("logistic", -0.75, 5e-4),
    ("logistic-generated", np.inf, np.inf),
    ("quadratic-interior", -0.75, np.inf),
    ("quadratic-face", -0.75, np.inf),
)
GAPS = 10_000  # gaps taken in a run, evenly spaced; at all iterates of shorter runs


@dataclass(frozen=True)
class Figure:
    """A measured number, its standard error, and the limit it must keep."""

    problem: str
    what: str
    value: float
    stderr: float
    limit: float
    at_most: bool = True

    @property
    def passed(self) -> bool:
        """Whether the limit is kept."""
        return bool(self.value <= self.limit if self.at_most else self.value >= self.limit)


def slope(counts: np.ndarray, errors: np.ndarray) -> float:
    """The slope of log(mean over seeds) against log(count), by least squares; `errors` has a row for each seed."""
    return float(np.polyfit(np.log(counts), np.log(errors.mean(0)), 1)[0])


def bootstrap(statistic: Callable[[np.ndarray], float], errors: np.ndarray) -> float:
    """The standard error of a statistic of the rows, from resampled rows."""
    picks = np.random.default_rng(0).integers(0, len(errors), (BOOTSTRAPS, len(errors)))
    return float(np.std([statistic(errors[pick]) for pick in picks], ddof=1))


def slope_figure(problem: str, what: str, counts: np.ndarray, errors: np.ndarray, limit: float) -> Figure:
    """The slope over the counts, which must be at most `limit`."""
    stderr = bootstrap(lambda rows: slope(counts, rows), errors)
    return Figure(problem, f"slope of {what}, {counts[0]:,} to {counts[-1]:,}", slope(counts, errors), stderr, limit)


def mean_figure(problem: str, what: str, errors: np.ndarray, limit: float, at_most: bool = True) -> Figure:
    """The mean over seeds, which must be at most (at least) `limit`."""
    return Figure(problem, what, float(errors.mean()), float(errors.std(ddof=1) / errors.size**0.5), limit, at_most)


def at_equal_ratios(low: float, high: float, count: int) -> np.ndarray:
    """Whole numbers from `low` to `high`."""
    return np.unique(np.rint(np.geomspace(low, high, count)).astype(int))


def solve(
    problem: Problem,
    steps: int,
    seeds: int,
    dtype: type = np.float64,
    constraint: ConvexSet | None = None,
    **options: Any,
) -> fw.Result:
    """A run with the theorem's schedule from the set's own starting point, without evaluation."""
    call = fw.maximize if problem.sense == "maximize" else fw.minimize
    options.setdefault("algorithm", theorem(problem))
    return call(
        problem.objective,
        problem.constraint if constraint is None else constraint,
        first_point(problem).astype(dtype),
        steps=steps,
        replicates=seeds,
        evaluate=False,
        **options,
    )


def theorem(problem: Problem, correction: str | None = None) -> fw.Algorithm:
    """1-SFW with the schedule of the problem's theorem."""
    return fw.one_sfw(problem.setting, schedule="paper", correction=correction)


def first_point(problem: Problem) -> np.ndarray:
    """x_1."""
    with jax.enable_x64(True):
        return np.asarray(problem.constraint.start(jnp.zeros(problem.constraint.template())))


def suboptimality(problem: Problem, x: np.ndarray) -> np.ndarray:
    """|F(x) − F*| in float64, for points along the last axis."""
    assert problem.value is not None
    return np.abs(problem.value(np.asarray(x, np.float64)) - problem.optimum().value)


def convex_rates(name: str, seeds: int, most: int = 100_000) -> tuple[np.ndarray, np.ndarray]:
    """(N, suboptimality as seeds × N) for N from most/100 to `most` samples: one run passes through all of them."""
    problem, counts = zoo.get(name), at_equal_ratios(most / 100, most, 9)
    place = {int(count): i for i, count in enumerate(counts)}
    errors = np.zeros((seeds, counts.size))

    def look(row: dict[str, Any], x: Any) -> None:
        # On an accelerator the replicates come together, and the row has no number of a replicate.
        errors[row.get("replicate", slice(None)), place[row["step"]]] = suboptimality(problem, x)

    solve(problem, most, seeds, every=counts.tolist(), callbacks=[look])
    return counts, errors


class Watched(ConvexSet):
    """K with an oracle that also follows x_t, and adds up Σ_t max over v in K of ⟨∇F(x_t), y_t − v⟩.

    y_t is x_t (the Frank-Wolfe gap) or, with `greedy`, the vertex v_t (the oracle's regret); F is `sign` times the
    problem's, so that all is minimised. The gradient is exact and in float64. The sum is taken at every `stride`-th
    step from the first on. The oracle's memory carries it through the compiled loop, which therefore runs undisturbed:
    stopping at every step for a callback would take milliseconds each time.
    """

    inner: ConvexSet
    eta: Any
    gradient: Callable[..., Any] = eqx.field(static=True)
    sign: int = eqx.field(static=True)
    greedy: bool = eqx.field(static=True)
    stride: int = eqx.field(static=True)

    def lmo(self, d: Any) -> Any:
        """The inner set's."""
        return self.inner.lmo(d)

    def lmo_memory(self, like: Any) -> Any:
        """(x_1, steps, sum)."""
        return jnp.asarray(like), jnp.int32(0), jnp.zeros((), like.dtype)

    def lmo_from(self, d: Any, memory: Any) -> Any:
        """The vertex, and the memory after the step x_{t+1} = x_t + η(v_t − x_t), or x_t + η v_t with `greedy`."""
        x, steps, total = memory
        vertex = self.inner.lmo(d)

        def amount() -> Any:
            downhill = self.sign * self.gradient(x)
            return downhill @ ((vertex if self.greedy else x) - self.inner.lmo(downhill))

        total = total + lax.cond(steps % self.stride == 0, amount, lambda: jnp.zeros_like(total))
        move = vertex if self.greedy else vertex - x
        return vertex, (x + self.eta * move, steps + 1, total)

    def template(self) -> Any:
        """The inner set's."""
        return self.inner.template()

    def start(self, like: Any) -> Any:
        """The inner set's."""
        return self.inner.start(like)

    def contains(self, x: Any, tol: float = 1e-6) -> Any:
        """Whether x lies in the inner set."""
        return self.inner.contains(x, tol)

    def bounds(self, like: Any = None) -> Any:
        """The inner set's."""
        return self.inner.bounds(like)


def watched_run(problem: Problem, steps: int, seeds: int) -> tuple[np.ndarray, fw.Result]:
    """The mean over t of the gap (the regret where F is maximised), one for each seed, and the run."""
    greedy = problem.setting == "dr_submodular"
    objective, exact = problem.objective, problem.gradient
    gradient = (lambda x: objective.full_value_and_gradient(x)[1]) if isinstance(objective, fw.FiniteSum) else exact
    stride = max(1, steps // GAPS)
    eta = theorem(problem).eta(np.array([1]), steps)[0]
    sign = -1 if greedy else 1
    constraint = Watched(problem.constraint, np.asarray(eta), gradient, sign, greedy, stride)
    result = solve(problem, steps, seeds, constraint=constraint)
    memories = [state.memory for state in states(result)]
    for (x, *_), last in zip(memories, np.asarray(result.x_last), strict=True):
        np.testing.assert_allclose(x, last, atol=1e-9)  # it followed the run
    return np.array([float(total) for *_, total in memories]) / -(-steps // stride), result


def states(result: fw.Result) -> list[Any]:
    """The last state of each replicate."""
    if isinstance(result.state, list):
        return result.state
    return [jax.tree.map(lambda leaf, r=r: leaf[r], result.state) for r in range(result.replicates or 1)]


def mean_gap_rates(name: str, seeds: int, most: int = 100_000) -> tuple[np.ndarray, np.ndarray]:
    """(T, mean Frank-Wolfe gap over x_1, …, x_T as seeds × T): E of x_o's gap, with less noise. η depends on T."""
    counts = at_equal_ratios(most / 100, most, 5)
    return counts, np.stack([watched_run(zoo.get(name), int(steps), seeds)[0] for steps in counts], 1)


def submodular_rates(name: str, seeds: int, most: int = 10_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(T, ‖d_T − ∇F(x_T)‖², (1/T) Σ_t max over v of ⟨∇F(x_t), v − v_t⟩), the latter two as seeds × T."""
    problem, counts = zoo.get(name), at_equal_ratios(most / 100, most, 5)
    assert problem.gradient is not None
    errors, regrets = [], []
    for steps in counts:
        regret, result = watched_run(problem, int(steps), seeds)
        ends = states(result)
        x_last = np.array([np.asarray(state.previous) for state in ends])
        d_last = np.array([np.asarray(state.estimate.d) for state in ends])
        regrets.append(regret)
        errors.append(np.sum((d_last - problem.gradient(x_last)) ** 2, -1))
    return counts, np.stack(errors, 1), np.stack(regrets, 1)


def final_point(
    name: str, steps: int, seeds: int, dtype: type = np.float64, correction: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(x_{T+1}, F(x_{T+1}) − F*), one for each seed."""
    problem = zoo.get(name)
    x = np.asarray(solve(problem, steps, seeds, dtype, algorithm=theorem(problem, correction)).x)
    return x, suboptimality(problem, x)


def simplex_violation(x: np.ndarray) -> np.ndarray:
    """max(|Σx − 1|, −min x) in float64, for points along the last axis."""
    x = np.asarray(x, np.float64)
    return np.maximum(np.abs(x.sum(-1) - 1), -x.min(-1))


def figures(seeds: int = SEEDS, shrink: int = 1) -> Iterator[Figure]:
    """Every figure, as it is measured."""
    most = 100_000 // shrink
    for name, steepest, largest in CONVEX_LIMITS:
        counts, errors = convex_rates(name, seeds, most)
        yield slope_figure(name, "suboptimality", counts, errors, steepest)
        yield mean_figure(name, f"suboptimality at {most:,}", errors[:, -1], largest)
    for name in ("sigmoid", "indefinite"):
        yield slope_figure(name, "mean gap over iterates", *mean_gap_rates(name, seeds, most), -0.27)
    counts, errors, regrets = submodular_rates("nqp", seeds, 10_000 // shrink)
    yield slope_figure("nqp", "‖d_T − ∇F(x_T)‖²", counts, errors, -0.9)
    yield slope_figure("nqp", "LMO regret", counts, regrets, -0.6)
    for correction, limit in (("hessian", 2e-3), ("importance", 2e-3), ("as_printed", 0.05)):
        _, errors = final_point("gaussian", most, seeds, correction=correction)
        what = f"suboptimality at {most:,}, {correction}"
        yield mean_figure("gaussian", what, errors, limit, at_most=correction != "as_printed")
    yield from precision_figures(seeds, 2_000_000 // shrink**2)


def precision_figures(seeds: int, steps: int) -> Iterator[Figure]:
    """float32 against float64 after many steps."""
    _, double = final_point("quadratic-face", steps, seeds)
    x, single = final_point("quadratic-face", steps, seeds, np.float32)
    both = np.stack([single, double], 1)
    ratio = float(single.mean() / double.mean())
    stderr = bootstrap(lambda rows: float(rows[:, 0].mean() / rows[:, 1].mean()), both)
    yield Figure("quadratic-face", f"float32 / float64 suboptimality at {steps:,}", ratio, stderr, 3.0)
    violation = simplex_violation(x)
    yield Figure("quadratic-face", f"float32 violation at {steps:,}, largest", float(violation.max()), 0.0, 1e-6)


def main() -> None:
    parser = argparse.ArgumentParser(description="Rates of one_sfw on the zoo, beside their limits.")
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help=f"replicates of every run, at least 2 (default {SEEDS})"
    )
    parser.add_argument("--quick", action="store_true", help="runs of a tenth of the length: only to try the script")
    options = parser.parse_args()
    console = Console(width=max(Console().width, 110))
    begun = time.perf_counter()
    table = Table("problem", "figure", "measured", "std. error", "limit", "")
    passed = True
    for figure in figures(options.seeds, 10 if options.quick else 1):
        sign = "≤" if figure.at_most else "≥"
        limit = f"{sign} {figure.limit:g}" if np.isfinite(figure.limit) else "none"
        verdict = "" if limit == "none" else "pass" if figure.passed else "[red]FAIL"
        passed &= figure.passed
        table.add_row(figure.problem, figure.what, f"{figure.value:.3g}", f"{figure.stderr:.1g}", limit, verdict)
    console.print(f"python {shlex.join(sys.argv)}")
    console.print(
        f"onesfw {fw.__version__}, jax {jax.__version__}, numpy {np.__version__}, Python {platform.python_version()}, "
        f"{jax.default_backend()}; {options.seeds} seeds, {time.perf_counter() - begun:.0f} s"
    )
    console.print(table)
    sys.exit(0 if passed or options.quick else 1)


if __name__ == "__main__":
    main()
