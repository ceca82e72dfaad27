r"""
A loss that is not convex
=========================

*A quarter of the labels is wrong. Does a loss that gives up on hopeless rows do better than the logistic one, and what can
be said about its answer, as it is not convex?*

The sigmoid loss :math:`1/(1 + e^{y\,a \cdot x})` counts a row as at most 1, however wrong it is. For such smooth losses the
theorem is about :math:`x_o`, an iterate chosen at random, and its Frank-Wolfe gap; ``result.gap`` measures it afterwards.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw

plt.style.use("onesfw.pictures")
COLUMNS, ROWS, SEEDS = 20, 2_000, 12
ball = fw.sets.L2Ball(8.0, shape=COLUMNS)


def sigmoid(x, row):
    a, y = row
    return jax.nn.sigmoid(-y * (a @ x))


def logistic(x, row):
    a, y = row
    return jnp.logaddexp(0.0, -y * (a @ x))


def draw(seed, count, wrong=0.0):
    """Rows and labels. The wrong labels are those of the largest rows of one side: an outage of one instrument, say."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(count, COLUMNS)) * rng.gamma(2.0, 0.5, (count, 1))
    side = a @ np.r_[np.ones(5), np.zeros(COLUMNS - 5)]
    spoilt = side + a[:, 10] > np.quantile(side + a[:, 10], 1 - wrong)
    return a.astype(np.float32), np.where(spoilt, -1.0, np.sign(side)).astype(np.float32)


# %%
# Accuracy on clean rows, where so many of the labels that were learnt are wrong, over twelve data sets:

test, truth = draw(1_000, 20_000)
shares = np.array([0.0, 0.05, 0.1, 0.15, 0.2, 0.25])
right = np.zeros((2, len(shares), SEEDS))
for place, wrong in enumerate(shares):
    for seed in range(SEEDS):
        rows = draw(seed, ROWS, wrong)
        bent = fw.minimize(fw.FiniteSum(sigmoid, rows), ball, steps=20_000, algorithm=fw.one_sfw("nonconvex"))
        plain = fw.minimize(fw.FiniteSum(logistic, rows), ball, steps=20_000)
        right[:, place, seed] = [np.mean(np.sign(test @ run.x) == truth) for run in (bent, plain)]

# %%
# The gap of what comes back, by the number of steps. With the theorem's schedule that is x_o; its last iterate is
# ``result.x_last``. The default follows the run and corrects its last iterate.

objective = fw.FiniteSum(sigmoid, draw(0, ROWS, 0.15))
lengths = np.array([300, 1_000, 3_000, 10_000, 30_000])
gaps = np.zeros((2, len(lengths), SEEDS))
for place, steps in enumerate(lengths):
    for which, schedule in enumerate(("auto", "paper")):
        rule = fw.one_sfw("nonconvex", schedule=schedule)
        gaps[which, place] = fw.minimize(objective, ball, steps=steps, algorithm=rule, replicates=SEEDS).gap

figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.6))
for axes, at, found, names in (
    (top, 100 * shares, 100 * right, ("sigmoid", "logistic")),
    (bottom, lengths, gaps, ("default", "theorem's x_o")),
):
    for which, name in enumerate(names):
        low, middle, high = np.quantile(found[which], [0.1, 0.5, 0.9], axis=1)
        axes.plot(at, middle, "os"[which] + "-", label=name)
        axes.fill_between(at, low, high, color=f"C{which}", alpha=0.25, linewidth=0)
    axes.legend()
top.set(xlabel="wrong labels, %", ylabel="accuracy on clean rows, %")
top.set_title("Lines: medians of 12; bands: middle 80 %")
bottom.set(xlabel="steps", ylabel="Frank-Wolfe gap", xscale="log", yscale="log")
