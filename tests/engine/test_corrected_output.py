"""The corrected output: its model's minimiser, what it costs, and that it goes with everything else a run can do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_cases import under_vmap
from scipy.optimize import minimize as scipy_minimize

import onesfw as fw
from onesfw import zoo
from onesfw.algorithms.base import half_kept, most_vertices
from onesfw.engine import host_loop, programs
from onesfw.engine.checks import build_run, starting_point
from onesfw.engine.compiled_loop import (
    KEPT_AT_FIRST,
    STRIDE,
    initial,
    keep_averages,
    keep_averages_in_kernel,
    one_step,
    step_draws,
    streams,
)
from onesfw.engine.corrected_output import CAPACITY, convex_shift, line_search, on_simplex
from onesfw.engine.keys import as_key
from onesfw.engine.programs import compilations
from onesfw.engine.replicates import carry_out

D = 6
BALL = fw.sets.L1Ball(1.0, shape=D)
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, D))  # float64, in a float32 run
TARGETS = ROWS @ np.array([0.5, -0.3, 0.1, 0, 0, 0]) + RNG.normal(size=300)


def squares(scale=1.0):
    return fw.FiniteSum(lambda x, row: (row[0] @ x - row[1]) ** 2 / 2, (ROWS, scale * TARGETS))


def solve(steps=2_000, **options):
    return fw.minimize(squares(), BALL, **{"steps": steps, "key": 3, "evaluate": False, **options})


def checked_run():
    return build_run(
        squares(), BALL, starting_point(None, BALL), False, 1, steps=2_000, algorithm=fw.one_sfw(), evaluate=False,
        every=None, gap_tol=None, time_limit=None, callbacks=(),
    )  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    return solve()


# The model


def padded(array):
    space = np.zeros((CAPACITY,) * array.ndim)
    space[tuple(slice(0, size) for size in array.shape)] = array
    return jnp.asarray(space)


def by_slsqp(form, slopes):
    """The least value over the simplex."""
    k = len(slopes)
    found = scipy_minimize(
        lambda z: slopes @ z + z @ form @ z / 2, np.full(k, 1 / k), jac=lambda z: slopes + form @ z,
        bounds=[(0, 1)] * k, constraints={"type": "eq", "fun": lambda z: z.sum() - 1}, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    return found.fun


def test_the_quadratic_is_minimised_over_the_simplex():
    """Against SLSQP, for forms of low rank, with points that are close together and points that repeat."""
    with jax.enable_x64(True):
        minimise = jax.jit(on_simplex)
        for seed in range(6):
            rng = np.random.default_rng(seed)
            k = 4 + 3 * seed
            points = rng.standard_normal((k, 5))
            points[: k // 2] = points[0] + 1e-2 * rng.standard_normal((k // 2, 5))
            points[-1] = points[0]
            form, slopes = points @ points.T, points @ rng.standard_normal(5)
            w = np.asarray(minimise(padded(form), padded(slopes), padded(np.eye(k)[0]), jnp.arange(CAPACITY) < k))
            assert np.all(w >= 0)
            assert w.sum() == pytest.approx(1)
            assert not w[k:].any()
            least = by_slsqp(form, slopes)
            assert slopes @ w[:k] + w[:k] @ form @ w[:k] / 2 <= least + 1e-8


@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e25])
def test_a_linear_form_is_least_at_a_point(scale):
    slopes = jnp.asarray(scale * padded(np.array([3.0, 1.0, 2.0])), jnp.float32)
    first = jnp.zeros(CAPACITY, jnp.float32).at[0].set(1)
    weights = on_simplex(jnp.zeros((CAPACITY, CAPACITY), jnp.float32), slopes, first, jnp.arange(CAPACITY) < 3)
    np.testing.assert_array_equal(weights, np.eye(CAPACITY)[1])


@pytest.mark.parametrize("setting", ["convex", "nonconvex"])
def test_a_linear_f_is_corrected_too(setting):
    """Of ⟨a + z, x⟩ with E z = 0 over the l2 ball; the least is −‖a‖."""
    a = np.arange(1.0, 5.0) / 10
    noisy = fw.Expectation(lambda x, z: (a + z) @ x, lambda key: jax.random.normal(key, (4,)))
    ball = fw.sets.L2Ball(1.0, shape=4)
    found = fw.minimize(noisy, ball, steps=20_000, replicates=8, evaluate=False, algorithm=fw.one_sfw(setting))
    assert not np.array_equal(found.x, found.x_last)
    assert np.mean(found.x @ a) <= np.mean(found.x_last @ a) + 1e-6
    assert np.mean(found.x @ a) <= -np.linalg.norm(a) + 1e-3


def test_a_form_is_looked_at_along_the_hull_only():
    """diag(1, 1) − 1.5·11' is negative along (1, 1) and positive between the points, which is all that counts."""
    with jax.enable_x64(True):
        among = jnp.arange(CAPACITY) < 2
        apart = padded(np.eye(2) - 1.5)
        assert bool(convex_shift(apart, among, convex=False)[1])
        assert not np.asarray(convex_shift(apart, among, convex=True)[0]).any()
        bent = padded(-np.eye(2))
        assert not bool(convex_shift(bent, among, convex=False)[1])
        shift, sound = convex_shift(bent, among, convex=True)
        assert bool(sound)
        assert float(shift[0, 0]) == pytest.approx(1.01)


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e25])
def test_the_unit_of_f_does_not_decide_whether_a_form_is_convex(scale):
    """In float32, where the square of neither scale is a number."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((12, 5))
    for form, count, sound in (
        (np.eye(5), 12, True),
        (np.diag([1.0, 1, 1, 1, -0.003]), 12, False),
        (np.diag([1.0, 1, 0, 0, 0]), 12, True),
        (np.zeros((5, 5)), 12, True),
        (-np.eye(5), 1, True),  # of one point there is no hull
    ):
        curvature = jnp.asarray(scale * padded(points @ form @ points.T), jnp.float32)
        shift, found = convex_shift(curvature, jnp.arange(CAPACITY) < count, convex=False)
        assert bool(found) is sound
        assert not np.asarray(shift).any()
        shift, found = convex_shift(curvature, jnp.arange(CAPACITY) < count, convex=True)
        assert bool(found)
        assert (float(shift[0, 0]) > 1e-3 * scale) is not sound
        assert np.isfinite(np.asarray(shift)).all()


@pytest.mark.parametrize("keep", [keep_averages, keep_averages_in_kernel])
def test_late_iterates_weigh_most_in_the_averages(keep):
    """The n-th that enters weighs n(n + 1)(n + 2), whatever stood there at first; of 1,000 steps thirty enter."""
    assert 1_000 // STRIDE >= 30
    count = 5 * STRIDE + 3
    xs, ds = np.random.default_rng(2).standard_normal((2, count))
    means = KEPT_AT_FIRST["corrected"](jnp.float32(7.0))
    for t in range(1, count + 1):
        means = keep(jnp.float32(xs[t - 1]), jnp.float32(ds[t - 1]), means, jnp.float32(0), jnp.int32(t))
    weights = np.arange(1, 6) * np.arange(2, 7) * np.arange(3, 8)
    for mean, values in ((means.x, xs), (means.d, ds)):
        assert float(mean) == pytest.approx(np.average(values[STRIDE - 1 :: STRIDE], weights=weights), rel=1e-5)


def test_an_average_takes_the_iterate_at_which_d_was_made():
    """x_t goes with d_t, not the x_{t−1} that the difference of gradients needs too."""
    run = checked_run()
    seen = []

    def keep(x, d, means, chance, t):
        seen.append((x, d))
        return means

    state = initial(run.constraint, run.estimator, run.step, run.x0, run.steps, "corrected")
    state = state._replace(previous=jnp.full(D, 0.05, jnp.float32))
    draws, chance = step_draws(run.objective, run.estimator, streams(as_key(0)), jnp.int32(STRIDE))
    made = one_step(
        run.objective, run.constraint, run.estimator, run.step, 1, keep, state, draws, chance, (),
        jnp.float32(0.1), jnp.float32(0.1), jnp.int32(STRIDE),
    )  # fmt: skip
    ((x, d),) = seen
    np.testing.assert_array_equal(x, run.step.point(state.step))
    np.testing.assert_array_equal(d, run.estimator.direction(made.estimate))


# A run


def test_its_cost_is_counted(plain):
    half = half_kept(2_000)
    assert half == 20
    assert plain.steps == plain.samples == 2_000
    way = 2_000 - 2 * half
    assert plain.gradients == 2 * way - 1 + 5 * half
    assert plain.hvps % half == 0
    assert 2 <= plain.hvps // half <= fw.one_sfw().counts(squares(), 2_000).hvps // half
    assert way < plain.lmo_calls <= way + 1 + most_vertices(half)
    late = 3  # iterates, after 256, 512 and 1,024 steps; beside them x_{T+1} and every vertex but what ended the search
    assert plain.hvps == half * (late + 1 + plain.lmo_calls - way - 1)
    assert fw.one_sfw().counts(squares(), 2_000)._replace(hvps=plain.hvps) == (
        plain.samples, plain.gradients, plain.hvps,
    )  # fmt: skip
    assert not np.array_equal(plain.x, plain.x_last)
    assert np.abs(plain.x.astype(float)).sum() <= 1 + 1e-6
    assert plain.x.dtype == np.float32


def test_short_runs_and_other_outputs_keep_nothing_back():
    for steps, options in ((300, {}), (2_000, {"algorithm": fw.one_sfw(output="last")})):
        run = solve(steps, **options)
        assert (run.samples, run.lmo_calls, run.hvps) == (steps, steps, 0)
        np.testing.assert_array_equal(run.x, run.x_last)


def test_it_is_better_than_the_last_iterate():
    """By a tenth on the mean of 32 runs, for every key that was tried; of 8 runs it may be by a fortieth."""
    runs = solve(20_000, replicates=32)
    value = lambda x: np.mean((x.astype(float) @ ROWS.T - TARGETS) ** 2, -1) / 2  # noqa: E731
    assert np.mean(value(runs.x)) < np.mean(value(runs.x_last))


def test_where_one_x_fits_all_samples_the_batch_says_more_than_the_run():
    """The batch's own gradients and Hessian have their minimum where every sample has it."""
    fitting = np.array([0.4, -0.2, 0.1, 0, 0, 0])
    exact = fw.FiniteSum(lambda x, row: (row[0] @ x - row[1]) ** 2 / 2, (ROWS, ROWS @ fitting))
    runs = fw.minimize(exact, BALL, np.zeros(D), steps=20_000, replicates=4, evaluate=False)
    value = lambda x: np.mean(((x - fitting) @ ROWS.T) ** 2, -1)  # noqa: E731
    assert np.all(value(runs.x) < 1e-3 * value(runs.x_last))


