"""
Policy gradient on a frozen lake
================================

Who learns a policy from single trajectories? In gymnasium's FrozenLake two of three moves slip. x gives each of four
moves in 16 places a chance, 5 % or more; F(x) is that to reach the goal, F* the best. :doc:`/non-oblivious` has more.
"""

from dataclasses import replace

try:
    import gymnasium
except ImportError:
    raise SystemExit("needs gymnasium: pip install 'onesfw[docs]'") from None
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import onesfw as fw

plt.style.use("onesfw.pictures")
# %%
# The lake as a table: where each of three equally likely slips leads (a test compares it with gymnasium's own steps).
env = gymnasium.make("FrozenLake-v1").unwrapped
table = np.array([[[n for _, n, _, _ in (3 * move)[:3]] for move in env.P[s].values()] for s in range(16)])
ends, goal = np.isin(env.desc.ravel(), (b"H", b"G")), np.eye(16)[15]
NEXT, ENDS, LEAST, MOVES = jnp.asarray(table), jnp.asarray(ends), 0.05, 100


def sample(key, x):  # one trajectory: how often each move was made in each place, and whether it came to the goal
    chance, upto = 3 * jax.random.uniform(key, (MOVES,)), jnp.cumsum(x, 1)

    def move(state):
        t, s, path = state
        slip = jnp.minimum(chance[t].astype(jnp.int32), 2)
        a = jnp.minimum(jnp.sum(chance[t] - slip >= upto[s]), 3)
        return t + 1, NEXT[s, a, slip], path.at[t].set(4 * s + a)

    start = 0, jnp.zeros((), NEXT.dtype), jnp.full(MOVES, 64, NEXT.dtype)
    _, s, path = jax.lax.while_loop(lambda state: (state[0] < MOVES) & ~ENDS[state[1]], move, start)
    return jnp.zeros(64, x.dtype).at[path].add(1.0, mode="drop").reshape(16, 4), (s == 15).astype(x.dtype)


objective = fw.NonOblivious(lambda x, z: z[1], sample, lambda z, x: jnp.sum(z[0] * jnp.log(x)))
K = fw.sets.Power(fw.sets.Shifted(fw.sets.Simplex(1 - 4 * LEAST, shape=4), LEAST), 16)


def chance_of_goal(policy=None, value=goal):  # F exactly; without a policy F*, by dynamic programming over the set
    for _ in range(MOVES):
        q = value[table].mean(2)
        step = (1 - 4 * LEAST) * q.max(1) + LEAST * q.sum(1) if policy is None else np.sum(policy * q, 1)
        value = np.where(ends, goal, step)
    return value[0]


# %%
# The methods with 3 seeds (bands): 1-SFW by default, the others by the best of 6 rules. REINFORCE leads up to 50,000,
# 1-SFW wins. Below is the policy of 1-SFW, importance: arrows as long as moves are likely, holes red, the goal green.
best, looks = chance_of_goal(), [1_000, 3_000, 10_000, 20_000, 50_000, 100_000, 200_000]
often = {"steps": looks[-1], "every": looks, "evaluate": chance_of_goal, "replicates": 3}
_, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 7.6), height_ratios=(1, 1.5))
for name, colour, method in (
    ("projected REINFORCE", "C2", replace(fw.projected_sgd(eta=lambda t: 0.1 / np.sqrt(t)), output="last")),
    ("momentum", "C1", fw.momentum_sfw(eta=lambda t: 4 / (t + 4))),
    ("1-SFW, hessian", "C3", fw.one_sfw("nonconvex")),
    ("1-SFW, importance", "C0", fw.one_sfw("nonconvex", correction="importance")),
):
    share = (run := fw.maximize(objective, K, algorithm=method, **often)).trace.value / best
    print(f"{name}: {share[:, -1].round(3)} of F* = {best:.4f}")
    top.fill_between(looks, share.min(0), share.max(0), color=colour, alpha=0.2)
    top.plot(looks, share.mean(0), "o-", color=colour, label=f"{name}: {share[:, -1].mean():.1%}")
top.set(xlabel="trajectories", ylabel="$F(x)/F^*$ (dashed: 95 %)", ylim=(0, 1.02), xscale="log")
row, column, ground = -(np.arange(16) // 4), np.arange(16) % 4, {b"H": "C1", b"G": "C2"}  # holes, the goal; else ice
bottom.scatter(column, row, s=3_500, marker="s", color=[ground.get(k, "C5") for k in env.desc.ravel()], alpha=0.25)
for a, (right, up) in enumerate(((-1, 0), (0, -1), (1, 0), (0, 1))):  # the policy of 1-SFW, importance
    size = np.where(ends, np.nan, run.x[0][:, a]) * 0.45
    bottom.quiver(column, row, right * size, up * size, color="C0", angles="xy", scale_units="xy", scale=1)
_ = top.axhline(0.95, 0.6, color="C5", ls="--"), top.legend(reverse=True), bottom.axis("off"), bottom.margins(0.2)
