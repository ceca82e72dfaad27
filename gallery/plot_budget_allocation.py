r"""
A budget over channels
======================

*A budget is to be spent on advertising channels. How much goes where, how much better is that than a rule of thumb, and
what would more money buy?*

Channel i at intensity :math:`x_i \in [0, 1]` costs :math:`c_i x_i` and reaches customer z with probability
:math:`p_{zi} x_i`. The share of customers who are reached, :math:`F(x) = E_z[1 - \prod_i (1 - p_{zi} x_i)]`, is neither
convex nor concave, but monotone and DR-submodular: the more is spent, the less a channel adds.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw

plt.style.use("onesfw.pictures")
CHANNELS, CUSTOMERS = 20, 3_000
rng = np.random.default_rng(0)
segment = rng.choice(5, CUSTOMERS, p=[0.4, 0.15, 0.15, 0.15, 0.15])
audience = np.r_[np.zeros(10, int), np.arange(10) % 5]  # ten channels and two more court the largest segment
reach = np.where(segment[:, None] == audience, 0.6, 0.04) * rng.uniform(0.5, 1.0, (CUSTOMERS, CHANNELS))
costs = rng.uniform(0.5, 1.5, CHANNELS)


def reached(x, p):
    return 1.0 - jnp.prod(1.0 - p * x)


objective = fw.FiniteSum(reached, reach.astype(np.float32))
share = jax.jit(lambda x: jnp.mean(jax.vmap(reached, (None, 0))(x, reach)))


def best_ratio_first(budget):
    """Buy channels in the order of what each reaches alone per unit of money."""
    order = np.argsort(-reach.mean(0) / costs)
    spent = np.clip(budget - np.r_[0, np.cumsum(costs[order])[:-1]], 0, costs[order])
    return (spent / costs[order])[np.argsort(order)]


# %%
# A step looks at one customer. For every x, :math:`F(y) \le F(x) + \sum_i \partial_i F(x) (y_i - x_i)^+`, for F gains
# less and less; so any x, that of another budget too, bounds what a budget can reach.

budgets = np.array([0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
plans = [np.asarray(fw.maximize(objective, fw.sets.Knapsack(costs, b), steps=20_000).x) for b in budgets]


def most(budget, x):
    """No plan of this budget reaches more: (y − x)⁺ costs no more than y and is at most 1 − x."""
    gains = jax.grad(share)(x)
    return share(x) + gains @ fw.sets.Knapsack(costs, budget, upper=np.maximum(1 - x, 1e-6)).lmo(-gains)


found = 100 * np.array([share(x) for x in plans])
thumb = 100 * np.array([share(best_ratio_first(b)) for b in budgets])
equal = 100 * np.array([share(np.full(CHANNELS, b / costs.sum())) for b in budgets])
bound = 100 * np.array([min(most(b, x) for x in plans) for b in budgets])

# %%
# The answer
# ----------
# The rule of thumb spends everything on the largest segment, again and again on the same people.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.8))
top.plot(budgets, bound, color="C5", linewidth=1, label="no plan reaches more")
top.plot(budgets, found, "o-", color="C0", label="1-SFW")
top.plot(budgets, thumb, "s--", color="C1", label="best reach per cost first")
top.plot(budgets, equal, "^:", color="C5", label="the same everywhere")
top.set(xlabel="budget", ylabel="customers reached, %", ylim=(0, 100))
top.legend()
for plan, shift, color in ((plans[4], -0.2, "C0"), (best_ratio_first(4.0), 0.2, "C1")):
    bottom.bar(np.arange(5) + shift, np.bincount(audience, costs * plan), 0.4, color=color)
bottom.set(xlabel="segment of the customers (0: two fifths of them)", ylabel="spent on it, of 4")
print(f"4 units reach {found[4]:.1f} %, by reach per cost {thumb[4]:.1f} %, at most {bound[4]:.1f} %")
print(f"another 2 would reach {found[5] - found[4]:.1f} % more")
