r"""
Where to put sensors
====================

*Twelve thermometers for a lake: where do they tell most about the temperature everywhere? And what does it cost if no
shore may have more than two?*

The temperature is a Gaussian process with kernel K. Sensors S with noise of variance σ² bring the information
:math:`\frac12 \log\det(I + K_S/\sigma^2)`, half of what ``sm.LogDet`` computes: a monotone submodular function.
"""

import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw
from onesfw import submodular as sm

plt.style.use("onesfw.pictures")
side = np.linspace(-1, 1, 30)
x, y = (part.ravel() for part in np.meshgrid(1.5 * side, side))
wet = (x / 1.45) ** 2 + (y / (0.75 + 0.2 * np.sin(2 * x))) ** 2 < 1  # the shape of the lake
x, y = x[wet], y[wet]
deep = 0.15 + 0.35 * np.exp(-3 * ((x - 0.3) ** 2 + y**2))  # in deep water temperatures are alike over longer ways
spread = deep[:, None] ** 2 + deep**2
distance = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
K = 2 * np.outer(deep, deep) / spread * np.exp(-distance / spread)  # Gibbs's kernel: the length varies with the place
noise = 0.05
function = sm.LogDet((K + K.T) / 2 / noise)

# %%
# Four shores: the quarters of the lake outside of its middle. A partition matroid allows two sensors on each and any
# number in the middle.

quarter = 2 * (x > 0) + (y > 0)
place = np.where(np.hypot(x / 1.5, y) < 0.45, "middle", np.array(["SW", "NW", "SE", "NE"])[quarter])
two_a_shore = sm.PartitionMatroid(place, {"middle": 4, "SW": 2, "NW": 2, "SE": 2, "NE": 2})
plans = {
    "anywhere": fw.select(function, sm.UniformMatroid(function.n, 12), steps=1_000),
    "two a shore": fw.select(function, two_a_shore, steps=1_000),
}
for name, plan in plans.items():
    print(f"{name}: {plan.value / 2:.2f} nats, at least {plan.ratio:.1%} of the best")

# %%
# The answer
# ----------
# The picture shows how uncertain the temperature is once the sensors have been read. Where water is shallow it changes over
# short ways, and sensors stand closer.

rng = np.random.default_rng(0)
figure, panels = plt.subplots(2, 1, figsize=(5.4, 6.6))
for axes, (name, plan) in zip(panels, plans.items(), strict=True):
    S = plan.indices
    left = 1 - np.einsum("is,si->i", K[:, S], np.linalg.solve(K[np.ix_(S, S)] + noise * np.eye(12), K[S]))
    picture = axes.scatter(x, y, c=np.sqrt(left), s=30, marker="s", vmin=0, vmax=1, linewidth=0)
    axes.plot(x[S], y[S], "o", color="C1", markersize=9, markeredgecolor="white")
    axes.set_title(f"{name}: {plan.value / 2:.1f} nats, standard deviation {np.sqrt(left).mean():.2f} on average")
    axes.set_aspect("equal")
    axes.set_axis_off()
figure.colorbar(picture, ax=panels, label="standard deviation that is left (1: no sensor)", shrink=0.7)

by_chance = [function.value(rng.choice(function.n, 12, replace=False)) / 2 for _ in range(200)]
print(f"at random: {np.mean(by_chance):.2f} nats, {np.max(by_chance):.2f} at best of 200 tries")
assert max(by_chance) < plans["two a shore"].value / 2 <= plans["anywhere"].value / 2
