"""
Which columns would be chosen again?
====================================

*A sparse model picks columns. Which of them would it pick from other rows too, and how many are picked by chance?*

The diabetes data have ten columns. To know what is false, 90 more are added: the same columns with their rows
shuffled, so that they say nothing about the disease. ``StabilitySelector`` fits l1 models to halves of the rows and
keeps the columns that most halves choose, with a bound on the expected number of false ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from onesfw.sklearn import OneSFWRegressor, StabilitySelector

plt.style.use("onesfw.pictures")
data = load_diabetes()
REAL, FALSE = 10, 90


def with_shuffled(seed):
    """The real columns, and nine shuffled copies of each."""
    rng = np.random.default_rng(seed)
    return np.hstack([data.data, *(rng.permuted(data.data, axis=0) for _ in range(FALSE // REAL))])


selector = StabilitySelector(random_state=0).fit(with_shuffled(0), data.target)
print(f"stable: {[data.feature_names[c] if c < REAL else 'shuffled' for c in selector.get_support(indices=True)]}")
print(f"at most {selector.false_selections_:.2g} false ones are to be expected")

# %%
# How often each column is chosen, as the ball grows. Real columns stand out, shuffled ones stay below the threshold.

figure, axes = plt.subplots(figsize=(5.4, 4.4))
shares = 100 * selector.selection_probabilities_
axes.plot(selector.radii_, shares[:, REAL:], color="C5", linewidth=0.7, alpha=0.6)
stable = np.flatnonzero(selector.support_[:REAL])
axes.plot(selector.radii_, np.delete(shares[:, :REAL], stable, axis=1), color="C4", linewidth=1.2)
lines = axes.plot(selector.radii_, shares[:, stable])
for line, column, colour in zip(lines, stable, ("C0", "C1", "C2", "C3", "C0", "C1"), strict=False):
    line.set_color(colour)
    line.set_label(data.feature_names[column])
axes.plot([], [], color="C4", linewidth=1.2, label="other real columns")
axes.plot([], [], color="C5", linewidth=0.7, label="shuffled columns")
axes.axhline(100 * selector.threshold, linestyle=":", color="C5")
axes.set(xlabel="radius", ylabel="half-samples that choose it, %", ylim=(0, 102))
axes.legend()

# %%
# The answer
# ----------
# Against it, a model whose radius was chosen for its predictions: it keeps whatever helps a little, and chance helps a
# little. Ten shufflings:

counts = np.zeros((10, 2, 2))
for seed in range(10):
    X = with_shuffled(seed)
    chosen = StabilitySelector(random_state=seed).fit(X, data.target).support_
    model = OneSFWRegressor("l1", scale=True, random_state=seed).fit(X, data.target).coef_ != 0
    counts[seed] = [[kept[:REAL].sum(), kept[REAL:].sum()] for kept in (chosen, model)]
figure, axes = plt.subplots(figsize=(5.4, 2.6))
for which in range(2):
    for kind, colour in enumerate(("C0", "C1")):
        values = counts[:, which, kind]
        axes.barh(which + 0.35 * (kind - 0.5), values.mean(), 0.35, color=colour, xerr=values.std(ddof=1) / np.sqrt(10))
axes.set(yticks=(0, 1), yticklabels=("stability\nselection", "best\nradius"), xlabel="columns chosen, ± 1 s.e.")
axes.legend(axes.containers[1::2][:2], ("real", "shuffled"))
print(
    "real and shuffled columns on average:",
    dict(zip(("stability", "best radius"), counts.mean(0).tolist(), strict=True)),
)
assert counts[:, 0, 1].mean() <= 1.0 < counts[:, 1, 1].mean()
