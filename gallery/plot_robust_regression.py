r"""
Robust regression over an l2 ball
=================================

*Some targets are outliers, grossly wrong, and nobody knows which. How much does that hurt least squares, and how
much the Huber loss?*

Twenty sensors predict a yield; in a share of the rows somebody wrote inches for feet, and the target is twelve times
too large. The two models keep :math:`\|x\|_2 \le 6` and differ in one word. What is measured is the distance of their
coefficients from the true ones, over 20 data sets.
"""

import matplotlib.pyplot as plt
import numpy as np

from onesfw.sklearn import OneSFWRegressor

plt.style.use("onesfw.pictures")
shares = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3])
losses = ("squared", "huber")
distance = np.zeros((len(losses), len(shares), 20))
for seed in range(20):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=20)
    X = rng.normal(size=(400, 20))
    clean = X @ truth + 0.5 * rng.normal(size=400)
    order = rng.permutation(400)
    for place, share in enumerate(shares):
        y = clean.copy()
        y[order[: round(400 * share)]] *= 12
        for which, loss in enumerate(losses):
            model = OneSFWRegressor("l2", radius=6.0, loss=loss, random_state=0).fit(X, y)
            distance[which, place, seed] = np.linalg.norm(model.coef_ - truth)

figure, axes = plt.subplots()
for which, loss in enumerate(losses):
    low, middle, high = np.quantile(distance[which], [0.1, 0.5, 0.9], axis=1)
    axes.plot(100 * shares, middle, "os"[which] + "-", color=("C1", "C0")[which], label=loss)
    axes.fill_between(100 * shares, low, high, color=("C1", "C0")[which], alpha=0.25, linewidth=0)
axes.set(xlabel="wrong targets, %", ylabel="distance to the true coefficients", yscale="log")
axes.set_title("Line: median of 20 data sets; band: middle 80 %")
axes.legend(title="loss")

# %%
# The answer
# ----------
# Without wrong targets the two are alike. From 1 % on they are not: a wrong row pulls least squares with a force that
# grows with its error, and the Huber loss with a force that does not.

for share in (0.0, 0.01, 0.1):
    squared, huber = np.median(distance[:, np.flatnonzero(shares == share)[0]], axis=1)
    print(f"{share:4.0%} wrong: distance {squared:.2f} with the squared loss, {huber:.2f} with Huber's")
assert np.all(distance[1, 1:] < distance[0, 1:])

# %%
# What the two do with one and the same row: how strongly it pulls, by how far it is off.

error = np.linspace(-8, 8, 200)
figure, axes = plt.subplots(figsize=(5.4, 2.6))
axes.plot(error, error, color="C1", label="squared")
axes.plot(error, np.clip(error, -1, 1), color="C0", label="huber")
axes.set(xlabel="error of the row", ylabel="its pull, ℓ'(error)")
axes.legend()
