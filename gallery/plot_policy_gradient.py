"""
Policy gradient on a frozen lake
================================

Can a policy be learnt one trajectory at a time, by a method for samples that depend on x? In gymnasium's FrozenLake two
of three moves slip. x holds a distribution over four moves for each of 16 places, each move with a chance of 5 % at
least; F(x) is the chance to reach the goal. Who comes near the best, by dynamic programming, and where does it go?
"""

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


def chance_of_goal(policy=None):  # F exactly; without a policy F*, by dynamic programming over the set
    value = goal
    for _ in range(MOVES):
        q = value[table].mean(2)
        step = (1 - 4 * LEAST) * q.max(1) + LEAST * q.sum(1) if policy is None else np.sum(policy * q, 1)
        value = np.where(ends, goal, step)
    return value[0]


# %%
# The methods, each with 100,000 trajectories and three seeds. The bands are from the worst seed to the best.
own, other = fw.one_sfw("nonconvex", correction="importance"), fw.momentum_sfw(eta=lambda t: 16 / (t + 16))
methods = {"1-SFW, importance": own, "momentum": other, "projected REINFORCE": fw.projected_sgd(eta=0.001)}
best, looks = chance_of_goal(), [1_000, 3_000, 10_000, 20_000, 40_000, 70_000, 100_000]
fig, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 7.6), height_ratios=(1, 1.5))
shown = {"steps": looks[-1], "every": looks, "evaluate": chance_of_goal, "replicates": 3}
runs = {name: fw.maximize(objective, K, algorithm=method, **shown) for name, method in methods.items()}
for name, run in runs.items():
    reached = run.trace.value / best
    print(f"{name}: {reached[:, -1].round(3)} of F* = {best:.4f}")
    top.fill_between(looks, reached.min(0), reached.max(0), alpha=0.25)
    top.plot(looks, reached.mean(0), "o-", label=name)
top.axhline(0.95, color="C5", linestyle="--")
top.set(xlabel="trajectories", ylabel="$F(x)/F^*$", ylim=(0, 1.02))
top.legend()
row, column = np.divmod(np.arange(16), 4)
kinds = [{b"H": "C1", b"G": "C2"}.get(kind, "C5") for kind in env.desc.ravel()]  # holes, the goal, ice
bottom.scatter(column, row, s=3_500, marker="s", color=kinds, alpha=0.25)
for a, (right, down) in enumerate(((-1, 0), (0, 1), (1, 0), (0, -1))):
    size = np.where(ends, 0, runs["1-SFW, importance"].x[0][:, a]) * 0.45
    bottom.quiver(column, row, right * size, down * size, color="C0", angles="xy", scale_units="xy", scale=1)
_ = bottom.set(xlim=(-0.6, 3.6), ylim=(3.6, -0.6)), bottom.axis("off")
