"""Every method in the loop: counts before and after a run, and one program for all batch sizes."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_cases import under_vmap
from methods_checks import BALL, D, N, logistic, noisy

import onesfw as fw
from onesfw.algorithms import ALGORITHMS, SETTINGS
from onesfw.engine.checks import build_run, starting_point
from onesfw.engine.fingerprint import fingerprint
from onesfw.engine.programs import compilations
from onesfw.engine.solve import carry_out
from onesfw.estimators import StepInputs
from onesfw.estimators.sampling import BLOCK_BYTES, block_size

# -- counts -----------------------------------------------------------------------------------------------------------


def summed(steps, at):
    """(samples, gradients, hvps) added up over t = 1, …, steps."""
    return tuple(int(sum(column)) for column in zip(*(at(t) for t in range(1, steps + 1)), strict=True))


def power_of_two(t):
    return 2 ** (t.bit_length() - 1)


def spider_at(t):
    K = power_of_two(t)
    return (K**2, K**2, 0) if t == K else (K, 2 * K, 0)


def svrf_at(t):
    epoch, before = 1, 0
    while t > before + 2 ** (epoch + 3) - 2:
        before, epoch = before + 2 ** (epoch + 3) - 2, epoch + 1
    k = t - before
    return (N, N, 0) if k == 1 else (4 * (k + 1), 8 * (k + 1), 0)


def storc_at(t):
    epoch, before = 1, 0
    while t > before + int(np.ceil(2 ** (epoch / 2 + 2))):
        before, epoch = before + int(np.ceil(2 ** (epoch / 2 + 2))), epoch + 1
    length = int(np.ceil(2 ** (epoch / 2 + 2)))
    return (N, N, 0) if t - before == 1 else (length, 2 * length, 0)


T = 50
ROOT = 8  # ⌈√50⌉
FORMULAS = {
    "one_sfw": (fw.one_sfw(), lambda t: (1, 1 + (t > 1), 0)),
    "one_sfw, growing": (fw.one_sfw(batch=lambda t: t), lambda t: (t, t if t == 1 else 2 * t, 0)),
    "momentum_sfw": (fw.momentum_sfw(batch=3), lambda t: (3, 3, 0)),
    "minibatch_sfw": (fw.minibatch_sfw(noise=1.0), lambda t: ((t + 1) ** 2, (t + 1) ** 2, 0)),
    "minibatch_sfw, noise": (fw.minibatch_sfw(noise=0.1), lambda t: (-(-((t + 1) ** 2) // 100),) * 2 + (0,)),
    "minibatch_sfw, nonconvex": (fw.minibatch_sfw("nonconvex"), lambda t: (T, T, 0)),
    "online_fw": (fw.online_fw(), lambda t: (1, t, 0)),
    "online_fw, memory": (fw.online_fw(memory=10), lambda t: (1, min(t, 10), 0)),
    "online_fw, batch": (fw.online_fw(batch=3, memory=10), lambda t: (3, min(3 * t, 10), 0)),
    "spider_fw": (fw.spider_fw(noise=1.0), spider_at),
    "spider_fw, full": (
        fw.spider_fw(full=True),
        lambda t: (N, N, 0) if t == power_of_two(t) else (power_of_two(t), 2 * power_of_two(t), 0),
    ),
    "spider_fw, nonconvex": (
        fw.spider_fw("nonconvex"),
        lambda t: (T, T, 0) if (t - 1) % ROOT == 0 else (ROOT, 2 * ROOT, 0),
    ),
    "normalized_fw": (fw.normalized_fw(), lambda t: (T, T, 0) if (t - 1) % ROOT == 0 else (ROOT, 2 * ROOT, 0)),
    "normalized_fw, hessian": (
        fw.normalized_fw(correction="hessian"),
        lambda t: (T, T, 0) if (t - 1) % ROOT == 0 else (ROOT, 0, ROOT),
    ),
    "scg_plus_plus": (fw.scg_plus_plus("convex", noise=1), lambda t: (1250, 1250, 0) if t == 1 else (25, 50, 0)),
    "svrf": (fw.svrf(constant=4), svrf_at),
    "svrf, book": (
        fw.svrf(schedule="book", constant=4),
        lambda t: (N, N, 0) if t == power_of_two(t) else (2 * (t + 1), 4 * (t + 1), 0),
    ),
    "storc": (fw.storc(), storc_at),
    "svfw": (fw.svfw(), lambda t: (N, N, 0) if (t - 1) % 4 == 0 else (16, 32, 0)),
    "svfw, in samples": (fw.svfw(full=False), lambda t: (T, T, 0) if (t - 1) % 4 == 0 else (14, 28, 0)),
    "saga_fw": (fw.saga_fw(), lambda t: (N, N, 0) if t == 1 else (8, 8, 0)),
    "projected_sgd": (fw.projected_sgd(), lambda t: (1, 1, 0)),
    "storm": (fw.storm(), lambda t: (1, 1 + (t > 1), 0)),
    "frank_wolfe": (fw.frank_wolfe(), lambda t: (N, N, 0)),
}


@pytest.mark.parametrize("case", FORMULAS)
def test_counts_follow_the_schedule(case):
    algorithm, at = FORMULAS[case]
    assert algorithm.counts(logistic(), T) == summed(T, at)
    assert algorithm.estimator(logistic()).counts(logistic(), 17, T) == summed(17, at)


def test_a_run_reports_the_counts_that_were_announced():
    for algorithm in (fw.spider_fw(), fw.svrf(), fw.minibatch_sfw("nonconvex"), fw.projected_sgd()):
        result = fw.minimize(logistic(), BALL, steps=T, algorithm=algorithm, every=[17], evaluate=False)
        announced = algorithm.counts(logistic(), T)
        assert (result.samples, result.gradients, result.hvps) == announced
        assert result.trace.samples[0] == algorithm.estimator(logistic()).counts(logistic(), 17, T).samples
        assert result.lmo_calls == (0 if algorithm.name == "projected_sgd" else T)


def test_counts_of_long_runs_are_sums_too():
    long = fw.momentum_sfw(batch=lambda t: np.where(t % 2 == 0, 3, 1))
    assert long.counts(logistic(), 200_001) == (400_001, 400_001, 0)


@pytest.mark.parametrize("case", FORMULAS)
@pytest.mark.parametrize("budget", [("samples", 5_000), ("gradients", 9_999)])
def test_steps_for_fills_a_budget(case, budget):
    (name, limit), (algorithm, _) = budget, FORMULAS[case]
    steps = algorithm.steps_for(logistic(), **{name: limit})

    def cost(steps):
        counts = algorithm.counts(logistic(), steps)
        return counts.samples if name == "samples" else counts.gradients + counts.hvps

    assert cost(steps) <= limit < cost(steps + 1)


def test_steps_for_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"one of samples= and gradients="):
        fw.one_sfw().steps_for(logistic())
    with pytest.raises(ValueError, match=r"the first step of frank_wolfe takes 60 samples, more than 59"):
        fw.frank_wolfe().steps_for(logistic(), samples=59)
    with pytest.raises(TypeError, match=r"svrf needs a full gradient, which objective Expectation does not offer"):
        fw.svrf().steps_for(noisy(), samples=100)


# -- one program ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (fw.minibatch_sfw(noise=0.1), fw.minibatch_sfw(noise=2.0)),
        (fw.spider_fw(), fw.spider_fw(schedule="book")),
        (fw.svrf(constant=1), fw.svrf(schedule="book", constant=48)),
        (fw.storc(), fw.storc(smoothness=1.0, constant=3)),
    ],
)
def test_sizes_compile_nothing(small, large):
    fw.minimize(logistic(), BALL, steps=20, algorithm=small, evaluate=False)
    before = compilations()
    fw.minimize(logistic(), BALL, steps=45, algorithm=large, key=3, evaluate=False)
    assert compilations() == before


def arrays_in(jaxpr):
    """The bytes of every array that a program makes, inner programs included."""
    for equation in jaxpr.eqns:
        for out in equation.outvars:
            if hasattr(out.aval, "shape") and jnp.issubdtype(out.aval.dtype, jnp.number):
                yield int(np.prod(out.aval.shape)) * out.aval.dtype.itemsize
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                if hasattr(inner, "jaxpr"):
                    inner = inner.jaxpr
                if hasattr(inner, "eqns"):
                    yield from arrays_in(inner)


@pytest.mark.parametrize("algorithm", [fw.minibatch_sfw(), fw.spider_fw(), fw.svrf(), fw.online_fw()])
@pytest.mark.parametrize("d", [5, 400_000])
def test_memory_does_not_grow_with_the_batch(algorithm, d):
    """A batch of 10⁹ is an argument; the largest array holds a block of samples, or one."""
    objective = fw.FiniteSum(lambda x, row: row * jnp.sum(x**2), np.ones(3, np.float32))
    estimator = algorithm.estimator(objective)
    x = jnp.zeros(d, jnp.float32)

    def step(size, x):
        plan = estimator.plan(np.array([1]), 10)
        plan = jax.tree.map(lambda leaf: size, plan)
        draws = estimator.draws(objective, jax.random.key(0), jnp.int32(10**6))
        return estimator.update(
            objective, estimator.init(x), StepInputs(x, x, draws, plan, jnp.float32(0.5), jnp.int32(10**6))
        )

    largest = max(arrays_in(jax.make_jaxpr(step)(jnp.int32(10**9), x).jaxpr))
    assert largest <= max(BLOCK_BYTES, x.nbytes)
    assert block_size(x) * x.nbytes <= max(BLOCK_BYTES, x.nbytes)


RUNNING = {
    "minibatch_sfw": fw.minibatch_sfw(),
    "spider_fw": fw.spider_fw(),
    "svrf": fw.svrf(),
    "storc": fw.storc(),
    "saga_fw": fw.saga_fw(),
    "online_fw": fw.online_fw(),
    "projected_sgd": fw.projected_sgd(),
    "storm": fw.storm(),
}


@pytest.mark.parametrize("name", RUNNING)
def test_the_trajectory_does_not_depend_on_chunks(name):
    algorithm = RUNNING[name]
    plain = fw.minimize(logistic(), BALL, steps=60, algorithm=algorithm, key=3, evaluate=False)
    cut = fw.minimize(logistic(), BALL, steps=60, algorithm=algorithm, key=3, evaluate=False, every=[1, 2, 9, 31, 59])
    for a, b in zip(jax.tree.leaves(plain.state), jax.tree.leaves(cut.state), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(plain.x, cut.x)
    assert bool(BALL.contains(plain.x, 1e-5))


@pytest.mark.parametrize("name", ["spider_fw", "storc"])
def test_a_checkpoint_goes_on_to_the_same_bits(name, tmp_path):
    def run(**options):
        return fw.minimize(logistic(), BALL, steps=60, algorithm=RUNNING[name], key=3, **options)

    whole = run(evaluate=False)
    stopped = run(checkpoint=tmp_path / "run", every=[23], callbacks=[lambda row, x: False])
    assert stopped.steps == 23
    resumed = run(checkpoint=tmp_path / "run", evaluate=False)
    np.testing.assert_array_equal(whole.x, resumed.x)
    assert (resumed.samples, resumed.lmo_calls) == (whole.samples, whole.lmo_calls)
    other = ALGORITHMS[name]("convex", **({"noise": 3.0} if name == "spider_fw" else {"smoothness": 3.0}))
    with pytest.raises(ValueError, match="another algorithm"):
        fw.minimize(logistic(), BALL, steps=60, algorithm=other, key=3, checkpoint=tmp_path / "run")


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if SETTINGS[name][0] != "dr_submodular"])
def test_a_fingerprint_names_no_object_of_this_process(name):
    setting = SETTINGS[name][0]
    start = starting_point(None, BALL)
    run = build_run(
        logistic(), BALL, start, False, 1, steps=50, algorithm=ALGORITHMS[name](setting), evaluate=False, every=None,
        gap_tol=None, time_limit=None, callbacks=(),
    )  # fmt: skip
    assert not re.search(r"0x[0-9a-f]{6,}", str(fingerprint(run, jax.random.key(0), None)))


@pytest.mark.parametrize("name", ["spider_fw", "storc"])
def test_replicates_under_vmap_agree_with_single_runs(monkeypatch, name):
    """The accelerator's path, on the CPU, on a problem whose oracle is continuous."""
    ball = fw.sets.L2Ball(1.0, shape=D)
    run = build_run(
        logistic(), ball, starting_point(None, ball), False, 1, steps=40, algorithm=RUNNING[name], evaluate=False,
        every=[10], gap_tol=None, time_limit=None, callbacks=(),
    )  # fmt: skip
    under_vmap(monkeypatch)
    batched, threads = (carry_out(run, jax.random.key(1), 3, False, vectorised=v) for v in (True, False))
    for field in ("x", "x_last", "samples", "lmo_calls"):
        np.testing.assert_allclose(
            getattr(batched, field), getattr(threads, field), rtol=1e-3, atol=1e-4, err_msg=field
        )
    np.testing.assert_allclose(np.broadcast_to(batched.trace.lmo_calls, (3, 2)), threads.trace.lmo_calls)


