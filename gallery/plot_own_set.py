"""
A set of your own
=================

How do I optimise over a set that the library does not have? One method is enough: the vertex that minimises
:math:`\\langle d, v \\rangle`. Here it is the set of rising curves :math:`0 \\le x_1 \\le \\dots \\le x_n \\le 1`:
the share of patients who respond to a dose cannot fall when the dose grows. The picture shows the curve learnt from
one patient at a time, beside the exact isotonic regression.
"""

import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.isotonic import IsotonicRegression

import onesfw as fw

plt.style.use("onesfw.pictures")

# %%
# A rising curve is a mixture of steps: the vertices are :math:`(0, \dots, 0, 1, \dots, 1)`, and the product of d with
# each of them is a sum over the end of d. The oracle takes the smallest. ``template`` tells the shape, so that no
# start is needed; what is not written here (membership, the box around the set, its diameter) is derived from the
# oracle.


class Rising(fw.sets.ConvexSet):
    n: int = eqx.field(static=True)

    def lmo(self, d):
        ends = jnp.append(jnp.cumsum(d[::-1])[::-1], 0.0)  # the last one is the curve that never rises
        return (jnp.arange(self.n) >= jnp.argmin(ends)).astype(d.dtype)

    def template(self):
        return (self.n,)


# %%
# 3,000 patients, each at one of 40 doses; the loss is the square of what the curve misses.
n, patients = 40, 3_000
rng = np.random.default_rng(0)
dose = np.linspace(0, 1, n)
truth = 0.1 + 0.5 / (1 + np.exp(-20 * (dose - 0.35))) + 0.25 * (dose > 0.8)
given = rng.integers(n, size=patients)
responds = rng.random(patients) < truth[given]
objective = fw.FiniteSum(lambda x, row: (x[row[0]] - row[1]) ** 2 / 2, (given, responds.astype(np.float32)))

K = Rising(n)
result = fw.minimize(objective, K, steps=50_000)
print(result)
assert K.contains(result.x)
assert not K.contains(jnp.linspace(1, 0, n))

exact = IsotonicRegression(y_min=0, y_max=1).fit(given, responds).predict(np.arange(n))
best = np.mean((exact[given] - responds) ** 2) / 2
print(f"F(x) - F* = {result.value - best:.1e}; the certified gap is {result.gap:.1e}")
assert result.value - best < 2e-3

# %%
# Every point of the answer is a mean of steps, so it rises exactly, with no projection and no penalty.
counts = np.bincount(given, minlength=n)
fig, ax = plt.subplots()
ax.scatter(dose, np.bincount(given, responds, n) / counts, s=counts / 4, color="C5", alpha=0.6, label="share seen")
ax.plot(dose, truth, "C5", linestyle=":", label="truth")
ax.step(dose, exact, "C1", where="mid", label="isotonic regression, exact")
ax.step(dose, result.x, "C0", where="mid", label="1-SFW, one patient a step")
ax.set(xlabel="dose", ylabel="share who respond", ylim=(0, 1))
ax.legend(loc="upper left")
