"""The polish: sets and losses to a certified gap, exact supports, conjugate gradients, interrupts; scales and radii."""

import os
import signal
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from onesfw.linear import CONSTRAINTS, LOSSES, Settings, evaluate, examples, radius_path, train
from onesfw.linear import curvature as curvatures
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.parallel_learners import ParallelLearners
from onesfw.linear.polish import Rounds, polish
from onesfw.linear.radii import chosen_radius, first_start, solve_radii
from onesfw.linear.scaling import column_scales, unevenness
from onesfw.linear.simplex_quadratics import over_simplex
from onesfw.linear.training import Budget, fit_in_memory
from onesfw.sklearn import OneSFWClassifier, OneSFWRegressor


def case(loss, seed=0, rows=150, columns=12):
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random_array((rows, columns), density=0.4, rng=rng, format="csr")
    X.data = rng.normal(size=X.nnz)
    signal = X @ rng.normal(size=columns)
    y = {
        "logistic": np.where(signal + rng.normal(size=rows) > 0, 1.0, -1.0),
        "squared_hinge": np.where(signal + rng.normal(size=rows) > 0, 1.0, -1.0),
        "poisson": rng.poisson(np.exp(signal / 3)).astype(float),
    }.get(loss, 5 * signal + rng.standard_t(2, size=rows) + 7)
    return examples(X, y, rng.uniform(0.5, 2, rows), columns, LOSSES[loss])


def solved(settings, data, limit=1e-9, **options):
    start = first_start(settings)
    return polish(settings, data, start.coefs, start.intercepts, np.full(settings.models, limit), **options)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_every_loss_over_every_set_to_a_certified_gap(loss, constraint):
    data = case(loss)
    for radius in (0.3, 3.0, 100.0):
        for interval in (None, ANYWHERE, (-0.5, 0.5)):
            if loss == "poisson" and constraint == "simplex" and radius == 100.0:
                continue  # exp of a hundred standard deviations
            settings = Settings(12, loss, constraint, radius, intercept=interval)
            found = solved(settings, data)
            again = evaluate(settings, data, found.coefs, found.evaluation.intercepts)
            scale = max(1.0, abs(again.value[0]))
            assert again.gap[0] <= 1e-7 * scale
            assert found.evaluation.value[0] == pytest.approx(again.value[0], rel=1e-12)
            assert settings.set.norm(found.coefs[0]) <= radius * (1 + 1e-12)
            assert settings.set.signed or found.coefs.min() >= 0
            assert interval is None or interval[0] <= found.evaluation.intercepts[0] <= interval[1]
            if constraint == "simplex":
                assert found.coefs.sum() == pytest.approx(radius, rel=1e-12)


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf"])
def test_conjugate_gradients_find_the_same_optimum(constraint, monkeypatch):
    data = case("logistic")
    settings = Settings(12, "logistic", constraint, 3.0, intercept=ANYWHERE)
    dense = solved(settings, data)
    monkeypatch.setattr(curvatures, "MOST_COLUMNS", 0)
    made = []
    plain = curvatures.Products.__init__
    monkeypatch.setattr(curvatures.Products, "__init__", lambda self, *given: made.append(1) or plain(self, *given))
    sparse = solved(settings, data)
    assert made
    assert sparse.evaluation.gap[0] <= 1e-9
    np.testing.assert_allclose(sparse.coefs, dense.coefs, atol=1e-5)


