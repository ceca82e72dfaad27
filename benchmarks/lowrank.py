"""Matrix completion: errors on real ratings, time to a gap, paths, rivals, and a large generated matrix; one core.

    python benchmarks/lowrank.py flixster [rival]   # test RMSE and rank of `complete`, and of rivals where they install
    python benchmarks/lowrank.py ridge      # biases shrunk alike, or as is estimated, on parts of flixster's training
    python benchmarks/lowrank.py jester
    python benchmarks/lowrank.py gap        # seconds to a relative gap of 1e-3 against plain Frank-Wolfe to 1e-2
    python benchmarks/lowrank.py path       # twenty radii against one cold fit
    python benchmarks/lowrank.py copt       # against copt's trace ball, to equal objective
    python benchmarks/lowrank.py large [millions of entries] [largest rank, 0 for any]
    python benchmarks/lowrank.py news20     # accuracy of OneSFWClassifier("trace") against that of "l1"

Real data are found through ONESFW_DATA. Rivals: pip install scikit-surprise cmfrec copt. Times are seconds
of one processor.
"""

from __future__ import annotations

import itertools
import lzma
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from sparse_common import installed, version

from onesfw.lowrank import complete, radius_path
from onesfw.lowrank.corrective import Limits, biases_alone, certified, descend, first_atoms, fit, measured
from onesfw.lowrank.observed import Observed, observe, triplets
from onesfw.lowrank.singular import Scaled, leading

Ratings = tuple[np.ndarray, np.ndarray, np.ndarray]
LIMIT = 40.0  # seconds for a rival
SOFT_STEPS = 25


def cpu(call: Callable[[], object]) -> tuple[object, float]:
    begun = time.process_time()
    value = call()
    return value, time.process_time() - begun


def data_file(name: str) -> Path:
    folder = os.environ.get("ONESFW_DATA")
    if folder is None or not (Path(folder) / name).exists():
        sys.exit(f"{name} is needed in the folder that ONESFW_DATA names")
    return Path(folder) / name


def flixster() -> tuple[Ratings, Ratings, tuple[int, int]]:
    """The split of its publishers: 23,556 ratings to learn, 2,617 to test."""
    with lzma.open(data_file("flixster-3000.tsv.xz"), "rt") as file:
        lines = [line.split() for line in file]
    lines = [line for line in lines if line[0].isdigit()]
    table = np.array([line[:3] for line in lines], float)
    learnt = np.array([line[3] == "train" for line in lines])
    entries = table[:, 0].astype(int) - 1, table[:, 1].astype(int) - 1, table[:, 2]
    return tuple(x[learnt] for x in entries), tuple(x[~learnt] for x in entries), (3000, 3000)  # type: ignore[return-value]


def jester() -> tuple[Ratings, Ratings, tuple[int, int]]:
    """Four fifths to learn, seed 0."""
    with lzma.open(data_file("jester-data-1.csv.xz"), "rt") as file:
        table = np.genfromtxt(file, delimiter=",")[:, 1:]
    rows, cols = np.nonzero(table != 99)
    entries = rows, cols, table[rows, cols]
    learnt = np.random.default_rng(0).random(len(rows)) < 0.8
    return tuple(x[learnt] for x in entries), tuple(x[~learnt] for x in entries), table.shape  # type: ignore[return-value]


def generated() -> tuple[Ratings, Ratings, tuple[int, int]]:
    """943 × 1,682, 80,000 entries, popular columns first: rank 10, signal of standard deviation 0.5, noise of 0.8."""
    rng = np.random.default_rng(0)
    shape = (943, 1682)
    places = np.unique(rng.integers(0, 943, 120_000) * 1682 + (1682 * rng.random(120_000) ** 2.5).astype(int))
    places = rng.permutation(places)[:100_000]
    rows, cols = np.divmod(places, 1682)
    left, right = rng.standard_normal((943, 10)), rng.standard_normal((1682, 10))
    signal = 0.5 * np.einsum("kc,kc->k", left[rows], right[cols]) / 10**0.5
    entries = rows, cols, 3.5 + signal + 0.8 * rng.standard_normal(len(rows))
    learnt = rng.random(len(rows)) < 0.8
    return tuple(x[learnt] for x in entries), tuple(x[~learnt] for x in entries), shape  # type: ignore[return-value]


def rmse(predictions: np.ndarray, test: Ratings, bounds: tuple[float, float]) -> float:
    return float(np.sqrt(np.mean((np.clip(predictions, *bounds) - test[2]) ** 2)))


