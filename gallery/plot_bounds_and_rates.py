"""
Bounds against measured rates
=============================

What do the theorems promise, and what does a run do? The convex theorem bounds :math:`E F(x_{T+1}) - F^*` by a
constant over :math:`\\sqrt T`, where the constant holds for every problem with the same G, L and D. The picture draws
the bound with the printed constant and with this library's, above the errors of the theorem's own schedule and of the
default.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw
from onesfw import theory

plt.style.use("onesfw.pictures")

# %%
# The problem: a noisy quadratic over the simplex, whose optimum is known. G and L are the largest gradient and
# curvature of a sample; they are estimated from a thousand draws, and so is the bound that follows.
problem = fw.zoo.get("quadratic-face")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", theory.EstimateWarning)
    constants = theory.estimate(problem.objective, problem.constraint)
print(f"G = {constants.G:.3g}, L = {constants.L:.3g}, D = {constants.D:.3g}")
bounds = {form: theory.Bounds(constants, form=form) for form in ("paper", "homogeneous")}

# %%
# The errors, means over 16 seeds with two standard errors.
steps = np.unique(np.geomspace(100, 30_000, 6).astype(int))
algorithms = {"the theorem's schedule": fw.one_sfw(schedule="paper"), "the default": fw.one_sfw()}
errors = {}
for name, algorithm in algorithms.items():
    runs = [problem.run(steps=int(t), replicates=16, algorithm=algorithm, evaluate=False).x for t in steps]
    errors[name] = np.array([problem.value(x.astype(float)) - problem.optimum().value for x in runs])
    slope = np.polyfit(np.log(steps), np.log(errors[name].mean(1)), 1)[0]
    print(f"{name}: F - F* = {errors[name][-1].mean():.1e} after {steps[-1]:,} samples, slope {slope:.2f}")

# %%
# The bound holds, and is of no use as a forecast: it must cover the worst F of these constants, the measured slope is
# steeper because this F is strongly convex, and constants multiply through three lemmas. Its use is to see how T
# scales: half the error, four times the steps.
ours = bounds["homogeneous"]
times = ours.convex(steps[-1]) / errors["the theorem's schedule"][-1].mean()
print(f"after {steps[-1]:,} steps the bound is {times:.0e} times the error")
print(f"steps it asks for: {ours.steps_for(0.1):.1e} for an error of 0.1, {ours.steps_for(0.05):.1e} for 0.05")
assert all(np.all(error.mean(1) < ours.convex(steps)) for error in errors.values())
assert np.all(ours.convex(steps) < bounds["paper"].convex(steps))

fig, ax = plt.subplots(figsize=(5.4, 4.6))
ax.loglog(steps, bounds["paper"].convex(steps), "C5", linestyle="--", label="bound, the printed constant")
ax.loglog(steps, ours.convex(steps), "C5", label="bound, the constant without mixed units")
for (name, error), colour in zip(errors.items(), ("C1", "C0"), strict=True):
    mean, stderr = error.mean(1), error.std(1, ddof=1) / 4
    ax.fill_between(steps, np.maximum(mean - 2 * stderr, mean / 10), mean + 2 * stderr, color=colour, alpha=0.25)
    ax.loglog(steps, mean, "o-", color=colour, label=f"measured, {name}")
ax.set(xlabel="samples", ylabel="$F(x) - F^*$")
ax.legend()
