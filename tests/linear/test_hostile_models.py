"""Sparse models and estimators, whatever comes in: a sentence that names it, or a finite model inside the set."""

import numpy as np
import pytest
import scipy.sparse
from hostile import INF, JUNK, NAN, anything, few
from hypothesis import given
from hypothesis import strategies as st

import onesfw as fw
from onesfw.linear import CONSTRAINTS, Learner, Settings, examples
from onesfw.sklearn import OneSFWClassifier, OneSFWRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
SETTINGS = ("n_features", "loss", "constraint", "radius", "schedule", "intercept", "delta")
PARAMETERS = sorted(set(OneSFWClassifier().get_params()) - {"verbose", "n_jobs"})
# They ask for the impossible and are told so; here it is the errors that count.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def refused_by_name(call, *names):
    """The answer; or None after an exception of the documented kind that names one of `names`."""
    try:
        return call()
    except (ValueError, TypeError, FloatingPointError) as error:
        message = str(error)
    assert any(name in message for name in names), f"none of {names} is named: {message}"
    return None


@few
@given(name=st.sampled_from(SETTINGS), value=anything)
def test_settings(name, value):
    settings = refused_by_name(lambda: Settings(**{"n_features": 4, name: value}), name)
    if settings is not None and settings.n_features < 1e6:
        data = RNG.normal(size=(30, settings.n_features))
        targets = Y if settings.loss_function.classifies else np.abs(Y)
        learner = Learner(settings)
        if refused_by_name(lambda: learner.learn(data, targets), "lower the radius") is None:
            return
        assert np.isfinite(learner.coef).all()
        assert settings.set.norm(learner.coef) <= settings.radius * (1 + 1e-9)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_of_the_classifier(name):
    for value in JUNK:
        if name == "steps" and isinstance(value, int | np.integer) and value > 1_000:
            continue  # right, and hours of work
        options = {"random_state": 0, "steps": 50, "tol": None, name: value}
        if name == "max_iter":
            if isinstance(value, int | np.integer) and value > 1_000:
                continue
            options["steps"] = None
        model = refused_by_name(lambda options=options: OneSFWClassifier(**options).fit(X, Y), name)
        if model is not None:
            assert np.isfinite(model.coef_).all(), options
            scaled = model.coef_[0] * (1.0 if model.scale_ is None else model.scale_)
            assert CONSTRAINTS[model.constraint].norm(scaled) <= model.radius_ * (1 + 1e-9), options


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e-8, 1e8, 1e30, 1e150])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_rows_of_every_size(constraint, scale):
    for make in (OneSFWClassifier, OneSFWRegressor):
        model = make(constraint, radius=1.0, steps=200, tol=None, random_state=0)
        if refused_by_name(lambda model=model: model.fit(X * scale, Y), "scale", "finite") is None:
            continue
        assert np.isfinite(model.coef_).all()
        assert CONSTRAINTS[constraint].norm(np.ravel(model.coef_)) <= 1 + 1e-9


@pytest.mark.parametrize("make", [OneSFWClassifier, OneSFWRegressor])
def test_a_radius_beyond_all_measure(make):
    """Margins and their squares would be infinite."""
    with pytest.raises(ValueError, match=r"radius must be at most 1e\+100"):
        make(radius=1e300).fit(X, Y)
    model = make(radius=1e100, steps=200, tol=None, random_state=0).fit(X, Y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_rows_that_are_not_finite(bad):
    rows = X.copy()
    rows[3, 2] = bad
    for call in (
        lambda: OneSFWClassifier().fit(rows, Y),
        lambda: OneSFWRegressor().fit(scipy.sparse.csr_array(rows), Y),
        lambda: Learner(Settings(4)).learn(rows, Y),
        lambda: fw.radius_path(rows, Y, [1.0]),
    ):
        with pytest.raises(ValueError, match=r"finite|NaN|infinity"):
            call()
    targets = Y.copy()
    targets[0] = bad
    with pytest.raises(ValueError, match=r"finite|NaN|infinity"):
        OneSFWRegressor().fit(X, targets)


def test_empty_and_tiny_data():
    with pytest.raises(ValueError, match="0 sample"):
        OneSFWClassifier().fit(np.zeros((0, 4)), [])
    Learner(Settings(4)).learn(np.zeros((0, 4)), [])
    model = OneSFWClassifier(steps=10, random_state=0).fit(np.zeros((2, 4)), [0, 1])  # nothing to learn from
    assert np.isfinite(model.coef_).all()
    data = examples(np.zeros((2, 1)), [1.0, -1.0], None, 1, Settings(1).loss_function)
    assert data.matrix.nnz == 0


@few
@given(st.binary(max_size=300))
def test_states_of_noise(data):
    tensors = Learner(Settings(4)).tensors()
    name = sorted(tensors)[len(data) % len(tensors)]
    with pytest.raises(ValueError, match="Learner"):
        Learner.from_tensors(Settings(4), {**tensors, name: np.frombuffer(data, np.uint8).reshape(1, -1, 1)})
    with pytest.raises(ValueError, match="Learner"):
        Learner.from_tensors(Settings(5), tensors)


@pytest.mark.parametrize(
    ("name", "value"),
    [("step", -1), ("place", 4), ("place", -1), ("eta", 1.5), ("scale", 0.0), ("sigma", -1.0), ("intercept", np.nan)],
)
def test_a_state_out_of_its_range_is_refused(name, value):
    """Kernels write where `place` says: one that was forged ended the process."""
    learner = Learner(Settings(4, "squared"))
    learner.learn(np.eye(4), np.arange(4.0))
    tensors = learner.tensors()
    Learner.from_tensors(learner.settings, tensors)
    tensors[f"scalar.{name}"] = np.full_like(tensors[f"scalar.{name}"], value)
    with pytest.raises(ValueError, match="out of its range"):
        Learner.from_tensors(learner.settings, tensors)


def test_entries_that_are_not_finite_are_refused():
    learner = Learner(Settings(4, "squared"))
    tensors = {**learner.tensors(), "pairs": np.full_like(learner.pairs, np.inf)}
    with pytest.raises(ValueError, match="out of its range"):
        Learner.from_tensors(learner.settings, tensors)
