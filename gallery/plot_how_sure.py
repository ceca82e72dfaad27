"""
How sure is a coefficient?
==========================

*Twelve advertising channels and 150 weeks of sales. What does each channel bring, and how sure is that?*

No channel makes sales fall, and a unit on each brings 6 at most: coefficients lie in a ``SubSimplex``. The usual
formulas for confidence intervals know nothing of such a set. The bootstrap does: ``fw.rows.bootstrap`` draws weeks
with replacement, and ``fw.sweep`` solves the problem on 200 such draws at once.
"""

import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw

plt.style.use("onesfw.pictures")
CHANNELS, WEEKS, DRAWS = 12, 150, 200
rng = np.random.default_rng(2)
truth = np.where(np.arange(CHANNELS) < 6, np.linspace(1.0, 0.2, CHANNELS), 0.0)  # half of the channels bring nothing
spent = rng.gamma(2.0, size=(WEEKS, CHANNELS)) + 0.5 * rng.gamma(2.0, size=(WEEKS, 1))  # in some weeks more on all


def sales(noise):
    return spent @ truth + 1.5 * noise


def loss(x, row):
    week, sold = row
    return (week @ x - sold) ** 2 / 2


observed = sales(rng.normal(size=WEEKS))
objective = fw.FiniteSum(loss, (spent, observed))
K = fw.sets.SubSimplex(6.0, shape=CHANNELS)
estimate = fw.minimize(objective, K, steps=100_000)
print(estimate)
draws = fw.sweep(objective, [K], steps=5_000, rows=fw.rows.bootstrap(WEEKS, DRAWS)).x[0, :, 0]
low, high = np.quantile(draws, [0.05, 0.95], axis=0)

# %%
# The answer
# ----------
# Channels that bring something are told from the others. Of the last six some may bring a little: their intervals begin
# at 0, where the set ends.

figure, axes = plt.subplots(figsize=(5.4, 4.4))
place = np.arange(CHANNELS)
axes.hlines(place, low, high, color="C0", linewidth=5, alpha=0.35, label="middle 90 % of the draws")
axes.plot(estimate.x, place, "o", color="C0", label="estimate")
axes.plot(truth, place, "|", color="C1", markersize=16, markeredgewidth=2, label="truth")
axes.set(xlabel="sales by one unit spent", ylabel="channel", yticks=place, yticklabels=place + 1)
axes.invert_yaxis()
axes.legend(loc="lower right")
inside = (low <= truth + 1e-6) & (truth <= high)
print(f"{inside.sum()} of {CHANNELS} intervals hold the truth; {np.sum(low > 0.05)} channels certainly bring something")