def ours(train: Ratings, test: Ratings, shape: tuple[int, int], keys: int) -> None:
    complete(*(x[:500] for x in train), shape, radius=0.1, gap_tol=0.5)  # compile
    for key in range(keys):
        model, seconds = cpu(lambda key=key: complete(*train, shape, key=key))  # type: ignore[misc]
        scores = model.evaluate(*test)  # type: ignore[attr-defined]
        print(
            f"   onesfw, key {key}: RMSE {scores.rmse:.5f} ± {scores.rmse_stderr:.4f}, radius {model.radius:.4g}, rank "  # type: ignore[attr-defined]
            f"{model.rank}, relative gap {model.gap / model.value:.1e}, {seconds:.2f} s"  # type: ignore[attr-defined]
        )


def rivals(train: Ratings, test: Ratings, shape: tuple[int, int], only: str) -> None:
    """Each at its defaults, and tuned on a tenth of the training entries; predictions clipped to the range."""
    bounds = (float(train[2].min()), float(train[2].max()))
    held = np.random.default_rng(1).random(len(train[2])) < 0.1
    inner, outer = tuple(x[~held] for x in train), tuple(x[held] for x in train)
    for ridge in (None, (3.0, 3.0)):
        data = observe(triplets(*train, shape), "squared", ridge=ridge)
        zero = biases_alone(data, 1.0)
        error = rmse(data.mean + zero.bu[test[0]] + zero.bi[test[1]], test, bounds)
        kind = "shrunk as by onesfw, by" if ridge is None else "shrunk by"
        print(f"   biases alone, {kind} {data.ridge[0]:.3g} and {data.ridge[1]:.3g} entries: RMSE {error:.5f}")
    for name, grid, run in (
        (surprise_svd.__doc__, SURPRISE, surprise_svd),
        (cmf.__doc__, CMF, cmf),
        (soft_impute_plain.__doc__, SOFT, soft_impute_plain),
        (soft_impute.__doc__, SOFT, soft_impute),
    ):
        name = str(name).splitlines()[0]
        package = name.split()[0]
        if not name.startswith(only):
            continue
        reference = package == "softImpute,"
        if not reference and installed({"scikit-surprise": "surprise"}.get(package, package)) is None:
            continue
        title = name if reference else f"{name} ({version(package)})"
        try:
            predictions, seconds = cpu(lambda run=run: run(train, test, shape, None))  # type: ignore[misc]
            print(f"   {title}, default: RMSE {rmse(predictions, test, bounds):.5f}, {seconds:.1f} s")  # type: ignore[arg-type]
            found = []
            begun = time.process_time()
            for choice in grid:
                if time.process_time() - begun > 4 * LIMIT:
                    break
                found.append((rmse(run(inner, outer, shape, choice), outer, bounds), choice))
            best = min(found)[1]
            tuning = time.process_time() - begun
            error = rmse(run(train, test, shape, best), test, bounds)
            where = edges([choice for _, choice in found], best)
            print(
                f"   {name}, tuned over {len(found)} of {len(grid)} settings to {best}{where}: RMSE {error:.5f}, "
                f"{tuning:.1f} s of tuning",
                flush=True,
            )
        except Exception as error:
            print(f"   {name} is left out: {type(error).__name__}: {str(error).splitlines()[0][:100]}")


SURPRISE = list(itertools.product((1, 3, 10, 50), (20, 60, 180), (0.02, 0.05, 0.1, 0.2, 0.4)))
CMF = list(itertools.product((1, 3, 10, 40), (5.0, 10.0, 20.0, 40.0, 80.0, 160.0), (1.0, 3.0, 10.0)))
SOFT = [(share,) for share in (0.9, 0.8, 0.7, 0.6, 0.5)]


def edges(grid: list[tuple[float, ...]], best: tuple[float, ...]) -> str:
    """Which of the numbers of a choice are the least or the largest that were tried."""
    places = [k for k, column in enumerate(zip(*grid, strict=True)) if best[k] in (min(column), max(column))]
    return f", at an edge in place {', '.join(str(k + 1) for k in places)}" if places else ", inside of its grid"