@pytest.mark.parametrize("filled", [False, True])
def test_exchanges_of_pairs_and_pivoting_agree(filled):
    rng = np.random.default_rng(5)
    for trial in range(20):
        size, radius = 25, float(10 ** rng.uniform(-1, 2))
        data = examples(rng.normal(size=(40, size)), np.zeros(40), None, size, LOSSES["squared"])
        columns = curvatures.Columns(data.indptr, data.indices, data.values, size)
        H = curvatures.Matrix(columns, rng.uniform(0.1, 1, 40), False, 0.0)
        z = rng.dirichlet(np.ones(size)) * radius * (1.0 if filled else rng.random())
        slope = rng.normal(size=size) * 10 ** rng.uniform(-1, 2)
        exact = over_simplex(H, slope, z, radius, filled)
        rough = over_simplex(H, slope, z, radius, filled, 1e-6)
        for v in (exact, rough):
            assert v.min() >= 0
            assert v.sum() <= radius * (1 + 1e-12)
            assert not filled or v.sum() == pytest.approx(radius, rel=1e-12)
            g = slope + H.times(v - z)
            least = g.min() if filled else min(g.min(), 0.0)
            first = slope @ z - radius * (slope.min() if filled else min(slope.min(), 0.0))
            assert g @ v - radius * least <= 1.001e-6 * first, trial
        np.testing.assert_allclose(exact, rough, atol=2e-2 * radius)


def test_exchanges_go_on_where_nothing_bends():
    data = examples(np.zeros((4, 3)), np.zeros(4), None, 3, LOSSES["squared"])
    H = curvatures.Matrix(curvatures.Columns(data.indptr, data.indices, data.values, 3), np.ones(4), False, 0.0)
    slope = np.array([-1.0, 2.0, -3.0])
    for accuracy in (0.0, 0.1):
        np.testing.assert_array_equal(over_simplex(H, slope, np.zeros(3), 5.0, False, accuracy), [0.0, 0.0, 5.0])
        np.testing.assert_array_equal(over_simplex(H, slope, np.array([5.0, 0, 0]), 5.0, True, accuracy), [0, 0, 5.0])


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_targets_that_leave_every_row_where_its_loss_is_linear(constraint):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 4)), 1e3 * rng.choice([-1.0, 1.0], 6)
    data = examples(X, y, None, 4, LOSSES["huber"])
    for radius in (0.1, 30.0, 3e3):
        found = solved(Settings(4, "huber", constraint, radius, intercept=ANYWHERE), data, 1e-6)
        assert found.evaluation.gap[0] <= 1e-5


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_columns_of_heavy_tails(loss):
    for seed in (1, 10, 11, 19, 23):
        rng = np.random.default_rng(seed)
        X = rng.standard_cauchy((300, 20)) if seed % 2 else np.exp(2 * rng.normal(size=(300, 20)))
        signal = X @ rng.normal(size=20)
        y = np.tanh(2 * signal / signal.std()) * 2 * 10 ** rng.uniform(-3, 4) + rng.standard_t(1.5, size=300)
        data = examples(X, y, None, 20, LOSSES[loss])
        settings = Settings(20, loss, "l1", 10 ** rng.uniform(-2, 3), intercept=ANYWHERE)
        limit = 1e-6 * evaluate(settings, data, np.zeros(20)).value[0]
        assert solved(settings, data, limit).evaluation.gap[0] <= limit


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf"])
def test_rows_that_a_model_fits_exactly(constraint):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 20))
    data = examples(X, X @ rng.normal(size=20), None, 20, LOSSES["squared"])
    found = solved(Settings(20, "squared", constraint, 40.0, intercept=ANYWHERE), data, 1e-8)
    assert found.evaluation.gap[0] <= 1e-8
    assert found.evaluation.value[0] <= 1e-8


def test_a_support_of_more_than_3000_columns_is_solved_in_the_memory_of_its_rows():
    rng = np.random.default_rng(6)
    size = 4_000
    X = scipy.sparse.diags_array(rng.uniform(0.5, 1.5, size), format="csr")
    data = examples(X, X @ rng.choice([-1.0, 1.0], size), None, size, LOSSES["squared"])
    settings = Settings(size, "squared", "l1", 0.97 * size, intercept=ANYWHERE)
    tracemalloc.start()
    found = solved(settings, data, 1e-6)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.count_nonzero(found.coefs) > 3_000
    assert found.evaluation.gap[0] <= 1e-6
    assert peak < curvatures.LEAST_ROOM  # a matrix of the support would take twice that


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_a_path_ends_where_cold_fits_do(loss, constraint):
    data, radii = case(loss, 3), [0.2, 0.5, 1.0, 1.5, 4.0, 40.0]
    settings = Settings(12, loss, constraint, intercept=ANYWHERE)
    stages = list(solve_radii(settings, data, radii, np.array([1e-9])))
    for radius, (coefs, found) in zip(radii, stages, strict=True):
        cold = solved(replace(settings, radius=radius), data)
        assert settings.set.norm(coefs[0]) <= radius * (1 + 1e-12)
        assert found.gap[0] <= 1e-7 * max(1.0, found.value[0])
        assert found.value[0] == pytest.approx(cold.evaluation.value[0], rel=1e-7)


