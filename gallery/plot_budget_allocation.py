r"""
A budget over channels
======================

*A budget is to be spent on advertising channels. How much goes where, how much better is that than a rule of thumb, and
what would more money buy?*

Channel i at intensity :math:`x_i \in [0, 1]` costs :math:`c_i x_i` and reaches customer z with probability
:math:`p_{zi} x_i`. The share of customers reached at least once is :math:`E_z[1 - \prod_i (1 - p_{zi} x_i)]`: neither convex
nor concave, but DR-submodular. What a channel adds falls with what is already spent.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw

plt.style.use("onesfw.pictures")
CHANNELS, CUSTOMERS = 24, 3_000
rng = np.random.default_rng(0)
taste, place = rng.normal(size=(CUSTOMERS, 2)), rng.normal(size=(CHANNELS, 2))
place[:8] = 0.3 * place[:8]  # eight channels court the same middle of the crowd
near = np.exp(-((taste[:, None] - place) ** 2).sum(2))
reach = (near * rng.uniform(0.5, 1.0, CHANNELS)).astype(np.float32)
costs = rng.uniform(0.5, 2.0, CHANNELS)


def reached(x, p):
    return 1.0 - jnp.prod(1.0 - p * x)


objective = fw.FiniteSum(reached, reach)


def share(x):
    return 1 - np.prod(1 - reach * x, axis=1).mean()


def best_ratio_first(budget):
    """Fill channels in the order of what each reaches alone per unit of money."""
    order = np.argsort(-reach.mean(0) / costs)
    spent = np.minimum(costs[order], np.maximum(0, budget - np.r_[0, np.cumsum(costs[order])[:-1]]))
    return spent[np.argsort(order)] / costs


# %%
# ``fw.maximize`` looks at one customer a step. F is monotone and DR-submodular: no y of the set exceeds
# :math:`F(x) + \max_y \sum_i \partial_i F(x)\,(y_i - x_i)^+`, so that every x brings an upper bound with it.

budgets = np.array([1.0, 2.0, 4.0, 6.0, 9.0, 12.0])
spent, shares = {}, []
for budget in budgets:
    x = np.asarray(fw.maximize(objective, fw.sets.Knapsack(costs, budget), steps=20_000).x)
    spent[budget] = costs * x
    shares.append([share(x), share(best_ratio_first(budget)), share(np.full(CHANNELS, budget / costs.sum()))])
found, thumb, equal = 100 * np.array(shares).T

figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.4))
top.plot(budgets, found, "o-", label="1-SFW")
top.plot(budgets, thumb, "s--", label="best reach per cost first")
top.plot(budgets, equal, "^:", color="C5", label="the same everywhere")
top.set(xlabel="budget", ylabel="customers reached, %", ylim=(0, 100))
top.legend()
