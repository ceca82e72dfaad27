"""
Two errata of the paper, live
=============================

What happens to a run that follows the paper to the letter? Where samples depend on x, Algorithm 1 prints a gradient
term without its score: it goes to a wrong point and stays there. And for multilinear extensions, which are sampled by
Bernoulli variables, the score has no bounded moments at 0, where continuous greedy starts. Both are measured here;
the other ten are in the :doc:`errata </errata>`.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw
from onesfw import submodular as sm

plt.style.use("onesfw.pictures")

# %%
# **The score.** :math:`F(x) = \frac12\|x - e_1\|^2 + \frac12\|x - e_2\|^2` over the simplex, whose second half
# depends on x through the distribution alone: z has the mean x. ``as_printed`` never sees that half, and ends at
# :math:`e_1`.
problem = fw.zoo.get("gaussian")
steps = [100, 300, 1_000, 3_000, 10_000]
errors = {}
for correction in ("as_printed", "hessian"):
    algorithm = fw.one_sfw(correction=correction, schedule="paper")
    runs = [problem.run(steps=t, replicates=16, algorithm=algorithm, evaluate=False).x for t in steps]
    errors[correction] = np.array([problem.value(x.astype(float)) - problem.optimum().value for x in runs])
    mean, spread = errors[correction].mean(1), errors[correction].std(1, ddof=1) / 4
    print(correction, " ".join(f"{t:,}: {m:.1e} ± {s:.0e}" for t, m, s in zip(steps, mean, spread, strict=True)))
assert np.all(errors["as_printed"][-1] > 0.4)
assert np.all(errors["hessian"][-1] < 0.05)

# %%
# **The start at 0.** Coverage of 12 items by 6 sets, :math:`F(x) = E f(S)`, i in S with probability :math:`x_i`. The
# score's estimate divides by :math:`x_i`. The differences :math:`f(S + i) - f(S - i)` that ``MultilinearExtension``
# takes do not, and 0 is a place like any other.
rng = np.random.default_rng(1)
matrix = jnp.asarray(rng.random((6, 12)) < 0.35, jnp.float32)
by_score = fw.NonOblivious(
    value=lambda x, z: jnp.mean(z @ matrix > 0),
    sample=lambda key, x: (jax.random.uniform(key, (6,)) < x).astype(x.dtype),
    log_prob=lambda z, x: jnp.sum(jnp.log(jnp.where(z > 0, x, 1 - x))),
)
by_differences = fw.MultilinearExtension(sm.SetFunction(lambda s: jnp.mean(s @ matrix > 0), 6))
places = np.geomspace(1e-4, 0.5, 9)


def spread(objective, draws=40_000):
    """The standard deviation of one gradient from one sample, all entries together, where every x_i is the same."""

    def one(number, at):
        x, b = jnp.full(6, at), jnp.mean(1 - jnp.prod(1 - at * matrix, 0))  # b = F(x), a good baseline
        return objective.at(objective.draw(jax.random.key(0), number), x, b).gradient(x)

    many = jax.jit(lambda at: jnp.sqrt(jnp.sum(jnp.var(jax.vmap(one, (0, None))(jnp.arange(draws), at), 0))))
    return np.array([many(jnp.float32(at)) for at in places])


score, differences = spread(by_score), spread(by_differences)
print(f"spread at x = 1e-4: by the score {score[0]:.2g}, by differences {differences[0]:.2g}")
print(f"spread at x = 1/2: by the score {score[-1]:.2g}, by differences {differences[-1]:.2g}")
assert score[0] > 10 * score[-1]
assert differences[0] < 1

fig, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.2))
for (name, error), colour in zip(errors.items(), ("C1", "C0"), strict=True):
    top.errorbar(steps, error.mean(1), error.std(1, ddof=1) / 2, fmt="o-", color=colour, capsize=3, label=name)
top.set(xscale="log", yscale="log", xlabel="samples", ylabel="$F(x) - F^*$, ± 2 s.e.", title="The printed term stalls")
top.legend()
bottom.loglog(places, score, "o-", color="C1", label="by the score")
bottom.loglog(places, differences, "o-", color="C0", label="by differences of f")
bottom.set(xlabel="every $x_i$", ylabel="spread of one gradient", title="The score at the boundary")
bottom.legend()