def test_one_model_keeps_its_columns_from_radius_to_radius_and_several_do_not(monkeypatch):
    data = case("logistic", 4, 400, 60)
    taken, only = [], curvatures.Columns.only
    monkeypatch.setattr(curvatures.Columns, "only", lambda self, *given: taken.append(self.width) or only(self, *given))
    radii = np.geomspace(1.0, 2.0, 20)
    list(solve_radii(Settings(60), data, radii, np.array([1e-7])))
    assert taken.count(60) <= 15
    rounds = Rounds(Settings(60, radius=(1.0, 2.0)), data, 0, np.zeros(60), 0.0, 1e-7)
    rounds.run()
    assert rounds.working is None


def test_the_support_is_exact_and_the_loss_that_of_the_penalised_solution():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    sparse = OneSFWClassifier("l1", radius=5.29, random_state=0).fit(X, y)
    assert np.count_nonzero(sparse.coef_) <= 10
    reference = LogisticRegression(l1_ratio=1.0, C=0.05, solver="saga", tol=1e-4, max_iter=5_000, random_state=0)
    reference.fit(X, y)
    model = OneSFWClassifier("l1", radius=np.abs(reference.coef_).sum(), random_state=0).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    theirs = np.logaddexp(0, -signs * (X @ reference.coef_[0] + reference.intercept_[0])).mean()
    assert model.objective_ <= theirs + 1e-6
    assert model.gap_ <= 1e-6
    assert np.count_nonzero(model.coef_) <= np.count_nonzero(reference.coef_) + 2


def test_a_stop_leaves_the_models_in_their_sets():
    data = case("logistic")
    settings = Settings(12, "logistic", "l1", 30.0, intercept=ANYWHERE)
    asked = []
    found = solved(settings, data, stop=lambda: len(asked) > 1 or asked.append(1))
    assert settings.set.norm(found.coefs[0]) <= 30.0 * (1 + 1e-12)
    assert found.evaluation.gap[0] > 1e-9
    assert found.evaluation.value[0] < evaluate(settings, data, np.zeros(12)).value[0]


