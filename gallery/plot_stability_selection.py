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
stable = selector.get_support(indices=True)
print(f"stable: {[data.feature_names[column] if column < REAL else 'shuffled' for column in stable]}")
print(f"of these at most {selector.false_selections_:.2f} are false, in expectation")

# %%
# How often each column is chosen, as the ball grows; a half-sample may choose only so many, and then stops. Real
# columns stand out, shuffled ones stay below the threshold.

figure, axes = plt.subplots(figsize=(5.4, 4.8))
shares = 100 * selector.selection_probabilities_
axes.plot(selector.radii_, shares[:, REAL:], color="C5", linewidth=0.7, alpha=0.6)
for column in np.argsort(-shares.max(0)[:REAL]):
    named = column in stable
    label = data.feature_names[column] if named else None
    axes.plot(selector.radii_, shares[:, column], color=None if named else "C4", label=label)
axes.axhline(100 * selector.threshold, linestyle=":", color="C5", label="threshold")
axes.set(xlabel="radius", ylabel="half-samples that choose it, %", ylim=(0, 102), xscale="log")
axes.set_title("Grey: shuffled columns; ochre: other real ones")
figure.legend(loc="outside lower center", ncols=5)

# %%
# The answer
# ----------
# Against it, a model whose radius was chosen for its predictions: it keeps whatever helps a little, and by chance many
# columns do. Four shufflings:

chosen = np.zeros((2, 2, 4))  # by whom, real or shuffled, shuffling
for seed in range(4):
    X = with_shuffled(seed)
    stable = StabilitySelector(random_state=seed).fit(X, data.target).support_ if seed else selector.support_
    model = OneSFWRegressor("l1", scale=True, random_state=seed).fit(X, data.target)
    for which, kept in enumerate((stable, model.coef_ != 0)):
        chosen[which, :, seed] = kept[:REAL].sum(), kept[REAL:].sum()

figure, axes = plt.subplots(figsize=(5.4, 2.8))
for kind, name in enumerate(("real", "shuffled")):
    means, errors = chosen[:, kind].mean(1), chosen[:, kind].std(1, ddof=1) / 2
    axes.barh(np.arange(2) + 0.18 - 0.36 * kind, means, 0.36, xerr=errors, label=name)
axes.set(yticks=(0, 1), yticklabels=("stability\nselection", "best radius"), xlabel="columns chosen, mean ± 1 s.e.")
axes.legend()
for name, (real, shuffled) in zip(("stability selection", "best radius"), chosen.mean(2), strict=True):
    print(f"{name}: {real:.1f} real columns and {shuffled:.1f} shuffled ones on average")
assert chosen[0, 1].mean() <= 1.0 < chosen[1, 1].mean()