def test_a_gradient_that_is_not_finite_once_is_seen():
    """√|x| has no gradient at 0, where the run starts; a method that starts anew must not forget it."""
    objective = fw.FiniteSum(lambda x, row: jnp.sum(row * jnp.sqrt(jnp.abs(x))), np.ones((2, 3), np.float32))
    for algorithm in (fw.spider_fw(), fw.svrf(schedule="book")):
        box = fw.sets.Box(-1.0, 1.0, shape=3)
        result = fw.minimize(objective, box, steps=20, algorithm=algorithm, evaluate=False)
        assert result.status is fw.Status.NOT_FINITE, algorithm.name
        assert result.failed_step == 1


# -- the oracle of the non-monotone setting ----------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", [fw.sets.SubSimplex(1.5, shape=4), fw.sets.Knapsack([1.0, 2, 0, 1], 1.5), "box"])
def test_the_oracle_below_a_bound_is_optimal(constraint):
    """Against a linear program."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(2)
    box = constraint == "box"
    constraint = fw.sets.Box(0.0, 1.0, shape=4) if box else constraint
    costs = {"SubSimplex": np.ones(4), "Knapsack": np.array([1.0, 2, 0, 1]), "Box": np.zeros(4)}
    budget, row = (0.0 if box else 1.5), costs[type(constraint).__name__]
    top = np.full(4, 1.5) if isinstance(constraint, fw.sets.SubSimplex) else np.ones(4)
    for _ in range(20):
        d, room = rng.standard_normal(4), rng.uniform(0, 1, 4)
        v = np.asarray(constraint.lmo_below(jnp.asarray(d, jnp.float32), jnp.asarray(room, jnp.float32)))
        best = linprog(
            d, A_ub=row[None], b_ub=[budget], bounds=list(zip(np.zeros(4), np.minimum(room, top), strict=True))
        )
        assert d @ v == pytest.approx(best.fun, abs=1e-5)
        assert (v <= room + 1e-6).all()
        assert bool(constraint.contains(jnp.asarray(v), 1e-5))
