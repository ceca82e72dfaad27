"""Twenty classes from a file: accuracy against the estimator's, and the time of a pass against that of two classes.

    ONESFW_DATA=… python benchmarks/multiclass.py [--defaults]

With --defaults the rows are as they come, and everything but the radius is left at its default, the polish included.
Without it:
news20 with rows of length 1, a quarter held out, l1 ball. The two-class file has the same rows, the first ten classes
against the others. Times: the CPU time of a pass over rows in memory, twenty classes and two in turn, the median of the
ratios; the clock's, of the fastest pass of `train` after the first; and that of the first pass, which reads the text.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sparse_data import text_set
from threadpoolctl import threadpool_limits

import onesfw as fw
from onesfw.linear import Learner, Settings, examples
from onesfw.sklearn import OneSFWClassifier

PASSES = 20


def cpu_ratio(matrix: scipy.sparse.csr_matrix, labels: np.ndarray, radius: float, key: int) -> float:
    """The CPU time of a pass of all classes over that of two; passes take turns, so that both meet the same load."""
    classes = np.unique(labels)
    rng = np.random.default_rng(key)
    learners = []
    for targets, numbers in (
        (np.searchsorted(classes, labels).astype(float), tuple(range(len(classes)))),
        (np.where(labels <= 10, 1.0, -1.0), None),
    ):
        settings = Settings(matrix.shape[1], radius=radius, intercept=(-np.inf, np.inf), labels=numbers)
        data = examples(matrix, targets, None, matrix.shape[1], settings.loss_function, settings.labels)
        learners.append((Learner(settings), data))
        learners[-1][0].compile()
    ratios = []
    for _ in range(PASSES):
        order, seconds = rng.permutation(matrix.shape[0]), []
        for learner, data in learners:
            begun = time.thread_time()
            learner.learn_examples(data, order)
            seconds.append(time.thread_time() - begun)
        ratios.append(seconds[0] / seconds[1])
    return float(np.median(ratios))


def defaults() -> None:
    """The accuracy from a file and that of the estimator, on raw rows."""
    X, y = text_set("news20")
    train, test, train_y, test_y = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    print("  radius  key  accuracy, file  estimator  points apart (at most 0.5)  CPU seconds, file  estimator")
    with tempfile.TemporaryDirectory() as place:
        file = str(Path(place) / "train.svm")
        dump_svmlight_file(train, train_y, file, zero_based=False)
        for radius in (10.0, 100.0):
            for key in range(2):
                begun = time.process_time()
                model = fw.linear.train(file, radius=radius, features=X.shape[1], key=key)
                between = time.process_time()
                theirs = OneSFWClassifier(radius=radius, random_state=key).fit(train, train_y).score(test, test_y)
                seconds = between - begun, time.process_time() - between
                ours = np.mean(np.asarray(model.predict(test), float) == test_y)
                print(
                    f"  {radius:>6g}  {key:>3}  {ours:>14.2%}  {theirs:>9.2%}  {100 * abs(ours - theirs):>26.2f}"
                    f"  {seconds[0]:>17.1f}  {seconds[1]:>9.1f}"
                )


def main() -> None:
    X, y = text_set("news20")
    X = normalize(X)
    train, test, train_y, test_y = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    with tempfile.TemporaryDirectory() as place:
        files = {name: str(Path(place) / f"{name}.svm") for name in ("train", "test", "two")}
        dump_svmlight_file(train, train_y, files["train"], zero_based=False)
        dump_svmlight_file(test, test_y, files["test"], zero_based=False)
        dump_svmlight_file(train, np.where(train_y <= 10, 1, -1), files["two"], zero_based=False)
        print(f"news20: {X.shape[0]:,} rows, {X.shape[1]:,} features, {len(np.unique(y))} classes, {PASSES} passes")
        print(
            "  radius  key  accuracy, file  estimator  points apart (at most 0.5)"
            "  pass / two classes, CPU (10)  by the clock  first pass"
        )
        for radius in (100.0, 300.0):
            for key in range(3):
                two = fw.linear.train(files["two"], radius=radius, passes=PASSES, features=X.shape[1], key=key)
                model = fw.linear.train(
                    files["train"], radius=radius, passes=PASSES, features=X.shape[1], test=files["test"], key=key
                )
                estimator = OneSFWClassifier("l1", radius=radius, max_iter=PASSES, tol=None, random_state=key)
                theirs = estimator.fit(train, train_y).score(test, test_y)
                assert model.test is not None
                assert model.test.accuracy is not None
                ours = model.test.accuracy
                mine, pair = (np.array(m.training.pass_seconds) for m in (model, two))
                print(
                    f"  {radius:>6g}  {key:>3}  {ours:>14.2%}  {theirs:>9.2%}  {100 * abs(ours - theirs):>26.2f}"
                    f"  {cpu_ratio(train, train_y, radius, key):>28.1f}  {mine[1:].min() / pair[1:].min():>12.1f}"
                    f"  {mine[0] / pair[0]:>10.1f}"
                )


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with threadpool_limits(1):
        defaults() if "--defaults" in sys.argv[1:] else main()
