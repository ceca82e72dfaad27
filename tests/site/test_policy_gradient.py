"""The lake of the gallery's policy gradient is gymnasium's, and its gradient that of F."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onesfw.estimators import Hessian, Importance

pytestmark = pytest.mark.site  # where gymnasium is
gymnasium = pytest.importorskip("gymnasium", reason="the policy gradient of the gallery needs gymnasium")
EXAMPLE = Path(__file__).parents[2] / "gallery" / "plot_policy_gradient.py"


@pytest.fixture(scope="module")
def lake():
    """The example, as far as its methods."""
    found = {}
    exec(EXAMPLE.read_text(encoding="utf-8").split("# %%\n# The methods")[0], found)
    return found


@pytest.fixture(scope="module")
def policy():
    """Some policy with a chance to reach the goal that can be told from 0."""
    rng = np.random.default_rng(3)
    x = rng.dirichlet(np.ones(4), 16) * 0.4 + 0.05
    x[:, 1] += 0.2
    x[:, 2] += 0.2
    return (x / x.sum(1, keepdims=True)).astype(np.float32)


def test_trajectories_are_those_of_gymnasium(lake, policy):
    """gymnasium's own episodes move along the table, and reach the goal as often as F says; so do the compiled ones."""
    env, rng, wins, episodes = gymnasium.make("FrozenLake-v1"), np.random.default_rng(0), 0, 1_500
    upto = np.cumsum(policy, 1)
    for seed in range(episodes):
        place, over, cut = env.reset(seed=seed)[0], False, False
        while not (over or cut):
            move = min(int(np.sum(rng.random() >= upto[place])), 3)
            after, reward, over, cut, _ = env.step(move)
            assert after in lake["table"][place, move]
            assert over == lake["ends"][after]
            wins += reward
            place = after
    exact = lake["chance_of_goal"](policy.astype(float))
    assert abs(wins / episodes - exact) < 4 * np.sqrt(exact * (1 - exact) / episodes)

    counts, reached = jax.vmap(lambda key: lake["sample"](key, policy))(jax.random.split(jax.random.key(0), 20_000))
    assert abs(np.mean(reached) - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)
    moves = np.asarray(counts.sum(0))
    seen = moves[:, 0] > 200
    np.testing.assert_allclose(moves[seen] / moves[seen].sum(1, keepdims=True), policy[seen], atol=0.06)
    assert not np.any(np.asarray(counts)[:, lake["ends"]])


@pytest.mark.parametrize("correction", [Hessian(), Importance()])
def test_changes_of_the_gradient_are_unbiased(lake, policy, correction):
    """⟨Δ̃, w⟩ over trajectories against the exact ∇F(x_t) − ∇F(x_{t−1}), w a direction of the set."""
    rng = np.random.default_rng(5)
    w = rng.normal(size=(16, 4))
    w -= w.mean(1, keepdims=True)
    u = np.float32(0.02) * np.asarray(w, np.float32)
    x, before, step = policy + u, policy, 1e-5

    def slope(at):
        at = at.astype(float)
        return (lake["chance_of_goal"](at + step * w) - lake["chance_of_goal"](at - step * w)) / (2 * step)

    def one(number):
        draw = lake["objective"].draw(jax.random.key(1), number)
        place = jax.random.uniform(jax.random.fold_in(jax.random.key(2), number))
        found = correction(lake["objective"], draw, place, jnp.asarray(x), jnp.asarray(before), jnp.float32(0.05))
        return jnp.sum(found.change * w)

    changes = np.asarray(jax.jit(jax.vmap(one))(jnp.arange(20_000)), float)
    error = changes.mean() - (slope(x) - slope(before))
    assert abs(error) < 4 * changes.std() / np.sqrt(len(changes))


def test_the_best_is_an_upper_bound(lake):
    """F* of dynamic programming is above every policy of the set."""
    rng, best = np.random.default_rng(0), lake["chance_of_goal"]()
    least = lake["LEAST"]
    for _ in range(20):
        x = least + (1 - 4 * least) * rng.dirichlet(np.full(4, 0.3), 16)
        assert bool(lake["K"].contains(x.astype(np.float32)))
        assert lake["chance_of_goal"](x) <= best
