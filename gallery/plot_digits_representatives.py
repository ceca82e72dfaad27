"""
Representatives of a data set
=============================

*You can afford to label 30 of 1,797 images. Which ones?*

Those that represent the others: every image is served by the most similar chosen one, and the sum of these similarities
is to be large, as k-medoids wants the sum of distances to be small. ``fw.select`` looks at one image a step and
returns, beside the 30, a bound that no other 30 exceed; with it the greedy choice can be judged too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import KNeighborsClassifier

import onesfw as fw
from onesfw import submodular as sm

plt.style.use("onesfw.pictures")
digits = load_digits()
images, labels = digits.data, digits.target
function = sm.FacilityLocation(features=images)
chosen = fw.select(function, sm.UniformMatroid(len(images), 30), steps=10_000)
print(chosen)
greedy = sm.greedy(function, sm.UniformMatroid(len(images), 30))
print(f"greedy: {greedy.value:.1f}, which is at least {greedy.value / chosen.upper_bound:.1%} of the best")

# %%
# The thirty. Above each stands how many images it is the nearest of:

nearest = pairwise_distances_argmin(images, images[chosen.indices])
figure, panels = plt.subplots(5, 6, figsize=(5.4, 5.2))
for axes, number, served in zip(panels.flat, chosen.indices, np.bincount(nearest, minlength=30), strict=True):
    axes.imshow(digits.images[number], cmap="gray_r")
    axes.set_title(served, pad=3)
    axes.set_axis_off()

# %%
# The answer
# ----------
# Label the chosen images only, and give every other image the label of the nearest labelled one. Against it: as many
# images at random, 100 times.

rng = np.random.default_rng(0)


def accuracy(known):
    """The share of the other images that get their right label."""
    others = np.delete(np.arange(len(images)), known)
    return KNeighborsClassifier(1).fit(images[known], labels[known]).score(images[others], labels[others])


counts = np.array([10, 20, 30, 50, 80])
selected, random = [], []
for k in counts:
    selected.append(accuracy(fw.select(function, sm.UniformMatroid(len(images), int(k)), steps=10_000).indices))
    random.append([accuracy(rng.choice(len(images), k, replace=False)) for _ in range(100)])
low, middle, high = 100 * np.quantile(random, [0.05, 0.5, 0.95], axis=1)

figure, axes = plt.subplots()
axes.plot(counts, 100 * np.array(selected), "o-", label="representatives")
axes.plot(counts, middle, "s--", color="C5", label="at random: median and middle 90 %")
axes.fill_between(counts, low, high, color="C5", alpha=0.25, linewidth=0)
axes.set(xlabel="images that were labelled", ylabel="right labels of the others, %")
axes.legend()

print(f"30 labels: {selected[2]:.1%} of the others are right, {middle[2]:.1f} % with 30 at random (median)")
assert chosen.ratio > 0.98
assert np.all(100 * np.array(selected) > middle)
