"""A dense float64 solver of small completions, by projections with an exact SVD, to compare the factored one with."""

import numpy as np

from onesfw.linear import LOSSES


def weights(shape, rows, cols, weighted):
    """p and q of the norm, as the documentation states them."""
    m, n = shape
    p, q = np.full(m, 1 / m), np.full(n, 1 / n)
    if not weighted:
        return p, q
    share = [np.bincount(x, minlength=s) / len(x) for x, s in ((rows, m), (cols, n))]
    return (p + share[0]) / 2, (q + share[1]) / 2


def onto_ball(Y, radius):
    """The nearest matrix of trace norm at most radius."""
    u, s, vt = np.linalg.svd(Y, full_matrices=False)
    if s.sum() <= radius:
        return Y
    over = (np.cumsum(s) - radius) / np.arange(1, len(s) + 1)
    return (u * np.maximum(s - over[np.flatnonzero(s > over)[-1]], 0)) @ vt


def dense_optimum(
    rows, cols, values, shape, *, radius, loss, mean, weighted=True, ridge=(3.0, 3.0), delta=1.0, turns=20_000
):
    """min F by accelerated projected gradients with restarts; no factor and no atom in it."""
    p, q = weights(shape, rows, cols, weighted)
    scale = 1 / np.sqrt(np.outer(p, q))
    function, n = LOSSES[loss], len(values)
    each = np.repeat(ridge, shape)

    def evaluate(Y, b):
        bu, bi = b[: shape[0]], b[shape[0] :]
        m = mean + (Y * scale)[rows, cols] + bu[rows] + bi[cols]
        value = (function.value(m, values, delta).sum() + each / 2 * b @ b) / n
        g = function.derivative(m, values, delta) / n
        G = np.zeros(shape)
        np.add.at(G, (rows, cols), g)
        gradient = np.concatenate([G.sum(1), G.sum(0)]) + each / n * b
        return value, G * scale, gradient if ridge[0] else 0 * b

    curve = {"squared": 1.0, "huber": 1.0, "logistic": 0.25, "poisson": 4 * max(values.max(), 1.0)}[loss]
    step = n / (
        curve * (scale[rows, cols].max() ** 2 + 2 * max(np.bincount(rows).max(), np.bincount(cols).max()) + max(ridge))
    )
    Y, b = np.zeros(shape), np.zeros(sum(shape))
    Z, c, momentum, last = Y, b, 1.0, np.inf
    best = np.inf
    for _ in range(turns):
        _, G, g = evaluate(Z, c)
        newY, newb = onto_ball(Z - step * G, radius), c - step * g
        value = evaluate(newY, newb)[0]
        best = min(best, value)
        if value > last:
            momentum, Z, c = 1.0, Y, b
            last = np.inf
            continue
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        Z, c = (new + (momentum - 1) / grown * (new - old) for new, old in ((newY, Y), (newb, b)))
        if last - value < 1e-13 and np.abs(newY - Y).max() < 1e-9:
            break
        Y, b, momentum, last = newY, newb, grown, value
    return best


def planted(shape=(14, 11), rank=2, share=0.6, noise=0.3, seed=0):
    """Rows, columns and values of a noisy matrix of low rank."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    rows, cols = np.nonzero(rng.random(shape) < share)
    return rows, cols, truth[rows, cols] + noise * rng.normal(size=len(rows))


def as_values(values, loss):
    """Values of a kind that the loss takes."""
    if loss == "logistic":
        return np.where(values > 0, 1.0, -1.0)
    return np.rint(np.exp(0.5 * values)) if loss == "poisson" else values
