"""Seconds to a gap: the engine of `complete` against plain Frank-Wolfe and copt; for benchmarks/lowrank.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from lowrank_data import movielens_table, residual_problem
from sparse_common import installed, version

from onesfw.lowrank.corrective import Limits, biases_alone, certified, descend, first_atoms, fit, measured
from onesfw.lowrank.observed import Observed, observe, triplets
from onesfw.lowrank.singular import Scaled, leading

LIMIT = 40.0  # seconds for copt
Vertex = tuple[float, np.ndarray, np.ndarray]
"""σ_1 of the scaled gradient and its singular vectors"""


def own_oracle(data: Observed, key: int) -> Callable[[np.ndarray], Vertex]:
    """Leading singular vectors as the library finds them, warm-started, to an accuracy of 3e-3."""
    rng, start = np.random.default_rng(key), None

    def vertex(slopes: np.ndarray) -> Vertex:
        nonlocal start
        operator = Scaled(data.ptr, data.cols, slopes, 1 / np.sqrt(data.p), 1 / np.sqrt(data.q))
        atoms = leading(operator, 1, rng, accuracy=3e-3, start=start, dtype=data.y.dtype)
        start = atoms.start(operator)
        return float(atoms.values[0]), atoms.left[:, 0], atoms.right[:, 0]

    return vertex


def arpack_oracle(data: Observed, key: int, tol: float = 0.0) -> Callable[[np.ndarray], Vertex]:
    """scipy's svds, as copt's trace ball calls it; with its default tolerance, or another one."""
    import scipy.sparse
    from scipy.sparse.linalg import svds

    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.ptr))
    scales = 1 / np.sqrt(data.p[rows] * data.q[data.cols])

    def vertex(slopes: np.ndarray) -> Vertex:
        gradient = scipy.sparse.csr_array((slopes * scales, data.cols, data.ptr), shape=data.shape)
        left, values, right = svds(gradient, 1, tol=tol, random_state=key)
        return float(values[0]), left[:, 0], right[0]

    return vertex


def plain_frank_wolfe(
    data: Observed, radius: float, goal: float, limit: float, oracle: Callable[[np.ndarray], Vertex]
) -> tuple[float, float, int]:
    """(seconds, relative gap, steps) with an exact line search."""
    begun = time.process_time()
    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.ptr))
    z = np.zeros(data.n, data.y.dtype)
    atoms_taken = 0
    while True:
        e = z - data.y
        value = float(e @ e) / 2 / data.n
        largest, left, right = oracle(e)
        gap = (float(e @ z) + radius * largest) / data.n
        if gap <= goal * value or time.process_time() - begun > limit:
            break
        left, right = left / np.sqrt(data.p), right / np.sqrt(data.q)
        d = ((-radius * left)[rows] * right[data.cols]).astype(data.y.dtype) - z
        z += data.y.dtype.type(min(1.0, -float(e @ d) / float(d @ d))) * d
        atoms_taken += 1
    return time.process_time() - begun, gap / value, atoms_taken


PLAIN = {
    "scipy's svds, as published": arpack_oracle,
    "scipy's svds to 1e-2": lambda data, key: arpack_oracle(data, key, 1e-2),
    "our oracle": own_oracle,
}


def gap_race(name: str, radius: float, keys: int, few: int) -> None:
    """To a relative gap of 1e-3, against plain Frank-Wolfe to 1e-2, in double precision; medians over keys, in turn.

    Rivals with slow oracles have few keys.
    """
    double = residual_problem(name)
    data = replace(double, y=double.y.astype(np.float32))
    fit(data, radius, Limits(3e-2), 0)  # compile
    plain_frank_wolfe(double, radius, 10.0, 1.0, own_oracle(double, 0))
    ours: list[tuple[float, float, int, int, int]] = []
    others: dict[str, list[tuple[float, float, int]]] = {title: [] for title in PLAIN}
    for key in range(keys):
        begun = time.process_time()
        point, _ = fit(data, radius, Limits(1e-3), key)
        ours.append((time.process_time() - begun, point.gap / point.value, point.rank, point.steps, point.rounds))
        for title, oracle in PLAIN.items():
            if title == "our oracle" or key < few:
                others[title].append(plain_frank_wolfe(double, radius, 1e-2, 200.0, oracle(double, key)))
    typical = sorted(ours)[keys // 2]
    print(
        f"   {name}, radius {radius:g}, {keys} keys: onesfw {typical[0]:.3f} s ({min(ours)[0]:.3f} to "
        f"{max(ours)[0]:.3f}) to {max(run[1] for run in ours):.1e} and less; the median one has rank {typical[2]}, "
        f"{typical[3]} steps in {typical[4]} rounds"
    )
    for title, runs in others.items():
        middle = sorted(runs)[len(runs) // 2]
        print(
            f"      plain Frank-Wolfe, {title}, {len(runs)} keys: {middle[0]:.3f} s ({min(runs)[0]:.3f} to "
            f"{max(runs)[0]:.3f}) to {max(run[1] for run in runs):.1e} and less, {middle[2]} atoms: ratio of the "
            f"medians {middle[0] / typical[0]:.1f}"
        )
    begun = time.process_time()
    first_atoms(data, biases_alone(data, radius), min(data.shape), np.random.default_rng(0))
    first = time.process_time() - begun
    measure, slope = measured(data, point)
    goal = 1e-3 * point.value
    begun = time.process_time()
    certified(data, measure, slope, goal, np.random.default_rng(2), False)
    last = time.process_time() - begun
    begun = time.process_time()
    steps = descend(data, point, lambda: False, 0.0)[0].steps - point.steps
    step = (time.process_time() - begun) / max(steps, 1)
    print(
        f"      first atoms {first:.4f} s, the proof at the end {last:.4f} s, a step of the factors there {step:.4f} s",
        flush=True,
    )


def gap_races() -> None:
    """Ratings whose models have a small and a large rank; MovieLens 100K and a generated matrix of its size."""
    for name, radius in (("flixster", 0.3), ("movielens", 0.5), ("flixster", 0.1), ("generated", 0.5)):
        if name != "movielens" or movielens_table() is not None:
            gap_race(name, radius, keys=15, few=3)
    gap_race("jester", 5.0, keys=3, few=1)


def copt_race() -> None:
    copt = installed("copt")
    if copt is None:
        return
    import copt.constraint

    data = residual_problem("flixster")
    m, n = data.shape
    rows = np.repeat(np.arange(m), np.diff(data.ptr))
    alpha = 0.1 * float(np.sqrt(m * n))
    uniform = observe(
        triplets(rows, data.cols, data.y, data.shape), "squared", ridge=(0.0, 0.0), weighted=False, dtype=np.float64
    )

    def f_grad(x: np.ndarray) -> tuple[float, np.ndarray]:
        e = x.reshape(m, n)[rows, data.cols] - data.y
        gradient = np.zeros((m, n))
        gradient[rows, data.cols] = e / data.n
        return float(e @ e) / 2 / data.n, gradient.ravel()

    ball = copt.constraint.TraceBall(alpha, (m, n))
    begun = time.process_time()
    reached: list[tuple[float, float]] = []

    def note(state: dict[str, object]) -> bool:
        reached.append((time.process_time() - begun, f_grad(state["x"])[0]))  # type: ignore[arg-type]
        return time.process_time() - begun < LIMIT

    copt.minimize_frank_wolfe(
        f_grad, np.zeros(m * n), ball.lmo, max_iter=10_000, lipschitz=1.0 / data.n, callback=note, step="backtracking"
    )
    seconds, objective = reached[-1]
    fit(uniform, 0.1, Limits(0.5), 0)
    begun = time.process_time()
    times: list[float] = []

    def report(point: object) -> None:
        if point.value <= objective and not times:  # type: ignore[attr-defined]
            times.append(time.process_time() - begun)

    point, _ = fit(uniform, 0.1, Limits(1e-3), 0, report=report)
    print(f"   copt's trace ball ({version('copt')}): {objective:.6f} after {seconds:.1f} s and {len(reached)} steps")
    print(
        f"   onesfw: at or below it after {times[0]:.2f} s, ratio {seconds / times[0]:.0f}; ends at {point.value:.6f}"
    )
