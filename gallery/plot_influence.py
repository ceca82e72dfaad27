"""
Influence in a network
======================

*Whom should you tell first, if everybody passes news on to each friend with some probability? Are the people with the most
friends good enough?*

A town of two crowded quarters and twelve quiet ones; friends live near one another, and news crosses a friendship with
probability 0.15. ``sm.Influence`` draws one reverse-reachable set a step: those who would have reached a random person.
"""

import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw
from matplotlib.collections import LineCollection
from onesfw import submodular as sm
from scipy.spatial import cKDTree

plt.style.use("onesfw.pictures")
rng = np.random.default_rng(3)
centres = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), 2).reshape(-1, 2)[:14] + 0.15 * rng.normal(size=(14, 2))
sizes = rng.permutation([110, 90] + [35] * 12)
homes = np.concatenate([c + 0.2 * rng.normal(size=(n, 2)) for c, n in zip(centres, sizes, strict=True)])
edges = cKDTree(homes).query_pairs(0.19, output_type="ndarray")
town = sm.Influence(edges, 0.15)
friends = np.bincount(np.searchsorted(town.nodes, edges).ravel(), minlength=town.n)
print(f"{town.n} people, {len(edges):,} friendships")

# %%
# Each choice is judged by 5,000 cascades that run forwards from it, and share nothing with the sets it was made from.

counts = np.array([1, 2, 4, 6, 9, 12])
rules = {"1-SFW": [], "most friends": [], "at random": []}
for k in counts:
    chosen = fw.select(town, sm.UniformMatroid(town.n, int(k)), steps=4_000)
    for name, people in (
        ("1-SFW", chosen.indices),
        ("most friends", np.argsort(-friends)[:k]),
        ("at random", rng.choice(town.n, k, replace=False)),
    ):
        rules[name].append((*town.spread(people, cascades=5_000, seed=1), people))

# %%
# The answer
# ----------
# The people with the most friends live in one quarter and tell the same neighbours. The best twelve live apart.

figure, axes = plt.subplots(figsize=(5.4, 5.4))
axes.add_collection(LineCollection(homes[edges], color="C5", linewidth=0.3, alpha=0.5))
axes.scatter(*homes[town.nodes].T, s=6, color="C5")
for name, marker, size in (("most friends", "s", 45), ("1-SFW", "o", 70)):
    people = homes[town.nodes[rules[name][-1][2]]]
    axes.scatter(*people.T, s=size, marker=marker, color={"1-SFW": "C0"}.get(name, "C1"), edgecolor="white", label=name)
axes.set_aspect("equal")
axes.set_axis_off()
axes.legend(loc="upper center", ncols=2, bbox_to_anchor=(0.5, 0.02))

figure, axes = plt.subplots()
for (name, found), style, color in zip(rules.items(), ("o-", "s--", "^:"), ("C0", "C1", "C5"), strict=True):
    axes.errorbar(counts, [f[0] for f in found], [2 * f[1] for f in found], fmt=style, color=color, label=name)
axes.set(xlabel="people who are told first", ylabel="people reached, ± 2 s.e.", ylim=(0, None))
axes.legend()

print(f"twelve seeds reach {rules['1-SFW'][-1][0]:.0f} people, the most connected twelve ", end="")
print(f"{rules['most friends'][-1][0]:.0f}; no twelve reach more than {chosen.upper_bound:.0f} (95 % confidence)")
assert rules["1-SFW"][-1][0] > rules["most friends"][-1][0] + 5 * rules["1-SFW"][-1][1]