def surprise_svd(
    train: Ratings, test: Ratings, shape: tuple[int, int], choice: tuple[int, int, float] | None
) -> np.ndarray:
    """scikit-surprise SVD"""
    from surprise import SVD, Dataset, Reader

    reader = Reader(rating_scale=(train[2].min(), train[2].max()))
    import pandas as pd

    table = Dataset.load_from_df(pd.DataFrame({"u": train[0], "i": train[1], "r": train[2]}), reader)
    model = SVD(random_state=0) if choice is None else SVD(choice[0], choice[1], reg_all=choice[2], random_state=0)
    model.fit(table.build_full_trainset())
    return np.array([model.predict(u, i).est for u, i in zip(test[0], test[1], strict=True)])


def cmf(train: Ratings, test: Ratings, shape: tuple[int, int], choice: tuple[int, float, float] | None) -> np.ndarray:
    """cmfrec CMF"""
    import scipy.sparse
    from cmfrec import CMF as Model

    options = {"verbose": False, "nthreads": 1}
    if choice is not None:  # weights of both biases, then of the factors
        options |= {"k": choice[0], "lambda_": [choice[2]] * 2 + [choice[1]] * 4}
    model = Model(**options)
    model.fit(scipy.sparse.coo_matrix((train[2], (train[0], train[1])), shape=shape))
    return np.asarray(model.predict(test[0], test[1]))


def soft_impute_plain(train: Ratings, test: Ratings, shape: tuple[int, int], choice: tuple[float] | None) -> np.ndarray:
    """softImpute, a reference written here, on what biases shrunk by 3 leave"""
    return soft_impute(train, test, shape, choice, ridge=(3.0, 3.0))


def soft_impute(
    train: Ratings,
    test: Ratings,
    shape: tuple[int, int],
    choice: tuple[float] | None,
    ridge: tuple[float, float] | None = None,
) -> np.ndarray:
    """softImpute, a reference written here, on what our biases leave

    Z ← S_λ(P(Y) + P⊥(Z)) (Mazumder, Hastie and Tibshirani 2010): P keeps the known entries, S_λ shrinks the singular
    values by λ, a share of the largest one of P(Y). The matrix is sparse + low rank and never dense; 40 values at most.
    """
    import scipy.sparse
    from scipy.sparse.linalg import LinearOperator, svds

    data = observe(triplets(*train, shape), "squared", ridge=ridge)
    zero = biases_alone(data, 1.0)
    rest = train[2] - data.mean - zero.bu[train[0]] - zero.bi[train[1]]
    place = (train[0], train[1])
    largest = svds(scipy.sparse.csr_array((rest, place), shape=shape), 1, random_state=0)[1][0]
    level = (0.5 if choice is None else choice[0]) * largest
    U, s, Vt = np.zeros((shape[0], 1)), np.zeros(1), np.zeros((1, shape[1]))
    for _ in range(SOFT_STEPS):
        known = np.einsum("kc,kc->k", U[place[0]] * s, Vt.T[place[1]])
        sparse = scipy.sparse.csr_array((rest - known, place), shape=shape)
        whole = LinearOperator(
            shape,
            matvec=lambda v, Z=sparse, U=U, s=s, Vt=Vt: Z @ v.ravel() + U @ (s * (Vt @ v.ravel())),
            rmatvec=lambda v, Z=sparse, U=U, s=s, Vt=Vt: Z.T @ v.ravel() + Vt.T @ (s * (U.T @ v.ravel())),
        )
        before = s
        u, values, vt = svds(whole, min(40, max(int((s > 0).sum()) + 5, 6)), random_state=0)
        keep = np.argsort(-values)
        keep = keep[values[keep] > level]
        if not len(keep):
            break
        U, s, Vt = u[:, keep], values[keep] - level, vt[keep]
        if len(s) == len(before) and np.linalg.norm(s - before) < 1e-4 * np.linalg.norm(s):
            break
    base = data.mean + zero.bu[test[0]] + zero.bi[test[1]]
    return base + np.einsum("kc,kc->k", U[test[0]] * s, Vt.T[test[1]])


def ridges() -> None:
    """Five parts of flixster's training ratings, each held out in turn: biases shrunk alike, and as is estimated."""
    train, _, shape = flixster()
    part = np.random.default_rng(7).integers(0, 5, len(train[2]))
    bounds = (float(train[2].min()), float(train[2].max()))
    for ridge in ((3.0, 3.0), None):
        errors = []
        for held in range(5):
            inner, outer = tuple(x[part != held] for x in train), tuple(x[part == held] for x in train)
            data = observe(triplets(*inner, shape), "squared", ridge=ridge)
            zero = biases_alone(data, 1.0)
            alone = rmse(data.mean + zero.bu[outer[0]] + zero.bi[outer[1]], outer, bounds)
            errors.append((alone, complete(*inner, shape, ridge=ridge).evaluate(*outer).rmse))
        alone, both = np.sqrt(np.mean(np.square(errors), axis=0))
        print(f"   ridge {ridge or 'estimated'}: biases alone {alone:.5f}, with X {both:.5f}")


