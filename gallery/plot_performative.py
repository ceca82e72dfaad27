"""
A scoring rule that people respond to
=====================================

What happens when applicants learn how they are scored? A bank scores forms by a linear rule x, :math:`\\|x\\|_1 \\le
r`, to tell who repays. Every applicant may polish one entry of the form, by a logit choice: the more an entry counts
and the less the polish costs, the likelier. That changes the form, not who repays. Retraining again and again chases
its own tail; minimising over the distribution that the rule itself makes, one applicant at a time, finds the
performative optimum.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw
from onesfw.sklearn import OneSFWClassifier

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


@jax.vmap
def risk(x):  # F(x), summed over all applicants and all they may do: the judge, which no method sees
    margins = (forms @ x)[:, None] + moves @ x
    return jnp.mean(jnp.logaddexp(0.0, -repays[:, None] * margins), 0) @ jnp.exp(log_choice(x))


# %%
# Retraining: in each round the rule is fitted to 3,000 applicants who answered to the last one. For the performative
# optimum every applicant answers to the rule of the moment, and the gradient counts that the next one will answer to
# another.
rounds, seeds, each = 10, 8, 3_000
answers = jax.jit(lambda key, x: jax.vmap(lambda k: draw(k, x))(jax.random.split(key, each)))
rules, risks = np.zeros((seeds, d), np.float32), []
for k in range(rounds):
    for s in range(seeds):
        who, what = answers(jax.random.key(100 * k + s), rules[s])
        model = OneSFWClassifier("l1", radius=radius, fit_intercept=False, random_state=0)
        rules[s] = model.fit(forms[who] + moves[what], repays[who]).coef_
    risks.append(risk(rules))
performative = fw.NonOblivious(loss, draw, lambda z, x: log_choice(x)[z[1]])
K, budget = fw.sets.L1Ball(radius, shape=d), each * np.arange(1, rounds + 1)
runs = [fw.minimize(performative, K, steps=int(n), replicates=seeds, evaluate=False).x for n in budget[1::2]]
retrained, optimal = np.array(risks), np.array([risk(x) for x in runs])
fig, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.2))
for name, seen, found in (("1-SFW, performative", budget[1::2], optimal), ("retraining", budget, retrained)):
    stderr = found.std(1, ddof=1) / np.sqrt(seeds)
    print(f"{name}: risk {found[-1].mean():.4f} ± {stderr[-1]:.4f} after {seen[-1]:,} applicants")
    top.errorbar(seen, found.mean(1), 2 * stderr, fmt="o-", label=name, capsize=3)
assert optimal[-1].max() < retrained.mean(1).min()  # every run of 1-SFW is below the best round of retraining
top.set(xlabel="applicants seen", ylabel="risk of the rule, once known")
top.legend()
for shift, colour, x in ((-0.2, "C1", rules), (0.2, "C0", runs[-1])):
    bottom.bar(np.arange(d) + shift, np.mean(x, 0), 0.4, yerr=np.std(x, 0, ddof=1), color=colour)
bottom.set(xticks=range(d), xticklabels=[f"{c:g}" for c in cost], xlabel="cost of polishing the entry", ylabel="weight")
