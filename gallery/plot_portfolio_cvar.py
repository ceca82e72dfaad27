r"""
A portfolio for bad days
========================

*Returns can only be simulated. Which mixture of assets loses least on the worst 5 % of the days?*

The conditional value at risk is :math:`\min_\tau\ \tau + E[(-r \cdot x - \tau)^+]/0.05`. So τ becomes a second unknown,
an interval its set, and each step looks at one simulated day (Rockafellar and Uryasev 2000).
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw

plt.style.use("onesfw.pictures")
ASSETS, TAIL = 12, 0.05
rng = np.random.default_rng(0)
sensitivity = jnp.asarray(np.linspace(0.2, 1.6, ASSETS), jnp.float32)  # to the market
drift = jnp.asarray(0.01 + 0.05 * sensitivity + 0.02 * rng.uniform(size=ASSETS), jnp.float32)
fragile = jnp.asarray(np.arange(ASSETS) % 3 == 0, jnp.float32)  # calm on most days, and crash together


def day(key):
    """Returns of all assets on one day, in %."""
    market, own, crash, depth = jax.random.split(key, 4)
    usual = sensitivity * jax.random.normal(market) + (1.2 - fragile) * jax.random.normal(own, (ASSETS,))
    crashed = jax.random.bernoulli(crash, 0.03) * (1 + jax.random.exponential(depth))
    return drift + usual - 4.0 * fragile * crashed


def shortfall(x, returns):
    loss = -(returns @ x["weights"])
    return x["tau"] + 0.05 * jax.nn.softplus((loss - x["tau"]) / 0.05) / TAIL  # a rounded (·)⁺, so that it is smooth


def cvar(weights, days):
    """The mean loss of the worst days and its standard error."""
    worst = np.sort(-days @ weights)[-round(TAIL * len(days)) :]
    return worst.mean(), worst.std() / np.sqrt(worst.size)


# %%
# The minimum of the variance on the same simulator is the classical answer. It comes from the same call, with the
# squared return around the mean as the loss.

mixtures = fw.sets.Simplex(1.0, shape=ASSETS)
both = fw.sets.Product({"weights": mixtures, "tau": fw.sets.Box(0.0, 5.0, shape=())})
found = fw.minimize(fw.Expectation(shortfall, day), both, steps=300_000)
calm = fw.minimize(fw.Expectation(lambda x, r: ((r - drift + 0.12 * fragile * 2) @ x) ** 2, day), mixtures, steps=100_000)
portfolios = {
    "equal weights": np.full(ASSETS, 1 / ASSETS),
    "least variance": np.asarray(calm.x),
    "least CVaR": np.asarray(found.x["weights"]),
}
days = np.asarray(jax.vmap(day)(jax.random.split(jax.random.key(1), 200_000)))  # none of them was learnt from

figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.4))
for place, (name, weights) in enumerate(portfolios.items()):
    value, error = cvar(weights, days)
    print(f"{name}: on the worst 5 % of {len(days):,} other days the mean loss is {value:.3f} ± {error:.3f} %")
    losses, color = -days @ weights, ("C5", "C1", "C0")[place]
    top.hist(losses, np.linspace(0, 6, 90), histtype="step", density=True, color=color, linewidth=1.8, label=name)
    top.axvline(value, color=color, linestyle=":")
    bottom.bar(np.arange(ASSETS) + 0.27 * (place - 1), 100 * weights, 0.27, color=color)
top.set(yscale="log", ylim=(1e-4, 1), xlabel="loss of a day, %", ylabel="density")
top.set_title("Dotted: mean of the worst 5 %")
top.legend()
bottom.set(xlabel="asset (0, 3, 6 and 9 crash together)", ylabel="share of the portfolio, %", xticks=range(ASSETS))
