"""Many runs on a CPU: what a sweep costs, and which engine serves cross-validation and stability selection.

    ONESFW_DATA=… python benchmarks/sweeps.py cores engines stability bounds lasso real

`cores`: seconds of a sweep over radii × folds, and of the same runs by `minimize` one after another, in turn; compiled
beforehand. `engines`: cross-validation of dense rows by the linear engine and by `fw.sweep`, as the `engine` of
OneSFWClassifierCV: seconds, and how far the validation losses are from those of models solved to 1e-9. `stability`:
selections of half-samples by either engine of StabilitySelector, against the known support. `bounds`: false selections
on average, against the bound that was asked for. `lasso`: OneSFWRegressorCV against LassoCV. All of these on generated
rows. `real`: both estimators against LassoCV and LogisticRegressionCV with its l1 penalty (liblinear), 20 penalties and
the same number of folds, on real rows: the loss on halves of the rows that none of them saw, and seconds.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Sequence

import jax
import numpy as np
import sklearn
from dense_logistic import logistic, problem
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sparse_data import real

import onesfw as fw
from onesfw.linear import LOSSES, Settings, examples, stability_selection
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.radius_folds import FOLD_TOL, cross_validate
from onesfw.linear.swept import Engine
from onesfw.sklearn import OneSFWClassifierCV, OneSFWRegressorCV

SIZES = ((20, 50_000), (200, 20_000), (1_000, 5_000))  # d, and steps of a run


def cores(repeats: int, sizes: tuple[tuple[int, int], ...] = SIZES) -> None:
    """The cost of a sweep over that of its runs one after another, divided by the cores."""
    count = len(os.sched_getaffinity(0))
    for d, steps in sizes:
        rows, labels = problem(d, 2_000, 0)
        objective = logistic(rows, labels)
        balls = [fw.sets.L1Ball(r, shape=d) for r in np.geomspace(0.5, 50, 6)]
        folds = fw.rows.folds(2_000, 5)
        parts = [objective.only(numbers) for numbers in folds]
        root = jax.random.key(0)

        def alone(parts=parts, balls=balls, root=root, steps=steps) -> list[float]:
            values = []
            for c, ball in enumerate(balls):
                for f, part in enumerate(parts):
                    key = jax.random.fold_in(root, c * len(parts) + f)
                    values.append(fw.minimize(part, ball, steps=steps, key=key).value)
            return values

        def swept(objective=objective, balls=balls, folds=folds, steps=steps) -> list[float]:
            return fw.sweep(objective, balls, steps=steps, rows=folds).value.ravel().tolist()

        same = alone() == swept()
        seconds = {alone: [], swept: []}
        for _ in range(repeats):
            for way, times in seconds.items():
                begun = time.perf_counter()
                way()
                times.append(time.perf_counter() - begun)
        one, many = (float(np.median(times)) for times in seconds.values())
        print(
            f"d = {d:>5,}, 6 radii × 5 folds, {steps:,} steps each: one after another {one:.2f} s, "
            f"sweep {many:.2f} s on {count} cores, {many / (one / count):.2f} of the ideal; the same values: {same}",
            flush=True,
        )


def engines() -> None:
    """Cross-validation of dense rows by either engine: small on a CPU, larger on an accelerator."""
    if jax.default_backend() == "cpu":
        engines_on(200, 2_000, np.geomspace(0.5, 50, 10), (10_000, 100_000))
        return
    for d in (100, 1_000):
        engines_on(d, 5_000, np.geomspace(0.3, 30, 20), (20_000, 100_000, 1_000_000))


def engines_on(d: int, n: int, grid: np.ndarray, steps: Sequence[int]) -> None:
    """Seconds once compiled, and how far losses are from those of models solved to 1e-9."""
    rows, labels = problem(d, n, 1)
    folds = fw.rows.folds(n, 5)
    pairs = [(learnt, np.setdiff1d(np.arange(n), learnt)) for learnt in folds]
    radii = [float(r) for r in grid]
    data = examples(rows.astype(np.float64), labels.astype(np.float64), None, d, LOSSES["logistic"])
    settings = Settings(d)
    exact = cross_validate(settings, data, pairs, radii, engine=Engine("linear", 1e-9, 1), n_jobs=-1).losses
    mean = exact.mean(1)
    best = int(mean.argmin())
    print(f"{n:,} × {d:,}, {len(radii)} radii × 5 folds; the best radius is {radii[best]:.3g}", flush=True)
    ways = {"linear engine": Engine("linear", FOLD_TOL, 1)}
    ways |= {f"sweep, {count:,} steps": Engine("sweep", FOLD_TOL, count) for count in steps}
    for way, engine in ways.items():
        for some in (radii[: 1 if jax.default_backend() == "cpu" else None], radii):  # compiled in the first
            begun = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = cross_validate(settings, data, pairs, some, engine=engine, n_jobs=-1)
            seconds = time.perf_counter() - begun
        away, marks, chosen = np.abs(found.losses - exact), found.unsolved.any(axis=1), found.chosen()
        print(
            f"   {way}: {seconds:.2f} s, losses off by at most {away.max():.1e}, the median {np.median(away):.1e}; "
            f"{marks.sum()} radii with a gap over a tenth; radius {radii[chosen]:.3g}, whose loss is "
            f"{mean[chosen] - mean[best]:.1e} above the best",
            flush=True,
        )


def with_support(n: int, d: int, true: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of columns that are alike, targets, and the columns that they depend on."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)).astype(np.float32)
    rows[:, 1:] += 0.5 * rows[:, :-1]
    rows /= rows.std(axis=0)
    support = rng.choice(d, true, replace=False)
    y = (rows[:, support] @ rng.choice([-1.0, 1.0], true) + rng.normal(size=n)).astype(np.float32)
    return rows, y - y.mean(), support


def bounds(repeats: int) -> None:
    """False selections on average against what is promised."""
    n, d, true = 200, 200, 5
    for promised in (0.5, 1.0, 3.0):
        for assumption in ("none", "r_concave"):
            lines = []
            for seed in range(repeats):
                rows, y, support = with_support(n, d, true, seed)
                data = examples(rows, y.astype(np.float64), None, d, LOSSES["squared"])
                found = stability_selection(
                    Settings(d, "squared", intercept=ANYWHERE), data, key=seed, expected_false=promised,
                    assumption=assumption, pairs=25,
                )  # fmt: skip
                right = len(np.intersect1d(found.stable, support))
                lines.append((right, len(found.stable) - right))
            right, false = np.array(lines, float).T
            print(
                f"at most {promised:g} false, {assumption}: {false.mean():.3f} ± "
                f"{false.std(ddof=1) / len(false) ** 0.5:.3f} false, {right.mean():.2f} of {true} found, "
                f"{repeats} sets of rows",
                flush=True,
            )


def stability(repeats: int) -> None:
    """Selections with a known support, by either engine."""
    n, d, true = 200, 200, 5
    totals: dict[str, list[tuple[float, int, int]]] = {}
    for seed in range(repeats):
        rows, y, support = with_support(n, d, true, seed)
        data = examples(rows, y.astype(np.float64), None, d, LOSSES["squared"])
        settings = Settings(d, "squared", intercept=ANYWHERE)
        ways = {
            "linear engine": {},
            **{f"sweep, {t:,} steps": {"engine": "sweep", "steps": t} for t in (2_000, 20_000)},
        }
        for way, options in ways.items():
            begun = time.perf_counter()
            found = stability_selection(settings, data, key=seed, n_jobs=-1, **options)
            note(totals, way, time.perf_counter() - begun, found.stable, support)
    for way, lines in totals.items():
        seconds, right, false = (np.array(column) for column in zip(*lines, strict=True))
        print(
            f"{way}: {np.median(seconds):.1f} s, {right.mean():.2f} of {true} found, {false.mean():.2f} false "
            f"± {false.std(ddof=1) / len(false) ** 0.5:.2f} on average over {repeats} sets of rows",
            flush=True,
        )


def note(
    totals: dict[str, list[tuple[float, int, int]]], way: str, seconds: float, stable: np.ndarray, support: np.ndarray
) -> None:
    """Remember one selection."""
    right = len(np.intersect1d(stable, support))
    totals.setdefault(way, []).append((seconds, right, len(stable) - right))


def lasso(repeats: int) -> None:
    """The regression whose radius is chosen against the one whose penalty is, errors on rows drawn anew."""
    for n, d in ((200, 100), (500, 1_000), (5_000, 100)):
        lines = []
        for seed in range(repeats):
            rng = np.random.default_rng(100 + seed)
            truth = np.where(np.arange(d) < 10, rng.normal(size=d), 0.0)
            A, B = rng.normal(size=(n, d)), rng.normal(size=(2_000, d))
            y, z = A @ truth + 2 * rng.normal(size=n), B @ truth
            if seed == 0:
                OneSFWRegressorCV(random_state=0, radii=2, cv=2).fit(A, y)
            line = []
            for model in (OneSFWRegressorCV(random_state=seed), LassoCV(cv=5)):
                begun = time.perf_counter()
                model.fit(A, y)
                line += [time.perf_counter() - begun, float(np.mean((model.predict(B) - z) ** 2))]
            lines.append(line)
        ours, error, theirs, other = np.median(lines, axis=0)
        print(
            f"{n:,} × {d:,}: OneSFWRegressorCV {ours:.2f} s, error {error:.4f}; LassoCV {theirs:.2f} s, {other:.4f}; "
            f"errors' ratio {np.median([line[1] / line[3] for line in lines]):.3f}",
            flush=True,
        )


def real_rows() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Real rows whose columns have unit variance, and targets; numbers, or −1 and 1."""
    found = {}
    for name, source in (("diabetes", load_diabetes()), ("breast cancer", load_breast_cancer())):
        labels = source.target if name == "diabetes" else 2.0 * source.target - 1
        found[name] = StandardScaler().fit_transform(source.data), labels
    for name, rows in (("a9a", 6_000), ("ijcnn1", 6_000), ("mushrooms", 6_000)):
        matrix, labels = real(name)
        some = np.random.default_rng(0).permutation(len(labels))[:rows]
        found[name] = matrix[some].toarray(), labels[some]
    return found