def test_ctrl_c_leaves_a_fitted_estimator(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    asked = ParallelLearners.coefs.fget

    def interrupted(self):
        os.kill(os.getpid(), signal.SIGINT)
        monkeypatch.setattr(ParallelLearners, "coefs", property(asked))
        return asked(self)

    monkeypatch.setattr(ParallelLearners, "coefs", property(interrupted))
    model = OneSFWClassifier(radius=5.0, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="holds the model as it stands"):
        model.fit(X, y)
    assert model.coef_.shape == (1, 30)
    assert np.abs(model.coef_ * model.scale_).sum() <= 5.0 * (1 + 1e-9)


def badly_scaled(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    scales = np.geomspace(0.009, 3814, 8)
    Z = rng.normal(size=(rows, 8))
    return Z * scales, Z, rng.poisson(np.exp(1 + 0.5 * Z[:, 0] - 0.3 * Z[:, 7])).astype(float)


def test_scales_are_divided_out_and_coefficients_are_in_the_users_units():
    X, Z, y = badly_scaled()
    model = OneSFWRegressor("l1", radius=2.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.scale_, X.std(axis=0), rtol=1e-9)
    assert np.abs(model.coef_ * model.scale_).sum() <= 2.0 * (1 + 1e-9)
    by_hand = OneSFWRegressor("l1", radius=2.0, random_state=0, scale=False).fit(X / X.std(axis=0), y)
    assert by_hand.scale_ is None
    np.testing.assert_allclose(model.coef_ * model.scale_, by_hand.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), by_hand.predict(X / X.std(axis=0)), atol=1e-5)
    assert OneSFWRegressor("l1", radius=2.0, random_state=0).fit(Z, y).scale_ is None
    with pytest.warns(ConvergenceWarning, match="the columns' scales differ by a factor of"):
        OneSFWRegressor("l1", radius=2.0, random_state=0, scale=False, polish=False).fit(X, y)
    streamed = model.partial_fit(X[:50], y[:50])
    assert streamed.score(X, y) > 0.2


def test_scales_of_sparse_columns_are_those_of_their_entries():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((3_000, 40), density=0.02, rng=rng, format="csr")
    X.data[:] = 1.0
    data = examples(X, np.zeros(3_000), None, 40, LOSSES["squared"])
    np.testing.assert_array_equal(column_scales(data), np.ones(40))
    far = scipy.sparse.csr_array(np.column_stack([np.full(50, 1e6) + np.arange(50.0), np.arange(50.0)]))
    scales = column_scales(examples(far, np.zeros(50), None, 2, LOSSES["squared"]))
    np.testing.assert_allclose(scales, np.full(2, np.arange(50.0).std()))
    assert unevenness(scales, examples(far, np.zeros(50), None, 2, LOSSES["squared"])) == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a thousand rows, seen once
@pytest.mark.parametrize("loss", ["poisson", "huber", "squared"])
@pytest.mark.parametrize("streamed", [False, True])
def test_badly_scaled_columns_are_never_worse_than_the_best_constant(loss, streamed):
    X, _, y = badly_scaled(1_000)
    blocks = ((X[i : i + 100], y[i : i + 100]) for i in range(0, 1_000, 100))
    model = train(blocks if streamed else (X, y), loss=loss, features=8, buffer=200)
    assert model.scale is not None
    settings = Settings(8, loss, intercept=ANYWHERE)
    data = examples(X, y, None, 8, LOSSES[loss])
    constant = evaluate(settings, data, np.zeros(8)).value[0]
    assert LOSSES[loss].value(model.margins(X), y).mean() < constant
    assert model.norm <= model.radius * (1 + 1e-6)


def test_the_radius_is_chosen_where_noise_is_learnt():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 150))
    y = X[:, 0] - X[:, 1] + rng.normal(size=300)
    fresh = rng.normal(size=(2_000, 150))
    truth = fresh[:, 0] - fresh[:, 1]
    chosen = OneSFWRegressor(random_state=0).fit(X, y)
    errors = {
        radius: np.mean((OneSFWRegressor(radius=radius, random_state=0).fit(X, y).predict(fresh) - truth) ** 2)
        for radius in (0.3, 3.0, 30.0)
    }
    assert 0.5 < chosen.radius_ < 15
    assert np.mean((chosen.predict(fresh) - truth) ** 2) < 2 * min(errors.values())
    settings = Settings(150, "squared", intercept=ANYWHERE)
    data = examples(X, y, None, 150, LOSSES["squared"])
    assert chosen_radius(settings, data, 3) == chosen_radius(settings, data, 3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # ten times the radius leaves a gap
def test_a_stream_chooses_its_radius_by_rows_it_has_not_seen():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4_000, 60))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=4_000) > 0, 1.0, -1.0)
    blocks = [(X[i : i + 500], y[i : i + 500]) for i in range(0, 4_000, 500)]
    model = train(iter(blocks), labels=[-1.0, 1.0], buffer=500)
    losses = {
        radius: train(iter(blocks), labels=[-1.0, 1.0], buffer=500, radius=radius).training.progressive_loss
        for radius in (model.radius / 10, model.radius, model.radius * 10)
    }
    assert model.training.polished == 0
    assert min(losses, key=losses.get) == model.radius


