r"""
A loss that is not convex
=========================

*Some labels are wrong. Does a loss that gives up on hopeless rows do better than the logistic one? And what can be
said about its answer, as it is not convex?*

The sigmoid loss :math:`1/(1 + e^{y\,a \cdot x})` of a row is at most 1, however wrong it is. For such smooth losses the
theorem is about :math:`x_o`, an iterate chosen at random, and about its Frank-Wolfe gap, which ``result.gap`` measures.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw
from onesfw.sklearn import OneSFWClassifier

plt.style.use("onesfw.pictures")
COLUMNS, ROWS, SETS = 20, 2_000, 4
ball = fw.sets.L2Ball(8.0, shape=COLUMNS)


def sigmoid(x, row):
    a, y = row
    return jax.nn.sigmoid(-y * (a @ x))


def draw(seed, count, wrong=0.0):
    """Rows and labels. Large rows of one side leave the range of an instrument: it says −1, whatever is true."""
    a = np.random.default_rng(seed).normal(size=(count, COLUMNS)).astype(np.float32)
    margin = a[:, :5].sum(1)
    size = margin + 2 * a[:, 10]
    return a, np.where(size > np.quantile(size, 1 - wrong), -1.0, np.sign(margin)).astype(np.float32)


test, truth = draw(1_000, 20_000)
shares = np.array([0.0, 0.05, 0.1, 0.2])
right = np.zeros((2, len(shares), SETS))
for place, wrong in enumerate(shares):
    for seed in range(SETS):
        objective = fw.FiniteSum(sigmoid, rows := draw(seed, ROWS, wrong))
        bent = fw.minimize(objective, ball, steps=10_000, algorithm=fw.one_sfw("nonconvex"), evaluate=False)
        plain = OneSFWClassifier("l2", radius=8.0, fit_intercept=False).fit(*rows)
        right[:, place, seed] = [100 * np.mean(np.sign(test @ x) == truth) for x in (bent.x, plain.coef_[0])]

# %%
# What comes back, and how near to a stationary point it is: with ``schedule="paper"`` the theorem's x_o, by default a
# corrected last iterate. The gap is 0 at stationary points only.

objective = fw.FiniteSum(sigmoid, draw(0, ROWS, 0.1))
lengths = np.array([600, 3_000, 15_000])
gaps = np.zeros((2, len(lengths), SETS))
for which, schedule in enumerate(("auto", "paper")):
    rule = fw.one_sfw("nonconvex", schedule=schedule)
    for place, steps in enumerate(lengths.tolist()):
        gaps[which, place] = fw.minimize(objective, ball, steps=steps, algorithm=rule, replicates=SETS).gap

# %%
# The answer
# ----------
# It does: rows that contradict all others pull the logistic model over, and hardly move the sigmoid one. And the gap
# says how stationary the answer is. It is no promise that no other point is better.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.6))
accuracy, stationarity = (100 * shares, right, ("sigmoid", "logistic")), (lengths, gaps, ("default", "theorem's $x_o$"))
for axes, (at, found, names) in ((top, accuracy), (bottom, stationarity)):
    for which, name in enumerate(names):
        axes.plot(at, np.median(found[which], axis=1), "os"[which] + "-", label=name)
        axes.fill_between(at, found[which].min(1), found[which].max(1), color=f"C{which}", alpha=0.25, linewidth=0)
    axes.legend()
top.set(xlabel="labels that are −1 whatever is true, %", ylabel="accuracy on clean rows, %")
top.set_title(f"Lines: medians of {SETS}; bands: all of them")
bottom.set(xlabel="steps", ylabel="Frank-Wolfe gap", xscale="log", yscale="log")
bent, plain = np.median(right[:, -1], axis=1)
print(f"{shares[-1]:.0%} lost labels: accuracy {bent:.1f} % with the sigmoid loss, {plain:.1f} % with the logistic one")
print(f"gap after {lengths[-1]:,} steps: {np.median(gaps[0, -1]):.3f} by default, {np.median(gaps[1, -1]):.3f} of x_o")
