r"""
Assignment from noisy costs
===========================

*Twelve couriers, twelve orders, and travel times that differ from day to day. Which assignment is best on average, and what
if bad days matter?*

Assignments are the corners of the Birkhoff polytope, the doubly stochastic matrices X. A step sees the times C of one
day and asks for one assignment. With two independent days, :math:`\frac12 \langle C - C', X\rangle^2` has the variance of the
day's total as its mean, so that expected time and risk come from the same samples.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw
from scipy.optimize import linear_sum_assignment

plt.style.use("onesfw.pictures")
N = 12
rng = np.random.default_rng(0)
couriers, orders = rng.uniform(0, 10, (N, 2)), rng.uniform(0, 10, (N, 2))
distance = jnp.asarray(np.linalg.norm(couriers[:, None] - orders, axis=2), jnp.float32)
through = jnp.asarray((couriers[:, None, 0] < 5) != (orders[None, :, 0] < 5), jnp.float32)  # crosses the river at x = 5


def day(key):
    """Minutes from every courier to every order: some noise, and on one day in five a jam on the bridge."""
    noise, jam, size = jax.random.split(key, 3)
    jammed = jax.random.bernoulli(jam, 0.2) * 12 * jax.random.exponential(size)
    return 2 * distance + jax.random.normal(noise, (N, N)) + through * jammed


def two_days(key):
    first, second = jax.random.split(key)
    return day(first), day(second)


def cost(risk):
    def value(X, days):
        totals = [jnp.sum(C * X) for C in days]
        return (totals[0] + totals[1]) / 2 + risk * (totals[0] - totals[1]) ** 2 / 2

    return fw.Expectation(value, two_days)


# %%
# Without risk the minimum is one assignment; scipy finds the same from the true means. With risk it may be a mixture:
# on so many days the one, on so many the other.

average = 2 * distance + through * 0.2 * 12
print("true mean of the best assignment:", float(average[linear_sum_assignment(average)].sum()))
risks = (0.0, 0.02)
plans = [fw.minimize(cost(risk), fw.sets.Birkhoff(N), steps=20_000) for risk in risks]
other_days = jax.vmap(day)(jax.random.split(jax.random.key(1), 20_000))  # none of them was learnt from
totals = [np.asarray(jnp.einsum("dij,ij->d", other_days, plan.x)) for plan in plans]
for risk, total, plan in zip(risks, totals, plans):
    print(risk, plan, total.mean(), total.std(), np.quantile(total, 0.95), np.round(np.sort(plan.x.ravel())[::-1][:20], 2))
