"""The sparse engine against its field: time a step, time to an accuracy, and losses without tuning.

    python benchmarks/sparse.py [speed] [schedules] [streams] [accuracy] [real] [polish] [polish-intercept] [intercept]
                                [path] [choice] [correlated] [defaults] [NAME…] [RADIUS…]

Everything runs on one core, in one process, warm-up and compilation outside the clock. Generated data: n = 50,000, 70
nonzeros a row, power-law columns, unit rows. `real` and what follows it need the folder ONESFW_DATA; names of data sets
there restrict `polish`, `polish-intercept` and `path` to them, radii the first two. Packages that are not installed are
named and left out (pip install onesfw[benchmarks] brings them).
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.linear_model import SGDClassifier
from sparse_accuracy import accuracy, copt_runner
from sparse_common import LOGISTIC, ROWS, as_examples, installed, passes, seconds, version
from sparse_data import generated, text_set
from sparse_defaults import defaults
from sparse_polish import choice, correlated, path, polished, polished_with_intercept, with_intercept
from sparse_real import real_data
from threadpoolctl import threadpool_limits

from onesfw.linear import CONSTRAINTS, SCHEDULES, Examples, Learner, Settings, evaluate, examples
from onesfw.linear.polish import polish

SGD = "SGDClassifier l1"


def time_a_step(data: Examples, constraint: str = "l1", schedule: str | None = None, rounds: int = 7) -> list[float]:
    """Microseconds a step, one figure a pass."""
    learner = Learner(Settings(data.n_features, "logistic", constraint, 100.0, schedule))
    learner.compile()
    rng = np.random.default_rng(0)
    passes(learner, data, 1)
    return [
        seconds(lambda: learner.learn_examples(data, rng.permutation(data.size))) / data.size * 1e6
        for _ in range(rounds)
    ]


def interleaved(matrix: Any, labels: np.ndarray, data: Examples, rounds: int = 7) -> dict[str, float]:
    """Microseconds a step of the schedules, of SAG and of SGD: medians of passes that take turns."""
    settings = {name: Settings(data.n_features, "logistic", "l1", 100.0, name) for name in ("auto", "c2")}
    learners = {name: Learner(setting) for name, setting in settings.items()}
    learners["sag"] = Learner(settings["auto"], rows=data.size)
    turns: dict[str, list[float]] = {name: [] for name in (*learners, SGD)}
    rng = np.random.default_rng(0)
    for learner in learners.values():
        learner.compile()
        passes(learner, data, 1)
    for _ in range(rounds):
        for name, learner in learners.items():
            order = rng.permutation(data.size)
            begun = time.perf_counter()
            learner.learn_examples(data, order)
            turns[name].append((time.perf_counter() - begun) / data.size)
        sgd = SGDClassifier(loss="log_loss", penalty="l1", max_iter=2, tol=None)
        turns[SGD].append(seconds(lambda sgd=sgd: sgd.fit(matrix, labels)) / (2 * data.size))
    return {name: 1e6 * float(np.median(values)) for name, values in turns.items()}


def speed() -> None:
    print(f"\n== Time a step, μs: median of 7 interleaved passes; {version('scikit-learn')}, {version('numba')}")
    ours: dict[int, float] = {}
    for columns in (10_000, 47_000, 1_000_000, 10_000_000):
        matrix, labels = generated(ROWS, columns)
        data = as_examples(matrix, labels)
        medians = interleaved(matrix, labels, data)
        reference = medians[SGD]
        ours[columns] = medians["auto"]
        cells = ", ".join(f"{name} {value:.2f}" for name, value in medians.items())
        print(f"   d = {columns:>10,}: {cells};  default/SGD = {medians['auto'] / reference:.2f}")
    print(f"   growth of the default from d = 10,000 to 10,000,000: {ours[10_000_000] / ours[10_000]:.2f} times")
    matrix, labels = generated(ROWS, 47_000)
    data = as_examples(matrix, labels)
    cells = ", ".join(f"{name} {np.median(time_a_step(data, name)):.2f}" for name in CONSTRAINTS)
    print(f"   the sets at d = 47,000 (default schedule): {cells}")
    single = examples(matrix.astype(np.float32), labels, None, 47_000, LOGISTIC)
    print(f"   float32 rows at d = 47,000: {np.median(time_a_step(single)):.2f}")
    others(matrix, labels, np.median(time_a_step(data)))


def others(matrix: scipy.sparse.csr_matrix, labels: np.ndarray, ours: float) -> None:
    """Public stochastic Frank-Wolfe at batch 1, microseconds a sample."""
    few = matrix[:2_000], labels[:2_000]
    if (copt := installed("copt")) is not None:
        for variant in ("SAG", "SAGA", "MHK"):
            run = copt_runner(copt, *few, 100.0, 1, variant)
            run(1)
            taken = seconds(lambda run=run: run(1)) / 2_000 * 1e6
            rival(f"{version('copt')} minimize_sfw {variant}", taken, ours)
    torch = installed("torch")
    chop = installed("chop") if torch is not None else None
    if chop is not None:
        torch.set_num_threads(1)
        taken = chop_a_sample(torch, chop, *few)
        rival(f"{version('chop-pytorch')} FrankWolfe", taken, ours)


def rival(label: str, taken: float, ours: float) -> None:
    """One line of the comparison."""
    print(f"   {label}, batch 1: {taken:.0f} μs a sample, {taken / ours:.0f} times ours")


def chop_a_sample(
    torch: Any, chop: Any, matrix: scipy.sparse.csr_matrix, labels: np.ndarray, samples: int = 500
) -> float:
    """Microseconds a sample of chop's stochastic Frank-Wolfe on dense rows, which is what it takes."""
    ball = chop.constraints.L1Ball(100.0)
    weights = torch.zeros(1, matrix.shape[1], requires_grad=True)
    optimizer = chop.stochastic.FrankWolfe([weights], lmo=[ball.lmo], lr="sublinear", momentum=0.9)
    rows = [torch.tensor(matrix[i].toarray()[0], dtype=torch.float32) for i in range(50)]

    def run() -> None:
        for i in range(samples):
            optimizer.zero_grad()
            loss = torch.nn.functional.softplus(-float(labels[i % 50]) * (weights[0] @ rows[i % 50]))
            loss.backward()
            optimizer.step()

    run()
    return seconds(run) / samples * 1e6


