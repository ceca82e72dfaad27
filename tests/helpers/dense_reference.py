"""Algorithm 2 and SAG written out with dense vectors, for the tests of the sparse engine."""

import numpy as np
from numba import njit


@njit
def slope(loss, m, y):
    if loss == "logistic":
        return -y / (1.0 + np.exp(y * m))
    if loss == "squared_hinge":
        return -2.0 * y * max(1.0 - y * m, 0.0)
    if loss == "squared":
        return m - y
    if loss == "huber":
        return np.sign(m - y) * min(abs(m - y), 1.0)
    return np.exp(m) - y


@njit
def bend(loss, m, y):
    if loss == "logistic":
        return np.exp(-abs(m)) / (1.0 + np.exp(-abs(m))) ** 2
    if loss == "squared_hinge":
        return 2.0 if y * m < 1.0 else 0.0
    if loss == "squared":
        return 1.0
    if loss == "huber":
        return 1.0 if abs(m - y) <= 1.0 else 0.0
    return np.exp(m)


@njit
def oracle(constraint, d, r):
    v = np.zeros_like(d)
    if constraint == "l1":
        i = np.argmax(np.abs(d))
        v[i] = -r if d[i] > 0 else r
    elif constraint == "l2":
        if np.any(d != 0):
            v = -r * d / np.sqrt(np.sum(d * d))
    elif constraint == "linf":
        v = -r * np.sign(d)
    else:
        i = np.argmin(d)
        v[i] = r if constraint == "simplex" or d[i] < 0 else 0.0
    return v


@njit
def dense_run(A, y, weights, order, etas, rhos, adaptive, pace, sag, loss, constraint, r, interval):
    """(x, intercept, d): the iterate after the last step and the estimate it used."""
    n, size = A.shape
    x, d = np.zeros(size), np.zeros(size)
    if constraint == "simplex":
        x[0] = r
    low, high = interval
    b, d_b = min(max(0.0, low), high), 0.0
    x_before, b_before = x.copy(), b
    table = np.zeros(n)
    change, noise, mean_bend = 0.0, 0.0, 0.0
    for k in range(len(order)):
        t, i = k + 1, order[k]
        a = A[i]
        one = 1.0 if high > low else 0.0
        c = min((1 + np.sqrt(1 + 4 * change / max(noise, 1e-300))) / 2, 100.0)
        eta = etas[k]
        if pace > 0:
            longer = pace / np.sqrt(c)
            eta = longer / (t + longer - 1)
        new = weights[i] * slope(loss, a @ x + b, y[i])
        old = weights[i] * slope(loss, a @ x_before + b_before, y[i])
        if sag:
            d = d + (new - table[i]) * a / n
            d_b = d_b + one * (new - table[i]) / n
            table[i] = new
        else:
            rho = rhos[k]
            if adaptive:
                rho = 1.0 if t <= 2 else c / (t + c - 2)
                if t >= 2:
                    moved = np.sum(((new - old) * a) ** 2) + one * (new - old) ** 2
                    missed = np.sum((old * a - d) ** 2) + one * (old - d_b) ** 2
                    change += ((t - 1) ** 2 * moved - change) / (t - 1)
                    noise += (missed - noise) / (t - 1)
            d = new * a + (1 - rho) * (d - old * a)
            d_b = one * (new + (1 - rho) * (d_b - old))
        v = oracle(constraint, d, r)
        own = weights[i] * bend(loss, a @ x + b, y[i])
        mean_bend += (own - mean_bend) / t
        newton = d_b / max(mean_bend, own, 0.01)
        if loss == "logistic" or loss == "poisson":
            newton = min(max(newton, -1.0), 1.0)
        x_before, b_before = x, b
        x = x + eta * (v - x)
        b = min(max(b - min(1.0, 4.0 / (t + 3.0)) * newton, low), high)
    return x, b, d
