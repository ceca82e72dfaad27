"""The sparse engine: the same iterates as Algorithm 2 written out densely, whatever the representation does."""

import numpy as np
import pytest
import scipy.sparse
from dense_reference import dense_run
from hypothesis import given
from hypothesis import strategies as st

from onesfw.linear import CONSTRAINTS, LOSSES, SCHEDULES, Learner, Settings, Start, evaluate, examples
from onesfw.linear.constraints import CLASSES
from onesfw.linear.one_hot import MANY_SHIFT, ONE_SHIFT, bounds_for, find_largest
from onesfw.schedules import Preset, Schedule, harmonic, inverse

STEPS = 100_000


def problem(seed=0, rows=300, columns=40, density=0.2, loss="logistic"):
    rng = np.random.default_rng(seed)
    matrix = scipy.sparse.random_array((rows, columns), density=density, rng=rng, format="csr")
    matrix.data = rng.normal(size=matrix.nnz)
    signal = matrix @ rng.normal(size=columns) + 0.3 * rng.normal(size=rows)
    if LOSSES[loss].classifies:
        return matrix, np.where(signal > 0, 1.0, -1.0)
    return matrix, rng.poisson(np.exp(np.clip(signal, -2, 2))).astype(float) if loss == "poisson" else signal


def compare(matrix, targets, settings, order, *, weights=None, sag=False, schedule=None, tolerance=1e-9):
    """Run both and compare x, the intercept and d, relative to their sizes."""
    weights = np.ones(len(targets)) if weights is None else weights
    learner = Learner(settings, rows=len(targets) if sag else None)
    if schedule is not None:
        learner.schedule = schedule
    learner.learn(matrix, targets, weights, order)
    t = np.arange(1, len(order) + 1)
    rates = learner.schedule.eta(t, 0), learner.schedule.rho(t, 0)
    x, b, d = dense_run(
        matrix.toarray().astype(float), targets, weights, order, *rates, learner.schedule.adaptive,
        learner.schedule.pace, sag,
        settings.loss, settings.constraint, settings.radius, settings.intercept or (0.0, 0.0),
    )  # fmt: skip
    assert np.linalg.norm(learner.coef - x) <= tolerance * np.linalg.norm(x)
    assert np.linalg.norm(learner.gradient - d) <= tolerance * np.linalg.norm(d)
    assert abs(learner.intercept - b) <= tolerance * max(abs(b), 1.0)
    assert settings.set.norm(learner.coef) <= settings.radius * (1 + 1e-9)
    return learner


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_agrees_with_the_dense_algorithm(constraint, schedule):
    matrix, targets = problem()
    order = np.random.default_rng(1).integers(0, len(targets), STEPS)
    compare(matrix, targets, Settings(40, "logistic", constraint, 3.0, schedule), order)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("schedule", ["c2", "auto"])
def test_every_loss_with_weights_and_an_intercept(loss, schedule):
    matrix, targets = problem(2, loss=loss)
    rng = np.random.default_rng(3)
    settings = Settings(40, loss, "l1", 2.0, schedule, intercept=(-0.4, 1.0))
    compare(matrix, targets, settings, rng.integers(0, 300, 20_000), weights=rng.uniform(0, 2, 300))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_sag_agrees_with_the_dense_algorithm(constraint):
    matrix, targets = problem(4)
    order = np.concatenate([np.random.default_rng(s).permutation(300) for s in range(100)])
    compare(matrix, targets, Settings(40, "logistic", constraint, 3.0, intercept=(-1.0, 2.0)), order, sag=True)


def falling(adaptive):
    """η and ρ that let the scales underflow every few hundred steps."""
    eta = Schedule("", lambda t, T: np.where(t == 1, 1.0, np.where(t % 3 == 0, 0.9, 1e-3)))
    rho = Schedule("", lambda t, T: np.where(t <= 2, 1.0, np.where(t % 5 == 0, 0.95, 1e-3)))
    return Preset("falling", eta, rho, adaptive)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("adaptive", [False, True])
def test_agrees_across_renormalisation(constraint, adaptive):
    matrix, targets = problem(5)
    # With an adaptive ρ steps of 0.9 make a chaotic map: two dense runs that differ by 1e-13 part after 10,000 steps.
    order = np.random.default_rng(6).integers(0, 300, 3_000 if adaptive else 20_000)
    compare(matrix, targets, Settings(40, "logistic", constraint, 3.0), order, schedule=falling(adaptive))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_fast_forgetting_in_the_l2_ball_and_others(constraint):
    """ρ = 20/t: without rebasing the parts of x in the l2 ball cancel and the error reaches 1e55."""
    matrix, targets = problem(7)
    order = np.random.default_rng(8).integers(0, 300, STEPS)
    compare(
        matrix,
        targets,
        Settings(40, "logistic", constraint, 3.0),
        order,
        schedule=Preset("", harmonic(2.0, 1.0), inverse(20.0)),
    )