def schedules() -> None:
    print("\n== Logistic loss after 20 passes without tuning, generated data, d = 47,000, l1 ball")
    data = as_examples(*generated(ROWS, 47_000))
    print(f"   {'radius':>8}" + "".join(f"{name:>12}" for name in (*SCHEDULES, "sag")))
    for radius in (30.0, 100.0, 300.0, 550.0):
        values = []
        for name in (*SCHEDULES, "sag"):
            settings = Settings(47_000, "logistic", "l1", radius, None if name == "sag" else name)
            learner = passes(Learner(settings, rows=ROWS if name == "sag" else None), data, 20)
            values.append(evaluate(settings, data, learner.coef).value[0])
        best = min(values[:-1])
        print(f"   {radius:>8g}" + "".join(f"{value:>11.5f}{'*' if value == best else ' '}" for value in values))


def streams() -> None:
    """The 2 in a = 2c^(−1/2) of "auto" was chosen on a9a, ijcnn1, pcmac, reuters-moneyfx and mushrooms, not here."""
    print("\n== F − F* of the last iterate after 1 and 10 passes with an intercept, l1 ball, means of 4 seeds")
    print(f"   {'':>10}{'radius':>8}" + "".join(f"{name:>20}" for name in SCHEDULES))
    found = {"generated": generated(20_000, 5_000, 9)}
    for name in ("basehock", "classic", "rcv1-sample1000"):
        matrix, labels = text_set(f"{name}.libsvm")
        found[name.partition("-")[0]] = matrix, np.where(labels == labels.max(), 1.0, -1.0)
    for label, (matrix, labels) in found.items():
        data = as_examples(matrix, labels)
        for radius in (3.0, 30.0, 100.0):
            columns = []
            for name in SCHEDULES:
                settings = Settings(matrix.shape[1], "logistic", "l1", radius, name, intercept=(-np.inf, np.inf))
                start = np.zeros((1, matrix.shape[1])), np.zeros(1)
                least = polish(settings, data, *start, np.array([1e-7])).evaluation.value[0]
                errors = []
                for seed in range(4):
                    learner = passes(Learner(settings), data, 1, seed)
                    once = evaluate(settings, data, learner.coefs, learner.intercepts).value[0]
                    learner = passes(learner, data, 9, seed + 100)
                    often = evaluate(settings, data, learner.coefs, learner.intercepts).value[0]
                    errors.append((once - least, often - least))
                columns.append("{:>11.1e}{:>9.1e}".format(*np.mean(errors, axis=0)))
            print(f"   {label:>10}{radius:>8g}" + "".join(columns), flush=True)


PARTS: dict[str, Callable[..., None]] = {
    "speed": speed,
    "schedules": schedules,
    "streams": streams,
    "accuracy": accuracy,
    "real": real_data,
    "polish": polished,
    "polish-intercept": polished_with_intercept,
    "intercept": with_intercept,
    "path": path,
    "choice": choice,
    "correlated": correlated,
    "defaults": defaults,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with threadpool_limits(1):
        given = [word for word in sys.argv[1:] if word not in PARTS]
        radii = tuple(float(word) for word in given if word.isdecimal())
        names = tuple(word for word in given if not word.isdecimal())
        for part in [word for word in sys.argv[1:] if word in PARTS] or PARTS:
            if part in ("polish", "polish-intercept") and given:
                PARTS[part](names, radii)
            elif part == "path" and names:
                path(names)
            else:
                PARTS[part]()
