r"""
Many tasks that share their columns
===================================

*Twelve small data sets have the same columns, and probably the same few of them matter. Does learning them together
help, and over which set?*

A matrix W has a row for each column of the data and a column for each task. An l1 ball chooses entries of W; a group
ball, :math:`\sum_j \|W_j\|_2 \le r`, chooses whole rows of W, that is columns for all tasks at once.
"""

import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw

plt.style.use("onesfw.pictures")
COLUMNS, TASKS, ROWS = 30, 12, 20
rng = np.random.default_rng(0)
truth = np.zeros((COLUMNS, TASKS))
truth[np.sort(rng.choice(COLUMNS, 5, replace=False))] = rng.normal(size=(5, TASKS))


def draw(rows):
    """Features, task and target of so many rows a task."""
    task = np.tile(np.arange(TASKS), rows)
    X = rng.normal(size=(task.size, COLUMNS))
    y = np.sum(X * truth[:, task].T, axis=1) + rng.normal(size=task.size)
    return X.astype(np.float32), task, y.astype(np.float32)


def loss(W, row):
    a, task, y = row
    return (a @ W[:, task] - y) ** 2 / 2


learnt, held_out, others = draw(ROWS), draw(10), draw(1_000)
objective = fw.FiniteSum(loss, learnt)

# %%
# ``fw.sweep`` solves every radius and judges it on rows that were held out. Another radius compiles nothing.

groups = np.indices((COLUMNS, TASKS))[0]  # the row of W that each entry belongs to
radii = (10.0, 18.0, 32.0, 55.0)
choices = {
    "l1 ball": [fw.sets.L1Ball(r, shape=(COLUMNS, TASKS)) for r in radii],
    "group ball": [fw.sets.GroupBall(groups, r) for r in radii],
}
fits, errors = {}, {}
X, task, y = others
for name, balls in choices.items():
    found = fw.sweep(objective, balls, steps=8_000, validation=fw.FiniteSum(loss, held_out))
    fits[name] = found.x[found.best().number, 0, 0]
    squares = (np.sum(X * fits[name][:, task].T, axis=1) - y) ** 2 - 1  # above the noise, whose variance is 1
    errors[name] = squares.mean()
    print(f"{name}: radius {found.best().at:g}, squared error above the noise ", end="")
    print(f"{squares.mean():.2f} ± {squares.std() / np.sqrt(y.size):.2f}")
assert errors["group ball"] < errors["l1 ball"]

# %%
# The answer
# ----------
# It does, over a set that says so: what one task learns about a column, the group ball tells all of them. The l1 ball
# sees 360 unrelated entries and misses many. The picture shows W, columns of the data from left to right.

figure, panels = plt.subplots(3, 1, figsize=(5.4, 5.4), sharex=True, sharey=True)
for axes, (name, W) in zip(panels, {"truth": truth, **fits}.items(), strict=True):
    image = axes.imshow(W.T, cmap="RdBu", vmin=-2, vmax=2, aspect="auto", interpolation="nearest")
    axes.set(title=name, ylabel="task")
    axes.grid(False)
panels[-1].set_xlabel("column of the data")
figure.colorbar(image, ax=panels, label="coefficient", shrink=0.6)
