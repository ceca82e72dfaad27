"""Losses, sets and recipes that have a form in the persistent kernel."""

import jax
import jax.numpy as jnp
import numpy as np

import onesfw as fw

LOSSES = {
    "logistic": lambda x, row: jnp.logaddexp(0.0, -row[1] * (row[0] @ x)),
    "squared": lambda x, row: (jnp.sum(row[0] * x) - row[1]) ** 2 / 2,
    "mean and logsumexp": lambda x, row: jnp.mean((x - row[0]) ** 2) + jax.nn.logsumexp(x),
    "sigmoid": lambda x, row: jax.nn.sigmoid(-row[1] * jnp.vdot(row[0], x)),
    "huber": lambda x, row: jnp.where(abs(row[0] @ x) < 1, (row[0] @ x) ** 2 / 2, abs(row[0] @ x) - 0.5),
    "largest entry": lambda x, row: jnp.max(x * row[0]) - jnp.min(x) + row[1] * jnp.argmax(row[0]) * jnp.sum(x),
    "checkpoint": jax.checkpoint(lambda x, row: jnp.tanh(row[0] @ x) ** 3 + jnp.sum(jnp.sinh(x) * x)),
}
SETS = {
    "L1Ball": lambda d: fw.sets.L1Ball(2.0, shape=d),
    "L2Ball": lambda d: fw.sets.L2Ball(2.0, shape=d),
    "LInfBall": lambda d: fw.sets.LInfBall(0.5, shape=d),
    "LpBall": lambda d: fw.sets.LpBall(3, 1.0, shape=d),
    "GroupBall": lambda d: fw.sets.GroupBall(np.arange(d) % 3, 2.0),
    "GroupBall, linf": lambda d: fw.sets.GroupBall(np.arange(d) * 4 // d, 2.0, "linf"),
    "KSparse": lambda d: fw.sets.KSparse(3, 0.5, shape=d),
    "Simplex": lambda d: fw.sets.Simplex(shape=d),
    "SubSimplex": lambda d: fw.sets.SubSimplex(shape=d),
    "Box": lambda d: fw.sets.Box(-np.ones(d), np.arange(1.0, d + 1)),
    "Knapsack": lambda d: fw.sets.Knapsack(np.arange(d) / 2.0, 2.0, upper=np.arange(1.0, d + 1)),
    "Scaled": lambda d: fw.sets.Scaled(fw.sets.L1Ball(2.0, shape=d), 0.25),
    "Shifted": lambda d: fw.sets.Shifted(fw.sets.L2Ball(2.0, shape=d), np.linspace(-1.0, 1.0, d)),
}
RECIPES = {
    "auto": (fw.one_sfw(), "minimize"),
    "paper": (fw.one_sfw(schedule="paper"), "minimize"),
    "tuned": (fw.one_sfw(schedule="tuned"), "minimize"),
    "adaptive": (fw.one_sfw(schedule="paper", rho="adaptive"), "minimize"),
    "nonconvex": (fw.one_sfw("nonconvex"), "minimize"),
    "nonconvex, the paper's": (fw.one_sfw("nonconvex", schedule="paper"), "minimize"),
    "momentum": (fw.momentum_sfw(), "minimize"),
    "momentum, the paper's": (fw.momentum_sfw(schedule="paper"), "minimize"),
    "submodular": (fw.one_sfw("dr_submodular"), "maximize"),
    "submodular, the paper's": (fw.one_sfw("dr_submodular", schedule="paper"), "maximize"),
}


def problem(d, loss, constraint, n=12):
    """A small objective and set."""
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(n, d)).astype(np.float32), np.sign(rng.normal(size=n)).astype(np.float32)
    return fw.FiniteSum(LOSSES[loss], rows), SETS[constraint](d)
