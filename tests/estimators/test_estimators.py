"""Estimators: unbiased corrections against exact F, and Algorithms 1 and 2 against NumPy transcriptions."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from logistic_cases import gradient, l1_vertex, logistic_rows, loss
from objective_cases import bernoulli, categorical, gaussian

import onesfw as fw
from onesfw.estimators import AsPrinted, Difference, Hessian, Importance, SameSample, StepInputs, sampling

X = np.array([0.22, 0.33, 0.17, 0.28])
U = np.array([0.03, -0.02, 0.015, -0.025])
DRAWS = 60_000


def exact_gaussian(x, s=0.7):
    return jnp.sum(x**2 * jnp.exp(-(s**2) / 2) * jnp.cos(x)) + jnp.sum(x**2 + s**2)


def exact_bernoulli(x):
    objective = bernoulli()
    total = 0.0
    for bits in itertools.product((0.0, 1.0), repeat=4):
        z = jnp.array(bits)
        total += objective.value(x, z) * jnp.exp(objective.log_prob(z, x))
    return total


def exact_categorical(x):
    objective = categorical()
    return sum(objective.value(x, z) * jnp.exp(objective.log_prob(z, x)) for z in range(4))


FAMILIES = {
    "gaussian": (gaussian, exact_gaussian),
    "bernoulli": (bernoulli, exact_bernoulli),
    "categorical": (categorical, exact_categorical),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("correction", [Hessian(), Difference(), Difference(0.25), Importance()])
def test_corrections_are_unbiased(family, correction):
    make, exact = FAMILIES[family]
    baseline = 0.8
    with jax.enable_x64(True):
        objective, x, previous = make(), jnp.asarray(X), jnp.asarray(X - U)

        @jax.jit
        def sample(keys):
            def one(key):
                draw, place = jax.random.split(key)
                return correction(objective, draw, jax.random.uniform(place), x, previous, jnp.asarray(baseline))

            return jax.vmap(one)(keys)

        increments = sample(jax.random.split(jax.random.key(11), DRAWS))
        gradient = jax.jit(jax.grad(exact))
        change = np.asarray(gradient(x) - gradient(previous))
        places = (np.arange(64) + 0.5) / 64 if correction.uses_place else [0.5]
        middle = np.mean([np.asarray(gradient(previous + a * jnp.asarray(U))) for a in places], 0)
    samples = np.asarray(increments.change)
    error = np.abs(samples.mean(0) - change)
    stderr = samples.std(0) / DRAWS**0.5
    # Only `difference` has a bias, of second order in ‖u‖: below a tenth of the change itself.
    bias = 2.0 * U @ U if isinstance(correction, Difference) else 0.0
    assert bias < 0.1 * np.linalg.norm(change)
    assert (error <= 5 * stderr + bias).all(), (error, stderr)
    terms = np.asarray(increments.gradient)
    assert (np.abs(terms.mean(0) - middle) <= 5 * terms.std(0) / DRAWS**0.5).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_as_printed_gradient_term_lacks_the_score(family):
    make, exact = FAMILIES[family]
    objective, x = make(), jnp.asarray(X, jnp.float32)

    @jax.jit
    def sample(keys):
        return jax.vmap(lambda k: AsPrinted()(objective, k, jnp.float32(1), x, x, jnp.float32(0)).gradient)(keys)

    terms = np.asarray(sample(jax.random.split(jax.random.key(2), DRAWS)))
    error = np.linalg.norm(terms.mean(0) - np.asarray(jax.grad(exact)(x)))
    assert error > 20 * np.linalg.norm(terms.std(0)) / DRAWS**0.5


def test_variance_of_a_correction_shrinks_with_the_square_of_the_step():
    objective = gaussian()
    x = jnp.asarray(X, jnp.float32)
    for correction in (Hessian(), Importance(), Difference()):
        spread = []
        for scale in (1.0, 0.1):
            previous = x - scale * jnp.asarray(U, jnp.float32)
            keys = jax.random.split(jax.random.key(4), 20_000)

            def change(key, previous=previous, correction=correction):
                return correction(objective, key, jnp.float32(0.4), x, previous, jnp.float32(0)).change

            spread.append(float(jnp.sum(jnp.var(jax.vmap(change)(keys), 0))))
        assert spread[1] < 0.02 * spread[0]  # 0.01 for a variance of order ‖u‖²


# -- transcriptions ---------------------------------------------------------------------------------------------------


def transcription(rows, labels, order, steps, rho, eta, radius, batch=1, adaptive=False):
    """Algorithm 2 in NumPy: (x_{T+1}, d_T, x_T)."""
    x = previous = np.zeros(rows.shape[1])
    d = np.zeros_like(x)
    m = s = 0.0
    for t in range(1, steps + 1):
        index = order[(t - 1) * batch : t * batch]
        g = np.mean([gradient(x, rows[i], labels[i]) for i in index], 0)
        g_previous = np.mean([gradient(previous, rows[i], labels[i]) for i in index], 0)
        r = 1.0 if t == 1 else rho(t)
        if adaptive:
            c = min((1 + np.sqrt(1 + 4 * m / s)) / 2, 100.0) if t > 2 else 1.0
            r = 1.0 if t <= 2 else c / (t + c - 2)
            if t >= 2:
                m += ((t - 1) ** 2 * np.sum((g - g_previous) ** 2) - m) / (t - 1)
                s += (np.sum((g_previous - d) ** 2) - s) / (t - 1)
        d = (1 - r) * (d + g - g_previous) + r * g
        previous, x = x, x + eta(t) * (l1_vertex(d, radius) - x)
    return x, d, previous


STEPS = 300
CASES = {
    "paper": ({}, lambda t: 1 / (t - 1), lambda t: 1 / t, {}),
    "batch": ({"batch": 3}, lambda t: 1 / (t - 1), lambda t: 1 / t, {"batch": 3}),
    "user": (
        {"rho": lambda t: 2 / (t + 1), "eta": lambda t: 2 / (t + 2)},
        lambda t: 2 / (t + 1),
        lambda t: 2 / (t + 2),
        {},
    ),
    "constant": ({"rho": 0.1, "eta": 0.05}, lambda t: 0.1, lambda t: 0.05, {}),
    "warm": ({"t0": 20}, lambda t: 1 / (t - 1), lambda t: 1 / (t + 20), {}),
    "adaptive": ({"rho": "adaptive"}, lambda t: None, lambda t: 1 / t, {"adaptive": True}),
    "tuned": ({"schedule": "tuned"}, lambda t: None, lambda t: 1 / t, {"adaptive": True}),
    "nonconvex": (
        {"setting": "nonconvex"},
        lambda t: (t - 1) ** (-2 / 3),
        lambda t: STEPS ** (-2 / 3),
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_algorithm_2_equals_its_transcription(case):
    options, rho, eta, extra = CASES[case]
    rows, labels = logistic_rows()
    batch = extra.get("batch", 1)
    order = np.random.default_rng(5).integers(0, len(rows), STEPS * batch)
    objective = fw.FiniteSum(loss, (rows, labels), indices=order)
    result = fw.minimize(
        objective,
        fw.sets.L1Ball(3.0),
        np.zeros(6),
        steps=STEPS,
        evaluate=False,
        algorithm=fw.one_sfw(**{"schedule": "paper", **options}),
    )
    x, d, previous = transcription(rows, labels, order, STEPS, rho, eta, 3.0, **extra)
    np.testing.assert_allclose(result.x_last, x, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.state.estimate.d, d, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.state.previous, previous, rtol=1e-10, atol=1e-12)


def test_the_correction_uses_the_same_sample():
    """The variant that subtracts ∇F̃(x_{t−1}; z_{t−1}) collapses to the plain stochastic gradient."""
    rows, labels = logistic_rows()
    order = np.random.default_rng(5).integers(0, len(rows), STEPS)
    objective = fw.FiniteSum(loss, (rows, labels), indices=order)
    result = fw.minimize(objective, fw.sets.L1Ball(3.0), np.zeros(6), steps=STEPS, evaluate=False)
    x_T = np.asarray(result.state.previous)
    full = np.mean([gradient(x_T, a, y) for a, y in zip(rows, labels, strict=True)], 0)
    plain = gradient(x_T, rows[order[-1]], labels[order[-1]])
    error = np.linalg.norm(np.asarray(result.state.estimate.d) - full)
    assert error < 0.2 * np.linalg.norm(plain - full)


def test_non_oblivious_run_equals_its_transcription():
    """Algorithm 1 with the Hessian correction and the running baseline, on the loop's own randomness."""
    from onesfw.engine import compiled_loop
    from onesfw.estimators import OneSample

    with jax.enable_x64(True):
        objective = gaussian()
        steps, start = 60, jnp.full(4, 0.25)
        paper = fw.one_sfw(schedule="paper")
        result = fw.minimize(
            objective, fw.sets.Simplex(1.0), np.full(4, 0.25), steps=steps, key=9, evaluate=False, algorithm=paper
        )
        key = compiled_loop.streams(jax.random.key(9)).draws
        estimator = OneSample(Hessian())
        x = previous = start
        d, b = jnp.zeros(4), 0.0
        for t in range(1, steps + 1):
            (draw,), (a,) = estimator.draws(objective, key, jnp.int32(t))
            point, u = a * x + (1 - a) * previous, x - previous
            z = objective.sample(draw, point)
            value, slope = jax.value_and_grad(objective.value)(point, z)
            score = (z - point) / 0.49
            hessian = jnp.diag(2 * jnp.cos(z))
            centred = value - b
            change = (
                centred * score * (score @ u)
                + hessian @ u
                + slope * (score @ u)
                - centred * u / 0.49
                + score * (slope @ u)
            )
            rho = 1.0 if t == 1 else 1 / (t - 1)
            d = (1 - rho) * (d + change) + rho * (slope + centred * score)
            b = b + (value - b) / t
            v = jnp.zeros(4).at[jnp.argmin(d)].set(1.0)
            previous, x = x, x + (v - x) / t
    np.testing.assert_allclose(result.x, x, atol=1e-9)
    np.testing.assert_allclose(result.state.estimate.d, d, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("correction", ["hessian", "difference", "importance"])
def test_corrected_runs_converge_where_the_printed_one_stalls(correction):
    mu = np.linspace(-0.4, 0.6, 10)
    objective = fw.NonOblivious(
        lambda x, z: jnp.sum((z - mu) ** 2),
        lambda key, x: x + 0.5 * jax.random.normal(key, x.shape),
        lambda z, x: -jnp.sum((z - x) ** 2) / 0.5,
    )
    simplex = fw.sets.Simplex(1.0, shape=10)
    best = float(np.sum((np.asarray(simplex.project(jnp.asarray(mu))) - mu) ** 2))

    def suboptimality(name):
        result = fw.minimize(
            objective,
            simplex,
            steps=20_000,
            replicates=4,
            evaluate=False,
            algorithm=fw.one_sfw(correction=name, schedule="paper"),
        )
        return np.mean(np.sum((result.x - mu) ** 2, 1)) - best

    assert suboptimality(correction) < 0.02
    assert suboptimality("as_printed") > 0.05


def test_oracle_counts_follow_the_listing():
    rows, labels = logistic_rows()
    finite = fw.FiniteSum(loss, (rows, labels))
    for objective, algorithm, expected in (
        (finite, fw.one_sfw(), (10, 19, 0)),
        (finite, fw.one_sfw(batch=4), (40, 76, 0)),
        (finite, fw.one_sfw(correction="hessian"), (10, 10, 9)),
        (finite, fw.frank_wolfe(), (400, 400, 0)),
        (gaussian(), fw.one_sfw(), (10, 10, 9)),
        (gaussian(), fw.one_sfw(correction="difference"), (10, 28, 0)),
        (gaussian(), fw.one_sfw(correction="importance"), (10, 28, 0)),
    ):
        assert algorithm.estimator(objective).counts(objective, 10) == expected
    result = fw.minimize(finite, fw.sets.L1Ball(1.0, shape=6), steps=10, evaluate=False)
    assert (result.samples, result.gradients, result.hvps, result.lmo_calls) == (10, 19, 0, 10)


def test_oblivious_objective_through_either_door_is_the_same_run():
    rows, labels = logistic_rows()
    order = np.random.default_rng(5).integers(0, len(rows), 50)
    objective = fw.FiniteSum(loss, (rows, labels), indices=order)
    runs = [
        fw.minimize(objective, fw.sets.L1Ball(3.0), np.zeros(6), steps=50, algorithm=fw.one_sfw(correction=c)).x
        for c in (None, "difference")
    ]
    np.testing.assert_array_equal(*runs)
    assert isinstance(fw.one_sfw().estimator(objective).correction, SameSample)


def test_the_tuned_schedule_is_for_convex_problems():
    assert fw.one_sfw(schedule="tuned").rho.formula == "adaptive"
    assert fw.one_sfw(schedule="tuned", rho=0.5).rho.formula == "0.5"
    for setting in ("nonconvex", "dr_submodular"):
        with pytest.raises(ValueError, match="schedule='tuned' was found on convex problems"):
            fw.one_sfw(setting, schedule="tuned")


def matrix_problem(size):
    """½‖x − z‖² with a random matrix z, and with rows that are drawn by their numbers."""
    target = np.linspace(-1.0, 1.0, size * size, dtype=np.float32).reshape(size, size)
    yield fw.Expectation(
        lambda x, z: jnp.sum((x - z) ** 2) / 2, lambda key: target + jax.random.normal(key, (size, size))
    )
    yield fw.FiniteSum(lambda x, row: jnp.sum((x - row * target) ** 2) / 2, np.array([0.5, 1.5, 1.0], np.float32))


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("method", [fw.one_sfw(batch=128), fw.storm(batch=128)], ids=["one_sfw", "storm"])
def test_memory_does_not_grow_with_a_fixed_batch(method, number):
    size, batch = 400, 128  # 0.6 MB a gradient, 80 MB a batch
    objective = list(matrix_problem(size))[number]
    estimator = method.estimator_for(objective)
    x = jnp.zeros((size, size))

    def step(key, state, x, previous, t):
        draws = estimator.draws(objective, key, t)
        return estimator.update(objective, state, StepInputs(x, previous, draws, (), jnp.float32(0.5), t))

    compiled = jax.jit(step).lower(jax.random.key(0), estimator.init(x), x, x, jnp.int32(2)).compile()
    memory = compiled.memory_analysis()
    assert memory.temp_size_in_bytes < 40 * x.nbytes < batch * x.nbytes / 3


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("recipe", [fw.one_sfw, fw.storm, lambda **o: fw.one_sfw(correction="hessian", **o)])
def test_a_batch_in_blocks_is_the_batch_at_once(recipe, number, monkeypatch):
    objective = list(matrix_problem(6))[number]
    method, box = recipe(batch=50), fw.sets.Box(-1.0, 1.0, shape=(6, 6))
    whole = fw.minimize(objective, box, steps=20, algorithm=method, evaluate=False)
    for limit in (0, 50 * 36 * 4 - 1):  # draws too large for the loop, or only gradients
        monkeypatch.setattr(sampling, "WHOLE_BYTES", limit)
        blocks = fw.minimize(objective, box, steps=20, algorithm=method, evaluate=False)
        np.testing.assert_allclose(blocks.state.estimate.d, whole.state.estimate.d, atol=2e-5)
        np.testing.assert_allclose(blocks.x, whole.x, atol=1e-5)


def test_large_draws_shorten_the_blocks_of_steps():
    from onesfw.engine.compiled_loop import block_length

    small, large = (next(iter(matrix_problem(size))) for size in (4, 2048))
    lengths = [block_length(o, fw.one_sfw().estimator_for(o), jax.random.key(0)) for o in (small, large)]
    assert lengths[0] > 16
    assert lengths[1] * 2048 * 2048 * 4 <= 1 << 26