def awkward(name):
    """Matrices that break careless kernels."""
    rng = np.random.default_rng(9)
    dense = rng.normal(size=(60, 12)) * (rng.random((60, 12)) < 0.4)
    if name == "equal columns":  # ties: the lowest index wins
        dense[:, 7] = dense[:, 3]
        dense[:, 9] = -dense[:, 3]
    elif name == "empty rows":
        dense[::3] = 0.0
    elif name == "one feature":
        dense = rng.normal(size=(60, 1))
    elif name == "one row":
        dense = rng.normal(size=(1, 12))
    elif name == "empty columns":
        dense[:, [0, 5, 11]] = 0.0
    matrix = scipy.sparse.csr_array(dense)
    if name == "explicit zeros":
        matrix.data[::4] = 0.0
    if name == "duplicate entries":
        half = scipy.sparse.csr_array(matrix)
        half.data = half.data / 2
        order = np.argsort(np.repeat(np.arange(60), np.diff(matrix.indptr)).repeat(2), kind="stable")
        matrix = scipy.sparse.csr_array(
            (half.data.repeat(2)[order], half.indices.repeat(2)[order], half.indptr * 2), shape=(60, 12)
        )
        assert not matrix.has_canonical_format
    return matrix


AWKWARD = (
    "equal columns",
    "empty rows",
    "one feature",
    "one row",
    "empty columns",
    "explicit zeros",
    "duplicate entries",
)


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("schedule", ["c4", "auto"])
def test_awkward_rows(name, constraint, schedule):
    matrix = awkward(name)
    rows, columns = matrix.shape
    targets = np.where(np.random.default_rng(10).random(rows) < 0.5, 1.0, -1.0)
    order = np.random.default_rng(11).integers(0, rows, 5_000)
    compare(matrix, targets, Settings(columns, "logistic", constraint, 2.0, schedule), order)


def test_many_blocks_and_groups():
    """More columns than one group of blocks holds, so that every level of the search is used."""
    matrix, targets = problem(12, rows=300, columns=20_000, density=0.001)
    order = np.random.default_rng(13).integers(0, 300, 1_500)
    for constraint in ("l1", "simplex"):
        compare(matrix, targets, Settings(20_000, "logistic", constraint, 30.0, "c2"), order)


@given(st.integers(1, 70_000), st.integers(0, 10_000), st.booleans(), st.sampled_from([1, 3]))
def test_find_largest_is_argmax(size, seed, symmetric, models):
    rng = np.random.default_rng(seed)
    g = rng.integers(-3, 4, size).astype(float)  # many ties
    blocks, groups = bounds_for(size, models)
    blocks[:], groups[:] = 5.0, 9.0  # any upper bounds will do
    keys = np.abs(g) if symmetric else -g
    shift = ONE_SHIFT if models == 1 else MANY_SHIFT
    assert find_largest(g, symmetric, blocks[:, 0], groups[:, 0], shift) == np.argmax(keys)


def models_apart(matrix, targets, settings, order, sag):
    """Each model of the settings learnt alone."""
    for i in range(settings.models):
        alone = Settings(
            settings.n_features, settings.loss, settings.constraint, float(settings.radii[i]), settings.schedule,
            None if settings.intervals is None else settings.intervals[i],
        )  # fmt: skip
        learner = Learner(alone, rows=len(targets) if sag else None)
        yield learner, learner.learn(matrix, settings.targets_of(targets, i), order=order)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("schedule", ["paper", "auto", "sag"])