def compared(repeats: int) -> None:
    """The radius against the penalty, each chosen by cross-validation, on real rows."""
    for name, (rows, targets) in real_rows().items():
        classes = len(np.unique(targets)) == 2
        lines = []
        for seed in range(repeats):
            order = np.random.default_rng(seed).permutation(len(targets))
            learnt, held = order[::2], order[1::2]
            ours = (OneSFWClassifierCV if classes else OneSFWRegressorCV)(random_state=seed)
            theirs = LassoCV(cv=5, alphas=20)
            if classes:
                theirs = LogisticRegressionCV(
                    Cs=20, cv=5, l1_ratios=(1.0,), solver="liblinear", scoring="neg_log_loss", max_iter=1_000,
                    intercept_scaling=100.0, use_legacy_attributes=False,
                )  # fmt: skip
            line = []
            for model in (ours, theirs):
                begun = time.perf_counter()
                model.fit(rows[learnt], targets[learnt])
                seconds = time.perf_counter() - begun
                if classes:
                    loss = log_loss(targets[held], model.predict_proba(rows[held]))
                else:
                    loss = float(np.mean((model.predict(rows[held]) - targets[held]) ** 2))
                line += [seconds, loss, np.count_nonzero(model.coef_)]
            lines.append(line)
        ours, loss, nonzeros, theirs, other, others = np.median(lines, axis=0)
        ratios = np.array([line[1] / line[4] for line in lines])
        print(
            f"{name}, {len(targets) // 2:,} × {rows.shape[1]}: onesfw {ours:.2f} s, loss {loss:.5g}, {nonzeros:.0f} "
            f"columns; scikit-learn {theirs:.2f} s, loss {other:.5g}, {others:.0f} columns; losses' ratio "
            f"{ratios.mean():.4f} ± {ratios.std(ddof=1) / len(ratios) ** 0.5:.4f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Many runs on a CPU.")
    ways = {"cores": cores, "stability": stability, "bounds": bounds, "lasso": lasso, "real": compared}
    parser.add_argument("parts", nargs="+", choices=(*ways, "engines"))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"onesfw {fw.__version__}, jax {jax.__version__}, scikit-learn {sklearn.__version__}")
    for part in options.parts:
        if part == "engines":
            engines()
        else:
            ways[part](options.repeats)


if __name__ == "__main__":
    main()
