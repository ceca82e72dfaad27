"""Linear models as they come, without a setting but the radius where one is named: what a new user gets."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, normalize
from sparse_data import text_set

from onesfw.linear import LOSSES, Settings, evaluate, examples, train
from onesfw.linear.defaults import ANYWHERE
from onesfw.sklearn import OneSFWClassifier, OneSFWRegressor

INSTANCES = 40
LONG, LONG_INSTANCES = 60_000, 8


def digits() -> None:
    """Ten classes; a quarter held out."""
    X, y = load_digits(return_X_y=True)
    X, test, y, test_y = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    for radius in (10.0, 20.0, None):
        model = OneSFWClassifier(radius=radius, random_state=0).fit(scaler.transform(X), y)
        print(
            f"   digits, radius {model.radius_:.3g}{'' if radius else ' (chosen)'}: accuracy "
            f"{model.score(scaler.transform(test), test_y):.4f}, largest gap {np.max(model.gap_):.1e}",
            flush=True,
        )


def breast_cancer() -> None:
    """Norms of prox-SAGA's models: the loss, and the nonzeros."""
    X, y = load_breast_cancer(return_X_y=True)
    X, signs = StandardScaler().fit_transform(X), np.where(y == 1, 1.0, -1.0)
    for norm in (5.29, 15.55):
        first = OneSFWClassifier(radius=norm, random_state=0).fit(X, y)  # whose penalty is prox-SAGA's
        chances = 1 / (1 + np.exp(signs * first.decision_function(X)))
        penalty = np.abs(X.T @ (signs * chances)).max()
        saga = LogisticRegression(
            l1_ratio=1.0, C=1 / penalty, solver="saga", tol=1e-4, max_iter=5_000, random_state=0
        ).fit(X, y)  # fmt: skip
        size = np.abs(saga.coef_).sum()
        theirs = np.logaddexp(0, -signs * (X @ saga.coef_[0] + saga.intercept_[0])).mean()
        model = OneSFWClassifier(radius=size, random_state=0).fit(X, y)
        print(
            f"   breast cancer, norm {size:.2f}: loss {model.objective_:.6f}, less prox-SAGA's "
            f"{model.objective_ - theirs:+.1e}; {np.count_nonzero(model.coef_)} nonzeros, prox-SAGA "
            f"{np.count_nonzero(saga.coef_)}",
            flush=True,
        )


def newsgroups() -> None:
    """Twenty classes at the radius that is chosen."""
    X, y = text_set("news20")
    forms = {"as they are": X, "of length 1": normalize(X), "tf-idf": TfidfTransformer().fit_transform(X)}
    for form, rows in forms.items():
        rows, test, targets, test_y = train_test_split(rows, y, test_size=0.25, stratify=y, random_state=0)
        begun = time.process_time()
        model = OneSFWClassifier(random_state=0).fit(rows, targets)
        print(
            f"   news20, rows {form}: accuracy {model.score(test, test_y):.4f} at the chosen radius "
            f"{model.radius_:.3g}, {time.process_time() - begun:.0f} s",
            flush=True,
        )


def badly_scaled(rng: np.random.Generator, counts: bool, rows: int | None = None) -> tuple[Any, Any]:
    """Columns of standard deviations from 0.009 to 3,814, heavy tails among them; a target that few of them explain."""
    drawn, columns = int(rng.integers(100, 2_000)), int(rng.integers(3, 60))
    rows = rows or drawn
    Z = rng.standard_t(rng.choice([3, 5, 100]), size=(rows, columns))
    Z[:, rng.random(columns) < 0.3] **= 2
    scales = np.exp(rng.uniform(np.log(0.009), np.log(3_814), columns))
    signal = np.tanh(Z[:, : min(5, columns)]) @ rng.normal(size=min(5, columns))
    y = rng.poisson(np.exp(signal)) if counts else 50 * signal + 20 * rng.standard_t(2, size=rows) + 300
    return Z * scales + rng.normal(size=columns) * scales, y.astype(float)


def constants() -> None:
    """The training loss over that of the best constant, where columns have unlike scales; estimators and streams."""
    for loss in ("poisson", "huber", "squared"):
        ratios = []
        for seed in range(INSTANCES):
            X, y = badly_scaled(np.random.default_rng([seed, 1]), loss == "poisson")
            data = examples(X, y, None, X.shape[1], LOSSES[loss])
            settings = Settings(X.shape[1], loss, intercept=ANYWHERE)
            model = OneSFWRegressor(loss=loss, epsilon=1.0, random_state=0).fit(X, y)  # Huber's δ of streams
            blocks = ((X[i : i + 100], y[i : i + 100]) for i in range(0, len(y), 100))
            streamed = train(blocks, loss=loss, features=X.shape[1], buffer=100)
            constant = evaluate(settings, data, np.zeros(X.shape[1])).value[0]
            unit = constant - least_loss(loss, y)
            ratios.append(
                [
                    (value - constant) / unit + 1
                    for value in (model.objective_, LOSSES[loss].value(streamed.margins(X), y).mean())
                ]
            )
        worst = np.max(ratios, axis=0)
        print(
            f"   {loss} on {INSTANCES} badly scaled sets: loss over that of the best constant at most {worst[0]:.3f} "
            f"in memory, {worst[1]:.3f} in one pass of a stream",
            flush=True,
        )


def long_streams() -> None:
    """The same for streams of more rows than are kept of them."""
    for loss in ("poisson", "huber", "squared"):
        ratios = []
        for seed in range(LONG_INSTANCES):
            X, y = badly_scaled(np.random.default_rng([seed, 2]), loss == "poisson", LONG)
            data = examples(X, y, None, X.shape[1], LOSSES[loss])
            blocks = ((X[i : i + 1_000], y[i : i + 1_000]) for i in range(0, LONG, 1_000))
            streamed = train(blocks, loss=loss, features=X.shape[1], buffer=100)
            constant = evaluate(Settings(X.shape[1], loss, intercept=ANYWHERE), data, np.zeros(X.shape[1])).value[0]
            lost = LOSSES[loss].value(streamed.margins(X), y).mean() - constant
            ratios.append(lost / (constant - least_loss(loss, y)) + 1)
        print(f"   {loss} on {len(ratios)} streams of {LONG:,} such rows: at most {max(ratios):.3f}", flush=True)


def least_loss(loss: str, y: np.ndarray) -> float:
    """What the targets allow at least."""
    return float(np.mean(y - np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0)), 0.0))) if loss == "poisson" else 0.0


def defaults() -> None:
    print("\n== What the defaults give")
    digits()
    breast_cancer()
    constants()
    long_streams()
    newsgroups()
