"""
Influence in a network
======================

*Whom should you tell first, if everybody passes news on to each friend with some probability? Are the people with the
most friends good enough?*

A town of two crowded quarters and twelve quiet ones; friends live near one another, and news crosses a friendship with
probability 0.15. ``sm.Influence`` draws one reverse-reachable set a step: those who would have reached a random person.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

import onesfw as fw
from onesfw import submodular as sm

plt.style.use("onesfw.pictures")
CHANCE, SEEDS, TRIES = 0.15, 10, 1_000
rng = np.random.default_rng(3)
corners = np.stack(np.meshgrid(np.arange(5.0), np.arange(3.0)), 2).reshape(-1, 2)[:14]
sizes = rng.permutation([110, 90] + [30] * 12)
homes = np.concatenate([c + 0.2 * rng.normal(size=(n, 2)) for c, n in zip(corners, sizes, strict=True)])
edges = cKDTree(homes).query_pairs(0.19, output_type="ndarray")
people, edges = np.unique(edges, return_inverse=True)  # those who have a friend
homes, edges = homes[people], edges.reshape(-1, 2)
town = sm.Influence(edges, CHANCE)
print(f"{town.n} people, {len(edges):,} friendships")

chosen = fw.select(town, sm.UniformMatroid(town.n, SEEDS), steps=4_000)
choices = {"most friends": np.argsort(-np.bincount(edges.ravel()))[:SEEDS], "1-SFW": chosen.indices}

# %%
# An independent check: let each friendship carry the news or not, a thousand times. Whoever is then connected with
# one of those who were told hears of it.

heard = {name: np.zeros((TRIES, town.n), bool) for name in choices}
for attempt in range(TRIES):
    tails, heads = edges[rng.random(len(edges)) < CHANCE].T
    _, part = connected_components(coo_array((np.ones(tails.size), (tails, heads)), (town.n, town.n)), directed=False)
    for name, told in choices.items():
        heard[name][attempt] = np.isin(part, part[told])

# %%
# The answer
# ----------
# They are not. The people with the most friends live in the crowded quarters and tell one another; those whom
# ``fw.select`` chooses live apart.

figure, panels = plt.subplots(2, 1, figsize=(5.4, 7.0))
for axes, (name, told) in zip(panels, choices.items(), strict=True):
    reached = heard[name].sum(1)
    axes.add_collection(LineCollection(homes[edges], color="C5", linewidth=0.3, alpha=0.5, zorder=0))
    dots = axes.scatter(*homes.T, c=100 * heard[name].mean(0), s=10, edgecolor="C5", linewidth=0.4, vmin=0, vmax=100)
    axes.scatter(*homes[told].T, s=70, facecolor="none", edgecolor="C1", linewidth=2, zorder=3)
    axes.set_title(f"{name}: {reached.mean():.0f} ± {2 * reached.std() / np.sqrt(TRIES):.0f} of {town.n} hear the news")
    axes.set_aspect("equal")
    axes.set_axis_off()
figure.colorbar(dots, ax=panels, location="bottom", label="chance to hear the news, % (rings: told first)", aspect=35)

print(f"no ten people reach more than {chosen.upper_bound:.0f} (95 % confidence): ", end="")
print(f"the chosen ones are at least {chosen.ratio:.0%} of the best")
assert heard["1-SFW"].sum(1).mean() > 1.2 * heard["most friends"].sum(1).mean()
