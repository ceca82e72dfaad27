r"""
Which set for which x?
======================

*You know, or suspect, what x looks like: a few entries, whole groups, a mixture. How much does it help to say so by the
set, and what does the wrong set cost?*

Least squares from 30 rows for 40 unknowns, which has no single answer until a set is named. Five kinds of x meet five
sets, each set as small as can be while it holds x. What is measured is the distance to the true x.
"""

import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw

plt.style.use("onesfw.pictures")
D, ROWS, TABLES = 40, 30, 12
GROUPS = np.repeat(np.arange(8), 5)
rng = np.random.default_rng(0)


def few(count):
    return np.isin(np.arange(D), rng.choice(D, count, replace=False))


kinds = {
    "a few entries": lambda: few(3) * rng.normal(size=D),
    "two groups of five": lambda: np.isin(GROUPS, rng.choice(8, 2, replace=False)) * rng.normal(size=D),
    "a mixture": lambda: few(8) * rng.exponential(size=D),
    "every entry ±1": lambda: rng.choice([-1.0, 1.0], D),
    "none of these": lambda: rng.normal(size=D),
}
sets = {  # the smallest of its kind that holds x
    "L1Ball": lambda x: fw.sets.L1Ball(np.abs(x).sum(), shape=D),
    "GroupBall": lambda x: fw.sets.GroupBall(GROUPS, np.sqrt(np.bincount(GROUPS, x**2)).sum()),
    "Simplex": lambda x: fw.sets.Simplex(x.sum(), shape=D) if x.min() >= 0 else None,  # holds no negative x
    "LInfBall": lambda x: fw.sets.LInfBall(np.abs(x).max(), shape=D),
    "L2Ball": lambda x: fw.sets.L2Ball(np.linalg.norm(x), shape=D),
}


def loss(x, row):
    return (row[0] @ x - row[1]) ** 2 / 2


# %%
# Every x is scaled to length 1, so that 1 is the distance of 0. As rows are few, ``frank_wolfe`` takes all of them
# at every step: sets are compared, not noise. Each set compiles once, whatever its size.

distance = np.full((len(kinds), len(sets), TABLES), np.nan)
for table in range(TABLES):
    for place, draw in enumerate(kinds.values()):
        x = (x := draw()) / np.linalg.norm(x)
        A = rng.normal(size=(ROWS, D))
        objective = fw.FiniteSum(loss, (A, A @ x + 0.1 * rng.normal(size=ROWS)))
        for which, smallest in enumerate(sets.values()):
            if (K := smallest(x)) is not None:
                found = fw.minimize(objective, K, steps=1_000, algorithm=fw.frank_wolfe(), evaluate=False).x
                distance[place, which, table] = np.linalg.norm(found - x)
mean, stderr = distance.mean(2), distance.std(2, ddof=1) / np.sqrt(TABLES)

# %%
# The answer
# ----------
# It helps a lot: on the diagonal, where set and x are of one kind, x is found from fewer rows than unknowns. Off it the
# distance is up to eight times as large. Where nothing is known of x, no set helps, and more rows are needed.

figure, axes = plt.subplots(figsize=(5.4, 4.2))
axes.imshow(mean, cmap="Blues_r", vmin=0, vmax=1.1)
for (place, which), value in np.ndenumerate(mean):
    ink = "C5" if np.isnan(value) else "#d9ecff" if value < 0.35 else "#08306b"
    axes.text(which, place, "–" if np.isnan(value) else f"{value:.2f}", ha="center", va="center", color=ink)
axes.set_xticks(range(len(sets)), list(sets), rotation=30)
axes.set_yticks(range(len(kinds)), list(kinds))
axes.set_title("Distance to the true x, mean of 12")
for kind, row, error in zip(kinds, mean, stderr, strict=True):
    print(f"{kind}: {', '.join(f'{n} {m:.2f} ± {e:.2f}' for n, m, e in zip(sets, row, error, strict=True) if m > 0)}")
assert np.all(np.nanargmin(mean, axis=1)[:4] == np.arange(4))  # the set of its own kind is the best
