"""
Choosing a radius
=================

*The radius is the one hyperparameter that a linear model asks for, as the lasso asks for a penalty. Which one should
it be, and how do the coefficients depend on it?*

569 tumours, 30 measurements of each. ``radius_path`` solves one radius after the other on four fifths of the rows and
measures each model on the others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

import onesfw as fw
from onesfw.sklearn import OneSFWClassifier, OneSFWClassifierCV

plt.style.use("onesfw.pictures")
data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data)
path = fw.radius_path(X, data.target)
print(path)

# %%
# Left of the best radius the model is too stiff. Right of it, it follows the rows that it learnt: their loss goes on
# falling while that of the others rises. Below, each line is a coefficient; the five largest at the best radius have
# names.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 7.4), sharex=True)
top.plot(path.radii, path.train_loss, "s--", color="C1", label="rows learnt")
top.errorbar(
    path.radii, path.validation_loss, path.validation_stderr, fmt="o-", capsize=3, label="rows held out, ± 1 s.e."
)
for axes in (top, bottom):
    axes.axvline(path.best_radius, color="C5", label="best")
    axes.axvline(path.radii[path.simplest], color="C5", linestyle=":", label="simplest within 1 s.e.")
top.set(xscale="log", ylabel="mean logistic loss", ylim=(0, None))
top.legend()
coefs = path.coefs.toarray()
named = np.argsort(-np.abs(coefs[path.best]))[:5]
bottom.plot(path.radii, np.delete(coefs, named, axis=1), color="C5", linewidth=0.8, alpha=0.6)
lines = bottom.plot(path.radii, coefs[:, named])
shown = 1.5 * np.abs(coefs[path.best]).max()
bottom.set(xlabel="radius of the l1 ball", ylabel="coefficient", ylim=(-shown, shown))
bottom.legend(lines, data.feature_names[named], loc="lower left")

# %%
# The answer
# ----------
# Take the radius with the least loss on rows held out, or the smallest one within a standard error of it, which needs
# fewer measurements. An estimator whose radius is left out does the former by itself, in every fold anew. Five folds in
# the place of one fifth of the rows make the choice steadier: that is ``OneSFWClassifierCV``.

models = {
    "simplest": OneSFWClassifier(radius=path.radii[path.simplest], random_state=0),
    "best": OneSFWClassifier(radius=path.best_radius, random_state=0),
    "left out": OneSFWClassifier(random_state=0),
    "by five folds": OneSFWClassifierCV(random_state=0),
}
for name, model in models.items():
    model.fit(X, data.target)
    accuracy = cross_val_score(model, X, data.target, cv=10)
    print(f"radius {name:13} {model.radius_:6.2f}: {np.count_nonzero(model.coef_):2} measurements, ", end="")
    print(f"accuracy {accuracy.mean():.3f} ± {accuracy.std(ddof=1) / np.sqrt(10):.3f} over ten folds")