def residual_problem(name: str) -> Observed:
    """Ratings without their biases: one problem for every method, over the weighted ball."""
    train, _, shape = {"flixster": flixster, "jester": jester, "generated": generated}[name]()
    data = observe(triplets(*train, shape), "squared", ridge=(3.0, 3.0), dtype=np.float64)
    zero = biases_alone(data, 1.0)
    rest = train[2] - data.mean - zero.bu[train[0]] - zero.bi[train[1]]
    return observe(triplets(train[0], train[1], rest, shape), "squared", ridge=(0.0, 0.0), dtype=np.float64)


def plain_frank_wolfe(
    data: Observed, radius: float, goal: float, limit: float, key: int = 0
) -> tuple[float, float, int]:
    """(seconds, relative gap, steps): atoms from the same oracle, warm-started, and an exact line search."""
    begun = time.process_time()
    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.ptr))
    z, start, rng = np.zeros(data.n, data.y.dtype), None, np.random.default_rng(key)
    atoms_taken = 0
    while True:
        e = z - data.y
        value = float(e @ e) / 2 / data.n
        operator = Scaled(data.ptr, data.cols, e, 1 / np.sqrt(data.p), 1 / np.sqrt(data.q))
        atoms = leading(operator, 1, rng, accuracy=3e-3, start=start, dtype=data.y.dtype)
        gap = (float(e @ z) + radius * atoms.values[0]) / data.n
        if gap <= goal * value or time.process_time() - begun > limit:
            break
        start = atoms.start(operator)
        left, right = atoms.left[:, 0] / np.sqrt(data.p), atoms.right[:, 0] / np.sqrt(data.q)
        d = ((-radius * left)[rows] * right[data.cols]).astype(data.y.dtype) - z
        z += data.y.dtype.type(min(1.0, -float(e @ d) / float(d @ d))) * d
        atoms_taken += 1
    return time.process_time() - begun, gap / value, atoms_taken


