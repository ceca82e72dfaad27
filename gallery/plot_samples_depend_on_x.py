"""
An objective whose samples depend on x
======================================

How do I write :math:`F(x) = E_{z \\sim p(z; x)}[\\tilde F(x; z)]`, where x shapes what is drawn, and does it matter
how? A crew splits its time x over eight machines; the repair of machine i takes :math:`z_i \\sim \\mathrm{Exp}(\\mu_i
x_i)` hours, each of which costs :math:`w_i`. The same F is written in three ways. The first picture shows how noisy a
gradient each of them gives, the second what that means for the run.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw

plt.style.use("onesfw.pictures")

w = jnp.array([1.0, 2.0, 0.5, 3.0, 1.0, 0.2, 1.5, 0.8])
mu = jnp.array([2.0, 1.0, 1.0, 4.0, 0.5, 2.0, 3.0, 1.0])
K = fw.sets.Shifted(fw.sets.Simplex(1 - 8 * 0.02, shape=8), 0.02)  # every machine gets 2 % at least

# %%
# **1. By the score.** Give the sampler and its log-density, up to what does not depend on x. This works for every p,
# and for discrete z it is the only way of the three that always does.
scored = fw.NonOblivious(
    value=lambda x, z: w @ z,
    sample=lambda key, x: jax.random.exponential(key, (8,)) / (mu * x),
    log_prob=lambda z, x: jnp.sum(jnp.log(x) - mu * x * z),
)
# %%
# **2. Reparametrised.** :math:`z = \varepsilon/(\mu x)` with an :math:`\varepsilon` that does not know x: an ordinary
# expectation.
moved = fw.Expectation(lambda x, e: w @ (e / (mu * x)), lambda key: jax.random.exponential(key, (8,)))
# %%
# **3. Summed in closed form**, as far as that goes. Here it goes all the way: :math:`F(x) = \sum_i w_i/(\mu_i x_i)`,
# without noise.
summed = fw.Expectation(lambda x, z: jnp.sum(w / (mu * x)) + 0 * z, lambda key: jnp.zeros(()))
ways = {"score": (scored, "C1"), "reparametrised": (moved, "C0"), "closed form": (summed, "C2")}


def gradients(objective, draws=2_000):
    """Draws of the first machine's entry of the gradient, at equal shares, with a baseline near the mean."""
    x, b = jnp.full(8, 1 / 8), jnp.float32(jnp.sum(w / (mu / 8)))
    draw = jax.vmap(lambda i: objective.draw(jax.random.key(1), i))(jnp.arange(draws))
    return np.asarray(jax.vmap(lambda one: objective.at(one, x, b).gradient(x)[0])(draw), float)


exact = -float(w[0] / (mu[0] / 64))
noise = {name: gradients(objective) for name, (objective, _) in ways.items()}
for name, g in noise.items():
    stderr = g.std() / np.sqrt(len(g))
    print(f"{name}: mean {g.mean():.1f} ± {stderr:.1f}, spread {g.std():.0f} (exact mean {exact:.1f})")
    assert abs(g.mean() - exact) <= 4 * stderr + 1e-3

# %%
# All three are right in the mean. Shares proportional to :math:`\sqrt{w_i/\mu_i}` are best, which tells how far the
# runs are from it. Without noise the default's steps are too careful at first; later its output is far ahead.
root = np.sqrt(w / mu)
best = float(root.sum() ** 2)
assert np.all(root / root.sum() > 0.02)
steps = [1_000, 4_000, 16_000]
fig, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.2))
for place, (name, g) in enumerate(noise.items()):
    rng = np.random.default_rng(place)
    top.scatter(g[:400], place + rng.uniform(-0.25, 0.25, 400), s=5, alpha=0.5, color=ways[name][1])
top.axvline(exact, color="C5", linestyle="--")
top.set(xlabel="one entry of a gradient from one sample", ylim=(2.5, -0.5), xlim=(-700, 500))
top.set_yticks(range(3), list(ways))
for name, (objective, colour) in ways.items():
    runs = [fw.minimize(objective, K, steps=t, replicates=4, evaluate=False) for t in steps]
    excess = np.array([np.sum(w / (mu * r.x.astype(float)), 1) / best - 1 for r in runs])
    bottom.loglog(steps, np.maximum(excess.mean(1), 1e-8), "o-", color=colour, label=name)
    bottom.fill_between(steps, *np.maximum([excess.min(1), excess.max(1)], 1e-8), color=colour, alpha=0.2, linewidth=0)
bottom.set(
    xlabel="samples", ylabel="cost above the best (relative)", title="Lines: means of 4 seeds; bands: all of them"
)
bottom.legend()