def test_a_race_goes_on_bit_for_bit(tmp_path, monkeypatch):
    from onesfw.linear import Learner

    monkeypatch.setattr("onesfw.engine.checkpoint.INTERVAL", 0.0)
    monkeypatch.setattr("onesfw.engine.checkpoint.SHARE", 0.0)
    X, _, y = badly_scaled(600)
    y = np.where(y > 2, "many", "few")
    pairs = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)]
    options = {"buffer": 100, "passes": 2}
    whole = train(lambda: iter(pairs), **options)
    learn, count = Learner.learn_unchecked, [0]

    def failing(self, *given):
        count[0] += 1
        if count[0] == 9:
            raise RuntimeError("the power is gone")
        return learn(self, *given)

    monkeypatch.setattr(Learner, "learn_unchecked", failing)
    with pytest.raises(RuntimeError, match="the power is gone"):
        train(lambda: iter(pairs), **options, checkpoint=tmp_path / "run")
    resumed = train(lambda: iter(pairs), **options, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(resumed.coef, whole.coef)
    np.testing.assert_array_equal(resumed.scale, whole.scale)
    assert (resumed.radius, resumed.intercept) == (whole.radius, whole.intercept)
    assert whole.training.polished > 0
    resumed.save(tmp_path / "model")
    again = type(resumed).load(tmp_path / "model")
    np.testing.assert_array_equal(again.scale, resumed.scale)
    assert again.norm == resumed.norm
    assert "of columns divided by their scales" in str(again)


def test_files_and_estimators_have_the_same_optimum():
    X, y = load_diabetes(return_X_y=True)
    model = train((X, y), loss="squared", radius=500.0, float64=True)
    estimator = OneSFWRegressor(radius=500.0, random_state=0).fit(X, y)
    assert model.training.converged
    np.testing.assert_allclose(model.coef, estimator.coef_, atol=0.5)
    assert LOSSES["squared"].value(model.margins(X), y).mean() == pytest.approx(estimator.objective_, rel=1e-5)


def test_several_models_are_the_same_on_any_number_of_threads():
    data = case("logistic")
    settings = Settings(12, "logistic", "l1", (0.5, 2.0, 8.0), intercept=ANYWHERE)
    one, many = (fit_in_memory(settings, data, Budget(polish=True, tol=1e-8), 0, n_jobs=n) for n in (1, 3))
    np.testing.assert_array_equal(one.learners.coefs, many.learners.coefs)
    assert (np.diff(one.evaluation.value) < 0).all()


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf", "nonnegative_l1"])
def test_the_training_loss_falls_with_the_radius(constraint):
    X, y = load_breast_cancer(return_X_y=True)
    path = radius_path(X, 1 - y, np.geomspace(0.1, 50.0, 8), constraint=constraint)
    assert (np.diff(path.train_loss) <= 1e-9).all()
    assert path.train_loss[-1] < 0.2 * path.train_loss[0]
    assert not path.unsolved.any()
    assert (path.gap <= 1e-6).all()


def test_a_radius_that_was_not_solved_is_marked_and_never_the_best(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    with pytest.warns(ConvergenceWarning, match=r"radii were not solved, the first of them .* leave polish on"):
        path = radius_path(X, y, [0.5, 2.0, 5_000.0], polish=False, passes=3)
    assert path.unsolved[-1]
    assert not path.unsolved[0]
    assert path.best < 2
    assert "not solved" in str(path)
    path.save(tmp_path / "path")
    np.testing.assert_array_equal(type(path).load(tmp_path / "path").unsolved, path.unsolved)
    with pytest.warns(ConvergenceWarning):
        none = radius_path(X, y, [5_000.0, 9_000.0], polish=False, passes=1)
    with pytest.raises(ValueError, match="no radius was solved"):
        _ = none.best
    assert "no radius was solved" in str(none)
    none.plot()
