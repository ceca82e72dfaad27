"""
Compare methods on a problem of your own
========================================

*Which method is best on my own problem, with samples that cost something, or with an oracle that does?*

``fw.experiments.compare`` runs methods on one problem with the same budget of samples, and skips those that do not
apply, with the reason. Here a recipe of twelve pigments is sought: as their shares x, at least 0 and adding up to 1,
whose colour comes nearest to one that is wanted, when every batch of a pigment is a little different.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw
from onesfw.experiments import Report, compare, write_page

plt.style.use("onesfw.pictures")
PIGMENTS, BANDS = 12, 30  # a colour is how much light comes back in each band of wavelengths
rng = np.random.default_rng(1)
centres, widths = rng.uniform(0, 1, (PIGMENTS, 1)), rng.uniform(0.1, 0.3, (PIGMENTS, 1))
colours = 0.1 + 0.8 * np.exp(-(((np.linspace(0, 1, BANDS) - centres) / widths) ** 2))
wanted = rng.dirichlet(np.ones(PIGMENTS)) @ colours + 0.05 * rng.normal(size=BANDS)


def batch(key):
    """The colours of one batch of each pigment: a little brighter or darker, and not quite as pure."""
    bright, noise = jax.random.split(key)
    scale = 1 + 0.2 * jax.random.normal(bright, (PIGMENTS, 1))
    return scale * colours + 0.1 * jax.random.normal(noise, (PIGMENTS, BANDS))


# %%
# A problem needs an objective and a set. Where F and its gradient are known exactly, as here, methods are judged by
# them, else by samples that no method has seen.

matrix = colours @ colours.T + np.diag(0.04 * (colours**2).sum(1) + 0.01 * BANDS)  # E[B Bᵀ] of a batch B
problem = fw.zoo.Problem(
    name="pigments",
    summary="shares of twelve pigments for a colour",
    objective=fw.Expectation(lambda x, batches: jnp.sum((x @ batches - wanted) ** 2) / 2, batch),
    constraint=fw.sets.Simplex(1.0, shape=PIGMENTS),
    value=lambda x: np.sum((x @ matrix) * x, -1) / 2 - x @ (colours @ wanted) + wanted @ wanted / 2,
    gradient=lambda x: x @ matrix - colours @ wanted,
)
methods = ["one_sfw[auto]", "momentum_sfw", "spider_fw", "projected_sgd", "svrf"]
(comparison,) = compare(problem, algorithms=methods, samples=20_000, seeds=4)
print(comparison)

# %%
# The answer
# ----------
# By samples 1-SFW and projected SGD are ahead, by calls of the oracle SPIDER is; a projection is no such call. As F* is
# not known, the error is the Frank-Wolfe gap, which bounds it. Lines are means of four seeds, bands all of them.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.6), sharey=True)
for place, curve in enumerate(comparison.ranked()):
    gap = curve.measures[curve.primary]
    for axes, cost in ((top, "samples"), (bottom, "lmo_calls")):
        if curve.counts[cost][-1]:  # a projection is no call of the oracle
            axes.loglog(curve.counts[cost], gap.mean(0), color=f"C{place}", label=curve.name)
            axes.fill_between(curve.counts[cost], gap.min(0), gap.max(0), color=f"C{place}", alpha=0.2, linewidth=0)
top.set(xlabel="samples", ylabel="Frank-Wolfe gap")
bottom.set(xlabel="calls of the oracle", ylabel="Frank-Wolfe gap")
top.legend()

# %%
# The same as a page with buttons, a table and the versions, in one file that can be mailed:

page = Path(tempfile.mkdtemp()) / "pigments.html"
write_page(Report.of([comparison]), page)
print(f"{page.name}: {page.stat().st_size / 1e6:.1f} MB, works offline")
