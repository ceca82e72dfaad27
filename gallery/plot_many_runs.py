r"""
Many runs at once
=================

*The loss is your own, and the radius should be chosen by cross-validation. Do you have to write the loops?*

No: ``fw.sweep`` solves every radius on every fold, with any loss that JAX can differentiate. Here it forecasts the 90 %
quantile of a disease's progression, which one patient in ten exceeds. The pinball loss of an error e is
:math:`\max(0.9\,e, -0.1\,e)`, here with its corner rounded.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import onesfw as fw

plt.style.use("onesfw.pictures")
data = load_diabetes()
X, y = StandardScaler().fit_transform(data.data), (data.target - data.target.mean()) / data.target.std()


def pinball(x, row):
    a, target = row
    error = target - a @ x["slopes"] - x["level"]
    return 0.9 * error + 0.1 * jax.nn.softplus(-error / 0.1)


def ball(radius):
    """Slopes in an l1 ball, the level in an interval."""
    return fw.sets.Product(
        {"slopes": fw.sets.L1Ball(radius, shape=X.shape[1]), "level": fw.sets.Box(-1.0, 2.0, shape=())}
    )


objective = fw.FiniteSum(pinball, (X, y))
balls = [ball(radius) for radius in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)]
found = fw.sweep(objective, balls, steps=10_000, rows=fw.rows.folds(len(y), 5))
print(found)

figure, axes = plt.subplots()
found.plot(ax=axes)

# %%
# The answer
# ----------
# Thirty runs, one program to compile. ``found.x`` holds all of them, so that the folds also tell how sure each slope
# is: below, at the best radius, one dot a fold.

best = found.best()
slopes = found.x["slopes"][best.number, :, 0]
order = np.argsort(np.abs(slopes.mean(0)))
figure, axes = plt.subplots()
for fold in slopes:
    axes.plot(fold[order], np.arange(len(order)), "o", color="C0", alpha=0.6)
axes.axvline(0, color="C5", linewidth=1)
axes.set(yticks=range(len(order)), yticklabels=np.array(data.feature_names)[order])
axes.set_xlabel("slope, standard deviations of y per one of the column")

levels = found.x["level"][best.number, :, 0]
left_out = [np.setdiff1d(np.arange(len(y)), rows) for rows in fw.rows.folds(len(y), 5)]
above = np.concatenate([y[o] > X[o] @ s + c for o, s, c in zip(left_out, slopes, levels, strict=True)])
print(
    f"radius {best.at:g}: {above.mean():.1%} ± {above.std() / np.sqrt(above.size):.1%} of the patients left out ",
    end="",
)
print("are above their forecast; 10 % should be")
