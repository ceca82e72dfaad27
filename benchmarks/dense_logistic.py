"""The problem of `loop.py` and `accelerator.py`: dense logistic loss over an l1 ball, float32."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import onesfw as fw


def problem(d: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows, labels from a sparse linear model with noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)).astype(np.float32)
    truth = np.zeros(d)
    truth[: max(1, d // 10)] = rng.standard_normal(max(1, d // 10))
    noise = rng.standard_normal(n) * np.linalg.norm(truth)
    return rows, np.where(rows @ truth + noise > 0, 1, -1).astype(np.float32)


def logistic(rows: np.ndarray, labels: np.ndarray, order: np.ndarray | None = None) -> fw.FiniteSum:
    """The objective through the public interface, with a fresh lambda at every call."""
    return fw.FiniteSum(lambda x, row: jnp.logaddexp(0.0, -row[1] * (row[0] @ x)), (rows, labels), indices=order)


def ours(objective: fw.FiniteSum, radius: float, steps: int, **options: object) -> fw.Result:
    """A run without evaluation, with the paper's schedule unless another algorithm is given."""
    ball = fw.sets.L1Ball(radius, shape=objective.data[0].shape[1])
    return fw.minimize(
        objective, ball, steps=steps, evaluate=False, **{"algorithm": fw.one_sfw(schedule="paper"), **options}
    )
