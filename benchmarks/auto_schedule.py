"""one_sfw's default against the best of nineteen fixed rules, in hindsight, at equal samples.

    python benchmarks/auto_schedule.py [problem ...] [--samples 10000,100000] [--seeds 16] [--draw 1] [--first 1000]

Problems: the zoo's convex ones, five that are not in it (`fresh_problems.py`; --draw is the seed of their instances),
the two non-convex ones against STORM, and "seconds" at d = 1,000 against schedule="tuned". The fixed rule is chosen on
4 seeds; everything printed is measured on others, from --first on; of more than 16, the ratio of each 16 is printed
too, which shows what 16 leave to chance. "gradients" says how many more evaluations "auto" takes than
"tuned", a Hessian-vector product counted as two. "auto" and "tuned" run through `fw.minimize`, in float64.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import fixed_rules as fixed
import fresh_problems
import jax
import numpy as np
from dense_logistic import logistic as dense_logistic
from dense_logistic import ours
from dense_logistic import problem as dense_problem
from rich.console import Console
from rich.table import Table

import onesfw as fw
from onesfw import zoo
from onesfw.experiments.runs import measure
from onesfw.zoo import logistic

TRIED = range(4)  # seeds on which a fixed rule is chosen
KEY = 20_261_116
BLOCK = 16  # seeds that a limit is stated for
CONVEX = (
    "logistic", "logistic-generated", "logistic-wide", "interpolation", "quadratic-interior", "quadratic-face",
    "quadratic-noisy", "gaussian",
)  # fmt: skip
NONCONVEX = ("sigmoid", "indefinite")
NONE = np.zeros((1, 1))


def kernel_arguments(name: str) -> tuple[object, ...]:
    """A convex problem of the zoo as the numba loop takes it, but for the seed and the rule."""
    problem = zoo.get(name)
    start = np.asarray(problem.start(), float)
    d = start.size
    if name.startswith("logistic"):
        data = (
            logistic.generated_rows(5000, 20, 2020) if name == "logistic-generated" else logistic.breast_cancer_rows()
        )
        radius = float(problem.constraint.radius)
        return (fixed.LOGISTIC, *map(np.ascontiguousarray, data), NONE, 0.0, 0.0, fixed.L1, radius, NONE, 0, start)
    if name == "interpolation":
        rows, targets = (np.ascontiguousarray(leaf, float) for leaf in problem.objective.data)
        return fixed.SQUARES, rows, targets, NONE, 0.0, 0.0, fixed.L1, 3.0, NONE, 0, start
    if name == "gaussian":
        return fixed.GAUSSIAN, np.eye(d), np.zeros(d), NONE, 0.0, 0.5, fixed.SIMPLEX, 1.0, NONE, 0, start
    linear = problem.gradient(np.zeros(d))
    matrix = np.ascontiguousarray(problem.gradient(np.eye(d)) - linear)
    sigma = 20.0 if name == "quadratic-noisy" else 1.0
    off = matrix - np.diag(np.diag(matrix))
    return fixed.QUADRATIC, matrix, linear, off, 1.0, sigma, fixed.SIMPLEX, 1.0, NONE, 0, start


def row_of(
    name: str,
    arguments: tuple[object, ...],
    error: Callable[[np.ndarray], np.ndarray],
    solve: Callable[[int, str, int], fw.Result],
    budgets: list[int],
    fresh: range,
) -> list[tuple[str, ...]]:
    """A row for each budget: the best fixed rule and its error, then the multiples of it."""
    seeds = len(fresh)
    looks = np.array(sorted(budgets))

    def errors(rule: str, among: range) -> np.ndarray:
        number, parameter, a = fixed.RULES[rule]
        return np.array(
            [error(fixed.run(*arguments, seed, looks, number, float(parameter), float(a))) for seed in among]
        )

    tried = {rule: errors(rule, TRIED).mean(0) for rule in fixed.RULES}
    best = [min(tried, key=lambda rule: tried[rule][i]) for i in range(len(looks))]
    paper = errors(next(iter(fixed.RULES)), fresh)
    rows = []
    for i, samples in enumerate(looks):
        reference = errors(best[i], fresh)[:, i]
        runs = {schedule: solve(int(samples), schedule, seeds) for schedule in ("tuned", "auto")}
        found = {schedule: error(flat(run.x, seeds)) for schedule, run in runs.items()}
        work = {schedule: np.mean(run.gradients + 2 * run.hvps) for schedule, run in runs.items()}
        more = float(work["auto"] / work["tuned"] - 1)
        if seeds > BLOCK:
            parts = [part.reshape(-1, BLOCK).mean(1) for part in (found["auto"], reference)]
            print(
                f"   {name}, {samples:,}: auto, {BLOCK} seeds each:",
                *(f"{r:.2f}" for r in np.sort(parts[0] / parts[1])),
            )
        rows.append(
            (
                name, f"{samples:,}", best[i], f"{reference.mean():.2e}", ratio(paper[:, i], reference),
                ratio(found["tuned"], reference), ratio(found["auto"], reference), f"{100 * more:+.0f} %",
            )
        )  # fmt: skip
    return rows


def flat(x: object, seeds: int) -> np.ndarray:
    """Points in rows."""
    return np.concatenate([np.asarray(leaf, float).reshape(seeds, -1) for leaf in jax.tree.leaves(x)], 1)


def ratio(over: np.ndarray, under: np.ndarray) -> str:
    """mean(over)/mean(under) ± half its 95 % interval, the seeds of both resampled."""
    rng = np.random.default_rng(0)
    means = [e[rng.integers(0, len(e), (2_000, len(e)))].mean(1) for e in (over, under)]
    low, high = np.quantile(means[0] / means[1], [0.025, 0.975])
    return f"{over.mean() / under.mean():.2f} ± {(high - low) / 2:.2f}"


def convex_rows(name: str, budgets: list[int], fresh_seeds: range, draw: int) -> list[tuple[str, ...]]:
    """The rows of a convex problem, of the zoo or drawn anew."""
    key = KEY + fresh_seeds.start - 1_000
    if name in fresh_problems.MAKERS:
        fresh = fresh_problems.make(name, draw)
        like = jax.tree.map(
            lambda shape: jax.ShapeDtypeStruct(shape, np.float64), fresh.constraint.template(), is_leaf=is_shape
        )
        with jax.enable_x64(True):
            start = jax.tree.map(np.asarray, fresh.constraint.start(like))

        def solve(samples: int, schedule: str, seeds: int) -> fw.Result:
            return fw.minimize(
                fresh.objective, fresh.constraint, start, steps=samples, replicates=seeds, key=key, evaluate=False,
                algorithm=fw.one_sfw(schedule=schedule),
            )  # fmt: skip

        return row_of(name, fresh.arguments, lambda x: fresh.value(x) - fresh.best, solve, budgets, fresh_seeds)
    problem = zoo.get(name)
    best = problem.optimum().value

    def run(samples: int, schedule: str, seeds: int) -> fw.Result:
        algorithm = fw.one_sfw(schedule=schedule)
        return problem.run(
            steps=samples, replicates=seeds, key=key, evaluate=False, float64=True, algorithm=algorithm
        )  # fmt: skip

    return row_of(name, kernel_arguments(name), lambda x: problem.value(x) - best, run, budgets, fresh_seeds)


def is_shape(node: object) -> bool:
    """Whether a node of a template is a shape."""
    return isinstance(node, tuple) and all(isinstance(size, int) for size in node)


def gap_rows(name: str, budgets: list[int], seeds: int) -> list[tuple[str, ...]]:
    """The Frank-Wolfe gap of each method's own output: E over x_o for STORM and the theorem's schedule."""
    methods = {
        "storm": fw.storm(),
        "one_sfw[paper]": fw.one_sfw("nonconvex", schedule="paper"),
        "one_sfw[auto], last": fw.one_sfw("nonconvex", output="last"),
        "one_sfw[auto], x_o": fw.one_sfw("nonconvex", output="random"),
        "one_sfw[auto]": fw.one_sfw("nonconvex"),
    }
    rows = []
    for samples in budgets:
        gaps = [
            measure(zoo.get(name), method, samples, seeds, KEY).measures["gap"][:, -1] for method in methods.values()
        ]
        shown = [f"{g.mean():.4f} ± {g.std(ddof=1) / len(g) ** 0.5:.4f}" for g in gaps]
        rows.append((name, f"{samples:,}", *shown))
    return rows


def seconds(budgets: list[int]) -> list[str]:
    """Seconds of "auto" over those of "tuned", d = 1,000: medians of 15 interleaved calls after warm-up."""
    objective = dense_logistic(*dense_problem(1_000, 5_000, 0))
    clocks = (time.perf_counter, time.process_time)
    lines = []
    for samples in budgets:
        taken: dict[str, list[list[float]]] = {"tuned": [], "auto": []}
        for turn in range(16):
            for schedule, times in taken.items():
                begun = [clock() for clock in clocks]
                ours(objective, 5.0, samples, key=turn, algorithm=fw.one_sfw(schedule=schedule))
                times.append([clock() - start for clock, start in zip(clocks, begun, strict=True)])
        tuned, auto = (np.median(times[1:], 0) for times in taken.values())
        parts = (
            f"{name}: tuned {1e3 * t:.0f} ms, auto {1e3 * a:.0f} ms, ratio {a / t:.2f}"
            for name, t, a in zip(("by the clock", "of processors"), tuned, auto, strict=True)
        )
        lines.append(f"d = 1,000, {samples:,} samples, {'; '.join(parts)}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=[*CONVEX, *fresh_problems.MAKERS, *NONCONVEX, "seconds"])
    parser.add_argument("--samples", default="10000,100000")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--draw", type=int, default=1)
    parser.add_argument("--first", type=int, default=1_000)
    asked = parser.parse_args()
    budgets = [int(number) for number in asked.samples.split(",")]
    console = Console(width=160)
    table = Table(
        "problem", "samples", "best of 19 fixed rules", "F − F*", "paper", "tuned", "auto", "gradients, HVPs twice"
    )
    gaps = Table("problem", "samples", "storm", "one_sfw[paper]", "auto, x_(T+1)", "auto, x_o", "one_sfw[auto]")
    for name in asked.problems:
        if name == "seconds":
            for line in seconds(budgets):
                console.print(line)
        elif name in NONCONVEX:
            for row in gap_rows(name, budgets, asked.seeds):
                gaps.add_row(*row)
                console.print(*row, sep=" | ")
        else:
            for row in convex_rows(name, budgets, range(asked.first, asked.first + asked.seeds), asked.draw):
                table.add_row(*row)
                console.print(*row, sep=" | ")
    for made in (table, gaps):
        if made.rows:
            console.print(made)


if __name__ == "__main__":
    main()
