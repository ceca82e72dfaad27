"""
A scoring rule that people respond to
=====================================

What happens when applicants learn how they are scored? A bank scores forms by a linear rule x, :math:`\\|x\\|_1 \\le
r`, to tell who repays. Every applicant may polish one entry of the form, by a logit choice: the more an entry counts
and the less the polish costs, the likelier. That changes the form, not who repays. Retraining again and again chases
its own tail; minimising over the distribution that the rule itself makes, one applicant at a time, leads to the
performative optimum. The :doc:`guide </non-oblivious>` says when to expect this.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw

plt.style.use("onesfw.pictures")
# %%
# The population: all entries tell as much about repaying, but the first are cheap to polish.
people, d, radius, gain, keen = 1_000, 8, 4.0, 3.0, 3.0
cost = jnp.linspace(0.0, 7.0, d)
rng = np.random.default_rng(0)
means = rng.normal(size=people)
forms = jnp.asarray(0.6 * means[:, None] + 0.8 * rng.normal(size=(people, d)), jnp.float32)
repays = jnp.asarray(np.sign(means + 0.3 * rng.normal(size=people)), jnp.float32)
print(f"{people:,} applicants, {d} entries, r = {radius}; a polish adds {gain}, costs {cost}; keenness {keen}")
moves = gain * jnp.concatenate([jnp.zeros((1, d)), jnp.eye(d)])  # the first one leaves the form as it is


def log_choice(x):  # log p(j; x): what polish j adds to the score, and what it costs
    return jax.nn.log_softmax(keen * (moves @ x) - jnp.append(0.0, cost))


def loss(x, z):
    return jnp.logaddexp(0.0, -repays[z[0]] * ((forms[z[0]] + moves[z[1]]) @ x))


def draw(key, x):  # an applicant, and what she does to her form when the rule is x
    who, what = jax.random.split(key)
    return jax.random.randint(who, (), 0, people), jax.random.categorical(what, log_choice(x))


def spread(x, row, seen):
    """The loss of the rule x on one applicant, over all she may do when the rule that she knows is `seen`."""
    return jnp.exp(log_choice(seen)) @ jnp.logaddexp(0.0, -row[1] * ((row[0] + moves) @ x))


# %%
# Retraining: in each round the rule is fitted to all applicants as they answered to the last one, without any sampling
# error. 1-SFW gets one applicant a step, who answers to the rule of the moment; the gradient counts that the next one
# will answer to another. F is not convex: ``output="last"``, as the default's output trusts a quadratic model of it.
rounds, seeds, rules = 10, 8, [np.zeros(d, np.float32)]
K, budget = fw.sets.L1Ball(radius, shape=d), [1_000, 3_000, 10_000, 30_000]
for _ in range(rounds):
    frozen = fw.FiniteSum(lambda x, row, seen=jnp.asarray(rules[-1]): spread(x, row, seen), (forms, repays))
    rules.append(fw.minimize(frozen, K, steps=300, algorithm=fw.frank_wolfe(), evaluate=False).x)
performative = fw.NonOblivious(loss, draw, lambda z, x: log_choice(x)[z[1]])
once = {"algorithm": fw.one_sfw(output="last"), "replicates": seeds, "evaluate": False}
runs = [fw.minimize(performative, K, steps=n, **once).x for n in budget]
risk = jax.vmap(lambda x: jnp.mean(jax.vmap(lambda row: spread(x, row, x))((forms, repays))))  # F: the judge
whole = fw.FiniteSum(lambda x, row: spread(x, row, x), (forms, repays))  # F again: the sum over choices is short
best = fw.minimize(whole, K, steps=2_000, algorithm=fw.frank_wolfe()).value
retrained, optimal = np.array(risk(jnp.asarray(rules[1:]))), np.array([risk(jnp.asarray(x)) for x in runs])
stderr = optimal.std(1, ddof=1) / np.sqrt(seeds)
print(f"retraining: risk {retrained.min():.4f} in its best round, {retrained[-2:]} in the last two")
print(f"1-SFW: risk {optimal[-1].mean():.4f} ± {stderr[-1]:.4f} after {budget[-1]:,} applicants; optimum {best:.4f}")
assert optimal[-1].max() < retrained.min()
_, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.2))
top.plot(np.linspace(3, 4.5, rounds), retrained, "o-", color="C1", label="10 rounds of retraining")
top.errorbar(np.log10(budget), optimal.mean(1), 2 * stderr, fmt="o-", color="C0", label="1-SFW, ± 2 s.e.", capsize=3)
top.axhline(best, color="C5", linestyle="--", label="performative optimum")
top.set(xticks=[3, 3.5, 4, 4.5], xticklabels=["1,000", "3,000", "10,000", "30,000"])
top.set(xlabel="applicants seen by 1-SFW, or rounds, left to right", ylabel="risk of the rule")
top.legend()
bottom.bar(np.arange(d) - 0.2, rules[-1], 0.4, color="C1")
bottom.bar(np.arange(d) + 0.2, runs[-1].mean(0), 0.4, yerr=runs[-1].std(0, ddof=1), color="C0", ecolor="C5")
bottom.set(xticks=range(d), xticklabels=[f"{c:g}" for c in cost], xlabel="cost of a polish", ylabel="weight, ± 1 std")
