r"""
Classes that share directions
=============================

*A model of ten classes has ten vectors of coefficients. From few rows, is it better to learn each for itself, or as
mixtures of a few directions that all classes share?*

An l1 or l2 ball holds each class's vector by itself, against all other classes. A ball of the trace norm,
:math:`\sum_k \sigma_k(W) \le r`, holds the whole matrix W, features × classes: its vertices are single directions that
every class may use. The radii are the defaults of ``OneSFWClassifier``, chosen on the rows that are learnt.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit

from onesfw.sklearn import OneSFWClassifier

plt.style.use("onesfw.pictures")
SIZES, SPLITS = (80, 240, 720), 4
BALLS = {"trace": ("C0", "trace norm, all classes"), "l2": ("C1", "l2, each class"), "l1": ("C2", "l1, each class")}
X, y = load_digits(return_X_y=True)
X = X / 16

# %%
# The same rows for all three, drawn anew for each size and split; accuracy on 900 others and, in brackets, how far the
# trace norm is ahead on the same rows. With few rows it is level with l2 and far ahead of l1; with more, a little ahead
# of both.
accuracy = {ball: np.zeros((len(SIZES), SPLITS)) for ball in BALLS}
models = {}
for i, size in enumerate(SIZES):
    splits = StratifiedShuffleSplit(SPLITS, train_size=size, test_size=900, random_state=size).split(X, y)
    for j, (learnt, others) in enumerate(splits):
        for ball in BALLS:
            models[ball] = OneSFWClassifier(ball, random_state=0).fit(X[learnt], y[learnt])
            accuracy[ball][i, j] = models[ball].score(X[others], y[others])

for ball, found in accuracy.items():
    ahead = accuracy["trace"] - found
    mean, error = ahead.mean(1), ahead.std(1, ddof=1) / SPLITS**0.5
    figures = zip(SIZES, found.mean(1), mean, error, strict=True)
    print(f"{ball:6}" + "   ".join(f"{size} rows: {a:.3f} ({m:.3f} ± {e:.3f})" for size, a, m, e in figures))
assert (accuracy["trace"].mean(1) > accuracy["l1"].mean(1)).all()

# %%
# The singular values of the last models, each over the largest. With the trace norm three of nine directions count for
# little, and a tenth is not needed: what tells ten classes apart are nine differences. Learnt one by one, ten classes
# take ten directions of much the same size.
fig, axes = plt.subplots(2, figsize=(5.4, 5.6), layout="constrained")
for ball, (colour, label) in BALLS.items():
    mean, error = accuracy[ball].mean(1), accuracy[ball].std(1, ddof=1) / SPLITS**0.5
    axes[0].errorbar(SIZES, mean, error, color=colour, marker="o", capsize=3, label=label)
    values = np.linalg.svd(models[ball].coef_, compute_uv=False)
    axes[1].semilogy(np.arange(1, 11), np.maximum(values / values[0], 1e-3), "o-", color=colour, label=label)
axes[0].set(xscale="log", xlabel="rows learnt", ylabel="accuracy", title=f"Lines: means of {SPLITS} splits ± s.e.")
axes[0].set_xticks(SIZES, SIZES, minor=False)
axes[0].minorticks_off()
axes[1].set(xlabel="direction", ylabel="singular value over the largest", title=f"Coefficients from {SIZES[-1]} rows")
axes[0].legend(loc="lower right")
_ = axes[1].legend()
