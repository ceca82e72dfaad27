"""
Sparse logistic regression from a stream
========================================

*Rows arrive once and cannot be kept. How good is a sparse model after so many of them, and does it find the columns
that matter?*

A stream of clicks, say: 50,000 columns, 40 nonzeros a row, 30 columns that matter. Each row is learnt when it arrives
and then forgotten; ``partial_fit`` keeps ‖x‖₁ ≤ radius at every moment and costs the row's nonzeros.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from scipy.special import expit
from sklearn.metrics import log_loss

from onesfw.sklearn import OneSFWClassifier

plt.style.use("onesfw.pictures")
COLUMNS, NONZEROS, RELEVANT = 50_000, 40, 30
popularity = 1.0 / np.arange(10, COLUMNS + 10)  # a few columns are frequent, most are rare
popularity /= popularity.sum()


def rows(rng, count):
    """Rows of 40 draws from the columns, each of size 1/√40, and their labels."""
    columns = np.searchsorted(np.cumsum(popularity), rng.random(count * NONZEROS))
    X = scipy.sparse.csr_matrix(
        (np.full(columns.size, NONZEROS**-0.5), columns, np.arange(0, columns.size + 1, NONZEROS)), (count, COLUMNS)
    )
    X.sum_duplicates()
    chances = expit(X @ truth)
    return X, (rng.random(count) < chances).astype(int), chances


truth = np.zeros(COLUMNS)
truth[np.random.default_rng(0).choice(300, RELEVANT, replace=False)] = 8.0 * np.sign(np.arange(RELEVANT) - 14.5)
test, test_labels, test_chances = rows(np.random.default_rng(1), 20_000)
least = log_loss(test_labels, test_chances)

# %%
# Four streams of 128,000 rows, in blocks of 1,000. After each doubling the model is judged on 20,000 other rows, by its
# mean loss minus that of the true probabilities, and by how many of its 30 largest coefficients are true ones.

looks = 2 ** np.arange(1, 8)
excess, found = np.zeros((4, looks.size)), np.zeros((4, looks.size))
for stream in range(4):
    rng = np.random.default_rng(10 + stream)
    model = OneSFWClassifier("l1", radius=np.abs(truth).sum())
    for block in range(1, looks[-1] + 1):
        X, y, _ = rows(rng, 1_000)
        model.partial_fit(X, y, classes=[0, 1])
        if block in looks:
            largest = np.argsort(-np.abs(model.coef_[0]))[:RELEVANT]
            place = np.flatnonzero(looks == block)[0]
            excess[stream, place] = log_loss(test_labels, model.predict_proba(test)) - least
            found[stream, place] = np.count_nonzero(truth[largest])

# %%
# The answer
# ----------
# The loss comes nearer to the least possible one with every doubling, and the columns that matter are found. Most of
# the 50,000 coefficients are 0.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.0), sharex=True)
for axes, values in ((top, excess), (bottom, found)):
    axes.plot(looks * 1_000, np.median(values, 0), "o-")
    axes.fill_between(looks * 1_000, values.min(0), values.max(0), color="C0", alpha=0.25, linewidth=0)
top.set(xscale="log", yscale="log", ylabel="loss above the least")
top.set_title("Line: median of 4 streams; band: all of them")
bottom.axhline(RELEVANT, color="C5", linestyle=":")
bottom.set(xlabel="rows seen", ylabel=f"true columns among\nthe {RELEVANT} largest", ylim=(0, RELEVANT + 2))

slope = np.polyfit(np.log(looks[2:]), np.log(np.median(excess[:, 2:], 0)), 1)[0]
print(f"after {1_000 * looks[-1]:,} rows: loss {np.median(excess[:, -1]):.4f} above the least, {least:.4f}; ", end="")
print(f"{np.median(found[:, -1]):.0f} of {RELEVANT} columns; {np.count_nonzero(model.coef_)} nonzeros of {COLUMNS:,}")
print(f"the loss above the least falls as rows^{slope:.2f}, from {1_000 * looks[2]:,} rows on")
