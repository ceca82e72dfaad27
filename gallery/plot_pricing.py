"""
Prices that shape their own demand
==================================

What should a shop charge, and how much should it order, when demand is random and answers to the prices? A newsvendor
orders :math:`q_i` of each product before the season and sells at :math:`p_i`; demand is Poisson with a rate that
depends on all prices. Samples depend on x = (p, q), and nothing can be reparametrised: demand is a whole number. Who
learns most from the seasons so far, and which prices come out?
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax.scipy.special import gammaln
from scipy.optimize import differential_evolution
from scipy.stats import poisson

import onesfw as fw

plt.style.use("onesfw.pictures")
# %%
# Five products, cheap to dear. Of the customers whom a higher price sends away some buy another product.
cost, size = np.array([2.0, 3.0, 3.5, 4.0, 6.0]), np.array([60.0, 50.0, 40.0, 45.0, 40.0])
own, cross = np.array([0.25, 0.2, 0.2, 0.16, 0.12]), 0.012
reply = cross * (1 - np.eye(5)) - np.diag(own)  # of log rate to price
print("cost", cost, "size", size, "own reply", own, "cross reply", cross)
K = fw.sets.Product({"price": fw.sets.Box(cost + 1, cost + 14), "order": fw.sets.Box(0.0, 40.0, shape=5)})


def log_prob(z, x):
    level = jnp.log(size) + reply @ x["price"]
    return jnp.sum(z * level - jnp.exp(level))  # Poisson, but for what does not depend on x


def sample(key, x):  # by the inverse distribution function: jax.random.poisson does as well, ten times slower
    level, counts = (jnp.log(size) + reply @ x["price"])[:, None], jnp.arange(100.0)
    below = jnp.cumsum(jnp.exp(counts * level - jnp.exp(level) - gammaln(counts + 1)), 1)
    return jnp.sum(below < jax.random.uniform(key, (5, 1)), 1).astype(x["price"].dtype)


# %%
# The best there is, from the Poisson probabilities: the order is a quantile; prices come from a search of all the box.
def profit(price, order=None):
    rate = size * np.exp(reply @ price)
    order = poisson.ppf(1 - cost / price, rate) if order is None else order
    sold = rate * poisson.cdf(np.floor(order) - 1, rate) + order * poisson.sf(np.floor(order), rate)
    return price @ sold - cost @ order


found = differential_evolution(lambda p: -profit(p), list(zip(cost + 1, cost + 14, strict=True)), seed=0, tol=1e-8)
best, alone = -found.fun, cost + 1 / own  # the best prices of products that do not replace one another
print(f"best profit {best:.1f}; at prices for each product alone {profit(alone):.1f}")
# %%
# min(z, q) has a kink, which the Hessian of one sample does not see: hence ``"importance"``. The profit is not concave,
# which the setting says; the convex one is beside it. Momentum learns most from few seasons, in the end projected SGD
# as much, and 1-SFW less: the :doc:`guide </non-oblivious>` says why. The best prices are above those for each product
# alone, as who is sent away may buy another.
objective = fw.NonOblivious(lambda x, z: x["price"] @ jnp.minimum(z, x["order"]) - cost @ x["order"], sample, log_prob)
methods = {
    "1-SFW, importance": (fw.one_sfw("nonconvex", correction="importance"), "C0"),
    "1-SFW, convex setting": (fw.one_sfw(), "C3"),
    "momentum": (fw.momentum_sfw(), "C1"),
    "projected SGD": (fw.projected_sgd(eta=lambda t: 0.1 / np.sqrt(t)), "C2"),
}
seasons, (_, (top, bottom)) = [300, 1_000, 3_000, 10_000], plt.subplots(2, 1, figsize=(5.4, 6.4))
for place, (name, (algorithm, colour)) in enumerate(methods.items()):
    runs = [fw.maximize(objective, K, steps=t, replicates=8, algorithm=algorithm, evaluate=False).x for t in seasons]
    lost = np.array([[1 - profit(p, q) / best for p, q in zip(x["price"], x["order"], strict=True)] for x in runs])
    assert lost.min() > 0
    stderr = lost.std(1, ddof=1) / np.sqrt(8)
    print(f"{name}: {lost[-1].mean():.2%} ± {stderr[-1]:.2%} of the best profit is lost after 10,000 seasons")
    top.errorbar(seasons, lost.mean(1), 2 * stderr, fmt="o-", color=colour, label=name, capsize=3)
    bottom.plot(range(5), runs[-1]["price"].mean(0), "oDs^"[place], color=colour, markersize=7)
top.set(xscale="log", yscale="log", xlabel="seasons", ylabel="profit lost, of the best, ± 2 s.e.")
bottom.plot(range(5), found.x, "_", color="C5", markersize=30, markeredgewidth=3, label="best")
bottom.plot(range(5), alone, "x", color="C5", markersize=8, markeredgewidth=2, label="for each product alone")
bottom.set(xlabel="product", ylabel="price", xticks=range(5), xticklabels=range(1, 6), xlim=(-0.5, 4.5))
_ = top.legend(), bottom.legend(loc="lower right", handlelength=2.5)
