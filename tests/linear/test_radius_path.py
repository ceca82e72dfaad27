"""The radius path: losses that fall with the radius, the right best one, a picture."""

import signal

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import onesfw as fw
from onesfw.linear import LOSSES, Settings, evaluate, examples
from onesfw.linear.polish import Rounds


def data(seed=0, rows=1_500, columns=60):
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random_array((rows, columns), density=0.2, rng=rng, format="csr")
    signal = X @ (rng.normal(size=columns) * (np.arange(columns) < 6)) * 3
    return X, np.where(signal + 0.3 * rng.normal(size=rows) > 0, "yes", "no")


def test_each_model_is_what_its_row_says():
    X, y = data()
    path = fw.radius_path(X, y, [10.0, 1.0, 30.0], passes=20, intercept=False)
    np.testing.assert_array_equal(path.radii, [1.0, 10.0, 30.0])
    assert (np.abs(path.coefs.toarray()).sum(axis=1) <= path.radii * (1 + 1e-9)).all()
    assert (np.diff(path.train_loss) < 0).all()
    np.testing.assert_array_equal(path.nonzeros, np.diff(path.coefs.indptr))
    train = examples(X, np.where(y == "yes", 1.0, -1.0), None, 60, LOSSES["logistic"])
    others = fw.radius_path(X, y, [1.0, 10.0, 30.0], passes=20, validation=(X, y), intercept=False)
    for i, radius in enumerate(others.radii):
        (value,), (gap,), _ = evaluate(Settings(60, radius=float(radius)), train, others.coefs[[i]].toarray()[0])
        assert others.train_loss[i] == pytest.approx(value) == pytest.approx(others.validation_loss[i])
        assert others.gap[i] == pytest.approx(gap)


def test_the_best_radius_is_neither_end_where_noise_is_learnt():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 200))
    y = X[:, 0] + X[:, 1] + rng.normal(size=300)
    path = fw.radius_path(X, y, [0.1, 2.0, 1_000.0], loss="squared", passes=200)
    assert path.best_radius == 2.0
    assert path.simplest <= path.best


def test_threads_do_not_change_the_models():
    X, y = data(2)
    one, four = (fw.radius_path(X, y, passes=3, n_jobs=jobs) for jobs in (1, 4))
    np.testing.assert_array_equal(one.coefs.toarray(), four.coefs.toarray())
    np.testing.assert_array_equal(one.validation_loss, four.validation_loss)
    assert len(one.radii) == 12


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf", "simplex", "nonnegative_l1"])
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_chunks_come_to_the_solutions_of_single_radii(constraint, loss):
    X, y = data(5, rows=400, columns=20)
    targets = y if loss == "logistic" else X.toarray()[:, 0] * 3 + (y == "yes")
    radii = list(np.geomspace(0.3, 6.0, 26))
    options = {"constraint": constraint, "loss": loss, "validation": (X, targets)}
    path = fw.radius_path(X, targets, radii, **options)
    assert not path.unsolved.any()
    for place in (0, 6, 7, 13, 20, 25):  # chunks begin at 0, 7, 14 and 20
        (alone,) = fw.radius_path(X, targets, [radii[place]], **options).train_loss
        assert path.train_loss[place] == pytest.approx(alone, abs=3e-6)


def test_after_ctrl_c_a_path_has_the_radii_that_were_solved(monkeypatch):
    X, y = data(6, rows=300, columns=20)
    run, seen = Rounds.run, []

    def stopped(self):
        seen.append(self.radius)
        if len(seen) == 7:  # after the heads of four chunks and two radii of the last one
            signal.raise_signal(signal.SIGINT)
        return run(self)

    monkeypatch.setattr(Rounds, "run", stopped)
    path = fw.radius_path(X, y, list(range(1, 17)))
    np.testing.assert_array_equal(path.radii, [13.0, 14.0])
    assert path.coefs.shape == (2, 20)
    assert not path.unsolved.any()


@pytest.mark.parametrize("constraint", ["l2", "simplex", "nonnegative_l1"])
def test_every_set_and_an_intercept(constraint):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    # Most features speak for a tumour that is malignant, class 0: turned round, non-negative coefficients will do.
    path = fw.radius_path(X, 1 - y, [0.3, 1.0, 3.0], constraint=constraint, passes=20)
    assert (path.train_loss < 0.6).all()
    assert (path.validation_loss < 0.6).all()


def test_the_table_and_the_picture(tmp_path):
    X, y = data(3)
    path = fw.radius_path(X, y, passes=1, progress=False)
    lines = str(path).splitlines()
    assert len(lines) == 14  # title, heads, twelve radii
    assert "best" in str(path)
    target = tmp_path / "path.png"
    path.plot(target)
    assert target.read_bytes().startswith(b"\x89PNG")
    assert "data:image/png;base64," in path._repr_html_()
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert path.plot(ax=ax) is ax.figure


def test_a_path_is_saved_and_loaded(tmp_path):
    X, y = data(4)
    path = fw.radius_path(X, y, [1.0, 5.0], passes=2)
    path.save(tmp_path / "path")
    again = fw.linear.RadiusPath.load(tmp_path / "path")
    assert str(again) == str(path)
    assert again.settings == path.settings
    np.testing.assert_array_equal(again.coefs.toarray(), path.coefs.toarray())
    damaged = bytearray((tmp_path / "path").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "path").write_bytes(damaged)
    with pytest.raises(ValueError, match="does not match its SHA-256"):
        fw.linear.RadiusPath.load(tmp_path / "path")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radii": []}, "radii"),
        ({"radii": [1.0, -1.0]}, "radii"),
        ({"validation": 0.0}, "validation"),
        ({"validation": 1.0}, "validation"),
        ({"loss": "hinge"}, "loss"),
        ({"constraint": "l0"}, "constraint"),
        ({"passes": 0}, "passes"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"y": np.arange(1_500)}, "two labels"),
        ({"y": np.arange(3)}, "one row for each"),
    ],
)
def test_bad_arguments_are_named(change, message):
    X, y = data()
    arguments = {"X": X, "y": y, **change}
    with pytest.raises((ValueError, TypeError), match=message):
        fw.radius_path(**arguments)
