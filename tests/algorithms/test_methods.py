"""Every method of the paper's tables against its listing written out in NumPy, step by step on the same samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from logistic_cases import gradient, l1_vertex, logistic_rows, loss

import onesfw as fw
from onesfw.engine import compiled_loop
from onesfw.estimators import NoChangeWithScore

ROWS, LABELS = logistic_rows()
N, D, RADIUS = 40, 6, 3.0
ORDER = np.random.default_rng(5).integers(0, N, 40_000)


def mean(x, index):
    """The mean gradient of some rows at x."""
    return np.mean([gradient(x, ROWS[i], LABELS[i]) for i in index], 0)


def full(x):
    return mean(x, range(N))


class Samples:
    """Hands out the fixed order, as the loop numbers its samples."""

    def __init__(self):
        self.used = 0

    def __call__(self, count):
        self.used += int(count)
        return ORDER[self.used - int(count) : self.used]


def frank_wolfe(steps, eta, estimate):
    """x_{t+1} = x_t + η_t (v_t − x_t) over the l1 ball, d_t = estimate(t, x_t, x_{t−1}, d_{t−1})."""
    x = previous = np.zeros(D)
    d = np.zeros(D)
    for t in range(1, steps + 1):
        d = estimate(t, x, previous, d)
        previous, x = x, x + eta(t) * (l1_vertex(d, RADIUS) - x)
    return x, d


def project_l2(x, radius):
    return x * min(1.0, radius / np.linalg.norm(x))


def momentum(steps):
    draw = Samples()

    def estimate(t, x, previous, d):
        rho = 1.0 if t == 1 else min(4 / (t + 8) ** (2 / 3), 1.0)
        return (1 - rho) * d + rho * mean(x, draw(1))

    return frank_wolfe(steps, lambda t: 1 / (t + 1), estimate)


def minibatch(steps):
    draw = Samples()
    return frank_wolfe(
        steps, lambda t: 2 / (t + 1), lambda t, x, previous, d: mean(x, draw(np.ceil((0.5 * (t + 1)) ** 2)))
    )


def one_sample_growing(steps):
    draw = Samples()

    def estimate(t, x, previous, d):
        rows, rho = draw(1 + t // 4), 1 / max(t - 1, 1)
        return mean(x, rows) + (1 - rho) * (d - mean(previous, rows))

    return frank_wolfe(steps, lambda t: 1 / t, estimate)


def spider(steps, restart, size):
    draw = Samples()

    def estimate(t, x, previous, d):
        length = 2 ** int(np.log2(t))
        if t == length:
            return mean(x, draw(restart(length))) if restart else full(x)
        rows = draw(size(t, length))
        return d + mean(x, rows) - mean(previous, rows)

    return frank_wolfe(steps, lambda t: 2 / (t + 1), estimate)


def spider_nonconvex(steps):
    draw, q = Samples(), int(np.ceil(np.sqrt(steps)))

    def estimate(t, x, previous, d):
        if (t - 1) % q == 0:
            return mean(x, draw(steps))
        rows = draw(q)
        return d + mean(x, rows) - mean(previous, rows)

    return frank_wolfe(steps, lambda t: steps**-0.5, estimate)


def sfw_plus_plus(steps):
    draw = Samples()

    def estimate(t, x, previous, d):
        if t == 1:
            return mean(x, draw(np.ceil(steps**2 / 2)))
        rows = draw(np.ceil(steps / 2))
        return d + mean(x, rows) - mean(previous, rows)

    return frank_wolfe(steps, lambda t: np.log(steps) / steps, estimate)


def normalized(steps):
    draw, q = Samples(), int(np.ceil(np.sqrt(steps)))
    x = previous = np.zeros(D)
    for t in range(1, steps + 1):
        if (t - 1) % q == 0:
            d = mean(x, draw(steps))
        else:
            rows = draw(q)
            d = d + mean(x, rows) - mean(previous, rows)
        towards = l1_vertex(d, RADIUS) - x
        share = min(1.0, steps**-0.5 * 2 * RADIUS / np.linalg.norm(towards))
        previous, x = x, x + share * towards
    return x, d


def svrf(steps, book=False):
    draw, place = Samples(), {"k": 0, "left": 0, "epoch": 0}

    def estimate(t, x, previous, d):
        if (book and t == 2 ** int(np.log2(t))) or (not book and place["left"] == 0):
            place.update(w=x.copy(), level=full(x), k=1, epoch=place["epoch"] + 1)
            place["left"] = 2 ** (place["epoch"] + 3) - 3
            return place["level"]
        place["k"], place["left"] = place["k"] + 1, place["left"] - 1
        rows = draw(2 * (t + 1) if book else 4 * (place["k"] + 1))
        return place["level"] + mean(x, rows) - mean(place["w"], rows)

    return frank_wolfe(steps, lambda t: 2 / (t + 1) if book else 2 / (place["k"] + 1), estimate)


def svfw(steps, in_samples=False):
    draw, base = Samples(), steps if in_samples else N
    every, size = int(np.ceil(base ** (1 / 3) - 1e-9)), int(np.ceil(base ** (2 / 3) - 1e-9))
    held = {}

    def estimate(t, x, previous, d):
        if (t - 1) % every == 0:
            held.update(w=x.copy(), level=mean(x, draw(steps)) if in_samples else full(x))
            return held["level"]
        rows = draw(size)
        return held["level"] + mean(x, rows) - mean(held["w"], rows)

    return frank_wolfe(steps, lambda t: steps**-0.5, estimate)


def saga(steps):
    draw, size = Samples(), 4
    table = np.array([gradient(np.zeros(D), ROWS[i], LABELS[i]) for i in range(N)])

    def estimate(t, x, previous, d):
        chosen, refreshed = draw(size), draw(size)
        d = table.mean(0) + np.mean([gradient(x, ROWS[i], LABELS[i]) - table[i] for i in chosen], 0)
        for j in refreshed:
            table[j] = gradient(x, ROWS[j], LABELS[j])
        return d

    return frank_wolfe(steps, lambda t: steps**-0.5, estimate)


def online(steps, memory=10**9):
    return frank_wolfe(steps, lambda t: t**-0.5, lambda t, x, previous, d: mean(x, ORDER[max(0, t - memory) : t]))


def projected(steps):
    x = total = np.zeros(D)
    for t in range(1, steps + 1):
        total = total + x
        d = mean(x, ORDER[t - 1 : t])
        x = project_l2(x - d / (1 + np.sqrt(t)), RADIUS)
    return x, d, total / steps


def storm(steps):
    x = previous = d = np.zeros(D)
    total, a = 0.0, 1.0
    for t in range(1, steps + 1):
        g, h = mean(x, ORDER[t - 1 : t]), mean(previous, ORDER[t - 1 : t])
        d = g + (1 - a) * (d - h)
        total += g @ g
        eta = 0.1 / (0.1 + total) ** (1 / 3)
        a = min(100 * eta**2, 1.0)
        previous, x = x, project_l2(x - eta * d, RADIUS)
    return x, d


def storc(steps):
    """Algorithm 2 of Hazan and Luo with L = 0.1 and N samples a step; returns y, d and the oracle calls."""
    draw, y, t, epoch, calls, smooth = Samples(), np.zeros(D), 0, 0, 0, 0.1
    while t < steps:
        epoch += 1
        length = int(np.ceil(2 ** (epoch / 2 + 2)))
        w, x = y, y
        level = full(w)
        for k in range(1, min(length, steps - t) + 1):
            t, gamma, beta = t + 1, 2 / (k + 1), 3 * smooth / k
            z = (1 - gamma) * y + gamma * x
            rows = draw(length) if k > 1 else []
            d = level + mean(z, rows) - mean(w, rows) if k > 1 else level
            u = x
            while True:
                slope = d + beta * (u - x)
                v = l1_vertex(slope, RADIUS)
                calls, gap = calls + 1, slope @ (u - v)
                if gap <= 2 * smooth * (2 * RADIUS) ** 2 / (length * k):
                    break
                u = u + min(1.0, gap / (beta * (v - u) @ (v - u))) * (v - u)
            x, y = u, (1 - gamma) * y + gamma * u
    return y, d, calls


CASES = {
    "momentum": (fw.momentum_sfw(schedule="paper"), momentum, 120),
    "minibatch": (fw.minibatch_sfw(schedule="paper", noise=0.5), minibatch, 30),
    "one_sfw, growing batch": (fw.one_sfw(batch=lambda t: 1 + t // 4), one_sample_growing, 60),
    "spider": (fw.spider_fw(schedule="paper", noise=1.0), lambda T: spider(T, lambda K: K**2, lambda t, K: K), 40),
    "spider, book": (
        fw.spider_fw(schedule="book", noise=0.5),
        lambda T: spider(T, lambda K: np.ceil((K / 2) ** 2), lambda t, K: 16 * (t + 1)),
        20,
    ),
    "spider, full": (fw.spider_fw(schedule="paper", full=True), lambda T: spider(T, None, lambda t, K: K), 40),
    "spider, nonconvex": (fw.spider_fw("nonconvex"), spider_nonconvex, 50),
    "scg_plus_plus": (fw.scg_plus_plus("convex", noise=1), sfw_plus_plus, 30),
    "normalized": (fw.normalized_fw(), normalized, 50),
    "svrf": (fw.svrf(constant=4), svrf, 60),
    "svrf, book": (fw.svrf(schedule="book", constant=4), lambda T: svrf(T, book=True), 40),
    "svfw": (fw.svfw(), svfw, 30),
    "svfw, in samples": (fw.svfw(full=False), lambda T: svfw(T, in_samples=True), 30),
    "saga": (fw.saga_fw(), saga, 50),
    "online": (fw.online_fw(schedule="paper"), online, 60),
    "online, memory": (fw.online_fw(schedule="paper", memory=7), lambda T: online(T, 7), 60),
}


def objective():
    return fw.FiniteSum(loss, (ROWS, LABELS), indices=ORDER)


@pytest.mark.parametrize("case", CASES)
def test_a_method_equals_its_transcription(case):
    algorithm, transcription, steps = CASES[case]
    result = fw.minimize(
        objective(), fw.sets.L1Ball(RADIUS), np.zeros(D), steps=steps, algorithm=algorithm, evaluate=False
    )
    x, d = transcription(steps)
    np.testing.assert_allclose(result.x_last, x, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(result.state.estimate.d, d, rtol=1e-9, atol=1e-11)
    assert result.lmo_calls == steps


def test_projected_methods_equal_their_transcriptions():
    ball = fw.sets.L2Ball(RADIUS)
    run = {
        name: fw.minimize(objective(), ball, np.zeros(D), steps=80, algorithm=algorithm, evaluate=False)
        for name, algorithm in (("sgd", fw.projected_sgd(smoothness=1)), ("storm", fw.storm()))
    }
    x, d, average = projected(80)
    np.testing.assert_allclose(run["sgd"].x_last, x, rtol=1e-10)
    np.testing.assert_allclose(run["sgd"].state.estimate.d, d, rtol=1e-10)
    np.testing.assert_allclose(run["sgd"].x, average, rtol=1e-10)
    x, d = storm(80)
    np.testing.assert_allclose(run["storm"].x_last, x, rtol=1e-10)
    np.testing.assert_allclose(run["storm"].state.estimate.d, d, rtol=1e-10)
    assert run["sgd"].lmo_calls == run["storm"].lmo_calls == 0


def test_storc_equals_its_transcription():
    result = fw.minimize(
        objective(), fw.sets.L1Ball(RADIUS), np.zeros(D), steps=60, algorithm=fw.storc(), evaluate=False
    )
    y, d, calls = storc(60)
    np.testing.assert_allclose(result.x, y, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(result.state.estimate.d, d, rtol=1e-8, atol=1e-10)
    assert result.lmo_calls == calls > 60


def concave(rows):
    """½ x'Hx + h'x for each row h, with H ≤ 0 entry by entry: DR-submodular, and not monotone."""
    matrix = -np.array([[1.0, 0.5, 0.2], [0.5, 1.5, 0.3], [0.2, 0.3, 1.0]])
    return fw.FiniteSum(lambda x, row: x @ matrix @ x / 2 + row @ x, rows, indices=ORDER % len(rows)), matrix


def test_submodular_methods_equal_their_transcriptions():
    rows = np.random.default_rng(1).normal([0.9, 0.8, 0.4], 0.5, (20, 3))
    function, matrix = concave(rows)
    order, steps, box = ORDER % 20, 40, fw.sets.Box(0.0, 1.0, shape=3)

    def run(algorithm):
        return fw.maximize(function, box, np.zeros(3), steps=steps, algorithm=algorithm, evaluate=False)

    for setting, below in (("dr_submodular", False), ("nonmonotone_dr", True)):
        x, d = np.zeros(3), np.zeros(3)
        for t in range(1, steps + 1):
            rho = 1.0 if t == 1 else min(4 / (t + 8) ** (2 / 3), 1.0)
            d = (1 - rho) * d + rho * (matrix @ x + rows[order[t - 1]])
            x = x + np.where(d > 0, 1 - x if below else 1.0, 0.0) / steps
        result = run(fw.momentum_sfw(setting))
        np.testing.assert_allclose(result.x, x, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(result.state.estimate.d, d, rtol=1e-10, atol=1e-12)
    draw, x, previous = Samples(), np.zeros(3), np.zeros(3)
    for t in range(1, steps + 1):
        if t == 1:
            d = np.mean([matrix @ x + rows[i] for i in draw(steps**2 / 2) % 20], 0)
        else:
            draw(steps / 2)
            d = d + matrix @ (x - previous)  # the same for every row
        previous, x = x, x + (d > 0) / steps
    result = run(fw.scg_plus_plus())
    np.testing.assert_allclose(result.x, x, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.state.estimate.d, d, rtol=1e-10, atol=1e-12)


def test_momentum_carries_the_score_and_a_baseline_from_the_past():
    """z ~ N(x, s² I): each gradient is ∇F̃ + (F̃ − b)(z − x)/s², b the mean of the values before it."""
    s = 0.5
    objective = fw.NonOblivious(
        lambda x, z: jnp.sum(x**2) / 2 + jnp.sum(jnp.sin(z)),
        lambda key, x: x + s * jax.random.normal(key, x.shape, x.dtype),
        lambda z, x: -jnp.sum((z - x) ** 2) / (2 * s**2),
    )
    steps, start = 30, np.full(4, 0.25)
    method = fw.momentum_sfw(schedule="paper")
    with jax.enable_x64(True):
        result = fw.minimize(
            objective, fw.sets.Simplex(1.0), start, steps=steps, key=9, evaluate=False, algorithm=method
        )
        estimator = method.estimator(objective)
        assert isinstance(estimator.correction, NoChangeWithScore)
        key, x, d, b = compiled_loop.streams(jax.random.key(9)).draws, start, np.zeros(4), 0.0
        for t in range(1, steps + 1):
            (draw,), _ = estimator.draws(objective, key, jnp.int32(t))
            z = np.asarray(objective.sample(draw, jnp.asarray(x)))
            value = x @ x / 2 + np.sin(z).sum()
            rho = 1.0 if t == 1 else min(4 / (t + 8) ** (2 / 3), 1.0)
            d = (1 - rho) * d + rho * (x + (value - b) * (z - x) / s**2)
            b += (value - b) / t
            x = x + (np.eye(4)[np.argmin(d)] - x) / (t + 1)
    np.testing.assert_allclose(result.x, x, rtol=1e-9)
    np.testing.assert_allclose(result.state.estimate.d, d, rtol=1e-9)


def test_the_previous_sample_would_be_no_correction_at_all():
    """d_t = g(x_t; z_t) + (1 − ρ)(d_{t−1} − g(x_{t−1}; z_{t−1})) is, by induction, the plain stochastic gradient."""
    steps = 600
    x = previous = d = np.zeros(D)
    before = ORDER[:1]
    for t in range(1, steps + 1):
        rho, now = 1 / max(t - 1, 1), ORDER[t - 1 : t]
        d = mean(x, now) + (1 - rho) * (d - mean(previous, before) if t > 1 else 0)
        np.testing.assert_allclose(d, mean(x, now), atol=1e-12)
        previous, before, x = x, now, x + (l1_vertex(d, RADIUS) - x) / t
    result = fw.minimize(objective(), fw.sets.L1Ball(RADIUS), np.zeros(D), steps=steps, evaluate=False)
    ours, x_t = np.asarray(result.state.estimate.d), np.asarray(result.state.previous)
    noise = np.sqrt(np.mean([np.sum((mean(x_t, [i]) - full(x_t)) ** 2) for i in range(N)]))
    assert np.linalg.norm(ours - full(x_t)) < 0.2 * noise  # noise/√600 = 0.04 noise is expected
