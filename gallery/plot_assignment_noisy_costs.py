r"""
Assignment from noisy costs
===========================

*Ten couriers, ten orders, and travel times that differ from day to day. Which assignment is best on average, and
which if bad days matter?*

Assignments are the corners of the Birkhoff polytope of doubly stochastic matrices X, the plans of optimal transport
between equal weights; a matrix in between says how often each courier gets each order. A step sees two days, C and C',
and asks for one assignment: the mean of :math:`\langle C, X\rangle + \frac{\lambda}{2} \langle C - C', X\rangle^2` is
the expected total plus λ times its variance.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

import onesfw as fw

plt.style.use("onesfw.pictures")
N, NORTH = 10, np.arange(10) % 2 == 1
rng = np.random.default_rng(4)
couriers, orders = (
    np.column_stack([rng.uniform(0, 10, N), 5 + np.where(NORTH, 1, -1) * rng.uniform(0.3, 2, N)]) for _ in range(2)
)
minutes = 2 * np.linalg.norm(couriers[:, None] - orders, axis=2)
bridge = NORTH[:, None] != NORTH  # the way leads over the river


def days(count):
    """Minutes from every courier to every order: noise, and on 22 % of the days a jam on the bridges."""
    delays = 10 * np.maximum(rng.exponential(size=(count, 1, 1)) - 1.5, 0.0)
    return (minutes + rng.normal(size=(count, N, N)) + bridge * delays).astype(np.float32)


def cost(aversion):
    weight = jnp.asarray(aversion)  # an array: another weight compiles nothing

    def loss(X, row):
        first, second = (jnp.sum(day * X) for day in row)
        return first + weight / 2 * (first - second) ** 2

    return loss


pairs = (days(3_000), days(3_000))
risks = (0.0, 0.015)
plans = [np.asarray(fw.minimize(fw.FiniteSum(cost(r), pairs), fw.sets.Birkhoff(N), steps=20_000).x) for r in risks]

# %%
# The answer
# ----------
# On average the assignment is best that scipy finds from the true means, and takes four orders over the river. Where
# bad days matter, two of these stay on their side: an average day takes longer, a bad one much less.

mean = minutes + bridge * 10 * np.exp(-1.5)
crossings = [np.sum(bridge * plan) for plan in plans]
assert np.sum(mean * plans[0]) < 1.01 * mean[linear_sum_assignment(mean)].sum()
assert crossings[1] < crossings[0] - 1
others = days(20_000)
figure, panels = plt.subplots(3, 1, figsize=(5.4, 7.6))
for place, (risk, plan) in enumerate(zip(risks, plans, strict=True)):
    axes, totals = panels[place], np.einsum("dij,ij->d", others, plan)
    axes.axhspan(4.9, 5.1, color="C5", alpha=0.4, linewidth=0)
    for i, j in zip(*np.nonzero(plan > 0.02), strict=True):
        axes.plot(*np.stack([couriers[i], orders[j]], 1), color=f"C{place}", alpha=float(plan[i, j]), linewidth=2.5)
    axes.plot(*couriers.T, "s", color="C2", markersize=7, label="courier")
    axes.plot(*orders.T, "o", color="C4", markersize=7, label="order")
    axes.set(title=f"λ = {risk}: {totals.mean():.1f} minutes on average, std {totals.std():.1f}", xticks=[], yticks=[])
    panels[2].hist(totals, np.linspace(20, 160, 70), histtype="step", linewidth=1.8, label=f"λ = {risk}")
    stderr, bad = totals.std() / np.sqrt(len(totals)), np.quantile(totals, 0.95)
    print(f"λ = {risk}: {totals.mean():.2f} ± {stderr:.2f} minutes on average; one day in twenty takes over {bad:.1f}")
panels[0].legend(ncols=2, loc="lower left")
panels[2].set(xlabel="minutes of all couriers on one day", ylabel="days of 20,000", yscale="log")
panels[2].legend()
