"""
What to recommend
=================

*Readers have rated some books. What will they like next, how many ratings does it take to know a reader, and what about
readers who came after the model was made?*

``MatrixCompletion`` takes readers and books by their names. It learns a bias for each, and for what is left a matrix of
low rank, whose radius it chooses on ratings held out.
"""

import matplotlib.pyplot as plt
import numpy as np

from onesfw.sklearn import MatrixCompletion

plt.style.use("onesfw.pictures")
READERS, NEW, BOOKS, TASTES = 600, 100, 200, 3
rng = np.random.default_rng(0)
people = rng.normal(size=(READERS + NEW, TASTES))
liked = 3 + 0.4 * rng.normal(size=(READERS + NEW, 1)) + 0.4 * rng.normal(size=BOOKS)  # kind readers, good books
liked = liked + 0.6 * people @ rng.normal(size=(TASTES, BOOKS))  # and matters of taste
given = np.clip(np.round(liked + 0.5 * rng.normal(size=liked.shape)), 1, 5)  # stars
amount = rng.permuted(np.resize([2, 5, 10, 20, 40, 80], READERS + NEW))  # ratings of each reader
order = rng.random(liked.shape).argsort(axis=1).argsort(axis=1)
known = order < amount[:, None]
others = (order >= 80) & (order < 120)


def named(mask):
    """Pairs (reader, book) and their stars."""
    readers, books = np.nonzero(mask)
    return np.array([[f"reader {r}", f"book {b}"] for r, b in zip(readers, books, strict=True)]), given[mask]


first = np.arange(READERS + NEW)[:, None] < READERS
model = MatrixCompletion(random_state=0).fit(*named(known & first))
plain = MatrixCompletion(radius=1e-3, random_state=0).fit(*named(known & first))  # biases, and next to nothing else
print(model.model_)
print("for reader 0:", ", ".join(f"{book} ({stars:.1f})" for book, stars in model.recommend("reader 0", 3)))

# %%
# A hundred readers come later. ``partial_fit`` takes their ratings in, without beginning anew.

for predictor in (model, plain):
    predictor.partial_fit(*named(known & ~first))

# %%
# The answer
# ----------
# Judged on forty other ratings of every reader. Two ratings tell little of a reader's taste, twenty almost all, and of
# those who came later as much as of the others.

figure, axes = plt.subplots()
steps = np.unique(amount)
for name, predictor, color in (("biases alone", plain, "C5"), ("with matters of taste", model, "C0")):
    X, y = named(others)
    squares = ((predictor.predict(X) - y) ** 2).reshape(READERS + NEW, -1).mean(1)
    for late, style in ((False, "o-"), (True, "s:")):
        groups = [squares[(amount == a) & (first[:, 0] != late)] for a in steps]
        error = [np.sqrt(g.mean()) for g in groups]
        spread = [g.std(ddof=1) / np.sqrt(g.size) / e for g, e in zip(groups, error, strict=True)]  # 2 s.e. of the root
        label = name + (", came later" if late else "")
        axes.errorbar(steps, error, spread, fmt=style, color=color, capsize=3, label=label)
        print(f"{label}: RMSE {error[0]:.2f} with 2 ratings, {error[-1]:.2f} with 80")
axes.set(xscale="log", xlabel="ratings of the reader", ylabel="RMSE in stars, ± 2 s.e.", ylim=(0.25, 1.4))
axes.set_xticks(steps, [str(a) for a in steps])
axes.minorticks_off()
axes.legend(loc="lower left")
