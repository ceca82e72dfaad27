"""Dense rows through `fw.sweep`: its losses are those of the linear engine, its models near the solutions, its bits."""

import _thread
import threading
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import onesfw as fw
from onesfw.linear import LOSSES, Settings, evaluate, examples, stability_selection
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.radii import part, solve_radii
from onesfw.linear.radius_folds import cross_validate
from onesfw.linear.swept import FORMULAS, Engine, RowLoss, dense_problem, swept
from onesfw.sklearn import OneSFWClassifierCV, OneSFWRegressorCV, StabilitySelector


def made(loss, n=150, d=6, seed=0):
    """Rows whose means are not 0, and targets that the loss takes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    margins = X @ np.where(np.arange(d) < 2, [1.0, -1.0] * (d // 2), 0.0) + 1.5 + 0.5 * rng.normal(size=n)
    if LOSSES[loss].classifies:
        return X, np.where(margins > rng.normal(size=n), 1.0, -1.0)
    return X, rng.poisson(np.exp(margins / 3)) + 0.0 if loss == "poisson" else margins


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_the_one_of_the_linear_engine(loss):
    """Values and derivatives, for margins on both sides of every bend."""
    assert set(FORMULAS) == set(LOSSES)
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 200) if LOSSES[loss].classifies else np.abs(rng.normal(size=200))
    m = 3 * rng.normal(size=200)
    formula, delta = FORMULAS[loss], 0.7
    with jax.enable_x64(True):
        values = np.array([formula(jnp.float64(a), jnp.float64(b), delta) for a, b in zip(m, y, strict=True)])
        slopes = np.array([jax.grad(formula)(jnp.float64(a), jnp.float64(b), delta) for a, b in zip(m, y, strict=True)])
    assert np.allclose(values, LOSSES[loss].value(m, y, delta), rtol=1e-12, atol=1e-12)
    assert np.allclose(slopes, LOSSES[loss].derivative(m, y, delta), rtol=1e-12, atol=1e-12)


CASES = [
    ("logistic", "l1", ANYWHERE),
    ("logistic", "linf", (-0.5, 0.5)),
    ("squared", "l1", ANYWHERE),
    ("squared", "simplex", (0.0, np.inf)),
    ("squared_hinge", "l2", ANYWHERE),
    ("huber", "nonnegative_l1", None),
    ("poisson", "l1", ANYWHERE),
]


@pytest.mark.parametrize(("loss", "constraint", "intercept"), CASES)
@pytest.mark.parametrize("unit", [1.0, 1e-20])
def test_models_are_near_the_solutions(loss, constraint, intercept, unit):
    """In every unit of the rows, weighted, on a part of them: within 2 % of the loss of the best constant."""
    X, y = made(loss)
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    data = examples(unit * X, y, weights, X.shape[1], LOSSES[loss])
    settings = Settings(X.shape[1], loss, constraint, intercept=intercept, delta=0.7)
    radii, choices = [0.3 / unit, 1.0 / unit], [np.arange(100), np.arange(50, 150)]
    found = swept(settings, data, choices, radii, steps=20_000)
    assert found.shape == (2, 2, 1, X.shape[1])
    for numbers, path in zip(choices, found, strict=True):
        rows = part(data, numbers)
        constant = evaluate(settings, rows, np.zeros(X.shape[1])).value
        exact = solve_radii(settings, rows, radii, 1e-9 * constant)
        for radius, coefs, (_, best) in zip(radii, path, exact, strict=True):
            assert settings.set.norm(coefs[0]) <= radius * (1 + 1e-5)
            ours = evaluate(replace(settings, radius=radius), rows, coefs)
            above = (ours.value - best.value)[0] / constant[0]
            assert -1e-6 <= above <= min(0.02, ours.gap[0] / constant[0] + 1e-6)


def test_every_model_is_a_run_of_fw_sweep():
    """The bits are those of the sweep that anyone would write, with its keys."""
    X, y = made("squared")
    data = examples(X, y, None, 6, LOSSES["squared"])
    settings, radii, folds = Settings(6, "squared"), [0.5, 2.0], fw.rows.folds(150, 3)
    found = swept(settings, data, folds, radii, steps=500, key=7)
    problem = dense_problem(settings, data, 0, radii)
    key = jax.random.fold_in(jax.random.key(7), 0)
    runs = fw.sweep(problem.objective, problem.sets, steps=500, rows=folds, key=key)
    assert np.array_equal(found[:, :, 0], (runs.x[:, :, 0] * problem.unit).swapaxes(0, 1))
    assert np.array_equal(found, swept(settings, data, folds, radii, steps=500, key=7))
    assert not np.array_equal(found, swept(settings, data, folds, radii, steps=500, key=8))


def test_a_second_call_has_its_programs():
    """The loss compares by what it says: two calls share one."""
    assert RowLoss("logistic", 1.0, True) == RowLoss("logistic", 1.0, True)
    assert hash(RowLoss("logistic", 1.0, True)) == hash(RowLoss("logistic", 1.0, True))
    assert RowLoss("logistic", 1.0, True) != RowLoss("logistic", 1.0, False)


def test_several_classes_are_one_against_the_rest():
    X, _ = made("squared")
    labels = np.random.default_rng(0).integers(0, 3, 150).astype(float)
    data = examples(X, labels, None, 6, LOSSES["logistic"], (0, 1, 2))
    found = swept(Settings(6, intercept=ANYWHERE, labels=(0, 1, 2)), data, [np.arange(150)], [1.0], steps=2_000)
    assert found.shape == (1, 1, 3, 6)
    alone = examples(X, np.where(labels == 0, 1.0, -1.0), None, 6, LOSSES["logistic"])
    assert np.array_equal(found[0, 0, 0], swept(Settings(6, intercept=ANYWHERE), alone, [np.arange(150)], [1.0],
                                                steps=2_000)[0, 0, 0])  # fmt: skip


def test_cross_validation_by_either_engine():
    X, y = made("logistic", n=400)
    data = examples(X, y, None, 6, LOSSES["logistic"])
    settings, radii = Settings(6, intercept=ANYWHERE), [0.1, 0.5, 2.0]
    folds = [(learnt, np.setdiff1d(np.arange(400), learnt)) for learnt in fw.rows.folds(400, 4)]
    exact = cross_validate(settings, data, folds, radii)
    found = cross_validate(settings, data, folds, radii, engine=Engine("sweep", 1e-4, 50_000))
    assert not found.unsolved.any()
    assert np.abs(found.losses - exact.losses).max() <= 0.02
    assert found.chosen("one_standard_error") == exact.chosen("one_standard_error")
    with pytest.warns(ConvergenceWarning, match="none of them is chosen; raise steps, or leave engine at 'linear'"):
        short = cross_validate(settings, data, folds, [*radii, 1e3], engine=Engine("sweep", 1e-4, 200))
    assert short.unsolved[-1].any()


def test_the_estimators():
    X, y = made("logistic", n=300)
    model = OneSFWClassifierCV(engine="sweep", steps=20_000, radii=[0.1, 0.5, 2.0], cv=3, random_state=0).fit(X, y)
    linear = OneSFWClassifierCV(radii=[0.1, 0.5, 2.0], cv=3, random_state=0).fit(X, y)
    assert np.abs(model.loss_path_ - linear.loss_path_).max() <= 0.02
    assert not np.array_equal(model.loss_path_, linear.loss_path_)
    assert model.radius_ == linear.radius_
    assert np.array_equal(model.coef_, linear.coef_)  # the fit on all rows is the same
    X, y = made("squared", n=300)
    model = OneSFWRegressorCV(engine="sweep", radii=[0.5, 2.0], cv=2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8


def test_stability_selection_finds_the_columns():
    """On average over three sets of rows at most as many false ones as promised, and the true ones."""
    false, missed = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, 30))
        X[:, 1:] += 0.5 * X[:, :-1]
        true = [0, 10, 20]
        y = X[:, true] @ [1.0, -1.0, 1.0] + rng.normal(size=120)
        found = StabilitySelector(engine="sweep", radii=[0.5, 1.0, 2.0], n_pairs=8, steps=10_000, random_state=seed)
        found.fit(X, y)
        false.append(len(np.setdiff1d(found.get_support(indices=True), true)))
        missed.append(len(np.setdiff1d(true, found.get_support(indices=True))))
        assert found.false_selections_ <= 1.0
    assert np.mean(false) <= 1.0
    assert np.mean(missed) < 0.5


def test_what_is_refused():
    X, y = made("squared", n=40)
    data = examples(X, y, None, 6, LOSSES["squared"])
    for options, words in (
        ({"engine": "sweeps"}, "engine='sweeps' is not known; choose one of 'linear', 'sweep', did you mean|sweep"),
        ({"engine": "sweep", "steps": 0}, "steps must be"),
    ):
        with pytest.raises(ValueError, match=words):
            stability_selection(Settings(6, "squared"), data, **options)
    thin = scipy.sparse.random_array((60, 50), density=0.05, rng=np.random.default_rng(0), format="csr")
    words = "engine='sweep' is for dense rows, and of these 5.0% of the entries are not 0; leave engine at 'linear'"
    for model in (OneSFWRegressorCV(engine="sweep"), StabilitySelector("squared", engine="sweep")):
        with pytest.raises(ValueError, match=words):
            model.fit(thin, np.arange(60.0))
    with pytest.raises(ValueError, match="'engine' parameter"):
        OneSFWClassifierCV(engine="gpu").fit(X, y > 0)


def test_mistakes_are_told_before_anything_is_swept(monkeypatch):
    monkeypatch.setattr("onesfw.linear.swept.swept", lambda *args, **options: pytest.fail("work that is lost"))
    X, y = made("squared", n=40)
    for model in (OneSFWRegressorCV(engine="sweep", n_jobs=0), StabilitySelector("squared", engine="sweep", n_jobs=0)):
        with pytest.raises(ValueError, match="n_jobs: 0 has no meaning"):
            model.fit(X, y)


def test_beyond_the_range_of_numbers():
    """Radii at which the Poisson loss overflows are not chosen; where it is the only one, that is said."""
    X, y = made("poisson", n=60)
    data = examples(X, y, None, 6, LOSSES["poisson"])
    folds = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    found = cross_validate(Settings(6, "poisson"), data, folds, [0.3, 1e6], engine=Engine("sweep", 1e-4, 2_000))
    assert found.chosen() == 0
    with pytest.raises(FloatingPointError, match="lower radii, or raise steps where engine is 'sweep'"):
        cross_validate(Settings(6, "poisson"), data, folds, [1e6], engine=Engine("sweep", 1e-4, 2_000)).chosen()


def test_a_ctrl_c_ends_it():
    X, y = made("squared")
    data = examples(X, y, None, 6, LOSSES["squared"])
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        swept(Settings(6, "squared"), data, fw.rows.folds(150, 10), [1.0, 2.0, 3.0], steps=30_000_000)
    timer.cancel()
