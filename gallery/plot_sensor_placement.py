r"""
Where to put sensors
====================

*Eight thermometers for a lake: where do they tell most about the temperature everywhere? And what does it cost if no
basin may have more than two?*

The temperature is a Gaussian process with kernel K. Sensors S with noise of variance σ² bring the information
:math:`\frac12 \log\det(I + K_S/\sigma^2)`, half of what ``sm.LogDet`` computes: a monotone submodular function.
"""

import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw
from onesfw import submodular as sm

plt.style.use("onesfw.pictures")
SENSORS, NOISE = 8, 0.05
x, y = np.meshgrid(np.linspace(-1.5, 1.5, 45), np.linspace(-1, 1, 30))
wet = (x / 1.45) ** 2 + ((y - 0.2 * np.sin(2 * x)) / 0.7) ** 2 < 1  # the shape of the lake
px, py = x[wet], y[wet]
length = 0.25 + 0.6 / (1 + np.exp(-4 * px))  # in the deep east temperatures are alike over longer ways
square = length[:, None] ** 2 + length**2
distance = (px[:, None] - px) ** 2 + (py[:, None] - py) ** 2
K = 2 * np.outer(length, length) / square * np.exp(-distance / square)  # Gibbs's kernel
function = sm.LogDet(K / NOISE)

# %%
# Four basins from west to east. A partition matroid allows two sensors in each; ``fw.select`` needs samples of f alone,
# and says how far from the best its choice can be.

basin = np.digitize(px, [-0.7, 0.0, 0.7])
plans = {
    "anywhere": fw.select(function, sm.UniformMatroid(function.n, SENSORS), steps=1_000),
    "two a basin": fw.select(function, sm.PartitionMatroid(basin, 2), steps=1_000),
}
for name, plan in plans.items():
    print(f"{name}: {plan.value / 2:.2f} nats, at least {plan.ratio:.1%} of the best")
rng = np.random.default_rng(0)
chance = [function.value(rng.choice(function.n, SENSORS, replace=False)) / 2 for _ in range(500)]
print(f"at random: {np.mean(chance):.2f} nats, the best of 500 tries {np.max(chance):.2f}")

# %%
# The answer
# ----------
# The colour is how uncertain the temperature is once the sensors have been read. In the shallow west it changes over
# short ways, and most sensors belong there. Mind what was asked for: two a basin bring less information, but as they
# see more of the wide east, the temperature is less uncertain on average.

figure, panels = plt.subplots(2, 1, figsize=(5.4, 7.2))
for axes, (name, plan) in zip(panels, plans.items(), strict=True):
    S = plan.indices
    known = np.einsum("is,si->i", K[:, S], np.linalg.solve(K[np.ix_(S, S)] + NOISE * np.eye(SENSORS), K[S]))
    left = np.full(wet.shape, np.nan)
    left[wet] = np.sqrt(1 - known)
    image = axes.pcolormesh(x, y, left, vmin=0, vmax=1, rasterized=True)
    axes.plot(px[S], py[S], "o", color="C1", markersize=10, markeredgecolor="white")
    axes.set_title(f"{name}: {plan.value / 2:.1f} nats, {np.nanmean(left):.2f} left on average")
    axes.set_aspect("equal")
    axes.set_axis_off()
figure.colorbar(image, ax=panels, location="bottom", label="standard deviation left (1 without sensors)", aspect=35)
assert np.quantile(chance, 0.95) < plans["two a basin"].value / 2 < plans["anywhere"].value / 2
