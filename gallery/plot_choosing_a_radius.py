"""
Choosing a radius
=================

*The radius is the one number that a linear model asks for. Which one should it be, and how do the coefficients depend
on it?*

569 tumours, 30 measurements of each. ``radius_path`` solves one radius after the other on four fifths of the rows and
measures each model on the others.
"""

import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw
from onesfw.sklearn import OneSFWClassifier
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

plt.style.use("onesfw.pictures")
data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data)
path = fw.radius_path(X, data.target)
print(path)

# %%
# Below, each line is a coefficient; the six largest at the best radius have names. Left of the smallest good radius the
# model is too stiff, right of the best one it follows the training rows: their loss goes on falling while that of the
# other rows rises.

coefs = path.coefs.toarray()
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 7.5), sharex=True)
top.plot(path.radii, path.train_loss, "s--", color="C1", label="rows that were learnt")
top.errorbar(
    path.radii, path.validation_loss, path.validation_stderr, fmt="o-", color="C0", capsize=3,
    label="rows held out, ± 1 standard error",
)  # fmt: skip
top.set(xscale="log", yscale="log", ylabel="mean logistic loss")
for name, place, style in (("best", path.best, "-"), ("simplest within 1 s.e.", path.simplest, ":")):
    for axes in (top, bottom):
        axes.axvline(path.radii[place], color="black", linestyle=style, linewidth=1, label=name if axes is top else None)
top.legend()
named = np.argsort(-np.abs(coefs[path.best]))[:6]
for column in range(coefs.shape[1]):
    known = column in named
    label = data.feature_names[column] if known else None
    bottom.plot(path.radii, coefs[:, column], color=None if known else "lightgrey", label=label, zorder=2 + known)
shown = np.abs(coefs[: path.best + 2]).max() * 1.1
bottom.set(xlabel="radius of the l1 ball", ylabel="coefficient", ylim=(-shown, shown))
bottom.legend(loc="lower left")

# %%
# The answer
# ----------
# Take the radius with the least loss on rows held out, or the smallest one within a standard error of it, which needs
# fewer measurements. An estimator without a radius does the former by itself.

for name, radius in (("simplest", path.radii[path.simplest]), ("best", path.best_radius), ("left out", None)):
    model = OneSFWClassifier(radius=radius, random_state=0).fit(X, data.target)
    accuracy = cross_val_score(OneSFWClassifier(radius=radius, random_state=0), X, data.target, cv=10)
    print(f"radius {name:8} {model.radius_:6.2f}: {np.count_nonzero(model.coef_):2} measurements, ", end="")
    print(f"accuracy {accuracy.mean():.3f} ± {accuracy.std(ddof=1) / np.sqrt(10):.3f} over ten folds")