def test_it_does_not_depend_on_where_the_run_is_looked_at_cut_or_resumed(plain, tmp_path):
    looked = solve(every=123, evaluate=None)
    np.testing.assert_array_equal(looked.x, plain.x)
    assert looked.trace.step[-1] == 2_000
    assert looked.trace.step[-2] <= 1_960
    assert looked.value == looked.trace.value[-1]
    stopped = solve(every=[1_100], callbacks=[lambda row, x: row["step"] >= 2_000], checkpoint=tmp_path / "run")
    assert stopped.steps == stopped.samples == 1_140  # made from what there was, with the samples that came next
    np.testing.assert_array_equal(solve(checkpoint=tmp_path / "run").x, plain.x)
    np.testing.assert_array_equal(solve(checkpoint=tmp_path / "run").x, plain.x)
    longer = solve(2_500, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(longer.x, solve(2_500).x)


def test_a_run_that_the_clock_ends_is_corrected_in_a_hurry(monkeypatch):
    """Not from a hundredth of its steps, which may take long."""
    monkeypatch.setattr(host_loop, "HURRIED_SECONDS", 0.0)
    run = solve(2**30, time_limit=0.5)
    assert run.status is fw.Status.TIME_UP
    half = half_kept(0)
    way = run.samples - 2 * half
    assert way > 2 * 100 * half
    assert run.gradients == 2 * way - 1 + 5 * half
    assert run.hvps % half == 0
    assert run.hvps > 0


def test_replicates_are_single_runs_and_agree_with_those_under_vmap(plain, monkeypatch):
    monkeypatch.setenv("ONESFW_KERNEL", "xla")  # last bits grow where oracles tie: one loop for both
    together = solve(replicates=2)
    alone = solve(key=jax.random.fold_in(jax.random.key(3), 1))
    np.testing.assert_array_equal(together.x[1], alone.x)
    assert together.hvps[1] == alone.hvps
    run = checked_run()
    under_vmap(monkeypatch)
    batched = carry_out(run, as_key(3), 2, False, vectorised=True)
    np.testing.assert_allclose(batched.x, together.x, atol=1e-4)
    assert batched.samples.tolist() == [2_000, 2_000]
    assert batched.hvps.shape == (2,)
    monkeypatch.setattr(programs, "few_corrected", lambda size: 1)
    divided = carry_out(run, as_key(3), 2, False, vectorised=True)
    np.testing.assert_allclose(divided.x, together.x, atol=1e-4)


def test_another_length_radius_and_other_data_compile_nothing(plain):
    before = compilations()
    fw.minimize(squares(2.0), fw.sets.L1Ball(2.0, shape=D), steps=1_234, key=9, evaluate=False)
    assert compilations() == before


@pytest.mark.parametrize(
    ("slope", "low", "high"),
    [
        (lambda s: 2 * (s - 0.3), 0.29, 0.31),
        (lambda s: s - 2, 1.0, 1.0),
        (lambda s: 1 + 0 * s, 0.0, 0.0),
        (lambda s: -jnp.cos(2 * jnp.pi * s), 0.2, 0.3),  # falls at both ends, not between
    ],
)
def test_the_line_search_goes_as_far_as_f_falls(slope, low, high):
    last, target = jnp.zeros(3), jnp.array([1.0, 0.0, 0.0])
    share = line_search(last, target, lambda y: jnp.stack([slope(y[0]), 0.0 * y[0], 0.0 * y[0]]))
    assert low <= share <= high


def test_where_x_shapes_its_samples_an_indefinite_model_is_not_used():
    """F(x) = E[−z²] with z ~ N(x, 1) is concave: its model would lead to any vertex."""
    concave = fw.NonOblivious(
        lambda x, z: -jnp.sum(z**2),
        lambda key, x: x + jax.random.normal(key, x.shape),
        lambda z, x: -jnp.sum((z - x) ** 2) / 2,
    )
    found = fw.minimize(concave, fw.sets.L2Ball(1.0, shape=4), steps=2_000, replicates=4, evaluate=False)
    np.testing.assert_array_equal(found.x, found.x_last)


def test_gap_tol_is_held_by_what_is_returned():
    run = solve(10**6, gap_tol=0.02, evaluate=None)
    assert run.status is fw.Status.GAP_REACHED
    assert run.gap <= 0.02
    assert run.value == run.trace.value[-1]
    assert run.samples == run.steps < 10**6


def test_of_many_entries_forty_points_are_not_enough():
    """x_{T+1} must forget sooner then, as where it is the answer."""
    pace = {}
    for entries in (150, 151):
        for output in (None, "last"):
            estimator = fw.one_sfw(output=output).estimator_for(squares()).for_steps(2_000, np.zeros(entries))
            pace[entries, output] = estimator.haste
    assert pace == {(150, None): 1.0, (150, "last"): 2.0, (151, None): 2.0, (151, "last"): 2.0}


# Other objectives and sets


def test_where_f_cannot_be_differentiated_twice_the_last_iterate_is_returned():
    def gradient(x, z):
        shape = jax.ShapeDtypeStruct((2,), jnp.float32)
        return jax.pure_callback(lambda y, w: np.asarray(y - w, np.float32), shape, x, z, vmap_method="sequential")

    once = fw.Expectation(
        lambda x, z: jnp.sum((x - z) ** 2) / 2, lambda key: 0.1 * jax.random.normal(key, (2,)), grad=gradient
    )
    run = fw.minimize(once, fw.sets.L2Ball(1.0, shape=2), steps=600, evaluate=False)
    assert "corrected" not in run.algorithm
    assert (run.samples, run.hvps) == (600, 0)


def test_a_model_that_is_not_convex_is_not_followed():
    """−‖x‖²/2 with noise over a box: the model is concave, and x_{T+1} is the output."""
    concave = fw.Expectation(
        lambda x, z: -jnp.sum(x**2) / 2 + z @ x, lambda key: 0.1 + 0.1 * jax.random.normal(key, (2,))
    )
    run = fw.minimize(
        concave, fw.sets.Box(-1.0, 1.0, shape=2), steps=3_000, algorithm=fw.one_sfw("nonconvex"), evaluate=False
    )
    assert run.hvps > 0
    np.testing.assert_array_equal(run.x, run.x_last)


def test_trees_and_maximisation():
    def value(x, z):
        return -jnp.sum((x["a"] - z) ** 2) / 2 - (x["b"] - 0.2) ** 2

    sets = fw.sets.Product({"a": fw.sets.Simplex(1.0, shape=3), "b": fw.sets.Box(-1.0, 1.0, shape=())})
    objective = fw.Expectation(value, lambda key: jnp.array([0.5, 0.3, 0.2]) + 0.1 * jax.random.normal(key, (3,)))
    run = fw.maximize(objective, sets, steps=3_000, algorithm=fw.one_sfw("convex"), evaluate=False)
    assert run.hvps > 0
    assert bool(sets.contains(run.x, 1e-6))
    np.testing.assert_allclose(run.x["a"], [0.5, 0.3, 0.2], atol=0.02)
    assert float(run.x["b"]) == pytest.approx(0.2, abs=0.02)


def test_samples_that_depend_on_x():
    problem = zoo.get("gaussian")
    runs = problem.run(steps=20_000, replicates=4, evaluate=False)
    errors = problem.value(runs.x.astype(float)) - problem.optimum().value
    last = problem.value(runs.x_last.astype(float)) - problem.optimum().value
    assert errors.mean() < last.mean()
    half = half_kept(20_000)
    way = 20_000 - 2 * half
    assert runs.gradients.tolist() == [way] * 4  # the line search takes Hessian-vector products here
    products = (runs.hvps - (way - 1)) // half - 3
    assert np.all(runs.hvps == way - 1 + (products + 3) * half)
    promised = fw.one_sfw().counts(problem.objective, 20_000)
    assert promised.gradients == way
    assert np.all((products >= 9) & (runs.hvps <= promised.hvps))