def gap_race(name: str, radius: float, keys: int) -> None:
    """To a relative gap of 1e-3, against plain Frank-Wolfe to 1e-2, in double precision; medians over keys, in turn."""
    double = residual_problem(name)
    data = replace(double, y=double.y.astype(np.float32))
    fit(data, radius, Limits(3e-2), 0)  # compile
    plain_frank_wolfe(double, radius, 10.0, 1.0)
    ours, others = [], []
    for key in range(keys):
        begun = time.process_time()
        point, _ = fit(data, radius, Limits(1e-3), key)
        ours.append((time.process_time() - begun, point.gap / point.value, point.rank, point.steps, point.rounds))
        others.append(plain_frank_wolfe(double, radius, 1e-2, 100.0, key))
    seconds, other = (sorted(run[0] for run in runs) for runs in (ours, others))
    typical = sorted(ours)[keys // 2]
    print(
        f"   {name}, radius {radius:g}, {keys} keys: onesfw {typical[0]:.3f} s ({seconds[0]:.3f} to {seconds[-1]:.3f}) "
        f"to {max(run[1] for run in ours):.1e} and less; the median one has rank {typical[2]}, {typical[3]} steps in "
        f"{typical[4]} rounds"
    )
    middle = sorted(others)[keys // 2]
    print(
        f"      plain Frank-Wolfe {middle[0]:.3f} s ({other[0]:.3f} to {other[-1]:.3f}) to "
        f"{max(run[1] for run in others):.1e} and less, {middle[2]} atoms: ratio of the medians "
        f"{middle[0] / typical[0]:.1f}"
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
    """A generated matrix of the size of MovieLens 100K; ratings whose models have a small and a large rank."""
    for name, radius in (("generated", 0.5), ("flixster", 0.1), ("flixster", 0.3), ("jester", 5.0)):
        gap_race(name, radius, 3 if name == "jester" else 15)


def path_race() -> None:
    train, _, shape = flixster()
    complete(*train, shape, radius=0.1, gap_tol=0.5)
    path, seconds = cpu(lambda: radius_path(*train, shape))
    whole = 0.0
    best = path.best_radius  # type: ignore[attr-defined]
    _, whole = cpu(lambda: radius_path(*train, shape, radii=list(best * np.geomspace(0.1, 1.5, 20))))
    _, cold = cpu(lambda: complete(*train, shape, radius=best))
    print(f"   default path, {len(path.radii)} radii until it ended: {seconds:.2f} s = {seconds / cold:.1f} cold fits")  # type: ignore[attr-defined]
    print(f"   20 radii around the best: {whole:.2f} s = {whole / cold:.1f} cold fits of {cold:.2f} s")


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


def large(millions: float, max_rank: int | None) -> None:
    """1e6 × 1e5 at 20 millions: rank 3, unit noise, signal of standard deviation 3; every default, in one run."""
    m, n, count = int(50_000 * millions), int(5_000 * millions), int(1e6 * millions)
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((m, 3), np.float32), rng.standard_normal((n, 3), np.float32) * np.float32(3**0.5)

    def draw(size: int) -> Ratings:
        i, j = rng.integers(0, m, size, np.int32), rng.integers(0, n, size, np.int32)
        y = rng.standard_normal(size, np.float32)
        for c in range(3):
            y += A[i, c] * B[j, c]
        return i, j, y

    train, test = draw(count), draw(200_000)
    complete(*(x[:500] % 400 for x in train[:2]), train[2][:500], gap_tol=0.5)  # compile
    before, begun, wall = peak_megabytes(), time.process_time(), time.perf_counter()
    model = complete(*train, (m, n), max_rank=max_rank)
    seconds, wall = time.process_time() - begun, time.perf_counter() - wall
    peak = peak_megabytes()
    print(model.path)
    print(model)
    error = model.evaluate(*test).rmse
    print(f"   {m:,} × {n:,}, {count:,} entries: test RMSE {error:.4f} (noise 1), rank {model.rank}, {model.status}")
    print(f"   {seconds:.0f} s of processor, {wall:.0f} s by the clock, peak {peak:.0f} MB ({before:.0f} MB before)")


def peak_megabytes() -> float:
    """Of this process since it began (VmHWM)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def news20() -> None:
    """Twenty classes, tf-idf rows of length 1, four fifths to learn, seed 0; the trace-norm model against the l1 model.

    The l1 model at the radius that it chooses itself; and, in its favour, at the best on the test rows of three more.
    """
    from sklearn.feature_extraction.text import TfidfTransformer
    from sparse_data import text_set

    from onesfw.sklearn import OneSFWClassifier

    X, y = text_set("news20")
    order = np.random.default_rng(0).permutation(len(y))
    learnt, held = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    weigh = TfidfTransformer(sublinear_tf=False)
    X.data = np.log1p(X.data)
    X = weigh.fit(X[learnt]).transform(X)
    few = learnt[:500]
    for constraint, radius in (("trace", None), ("l1", None), ("l1", 100.0), ("l1", 300.0), ("l1", 1000.0)):
        OneSFWClassifier(constraint, radius=10.0, random_state=0).fit(X[few], y[few])  # compile
        model = OneSFWClassifier(constraint, radius=radius, random_state=0)
        _, seconds = cpu(lambda model=model: model.fit(X[learnt], y[learnt]))  # type: ignore[misc]
        accuracy = model.score(X[held], y[held])
        error = (accuracy * (1 - accuracy) / len(held)) ** 0.5
        which = "its own radius" if radius is None else "radius"
        print(f"   {constraint}, {which} {model.radius_:g}: {accuracy:.4f} ± {error:.4f}, {seconds:.1f} s", flush=True)


def main() -> None:
    part = sys.argv[1] if len(sys.argv) > 1 else "flixster"
    print(f"{part}, {version('numba')}")
    if part == "flixster":
        ours(*flixster(), keys=10)
        rivals(*flixster(), only=sys.argv[2] if len(sys.argv) > 2 else "")
    elif part == "jester":
        ours(*jester(), keys=1)
    elif part == "large":
        millions, rank = [*sys.argv[2:], *("20", "0")[len(sys.argv) - 2 :]]
        large(float(millions), int(rank) or None)
    else:
        {"ridge": ridges, "gap": gap_races, "path": path_race, "copt": copt_race, "news20": news20}[part]()


if __name__ == "__main__":
    main()
