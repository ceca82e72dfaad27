r"""
A portfolio for bad days
========================

*Returns can only be simulated. Which mixture of assets loses least on the worst 5 % of the days?*

The mean loss of these days is the conditional value at risk, :math:`\min_\tau\ \tau + E[(-r \cdot x - \tau)^+]/0.05`
(Rockafellar and Uryasev 2000). So τ becomes a second unknown in an interval of its own, and a step looks at one
simulated day.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import onesfw as fw

plt.style.use("onesfw.pictures")
ASSETS, TAIL = 12, 0.05
sensitivity = jnp.linspace(0.2, 1.6, ASSETS)  # to the market
fragile = (jnp.arange(ASSETS) % 3 == 0).astype(jnp.float32)  # calm on most days, and all of them crash on the same


def day(key):
    """Returns of all assets on one day, in %."""
    z = jax.random.normal(key, (ASSETS + 2,))
    crashed = jnp.maximum(z[1] - 1.9, 0.0)  # above 0 on 3 % of the days
    return 0.05 * sensitivity + sensitivity * z[0] + (1.2 - fragile) * z[2:] - 12.0 * fragile * crashed


def shortfall(x, returns):
    excess = -(returns @ x["weights"]) - x["tau"]
    return x["tau"] + 0.05 * jax.nn.softplus(excess / 0.05) / TAIL  # (·)⁺ with its corner rounded, so that it is smooth


mixtures = {"weights": fw.sets.Simplex(1.0, shape=ASSETS), "tau": fw.sets.Box(0.0, 5.0, shape=())}
found = fw.minimize(fw.Expectation(shortfall, day), fw.sets.Product(mixtures), steps=200_000)
print(found)

# %%
# The answer
# ----------
# The classical portfolio has the least variance, and variance hardly sees rare crashes. All three below are judged on
# 200,000 other days; the interval is two standard errors.

seen, days = (np.asarray(jax.vmap(day)(jax.random.split(jax.random.key(seed), 200_000))) for seed in (1, 2))
covariance, equal = np.cov(seen.T), np.full(ASSETS, 1 / ASSETS)
whole = {"type": "eq", "fun": lambda x: x.sum() - 1}
calm = minimize(lambda x: x @ covariance @ x, equal, bounds=[(0, 1)] * ASSETS, constraints=whole)
portfolios = {"equal weights": equal, "least variance": calm.x, "least CVaR": np.asarray(found.x["weights"])}

figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.6))
risk = {}
for place, (name, weights) in enumerate(portfolios.items()):
    losses, color = np.sort(-days @ weights), ("C5", "C1", "C0")[place]
    tail = losses[-round(TAIL * len(days)) :]
    risk[name] = tail.mean()
    error = np.sqrt((tail.var() + (1 - TAIL) * (tail.mean() - tail[0]) ** 2) / tail.size)
    print(f"{name}: loses {tail.mean():.3f} ± {2 * error:.3f} % on the worst 5 % of the days, std {losses.std():.3f} %")
    top.plot(losses[::20], 100 * (1 - np.arange(len(days)) / len(days))[::20], color=color, label=name)
    top.axvline(tail.mean(), color=color, linestyle=":")
    bottom.bar(np.arange(ASSETS) + 0.27 * (place - 1), 100 * weights, 0.27, color=color)
top.set(yscale="log", xlim=(0, 8), ylim=(0.01, 60), xlabel="loss of a day, %", ylabel="days with a larger loss, %")
top.set_title("Dotted: mean of the worst 5 %")
top.legend()
bottom.set(xlabel="asset (0, 3, 6 and 9 crash together)", ylabel="share of the portfolio, %", xticks=range(ASSETS))
assert risk["least CVaR"] < risk["least variance"] < risk["equal weights"]