@pytest.mark.parametrize("of", ["classes", "radii"])
def test_models_side_by_side_are_each_what_they_are_alone(constraint, schedule, of):
    rng = np.random.default_rng(30)
    matrix, targets = problem(30, columns=700, density=0.02)
    order, sag = rng.integers(0, 300, 4_000), schedule == "sag"
    name = None if sag else schedule
    if of == "classes":
        targets = rng.integers(0, 5, 300).astype(float)
        intervals = tuple((-1.0 - i, 0.5 * i) for i in range(5))
        settings = Settings(700, "logistic", constraint, 3.0, name, intervals, labels=(0, 1, 2, 3, 4))
    else:
        settings = Settings(700, "logistic", constraint, (0.5, 2.0, 8.0), name)
    together = Learner(settings, rows=300 if sag else None)
    data = examples(matrix, targets, None, 700, settings.loss_function, settings.labels)
    losses = together.learn_examples(data, order)
    alone = list(models_apart(matrix, targets, settings, order, sag))
    np.testing.assert_array_equal(together.coefs, [learner.coef for learner, _ in alone])
    np.testing.assert_array_equal(together.intercepts, [learner.intercept for learner, _ in alone])
    np.testing.assert_array_equal(losses, [loss for _, loss in alone])
    again = Learner.from_tensors(settings, together.tensors())
    np.testing.assert_array_equal(again.coefs, together.coefs)


@pytest.mark.parametrize("constraint", ["l1", "simplex", "nonnegative_l1"])
def test_the_bounds_lie_between_the_keys_and_the_largest_of_them(constraint):
    matrix, _ = problem(33, columns=700, density=0.02)
    targets = np.random.default_rng(33).integers(0, 5, 300).astype(float)
    learner = Learner(Settings(700, "logistic", constraint, 3.0, labels=(0, 1, 2, 3, 4)))
    data = examples(matrix, targets, None, 700, LOSSES["logistic"], learner.settings.labels)
    learner.learn_examples(data, np.random.default_rng(34).integers(0, 300, 2_000))
    g = learner.pairs[:, 1]
    keys = np.abs(g) if constraint == "l1" else -g
    starts = np.arange(0, 700, 1 << MANY_SHIFT)
    assert (learner.blocks >= np.maximum.reduceat(keys, starts)).all()
    assert (learner.blocks <= keys.max(axis=0)).all()
    assert (learner.blocks > np.maximum.reduceat(keys, starts)).any()  # not all of them exact
    np.testing.assert_array_equal(learner.scalars["place"], keys.argmax(axis=0))


def test_a_vertex_whose_entry_came_back_to_zero_is_not_forgotten():
    """A learner that goes on from its tensors knows where a vertex has been from X ≠ 0, and from the last vertex."""
    rng = np.random.default_rng(35)
    matrix, _ = problem(35)
    data = examples(matrix, rng.integers(0, 3, 300).astype(float), None, 40, LOSSES["logistic"], (0, 1, 2))
    learner = Learner(Settings(40, "logistic", "l1", 3.0, labels=(0, 1, 2)))
    learner.learn_examples(data, rng.integers(0, 300, 500))
    learner.pairs[learner.scalars["place"], 0] = 0.0
    again = Learner.from_tensors(learner.settings, learner.tensors())
    order = rng.integers(0, 300, 500)
    learner.learn_examples(data, order)
    again.learn_examples(data, order)
    np.testing.assert_array_equal(again.coefs, learner.coefs)


def test_models_side_by_side_agree_across_renormalisation():
    matrix, targets = problem(31)
    order = np.random.default_rng(32).integers(0, 300, 3_000)
    for constraint in CONSTRAINTS:
        settings = Settings(40, "logistic", constraint, (1.0, 3.0))
        together, alone = Learner(settings), Learner(Settings(40, "logistic", constraint, 3.0))
        together.schedule = alone.schedule = falling(False)
        together.learn(matrix, targets, order=order)
        alone.learn(matrix, targets, order=order)
        np.testing.assert_array_equal(together.coefs[1], alone.coef, err_msg=constraint)


def test_a_set_is_the_same_by_its_word_and_by_its_class():
    import onesfw as fw

    assert sorted(CLASSES.values()) == sorted(CONSTRAINTS)
    for name, word in CLASSES.items():
        assert hasattr(fw.sets, name)
        assert Settings(3, constraint=name).constraint == word


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_stream_may_be_cut_anywhere(constraint, schedule):
    matrix, targets = problem(14, rows=400)
    settings = Settings(40, "logistic", constraint, 2.0, schedule, intercept=(-1.0, 1.0))
    whole, cut = Learner(settings), Learner(settings)
    loss = whole.learn(matrix, targets)
    parts = 0.0
    for begin, end in [(0, 1), (1, 2), (2, 150), (150, 150), (150, 399), (399, 400)]:
        parts += cut.learn(matrix[begin:end], targets[begin:end])
        cut = Learner.from_tensors(settings, cut.tensors())
    assert loss == pytest.approx(parts, rel=1e-12)
    for name, tensor in whole.tensors().items():
        np.testing.assert_array_equal(tensor, cut.tensors()[name], err_msg=name)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_float32_rows_are_read_as_they_are(constraint):
    matrix, targets = problem(15)
    single = matrix.astype(np.float32)
    order = np.random.default_rng(16).integers(0, 300, 5_000)
    assert examples(single, targets, None, 40, LOSSES["logistic"]).values.dtype == np.float32
    compare(single, targets, Settings(40, "logistic", constraint, 3.0), order)


