"""What others predict of the entries of a matrix: scikit-surprise, cmfrec, softImpute; for benchmarks/lowrank.py."""

from __future__ import annotations

import itertools
import time

import numpy as np
from lowrank_data import Ratings, cpu, rmse
from sparse_common import installed, version

from onesfw.lowrank.corrective import biases_alone
from onesfw.lowrank.observed import observe, triplets

LIMIT = 40.0  # seconds for a rival
SOFT_STEPS = 25


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