@pytest.mark.parametrize(
    ("constraint", "set_name"),
    [("l1", "L1Ball"), ("l2", "L2Ball"), ("simplex", "Simplex"), ("nonnegative_l1", "SubSimplex")],
)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_agrees_with_the_jax_engine(constraint, set_name, schedule):
    import jax.numpy as jnp

    import onesfw as fw

    matrix, targets = problem(17)
    order = np.random.default_rng(18).integers(0, 300, 2_000)
    settings = Settings(40, "logistic", constraint, 3.0, schedule)
    x0 = np.zeros(40)
    x0[0] = 3.0 if constraint == "simplex" else 0.0
    run = fw.minimize(
        fw.FiniteSum(
            lambda x, row: jnp.logaddexp(0.0, -row[1] * (row[0] @ x)), (matrix.toarray(), targets), indices=order
        ),
        getattr(fw.sets, set_name)(3.0), x0, steps=len(order), evaluate=False,
        algorithm=fw.one_sfw(schedule=schedule, output="last"),
    )  # fmt: skip
    learner = Learner(settings)
    learner.learn(matrix, targets, order=order)
    np.testing.assert_allclose(learner.coef, run.x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_warm_start_is_kept(constraint):
    matrix, targets = problem(19)
    settings = Settings(40, "logistic", constraint, 2.0, intercept=(-1.0, 1.0))
    first = Learner(settings)
    first.learn(matrix, targets, order=np.random.default_rng(20).integers(0, 300, 20_000))
    second = Learner(settings, start=Start(first.coefs, first.intercepts, first.steps))
    np.testing.assert_array_equal(second.coef, first.coef) if constraint != "linf" else None
    second.learn(matrix[:1], targets[:1])
    assert np.abs(second.coef - first.coef).max() <= 2 * 2 * 2.0 / 20_000


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_gap_is_the_largest_first_order_decrease(constraint):
    matrix, targets = problem(21)
    settings = Settings(40, "logistic", constraint, 2.0, intercept=(-0.5, 1.0))
    weights = np.random.default_rng(22).uniform(0, 2, 300)
    data = examples(matrix, targets, weights, 40, settings.loss_function)
    learner = Learner(settings)
    learner.learn(matrix, targets, weights)
    x, b = learner.coef, learner.intercept

    def objective(x, b):
        m = targets * (matrix @ x + b)
        return np.average(np.logaddexp(0, -m), weights=weights)

    (value,), (gap,), (best,) = evaluate(settings, data, x, b)
    assert value == pytest.approx(objective(x, best), rel=1e-12)
    assert value <= min(objective(x, other) for other in np.linspace(-0.5, 1.0, 301)) + 1e-12
    b = best
    step = 1e-6
    gradient = np.array([(objective(x + step * e, b) - objective(x - step * e, b)) / (2 * step) for e in np.eye(40)])
    slope = (objective(x, b + step) - objective(x, b - step)) / (2 * step)
    from dense_reference import oracle

    vertex = oracle.py_func(constraint, gradient, 2.0)
    assert slope * (b - (-0.5 if slope > 0 else 1.0)) == pytest.approx(0.0, abs=1e-7)  # nothing left in the intercept
    assert gap == pytest.approx(gradient @ (x - vertex), abs=1e-7)


def test_progressive_loss_is_the_loss_before_learning():
    matrix, targets = problem(23, loss="squared")
    settings = Settings(40, "squared", "l1", 1.0)
    learner = Learner(settings)
    for i in range(20):
        before = LOSSES["squared"].value(matrix[[i]] @ learner.coef, targets[[i]])[0]
        assert learner.learn(matrix[[i]], targets[[i]]) == pytest.approx(before, rel=1e-12)


def test_the_intercept_of_a_stream_converges():
    """One pass, no constraint that matters: the intercept is the log-odds of a class, the mean of a target."""
    rng = np.random.default_rng(34)
    rows = np.zeros((20_000, 1))
    y = np.where(rng.random(20_000) < 0.1, 1.0, -1.0)
    learner = Learner(Settings(1, intercept=(-np.inf, np.inf)))
    learner.learn(rows, y)
    share = (y > 0).mean()
    assert learner.intercept == pytest.approx(
        np.log(share / (1 - share)), abs=4 / np.sqrt(20_000 * share * (1 - share))
    )
    y = 1e6 + 3.0 * rng.normal(size=20_000)
    learner = Learner(Settings(1, "squared", intercept=(-np.inf, np.inf)))
    learner.learn(rows, y)
    assert learner.intercept == pytest.approx(y.mean(), abs=4 * 3.0 / np.sqrt(20_000))


def test_overflow_is_a_sentence():
    with pytest.raises(FloatingPointError, match="lower the radius"):
        Learner(Settings(1, "squared", "l1", 1e99)).learn(np.full((50, 1), 1e90), np.full(50, 100.0))


@pytest.mark.parametrize("largest", [30.0, 100.0, 1e5, 1e30])
@pytest.mark.parametrize("constraint", ["l1", "l2", "linf", "simplex", "nonnegative_l1"])
@pytest.mark.parametrize("models", [1, 2])
def test_exponentials_beyond_the_range_of_numbers_are_cut(models, constraint, largest):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 4)) * [largest, 1.0, 1.0, 1.0]
        y = rng.poisson(np.exp(0.3 * X[:, 1])).astype(float)
        settings = Settings(4, "poisson", constraint, (10.0, 3.0)[:models], intercept=(-np.inf, np.inf))
        whole, pieces = Learner(settings), Learner(settings)
        assert np.isfinite(whole.learn(X, y))
        for rows in np.split(np.arange(400), [1, 7, 200]):
            pieces.learn(X[rows], y[rows])
        assert whole.sound
        assert np.array_equal(whole.coefs, pieces.coefs)
        norms = np.array([settings.set.norm(coef) for coef in whole.coefs])
        assert (norms <= settings.radii * (1 + 1e-6)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "logistik"}, "did you mean 'logistic'"),
        ({"constraint": "L1"}, "constraint"),
        ({"radius": 0.0}, "radius"),
        ({"radius": np.nan}, "radius"),
        ({"schedule": "fast"}, "schedule"),
        ({"intercept": (1.0, 0.0)}, "intercept"),
        ({"intercept": (0.0, np.nan)}, "intercept"),
        ({"intercept": (0.0, 1.0, 2.0)}, "intercept"),
        ({"n_features": 0}, "n_features"),
        ({"delta": -1.0}, "delta"),
        ({"radius": (1.0, 0.0)}, "radius"),
        ({"radius": (1.0, 2.0), "labels": (0, 1, 2)}, "radius and labels"),
        ({"loss": "squared", "labels": (0, 1, 2)}, "labels"),
        ({"radius": (1.0, 2.0), "intercept": ((0.0, 1.0),)}, "intercept"),
        ({"n_features": 2**40}, "n_features"),
    ],
)
def test_bad_settings_name_the_argument(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Settings(**{"n_features": 3, **change})


@pytest.mark.parametrize(
    ("rows", "targets", "weights", "message"),
    [
        (np.ones((2, 4)), [1, -1], None, "3 columns"),
        (np.ones(3), [1], None, "matrix"),
        (np.full((2, 3), np.nan), [1, -1], None, "finite"),
        (np.ones((2, 3)), [1], None, "targets"),
        (np.ones((2, 3)), [1, 2], None, "-1 or"),
        (np.ones((2, 3)), [1, np.nan], None, "targets"),
        (np.ones((2, 3)), [1, -1], [1], "weights"),
        (np.ones((2, 3)), [1, -1], [1, -1], "weights"),
    ],
)
def test_bad_rows_name_the_argument(rows, targets, weights, message):
    with pytest.raises(ValueError, match=message):
        Learner(Settings(3)).learn(rows, targets, weights)


def test_coefficients_of_other_shapes_are_refused():
    data = examples(np.eye(3), [1.0, -1.0, 1.0], None, 3, LOSSES["logistic"])
    for shape in ((2, 3), (1, 4)):
        with pytest.raises(ValueError, match="coefs must have a row for each of the 1 models and 3 columns"):
            evaluate(Settings(3), data, np.zeros(shape))


def test_compiling_takes_no_step():
    learner = Learner(Settings(3))
    learner.compile(np.float32)
    assert learner.steps == 0
    assert learner.compile(np.float32) < 0.5
